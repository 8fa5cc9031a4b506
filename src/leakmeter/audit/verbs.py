"""The verbs of the Python API that measure: `audit` and `evaluate`. The command line calls these and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from leakmeter.audit.config import read_yaml
from leakmeter.audit.outcome import Outcome
from leakmeter.audit.run import Listen, Run, _ignore
from leakmeter.audit.store import Store
from leakmeter.core.errors import BadInput
from leakmeter.core.model import ModelSpec
from leakmeter.core.record import Record

Where = str | PathLike[str]
Named = Where | ModelSpec | Mapping[str, Any]


def audit(
    config: Where | Mapping[str, Any] | None = None,
    *,
    target: Named | None = None,
    members: Where | Sequence[Where] | None = None,
    nonmembers: Where | Mapping[str, Where] | None = None,
    reference: Named | None = None,
    population: Where | None = None,
    records: Sequence[Record] | None = None,
    out: Where | None = None,
    listen: Listen = _ignore,
    **more: Any,
) -> Outcome:
    """Measure which texts a model gives away as its training texts.

    Give a YAML file or a mapping, or the short form: a target, the texts it was trained on, texts it was not trained
    on, and if possible a reference model and a population. `more` goes into the config as it is (seed, attacks,
    slices, …). The run is kept in `out` and continued from there by the same call.
    """
    raw, name = _config(config)
    if config is None:
        raw = short_form(target, members, nonmembers, reference, population)
        name = "audit"
    elif any(given is not None for given in (target, members, nonmembers, reference, population)):
        raise BadInput("Give either a config or target, members and nonmembers, not both.")
    raw = {**raw, **more}
    run = Run(Store(Path(out) if out else Path("runs") / name), listen, records)
    return Outcome(run.all(raw), run.store.root)


def write_report(outcome: Outcome, store: Store) -> Path:
    """Render report.html from results.json."""
    path = store.root / "report.html"
    store.write(path, outcome.html().encode())
    return path


def _config(config: Where | Mapping[str, Any] | None) -> tuple[dict[str, Any], str]:
    if config is None or isinstance(config, Mapping):
        return dict(config or {}), "audit"
    return read_yaml(Path(config)), Path(config).stem


def short_form(
    target: Named | None,
    members: Where | Sequence[Where] | None,
    nonmembers: Where | Mapping[str, Where] | None,
    reference: Named | None,
    population: Where | None,
) -> dict[str, Any]:
    """The config behind `--target --members --nonmembers [--reference] [--population]`."""
    if target is None or members is None or nonmembers is None:
        raise BadInput(
            "An audit needs a target model, --members (texts it was trained on) and --nonmembers (texts it was not "
            "trained on). Without a hold-out, see: leakmeter split --help."
        )
    pools = nonmembers if isinstance(nonmembers, Mapping) else {"nonmembers": nonmembers}
    reserved = {"members", "population"} & set(pools)
    if reserved:
        raise BadInput(f"A pool of non-members cannot be named '{reserved.pop()}'; choose another NAME=FILE.")
    files = [members] if isinstance(members, (str, PathLike)) else list(members)
    records = [{"type": "file", "path": str(path), "member": True, "split": "members"} for path in files]
    records += [{"type": "file", "path": str(path), "member": False, "split": name} for name, path in pools.items()]
    if population is not None:
        records.append({"type": "file", "path": str(population), "member": False, "split": "population"})
    model = named_model(target)
    models: dict[str, Any] = {"target": model}
    if reference is not None:
        models["reference"] = named_model(reference)
    elif isinstance(base := default_reference(model), ModelSpec):
        models["reference"] = base
    return {"records": records, "models": models}


def named_model(named: Named) -> ModelSpec | dict[str, Any]:
    """A model by its folder or file, its family read from there; specs and mappings stay as they are."""
    if isinstance(named, ModelSpec):
        return named
    if isinstance(named, Mapping):
        return dict(named)
    from leakmeter.core.registry import find

    find("models", "causal")  # says which extra to install where torch is missing
    from leakmeter.models.loading import family

    return {"type": family(Path(named)), "path": str(named)}


def default_reference(model: ModelSpec | Mapping[str, Any]) -> ModelSpec | None:
    """A LoRA adapter's base."""
    from typing import cast

    from leakmeter.core.registry import build

    return cast(ModelSpec, build("models", dict(model) if isinstance(model, Mapping) else model)).default_reference()
