"""What commands have in common: progress bars on standard error, results on standard output."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leakmeter.audit.outcome import Outcome


@contextmanager
def progress(quiet: bool) -> Iterator[Any]:
    """A listener that draws a bar for each kind of work, or ignores everything."""
    if quiet:
        yield lambda event: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description:<24}"),
        BarColumn(bar_width=28),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[detail]}"),
    )
    bars: dict[str, Any] = {}
    with Progress(*columns, console=Console(stderr=True)) as drawn:

        def listen(event: Any) -> None:
            if event.what not in bars:
                bars[event.what] = drawn.add_task(event.what, total=event.total, detail="")
            drawn.update(bars[event.what], completed=event.done, total=event.total, detail=event.detail)

        yield listen


def show(outcome: Outcome, as_json: bool, quiet: bool) -> None:
    """The outcome as JSON, as a table, or not at all."""
    import sys

    if as_json:
        sys.stdout.write(outcome.to_json() + "\n")
        return
    if quiet:
        return
    from rich.console import Console

    from leakmeter.report.terminal import print_summary

    console = Console()
    print_summary(outcome.document, console)
    if outcome.report:
        console.print(f"\nReport: {outcome.report}", soft_wrap=True)
