"""The run: records are cut into blocks, attacks ask, models answer, attacks judge, metrics measure."""

from __future__ import annotations

import dataclasses
import gc
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

import numpy as np
import polars as pl

from leakmeter.audit.config import AuditConfig, Source, relative_to, settings
from leakmeter.audit.environment import describe
from leakmeter.audit.measure import Rows, Scored, measure, with_setting
from leakmeter.audit.plan import BlockAnswers, BlockPlan, Bound, cut, plan
from leakmeter.audit.pools import Pools, divide
from leakmeter.audit.store import Store, file_name
from leakmeter.audit.trained import Trained, TrainJob
from leakmeter.core.attack import Attack, Judgement, Scalar
from leakmeter.core.engine import Job
from leakmeter.core.errors import BadInput
from leakmeter.core.record import Record
from leakmeter.core.result import Result
from leakmeter.core.spec import Spec
from leakmeter.report.page import render


class Event(NamedTuple):
    """What is going on, for a progress bar."""

    what: str
    done: float
    total: float
    detail: str = ""


Listen = Callable[[Event], None]


def _ignore(event: Event) -> None:
    pass


class Measured(NamedTuple):
    """What came of one setting."""

    results: list[Result]
    warnings: list[str]
    environment: dict[str, Any]


@dataclasses.dataclass
class Run:
    """One run directory and the settings it works through; answers are shared between them."""

    store: Store
    listen: Listen = _ignore
    records: Sequence[Record] | None = None
    """Given in Python instead of by the config's sources."""
    _loaded: dict[str, Sequence[Record]] = dataclasses.field(default_factory=dict)
    _warnings: list[str] = dataclasses.field(default_factory=list)

    def all(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Work through every setting and write results.json; its content is returned."""
        from leakmeter import __version__

        made = settings(raw)
        names = [f"setting-{i}" for i in range(len(made))] if len(made) > 1 else ["main"]
        with self.store.locked():
            for _, config in made:
                divide(config, self.load(config))  # whatever is wrong with the records is said before anything changes
            self._write_config(raw, made, names)
            self.store.event("started", settings=len(made))
            results: list[Result] = []
            warnings: list[str] = []
            environment: dict[str, Any] = {}
            for name, (setting, config) in zip(names, made, strict=True):
                measured = self.one(config, name)
                results += with_setting(measured.results, setting)
                warnings += measured.warnings
                environment = _joined(environment, measured.environment)
            document = {
                "leakmeter": __version__,
                "results": [result.to_json() for result in results],
                "warnings": list(dict.fromkeys(self._warnings + warnings)),
                "environment": environment,
            }
            self.store.write_json(self.store.root / "environment.json", environment)
            self.store.write_json(self.store.root / "results.json", document)
            self.store.write(self.store.root / "report.html", render(document).encode())
            self.store.event("finished", results=len(results))
        return document

    def _write_config(
        self, raw: Mapping[str, Any], made: Sequence[tuple[Mapping[str, Scalar], AuditConfig]], names: Sequence[str]
    ) -> None:
        """The resolved config with every default, as the first setting has it, and the sweep as it was given.

        Results of another config do not stay beside it: they would be taken for its own.
        """
        import yaml

        resolved = made[0][1].model_dump(mode="json", exclude_none=True)
        resolved["attacks"] = [attack.model_dump(mode="json") for attack in made[0][1].resolved_attacks()]
        if raw.get("sweep"):
            resolved["sweep"] = {path: [_plain(value) for value in values] for path, values in raw["sweep"].items()}
        text = yaml.safe_dump(relative_to(resolved, self.store.root), sort_keys=False).encode()
        path = self.store.root / "audit.yaml"
        if path.exists() and path.read_bytes() != text:
            for stale in ("results.json", "report.html"):
                (self.store.root / stale).unlink(missing_ok=True)
        self.store.write(path, text)
        for folder in (self.store.root / "scores").glob("*"):
            if folder.name not in names:
                shutil.rmtree(folder)

    def one(self, config: AuditConfig, name: str) -> Measured:
        """One setting: train what is to be trained, ask, answer, judge, measure."""
        records = self.load(config)
        pools = divide(config, records)
        warned = pools.warnings()
        bound = self.bind(config, records)
        blocks = self.answer(config, pools.asked, bound)
        rows = pools.rows(config.slices)
        scored, warnings = self.judge(config, blocks, bound, rows)
        self._write_scores(name, rows, scored, pools)
        self.listen(Event("measuring", 0, 1))
        results = measure(rows, scored, config.metrics, config.slices, config.seed)
        self.listen(Event("measuring", 1, 1))
        return Measured(results, warned + warnings, describe(config, bound, pools.counts()))

    def load(self, config: AuditConfig) -> Sequence[Record]:
        if self.records is not None:
            return _sound(self.records)
        if not config.records:
            raise BadInput("The audit has no records. Give `records:` in the config, or --members and --nonmembers.")
        every: list[Record] = []
        for spec in config.records:
            if spec.key not in self._loaded:
                loaded = cast(Source, spec).read()
                self._loaded[spec.key] = loaded.records
                if loaded.skipped:
                    self._warnings.append(f"{len(loaded.skipped)} unreadable lines of a records file were skipped.")
            every.extend(self._loaded[spec.key])
        return _sound(every)

    def bind(self, config: AuditConfig, records: Sequence[Record]) -> list[Bound]:
        """Models in their roles, those of type `trained` after training them."""
        named = config.model_list()
        jobs = {name: spec.job(records, self.store) for name, spec in named if isinstance(spec, Trained)}
        self._train(config, list(jobs.values()))
        bound = []
        for role, specs in config.models.items():
            for i, spec in enumerate(specs):
                name = role if len(specs) == 1 else f"{role}-{i}"
                opened = jobs[name].opened() if name in jobs else spec
                bound.append(Bound(role, name, opened, opened.fingerprint()))
        return bound

    def _train(self, config: AuditConfig, jobs: Sequence[TrainJob]) -> None:
        left = {job.out: job for job in jobs if job.checkpoint is None}
        for number, job in enumerate(left.values()):
            what = f"training model {number + 1} of {len(left)}"

            def heard(progress: Any, what: str = what) -> None:
                self.listen(Event(what, progress.step, progress.steps, f"loss {progress.loss:.3f}"))

            list(config.engine.run([dataclasses.replace(job, progress=heard)]))

    def answer(self, config: AuditConfig, asked: Sequence[Record], bound: Sequence[Bound]) -> list[BlockPlan]:
        """Ask and answer, in as many rounds as the attacks need."""
        attacks = config.resolved_attacks()
        blocks = [BlockPlan(block) for block in cut(asked, config.block)]
        for number in range(max(attack.rounds for attack in attacks)):
            with _no_collection():
                for block in blocks:
                    for attack in attacks:
                        if number == 0:
                            block.ask(attack)
                        elif number < attack.rounds:
                            block.ask(attack, BlockAnswers(block, bound, self.store).per_record(attack))
                jobs = plan(blocks, bound, self.store)
            self._run_jobs(config, jobs)
        return blocks

    def _run_jobs(self, config: AuditConfig, jobs: Sequence[Any]) -> None:
        total = sum(len(job.questions) for job in jobs)
        done = 0

        def heard(n: int) -> None:
            nonlocal done
            done += n
            self.listen(Event("asking the models", done, total))

        if jobs:
            self.listen(Event("asking the models", 0, total))
        work: list[Job] = [dataclasses.replace(job, progress=heard) for job in jobs]
        for _ in config.engine.run(work):
            pass

    def judge(
        self, config: AuditConfig, blocks: Sequence[BlockPlan], bound: Sequence[Bound], rows: Rows
    ) -> tuple[list[Scored], list[str]]:
        attacks = config.resolved_attacks()
        features: dict[Attack, list[pl.DataFrame]] = {attack: [] for attack in attacks}
        for done, block in enumerate(blocks):
            answers = BlockAnswers(block, bound, self.store)
            for attack in attacks:
                read = attack.read(answers.of(attack))
                features[attack].append(read.with_columns(pl.col("record").cast(pl.UInt32) + block.block.start))
            self.listen(Event("judging", done + 1, len(blocks)))
        scored, warnings = [], []
        for attack in attacks:
            judgement = judged(attack, pl.concat(features[attack]), rows, config.seed)
            one = Scored(attack.name, attack.blind, attack.cross_fits, judgement.scores)
            scored.append(one)
            skipped = sum((block.skipped[attack] for block in blocks), start=type(blocks[0].skipped[attack])())
            warnings += _unscored(one, skipped)
        return scored, warnings

    def _write_scores(self, name: str, rows: Rows, scored: Sequence[Scored], pools: Pools) -> None:
        folder = self.store.root / "scores" / name
        self.store.write_frame(folder / "records.parquet", rows.frame)
        for one in scored:
            self.store.write_frame(folder / f"{file_name(one.attack)}.parquet", one.scores)
        for stale in set(folder.glob("*.parquet")) - {folder / f"{file_name(one.attack)}.parquet" for one in scored}:
            if stale.name != "records.parquet":
                stale.unlink()
        self.store.write_frame(self.store.evidence / f"records-{name}.parquet", pools.names())


@contextmanager
def _no_collection() -> Iterator[None]:
    """Millions of small values are made here and none is part of a cycle; looking for cycles only costs time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _joined(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The environment of several settings: what they share once, and every model that any of them asked."""
    if not one:
        return other
    models = dict(one["models"])
    for name, model in other["models"].items():
        if model not in models.values():
            models[f"{name} ({len(models) + 1})"] = model
    seeds = sorted({*_listed(one["seed"]), *_listed(other["seed"])})
    data = {
        **one["data"],
        **{name: value for name, value in other["data"].items() if value not in one["data"].values()},
    }
    attacks = {**one["attacks"], **other["attacks"]}
    return {**one, "seed": seeds if len(seeds) > 1 else seeds[0], "models": models, "data": data, "attacks": attacks}


def _listed(seed: int | list[int]) -> list[int]:
    return seed if isinstance(seed, list) else [seed]


def _plain(value: Any) -> Any:
    """A swept value as YAML can hold it."""
    return value.model_dump(mode="json") if isinstance(value, Spec) else value


def _sound(records: Sequence[Record]) -> Sequence[Record]:
    """Refuse what no file can hold and no table can store: ids that are not text, and broken characters."""
    for i, record in enumerate(records):
        try:
            record.id.encode()
            for value in record.fields.values():
                value.encode()
        except UnicodeEncodeError as error:
            raise BadInput(
                f"Record {i + 1} holds half of a character (a lone surrogate), which is not text. Clean the file "
                "first: it was probably cut in the middle of an emoji."
            ) from error
        except AttributeError as error:
            raise BadInput(f"Record {i + 1} has an id or a field that is not text. Give strings.") from error
    return records


def judged(attack: Attack, features: pl.DataFrame, rows: Rows, seed: int) -> Judgement:
    """An attack's scores for every record, in order; labels of audited rows are hidden from it unless it cross-fits."""
    seen = (rows.frame if attack.cross_fits else rows.hidden()).select(
        "record", "group", "split", "population", "member"
    )
    judgement = attack.judge(seen.join(features, on="record", how="left", maintain_order="left"), seed)
    scores = rows.frame.select("record").join(judgement.scores, on="record", how="left", maintain_order="left")
    if scores.height != rows.frame.height:
        raise BadInput(f"The attack '{attack.type}' scored some records more than once. This is a fault in the attack.")
    return Judgement(scores, judgement.tables)


def _unscored(one: Scored, skipped: Mapping[str, int]) -> list[str]:
    warnings = [f"{one.attack}: {n} records were skipped: {reason}." for reason, n in sorted(skipped.items())]
    for signal in one.signals:
        values = one.scores[signal].cast(pl.Float64).fill_null(np.nan).to_numpy()
        lost = int(np.isnan(values).sum()) - sum(skipped.values())
        if lost > 0:
            warnings.append(
                f"{one.attack}: {lost} of {len(values)} records have no score. Their texts are empty or too short, or, "
                "for attacks that compare token by token, the two models split them differently."
            )
    return warnings
