"""The demo tells the truth: what was planted is found, and what was not is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import leakmeter
from leakmeter.audit.demo import REPEATS, config


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return leakmeter.audit(config(), out=tmp_path_factory.mktemp("demo") / "run")


@pytest.mark.slow
def test_the_planted_leak_is_found_above_every_blind_row(demo: Any) -> None:
    ratio = demo.find("ratio")
    assert ratio.value >= 0.85
    assert all(ratio.low > r.high for r in demo.results if r.metric == "auc" and r.blind and not r.slice)
    assert demo.find("ratio", "net_auc").low > 0.25


@pytest.mark.slow
def test_the_more_often_a_text_was_seen_the_surer_the_attack(demo: Any) -> None:
    aucs = [demo.find("ratio", repeats=str(times)).value for times in REPEATS]
    assert aucs == sorted(aucs)
    assert aucs[0] > 0.6
    assert aucs[-1] > 0.98


@pytest.mark.slow
def test_blind_rows_see_nothing_in_people_invented_alike(demo: Any) -> None:
    for result in demo.results:
        if result.metric == "pools_differ" and not result.slice:
            assert result.low <= 0.5


@pytest.mark.slow
def test_the_report_says_so_in_plain_words(demo: Any) -> None:
    page = Path(demo.report).read_text()
    assert "The model gives away which texts it was trained on." in page
    assert "example.org" not in page
