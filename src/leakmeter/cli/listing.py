"""`leakmeter list`: what can be named in a config."""

from __future__ import annotations

import typer


def listing(
    kind: str = typer.Argument("attacks", help="attacks, models, metrics, engines or records."),
    as_json: bool = typer.Option(False, "--json", help="Print as JSON."),
) -> None:
    """What can be named in a config: attacks, models, metrics, engines, records; ours and the plug-ins'.

    Example: `leakmeter list attacks`
    """
    import json

    from rich.console import Console
    from rich.table import Table

    from leakmeter.core.errors import BadInput
    from leakmeter.core.registry import find, names

    rows = []
    for name in names(kind):
        try:
            spec = find(kind, name)
        except BadInput:
            rows.append(
                {"name": name, "about": "not installed: pip install 'leakmeter[hf]'", "parameters": "", "asks": ""}
            )
            continue
        fields = {n: f.default for n, f in spec.model_fields.items() if n != "type"}
        parameters = ", ".join(
            n if str(value) == "PydanticUndefined" else f"{n}={value}" for n, value in fields.items()
        )
        asks = "; ".join(f"{r}: {', '.join(k.__name__ for k in ks)}" for r, ks in getattr(spec, "roles", {}).items())
        about = getattr(spec, "about", "") or (spec.__doc__ or name).strip().splitlines()[0]
        rows.append({"name": name, "about": about, "parameters": parameters, "asks": asks})
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    table = Table(title=kind)
    columns = ["name", "about", "parameters"] + (["asks"] if kind == "attacks" else [])
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*(row[column] or ("nobody (blind)" if column == "asks" else "") for column in columns))
    Console().print(table)
