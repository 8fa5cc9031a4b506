"""The fast ways are taken only where an architecture allows them, and the answers are right where it does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
import transformers

from leakmeter.core.question import Completion, Decoding, Likelihood
from leakmeter.models.causal import Causal, CausalAnswerer
from leakmeter.models.loading import Loaded

from .conftest import tokenizer

SIZES = {
    "hidden_size": 48,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 12,
    "max_position_embeddings": 256,
    "initializer_range": 0.2,
    "vocab_size": 400,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
}


def made(name: str, **settings: Any) -> CausalAnswerer:
    """An open random model of an architecture transformers knows."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**(SIZES | settings))
    model = getattr(transformers, f"{name}ForCausalLM")(config).eval().requires_grad_(False)
    return CausalAnswerer(Causal(path="made"), Loaded(model, tokenizer(), "float32", "cpu"))


QUESTIONS = [
    Likelihood("Ada Marlow lives at ", ("12 Oak Street", "Oak Street and more of it, much more", "Köln", "12 Elm")),
    Likelihood("", ("On Monday the committee met again; nobody spoke for long, and the minutes were short. " * 3,)),
    Likelihood("a", ("b", "bc")),
]
PROMPTS = ("Ada Marlow lives", "On Monday the committee met again; nobody spoke for long", "a")


def worst(answerer: CausalAnswerer, questions: Sequence[Likelihood]) -> float:
    """The greatest difference to the plain way."""
    found = pl.concat(answerer.answer(Likelihood, questions)).sort("q", "i")["logprob"]
    encoded = answerer.tokens.encode([(q.context, text) for q in questions for text in q.texts])
    apart = []
    for logprob, (ids, start) in zip(found, encoded, strict=True):
        logp = answerer.network.model(torch.tensor([ids]), use_cache=False).logits[0].log_softmax(-1)
        expected = logp[range(start - 1, len(ids) - 1), ids[start:]].numpy()
        apart.append(np.abs(logprob.to_numpy() - expected).max())
    return float(max(apart))


def greedy(answerer: CausalAnswerer, prompt: str, count: int) -> str:
    ids = answerer.tokens.encode([(prompt, "")])[0].ids
    new: list[int] = []
    while len(new) < count and 1 not in new:
        new.append(int(answerer.network.model(torch.tensor([ids + new]), use_cache=False).logits[0, -1].argmax()))
    return answerer.tokens.continuation(ids, [i for i in new if i != 1])


@pytest.mark.parametrize(
    ("name", "settings", "ways"),
    [
        # (the output layer apart, trees of texts, steps from a cache)
        ("GPTNeoX", {}, (True, True, True)),
        ("Gemma2", {"final_logit_softcapping": 2.0, "sliding_window": 64}, (True, True, True)),
        ("Granite", {"logits_scaling": 8.0}, (True, True, True)),
        ("Mistral", {"sliding_window": 12}, (True, False, True)),  # narrower than the trial: plain rows
        ("Bloom", {"n_layer": 2, "n_head": 4}, (True, False, True)),  # ALiBi: positions cannot be given
        ("Mamba", {"state_size": 8}, (True, False, False)),  # recurrent
        ("GPTNeo", {"num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]], "window_size": 48},
         (True, True, True)),
        ("Mixtral", {"num_local_experts": 4}, (True, True, True)),
    ],
)  # fmt: skip
def test_every_architecture_is_scored_and_continued_as_by_itself(
    name: str, settings: dict[str, Any], ways: tuple[bool, bool, bool]
) -> None:
    answerer = made(name, **settings)
    network = answerer.network
    assert (network.shortcut, network.trees, network.steps) == ways
    assert worst(answerer, QUESTIONS) <= 1e-4
    completions = [Completion(prompt, Decoding(max_tokens=6)) for prompt in PROMPTS]
    found = pl.concat(answerer.answer(Completion, completions)).sort("q")["text"].to_list()
    assert found == [greedy(answerer, prompt, 6) for prompt in PROMPTS]


@pytest.mark.parametrize(("name", "settings"), [("Mistral", {"sliding_window": 48}), ("Llama", {})])
def test_a_tree_wider_than_a_sliding_window_is_scored_right(name: str, settings: dict[str, Any]) -> None:
    answerer = made(name, **settings)
    assert answerer.network.trees
    numbers = tuple(f"{n} Oak Street, Springfield" for n in range(60))
    assert worst(answerer, [Likelihood("Ada Marlow lives at ", numbers)]) <= 1e-4


def test_an_output_layer_that_does_more_is_left_to_the_model() -> None:
    class Louder(torch.nn.Module):
        """A model whose logits are not what its output layer gives."""

        def __init__(self, model: Any) -> None:
            super().__init__()
            self.inner = model

        def __getattr__(self, name: str) -> Any:
            return super().__getattr__(name) if name == "inner" else getattr(self.inner, name)

        def forward(self, **asked: Any) -> Any:
            out = self.inner(**asked)
            out.logits = out.logits * torch.linspace(0.5, 1.5, out.logits.shape[-1])
            return out

    plain = made("Llama")
    louder = Louder(plain.network.model)
    answerer = CausalAnswerer(Causal(path="made"), Loaded(louder, tokenizer(), "float32", "cpu"))
    assert not answerer.network.shortcut
    found = pl.concat(answerer.answer(Likelihood, QUESTIONS)).sort("q", "i")["logprob"]
    ids, start = answerer.tokens.encode([(QUESTIONS[0].context, QUESTIONS[0].texts[1])])[0]
    logp = louder(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
    expected = logp[range(start - 1, len(ids) - 1), ids[start:]].numpy()
    assert np.abs(found[1].to_numpy() - expected).max() <= 1e-4
    assert not torch.allclose(logp, plain.network.model(torch.tensor([ids])).logits[0].log_softmax(-1), atol=1e-2)
