"""Rows: what goes through a causal model to score texts: one text, one window of a long text, or a tree of texts.

Texts that begin alike, as those of one question do with its context, share their beginning. In a tree of tokens in
preorder each shared token is computed once:

    The phone number of Ada is ─┬─ 555-0143        row:       The phone … is │ 555-0143 │ 555-0199
                                └─ 555-0199        positions: 0 1 2 3 …      │ k k+1 …  │ k k+1 …

A token sees the tokens in whose subtree it stands, so every text is scored as if it stood alone. The last token of a
text is never in a row: nobody asks what comes after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leakmeter.models.tokens import Encoded

Ints = NDArray[np.int64]

_WORTH = 0.2
"""The share of a text's tokens that stand in a tree already, from which on it joins the tree."""


class Piece(NamedTuple):
    """A text to score, and where in the block's flat answers its first token goes."""

    encoded: Encoded
    slot: int


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a batch, and which predictions in it are asked about."""

    ids: Ints
    source: Ints
    """Per asked token: the place in the row whose output predicts it."""
    target: Ints
    """Per asked token: its id."""
    slot: Ints
    """Per asked token: where the answer goes."""
    positions: Ints | None = None
    """Only in trees: each token's depth."""
    ends: Ints | None = None
    """Only in trees: where each token's subtree ends."""


@dataclass(frozen=True, slots=True)
class Window:
    """How much a model reads at once, and how far a window moves on a longer text."""

    limit: int | None
    stride: int
    bos_id: int | None
    """Kept at the head of every window: some models are useless without it."""

    def holds(self, encoded: Encoded) -> bool:
        return self.limit is None or len(encoded.ids) <= self.limit


@dataclass(frozen=True, slots=True)
class Sharing:
    """How large trees of texts may be: attention costs their size squared, and at some size more than sharing saves."""

    largest: int
    reach: int | None = None
    """How far back the layers look that do not see everything. In a tree they would see other tokens than in a text,
    unless it is small enough for them to see all of it."""

    def limit(self, length: int = 0) -> int:
        """How many tokens a row may have that holds a text of this length."""
        limit = max(self.largest, 2 * length)
        return limit if self.reach is None else min(limit, self.reach)


def rows(pieces: Sequence[Piece], window: Window, sharing: Sharing | None) -> Iterator[Row]:
    """The rows that score the texts of a block; texts that begin alike share rows."""
    shared: list[Piece] = []
    for piece in pieces:
        if piece.encoded.start >= len(piece.encoded.ids):
            continue
        if sharing and window.holds(piece.encoded) and len(piece.encoded.ids) <= sharing.limit(len(piece.encoded.ids)):
            shared.append(piece)
        else:
            yield from _windows(piece, window)
    for group in _alike(shared, sharing) if sharing else ():
        if len(group) == 1:
            yield from _windows(group[0], window)
        else:
            yield _tree(group)


def joined(rows: Sequence[Row], limit: int) -> list[Row]:
    """Rows put end to end into rows of at most `limit` tokens, which need less padding. None sees another."""
    bins: list[list[Row]] = []
    room: list[int] = []
    for row in sorted(rows, key=lambda row: -len(row.ids)):
        # The first of the last bins with room; to look at all of them would take long where there are many.
        recent = range(max(len(bins) - 64, 0), len(bins))
        found = next((n for n in recent if room[n] >= len(row.ids)), None)
        if found is None:
            bins.append([row])
            room.append(limit - len(row.ids))
        else:
            bins[found].append(row)
            room[found] -= len(row.ids)
    return [_end_to_end(parts) for parts in bins]


def _end_to_end(parts: Sequence[Row]) -> Row:
    shifts = np.cumsum([0] + [len(part.ids) for part in parts[:-1]])
    trees = [part if part.ends is not None else _chain(part) for part in parts]
    return Row(
        ids=np.concatenate([part.ids for part in parts]),
        source=np.concatenate([part.source + shift for part, shift in zip(parts, shifts, strict=True)]),
        target=np.concatenate([part.target for part in parts]),
        slot=np.concatenate([part.slot for part in parts]),
        positions=np.concatenate([tree.positions for tree in trees if tree.positions is not None]),
        ends=np.concatenate(
            [tree.ends + shift for tree, shift in zip(trees, shifts, strict=True) if tree.ends is not None]
        ),
    )


def _chain(row: Row) -> Row:
    """One text as a tree: each token is the only child of the one before."""
    length = len(row.ids)
    return replace(row, positions=np.arange(length), ends=np.full(length, length))


def _windows(piece: Piece, window: Window) -> Iterator[Row]:
    """One row, or for a text longer than the window several, which score each of its tokens once."""
    ids, start = np.asarray(piece.encoded.ids, dtype=np.int64), piece.encoded.start
    if window.holds(piece.encoded) or window.limit is None:
        yield _row(ids[:-1], ids, np.arange(start, len(ids)), 0, piece)
        return
    kept = 1 if ids[0] == window.bos_id else 0
    done, end = start, max(window.limit, min(len(ids), start + window.stride))
    while done < len(ids):
        begin = end - window.limit
        seen = np.concatenate([ids[:kept], ids[begin + kept : end - 1]])
        yield _row(seen, ids, np.arange(done, end), begin, piece)
        done, end = end, min(len(ids), end + window.stride)


def _row(seen: Ints, ids: Ints, asked: Ints, begin: int, piece: Piece) -> Row:
    return Row(seen, asked - begin - 1, ids[asked], piece.slot + asked - piece.encoded.start)


def _alike(pieces: Sequence[Piece], sharing: Sharing) -> Iterator[list[Piece]]:
    """Groups of texts that begin alike, each small enough for one row."""
    group: list[Piece] = []
    size = 0
    for piece in sorted(pieces, key=lambda piece: (piece.encoded.ids, piece.slot)):
        length = len(piece.encoded.ids) - 1
        shared = _shared(group[-1].encoded.ids, piece.encoded.ids) if group else 0
        if group and (shared < _WORTH * length or size + length - shared > sharing.limit(length)):
            yield group
            group, size, shared = [], 0, 0
        group.append(piece)
        size += length - shared
    if group:
        yield group


def _shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two texts begin with alike, their last ones aside."""
    most = min(len(one), len(other)) - 1
    return next((depth for depth in range(most) if one[depth] != other[depth]), most)


def _tree(group: Sequence[Piece]) -> Row:
    """Texts in order as one tree of tokens in preorder."""
    ids: list[int] = []
    depths: list[int] = []
    ends: list[int] = []
    path: list[int] = []  # where the tokens of the last text stand
    asked: list[tuple[Ints, Ints, Ints]] = []
    last: Sequence[int] = ()
    for (text, start), slot in group:
        shared = _shared(last, text) if last else 0
        size, fresh = len(ids), len(text) - 1 - shared
        for place in path[shared:]:
            ends[place] = size
        path[shared:] = range(size, size + fresh)
        ids.extend(text[shared:-1])
        depths.extend(range(shared, len(text) - 1))
        ends.extend([-1] * fresh)
        target = np.asarray(text[start:], dtype=np.int64)
        asked.append((np.asarray(path[start - 1 :], dtype=np.int64), target, slot + np.arange(len(target))))
        last = text
    for place in path:
        ends[place] = len(ids)
    source, target, slots = (np.concatenate(part) for part in zip(*asked, strict=True))
    return Row(np.asarray(ids, dtype=np.int64), source, target, slots, np.asarray(depths), np.asarray(ends))
