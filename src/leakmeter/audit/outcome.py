"""Outcome: what a measuring verb returns. It prints well in a terminal and in a notebook."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leakmeter.core.errors import BadInput
from leakmeter.core.result import Result


@dataclass(frozen=True, repr=False)
class Outcome:
    """Results with their warnings and environment; `folder` is the run directory, where there is one."""

    document: Mapping[str, Any]
    """The content of results.json."""
    folder: Path | None = None
    _results: list[Result] = field(default_factory=list, compare=False)

    @property
    def results(self) -> list[Result]:
        if not self._results:
            self._results.extend(Result(**result) for result in self.document["results"])
        return self._results

    @property
    def warnings(self) -> list[str]:
        return list(self.document["warnings"])

    @property
    def report(self) -> Path | None:
        """The HTML report, where the run has a folder."""
        return self.folder / "report.html" if self.folder else None

    def find(
        self, attack: str, metric: str = "auc", setting: Mapping[str, object] | None = None, **where: object
    ) -> Result:
        """The one result of an attack and metric, in a slice (`repeats="8"`) and, in a sweep, of a setting."""
        found = [r for r in self.results if (r.attack, r.metric) == (attack, metric) and dict(r.slice) == where]
        if setting is not None:
            found = [r for r in found if dict(r.setting) == dict(setting)]
        if len(found) != 1:
            known = sorted({f"{r.attack} {r.metric}" for r in self.results})
            raise BadInput(f"There are {len(found)} results for {attack} {metric} {where or ''}. There are: {known}.")
        return found[0]

    def to_json(self) -> str:
        """results.json without the series that draw the charts, as `--json` prints it."""
        plain = [{key: value for key, value in r.items() if key != "series"} for r in self.document["results"]]
        return json.dumps({**self.document, "results": plain}, indent=1, ensure_ascii=False, allow_nan=False)

    def html(self) -> str:
        from leakmeter.report.page import render

        return render(self.document)

    def __repr__(self) -> str:
        from rich.console import Console

        from leakmeter.report.terminal import print_summary

        console = Console(file=io.StringIO(), width=100)
        print_summary(self.document, console)
        text: str = console.file.getvalue()  # type: ignore[attr-defined]
        return text.rstrip() + (f"\n\nReport: {self.report}" if self.report else "")

    def _repr_html_(self) -> str:
        from html import escape

        page = escape(self.html(), quote=True)
        return f'<iframe srcdoc="{page}" sandbox="" style="width:100%;height:48em;border:1px solid #ccc"></iframe>'


def open_run(folder: Path) -> Outcome:
    """The outcome of a finished run."""
    path = folder / "results.json"
    if not path.exists():
        hint = "it has not finished; run the same audit command again to go on" if folder.exists() else "no such folder"
        raise BadInput(f"{folder} holds no results.json: {hint}. Give the folder of a finished run.")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        document["results"], document["warnings"], document["environment"]
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path} is not a results file of leakmeter ({error}).") from error
    return Outcome(document, folder)
