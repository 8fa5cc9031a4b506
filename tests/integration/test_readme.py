"""The README's Python example runs as it stands, and says the same as the command line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from leakmeter.training.architecture import Architecture
from leakmeter.training.loop import Example, train
from leakmeter.training.recipe import Recipe
from tests.conftest import lines, write_jsonl

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model trained on the members, and its base trained on other lines."""
    small = Architecture(hidden=32, layers=1, heads=2, vocabulary=300, context=128)
    recipe = Recipe(epochs=2, learning_rate=3e-3)
    texts = {name: lines(40, seed) for seed, name in enumerate(("members", "nonmembers", "other"))}
    for name in ("members", "nonmembers"):
        write_jsonl(tmp_path / f"{name}.jsonl", texts[name], name)
    for name, learned in {"model": "members", "base": "other"}.items():
        made = train(
            recipe,
            small,
            [Example("", t) for t in texts[learned]],
            tmp_path / f"{name}-training",
            vocabulary=texts["other"],
        )
        (made.out / "epoch-2").rename(tmp_path / name)
    return tmp_path


def measured(path: Path) -> list[Any]:
    return json.loads(path.read_text())["results"]  # type: ignore[no-any-return]


def test_the_example_and_the_command_give_the_same_results(folder: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    environment = {**os.environ, "COLUMNS": "100"}
    ran = subprocess.run(
        [sys.executable, "-c", example], cwd=folder, capture_output=True, text=True, check=False, env=environment
    )
    assert ran.returncode == 0, ran.stderr
    assert "ratio" in ran.stdout
    command = [sys.executable, "-m", "leakmeter", "audit", "--target", "model", "--members", "members.jsonl"]
    command += ["--nonmembers", "nonmembers.jsonl", "--reference", "base", "--out", "runs/command", "--quiet"]
    subprocess.run(command, cwd=folder, check=True)
    assert measured(folder / "runs/mine/results.json") == measured(folder / "runs/command/results.json")
    low = next(
        r["low"] for r in measured(folder / "runs/mine/results.json") if (r["attack"], r["metric"]) == ("ratio", "auc")
    )
    assert str(low) in ran.stdout
