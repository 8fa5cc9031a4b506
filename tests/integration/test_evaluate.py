"""`evaluate` on tables of losses computed elsewhere (M15)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score
from typer.testing import CliRunner

import leakmeter
from leakmeter.cli.app import app


def table(n: int = 600, leak: float = 0.6, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    member = np.arange(n) % 2 == 0
    hardness = rng.normal(size=n)
    return pl.DataFrame(
        {
            "target": 3 + hardness - leak * member + 0.3 * rng.normal(size=n),
            "reference": 3 + hardness + 0.3 * rng.normal(size=n),
            "member": member.astype(int),
            "group": np.arange(n) // 4,
        }
    )


def test_low_loss_means_member_and_every_row_has_an_interval() -> None:
    frame = table()
    outcome = leakmeter.evaluate(frame)
    for attack, score in {
        "loss": -frame["target"],
        "ratio": frame["reference"] - frame["target"],
        "reference_alone": -frame["reference"],
    }.items():
        found = outcome.find(attack)
        assert found.value == pytest.approx(roc_auc_score(frame["member"], score))
        assert found.low < found.value < found.high
    assert outcome.find("ratio").value > 0.8 > outcome.find("loss").value
    assert outcome.find("reference_alone").blind
    assert not outcome.find("loss").blind


def test_higher_is_member_turns_the_sign() -> None:
    frame = table().with_columns(-pl.col("target"), -pl.col("reference"))
    assert leakmeter.evaluate(frame, higher_is_member=True).find("ratio").value > 0.8
    assert leakmeter.evaluate(frame).find("ratio").value < 0.2


def test_rows_of_the_population_set_thresholds_and_are_not_evaluated() -> None:
    outside = (
        table(seed=1)
        .filter(pl.col("member") == 0)
        .with_columns(split=pl.lit("population"), member=pl.lit(None, pl.Int64))
    )
    frame = pl.concat([table().with_columns(split=pl.lit("audit")), outside.select([*table().columns, "split"])])
    outcome = leakmeter.evaluate(frame)
    assert outcome.find("ratio").n == 600
    assert outcome.find("ratio", "threshold@10%").value is not None
    assert outcome.find("ratio", "fpr@10%").low <= 0.1 <= outcome.find("ratio", "fpr@10%").high


def test_groups_widen_the_interval() -> None:
    """Ten copies of every row are no new evidence."""
    few = table(200)
    copies = pl.concat([few] * 10)
    alone = leakmeter.evaluate(copies.drop("group")).find("ratio")
    grouped = leakmeter.evaluate(copies).find("ratio")
    assert grouped.high - grouped.low > 2 * (alone.high - alone.low)


def test_texts_in_the_table_bring_the_blind_rows() -> None:
    frame = table().with_columns(text=pl.Series([f"Text {i} of some length" * (1 + i % 3) for i in range(600)]))
    outcome = leakmeter.evaluate(frame)
    blind = {r.attack for r in outcome.results if r.blind and r.metric == "auc"}
    assert blind == {
        "bag_of_words",
        "length",
        "zlib_alone",
        "reference_alone",
    }


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_command_reads_files_and_prints_json(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"losses{suffix}"
    write: Any = pl.DataFrame.write_csv if suffix == ".csv" else pl.DataFrame.write_parquet
    write(table(), path)
    result = CliRunner().invoke(app, ["evaluate", str(path), "--json", "--out", str(tmp_path / "run")])
    printed = json.loads(result.stdout)
    assert {"loss", "ratio", "calibrated", "reference_alone"} <= {r["attack"] for r in printed["results"]}
    assert "series" not in printed["results"][0]
    assert (tmp_path / "run" / "report.html").exists()
    assert leakmeter.open_run(tmp_path / "run").find("ratio").value == pytest.approx(
        next(r["value"] for r in printed["results"] if (r["attack"], r["metric"]) == ("ratio", "auc"))
    )


def test_rows_without_a_group_stand_alone() -> None:
    frame = table(200)
    blank = frame.with_columns(group=pl.lit(None, dtype=pl.String))
    assert leakmeter.evaluate(blank).find("loss").low == leakmeter.evaluate(frame.drop("group")).find("loss").low


def test_numbers_that_look_whole_at_first_and_other_columns_are_read(tmp_path: Path) -> None:
    path = tmp_path / "losses.csv"
    rows = [f"{3 if i < 150 else 2.5 + i / 100},{i % 2},{'a' if i > 150 else 7}" for i in range(200)]
    path.write_text("target,member,comment\n" + "\n".join(rows))
    assert leakmeter.evaluate(path).find("loss").n == 200
