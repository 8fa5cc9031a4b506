"""The made-up document, and small results to build other documents from."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from leakmeter.core.result import Result


@pytest.fixture(scope="session")
def sample() -> ModuleType:
    spec = importlib.util.spec_from_file_location("report_sample", Path(__file__).parent / "sample.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def document(sample: ModuleType) -> dict[str, Any]:
    """As it comes out of results.json."""
    return json.loads(json.dumps(sample.document(), allow_nan=False))


@pytest.fixture(scope="session")
def page(document: dict[str, Any]) -> str:
    from leakmeter.report.page import render

    return render(document)


class Told:
    """Builds the results of a run from the few numbers a test is about."""

    def __init__(self) -> None:
        self.results: list[Result] = []

    def row(self, attack: str, auc: tuple[float, float, float], **more: Any) -> Told:
        """A signal with AUC (value, low, high), and further metrics as name=(value, low, high) or a value."""
        blind, where = more.pop("blind", False), {key: more.pop(key) for key in ("slice", "setting") if key in more}
        figures = {"auc": auc, "auc_simultaneous": more.pop("simultaneous", auc), **more.pop("rates", {}), **more}
        for metric, given in figures.items():
            value, low, high = given if isinstance(given, tuple) else (given, None, None)
            self.results.append(Result(attack, attack, metric, value, low, high, n=200, blind=blind, **where))
        return self

    def whole(self, metric: str, given: Any) -> Told:
        """A figure about the slice as a whole."""
        value, low, high = given if isinstance(given, tuple) else (given, None, None)
        self.results.append(Result("", "", metric, value, low, high, n=400))
        return self

    def document(self, **more: Any) -> dict[str, Any]:
        return {"leakmeter": "0.1.0", "results": [r.to_json() for r in self.results], "warnings": [], **more}


@pytest.fixture
def told() -> Told:
    return Told()
