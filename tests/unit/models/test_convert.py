"""Older checkpoints become safetensors, and a malicious one does nothing."""

from __future__ import annotations

import json
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from leakmeter.core.errors import BadInput
from leakmeter.models import loading
from leakmeter.models.convert import convert

Folder = Callable[..., Path]


@pytest.fixture
def old(folder: Folder, tmp_path: Path) -> Path:
    """A model folder without its safetensors."""
    made = tmp_path / "old"
    shutil.copytree(folder("gpt2"), made)
    (made / "model.safetensors").unlink()
    return made


def same(out: Path, folder: Folder) -> bool:
    probe = torch.arange(3, 30)[None]
    one, other = (loading.load(path, device="cpu").model for path in (out, folder("gpt2")))
    with torch.no_grad():
        return torch.equal(one(probe).logits, other(probe).logits)


def test_a_pickled_checkpoint_with_tied_weights_becomes_safetensors(old: Path, folder: Folder, tmp_path: Path) -> None:
    weights = dict(loading.load(folder("gpt2"), device="cpu").model.state_dict())
    assert weights["lm_head.weight"].data_ptr() == weights["transformer.wte.weight"].data_ptr()
    torch.save(weights, old / "pytorch_model.bin")
    convert(old, tmp_path / "new")
    assert same(tmp_path / "new", folder)
    assert not list((tmp_path / "new").glob("*.bin"))
    with pytest.raises(BadInput, match="exists already"):
        convert(old, tmp_path / "new")


def test_shards_become_shards(old: Path, folder: Folder, tmp_path: Path) -> None:
    weights = dict(loading.load(folder("gpt2"), device="cpu").model.state_dict())
    names = sorted(weights)
    parts = {"pytorch_model-1.bin": names[::2], "pytorch_model-2.bin": names[1::2]}
    for file, held in parts.items():
        torch.save({name: weights[name] for name in held}, old / file)
    index = {"metadata": {}, "weight_map": {name: file for file, held in parts.items() for name in held}}
    (old / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    convert(old, tmp_path / "new")
    assert same(tmp_path / "new", folder)
    assert len(list((tmp_path / "new").glob("model-0000?-of-00002.safetensors"))) == 2

    (old / "pytorch_model-2.bin").unlink()
    with pytest.raises(BadInput, match="missing"):
        convert(old, tmp_path / "newer")


class Malicious:
    """Creates a file when it is unpickled."""

    def __init__(self, victim: Path) -> None:
        self.victim = victim

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (str(self.victim), "w")


@pytest.mark.parametrize("zipped", [False, True])
def test_a_malicious_pickle_is_refused_and_runs_nothing(old: Path, tmp_path: Path, zipped: bool) -> None:
    victim = tmp_path / "victim"
    bomb = pickle.dumps({"weight": Malicious(victim)})
    if zipped:
        torch.save({"weight": torch.ones(2)}, old / "harmless.bin")
        with zipfile.ZipFile(old / "harmless.bin") as source, zipfile.ZipFile(old / "pytorch_model.bin", "w") as target:
            for name in source.namelist():
                target.writestr(name, bomb if name.endswith("data.pkl") else source.read(name))
    else:
        (old / "pytorch_model.bin").write_bytes(bomb)
    with pytest.raises(BadInput, match="Nothing in it was run"):
        convert(old, tmp_path / "new")
    assert not victim.exists()
    assert not (tmp_path / "new").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["old"]

    # The same bytes would have done it, opened the usual way.
    pickle.loads(bomb)["weight"].close()
    assert victim.exists()


def test_what_is_no_pickled_checkpoint_is_refused(old: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no pickled weights"):
        convert(old, tmp_path / "new")
    with pytest.raises(BadInput, match="no folder"):
        convert(tmp_path / "nowhere", tmp_path / "new")
    torch.save([torch.ones(2)], old / "pytorch_model.bin")
    with pytest.raises(BadInput, match="table of tensors"):
        convert(old, tmp_path / "new")
