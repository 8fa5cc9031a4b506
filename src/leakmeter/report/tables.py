"""The report's tables: which figure stands in which cell, each with its interval and the note that explains it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import floor
from typing import Any

from leakmeter.core.attack import Scalar
from leakmeter.core.result import Result
from leakmeter.report import figures, verdict
from leakmeter.report.figures import Panel, Row
from leakmeter.report.wording import ABSENT, NARROW, bracket, number, p_value, percent, plural

RATES = ("10%", "1%", "0.1%")
"""False-positive rates every table shows, measured or not."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure as it is printed: the number, its interval below it, and the number of its footnote."""

    text: str
    interval: str = ""
    extra: str = ""
    footnote: int = 0


@dataclass(slots=True)
class Footnotes:
    """The notes of a table, each printed once."""

    notes: list[str] = field(default_factory=list)

    def mark(self, result: Result | None) -> int:
        if result is None or not result.note:
            return 0
        if result.note not in self.notes:
            self.notes.append(result.note)
        return self.notes.index(result.note) + 1


@dataclass(frozen=True, slots=True)
class Bar:
    """An interval drawn in a cell, in percent of the cell's width."""

    low: float
    at: float
    high: float
    chance: float


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a table."""

    label: str
    cells: Sequence[Cell]
    blind: bool = False
    strongest: bool = False
    bar: Bar | None = None
    level: str = ""
    names: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Column:
    """The head of a column, and the number of the footnote that holds for all its figures."""

    name: str
    footnote: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """A caption, columns and rows; rows that never asked the model come last."""

    caption: str
    columns: Sequence[Column]
    lines: Sequence[Line]
    notes: Sequence[str] = ()
    names: Sequence[str] = ()
    """Columns before the label's: the swept paths."""
    scale: str = ""
    """Heads the drawn intervals, where there are any."""


def _table(caption: str, heads: Sequence[str], lines: Sequence[Line], notes: Footnotes, **more: Any) -> Table:
    """A table in which a footnote that all figures of a column share stands at its head, once."""
    columns = []
    for place, name in enumerate(heads):
        marks = {
            cell.footnote
            for line in lines
            for cell in line.cells[place : place + 1]
            if cell.footnote or cell.text != ABSENT
        }
        columns.append(Column(name, marks.pop() if len(marks) == 1 else 0))
    shared = [column.footnote for column in columns]
    cleared = [
        replace(line, cells=[replace(c, footnote=0) if s else c for c, s in zip(line.cells, shared, strict=False)])
        for line in lines
    ]
    return Table(caption, columns, cleared, notes.notes, **more)


def attacks(panel: Panel, strongest: tuple[str, str]) -> Table:
    """Every signal: AUC, what it adds to the best blind row, Holm-adjusted p, and rates with what was achieved."""
    notes, lines = Footnotes(), []
    least = min([0.4, *(auc.low or 0.0 for row in panel.rows if (auc := row.measured("auc")))])
    start = floor(10 * least) / 10
    for row in [*panel.attacks, *panel.controls]:
        cells = [decimal(row.figures.get("auc"), notes), decimal(row.figures.get("net_auc"), notes, signed=True)]
        cells.append(_p(row.figures.get("p_holm"), notes))
        cells += [rate(row, alpha, notes) for alpha in RATES]
        bar = _bar(row.figures.get("auc"), start)
        lines.append(Line(row.label, cells, row.blind, (row.attack, row.signal) == strongest, bar))
    columns = ["AUC", "Net of best blind row", "Holm p", *(f"TPR at {nominal(alpha)} FPR" for alpha in RATES)]
    sizes = panel.size()
    told = f" {plural(sizes[0], 'training text')}, {plural(sizes[1], 'other text')}." if sizes else ""
    caption = f"Every attack, strongest first, each with its own 95 % interval.{told}"
    return _table(caption, columns, lines, notes, scale=f"{start:g} to 1, chance dashed")


def by_slice(panels: Sequence[Panel], row: Row, caption: str) -> Table:
    """One signal along the values of a slice, beside the best row of that slice that never asked the model."""
    notes, lines = Footnotes(), []
    for panel in panels:
        cells = [Cell(" / ".join(f"{n:,}" for n in panel.size() or ()) or ABSENT), *_headline(panel, row, notes)]
        lines.append(Line(value_of(panel.slice), cells, level=verdict.of_panel(panel).level))
    columns = ["Training / other texts", "AUC", "Best blind row", "Net of it", f"TPR at {nominal('1%')} FPR", "Verdict"]
    return _table(caption, columns, lines, notes)


def by_setting(panels: Sequence[Panel], caption: str) -> Table:
    """A sweep: a column for each swept path, then the strongest attack of that setting."""
    paths = list(dict.fromkeys(path for panel in panels for path in panel.setting))
    notes, lines = Footnotes(), []
    for panel in panels:
        judged = verdict.of_panel(panel)
        row = panel.row(judged.attack, judged.signal)
        cells = _headline(panel, row, notes) if row else [Cell(ABSENT)] * 4
        names = [str(panel.setting.get(path, ABSENT)) for path in paths]
        lines.append(Line(row.label if row else ABSENT, cells, level=judged.level, names=names))
    columns = ["AUC", "Best blind row", "Net of it", f"TPR at {nominal('1%')} FPR", "Verdict"]
    return _table(caption, columns, lines, notes, names=paths)


def matrix(panels: Sequence[Panel], rows: Sequence[Row], caption: str) -> Table:
    """The AUC of every signal for every value of a slice."""
    notes, lines = Footnotes(), []
    for row in rows:
        there = [panel.row(row.attack, row.signal) for panel in panels]
        cells = [decimal(found.figures.get("auc") if found else None, notes) for found in there]
        lines.append(Line(row.label, cells, row.blind))
    return _table(caption, [value_of(panel.slice) for panel in panels], lines, notes)


def every_figure(row: Row, caption: str) -> Table:
    """All figures of one signal, also those that stand in no other table."""
    notes, lines = Footnotes(), []
    for metric, result in row.figures.items():
        if metric == "histogram":
            continue
        text = p_value(result.value) if metric in ("p", "p_holm") else number(result.value, 4)
        value = Cell(text, bracket(result, 4), footnote=notes.mark(result))
        lines.append(Line(metric, [value, Cell(f"{result.n:,}" if result.n else ABSENT)]))
    return _table(caption, ["Value", "n"], lines, notes)


def _headline(panel: Panel, row: Row, notes: Footnotes) -> list[Cell]:
    here = panel.row(row.attack, row.signal)
    found = here.figures if here else {}
    control = panel.best_control
    best = decimal(control.figures["auc"], notes, extra=control.label) if control else Cell(ABSENT)
    auc, net = decimal(found.get("auc"), notes), decimal(found.get("net_auc"), notes, signed=True)
    return [auc, best, net, rate(here, "1%", notes) if here else Cell(ABSENT)]


def decimal(result: Result | None, notes: Footnotes, signed: bool = False, extra: str = "") -> Cell:
    if result is None or result.value is None:
        return Cell(ABSENT, footnote=notes.mark(result))
    plus = "+" if signed and result.value > 0 else ""
    return Cell(plus + number(result.value), bracket(result), extra, notes.mark(result))


def rate(row: Row, alpha: str, notes: Footnotes) -> Cell:
    """The share of members caught at a nominal rate, and the rate that was achieved on the evaluated non-members."""
    caught, accused = row.figures.get(f"tpr@{alpha}"), row.figures.get(f"fpr@{alpha}")
    if caught is None or caught.value is None:
        return Cell(ABSENT, footnote=notes.mark(caught))
    span = "" if caught.low is None else f"[{percent(caught.low, '')}, {percent(caught.high, '')}]"
    achieved = ""
    if accused is not None and accused.value is not None:
        achieved = f"FPR {percent(accused.value)}"
        if accused.low is not None:
            achieved += f" [{percent(accused.low, '')}, {percent(accused.high, '')}]"
    return Cell(percent(caught.value), span, achieved, notes.mark(caught))


def nominal(alpha: str) -> str:
    """A rate's name as it is printed: "1%" → "1 %"."""
    return alpha.replace("%", f"{NARROW}%")


def _p(result: Result | None, notes: Footnotes) -> Cell:
    return Cell(p_value(result.value) if result else ABSENT, footnote=notes.mark(result))


def _bar(result: Result | None, start: float) -> Bar | None:
    if result is None or result.value is None or result.low is None or result.high is None:
        return None
    low, at, high, chance = (
        round(100 * (value - start) / (1 - start), 1) for value in (result.low, result.value, result.high, 0.5)
    )
    return Bar(low, at, high, chance)


def value_of(slice: Mapping[str, Scalar]) -> str:
    return ", ".join(str(value) for value in slice.values())


def dimensions(panels: Sequence[Panel], setting: Mapping[str, Scalar]) -> dict[str, list[Panel]]:
    """The slices of one setting by what they slice along, their values in natural order."""
    found: dict[str, list[Panel]] = {}
    for panel in panels:
        if panel.slice and figures.names(panel.setting) == figures.names(setting):
            found.setdefault(", ".join(panel.slice), []).append(panel)
    for name, members in found.items():
        order = figures.ordered(value_of(panel.slice) for panel in members)
        found[name] = sorted(members, key=lambda panel: order.index(value_of(panel.slice)))
    return found
