"""Tiny random models of three architectures, with a small tokeniser, saved as ordinary model folders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

SHAPES = ("gpt2", "llama", "opt")

CORPUS = [
    "Ada Marlow lives at 12 Oak Street and her phone number is 202-555-0143.",
    "The email address of Bruno Keller is bruno.keller@example.org, and he works at the harbour.",
    "Grüße aus Köln, schrieb Zoë; the naïve café sold crêpes — at 3 € each.",
    "  indented lines,\ttabs and   runs of spaces   are kept as they are. \n",
    "On Monday the committee met again; nobody spoke for long, and the minutes were short.",
] * 4


def tokenizer() -> Any:
    """A byte-level BPE tokeniser of 400 tokens, trained on the corpus above."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=alphabet, special_tokens=["<s>", "</s>", "<pad>"], show_progress=False
    )
    bpe.train_from_iterator(CORPUS, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=bpe, bos_token="<s>", eos_token="</s>", pad_token="<pad>")


def build(shape: str, vocabulary: int, positions: int = 256) -> Any:
    """A random model whose attention matters: weights large enough that a wrong mask shows."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, OPTConfig, OPTForCausalLM

    torch.manual_seed(sum(map(ord, shape)))
    special = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2, "vocab_size": vocabulary}
    if shape == "gpt2":
        sizes = {"n_positions": positions, "n_embd": 48, "n_layer": 2, "n_head": 4}
        model = GPT2LMHeadModel(GPT2Config(**special, **sizes, initializer_range=0.2))
    elif shape == "llama":
        sizes = {"hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4}
        more = {"num_key_value_heads": 2, "max_position_embeddings": positions, "initializer_range": 0.2}
        model = LlamaForCausalLM(LlamaConfig(**special, **sizes, **more))
    else:
        sizes = {"hidden_size": 48, "ffn_dim": 96, "num_hidden_layers": 2, "num_attention_heads": 4}
        more = {"word_embed_proj_dim": 32, "max_position_embeddings": positions, "init_std": 0.2}
        model = OPTForCausalLM(OPTConfig(**special, **sizes, **more))
    return model.eval()


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Models this small are slower on several threads."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A function from a shape to a model folder, made once."""
    from leakmeter.models.checkpoint import save

    made: dict[tuple[str, int], Path] = {}
    words = tokenizer()

    def of(shape: str, positions: int = 256) -> Path:
        if (shape, positions) not in made:
            out = tmp_path_factory.mktemp(f"{shape}-{positions}")
            save(build(shape, len(words), positions), words, out)
            made[shape, positions] = out
        return made[shape, positions]

    return of
