"""What can be opened as a model, what is refused and how, and that adapters are merged as peft does it."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from leakmeter.core.errors import BadInput
from leakmeter.models import loading
from leakmeter.models.causal import Causal
from leakmeter.models.checkpoint import save

from .conftest import SHAPES, build, tokenizer

Folder = Callable[..., Path]
PROBE = torch.arange(3, 40)[None]


def logits(model: Any) -> Any:
    with torch.no_grad():
        return model(PROBE).logits


@pytest.mark.parametrize("shape", SHAPES)
def test_a_saved_model_opens_as_it_was(shape: str, folder: Folder) -> None:
    loaded = loading.load(folder(shape), device="cpu")
    assert (loaded.dtype, loaded.device) == ("float32", "cpu")
    assert torch.equal(logits(loaded.model), logits(build(shape, len(tokenizer()))))
    assert not any(parameter.requires_grad for parameter in loaded.model.parameters())
    assert not loaded.model.training
    written = {path.suffix for path in folder(shape).iterdir()}
    assert written <= {".json", ".safetensors", ".jinja", ".txt"}


def test_the_files_that_determine_a_model(folder: Folder) -> None:
    names = {path.name for path in loading.files(folder("gpt2"))}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= names
    assert loading.family(folder("gpt2")) == "causal"


def test_other_families_are_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["BertForMaskedLM"]}))
    with pytest.raises(BadInput, match="BertForMaskedLM"):
        loading.family(tmp_path)


def test_a_missing_path_and_a_folder_without_config_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no model at"):
        loading.load(tmp_path / "nowhere", device="cpu")
    with pytest.raises(BadInput, match=r"no config\.json"):
        loading.load(tmp_path, device="cpu")
    with pytest.raises(BadInput, match="no model file"):
        loading.load(tmp_path / "model.gguf", device="cpu")


def test_a_pickle_is_not_opened_but_the_way_out_is_said(folder: Folder, tmp_path: Path) -> None:
    old = tmp_path / "old"
    shutil.copytree(folder("gpt2"), old)
    (old / "model.safetensors").unlink()
    with pytest.raises(BadInput, match="no weights"):
        loading.load(old, device="cpu")
    (old / "pytorch_model.bin").write_bytes(b"whatever")
    with pytest.raises(BadInput, match="leakmeter convert"):
        loading.load(old, device="cpu")
    with pytest.raises(BadInput, match="leakmeter convert"):
        Causal(path=old).fingerprint()


def test_a_checkpoint_that_lacks_weights_is_refused(folder: Folder, tmp_path: Path) -> None:
    partial = tmp_path / "partial"
    shutil.copytree(folder("llama"), partial)
    weights = load_file(partial / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, partial / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(BadInput, match="lacks 1 of"):
        loading.load(partial, device="cpu")


def test_damaged_weights_and_a_missing_tokeniser_are_refused(folder: Folder, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(folder("llama"), damaged)
    (damaged / "tokenizer.json").unlink()
    (damaged / "tokenizer_config.json").unlink()
    with pytest.raises(BadInput, match="tokeniser"):
        loading.load(damaged, device="cpu")
    (damaged / "model.safetensors").write_bytes(b"not safetensors")
    with pytest.raises(BadInput, match="cannot be opened"):
        loading.load(damaged, device="cpu")


def test_a_gpu_that_is_not_there_is_refused(folder: Folder) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(BadInput, match="sees none"):
        loading.load(folder("gpt2"), device="cuda")


def test_the_key_is_the_content_and_the_precision(folder: Folder, tmp_path: Path) -> None:
    spec = Causal(path=folder("gpt2"), device="cpu")
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(folder("gpt2"), elsewhere)
    same = Causal(path=elsewhere, device="cpu", token_budget=17, dtype="float32")
    assert spec.fingerprint() == same.fingerprint()
    for other in ({"dtype": "bfloat16"}, {"bos": "never"}, {"max_length": 32}, {"stride": 7}):
        assert spec.fingerprint() != spec.model_copy(update=other).fingerprint()
    weights = load_file(elsewhere / "model.safetensors")
    weights["transformer.ln_f.bias"] += 1
    save_file(weights, elsewhere / "model.safetensors", metadata={"format": "pt"})
    assert spec.fingerprint() != Causal(path=elsewhere, device="cpu").fingerprint()
    assert "model.safetensors" in spec.environment()["files"]  # type: ignore[operator]
    assert str(folder("gpt2")) not in json.dumps(dict(spec.environment()))


def adapter(shape: str, base: Path, out: Path, **settings: Any) -> Any:
    """A LoRA adapter with random weights, saved by peft; the adapted model as peft runs it."""
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(5)
    model = loading.load(base, device="cpu").model
    targets = ["c_attn", "c_proj", "c_fc"] if shape == "gpt2" else ["q_proj", "v_proj", "down_proj"]
    options = {"r": 4, "lora_alpha": 10, "target_modules": targets, "task_type": "CAUSAL_LM"} | settings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adapted = get_peft_model(model, LoraConfig(fan_in_fan_out=shape == "gpt2", **options))
        for parameter in adapted.parameters():
            if parameter.requires_grad:
                parameter.data += 0.2 * torch.randn_like(parameter)
        adapted.save_pretrained(out)
    return adapted.eval()


CASES: list[tuple[str, dict[str, Any]]] = [
    ("gpt2", {}),
    ("gpt2", {"modules_to_save": ["ln_f"], "bias": "lora_only"}),
    ("llama", {}),
    ("llama", {"use_rslora": True, "rank_pattern": {"v_proj": 2}, "alpha_pattern": {r"layers\.1\..*q_proj": 3}}),
    ("llama", {"target_modules": ["embed_tokens", "up_proj"]}),
    ("llama", {"modules_to_save": ["lm_head", "embed_tokens"]}),
    ("opt", {"target_modules": ["fc1", "out_proj"], "bias": "all"}),
]


@pytest.mark.parametrize(("shape", "settings"), CASES)
def test_a_lora_adapter_is_merged_as_peft_runs_it(
    shape: str, settings: dict[str, Any], folder: Folder, tmp_path: Path
) -> None:
    base = folder(shape)
    expected = logits(adapter(shape, base, tmp_path / "adapter", **settings))
    loaded = loading.load(tmp_path / "adapter", device="cpu", base=base)
    assert (logits(loaded.model) - expected).abs().max() <= 1e-4 * expected.abs().max()
    assert (logits(loaded.model) - logits(loading.load(base, device="cpu").model)).abs().max() > 0.1

    # And it can be saved as an ordinary model.
    save(loaded.model, loaded.tokenizer, tmp_path / "merged")
    again = loading.load(tmp_path / "merged", device="cpu")
    assert torch.equal(logits(again.model), logits(loaded.model))


def test_an_adapters_base_is_found_where_its_config_says_and_is_the_default_reference(
    folder: Folder, tmp_path: Path
) -> None:
    shutil.copytree(folder("llama"), tmp_path / "base")
    adapter("llama", tmp_path / "base", tmp_path / "adapter")
    described = tmp_path / "adapter" / "adapter_config.json"
    settings = json.loads(described.read_text())
    for named in (str(tmp_path / "base"), "../base", "base"):
        described.write_text(json.dumps(settings | {"base_model_name_or_path": named}))
        loading.load(tmp_path / "adapter", device="cpu")
    spec = Causal(path=tmp_path / "adapter", device="cpu")
    reference = spec.default_reference()
    assert reference is not None
    assert reference.fingerprint() == Causal(path=folder("llama"), device="cpu").fingerprint() != spec.fingerprint()
    assert reference.default_reference() is None
    assert {"adapter_model.safetensors", "base/model.safetensors"} <= set(spec.environment()["files"])  # type: ignore[call-overload]
    assert loading.family(tmp_path / "adapter") == "causal"

    described.write_text(json.dumps(settings | {"base_model_name_or_path": "someone/some-model"}))
    with pytest.raises(BadInput, match=r"someone/some-model.*base: DIR"):
        loading.load(tmp_path / "adapter", device="cpu")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"use_dora": True}, "use_dora"),
        ({"peft_type": "IA3"}, "IA3"),
        ({"init_lora_weights": "pissa"}, "pissa"),
        ({"something_new": {"a": 1}}, "something_new"),
    ],
)
def test_what_is_more_than_plain_lora_is_refused(
    change: dict[str, Any], said: str, folder: Folder, tmp_path: Path
) -> None:
    adapter("llama", folder("llama"), tmp_path)
    described = tmp_path / "adapter_config.json"
    described.write_text(json.dumps(json.loads(described.read_text()) | change))
    with pytest.raises(BadInput, match=said):
        loading.load(tmp_path, device="cpu", base=folder("llama"))


def test_an_adapter_of_another_base_and_odd_tensors_are_refused(folder: Folder, tmp_path: Path) -> None:
    adapter("llama", folder("llama"), tmp_path)
    with pytest.raises(BadInput, match="right base"):
        loading.load(tmp_path, device="cpu", base=folder("gpt2"))
    weights = load_file(tmp_path / "adapter_model.safetensors")
    first = next(name for name in weights if "lora_A" in name)
    weights[first.replace("lora_A.weight", "lora_magnitude_vector")] = torch.ones(48)
    save_file(weights, tmp_path / "adapter_model.safetensors", metadata={"format": "pt"})
    with pytest.raises(BadInput, match="not plain LoRA"):
        loading.load(tmp_path, device="cpu", base=folder("llama"))
