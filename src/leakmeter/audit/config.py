"""The config of an audit: what might leak, who answers, which attacks, what is measured.

A config is a YAML file or the same mapping in Python. `sweep` turns one config into a list of them.
"""

from __future__ import annotations

import difflib
import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Protocol, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SerializeAsAny, ValidationError

from leakmeter.core.attack import Attack, Scalar
from leakmeter.core.engine import Engine
from leakmeter.core.errors import BadInput
from leakmeter.core.model import ModelSpec
from leakmeter.core.record import Record, Select
from leakmeter.core.registry import TABLES, build
from leakmeter.core.result import Metric
from leakmeter.core.spec import Spec

DEFAULT_METRICS = ("auc", "rates", "net", "power", "histogram")


class Loaded(Protocol):
    """What a source of records gives: the records, and a line for each one it had to skip."""

    @property
    def records(self) -> Sequence[Record]: ...
    @property
    def skipped(self) -> Sequence[str]: ...


class Source(Spec):
    """Where records come from. (The classes live in `records`; this says what an audit needs of them.)"""

    def read(self) -> Loaded:
        raise TypeError(f"{type(self).__name__} reads no records")


def _models(value: Any) -> tuple[Spec, ...]:
    listed = value if isinstance(value, (list, tuple)) else [value]
    return tuple(build("models", one) for one in listed)


SourceField = Annotated[SerializeAsAny[Spec], BeforeValidator(lambda v: build("records", v))]
ModelsField = Annotated[tuple[SerializeAsAny[ModelSpec], ...], BeforeValidator(_models)]
AttackField = Annotated[SerializeAsAny[Attack], BeforeValidator(lambda v: build("attacks", v))]
MetricField = Annotated[SerializeAsAny[Metric], BeforeValidator(lambda v: build("metrics", v))]
EngineField = Annotated[SerializeAsAny[Engine], BeforeValidator(lambda v: build("engines", v))]


class AuditConfig(BaseModel):
    """One audit, with every default written out."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    records: tuple[SourceField, ...] = ()
    models: dict[str, ModelsField]
    """Role → the model (or models) that play it: target, reference, shadow, …"""
    attacks: tuple[AttackField, ...] | None = None
    """None: every attack of ours that the bound roles can answer; a plug-in's attack runs where it is named."""
    metrics: tuple[MetricField, ...] = Field(default=DEFAULT_METRICS, validate_default=True)
    audit: Select | None = None
    """Which records are audited. None: all but the population and what other roles are trained on."""
    population: Select = Select(split=("population",))
    """Non-members that set thresholds and calibrations, and are never evaluated."""
    slices: tuple[str, ...] = ()
    """Fields of a record by whose values the members are measured apart."""
    engine: EngineField = Field(default="local", validate_default=True)
    seed: int = 0
    block: int = Field(default=256, ge=1)
    """Records per block: what is answered and stored at once."""

    def model_list(self) -> list[tuple[str, ModelSpec]]:
        """Every bound model with the name its answers carry: "target", or "shadow-0", "shadow-1", …"""
        named = []
        for role, models in self.models.items():
            for i, model in enumerate(models):
                named.append((role if len(models) == 1 else f"{role}-{i}", model))
        return named

    def resolved_attacks(self) -> tuple[Attack, ...]:
        """The attacks to run; those asked for by name must be answerable, the default list is what is."""
        if self.attacks is not None:
            return self.attacks
        every = [cast(Attack, build("attacks", name)) for name in TABLES["attacks"]]
        return tuple(attack for attack in every if not missing(attack, self.models))


def missing(attack: Attack, models: Mapping[str, Sequence[ModelSpec]]) -> str:
    """Why these models cannot serve an attack; empty where they can."""
    for role, kinds in attack.roles.items():
        if role not in models:
            return f"it needs a model in the role '{role}', and none is bound (give models.{role}, or --{role})"
        if len(models[role]) > 1 and role not in attack.many:
            return f"it takes one model in the role '{role}', and {len(models[role])} are bound"
        for model in models[role]:
            cannot = kinds - model.answers()
            if cannot:
                lacking = ", ".join(sorted(kind.__name__ for kind in cannot))
                return f"the {role} model ({model.type}) cannot answer {lacking} questions"
    return ""


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML file as a mapping; relative paths in it are meant from where the file lies."""
    import yaml

    try:
        loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise BadInput(f"There is no file {path}. Give the path of a YAML file.") from error
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}. Give the path of a YAML file.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} is not valid YAML: {' '.join(str(error).split())}.") from error
    if not isinstance(loaded, dict):
        raise BadInput(f"{path} should hold a mapping (records:, models:, …), not {type(loaded).__name__}.")
    return cast(dict[str, Any], _anchored(loaded, path.parent))


PATHS = {"path", "base", "data"}


def _anchored(value: Any, folder: Path) -> Any:
    """The same with every path, also those in a sweep, meant from a folder."""
    if isinstance(value, list):
        return [_anchored(one, folder) for one in value]
    if not isinstance(value, dict):
        return value
    return {key: _anchored_at(str(key), one, folder) for key, one in value.items()}


def _anchored_at(key: str, value: Any, folder: Path) -> Any:
    if key.rpartition(".")[2] not in PATHS:
        return _anchored(value, folder)
    if isinstance(value, list):
        return [_anchored_at(key, one, folder) for one in value]
    return str(folder / value) if isinstance(value, str) else _anchored(value, folder)


def relative_to(value: Any, folder: Path) -> Any:
    """The same with every path as seen from a folder, so that `read_yaml` from there finds it again."""
    if isinstance(value, list):
        return [relative_to(one, folder) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: os.path.relpath(one, folder) if key in PATHS and isinstance(one, str) else relative_to(one, folder)
        for key, one in value.items()
    }


def settings(raw: Mapping[str, Any]) -> list[tuple[dict[str, Scalar], AuditConfig]]:
    """The config, or with `sweep: {path: [values]}` one config per combination, with the values that tell it apart."""
    if not all(isinstance(key, str) for key in raw):
        raise BadInput("The keys of a config should be words (records, models, …).")
    body = {key: value for key, value in raw.items() if key != "sweep"}
    sweep = raw.get("sweep") or {}
    pairs = sweep.items() if isinstance(sweep, Mapping) else [(None, None)]
    if not all(isinstance(path, str) and isinstance(values, list) and values for path, values in pairs):
        raise BadInput(
            "`sweep` should map paths of the config to non-empty lists, as in: models.target.epoch: [1, 2, 3]."
        )
    made = []
    for values in itertools.product(*sweep.values()):
        setting = dict(zip(sweep, values, strict=True))
        config: Any = body
        for path, value in setting.items():
            config = _replaced(config, path.split("."), value, path)
        made.append(({path: _label(value) for path, value in setting.items()}, validated(config)))
    return made


def _label(value: Any) -> Scalar:
    return value if isinstance(value, (str, int, float, bool)) else str(value)


def _replaced(value: Any, steps: list[str], new: Any, whole: str) -> Any:
    """A copy of the config with the value at a path replaced. In lists a step is an index or a `type`."""
    if not steps:
        return new
    step, rest = steps[0], steps[1:]
    if isinstance(value, str) and rest == [] and step != "type":
        value = {"type": value}
    if isinstance(value, Mapping):
        return {**value, step: _replaced(value.get(step), rest, new, whole)}
    if isinstance(value, (list, tuple)):
        position = _position(value, step, whole)
        return [_replaced(one, rest, new, whole) if i == position else one for i, one in enumerate(value)]
    if value is None:
        return {step: _replaced(None, rest, new, whole)}
    raise BadInput(f"`sweep` names the path {whole}, but there is nothing at '{step}' to set.")


def _position(values: Sequence[Any], step: str, whole: str) -> int:
    if step.isdigit() and int(step) < len(values):
        return int(step)
    for i, one in enumerate(values):
        if one == step or (isinstance(one, Mapping) and one.get("type") == step):
            return i
    raise BadInput(f"`sweep` names the path {whole}, but the list there has no '{step}' (use an index or a type).")


def _check_roles(config: AuditConfig) -> None:
    """A target is there, every role has a model, and no role is a misspelling."""
    if "target" not in config.models:
        raise BadInput("The audit has no target. Give `models: {target: …}`, or --target.")
    known = {"target", "reference", "shadow"} | {role for attack in config.attacks or () for role in attack.roles}
    for role, models in config.models.items():
        if role not in known:
            close = difflib.get_close_matches(role, known, n=1)
            hint = f" Did you mean '{close[0]}'?" if close else ""
            raise BadInput(f"No attack asks a model in the role '{role}'.{hint} Roles: {', '.join(sorted(known))}.")
        if not models:
            raise BadInput(f"The role '{role}' has no model. Give one, or leave the role out.")


def validated(raw: Mapping[str, Any]) -> AuditConfig:
    """The config behind a mapping; what is wrong is said in one paragraph."""
    try:
        config = AuditConfig(**raw)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'config'}: {e['msg']}" for e in error.errors())
        raise BadInput(f"The audit's config cannot be used: {problems}.") from error
    _check_roles(config)
    chosen = [attack.name for attack in config.attacks or ()]
    twice = {name for name in chosen if chosen.count(name) > 1}
    if twice:
        raise BadInput(f"The attack '{twice.pop()}' is named twice with the same parameters. Name it once.")
    for attack in config.attacks or ():
        reason = missing(attack, config.models)
        if reason:
            raise BadInput(f"The attack '{attack.type}' cannot run: {reason}.")
    if not config.resolved_attacks():
        raise BadInput("No attack can run with the models given. `leakmeter list attacks` says what each needs.")
    return config
