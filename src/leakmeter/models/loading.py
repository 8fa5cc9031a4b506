"""Loading: a causal language model from a folder of safetensors, a LoRA adapter with its base, or a GGUF file.

Nothing here runs code that came with a model: no remote code, no pickles. A checkpoint that lacks some of its weights
is refused, where transformers would fill them with random numbers and go on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from leakmeter.core.errors import BadInput, ModelFailed
from leakmeter.models import lora
from leakmeter.models.batching import out_of_memory

_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
_TOKENIZER = (
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "chat_template.jinja",
    "chat_template.json",
)


class Loaded(NamedTuple):
    """A model in memory, ready to be asked."""

    model: Any
    tokenizer: Any
    dtype: str
    device: str


def load(path: Path, dtype: str = "auto", device: str = "auto", base: Path | None = None) -> Loaded:
    """Open a model folder, an adapter folder or a GGUF file. Precision "auto": bfloat16 on a GPU, float32 elsewhere."""
    dtype, device = resolve(dtype, device)
    with quietly():
        if is_adapter(path):
            foundation = base_of(path, base)
            model, tokenizer = _pretrained(foundation, dtype)
            lora.merge(model, path)
            if (path / "tokenizer_config.json").exists():
                tokenizer = _tokenizer(path)
        else:
            model, tokenizer = _pretrained(path, dtype)
        model = model.to(device).eval().requires_grad_(False)
    return Loaded(model, tokenizer, dtype, device)


def resolve(dtype: str, device: str) -> tuple[str, str]:
    """What "auto" means on this machine."""
    import torch

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise BadInput(
            f"device: {device} asks for a GPU, and torch sees none on this machine. Use device: auto or cpu."
        )
    if dtype == "auto":
        dtype = "bfloat16" if device.startswith("cuda") else "float32"
    return dtype, device


def files(path: Path, base: Path | None = None) -> list[Path]:
    """The files that determine a model: weights, configuration, tokeniser, and the same of an adapter's base."""
    if is_gguf(path):
        return [path]
    if is_adapter(path):
        own = [path / name for name in ("adapter_config.json", "adapter_model.safetensors", *_TOKENIZER)]
        return [file for file in own if file.exists()] + files(base_of(path, base))
    names = ("config.json", "generation_config.json", *_TOKENIZER)
    return [path / name for name in names if (path / name).exists()] + _weights(path)


def family(path: Path) -> str:
    """The kind of model in a folder, read from its config.json without loading it."""
    if is_gguf(path):
        return "causal"
    if is_adapter(path):
        task = lora.config(path).get("task_type")
        if task in (None, "CAUSAL_LM"):
            return "causal"
        raise BadInput(
            f"The adapter in {path} is for the task {task}; leakmeter reads adapters of causal language models."
        )
    _check_folder(path)
    named = _json(path / "config.json").get("architectures") or []
    if any(str(name).endswith(("ForCausalLM", "LMHeadModel")) for name in named):
        return "causal"
    what = f"the architecture {', '.join(map(str, named))}" if named else "no architecture"
    raise BadInput(
        f"{path / 'config.json'} names {what}. leakmeter knows causal language models: architectures whose name ends "
        "in ForCausalLM or LMHeadModel."
    )


def is_adapter(path: Path) -> bool:
    return (path / "adapter_config.json").exists()


def is_gguf(path: Path) -> bool:
    if path.suffix.lower() != ".gguf":
        return False
    if not path.is_file():
        raise BadInput(f"There is no model file {path}. Check the path.")
    return True


def base_of(adapter: Path, base: Path | None = None) -> Path:
    """The base an adapter belongs to: the one given, or the folder its own config names."""
    if base is not None:
        return base
    named = str(lora.config(adapter).get("base_model_name_or_path") or "")
    candidates = [Path(named), adapter / named, adapter.parent / named] if named else []
    for candidate in candidates:
        if (candidate / "config.json").exists() or (candidate.suffix.lower() == ".gguf" and candidate.is_file()):
            return candidate
    raise BadInput(
        f"The adapter in {adapter} belongs to the base model {named or '(not named)'}, which is not a folder on this "
        "machine. Say where it lies with base: DIR."
    )


def _pretrained(path: Path, dtype: str) -> tuple[Any, Any]:
    """A model and its tokeniser from a folder or a GGUF file, on the CPU."""
    import torch
    from transformers import AutoModelForCausalLM

    gguf = is_gguf(path)
    if not gguf:
        _check_folder(path)
        _weights(path)
        if (path / "config.json").exists() and family(path) != "causal":
            raise BadInput(f"{path} is not a causal language model.")
    where: dict[str, Any] = {"gguf_file": path.name} if gguf else {"use_safetensors": True}
    try:
        model, info = AutoModelForCausalLM.from_pretrained(
            path.parent if gguf else path,
            dtype=getattr(torch, dtype),
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
            **where,
        )
    except Exception as error:  # transformers, its quantisers and safetensors each have their own
        if out_of_memory(error):
            raise ModelFailed(f"The model in {path} does not fit into memory: {_first_line(error)}") from error
        raise BadInput(f"The model in {path} cannot be opened: {_first_line(error)}") from error
    missing = sorted(info["missing_keys"])
    if missing:
        raise BadInput(
            f"The checkpoint in {path} lacks {len(missing)} of the model's weights ({', '.join(missing[:3])}, …). "
            "Scores of a model with made-up weights would mean nothing. Save the whole model again."
        )
    if gguf:
        # Its weights are ordinary numbers now; without this transformers takes the model for a quantised one.
        model.hf_quantizer = None
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config
    return model, _tokenizer(path)


def _tokenizer(path: Path) -> Any:
    from transformers import AutoTokenizer

    gguf = is_gguf(path)
    try:
        return AutoTokenizer.from_pretrained(
            path.parent if gguf else path,
            local_files_only=True,
            trust_remote_code=False,
            **({"gguf_file": path.name} if gguf else {}),
        )
    except Exception as error:  # the same, and the tokenizers library raises bare exceptions
        raise BadInput(f"The tokeniser in {path} cannot be opened: {_first_line(error)}") from error


def _check_folder(path: Path) -> None:
    if not path.exists():
        raise BadInput(f"There is no model at {path}. leakmeter opens local folders; download the model first.")
    if not (path / "config.json").exists():
        raise BadInput(
            f"{path} has no config.json, so it is not a model folder. Expected: a folder with config.json and "
            "*.safetensors, an adapter folder with adapter_config.json, or a .gguf file."
        )


def _weights(path: Path) -> list[Path]:
    """The safetensors files of a model folder."""
    _check_folder(path)
    whole, index = path / "model.safetensors", path / "model.safetensors.index.json"
    if whole.exists():
        return [whole]
    if index.exists():
        shards = [path / name for name in sorted(set(_json(index).get("weight_map", {}).values()))]
        absent = [shard.name for shard in shards if not shard.exists()]
        if absent:
            raise BadInput(f"{index} names {', '.join(absent)}, which is missing. Copy the whole model folder.")
        return [index, *shards]
    if any(next(path.glob(pattern), None) for pattern in _PICKLES):
        raise BadInput(
            f"{path} holds its weights only as a pickle, which can run any program when it is opened. "
            f"Turn it into safetensors first: leakmeter convert {path}"
        )
    raise BadInput(f"{path} has a config.json but no weights (model.safetensors). Copy the whole model folder.")


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} is not readable JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadInput(f"{path} should hold a JSON object.")
    return value


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


@contextmanager
def quietly() -> Iterator[None]:
    """Without transformers' own progress bars, which would cut through ours."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
