"""Rows: what goes through a causal model to score texts: one text, one window of a long text, or a tree of texts.

The texts of one question share their context. As a tree of tokens in preorder each shared token is computed once:

    The phone number of Ada is ─┬─ 555-0143        row:       The phone … is │ 555-0143 │ 555-0199
                                └─ 555-0199        positions: 0 1 2 3 …      │ k k+1 …  │ k k+1 …

A token sees the tokens in whose subtree it stands, so every text is scored as if it stood alone. The last token of a
text is never in a row: nobody asks what comes after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leakmeter.models.tokens import Encoded

Ints = NDArray[np.int64]

_LARGEST_TREE = 1024
"""Attention to a tree costs its size squared; beyond this the prefix is better computed again."""


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


def rows(pieces: Sequence[Piece], window: Window, tree_limit: int) -> Iterator[Row]:
    """The rows that score the texts of one question. `tree_limit`: the most tokens in a tree, 0 for no trees."""
    shareable: list[Piece] = []
    for piece in pieces:
        if piece.encoded.start >= len(piece.encoded.ids):
            continue
        if tree_limit and len(pieces) > 1 and window.holds(piece.encoded):
            shareable.append(piece)
        else:
            yield from _windows(piece, window)
    for tree in _trees(shareable, tree_limit):
        apart = sum(len(piece.encoded.ids) - 1 for piece in tree.pieces)
        # Little in common: plain rows, whose attention is cheaper.
        if len(tree.ids) > 0.9 * apart:
            for piece in tree.pieces:
                yield from _windows(piece, window)
        else:
            yield tree.row()


def largest_tree(pieces: Sequence[Piece], budget: int, reach: int | None = None) -> int:
    """How many tokens a tree of these texts may have; 0 where they should be no tree.

    `reach` is how far back the layers look that do not see everything. In a tree they would see other tokens than in a
    text, unless it is small enough for them to see all of it.
    """
    longest = max(len(piece.encoded.ids) for piece in pieces)
    largest = max(2 * longest, min(budget, _LARGEST_TREE))
    if reach is None:
        return largest
    return min(largest, reach) if longest <= reach else 0


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


class _Tree:
    """Texts merged into a tree of tokens in preorder; they come sorted, so each shares a prefix with the last."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.ids: list[int] = []
        self._ends: list[int] = []
        self._depths: list[int] = []
        self._path: list[int] = []
        self._asked: list[tuple[Ints, Ints, Ints]] = []

    def shares(self, ids: Sequence[int]) -> int:
        """How many tokens of a text, its last aside, are the last text's too."""
        most = min(len(self._path), len(ids) - 1)
        return next((depth for depth in range(most) if self.ids[self._path[depth]] != ids[depth]), most)

    def add(self, piece: Piece, shared: int) -> None:
        ids, start = piece.encoded
        size, fresh = len(self.ids), len(ids) - 1 - shared
        for place in self._path[shared:]:
            self._ends[place] = size
        self._path[shared:] = range(size, size + fresh)
        self.ids.extend(ids[shared:-1])
        self._depths.extend(range(shared, len(ids) - 1))
        self._ends.extend([-1] * fresh)
        self.pieces.append(piece)
        target = np.asarray(ids[start:], dtype=np.int64)
        source = np.asarray(self._path[start - 1 :], dtype=np.int64)
        self._asked.append((source, target, piece.slot + np.arange(len(target))))

    def row(self) -> Row:
        ends = np.asarray(self._ends, dtype=np.int64)
        ends[ends < 0] = len(ends)
        source, target, slot = (np.concatenate(part) for part in zip(*self._asked, strict=True))
        return Row(np.asarray(self.ids, dtype=np.int64), source, target, slot, np.asarray(self._depths), ends)


def _trees(pieces: Sequence[Piece], limit: int) -> Iterator[_Tree]:
    tree = _Tree()
    for piece in sorted(pieces, key=lambda piece: (piece.encoded.ids, piece.slot)):
        shared = tree.shares(piece.encoded.ids)
        if tree.pieces and len(tree.ids) + len(piece.encoded.ids) - 1 - shared > limit:
            yield tree
            tree, shared = _Tree(), 0
        tree.add(piece, shared)
    if tree.pieces:
        yield tree
