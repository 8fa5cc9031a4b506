"""Contracts as code: what every model, attack, metric and engine must keep, ours and a plug-in's alike.

Call a check in a test of your own; it raises AssertionError with a sentence that says what was broken.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from leakmeter.audit.config import AuditConfig
from leakmeter.audit.pools import divide
from leakmeter.audit.run import Run
from leakmeter.audit.store import Store
from leakmeter.core.attack import Attack
from leakmeter.core.engine import Engine
from leakmeter.core.keys import generator
from leakmeter.core.model import Answerer, ModelSpec
from leakmeter.core.question import Completion, Decoding, Likelihood, Question
from leakmeter.core.record import Record
from leakmeter.core.result import Metric, Result, Sample
from leakmeter.models.ngram import NGram

TOLERANCE = 1e-4
"""How far log-probabilities of one token may differ between two ways of asking, in fp32."""
WITHOUT_INTERVAL = ("p", "threshold", "detectable", "count")
"""First words of the metrics that are bare numbers: p-values, what follows from the design, and counts."""
BLOCK = 32


def check_model(model: ModelSpec, questions: Sequence[Question] | None = None, tolerance: float = TOLERANCE) -> None:
    """A model answers every question once, in its schema, whatever it is asked with, and the same when asked twice."""
    questions = list(questions or _questions(model))
    assert questions, "the model says that it answers nothing"
    assert model.fingerprint(), "fingerprint() is empty, so the answers of two models would be kept as one's"
    assert model.fingerprint() == model.fingerprint(), "fingerprint() changes from call to call"
    with model.open() as answerer:
        for kind in sorted({type(question) for question in questions}, key=lambda k: k.kind):
            mine = [question for question in questions if type(question) is kind]
            assert kind in model.answers(), f"the model does not say that it answers {kind.__name__} questions"
            whole = _answered(answerer, mine)
            assert whole.schema == pl.Schema(kind.schema), f"answers to {kind.__name__} do not follow the schema"
            assert whole["q"].unique().sort().to_list() == list(range(len(mine))), "some question was not answered"
            assert not whole.select("q", "i").is_duplicated().any(), "some text was answered twice"
            assert whole.equals(_answered(answerer, mine)), "the same questions twice gave different answers"
            backwards = _answered(answerer, mine[::-1]).with_columns(q=(len(mine) - 1 - pl.col("q")).cast(pl.UInt32))
            _agree(whole, backwards.sort("q", "i"), tolerance, "in reverse order")
            alone = [_answered(answerer, [q]).with_columns(q=pl.lit(i, dtype=pl.UInt32)) for i, q in enumerate(mine)]
            _agree(whole, pl.concat(alone), tolerance, "one at a time")
            if kind is Likelihood:
                _check_likelihoods(whole, [q for q in mine if isinstance(q, Likelihood)])


def _questions(model: ModelSpec) -> list[Question]:
    made: list[Question] = []
    if Likelihood in model.answers():
        made += [Likelihood("", (text,)) for text in ("One.", "A longer text, with a comma.", "naïve café №7")]
        made += [Likelihood("Write to", (" Ada.", " nobody at all", " x")), Likelihood("a ", ("b", "bc", "bcd"))]
    if Completion in model.answers():
        made += [Completion(prompt, Decoding(max_tokens=5)) for prompt in ("Dear", "The order of the")]
        made += [Completion("Dear", Decoding("sample", max_tokens=4, returns=2, seed=3))]
    return made


def _answered(answerer: Answerer, questions: Sequence[Question]) -> pl.DataFrame:
    kind = type(questions[0])
    frames = list(answerer.answer(kind, questions))
    assert frames, f"{len(questions)} {kind.__name__} questions got no answer at all"
    return pl.concat(frames).select(list(kind.schema)).sort("q", "i")


def _agree(one: pl.DataFrame, other: pl.DataFrame, tolerance: float, how: str) -> None:
    for name in one.columns:
        left, right = one[name], other[name]
        if isinstance(left.dtype, pl.List):
            assert left.list.len().equals(right.list.len()), f"{name} has other lengths when asked {how}"
            left, right = left.explode(), right.explode()
        if left.dtype.is_float():
            gap = float((left - right).abs().max() or 0)  # type: ignore[arg-type]
            assert gap <= tolerance, f"{name} differs by {gap:.2g} when asked {how}"
        elif name != "first":  # a tie between two tokens may fall either way
            assert left.equals(right, null_equal=True), f"{name} differs when asked {how}"


def _check_likelihoods(answers: pl.DataFrame, questions: Sequence[Likelihood]) -> None:
    for q, question in enumerate(questions):
        n = answers.filter(pl.col("q") == q).height
        assert n == len(question.texts), f"a question with {len(question.texts)} texts got {n} answers"
    for name in ("logprob", "mean", "deviation", "first"):
        known = answers[name].list.drop_nulls().list.len()
        assert (known == answers["n_tokens"]).all(), f"{name} has not n_tokens values"
    assert (answers["logprob"].explode() <= TOLERANCE).all(), "a log-probability is above zero"
    assert (answers["deviation"].explode() >= 0).all(), "a deviation is below zero"
    texts = [(question.context, text) for question in questions for text in question.texts]
    digests: dict[str, dict[int, str]] = {}
    for (context, text), digest in zip(texts, answers["tokens_digest"], strict=True):
        same = digests.setdefault(context, {}).setdefault(digest, text)
        assert same == text, f"{same!r} and {text!r} have the same tokens_digest"


@contextmanager
def _bench(models: Mapping[str, ModelSpec] | None) -> Iterator[tuple[Store, dict[str, Any]]]:
    """A store, and models for the roles: exact n-gram models on invented lines unless others are given."""
    with tempfile.TemporaryDirectory() as folder:
        if models is None:
            bound = {}
            for role, start in {"target": 0, "reference": 400, "shadow": 800}.items():
                path = Path(folder) / f"{role}.txt"
                path.write_text("\n".join(_lines(start, 200)), encoding="utf-8")
                bound[role] = NGram(path=path)
            models = bound
        yield Store(Path(folder) / "run"), {role: (model,) for role, model in models.items()}


def _lines(start: int, n: int) -> list[str]:
    words = ["order", "invoice", "garden", "letter", "meeting", "harbour", "ticket", "window", "summer", "report"]
    lines = []
    for i in range(start, start + n):
        rng = generator(i, "testing")
        lines.append(" ".join(rng.choice(words, 12)) + f" {rng.integers(10**6)}.")
    return lines


def _records() -> list[Record]:
    """60 members, 60 non-members and 60 of the population, in groups of two."""
    made = []
    for split, start in {"members": 0, "nonmembers": 1200, "population": 1600}.items():
        for i, line in enumerate(_lines(start, 60)):
            person = f"{split}-{i // 2}"
            made.append(Record(f"{split}-{i}", {"text": line}, member=split == "members", group=person, split=split))
    return made


def _scores(attack: Attack, models: Mapping[str, Any], store: Store, records: Sequence[Record]) -> pl.DataFrame:
    needed = {role: models[role] for role in attack.roles if role in models} or {"target": models["target"]}
    config = AuditConfig(models=needed, attacks=(attack,), block=BLOCK)
    run = Run(store)
    pools = divide(config, records)
    bound = run.bind(config, records)
    rows = pools.rows(())
    scored, _ = run.judge(config, run.answer(config, pools.asked, bound), bound, rows)
    return scored[0].scores


def check_attack(
    attack: Attack, models: Mapping[str, ModelSpec] | None = None, records: Sequence[Record] | None = None
) -> None:
    """An attack's scores do not depend on hidden labels or splits, are the same twice, and leave no record out.

    One that cross-fits sees the labels of others: there, a group's scores do not depend on the group's own.
    """
    records = _in_run_order(records or _records())
    with _bench(models) as (store, bound):
        first = _scores(attack, bound, store, records)
        _check_signals(first)
        with _bench(models) as (elsewhere, again):
            repeated = _scores(attack, again, elsewhere, records)
        assert _bytes(first) == _bytes(repeated), "two runs gave different scores"
        if not attack.cross_fits:
            permuted = _scores(attack, bound, store, _resplit(_permuted(records)))
            same = _bytes(first) == _bytes(permuted)
            assert same, "permuting the labels and splits of audited records changed a score"
            return
        for label in (True, False):
            mine = _one_group(records, label)
            flipped = [replace(r, member=not r.member) if i in mine else r for i, r in enumerate(records)]
            others = _scores(attack, bound, store, _resplit(flipped))
            same = _bytes(first[mine]) == _bytes(others[mine])
            assert same, "flipping the labels of one group, or renaming its split, changed the scores of that group"


def _check_signals(scores: pl.DataFrame) -> None:
    signals = [name for name, kind in scores.schema.items() if name != "record" and kind.is_numeric()]
    assert signals, "the attack gives no signal"
    for signal in signals:
        values = scores[signal].cast(pl.Float64)
        missing = values.is_null().any() or values.is_nan().any()
        assert not missing, f"some audit or population record has no score: {signal}"
        assert values.is_finite().all(), f"some score is infinite: {signal}"


def _bytes(frame: pl.DataFrame) -> bytes:
    return frame.rechunk().write_ipc(None).getvalue()


def _in_run_order(records: Sequence[Record]) -> list[Record]:
    """Split by split, as a run takes them, so that a record's position here is its ordinal there."""
    rank = {split: i for i, split in enumerate(dict.fromkeys(record.split for record in records))}
    return sorted(records, key=lambda record: rank[record.split])


def _groups(records: Sequence[Record]) -> list[list[int]]:
    """Where the records of each group stand, those of the population left out; one without a group is its own."""
    groups: dict[str | int, list[int]] = {}
    for i, record in enumerate(records):
        if record.split != "population":
            groups.setdefault(i if record.group is None else record.group, []).append(i)
    return list(groups.values())


def _one_group(records: Sequence[Record], label: bool) -> list[int]:
    """The first group with a record of this label."""
    return next(group for group in _groups(records) if any(records[i].member is label for i in group))


def _permuted(records: Sequence[Record]) -> list[Record]:
    """The same records with the labels of those outside the population shuffled among groups.

    The groups' labels are dealt out in another order of groups. So as many are members as before; and where groups
    are of one size, each gets the labels of another as they are.
    """
    groups = _groups(records)
    order = generator(7, "permuted labels").permutation(len(groups))
    labels = [records[i].member for group in order for i in groups[group]]
    changed = list(records)
    for i, label in zip((i for group in groups for i in group), labels, strict=True):
        changed[i] = replace(records[i], member=label)
    return changed


def _resplit(records: Sequence[Record]) -> list[Record]:
    """The same records in the same blocks, with the audited splits renamed and cut in two after their first block."""
    seen: Counter[str] = Counter()
    names: dict[tuple[str, bool], str] = {}
    changed = []
    for record in records:
        if record.split != "population":
            part = (record.split, seen[record.split] < BLOCK)
            seen[record.split] += 1
            record = replace(record, split=names.setdefault(part, f"part {len(names)}"))
        changed.append(record)
    return changed


def check_metric(metric: Metric) -> None:
    """A metric's results are named, have intervals and lie inside them (H1), and are the same twice.

    Only values whose names begin with a word of `WITHOUT_INTERVAL` may stand bare: p_holm, threshold@1%.
    """
    for groups, members, shift in ((400, 200, 0.0), (400, 200, 1.0), (60, 30, 0.5)):
        mine = _samples(groups, members, shift)
        results = list(metric.measure(mine, 0))
        assert results, "the metric gives no result"
        for sample, untouched in zip(mine, _samples(groups, members, shift), strict=True):
            for name in ("value", "member", "group", "population", "population_group"):
                same = np.array_equal(getattr(sample, name), getattr(untouched, name))
                assert same, f"the metric changes the samples it is given, in place: {name}"
        assert [r.to_json() for r in results] == [r.to_json() for r in metric.measure(mine, 0)], "not the same twice"
        for result in results:
            _check_result(result)


def _check_result(result: Result) -> None:
    assert result.metric, "a result has no metric name"
    if result.value is None:
        assert result.note or result.series, f"{result.metric} has no value and no note"
        return
    assert np.isfinite(result.value), f"{result.metric} is not a finite number"
    if result.low is None or result.high is None:
        bare = re.split(r"[^a-z]", result.metric)[0] in WITHOUT_INTERVAL
        assert bare, f"{result.metric} = {result.value} has no interval"
        return
    inside = result.low - 1e-9 <= result.value <= result.high + 1e-9
    assert inside, f"{result.metric} = {result.value} lies outside its interval"


def _samples(n: int, members: int, shift: float) -> list[Sample]:
    rng = generator(n, "samples")
    member = np.arange(n) < members
    group = np.arange(n) // 2
    nobody = np.arange(n, n + 200)

    def sample(name: str, blind: bool, by: float) -> Sample:
        return Sample(name, name, blind, rng.normal(size=n) + by * member, member, group, rng.normal(size=200), nobody)

    return [sample("loss", False, shift), sample("ratio", False, 2 * shift), sample("length", True, 0.0)]


class _Silent(ModelSpec):
    """A model that answers nothing."""

    type: str = "silent"
    name: str

    def answers(self) -> frozenset[Any]:
        return frozenset()

    def fingerprint(self) -> str:
        return self.name

    @contextmanager
    def open(self) -> Iterator[Answerer]:
        yield self

    def answer(self, kind: Any, questions: Sequence[Question]) -> Iterator[pl.DataFrame]:
        yield from ()


@dataclass(frozen=True)
class _Touch:
    """A job that leaves a file."""

    path: Path
    model: ModelSpec | None
    fails: bool = False
    label: str = field(default="touch", compare=False)

    def run(self, answerer: Answerer | None) -> None:
        wanted, given = getattr(self.model, "name", None), getattr(answerer, "name", None)
        assert wanted == given, f"a job that needs the model {wanted} was run with {given}"
        if self.fails:
            raise ValueError("this job fails")
        with self.path.open("a") as file:
            file.write("done\n")


def check_engine(engine: Engine) -> None:
    """An engine runs every job once, hands each its open model, yields it when done, and does not hide a failure."""
    models = [None, _Silent(name="a"), _Silent(name="a"), _Silent(name="b")]
    with tempfile.TemporaryDirectory() as folder:
        jobs = [_Touch(Path(folder) / str(i), model) for i, model in enumerate(models * 3)]
        done = list(engine.run(jobs))
        assert len(done) == len(jobs), f"{len(jobs)} jobs were given and {len(done)} came back"
        assert all(job in done for job in jobs), "what came back are not the jobs that were given"
        for job in jobs:
            assert job.path.read_text() == "done\n", "a job was not run exactly once"
        bad = [_Touch(Path(folder) / "last", None, fails=True)]
        try:
            list(engine.run(bad))
        except ValueError:
            return
        raise AssertionError("a failing job went unnoticed")
