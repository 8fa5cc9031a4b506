"""`leakmeter doctor`: what this installation can do."""

from __future__ import annotations

import typer


def doctor(as_json: bool = typer.Option(False, "--json", help="Print as JSON.")) -> None:
    """Say what this installation can do, and what to install for the rest.

    Example: `leakmeter doctor`
    """
    import json

    from leakmeter.audit.checkup import checkup

    findings = checkup()
    if as_json:
        typer.echo(json.dumps([finding._asdict() for finding in findings], indent=1))
        return
    for finding in findings:
        typer.echo(f"{'ok     ' if finding.ok else 'missing'}  {finding.what:<24} {finding.detail}")
