"""`leakmeter train`: fine-tune a model, or train one from an architecture."""

from __future__ import annotations

from pathlib import Path

import typer


def train(
    recipe: Path = typer.Argument(..., help="A YAML file: data, base or architecture, recipe."),
    out: Path = typer.Option(..., help="The folder of checkpoints to make."),
    as_json: bool = typer.Option(False, "--json", help="Print the losses as JSON."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress and no summary."),
) -> None:
    """Fine-tune a base model, or train an architecture from scratch, on a data file.

    The YAML file holds `data: train.jsonl`, then `base: model/` or `architecture: {hidden: 128, …}`, and
    `recipe: {epochs: 3, learning_rate: 5e-5, …}`. Example:

    `leakmeter train recipe.yaml --out models/mine`
    """
    from leakmeter.audit.fit import fit
    from leakmeter.cli.output import progress

    with progress(quiet or as_json) as listen:
        made = fit(recipe, out, listen)
    if as_json:
        import json

        typer.echo(json.dumps({**made._asdict(), "out": str(made.out)}, indent=1))
    elif not quiet:
        for i, loss in enumerate(made.losses):
            validation = f"   validation {made.validation[i]:.4f}" if i < len(made.validation) else ""
            typer.echo(f"epoch {i + 1}: loss {loss:.4f}{validation}")
        typer.echo(f"Model: {made.out / f'epoch-{made.epochs[-1]}'}")
