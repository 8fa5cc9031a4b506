"""`leakmeter audit`: measure which texts a model gives away as its training texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from leakmeter.core.errors import BadInput


def audit(
    config: Path | None = typer.Argument(None, help="An audit's YAML file; or use the options below."),
    target: Path | None = typer.Option(None, help="The model: a folder, a LoRA adapter folder or a .gguf file."),
    members: list[Path] | None = typer.Option(None, help="Texts the target was trained on. May be repeated."),
    nonmembers: list[str] | None = typer.Option(
        None, help="Texts it was not trained on, alike in all else: FILE, or NAME=FILE for several pools."
    ),
    reference: Path | None = typer.Option(
        None, help="A model that saw none of these texts. Default: an adapter's base."
    ),
    population: Path | None = typer.Option(None, help="More non-members, used only to set thresholds."),
    out: Path | None = typer.Option(
        None, help="The run's folder. [default: runs/audit, or runs/<name of the YAML file>]"
    ),
    attacks: str | None = typer.Option(
        None, help="Names with commas between. [default: all that the models can answer]"
    ),
    slices: str | None = typer.Option(None, help="Fields of the records by whose values members are measured apart."),
    score: str | None = typer.Option(None, help="Tokens of prompts and chats that count: assistant (default) or all."),
    dtype: str | None = typer.Option(None, help="Precision: auto, float32, bfloat16 or float16."),
    device: str | None = typer.Option(None, help="cpu, cuda, cuda:1, … [default: a GPU where there is one]"),
    seed: int | None = typer.Option(None, help="Seed of folds and resampling. [default: 0]"),
    skip_bad: bool = typer.Option(False, "--skip-bad", help="Count and skip unreadable lines instead of stopping."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Say what would be asked and what it would cost, then stop."),
    as_json: bool = typer.Option(False, "--json", help="Print the results as JSON."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress and no table."),
) -> None:
    """Measure which texts a model gives away as its training texts.

    The same command continues a run that was stopped. Examples:

    `leakmeter audit --target model/ --members train.jsonl --nonmembers holdout.jsonl --reference base/`

    `leakmeter audit --target model/ --members train.jsonl --nonmembers ours=a.jsonl --nonmembers wiki=b.jsonl`

    `leakmeter audit audit.yaml --out runs/friday --json`
    """
    from leakmeter.audit import verbs
    from leakmeter.audit.config import read_yaml
    from leakmeter.cli.output import progress, show

    if config is not None and (target or members or nonmembers or reference or population):
        raise BadInput("Give either a YAML file or --target, --members and --nonmembers, not both.")
    if config is not None:
        raw = read_yaml(config)
    else:
        raw = verbs.short_form(target, members, _pools(nonmembers), reference, population)
    raw = _with_options(raw, attacks=attacks, slices=slices, score=score, dtype=dtype, device=device, skip_bad=skip_bad)
    if seed is not None:
        raw["seed"] = seed
    folder = out or Path("runs") / (config.stem if config else "audit")
    if dry_run:
        _print_costs(raw, folder, as_json)
        return
    with progress(quiet or as_json) as listen:
        outcome = verbs.audit(raw, out=folder, listen=listen)
    show(outcome, as_json, quiet)


def _pools(named: list[str] | None) -> dict[str, Path] | None:
    if not named:
        return None
    pools: dict[str, Path] = {}
    for one in named:
        name, equals, path = one.partition("=")
        name, path = (name, path) if equals else ("nonmembers", one)
        if name in pools:
            raise BadInput(f"Two pools of non-members are called '{name}'. Give each a name: --nonmembers NAME=FILE.")
        pools[name] = Path(path)
    return pools


def _with_options(raw: dict[str, Any], **options: Any) -> dict[str, Any]:
    """The config with what the command line says about all of its models, records or attacks."""
    from leakmeter.audit.config import validated

    raw = dict(raw)
    if options["slices"]:
        raw["slices"] = options["slices"].split(",")
    if options["attacks"]:
        raw["attacks"] = options["attacks"].split(",")
    if options["skip_bad"]:
        raw["records"] = [{**one, "skip_bad": True} for one in raw.get("records", [])]
    wanted = {name: options[name] for name in ("dtype", "device") if options[name]}
    if wanted:
        raw["models"] = {role: _with(model, wanted) for role, model in raw.get("models", {}).items()}
    if options["score"]:
        if options["score"] not in ("assistant", "all"):
            raise BadInput(f"--score is 'assistant' or 'all', not '{options['score']}'.")
        chosen = [
            attack.model_dump()
            for attack in validated({k: v for k, v in raw.items() if k != "sweep"}).resolved_attacks()
        ]
        raw["attacks"] = [{**one, "score": options["score"]} if "score" in one else one for one in chosen]
    return raw


def _with(model: Any, wanted: dict[str, str]) -> Any:
    """A model, or each of several, with a precision or a device."""
    if isinstance(model, list):
        return [_with(one, wanted) for one in model]
    if isinstance(model, str):
        model = {"type": model}
    return {**model, **wanted} if isinstance(model, dict) else model.model_copy(update=wanted)


def _print_costs(raw: dict[str, Any], folder: Path, as_json: bool) -> None:
    import json

    from rich.console import Console
    from rich.table import Table

    from leakmeter.audit.dryrun import dry_run

    costs = dry_run(raw, folder)
    if as_json:
        typer.echo(json.dumps([cost._asdict() for cost in costs], indent=1))
        return
    table = Table(
        title="What this run would ask", caption="Estimated from 50 questions; a second round, if any, is not counted."
    )
    for column in ("model", "questions", "texts", "tokens", "time", "memory", "requests", ""):
        table.add_column(column, justify="left" if column in ("model", "") else "right")
    for cost in costs:
        table.add_row(
            cost.model,
            f"{cost.questions:,}",
            f"{cost.texts:,}",
            "?" if cost.tokens is None else f"{cost.tokens:,}",
            "?" if cost.seconds is None else _time(cost.seconds),
            "?" if cost.memory_mb is None else f"{cost.memory_mb:,} MB",
            "none (local)",
            cost.note,
        )
    Console().print(table)


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
