"""Every attack, metric, model and engine keeps its contract: ours, and those of a plug-in installed beside us."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Literal
from zlib import crc32

import polars as pl
import pytest

from leakmeter import testing
from leakmeter.attacks.likelihood import Loss
from leakmeter.audit.measure import Rows
from leakmeter.core.attack import Answers, Attack, Judgement
from leakmeter.core.engine import Engine, Job
from leakmeter.core.model import ModelSpec
from leakmeter.core.question import Likelihood
from leakmeter.core.registry import build, find, names
from leakmeter.core.result import Metric, Result, Sample
from leakmeter.engines.local import Local
from leakmeter.testing import check_attack, check_engine, check_metric, check_model


@pytest.mark.parametrize("name", names("attacks"))
def test_every_attack_keeps_the_contract(name: str) -> None:
    check_attack(build("attacks", name))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", names("metrics"))
def test_every_metric_keeps_the_contract(name: str) -> None:
    check_metric(build("metrics", name))  # type: ignore[arg-type]


def test_the_local_engine_keeps_the_contract() -> None:
    check_engine(Local())


def test_the_plugin_is_found_beside_ours() -> None:
    assert find("attacks", "vowels").__module__ == "leakmeter_vowels"
    assert {"vowels"} == set(names("attacks")) - {
        n for n in names("attacks") if find("attacks", n).__module__.startswith("leakmeter.")
    }


def test_the_plugins_model_keeps_the_contract() -> None:
    check_model(build("models", "uniform"))  # type: ignore[arg-type]


def test_a_config_can_name_a_plugins_attack_metric_and_model(corpus: Any) -> None:
    import leakmeter

    config = corpus.config(attacks=[{"type": "vowels", "letters": "ae"}], metrics=["mean_gap"])
    config["models"] = {"target": "uniform"}
    outcome = leakmeter.audit(config, out=corpus.folder / "run")
    (result,) = outcome.results
    assert (result.attack, result.metric) == ("vowels(letters=ae)", "mean_gap")


def per_record(answers: Answers, score: Any) -> pl.DataFrame:
    return pl.DataFrame({"record": range(len(answers.records)), "s": score}, schema_overrides={"record": pl.UInt32})


class Forgets(Loss):
    """Leaves one record out."""

    type: Literal["forgets"] = "forgets"  # type: ignore[assignment]

    def judge(self, features: pl.DataFrame, seed: int) -> Judgement:
        return Judgement(features.select("record", "loss").filter(pl.col("record") != 3))


class Wavers(Loss):
    """Gives another answer every time."""

    type: Literal["wavers"] = "wavers"  # type: ignore[assignment]
    calls: ClassVar[list[int]] = []

    def read(self, answers: Answers) -> pl.DataFrame:
        self.calls.append(1)
        return super().read(answers).with_columns(pl.col("loss") + len(self.calls))


class Explodes(Attack):
    """Is infinitely sure."""

    type: Literal["explodes"] = "explodes"

    def read(self, answers: Answers) -> pl.DataFrame:
        return per_record(answers, [float("inf")] * len(answers.records))


class ReadsTheLabel(Attack):
    """Reads the label off the record."""

    type: Literal["reads_the_label"] = "reads_the_label"

    def read(self, answers: Answers) -> pl.DataFrame:
        return per_record(answers, [None if r.member is None else float(r.member) for r in answers.records])


class ReturnsTheLabel(Attack):
    """Is shown labels to fit on, and returns them."""

    type: Literal["returns_the_label"] = "returns_the_label"
    cross_fits: ClassVar[bool] = True

    def read(self, answers: Answers) -> pl.DataFrame:
        return per_record(answers, [0.0] * len(answers.records))

    def judge(self, features: pl.DataFrame, seed: int) -> Judgement:
        return Judgement(features.select("record", s=pl.col("member").cast(pl.Float64).fill_null(0)))


class ReturnsTheSplit(ReturnsTheLabel):
    """Is shown labels to fit on, and returns what amounts to them."""

    type: Literal["returns_the_split"] = "returns_the_split"  # type: ignore[assignment]

    def judge(self, features: pl.DataFrame, seed: int) -> Judgement:
        return Judgement(features.select("record", s=pl.col("split").str.starts_with("members").cast(pl.Float64)))


class ReturnsTheFirstSplit(ReturnsTheSplit):
    """The same, whatever the splits are called."""

    type: Literal["returns_the_first_split"] = "returns_the_first_split"  # type: ignore[assignment]
    cross_fits: ClassVar[bool] = False

    def judge(self, features: pl.DataFrame, seed: int) -> Judgement:
        return Judgement(features.select("record", s=(pl.col("split") == pl.col("split").first()).cast(pl.Float64)))


@pytest.mark.parametrize(
    ("attack", "said"),
    [
        (Forgets(), "has no score"),
        (Wavers(), "two runs gave different scores"),
        (Explodes(), "infinite"),
        (ReadsTheLabel(), "changed a score|has no score"),  # whichever comes first: it sees no label, or another
        (ReturnsTheLabel(), "changed the scores of that group"),
    ],
    ids=lambda value: getattr(value, "type", ""),
)
def test_the_check_catches_a_broken_attack(attack: Any, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        check_attack(attack)


@pytest.mark.parametrize("attack", [ReturnsTheSplit(), ReturnsTheFirstSplit()], ids=lambda attack: attack.type)
def test_the_check_catches_a_score_read_off_the_split(attack: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run blanks the splits before an attack sees them; the check does not rely on it."""
    monkeypatch.setattr(Rows, "hidden", lambda self: self.frame)
    with pytest.raises(AssertionError, match="changed"):
        check_attack(attack)


def test_labels_of_audited_records_are_hidden_from_judge() -> None:
    class Peeks(ReturnsTheLabel):
        cross_fits: ClassVar[bool] = False

        def judge(self, features: pl.DataFrame, seed: int) -> Judgement:
            return Judgement(features.select("record", s=pl.col("member").cast(pl.Float64)))

    with pytest.raises(AssertionError, match="has no score"):  # the labels it asks for are not there
        check_attack(Peeks())


def test_labels_are_permuted_among_groups_and_not_among_records() -> None:
    records = testing._records()
    before = {record.group: record.member for record in records if record.split != "population"}
    after: dict[Any, set[Any]] = {}
    for record in testing._permuted(records):
        after.setdefault(record.group, set()).add(record.member)
    assert all(len(labels) == 1 for labels in after.values())
    assert any(after[group] != {label} for group, label in before.items())
    assert sum(after[group] == {True} for group in before) == sum(map(bool, before.values()))


class OneModelForAll(Engine):
    """Opens the first model and runs every job with it."""

    type: Literal["one_model"] = "one_model"

    def run(self, jobs: Sequence[Job]) -> Iterator[Job]:
        with next(job.model for job in jobs if job.model).open() as answerer:
            for job in jobs:
                job.run(answerer if job.model else None)
                yield job


class YieldsNothingOfUse(Local):
    """Runs the jobs, and yields something else."""

    def run(self, jobs: Sequence[Job]) -> Iterator[Job]:
        for _ in super().run(jobs):
            yield None  # type: ignore[misc]


@pytest.mark.parametrize(
    ("engine", "said"), [(OneModelForAll(), "was run with a"), (YieldsNothingOfUse(), "not the jobs that were given")]
)
def test_the_check_catches_a_broken_engine(engine: Engine, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        check_engine(engine)


class Made(Metric):
    """Gives the results it was made with, after doing something to the samples."""

    results: tuple[Any, ...] = ()
    sorts: bool = False

    def measure(self, samples: Sequence[Sample], seed: int) -> Iterable[Result]:
        if self.sorts:
            samples[0].value.sort()
        return self.results


SOUND = Result("loss", "loss", "gap", 0.5, 0.0, 1.0)


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        (Made(results=(Result("loss", "loss", "gap", 0.7),)), "has no interval"),  # H1
        (Made(results=(Result("loss", "loss", "precision@1%", 0.7, low=0.1),)), "has no interval"),
        (Made(results=(Result("loss", "loss", "gap", 0.7, 0.8, 0.9),)), "outside its interval"),
        (Made(), "no result"),
        (Made(results=(SOUND,), sorts=True), "in place"),
    ],
)
def test_the_check_catches_a_broken_metric(metric: Metric, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        check_metric(metric)


@pytest.mark.parametrize("name", ["p", "p_holm", "threshold@1%", "detectable_auc", "count"])
def test_p_values_thresholds_and_counts_need_no_interval(name: str) -> None:
    check_metric(Made(results=(SOUND, Result("loss", "loss", name, 0.2))))


class Says(ModelSpec):
    """Answers every text by its letters, or in one of the ways that are wrong."""

    type: str = "says"
    wrong: str = ""

    def answers(self) -> frozenset[Any]:
        return frozenset() if self.wrong == "no kinds" else frozenset({Likelihood})

    def fingerprint(self) -> str:
        return "" if self.wrong == "no fingerprint" else "says"

    @contextmanager
    def open(self) -> Iterator[Says]:
        yield self

    def answer(self, kind: Any, questions: Sequence[Likelihood]) -> Iterator[pl.DataFrame]:
        if self.wrong == "no answers":
            return
        rows = []
        for q, question in enumerate(questions):
            for i, text in enumerate(question.texts):
                digest = 0 if self.wrong == "constant" else crc32(text.encode())
                logprob = [None if self.wrong == "nulls" else -1.0]
                rows.append((q, i, 1, False, digest, logprob, [-1.0], [0.0], [True]))
        yield pl.DataFrame(rows, schema=dict(Likelihood.schema), orient="row")


def test_a_sound_model_passes() -> None:
    check_model(Says())


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("no kinds", "answers nothing"),
        ("no answers", "no answer at all"),
        ("no fingerprint", "is empty"),
        ("constant", "the same tokens_digest"),
        ("nulls", "logprob has not n_tokens values"),
    ],
)
def test_the_check_catches_a_broken_model(wrong: str, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        check_model(Says(wrong=wrong))
