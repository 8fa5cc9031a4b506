"""Word n-grams as 64-bit hashes, so that millions of them can be compared as arrays.

Words are runs of letters, digits and underscores, in lower case. A hash stands for an n-gram within one process only:
nothing stores it. Two different n-grams share one by chance about once in 10^19 pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
Positions = NDArray[np.int64]

_BASE = np.uint64(0x9E3779B97F4A7C15)
_STEPS = (np.uint64(31), np.uint64(27), np.uint64(33))
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_CHUNK = 10_000


@dataclass(frozen=True, slots=True)
class Words:
    """The words of many texts in one row: those of text i are `hashes[starts[i]:starts[i + 1]]`."""

    hashes: Hashes
    starts: Positions

    @property
    def lengths(self) -> Positions:
        return np.diff(self.starts)

    def blocks(self) -> Iterator[tuple[int, Words]]:
        """A few thousand texts at a time, with the position of the first: what is computed of them stays small."""
        for begin in range(0, len(self.starts) - 1, _CHUNK):
            yield begin, Words(self.hashes, self.starts[begin : begin + _CHUNK + 1])

    def ngrams(self, n: int) -> tuple[Hashes, Positions]:
        """The n-grams of all texts that have any, and the text each comes from, in order."""
        counts = np.maximum(self.lengths - (n - 1), 0)
        text = np.repeat(np.arange(len(counts)), counts)
        first = np.cumsum(counts) - counts
        at = self.starts[text] + (np.arange(len(text)) - first[text])
        total = np.zeros(len(at), dtype=np.uint64)
        for offset in range(n):
            # A polynomial over the words, so that their order counts.
            total = total * _BASE + self.hashes[at + offset]
        return _mixed(total), text


def words(texts: Sequence[str]) -> Words:
    """The hashed words of texts. Texts are taken a few thousand at a time, so only the hashes stay in memory."""
    hashes, lengths = [], []
    for found in _found(texts):
        lengths.append(found.list.len().to_numpy())
        hashes.append(found.list.explode(empty_as_null=False).hash(seed=0).to_numpy())
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(np.concatenate([*lengths, []]), dtype=np.int64)])
    return Words(np.concatenate([np.zeros(0, dtype=np.uint64), *hashes]), starts)


def _found(texts: Sequence[str]) -> Iterator[pl.Series]:
    for begin in range(0, len(texts), _CHUNK):
        chunk = pl.Series(texts[begin : begin + _CHUNK], dtype=pl.String)
        yield chunk.str.to_lowercase().str.extract_all(r"\w+")


def _mixed(values: Hashes) -> Hashes:
    values = (values ^ (values >> _STEPS[0])) * _MIX[0]
    values = (values ^ (values >> _STEPS[1])) * _MIX[1]
    return values ^ (values >> _STEPS[2])
