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
    """The words of many texts: those of text i are the `lengths[i]` hashes from `starts[i]` on."""

    hashes: Hashes
    starts: Positions
    lengths: Positions

    def take(self, texts: Positions) -> Words:
        """Some of the texts."""
        return Words(self.hashes, self.starts[texts], self.lengths[texts])

    def ngrams(self, n: int) -> tuple[Hashes, Positions]:
        """The n-grams of all texts that have any, and the text each comes from, in order."""
        counts = np.maximum(self.lengths - (n - 1), 0)
        text = np.repeat(np.arange(len(counts)), counts)
        before = np.cumsum(counts) - counts
        at = np.arange(len(text)) + (self.starts - before)[text]
        total = np.zeros(len(at), dtype=np.uint64)
        for _ in range(n):
            # A polynomial over the words, so that their order counts.
            total *= _BASE
            total += self.hashes[at]
            at += 1
        return _mixed(total), text


def blocks(texts: Positions) -> Iterator[Positions]:
    """A few thousand texts at a time, so that what is computed of them stays small."""
    for begin in range(0, len(texts), _CHUNK):
        yield texts[begin : begin + _CHUNK]


def words(texts: Sequence[str]) -> Words:
    """The hashed words of texts. Texts are taken a few thousand at a time, so only the hashes stay in memory."""
    hashes, lengths = [], []
    for found in _found(texts):
        lengths.append(found.list.len().to_numpy())
        hashes.append(found.list.explode(empty_as_null=False).hash(seed=0).to_numpy())
    length = np.concatenate([np.zeros(0, dtype=np.int64), *lengths]).astype(np.int64)
    return Words(np.concatenate([np.zeros(0, dtype=np.uint64), *hashes]), np.cumsum(length) - length, length)


def _found(texts: Sequence[str]) -> Iterator[pl.Series]:
    for begin in range(0, len(texts), _CHUNK):
        chunk = pl.Series(texts[begin : begin + _CHUNK], dtype=pl.String)
        yield chunk.str.to_lowercase().str.extract_all(r"\w+")


def _mixed(values: Hashes) -> Hashes:
    values = (values ^ (values >> _STEPS[0])) * _MIX[0]
    values = (values ^ (values >> _STEPS[1])) * _MIX[1]
    return values ^ (values >> _STEPS[2])
