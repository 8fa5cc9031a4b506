"""The same results for the terminal: the verdict, one compact table, the warnings; fits 80 columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from leakmeter.report import figures, tables, verdict
from leakmeter.report.figures import Row
from leakmeter.report.tables import Cell, Footnotes
from leakmeter.report.wording import NARROW, named

if TYPE_CHECKING:
    from rich.console import Console

_NUMBERS = ("AUC", "Net", "TPR at 1%")
_COLOURS = {"leaks": "red", "pools differ": "yellow", "inverted": "magenta", "no evidence": "blue"}


def print_summary(document: Mapping[str, Any], console: Console) -> None:
    """Print what a results.json shows. Words from results are printed as they are, never read as markup."""
    from rich.padding import Padding
    from rich.text import Text

    results = figures.read(document)
    judged = verdict.verdict(results)
    console.print(Text(judged.headline, style=f"bold {_COLOURS.get(judged.level, '')}".strip()))
    for sentence in judged.sentences:
        console.print(Padding(Text(sentence), (0, 0, 0, 2)))
    console.print()
    settings = figures.overall(figures.panels(results))
    if len(settings) > 1:
        _print_sweep(tables.by_setting(settings, ""), console)
    for panel in settings:
        if figures.names(panel.setting) == figures.names(judged.setting) and panel.rows:
            _print_attacks([*panel.attacks, *panel.controls], named(panel.setting) if panel.setting else "", console)
    for warning in document.get("warnings") or ():
        console.print()
        console.print(Text.assemble(("Warning: ", "bold yellow"), str(warning)))


def _print_attacks(rows: list[Row], title: str, console: Console) -> None:
    from rich.text import Text

    table = _table(["Attack", "AUC", "Net", "TPR at 1%"], title)
    notes, unused = Footnotes(), Footnotes()
    previous = False
    for row in rows:
        if row.blind and not previous:
            table.add_row(Text("never asked:", style="dim italic"))
        previous = row.blind
        auc, rate = tables.decimal(row.figures.get("auc"), notes), tables.rate(row, "1%", notes)
        net = tables.decimal(row.figures.get("net_auc"), unused, signed=True)
        said = [_said(auc), _said(replace(net, footnote=0)), _said(rate)]
        table.add_row(Text(row.label), *map(Text, said), style="dim" if row.blind else "")
    console.print(table)
    for place, note in enumerate(notes.notes, start=1):
        console.print(Text(f"({place}) {note}", style="dim"))


def _print_sweep(swept: tables.Table, console: Console) -> None:
    from rich.text import Text

    table = _table([*swept.names, "Strongest", "AUC", "Verdict"])
    for line in swept.lines:
        table.add_row(*(Text(said) for said in [*line.names, line.label, _said(line.cells[0]), line.level]))
    console.print(table)
    console.print()


def _table(columns: list[str], title: str = "") -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title=Text(title) if title else None)
    for place, column in enumerate(columns):
        table.add_column(
            Text(column), justify="left" if place == 0 else "right", overflow="fold", no_wrap=column in _NUMBERS
        )
    return table


def _said(cell: Cell) -> str:
    mark = f" ({cell.footnote})" if cell.footnote else ""
    return f"{cell.text.replace(NARROW, '')} {cell.interval}".rstrip() + mark
