"""`leakmeter demo`: the instrument on models it trains itself, offline."""

from __future__ import annotations

from pathlib import Path

import typer


def demo(
    out: Path = typer.Option(Path("runs/demo"), help="The run's folder."),
    seed: int = typer.Option(0, help="Other people, other texts, other models."),
    as_json: bool = typer.Option(False, "--json", help="Print the results as JSON."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress and no table."),
) -> None:
    """Invent people and their mail, train a small model on some of it, and measure what it gives away.

    Needs no data, no network and about a minute. Example: `leakmeter demo`
    """
    from leakmeter.audit import verbs
    from leakmeter.audit.demo import config
    from leakmeter.cli.output import progress, show
    from leakmeter.core.registry import find

    find("models", "causal")  # says which extra to install where torch is missing
    with progress(quiet or as_json) as listen:
        outcome = verbs.audit(config(seed), out=out, listen=listen)
    show(outcome, as_json, quiet)
