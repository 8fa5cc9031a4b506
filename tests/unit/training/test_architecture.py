"""Models from nothing: their tokenizer, their weights, their shapes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from pydantic import ValidationError

from leakmeter.core.errors import BadInput
from leakmeter.models import checkpoint
from leakmeter.models.loading import load
from leakmeter.training.architecture import Architecture

TEXTS = [f"Dear Mona, the number of locker {i} is 555-01{i:02}. Yours, Ulf" for i in range(60)]


def tiny(shape: str = "llama") -> Architecture:
    return Architecture(shape=shape, hidden=16, layers=1, heads=2, vocabulary=300, context=32)


def test_the_tokenizer_gives_every_text_back_and_knows_where_tokens_stand() -> None:
    tokenizer = tiny().tokenizer(TEXTS)
    assert len(tokenizer) == 300
    for text in ("Dear Mona,  two  spaces", "\n\ttabs — and 漢字 🙂", " leading"):
        encoded = tokenizer(text, return_offsets_mapping=True, add_special_tokens=False)
        assert tokenizer.decode(encoded["input_ids"], clean_up_tokenization_spaces=False) == text
        offsets = encoded["offset_mapping"]
        assert offsets[0][0] == 0
        assert offsets[-1][1] == len(text)
    assert tokenizer("a")["input_ids"][0] == tokenizer.bos_token_id
    assert len({tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id}) == 3


def test_the_same_texts_give_the_same_tokenizer(tmp_path: Path) -> None:
    for name in ("one", "two"):
        tiny().tokenizer(TEXTS).save_pretrained(tmp_path / name)
    assert (tmp_path / "one/tokenizer.json").read_bytes() == (tmp_path / "two/tokenizer.json").read_bytes()


def test_a_tokenizer_needs_text() -> None:
    with pytest.raises(BadInput, match="no text"):
        tiny().tokenizer([])


@pytest.mark.parametrize("shape", ["gpt2", "llama", "opt"])
def test_every_shape_is_built_saved_and_opened_again(shape: str, tmp_path: Path) -> None:
    architecture = tiny(shape)
    tokenizer = architecture.tokenizer(TEXTS)
    model = architecture.model(tokenizer, seed=0).eval()
    checkpoint.save(model, tokenizer, tmp_path / "m")
    opened = load(tmp_path / "m", "float32", "cpu")
    ids = torch.tensor([opened.tokenizer(TEXTS[0])["input_ids"][:32]])
    assert model.config.model_type == shape
    assert torch.equal(opened.model(ids).logits, model(ids).logits)
    # A whole context fits.
    assert model(torch.zeros(1, 32, dtype=torch.int64)).logits.shape == (1, 32, 300)


def test_weights_depend_on_the_seed_and_not_on_what_torch_drew_before() -> None:
    architecture = tiny()
    tokenizer = architecture.tokenizer(TEXTS)

    def weights(seed: int, before: int) -> torch.Tensor:
        torch.manual_seed(before)
        state = torch.get_rng_state()
        made = architecture.model(tokenizer, seed).get_input_embeddings().weight.detach()
        assert torch.equal(torch.get_rng_state(), state)
        return made

    assert torch.equal(weights(0, before=1), weights(0, before=2))
    assert not torch.equal(weights(0, before=1), weights(1, before=1))


@pytest.mark.parametrize("setting", [{"hidden": 30, "heads": 4}, {"hidden": 12, "heads": 4}, {"vocabulary": 100}])
def test_impossible_sizes_are_refused(setting: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        Architecture(**setting)
