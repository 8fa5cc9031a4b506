"""LoRA adapters, merged into their base by hand: W + (alpha / r) B A, in float32, for every adapted layer.

The adapter formats that do more than this (DoRA, PiSSA's changed base, activated LoRA, …) are refused by name: a merge
that leaves something out would score another model than the user's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from leakmeter.core.errors import BadInput

_HARMLESS = frozenset(
    {
        *("alpha_pattern", "auto_mapping", "base_model_name_or_path", "bias", "ensure_weight_tying", "exclude_modules"),
        *("fan_in_fan_out", "inference_mode", "init_lora_weights", "layers_pattern", "layers_to_transform"),
        *("lora_alpha", "lora_dropout", "megatron_core", "modules_to_save", "peft_type", "peft_version"),
        *("qalora_group_size", "r", "rank_pattern", "revision", "runtime_config", "target_modules", "task_type"),
        "use_rslora",
    }
)
"""Settings that are done justice to below, or that only matter while training."""
_INITIAL = (True, False, "gaussian", "eva", "orthogonal", None)
"""Ways to begin that leave the base as it was."""
_PREFIX = "base_model.model."


def config(adapter: Path) -> dict[str, Any]:
    """The adapter's own description of itself."""
    path = adapter / "adapter_config.json"
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} is not readable JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadInput(f"{path} should hold a JSON object.")
    return value


def merge(model: Any, adapter: Path) -> None:
    """Add an adapter's weights to the base model it was trained on, in place."""
    import torch

    settings = config(adapter)
    _check(settings, adapter)
    tensors = _tensors(adapter)
    pairs: dict[str, dict[str, Any]] = {}
    whole: dict[str, Any] = {}
    for name, tensor in tensors.items():
        path = name.removeprefix(_PREFIX)
        found = re.fullmatch(r"(.+)\.(?:lora_|lora_embedding_)([AB])(?:\.weight)?", path)
        if found:
            pairs.setdefault(found[1], {})[found[2]] = tensor
        elif "lora_" in path or "trainable_tokens" in path:
            raise BadInput(
                f"The adapter in {adapter} holds '{name}', which is not plain LoRA. Merge it with peft first."
            )
        else:
            whole[path.replace(".modules_to_save.", ".").replace(".base_layer.", ".")] = tensor
    with torch.no_grad():
        for path, tensor in whole.items():
            _replace(model, path, tensor, adapter)
        for path, pair in pairs.items():
            _add(model, path, pair, settings, adapter)


def scaling(settings: Mapping[str, Any], module: str, rank: int) -> float:
    """alpha / r, or alpha / √r for rank-stabilised LoRA; alpha may differ by module."""
    alpha = _for(settings.get("alpha_pattern") or {}, module, settings["lora_alpha"])
    return float(alpha / rank**0.5 if settings.get("use_rslora") else alpha / rank)


def _for(patterns: Mapping[str, Any], module: str, default: Any) -> Any:
    for pattern, value in patterns.items():
        if re.match(rf"(.*\.)?({pattern})$", module):
            return value
    return default


def _check(settings: Mapping[str, Any], adapter: Path) -> None:
    if settings.get("peft_type") != "LORA":
        raise BadInput(
            f"The adapter in {adapter} is of type {settings.get('peft_type')}; leakmeter merges LORA adapters only."
        )
    odd = sorted(name for name, value in settings.items() if name not in _HARMLESS and value)
    if settings.get("init_lora_weights") not in _INITIAL:
        odd.append(f"init_lora_weights: {settings['init_lora_weights']}")
    if odd:
        raise BadInput(
            f"The adapter in {adapter} uses {', '.join(odd)}, which is more than plain LoRA. Merge it into its base "
            "with peft (merge_and_unload, save_pretrained) and give the merged folder."
        )


def _tensors(adapter: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    path = adapter / "adapter_model.safetensors"
    if path.exists():
        return dict(load_file(path))
    if (adapter / "adapter_model.bin").exists():
        raise BadInput(
            f"{adapter} holds its weights only as a pickle, which can run any program when it is opened. "
            f"Turn it into safetensors first: leakmeter convert {adapter}"
        )
    raise BadInput(
        f"{adapter} has an adapter_config.json but no adapter_model.safetensors. Copy the whole adapter folder."
    )


def _module(model: Any, path: str, adapter: Path) -> Any:
    try:
        return model.get_submodule(path)
    except AttributeError as error:
        raise BadInput(
            f"The adapter in {adapter} adapts '{path}', which the base model lacks: is it the right base?"
        ) from error


def _add(model: Any, path: str, pair: Mapping[str, Any], settings: Mapping[str, Any], adapter: Path) -> None:
    module = _module(model, path, adapter)
    weight = getattr(module, "weight", None)
    if set(pair) != {"A", "B"} or weight is None or weight.dim() != 2 or pair["A"].dim() != 2:
        raise BadInput(
            f"The adapter in {adapter} adapts '{path}' in a way that is not plain LoRA. Merge it with peft first."
        )
    delta = pair["B"].float() @ pair["A"].float()
    # Conv1D (GPT-2) and embeddings keep their weights the other way round.
    if type(module).__name__ in ("Conv1D", "Embedding"):
        delta = delta.T
    if delta.shape != weight.shape:
        raise BadInput(
            f"The adapter in {adapter} changes '{path}' by {tuple(delta.shape)}, and the base has "
            f"{tuple(weight.shape)} there: is it the right base?"
        )
    merged = weight.float() + scaling(settings, path, pair["A"].shape[0]) * delta
    _put(model, module, "weight", merged.to(weight.dtype))


def _replace(model: Any, path: str, tensor: Any, adapter: Path) -> None:
    """A tensor the adapter saved whole: a layer of `modules_to_save`, a bias, a resized embedding."""
    parent, _, name = path.rpartition(".")
    module = _module(model, parent, adapter)
    old = getattr(module, name, None)
    if old is None or old.dim() != tensor.dim() or old.shape[1:] != tensor.shape[1:]:
        raise BadInput(
            f"The adapter in {adapter} brings '{path}' of shape {tuple(tensor.shape)}, for which the base has no place."
        )
    _put(model, module, name, tensor.to(old.dtype))


def _put(model: Any, module: Any, name: str, tensor: Any) -> None:
    """A new parameter in a module. A layer that shared the old one keeps it, as it did while the adapter trained."""
    import torch

    old = getattr(module, name)
    if _holders(model, old) > 1:
        model.config.tie_word_embeddings = False
    setattr(module, name, torch.nn.Parameter(tensor.contiguous(), requires_grad=False))
    rows = "num_embeddings" if isinstance(module, torch.nn.Embedding) else "out_features"
    if tensor.shape != old.shape and hasattr(module, rows):
        setattr(module, rows, tensor.shape[0])
        model.config.vocab_size = tensor.shape[0]


def _holders(model: Any, parameter: Any) -> int:
    modules: Iterable[Any] = model.modules()
    return sum(any(p is parameter for p in m.parameters(recurse=False)) for m in modules)
