"""Batches depend on the rows and the budget; a block that does not fit begins again with half of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from leakmeter.core.errors import ModelFailed
from leakmeter.core.question import Completion, Decoding, Likelihood
from leakmeter.models import loading
from leakmeter.models.batching import pack, within_memory
from leakmeter.models.causal import Causal, CausalAnswerer

Folder = Callable[..., Path]


@given(st.lists(st.integers(1, 300), max_size=60), st.integers(1, 1000), st.none() | st.integers(1, 300))
def test_every_row_is_in_one_batch_within_the_budget(lengths: list[int], budget: int, seam: int | None) -> None:
    batches = pack(lengths, budget, seam)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        widest = max(lengths[i] for i in batch)
        assert len(batch) == 1 or len(batch) * widest <= budget
        assert seam is None or len({lengths[i] > seam for i in batch}) == 1
    assert pack(lengths, budget, seam) == batches


def opened(path: Path, **settings: Any) -> CausalAnswerer:
    spec = Causal(path=path, device="cpu", **settings)
    return CausalAnswerer(spec, loading.load(spec.path, spec.dtype, spec.device))


QUESTIONS = [Likelihood("", (f"{n} " + "Ada lives in Köln " * n,)) for n in range(1, 9)] + [
    Likelihood("The phone number is ", ("202-555-0143", "202-555-0199", "nothing"))
]


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), MemoryError()]
)
def test_on_out_of_memory_the_budget_halves_and_the_block_begins_again(folder: Folder, error: Exception) -> None:
    answerer = opened(folder("gpt2"), token_budget=400)
    states = answerer.network.states
    seen: list[int] = []

    def with_little_memory(ids: Any, *more: Any) -> Any:
        seen.append(ids.numel())
        # The second batch is the first that fails, so that something was done already.
        if ids.numel() > 120 and len(seen) >= 2:
            raise error
        return states(ids, *more)

    assert answerer.network.trees
    answerer.network.states = with_little_memory  # type: ignore[method-assign]
    found = pl.concat(answerer.answer(Likelihood, QUESTIONS))
    assert [event.budget for event in answerer.events] == [200, 100]
    # As if the budget had been 100 from the beginning, to the last bit.
    expected = pl.concat(opened(folder("gpt2"), token_budget=100).answer(Likelihood, QUESTIONS))
    assert found.equals(expected)
    # The next block begins with the whole budget again, so that it does not depend on this one.
    seen.clear()
    next(answerer.answer(Likelihood, QUESTIONS[:1]))
    assert answerer.events == []


def test_completions_halve_too(folder: Folder) -> None:
    answerer = opened(folder("llama"), token_budget=64)
    states = answerer.network.states
    assert answerer.network.steps

    def with_little_memory(ids: Any, *more: Any) -> Any:
        if len(ids) > 4:
            raise RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory")
        return states(ids, *more)

    questions = [Completion(f"Ada {n}", Decoding(max_tokens=5)) for n in range(12)]
    expected = pl.concat(answerer.answer(Completion, questions)).sort("q")
    answerer.network.states = with_little_memory  # type: ignore[method-assign]
    found = pl.concat(answerer.answer(Completion, questions)).sort("q")
    assert len(answerer.events) >= 1
    assert found.drop("logprob").equals(expected.drop("logprob"))


def test_a_model_that_never_fits_fails_with_a_paragraph() -> None:
    def never(budget: int) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(ModelFailed, match="one text at a time"):
        within_memory(never, 1024, [])


def test_other_errors_are_not_taken_for_it() -> None:
    def broken(budget: int) -> None:
        raise RuntimeError("shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="shapes"):
        within_memory(broken, 1024, [])
