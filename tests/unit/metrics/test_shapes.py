"""Histograms count every score once, whatever the outliers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from leakmeter.core.result import Sample
from leakmeter.metrics.shapes import Histogram


def test_every_score_is_counted_once_and_outliers_land_in_the_end_bins(make_sample: Callable[..., Sample]) -> None:
    rng = np.random.default_rng(0)
    members = np.r_[rng.standard_normal(500), 1e9, np.inf, np.nan]
    nonmembers = np.r_[rng.standard_normal(700), -1e9, -np.inf]
    sample = make_sample(members, nonmembers, population=rng.standard_normal(300), slice={"length": "short"})
    (result,) = Histogram().measure([sample], seed=0)
    edges = np.array(result.series["edges"])
    assert (result.value, result.n, result.slice) == (None, 1204, {"length": "short"})
    assert edges.size == 41
    assert (np.diff(edges) > 0).all()
    assert -5 < edges[0] < edges[-1] < 5
    counts = {name: np.array(result.series[name]) for name in ("member", "nonmember", "population")}
    assert {name: int(c.sum()) for name, c in counts.items()} == {"member": 502, "nonmember": 702, "population": 300}
    inside = members[(members >= edges[10]) & (members < edges[11])]
    assert counts["member"][10] == inside.size
    assert counts["member"][-1] >= 2
    assert counts["nonmember"][0] >= 2


@pytest.mark.parametrize("scores", [[3.0, 3.0], [0.0, 0.0], [-1e12, -1e12], [np.nan, np.nan], [np.inf, np.inf]])
def test_scores_without_a_spread_still_have_bins(make_sample: Callable[..., Sample], scores: list[float]) -> None:
    (result,) = Histogram(bins=4).measure([make_sample(scores, scores)], seed=0)
    edges = np.array(result.series["edges"])
    assert (np.diff(edges) > 0).all()
    assert sum(result.series["member"]) == result.n / 2
    assert result.series["population"] == []
