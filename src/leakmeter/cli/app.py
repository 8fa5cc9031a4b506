"""The app: every command by name. A command's module is light; what it calls is imported when it runs."""

from __future__ import annotations

import typer

from leakmeter.cli import (
    audit,
    convert,
    demo,
    doctor,
    evaluate,
    listing,
    purge,
    report,
    split,
    top,
    train,
)

app = typer.Typer(
    name="leakmeter",
    help="Measures how much a language model gives away about the people and texts it was trained on.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="markdown",
)


def _version(wanted: bool) -> None:
    if wanted:
        from leakmeter import __version__

        typer.echo(f"leakmeter {__version__}")
        raise typer.Exit


@app.callback()
def leakmeter(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Measures how much a language model gives away about the people and texts it was trained on.

    Start with `leakmeter demo`. Then: `leakmeter audit --target DIR --members train.jsonl --nonmembers holdout.jsonl`.
    """


app.command("demo")(demo.demo)
app.command("audit")(audit.audit)
app.command("evaluate")(evaluate.evaluate)
app.command("split")(split.split)
app.command("train")(train.train)
app.command("top")(top.top)
app.command("report")(report.report)
app.command("list")(listing.listing)
app.command("purge")(purge.purge)
app.command("convert")(convert.convert)
app.command("doctor")(doctor.doctor)
