"""Convert: an older checkpoint, pickled by torch, as safetensors.

A pickle can run any program when it is opened. It is read with torch's `weights_only` reader, which knows tensors and
refuses everything else, and in a process of its own, so that not even a crash of the reader reaches the caller.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from leakmeter.core.errors import BadInput

_NAMES = {"pytorch_model.bin": "model.safetensors", "adapter_model.bin": "adapter_model.safetensors"}
_INDEX = "pytorch_model.bin.index.json"
_BESIDE = ("*.json", "*.txt", "*.model", "*.jinja", "*.md", "LICENSE*")
"""What a model folder holds besides weights: configuration, tokeniser, papers."""


def convert(folder: Path, out: Path) -> None:
    """Write a model folder anew, with its pickled weights as safetensors. `out` must not exist yet."""
    shards = _shards(folder)
    if out.exists():
        raise BadInput(f"{out} exists already. Name a folder that does not, or remove it first.")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as aside:
        made = Path(aside) / "model"
        made.mkdir()
        for old, new in shards.items():
            _convert_apart(folder / old, made / new)
        for pattern in _BESIDE:
            for file in folder.glob(pattern):
                if file.name != _INDEX:
                    shutil.copyfile(file, made / file.name)
        if (folder / _INDEX).exists():
            _write_index(folder, made, shards)
        made.rename(out)


def _shards(folder: Path) -> dict[str, str]:
    """The pickled files of a folder, each with the name of its successor."""
    if not folder.is_dir():
        raise BadInput(f"There is no folder {folder} to convert.")
    if (folder / _INDEX).exists():
        try:
            files = sorted(set(json.loads((folder / _INDEX).read_text(encoding="utf-8"))["weight_map"].values()))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadInput(f"{folder / _INDEX} is not an index of weights: {error!r}") from error
        absent = [name for name in files if Path(name).name != name or not (folder / name).is_file()]
        if absent:
            raise BadInput(f"{folder / _INDEX} names {', '.join(absent)}, which is missing. Copy the whole folder.")
        return {name: f"model-{n:05d}-of-{len(files):05d}.safetensors" for n, name in enumerate(files, 1)}
    found = {old: new for old, new in _NAMES.items() if (folder / old).is_file()}
    if not found:
        raise BadInput(
            f"{folder} holds no pickled weights to convert (pytorch_model.bin, its shards, or adapter_model.bin)."
        )
    return found


def _write_index(folder: Path, made: Path, shards: dict[str, str]) -> None:
    index = json.loads((folder / _INDEX).read_text(encoding="utf-8"))
    index["weight_map"] = {name: shards[file] for name, file in index["weight_map"].items()}
    text = json.dumps(index, indent=2, sort_keys=True)
    (made / "model.safetensors.index.json").write_text(text, encoding="utf-8")


def _convert_apart(pickled: Path, out: Path) -> None:
    command = [sys.executable, "-m", "leakmeter.models.convert", str(pickled.resolve()), str(out.resolve())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0 and out.exists():
        return
    said = (done.stderr.strip().splitlines() or [f"it ended with code {done.returncode}"])[-1]
    raise BadInput(
        f"{pickled} cannot be converted: it is damaged, or holds more than weights, which may be an attack on whoever "
        f"opens it. Nothing in it was run. The reader said: {said}"
    )


def _convert_here(pickled: Path, out: Path) -> None:
    """The process of its own: one pickled file to one safetensors file."""
    import torch
    from safetensors.torch import save_file

    held = torch.load(pickled, map_location="cpu", weights_only=True)
    if not isinstance(held, dict) or not all(isinstance(tensor, torch.Tensor) for tensor in held.values()):
        raise ValueError("it does not hold a table of tensors")
    save_file(_apart(held), out, metadata={"format": "pt"})


def _apart(tensors: dict[str, Any]) -> dict[str, Any]:
    """Tensors that own their memory: safetensors has no way to say that two of them are one (tied weights)."""
    seen: set[int] = set()
    made: dict[str, Any] = {}
    for name, tensor in tensors.items():
        place = tensor.untyped_storage().data_ptr()
        whole = tensor.is_contiguous() and tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes()
        made[name] = tensor if whole and place not in seen else tensor.contiguous().clone()
        seen.add(place)
    return made


if __name__ == "__main__":
    try:
        _convert_here(Path(sys.argv[1]), Path(sys.argv[2]))
    except Exception as error:  # whatever it is, one line of it goes to the caller
        first = (str(error).strip().splitlines() or [""])[0]
        sys.exit(f"{type(error).__name__}: {first}")
