"""The environment of a run: versions, hardware, seeds, and SHA-256 of weights and data."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from leakmeter.audit.config import AuditConfig
from leakmeter.audit.plan import Bound

PACKAGES = (
    "leakmeter",
    "torch",
    "transformers",
    "tokenizers",
    "safetensors",
    "numpy",
    "scipy",
    "polars",
    "scikit-learn",
)


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def hardware() -> dict[str, Any]:
    return {"machine": platform.machine(), "system": platform.system(), "cores": os.cpu_count()}


def describe(config: AuditConfig, bound: Sequence[Bound], counts: Mapping[str, int]) -> dict[str, Any]:
    """What a reader needs to trust or repeat the figures of one setting."""
    return {
        "versions": versions(),
        "hardware": hardware(),
        "seed": config.seed,
        "records": dict(counts),
        "models": {model.name: {"key": model.key, **model.spec.environment()} for model in bound},
        "data": {
            f"{i}: {getattr(source, 'split', source.type)}": source.digest()
            for i, source in enumerate(config.records)
            if hasattr(source, "digest")
        },
        "attacks": {attack.name: attack.about for attack in config.resolved_attacks()},
        "engine": config.engine.type,
    }
