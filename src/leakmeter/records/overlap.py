"""Overlap: texts that two pools share, word for word or nearly.

A text in both pools is member and non-member at once, so every figure that compares the pools is off. A text of the
right pool is a near duplicate when at least `threshold` of its word n-grams occur anywhere in the left pool; a text
shorter than n words is one n-gram of its own length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leakmeter.core.errors import BadInput
from leakmeter.text.ngrams import Hashes, Words, blocks, words

_WORST = 10


class Shared(NamedTuple):
    """A text of the right pool, the left text it shares most n-grams with, and the share found in all of left."""

    left: int
    right: int
    share: float


@dataclass(frozen=True, slots=True)
class Overlap:
    """How much of the right pool stands in the left one."""

    exact: int
    """Texts of the right pool that are texts of the left pool."""
    near: int
    """Further texts of the right pool that share at least the threshold of their n-grams."""
    n_left: int
    n_right: int
    worst: list[Shared]
    """The most shared texts, worst first; positions in the pools."""


def overlap(left: Sequence[str], right: Sequence[str], n: int = 8, threshold: float = 0.5) -> Overlap:
    """Compare two pools of texts. Time and memory grow with the number of words, not with the number of pairs."""
    place: dict[str, int] = {}
    for i, text in enumerate(left):
        place.setdefault(text.strip(), i)
    exact = np.array([text.strip() in place for text in right], dtype=bool)
    pool, asked = words(left), words(right)
    share = np.where(exact, 1.0, _shares(pool, asked, n))
    near = (share >= threshold) & ~exact
    suspects = [int(i) for i in np.lexsort((~exact, -share))[:_WORST] if exact[i] or near[i]]
    partner = _partners(pool, asked, [i for i in suspects if near[i]], n)
    partner |= {i: place[right[i].strip()] for i in suspects if exact[i]}
    worst = [Shared(partner[i], i, float(share[i])) for i in suspects]
    return Overlap(int(exact.sum()), int(near.sum()), len(left), len(right), worst)


def _shares(pool: Words, asked: Words, n: int) -> NDArray[np.float64]:
    """For each asked text, the share of its n-grams that the pool has."""
    size = np.minimum(asked.lengths, n)
    share = np.zeros(len(size))
    for k in range(1, n + 1):
        texts = np.flatnonzero(size == k)
        if not len(texts):
            continue
        everything = np.arange(len(pool.lengths))
        table = np.concatenate([_NONE, *(pool.take(block).ngrams(k)[0] for block in blocks(everything))])
        table.sort()
        for block in blocks(texts):
            hashes, text = asked.take(block).ngrams(k)
            share[block] = np.bincount(text, weights=_in(hashes, table)) / (asked.lengths[block] - (k - 1))
    return share


_NONE: Hashes = np.zeros(0, dtype=np.uint64)


def _in(values: Hashes, table: Hashes) -> NDArray[np.bool_]:
    """Which values stand in a sorted table. (numpy's own isin and unique are a hundred times slower on hashes.)"""
    if not len(table):
        return np.zeros(len(values), dtype=bool)
    # Looked up in order, neighbours find the same parts of the table in the cache.
    order = np.argsort(values)
    found = np.empty(len(values), dtype=bool)
    ordered = values[order]
    found[order] = table[np.minimum(np.searchsorted(table, ordered), len(table) - 1)] == ordered
    return found


def _partners(pool: Words, asked: Words, suspects: Sequence[int], n: int) -> dict[int, int]:
    """For each suspect the text of the pool that holds most of its n-grams; of equals the first."""
    best: dict[int, tuple[int, int]] = {}
    for k in range(1, n + 1):
        mine = [i for i in suspects if min(asked.lengths[i], n) == k]
        if not mine:
            continue
        own = {i: set(asked.take(np.array([i])).ngrams(k)[0].tolist()) for i in mine}
        wanted = np.array(sorted(set().union(*own.values())), dtype=np.uint64)
        for block in blocks(np.arange(len(pool.lengths))):
            hashes, text = pool.take(block).ngrams(k)
            hit = _in(hashes, wanted)
            pairs = set(zip(block[text[hit]].tolist(), hashes[hit].tolist(), strict=True))
            for i in mine:
                votes = Counter(-text for text, value in pairs if value in own[i])
                best[i] = max([best.get(i, (0, 0)), *((count, text) for text, count in votes.items())])
    return {i: -text for i, (_, text) in best.items()}


def warning(found: Overlap) -> str | None:
    """What a reader must know about two pools that share texts, in counts only; None where they share none."""
    if not found.exact and not found.near:
        return None
    return (
        f"The two pools overlap. Of {found.n_right:,} texts in the second, found word for word among "
        f"{found.n_left:,} in the first: {found.exact:,}; sharing much of their wording with them: {found.near:,}. "
        "Such texts belong to both sides, so the measured leakage is wrong, most often too low. Remove the duplicates, "
        "or divide the data with leakmeter split."
    )


def require_distinct(members: Sequence[str], nonmembers: Sequence[str]) -> None:
    """Refuse pools of which one holds no text that the other lacks: nothing could tell them apart."""
    inside, outside = {text.strip() for text in members}, {text.strip() for text in nonmembers}
    if not inside or not outside or not (inside <= outside or outside <= inside):
        return
    if inside == outside:
        what = "The members and the non-members are the same texts"
    elif outside < inside:
        what = "Every non-member is also a member"
    else:
        what = "Every member is also a non-member"
    raise BadInput(
        f"{what} ({len(members):,} members, {len(nonmembers):,} non-members), so there is nothing to tell apart. "
        "Non-members are texts the model was not trained on: give a hold-out file that shares no text with the "
        "training file."
    )
