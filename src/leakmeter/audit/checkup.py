"""A check-up of the installation: packages, devices, disk."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path
from typing import NamedTuple

from leakmeter.audit.environment import versions
from leakmeter.core.registry import names


class Finding(NamedTuple):
    what: str
    ok: bool
    detail: str


def checkup() -> list[Finding]:
    """Everything a user may wonder about when something does not work."""
    known = versions()
    findings = [Finding("leakmeter", True, f"{known['leakmeter']} on Python {known['python']}")]
    for package, purpose in {
        "torch": "running local models",
        "transformers": "running local models",
        "safetensors": "reading weights",
        "gguf": "reading .gguf files",
    }.items():
        there = importlib.util.find_spec(package) is not None
        detail = known.get(package, "installed") if there else f"for {purpose}: pip install 'leakmeter[hf]'"
        findings.append(Finding(package, there, detail))
    findings.append(_device())
    free = shutil.disk_usage(Path.cwd()).free / 1e9
    findings.append(Finding("disk", free > 1, f"{free:.0f} GB free here"))
    findings.append(Finding("cores", True, str(os.cpu_count())))
    findings += [
        Finding(kind, True, ", ".join(names(kind))) for kind in ("attacks", "models", "metrics", "engines", "records")
    ]
    return findings


def _device() -> Finding:
    if importlib.util.find_spec("torch") is None:
        return Finding("device", False, "no torch, so evaluate and report only")
    import torch

    if torch.cuda.is_available():
        return Finding(
            "device", True, f"{torch.cuda.get_device_name(0)}; answers in bfloat16 unless dtype says otherwise"
        )
    return Finding("device", True, f"CPU, {torch.get_num_threads()} threads; answers in float32")
