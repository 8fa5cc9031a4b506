"""`leakmeter purge`: remove what may hold raw text from a run."""

from __future__ import annotations

import sys
from pathlib import Path

import typer


def purge(
    run: Path = typer.Argument(..., help="The folder of a run."),
    yes: bool = typer.Option(False, "--yes", "-y", help="Do not ask."),
) -> None:
    """Remove a run's evidence and the models it trained. Scores, results and the report stay.

    Example: `leakmeter purge runs/demo --yes`
    """
    from leakmeter.audit.store import Store
    from leakmeter.core.errors import BadInput

    if not (run / "audit.yaml").exists() and not (run / "evidence").exists():
        raise BadInput(f"{run} is not a run's folder (it has neither audit.yaml nor evidence/); nothing was removed.")
    if not yes and not sys.stdin.isatty():
        raise BadInput(f"Nobody is there to ask whether {run} may be purged. Say --yes to do it without asking.")
    if not yes and not typer.confirm(f"Remove the evidence and the trained models in {run}?"):
        raise typer.Exit(0)
    store = Store(run)
    with store.locked():
        gone = store.purge()
    typer.echo(f"Removed: {', '.join(path.name + '/' for path in gone)}" if gone else "There was nothing to remove.")
