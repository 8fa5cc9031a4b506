"""A run killed at any moment and continued gives the same bytes as one that was left alone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.conftest import lines

KILLS = int(os.environ.get("LEAKMETER_KILLS", "6"))
"""A build kills a few times; LEAKMETER_KILLS=20 is the whole test."""


def command(config: Path, out: Path) -> list[str]:
    return [sys.executable, "-m", "leakmeter", "audit", str(config), "--out", str(out), "--quiet"]


def snapshot(run: Path) -> dict[str, bytes]:
    kept = {str(path.relative_to(run)): path.read_bytes() for path in sorted((run / "scores").rglob("*.parquet"))}
    document = json.loads((run / "results.json").read_text())
    document.pop("environment")
    return {**kept, "results.json": json.dumps(document).encode()}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A target trained within the run and a reference beside it, in many small blocks."""
    splits = {"train": (60, 0), "holdout": (60, 1), "reference": (60, 2), "population": (60, 3)}
    for name, (n, seed) in splits.items():
        (tmp_path / f"{name}.jsonl").write_text("\n".join(json.dumps({"text": line}) for line in lines(n, seed)))
    small = {"hidden": 32, "layers": 1, "heads": 2, "vocabulary": 300, "context": 128}

    def trained(split: str) -> dict[str, object]:
        on = {"split": [split]}
        recipe = {"epochs": 3, "learning_rate": 0.003}
        return {
            "type": "trained",
            "on": on,
            "architecture": small,
            "recipe": recipe,
            "vocabulary": {"split": ["population"]},
        }

    raw = {
        "records": [{"type": "file", "path": f"{name}.jsonl", "split": name} for name in splits],
        "models": {"target": trained("train"), "reference": trained("reference")},
        "block": 8,
    }
    path = tmp_path / "audit.yaml"
    path.write_text(yaml.safe_dump(raw))
    return path


@pytest.mark.slow
def test_killed_and_continued_is_the_same_as_uninterrupted(config: Path, tmp_path: Path) -> None:
    began = time.monotonic()
    subprocess.run(command(config, tmp_path / "whole"), check=True)
    whole_seconds = time.monotonic() - began
    expected = snapshot(tmp_path / "whole")

    rng = np.random.default_rng(0)
    run = tmp_path / "killed"
    kills = finished = 0
    while kills < KILLS:
        process = subprocess.Popen(command(config, run))
        try:
            process.wait(timeout=float(rng.uniform(0.2, 1.1)) * whole_seconds)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            kills += 1
            continue
        assert process.returncode == 0
        assert snapshot(run) == expected
        finished += 1
        shutil.rmtree(run)
    subprocess.run(command(config, run), check=True)
    assert snapshot(run) == expected
    assert not list(run.rglob("*-part"))
