"""Which examples are held out, and how the others come together in batches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leakmeter.core.errors import BadInput
from leakmeter.training.examples import Example, batches, held_out
from leakmeter.training.recipe import Recipe


def test_the_asked_for_share_is_held_out_by_content_alone() -> None:
    examples = [Example("", f"text {i}") for i in range(200)]
    recipe = Recipe(validation=0.1)
    held = held_out(recipe, examples)
    assert sum(held) == 20
    by_text = dict(zip(examples, held, strict=True))
    assert held_out(recipe, examples[::-1]) == [by_text[e] for e in examples[::-1]]
    assert held_out(Recipe(validation=0.1, seed=1), examples) != held


def test_equal_examples_are_never_on_both_sides() -> None:
    examples = [Example("", f"text {i % 10}", repeats=1 + i // 10) for i in range(40)]
    held = held_out(Recipe(validation=0.3), examples)
    sides = {
        text: {h for e, h in zip(examples, held, strict=True) if e.text == text} for text in {e.text for e in examples}
    }
    assert all(len(side) == 1 for side in sides.values())
    assert sum(held) == 3 * 4


def test_validation_takes_at_least_one_example_and_never_all() -> None:
    assert sum(held_out(Recipe(validation=0.01), [Example("", "a"), Example("", "b")])) == 1
    with pytest.raises(BadInput, match="leaves none to train on"):
        held_out(Recipe(validation=0.5), [Example("", "a"), Example("", "a")])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(2, 300), st.integers(1, 5)), min_size=1, max_size=200), st.integers(1, 9))
def test_an_epoch_shows_every_example_as_often_as_it_repeats(shape: list[tuple[int, int]], size: int) -> None:
    lengths, repeats = (np.array(column) for column in zip(*shape, strict=True))
    made = batches(lengths, repeats, size, np.random.default_rng(0))
    assert np.bincount(np.concatenate(made), minlength=len(shape)).tolist() == repeats.tolist()
    assert len(made) == -(-repeats.sum() // size)
    assert all(1 <= len(batch) <= size for batch in made)


def test_batches_hold_similar_lengths_and_come_in_random_order() -> None:
    lengths = np.random.default_rng(1).integers(2, 500, 640)
    made = batches(lengths, np.ones(640, dtype=int), 16, np.random.default_rng(0))
    padding = sum(lengths[b].max() * len(b) for b in made) / lengths.sum() - 1
    assert padding < 0.05
    widths = [lengths[b].max() for b in made]
    assert widths != sorted(widths)
    again = batches(lengths, np.ones(640, dtype=int), 16, np.random.default_rng(1))
    assert [b.tolist() for b in made] != [b.tolist() for b in again]


def test_copies_of_a_text_are_spread_over_batches() -> None:
    repeats = np.ones(400, dtype=int)
    repeats[0] = 16
    made = batches(np.full(400, 50), repeats, 8, np.random.default_rng(0))
    assert max((batch == 0).sum() for batch in made) <= 4
