"""What a causal model says about a text does not depend on how it was asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from leakmeter.core.errors import ModelFailed
from leakmeter.core.keys import generator
from leakmeter.core.question import Likelihood
from leakmeter.models import loading
from leakmeter.models.causal import Causal, CausalAnswerer
from leakmeter.models.tokens import Encoded

from .conftest import SHAPES

Folder = Callable[..., Path]
NUMBERS = ("logprob", "mean", "deviation")


def mixed(count: int) -> list[Likelihood]:
    """Questions of every kind: single texts, many texts, contexts, none, accents, merged boundaries, spaces."""
    rng = generator(7, "mixed questions")
    words = ["Ada", "Bruno", "Zoë", "lives", "in", "Köln", "at", "12", "Oak", "Street", "phone", "number", "is"]
    words += ["202-555-0143", "naïve", "café", "crêpes", "—", "€", "日本"]

    def some(low: int, high: int) -> str:
        return " ".join(rng.choice(words, rng.integers(low, high)))

    asked: list[Likelihood] = []
    for n in range(count):
        if n % 5 == 0:
            asked.append(Likelihood("", (some(1, 40),)))
        elif n % 5 == 1:
            asked.append(Likelihood(some(1, 30) + " ", (some(1, 12),)))  # a trailing space before the text
        elif n % 5 == 2:
            asked.append(Likelihood(some(1, 20), tuple(" " + some(1, 6) for _ in range(rng.integers(2, 7)))))
        elif n % 5 == 3:
            # The boundary lies within a word, so tokens merge across it, differently for every text.
            asked.append(Likelihood(some(1, 15) + " Stre", ("et", "ets and", "", "am " + some(1, 4), "et")))
        else:
            asked.append(Likelihood("", (some(1, 9), some(1, 9) + "  ", some(1, 9))))
    return asked


def opened(path: Path, **settings: Any) -> CausalAnswerer:
    spec = Causal(path=path, device="cpu", **settings)
    return CausalAnswerer(spec, loading.load(spec.path, spec.dtype, spec.device))


def ask(answerer: CausalAnswerer, questions: Sequence[Likelihood]) -> pl.DataFrame:
    frames = list(answerer.answer(Likelihood, questions))
    return pl.concat(frames).sort("q", "i")


def plain(answerer: CausalAnswerer, encoded: Encoded) -> dict[str, np.ndarray]:
    """The same from the definition: one text at a time, the whole softmax, in float64."""
    ids, start = encoded
    with torch.no_grad():
        logits = answerer.network.model(torch.tensor([ids])).logits[0, start - 1 : len(ids) - 1].double()
    logp = torch.log_softmax(logits, -1)
    p, target = logp.exp(), torch.tensor(ids[start:], dtype=torch.long)
    mean = (p * logp).sum(-1)
    return {
        "logprob": logp[torch.arange(len(target)), target].numpy(),
        "mean": mean.numpy(),
        "deviation": (p * (logp - mean[:, None]) ** 2).sum(-1).sqrt().numpy(),
        "first": (logits.argmax(-1) == target).numpy(),
    }


def assert_close(one: pl.DataFrame, other: pl.DataFrame, tolerance: float = 1e-4) -> None:
    assert one.select("q", "i", "n_tokens", "truncated", "tokens_digest").equals(
        other.select("q", "i", "n_tokens", "truncated", "tokens_digest")
    )
    for name in NUMBERS:
        apart = one[name].explode(empty_as_null=False).to_numpy() - other[name].explode(empty_as_null=False).to_numpy()
        assert np.abs(apart).max() <= tolerance, name


@pytest.mark.parametrize("shape", SHAPES)
def test_scores_are_those_of_a_plain_loop_whatever_the_budget_order_or_sharing(shape: str, folder: Folder) -> None:
    questions = mixed(500)
    answerer = opened(folder(shape))
    assert answerer.network.trees
    whole = ask(answerer, questions)
    assert whole.schema == pl.Schema(Likelihood.schema)
    assert whole.height == sum(len(question.texts) for question in questions)

    # Against the definition.
    encoded = answerer.tokens.encode([(question.context, text) for question in questions for text in question.texts])
    assert whole["n_tokens"].to_list() == [len(ids) - start for ids, start in encoded]
    expected = [plain(answerer, one) for one in encoded]
    for name in NUMBERS:
        flat = np.concatenate([one[name] for one in expected])
        assert np.abs(whole[name].explode(empty_as_null=False).to_numpy() - flat).max() <= 1e-4, name
    firsts = np.concatenate([one["first"] for one in expected])
    assert (whole["first"].explode(empty_as_null=False).to_numpy() == firsts).all()
    assert firsts.any()

    # Repeated: bit for bit.
    assert ask(answerer, questions).equals(whole)

    # Other budgets.
    for budget in (64, 300, 20_000):
        assert_close(ask(opened(folder(shape), token_budget=budget), questions), whole)

    # Another order.
    order = generator(1, "order").permutation(len(questions))
    shuffled = ask(answerer, [questions[k] for k in order])
    back = shuffled.with_columns(q=pl.Series(order[shuffled["q"].to_numpy()], dtype=pl.UInt32)).sort("q", "i")
    assert_close(back, whole)

    # Without sharing prompts.
    answerer.network.trees = False
    assert_close(ask(answerer, questions), whole)


def test_an_empty_text_has_no_tokens(folder: Folder) -> None:
    row = ask(opened(folder("gpt2")), [Likelihood("The phone ", ("", "number"))]).row(0, named=True)
    assert row["n_tokens"] == 0
    assert row["logprob"] == row["mean"] == row["deviation"] == row["first"] == []


def test_texts_longer_than_the_window_are_scored_in_windows_each_token_once(folder: Folder) -> None:
    answerer = opened(folder("llama"), max_length=32, stride=10)
    long = " ".join(f"Ada {n} lives" for n in range(40))
    questions = [Likelihood("", (long,)), Likelihood(long, (" at Oak Street", long)), Likelihood("", ("short",))]
    found = ask(answerer, questions)
    assert found["truncated"].to_list() == [True, True, True, False]

    encoded = answerer.tokens.encode([(q.context, text) for q in questions for text in q.texts])
    for row, (ids, start) in zip(found.iter_rows(named=True), encoded, strict=True):
        # From the definition: windows of 32 tokens that each begin with the beginning-of-sequence token and score at
        # most 10 new tokens after the first.
        expected: list[float] = []
        end = max(32, min(len(ids), start + 10)) if len(ids) > 32 else len(ids)
        done = start
        while done < len(ids):
            begin = max(end - 32, 0)
            seen = ids[begin:end] if begin == 0 else [ids[0], *ids[begin + 1 : end]]
            expected.extend(plain(answerer, Encoded(seen, done - begin))["logprob"])
            done, end = end, min(len(ids), end + 10)
        assert len(expected) == row["n_tokens"] == len(ids) - start
        assert np.abs(np.array(row["logprob"]) - expected).max() <= 1e-4


def test_the_models_own_length_is_the_window(folder: Folder) -> None:
    answerer = opened(folder("gpt2", positions=64))
    found = ask(answerer, [Likelihood("", ("Ada " * 200,))])
    assert found["truncated"].item()
    assert np.isfinite(found["logprob"].item().to_numpy()).all()


def test_a_model_that_gives_nan_fails_with_a_paragraph(folder: Folder) -> None:
    answerer = opened(folder("llama"))
    answerer.network.model.model.norm.weight[3] = float("nan")
    with pytest.raises(ModelFailed, match=r"NaN.*dtype: float32"):
        ask(answerer, mixed(5))


def test_tokens_never_used_do_not_spoil_the_moments(folder: Folder) -> None:
    """Some models give padding tokens of the vocabulary minus infinity."""
    answerer = opened(folder("gpt2"))
    whole = ask(answerer, mixed(5))
    logits = answerer.network.logits

    def with_unused(states: Any) -> Any:
        found = logits(states)
        return torch.cat([found, torch.full((len(found), 50), -torch.inf)], 1)

    answerer.network.logits = with_unused  # type: ignore[method-assign]
    assert_close(ask(answerer, mixed(5)), whole, 1e-5)


def test_in_bfloat16_a_token_may_move_by_a_tenth_but_not_on_average(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stated tolerance: batches of other shapes round differently, by at most 0.1 per token here, and without bias."""
    # Some virtual machines announce matrix units that they do not have; this way of multiplying does not ask.
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    questions = mixed(100)

    def scored(budget: int) -> pl.DataFrame:
        return ask(opened(folder("llama"), dtype="bfloat16", token_budget=budget), questions)

    one, other = scored(16), scored(4096)
    apart = (one["logprob"].explode(empty_as_null=False) - other["logprob"].explode(empty_as_null=False)).to_numpy()
    assert np.abs(apart).max() <= 0.1
    assert abs(apart.mean()) <= 2e-3
    assert scored(16).equals(one)


def test_the_tokens_digest_tells_scored_tokens_apart_and_nothing_else(folder: Folder) -> None:
    one, other, third, fourth = (
        ask(opened(folder(shape)), [Likelihood(context, (text,))])["tokens_digest"].item()
        for shape, context, text in (
            ("gpt2", "", "Ada lives"),
            ("llama", "In Köln, ", "Ada lives"),
            ("gpt2", "", "Ada lives"),
            ("gpt2", "", "Ada leaves"),
        )
    )
    assert one == other == third != fourth
