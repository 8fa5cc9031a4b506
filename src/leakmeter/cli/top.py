"""`leakmeter top`: the records most exposed."""

from __future__ import annotations

from pathlib import Path

import typer


def top(
    run: Path = typer.Argument(..., help="The folder of a finished run."),
    n: int = typer.Option(20, "-n", min=1, help="How many."),
    attack: str | None = typer.Option(None, help="By which attack. [default: the one with the highest AUC]"),
    setting: str | None = typer.Option(None, help="Of a sweep: setting-0, setting-1, … [default: the first]"),
    reveal: bool = typer.Option(False, "--reveal", help="Show ids and the beginning of the texts."),
    as_json: bool = typer.Option(False, "--json", help="Print as JSON."),
) -> None:
    """The members most exposed: how many non-members score as high. By ordinal, unless --reveal.

    Example: `leakmeter top runs/demo -n 10 --reveal`
    """
    import json

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from leakmeter.audit.exposed import exposed

    frame = exposed(run, n, attack, setting, reveal)
    if as_json:
        typer.echo(json.dumps(frame.to_dicts(), indent=1, ensure_ascii=False))
        return
    table = Table(title=f"Most exposed by {frame['attack'][0] if frame.height else 'no attack'}")
    shown = [name for name in frame.columns if name != "attack"]
    for name in shown:
        table.add_column(name, justify="right" if frame.schema[name].is_numeric() else "left")
    for row in frame.select(shown).iter_rows():
        table.add_row(*(Text(f"{value:.4g}" if isinstance(value, float) else str(value)) for value in row))
    Console().print(table)
