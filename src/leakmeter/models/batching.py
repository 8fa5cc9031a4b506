"""Batching: which rows go through a model together, and what happens when they do not fit.

Rows are sorted by length and packed so that a batch holds at most a budget of tokens, padding included. Batches depend
on the rows of a block and the budget, and on nothing that ran before. Shared by all local models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from leakmeter.core.errors import ModelFailed

T = TypeVar("T")

SMALLEST_BUDGET = 16
"""A row longer than the budget goes alone, so halving on from here would change nothing."""


class Halved(NamedTuple):
    """Memory ran out under a budget, and the block was begun again with the half of it."""

    budget: int
    cause: str


def pack(lengths: Sequence[int], budget: int, seam: int | None = None) -> list[list[int]]:
    """Positions of rows in batches of at most `budget` padded tokens, the longest first.

    Rows up to `seam` and rows beyond it never share a batch: some models change their position encoding for a whole
    batch as soon as one row is longer than that.
    """
    batches: list[list[int]] = []
    widest = 0
    for i in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        crosses = seam is not None and widest > seam >= lengths[i]
        if not batches or crosses or (len(batches[-1]) + 1) * widest > budget:
            batches.append([])
            widest = lengths[i]
        batches[-1].append(i)
    return batches


def within_memory(work: Callable[[int], T], budget: int, events: list[Halved]) -> T:
    """Do a block of work with a token budget; when memory runs out, all of it again with half the budget.

    All of it, so that answers depend on the budget that held and not on where memory ran out.
    """
    while True:
        # The error holds the frames that hold the tensors: nothing is freed before it is gone.
        try:
            return work(budget)
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            cause = (str(error).strip().splitlines() or ["out of memory"])[0]
        if budget <= SMALLEST_BUDGET:
            raise ModelFailed(
                f"The model runs out of memory even with one text at a time ({cause}). Use a smaller precision "
                "(dtype: bfloat16), a shorter max_length, or a machine with more memory."
            )
        budget //= 2
        events.append(Halved(budget, cause))
        _release()


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on a GPU or on the host."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    said = str(error).lower()
    return any(words in said for words in ("out of memory", "can't allocate memory", "not enough memory"))


def _release() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
