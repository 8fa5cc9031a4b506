"""The registry: names → classes, looked up lazily, so that naming an attack imports no other attack.

Ours stand in the tables below; plug-ins add to them with entry points in the groups `leakmeter.attacks`,
`leakmeter.models`, `leakmeter.metrics`, `leakmeter.engines` and `leakmeter.records`.
"""

from __future__ import annotations

import difflib
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from leakmeter.core.errors import BadInput
from leakmeter.core.spec import Spec

TABLES: dict[str, dict[str, str]] = {
    "attacks": {
        "loss": "leakmeter.attacks.likelihood:Loss",
        "zlib": "leakmeter.attacks.likelihood:Zlib",
        "lowercase": "leakmeter.attacks.likelihood:Lowercase",
        "min_k": "leakmeter.attacks.likelihood:MinK",
        "min_k_plus": "leakmeter.attacks.likelihood:MinKPlus",
        "ratio": "leakmeter.attacks.reference:Ratio",
        "calibrated": "leakmeter.attacks.reference:Calibrated",
        "windows": "leakmeter.attacks.reference:Windows",
        "error_shift": "leakmeter.attacks.reference:ErrorShift",
        "bag_of_words": "leakmeter.attacks.blind:BagOfWords",
        "length": "leakmeter.attacks.blind:Length",
        "zlib_alone": "leakmeter.attacks.blind:ZlibAlone",
        "reference_alone": "leakmeter.attacks.blind:ReferenceAlone",
    },
    "models": {
        "causal": "leakmeter.models.causal:Causal",
        "ngram": "leakmeter.models.ngram:NGram",
        "trained": "leakmeter.audit.trained:Trained",
    },
    "metrics": {
        "auc": "leakmeter.metrics.auc:Auc",
        "rates": "leakmeter.metrics.rates:Rates",
        "net": "leakmeter.metrics.compare:Net",
        "power": "leakmeter.metrics.power:Power",
        "histogram": "leakmeter.metrics.shapes:Histogram",
    },
    "engines": {"local": "leakmeter.engines.local:Local"},
    "records": {
        "file": "leakmeter.records.files:File",
        "invented": "leakmeter.records.people:Invented",
    },
}


@cache
def _plugins(kind: str) -> dict[str, str]:
    return {point.name: point.value for point in entry_points(group=f"leakmeter.{kind}")}


def names(kind: str) -> list[str]:
    """Every name of a kind: ours first, then the plug-ins'."""
    if kind not in TABLES:
        raise BadInput(f"There is no kind '{kind}'. Kinds: {', '.join(TABLES)}.")
    return list(TABLES[kind]) + sorted(set(_plugins(kind)) - set(TABLES[kind]))


def find(kind: str, name: str) -> type[Spec]:
    """The class behind a name; a miss says what was probably meant."""
    where = TABLES[kind].get(name) or _plugins(kind).get(name)
    if where is None:
        known = names(kind)
        close = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean '{close[0]}'?" if close else ""
        raise BadInput(f"There is no '{name}' among {kind}.{hint} Known: {', '.join(known)}.")
    module, _, attribute = where.partition(":")
    try:
        found: type[Spec] = getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        raise BadInput(
            f"'{name}' needs the package '{error.name}', which is not installed. "
            "Install the extra it belongs to, for instance: pip install 'leakmeter[hf]'."
        ) from error
    return found


def build(kind: str, named: Any) -> Spec:
    """A spec from its config form: a name, a mapping with `type`, or the spec itself."""
    if isinstance(named, Spec):
        return named
    if isinstance(named, str):
        named = {"type": named}
    if not isinstance(named, dict) or not isinstance(named.get("type"), str):
        raise BadInput(f"One of {kind} should be a name or a mapping with 'type', got: {named!r}.")
    if not all(isinstance(key, str) for key in named):
        raise BadInput(f"'{named['type']}' among {kind}: the names of parameters should be words.")
    from pydantic import ValidationError

    cls = find(kind, named["type"])
    try:
        return cls(**named)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        known = ", ".join(name for name in cls.model_fields if name != "type")
        raise BadInput(f"'{named['type']}' among {kind}: {problems}. Its parameters: {known}.") from error
