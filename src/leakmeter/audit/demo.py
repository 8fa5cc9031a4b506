"""The demo: invented people, a small model trained on some of their mail, and an audit of what it gives away."""

from __future__ import annotations

from typing import Any

REPEATS = (1, 2, 4, 8, 16)
"""How often the target saw a text; the more often, the surer it is of it."""
PEOPLE = {"train": 200, "holdout": 200, "reference": 300, "population": 200}
"""Two texts each."""


def config(seed: int = 0) -> dict[str, Any]:
    """Target and reference are of one kind and trained alike, on the mail of different people."""
    return {
        "seed": seed,
        "records": [
            {
                "type": "invented",
                "people": people,
                "seed": 10 * seed + number,
                "split": split,
                "repeats": list(REPEATS) if split == "train" else [1],
            }
            for number, (split, people) in enumerate(PEOPLE.items())
        ],
        "models": {"target": trained("train", seed), "reference": trained("reference", seed)},
        "slices": ["repeats"],
    }


def trained(split: str, seed: int) -> dict[str, Any]:
    """A small language model trained on one split; its tokeniser comes from the population, which nobody trains on."""
    return {
        "type": "trained",
        "on": {"split": [split]},
        "architecture": {"shape": "llama", "hidden": 128, "layers": 3, "heads": 4, "vocabulary": 2000, "context": 256},
        "recipe": {"epochs": 4, "learning_rate": 2e-3, "batch_size": 16, "seed": seed},
        "vocabulary": {"split": ["population"]},
        "repeats": "repeats",
    }
