"""`fit`: a training run described in a YAML file, on a data file; what `leakmeter train` calls."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakmeter.audit.config import read_yaml
from leakmeter.audit.run import Event, Listen
from leakmeter.audit.trained import Trained
from leakmeter.core.errors import BadInput
from leakmeter.core.record import Select
from leakmeter.core.registry import build, find
from leakmeter.records.files import File
from leakmeter.text.passages import plain_text

if TYPE_CHECKING:
    from leakmeter.training.loop import Trained as Made


def fit(path: Path, out: Path, listen: Listen) -> Made:
    """Train as the file says: `data`, then the fields of a model of type `trained` (base, architecture, recipe, …)."""
    raw = read_yaml(path)
    data = raw.pop("data", None)
    if not isinstance(data, str):
        raise BadInput(f"{path} names no training file. Add a line such as: data: train.jsonl.")
    find("models", "causal")  # says which extra to install where torch is missing
    from leakmeter.training.loop import train

    spec = build("models", {"type": "trained", "on": Select(), **raw})
    assert isinstance(spec, Trained)
    base = spec.architecture or spec.base
    if base is None:
        raise BadInput(f"{path} names no model to start from. Give `base:` (a folder) or `architecture:`.")
    records = File(path=path.parent / data).read().records

    def heard(progress: Any) -> None:
        listen(Event("training", progress.step, progress.steps, f"loss {progress.loss:.3f}"))

    texts = [plain_text(record.fields) for record in records] if spec.architecture else []
    return train(spec.recipe, base, spec.examples(records), out, vocabulary=texts, progress=heard)
