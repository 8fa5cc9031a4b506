"""The demo: invented people, a small model trained on some of their mail, and an audit of what it gives away."""

from __future__ import annotations

from typing import Any

REPEATS = (1, 2, 4, 8, 16)
"""How often the target saw a text; the more often, the surer it is of it."""
PEOPLE = {"train": 250, "holdout": 250, "reference": 500, "population": 250}
"""Two texts each."""
EPOCHS = {"reference": 2}
"""The reference sees twice as many texts twice; everybody else sees theirs once, or as often as they repeat."""


def config(seed: int = 0) -> dict[str, Any]:
    """Target and reference are of one kind, trained on the mail of different people."""
    records = [
        {
            "type": "invented",
            "people": people,
            "seed": 10 * seed + number,
            "split": split,
            "repeats": list(REPEATS) if split == "train" else [1],
        }
        for number, (split, people) in enumerate(PEOPLE.items())
    ]
    models = {"target": trained("train", seed), "reference": trained("reference", seed)}
    return {"seed": seed, "records": records, "models": models, "slices": ["repeats"]}


def trained(split: str, seed: int) -> dict[str, Any]:
    """A small language model trained on one split; its tokeniser comes from the population, which nobody trains on."""
    return {
        "type": "trained",
        "on": {"split": [split]},
        "architecture": {"shape": "llama", "hidden": 128, "layers": 3, "heads": 4, "vocabulary": 2000, "context": 256},
        "recipe": {
            "epochs": EPOCHS.get(split, 1),
            "learning_rate": 4e-3,
            "betas": [0.9, 0.98],
            "batch_size": 8,
            "seed": seed,
        },
        "vocabulary": {"split": ["population"]},
        "repeats": "repeats",
    }
