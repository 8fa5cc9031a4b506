"""Every attack, metric, model and engine keeps its contract: ours, and those of a plug-in installed beside us."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import polars as pl
import pytest

from leakmeter.attacks.likelihood import Loss
from leakmeter.core.attack import Answers, Judgement
from leakmeter.core.registry import build, find, names
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


class PeeksAtLabels(Loss):
    """Scores by the label it should not see."""

    type: Literal["peeks"] = "peeks"  # type: ignore[assignment]
    cross_fits: ClassVar[bool] = True

    def judge(self, features: pl.DataFrame, seed: int) -> Judgement:
        return Judgement(features.select("record", peeks=pl.col("member").cast(pl.Float64)))


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


@pytest.mark.parametrize(
    ("attack", "said"), [(Forgets(), "has no score"), (Wavers(), "two runs gave different scores")]
)
def test_the_check_catches_a_broken_attack(attack: Any, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        check_attack(attack)


def test_labels_of_audited_records_are_hidden_from_judge() -> None:
    class Peeks(PeeksAtLabels):
        cross_fits: ClassVar[bool] = False

    with pytest.raises(AssertionError, match="has no score"):  # the labels it asks for are not there
        check_attack(Peeks())
