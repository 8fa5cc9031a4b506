"""Examples: what a model is trained on, which of them are held out, and how they are grouped into batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from leakmeter.core.errors import BadInput
from leakmeter.core.keys import digest
from leakmeter.core.result import Ints
from leakmeter.training.recipe import Recipe

_POOL = 64
"""Batches sorted by length together: more means less padding and less mixing."""
_STEP = 8
"""Lengths this near count as equal. Sorting by exact length would put the copies of a text into one batch."""


class Example(NamedTuple):
    """A text to learn after a context that is only read."""

    context: str
    text: str
    chat: bool = False
    """The context is a JSON list of messages and the text the reply, rendered with the model's chat template."""
    repeats: int = 1
    """How often an epoch shows it."""


def held_out(recipe: Recipe, examples: Sequence[Example]) -> list[bool]:
    """Whether each example is kept for validation: those with the smallest hashes of seed and content.

    Equal examples share their fate. The answer needs no training, so whoever asks "is it a member?" can ask this.
    """
    if recipe.validation == 0:
        return [False] * len(examples)
    keys = [digest(str(recipe.seed), "validation", e.context, e.text, "chat" if e.chat else "") for e in examples]
    distinct = sorted(set(keys))
    held = set(distinct[: max(1, round(recipe.validation * len(distinct)))])
    if len(held) == len(distinct):
        raise BadInput(
            f"Holding out {recipe.validation:.0%} of {len(distinct)} distinct examples for validation leaves none to "
            "train on. Give more examples or set validation to 0."
        )
    return [key in held for key in keys]


def batches(lengths: Ints, repeats: Ints, size: int, rng: np.random.Generator) -> list[Ints]:
    """One epoch: every example as often as it repeats, in batches of similar length, in random order."""
    order = np.repeat(np.arange(len(lengths)), repeats)
    rng.shuffle(order)
    made: list[Ints] = []
    for first in range(0, len(order), _POOL * size):
        pool = order[first : first + _POOL * size]
        pool = pool[np.argsort(-(-lengths[pool] // _STEP), kind="stable")]
        made += [pool[at : at + size] for at in range(0, len(pool), size)]
    return [made[i] for i in rng.permutation(len(made))]
