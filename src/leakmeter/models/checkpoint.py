"""Checkpoints: a model and its tokeniser as a folder of safetensors and JSON that `loading.load` opens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leakmeter.models.loading import quietly


def save(model: Any, tokenizer: Any, out: Path) -> None:
    """Write weights, configuration and tokeniser; nothing in the folder is a pickle."""
    out.mkdir(parents=True, exist_ok=True)
    # transformers writes tied weights once and safetensors only.
    with quietly():
        model.save_pretrained(out)
        tokenizer.save_pretrained(out)
