"""Continuations are those of transformers' generate, and do not depend on what else is in the batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from leakmeter.core.errors import ModelFailed
from leakmeter.core.keys import generator
from leakmeter.core.question import Completion, Decoding
from leakmeter.models import loading
from leakmeter.models.causal import Causal, CausalAnswerer
from leakmeter.models.noise import draw_key, uniform

from .conftest import CORPUS, SHAPES

Folder = Callable[..., Path]

PROMPTS = ("Ada", "The email address of Bruno Keller is ", "", "Grüße aus", "On Monday the committee met again; nobody")


def opened(path: Path, **settings: Any) -> CausalAnswerer:
    spec = Causal(path=path, device="cpu", **settings)
    return CausalAnswerer(spec, loading.load(spec.path, spec.dtype, spec.device))


def ask(answerer: CausalAnswerer, questions: Sequence[Completion]) -> pl.DataFrame:
    return pl.concat(list(answerer.answer(Completion, questions))).sort("q", "i")


def generate(answerer: CausalAnswerer, prompt: str, how: Decoding) -> list[tuple[list[int], float]]:
    """transformers' own generate, one prompt at a time: the new tokens, and the sum of their log-probabilities."""
    ids = answerer.tokens.encode([(prompt, "")])[0].ids
    model = answerer.network.model
    out = model.generate(
        torch.tensor([ids]),
        attention_mask=torch.ones(1, len(ids), dtype=torch.long),
        do_sample=False,
        num_beams=how.beams,
        num_return_sequences=how.returns,
        length_penalty=how.length_penalty,
        early_stopping=False,
        max_new_tokens=how.max_tokens,
        min_new_tokens=how.min_tokens,
    )
    found = []
    for row in out.tolist():
        new = row[len(ids) :]
        while new and new[-1] == answerer.tokens.pad_id:
            new.pop()
        with torch.no_grad():
            logp = model(torch.tensor([ids + new])).logits[0].log_softmax(-1)
        found.append((new, sum(float(logp[len(ids) - 1 + k, token]) for k, token in enumerate(new))))
    return found


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "how",
    [
        Decoding(max_tokens=12),
        Decoding(max_tokens=9, min_tokens=5),
        Decoding("beam", beams=2, max_tokens=8, returns=2),
        Decoding("beam", beams=5, max_tokens=10, returns=3, length_penalty=2.0, min_tokens=2),
        Decoding("beam", beams=4, max_tokens=12, returns=4, length_penalty=-0.5),
    ],
    ids=["greedy", "greedy-min", "beam-2", "beam-5-long", "beam-4-short"],
)
def test_greedy_and_beam_search_are_those_of_transformers(shape: str, how: Decoding, folder: Folder) -> None:
    answerer = opened(folder(shape))
    assert answerer.network.steps
    # Several tokens that end a text, so that many do.
    ends = [1, *range(10, 400, 5)]
    answerer.network.model.generation_config.eos_token_id = ends
    found = ask(answerer, [Completion(prompt, how) for prompt in PROMPTS])
    assert found.schema == pl.Schema(Completion.schema)
    ended = 0
    for q, prompt in enumerate(PROMPTS):
        rows = found.filter(pl.col("q") == q).to_dicts()
        expected = generate(answerer, prompt, how)
        assert len(rows) == len(expected) == how.returns
        before = answerer.tokens.encode([(prompt, "")])[0].ids
        for row, (ids, logprob) in zip(rows, expected, strict=True):
            finished = ids[-1] in ends
            ended += finished
            assert row["text"] == answerer.tokens.continuation(before, ids[:-1] if finished else ids)
            assert row["logprob"] == pytest.approx(logprob, abs=1e-3)
            assert row["n_tokens"] == len(ids)
            assert row["finished"] is finished
    assert ended, "where nothing ends, nothing is shown about endings"


@pytest.mark.parametrize("shape", SHAPES)
def test_a_batch_gives_what_each_prompt_gives_alone(shape: str, folder: Folder) -> None:
    answerer = opened(folder(shape))
    questions = [
        Completion(prompt, how)
        for prompt in PROMPTS
        for how in (
            Decoding(max_tokens=10),
            Decoding("beam", beams=3, max_tokens=8, returns=2),
            Decoding("sample", max_tokens=10, returns=3, seed=5, top_k=40, top_p=0.9, temperature=0.8),
        )
    ]
    whole = ask(answerer, questions)
    alone = [ask(answerer, [q]).with_columns(q=pl.lit(k, dtype=pl.UInt32)) for k, q in enumerate(questions)]
    for one, other in zip(whole.iter_rows(named=True), pl.concat(alone).iter_rows(named=True), strict=True):
        assert one | {"logprob": 0} == other | {"logprob": 0}
        assert one["logprob"] == pytest.approx(other["logprob"], abs=1e-3)
    small = ask(opened(folder(shape), token_budget=4), questions)
    assert small.drop("logprob").equals(whole.drop("logprob"))
    assert ask(answerer, questions).equals(whole)

    # Without a cache, as for architectures that cannot be padded on the left.
    answerer.network.steps = False
    plain = ask(answerer, questions)
    assert plain.drop("logprob").equals(whole.drop("logprob"))
    assert np.abs((plain["logprob"] - whole["logprob"]).to_numpy()).max() <= 1e-3


def test_draws_follow_the_models_distribution(folder: Folder) -> None:
    """The share of each first token among 4,000 draws is its probability, tempered and cut to the top 5."""
    answerer = opened(folder("llama"))
    how = Decoding("sample", max_tokens=1, returns=4000, temperature=0.7, top_k=5)
    found = ask(answerer, [Completion("Ada", how)])
    with torch.no_grad():
        ids = answerer.tokens.encode([("Ada", "")])[0].ids
        logits = answerer.network.model(torch.tensor([ids])).logits[0, -1]
    best = logits.topk(5)
    expected = dict(
        zip(
            (answerer.tokens.continuation(ids, [i]) for i in best.indices.tolist()),
            (best.values / 0.7).softmax(-1).tolist(),
            strict=True,
        )
    )
    counted = Counter(found["text"].to_list())
    assert set(counted) <= set(expected)
    for text, share in expected.items():
        # Five standard errors.
        assert abs(counted[text] / 4000 - share) <= 5 * (share * (1 - share) / 4000) ** 0.5
    # The log-probability is the model's own, not the tempered one.
    logp = dict(zip(expected, logits.log_softmax(-1)[best.indices].tolist(), strict=True))
    for row in found.head(20).iter_rows(named=True):
        assert row["logprob"] == pytest.approx(logp[row["text"]], abs=1e-4)


def test_top_p_keeps_the_smallest_set_that_reaches_p(folder: Folder) -> None:
    answerer = opened(folder("gpt2"))
    how = Decoding("sample", max_tokens=1, returns=1500, top_p=0.3)
    drawn = set(ask(answerer, [Completion("Ada", how)])["text"])
    ids = answerer.tokens.encode([("Ada", "")])[0].ids
    with torch.no_grad():
        p, order = answerer.network.model(torch.tensor([ids])).logits[0, -1].softmax(-1).sort(descending=True)
    size = int((p.cumsum(-1) < 0.3).sum()) + 1
    assert drawn == {answerer.tokens.continuation(ids, [i]) for i in order[:size].tolist()}


def test_seeds_and_draws_differ_and_repeat(folder: Folder) -> None:
    answerer = opened(folder("opt"))
    one, other, again = (
        ask(answerer, [Completion("The", Decoding("sample", max_tokens=12, returns=2, seed=seed))])
        for seed in (1, 2, 1)
    )
    assert one.equals(again)
    assert not one["text"].equals(other["text"])
    assert one["text"][0] != one["text"][1]


def test_noise_is_uniform_and_independent() -> None:
    keys = torch.tensor([draw_key(0, b"question", draw) for draw in range(20)])[:, None]
    tokens = torch.arange(5000)[None]
    numbers = uniform(keys, 3, tokens).numpy()
    assert 0 < numbers.min() < numbers.max() < 1
    counts = np.histogram(numbers, bins=50, range=(0, 1))[0]
    # Chi-squared with 49 degrees of freedom: below 110 but for one time in a million.
    assert ((counts - 2000) ** 2 / 2000).sum() < 110
    assert abs(np.corrcoef(numbers[:, :-1].ravel(), numbers[:, 1:].ravel())[0, 1]) < 0.02
    assert abs(np.corrcoef(numbers[0], numbers[1])[0, 1]) < 0.07
    assert (uniform(keys, 4, tokens).numpy() != numbers).all()


@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
def test_a_stop_string_ends_the_text_before_it(method: str, folder: Folder) -> None:
    answerer = opened(folder("llama"))
    how = {"beams": 2} if method == "beam" else {}
    free = ask(answerer, [Completion("Ada", Decoding(method, max_tokens=12, **how))])["text"][0]
    stop = free[4:6]
    row = ask(answerer, [Completion("Ada", Decoding(method, max_tokens=12, stop=(stop,), **how))]).row(0, named=True)
    assert stop not in row["text"]
    if method == "greedy":  # another beam may win once the first is cut short; another question draws other noise
        assert row["text"] == free[: free.index(stop)]
        assert row["finished"]
        assert row["n_tokens"] < 12


def test_a_prompt_longer_than_the_window_is_cut_on_the_left(folder: Folder) -> None:
    answerer = opened(folder("gpt2", positions=64))
    long, how = " ".join(CORPUS), Decoding(max_tokens=10)
    rows = ask(answerer, [Completion(long, how), Completion("Ada", how)]).to_dicts()
    assert [row["truncated"] for row in rows] == [True, False]
    ids = answerer.tokens.encode([(long, "")])[0].ids
    model = answerer.network.model
    kept = torch.tensor([[ids[0], *ids[-53:]]])
    new = model.generate(kept, attention_mask=torch.ones_like(kept), do_sample=False, max_new_tokens=10)[
        0, 54:
    ].tolist()
    text = new[: new.index(1)] if 1 in new else new
    assert rows[0]["text"] == answerer.tokens.continuation(ids, text)


def test_nan_while_generating_fails_with_a_paragraph(folder: Folder) -> None:
    answerer = opened(folder("llama"))
    answerer.network.model.model.norm.weight[3] = float("nan")
    with pytest.raises(ModelFailed, match="NaN"):
        ask(answerer, [Completion("Ada", Decoding(max_tokens=3))])


def test_greedy_is_the_likeliest_token_each_time(folder: Folder) -> None:
    """From the definition, without a cache, on prompts of many lengths in one batch."""
    answerer = opened(folder("opt"))
    rng = generator(3, "prompts")
    prompts = [" ".join(rng.choice(CORPUS[0].split(), rng.integers(1, 15))) for _ in range(20)]
    found = ask(answerer, [Completion(prompt, Decoding(max_tokens=6)) for prompt in prompts])
    for prompt, row in zip(prompts, found.iter_rows(named=True), strict=True):
        ids = answerer.tokens.encode([(prompt, "")])[0].ids
        new: list[int] = []
        while len(new) < 6 and 1 not in new:
            with torch.no_grad():
                new.append(int(answerer.network.model(torch.tensor([ids + new])).logits[0, -1].argmax()))
        assert row["text"] == answerer.tokens.continuation(ids, [i for i in new if i != 1])
