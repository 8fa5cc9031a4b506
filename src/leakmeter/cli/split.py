"""`leakmeter split`: a hold-out and a population before you train."""

from __future__ import annotations

from pathlib import Path

import typer

from leakmeter.core.errors import BadInput

DEFAULT = "train=0.8,holdout=0.1,population=0.1"


def split(
    data: Path = typer.Argument(..., help="JSONL, CSV, Parquet or text; compressed or not."),
    by: str = typer.Option(
        "group", help="group: what belongs to one person stays together; record: each record alone."
    ),
    parts: str = typer.Option(DEFAULT, help="Names and shares of the parts."),
    out: Path | None = typer.Option(None, help="Folder of the parts. [default: beside the file]"),
    seed: int = typer.Option(0, help="Another seed, another division."),
    skip_bad: bool = typer.Option(False, "--skip-bad", help="Count and skip unreadable lines instead of stopping."),
    as_json: bool = typer.Option(False, "--json", help="Print the sizes as JSON."),
) -> None:
    """Divide a data file before you train, so that an audit has texts the model never saw.

    Equal texts and the records of one group stay together. Example:

    `leakmeter split data.jsonl --by group --parts train=0.8,holdout=0.1,population=0.1`
    """
    import json

    from leakmeter.records.files import File, as_row, write_jsonl
    from leakmeter.records.split import split as divide

    loaded = File(path=data, skip_bad=skip_bad).read()
    divided = divide(loaded.records, by, _shares(parts), seed)
    folder = out or data.parent
    stem = data.name.split(".")[0]
    sizes = {}
    for name, records in divided.items():
        path = folder / f"{stem}-{name}.jsonl"
        write_jsonl(path, map(as_row, records))
        sizes[name] = {"file": str(path), "records": len(records), "groups": len({r.group or r.id for r in records})}
    if as_json:
        typer.echo(json.dumps({"parts": sizes, "skipped": len(loaded.skipped)}, indent=1))
        return
    for name, size in sizes.items():
        typer.echo(f"{name:<12} {size['records']:>8} records {size['groups']:>8} groups   {size['file']}")
    if loaded.skipped:
        typer.echo(f"{len(loaded.skipped)} unreadable lines were skipped.")


def _shares(parts: str) -> dict[str, float]:
    shares = {}
    for one in parts.split(","):
        name, _, share = one.partition("=")
        try:
            shares[name.strip()] = float(share)
        except ValueError:
            name = ""
        if not name.strip().replace("-", "").replace("_", "").isalnum():
            raise BadInput(f"--parts should look like {DEFAULT}; '{one}' is not NAME=SHARE.")
    return shares
