"""What many tests need: invented lines, exact n-gram models over them, and files of members and non-members."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

WORDS = [
    "order", "invoice", "garden", "letter", "meeting", "harbour", "ticket", "window", "summer", "report",
    "engine", "market", "bridge", "copper", "lantern", "orchard", "parcel", "quarry", "ribbon", "saddle",
    "timber", "velvet", "willow", "yonder", "anchor", "basket", "candle", "dragon",
]  # fmt: skip


def lines(n: int, seed: int) -> list[str]:
    """Invented sentences with enough chance in them that no two are alike."""
    rng = np.random.default_rng(seed)
    return [
        f"{' '.join(rng.choice(WORDS, 11)).capitalize()} {rng.integers(10**6)}, call 202-555-01{rng.integers(100):02d}."
        for _ in range(n)
    ]


@dataclass(frozen=True)
class Corpus:
    """Files of an audit whose target has seen the members."""

    folder: Path
    members: Path
    nonmembers: Path
    population: Path
    target: dict[str, object]
    reference: dict[str, object]

    def config(self, **more: object) -> dict[str, object]:
        def file(path: Path, split: str, member: bool) -> dict[str, object]:
            return {"type": "file", "path": str(path), "split": split, "member": member}

        records = [
            file(self.members, "members", True),
            file(self.nonmembers, "nonmembers", False),
            file(self.population, "population", False),
        ]
        return {"records": records, "models": {"target": self.target, "reference": self.reference}, **more}


def write_jsonl(path: Path, texts: list[str], person: str) -> Path:
    rows = (
        json.dumps({"id": f"{person}{i}@example.org", "text": t, "group": f"{person}-{i // 2}"})
        for i, t in enumerate(texts)
    )
    path.write_text("\n".join(rows) + "\n")
    return path


def make_corpus(folder: Path, n: int = 80, seed: int = 0) -> Corpus:
    members, nonmembers, population, other = (lines(n, seed * 10 + k) for k in range(4))
    for name, texts in (("target", members), ("reference", other)):
        (folder / f"{name}.txt").write_text("\n".join(texts))
    return Corpus(
        folder,
        write_jsonl(folder / "members.jsonl", members, "ada"),
        write_jsonl(folder / "nonmembers.jsonl", nonmembers, "bob"),
        write_jsonl(folder / "population.jsonl", population, "cyd"),
        {"type": "ngram", "path": str(folder / "target.txt"), "order": 5},
        {"type": "ngram", "path": str(folder / "reference.txt"), "order": 5},
    )


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return make_corpus(tmp_path)
