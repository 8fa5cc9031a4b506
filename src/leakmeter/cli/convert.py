"""`leakmeter convert`: an older checkpoint as safetensors."""

from __future__ import annotations

from pathlib import Path

import typer


def convert(
    folder: Path = typer.Argument(..., help="A model folder whose weights are pickled (pytorch_model.bin)."),
    out: Path | None = typer.Option(None, help="The new folder. [default: FOLDER-safetensors]"),
) -> None:
    """Turn an older checkpoint into safetensors, in a separate process that runs no code from the file.

    Example: `leakmeter convert old-model --out model`
    """
    from leakmeter.core.registry import find

    find("models", "causal")  # says which extra to install where torch is missing
    from leakmeter.models.convert import convert as run

    to = out or folder.with_name(folder.name + "-safetensors")
    run(folder, to)
    typer.echo(f"Converted: {to}")
