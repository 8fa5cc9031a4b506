"""`leakmeter evaluate`: statistics on scores computed elsewhere."""

from __future__ import annotations

from pathlib import Path

import typer


def evaluate(
    scores: Path = typer.Argument(
        ..., help="CSV or Parquet: target, member; optional reference, group, split, id, text."
    ),
    higher_is_member: bool = typer.Option(
        False, "--higher-is-member", help="The scores are not losses: high means member."
    ),
    out: Path | None = typer.Option(None, help="Also write results.json and report.html into this folder."),
    seed: int = typer.Option(0, help="Seed of folds and resampling."),
    as_json: bool = typer.Option(False, "--json", help="Print the results as JSON."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No table."),
) -> None:
    """Statistics on losses or energies computed elsewhere: no model is needed.

    `target` and `reference` are losses (low = likely); `member` is 1 or 0; rows with split `population` set thresholds.

    Example: `leakmeter evaluate losses.csv --out runs/mine`
    """
    from leakmeter.audit.evaluate import evaluate as run
    from leakmeter.cli.output import show

    show(run(scores, higher_is_member=higher_is_member, out=out, seed=seed), as_json, quiet)
