"""`leakmeter report`: render a finished run's report again."""

from __future__ import annotations

from pathlib import Path

import typer


def report(
    run: Path = typer.Argument(..., help="The folder of a finished run."),
    out: Path | None = typer.Option(None, help="Where to write the page. [default: RUN/report.html]"),
    as_json: bool = typer.Option(False, "--json", help="Print the results as JSON instead."),
) -> None:
    """Render a finished run's report again, from its results alone.

    Example: `leakmeter report runs/demo --out report.html`
    """
    from leakmeter.audit.outcome import open_run
    from leakmeter.audit.store import Store
    from leakmeter.audit.verbs import write_report
    from leakmeter.cli.output import show
    from leakmeter.core.errors import BadInput

    outcome = open_run(run)
    if out is None:
        write_report(outcome, Store(run))
    else:
        try:
            out.write_text(outcome.html(), encoding="utf-8")
        except OSError as error:
            raise BadInput(f"{out} could not be written: {error.strerror}. Check the path.") from error
    show(outcome, as_json, quiet=False)
