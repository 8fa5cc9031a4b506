"""Rates: thresholds fixed beforehand keep their promise, and what cannot be known is not reported as a number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from leakmeter.core.errors import BadInput
from leakmeter.core.registry import build
from leakmeter.core.result import Result, Sample
from leakmeter.metrics.intervals import clopper_pearson
from leakmeter.metrics.rates import Rates, halves, label, threshold


def test_rates_are_named_in_percent() -> None:
    assert [label(a) for a in (0.1, 0.05, 0.01, 0.001, 0.07, 0.0001)] == ["10%", "5%", "1%", "0.1%", "7%", "0.01%"]


# H2
@pytest.mark.parametrize("alpha", [0.1, 0.05, 0.01])
@pytest.mark.parametrize("m", [9, 19, 20, 99, 100, 101, 1000])
def test_the_threshold_is_passed_at_most_as_often_as_promised(alpha: float, m: int) -> None:
    # A new score falls into each of the m + 1 gaps between the others equally often.
    found = threshold(np.random.default_rng(m).permutation(m).astype(np.float64), alpha)
    if found is None:
        assert m + 1 < 1 / alpha
    else:
        passed = (m - found) / (m + 1)
        assert passed <= alpha + 1e-9
        assert passed + 1 / (m + 1) > alpha + 1e-9, "the next lower score would have done"


# H2
@pytest.mark.parametrize("levels", [2, 5, 10**9])
def test_the_expected_rate_never_exceeds_the_promise_even_with_ties(levels: int) -> None:
    rng = np.random.default_rng(levels)
    rates = []
    for _ in range(3000):
        scores = rng.integers(levels, size=69).astype(np.float64)
        cut = threshold(scores[:49], 0.1)
        assert cut is not None
        rates.append(np.mean(scores[49:] > cut))
    assert np.mean(rates) <= 0.1 + 3 * np.std(rates) / np.sqrt(3000)
    if levels > 1000:
        assert np.mean(rates) == pytest.approx(0.1, abs=3 * np.std(rates) / np.sqrt(3000))


# H1, H2
def test_counts_at_the_population_threshold(make_sample: Callable[..., Sample], find: Callable[..., Result]) -> None:
    sample = make_sample(np.arange(80, 120), np.arange(70, 100), population=np.arange(99))
    results = list(Rates(fpr=(0.1,)).measure([sample], seed=0))
    assert find(results, "threshold@10%").value == 89  # the 90th smallest of 99
    for metric, hits, n in (("tpr@10%", 30, 40), ("fpr@10%", 10, 30), ("precision@10%", 30, 40)):
        found = find(results, metric)
        low, high = clopper_pearson(hits, n)
        assert (found.value, found.low, found.high, found.n) == (hits / n, float(low), float(high), n)
    assert find(results, "precision@10%").note == "members are 57.1 % of these records"


# H2
def test_without_a_population_thresholds_are_cross_fitted(
    make_sample: Callable[..., Sample], find: Callable[..., Result]
) -> None:
    rng = np.random.default_rng(0)
    sample = make_sample(rng.standard_normal(60) + 1, rng.standard_normal(60), group=np.arange(120) // 2)
    results = list(Rates(fpr=(0.1,)).measure([sample], seed=4))
    half, called = halves(sample, 4), np.zeros(120, bool)
    for mine in (False, True):
        cut = threshold(sample.value[~sample.member & (half != mine)], 0.1)
        called[half == mine] = sample.value[half == mine] > cut
    assert find(results, "tpr@10%").value == called[:60].mean()
    assert find(results, "fpr@10%").value == called[60:].mean()
    assert "thresholds cross-fitted" in find(results, "tpr@10%").note
    assert not [r for r in results if r.metric.startswith("threshold")]


# H2
def test_halves_keep_groups_whole_and_share_out_the_non_members(make_sample: Callable[..., Sample]) -> None:
    sample = make_sample(np.zeros(30), np.zeros(40), group=np.arange(70) // 5)
    for seed in range(5):
        half = halves(sample, seed)
        assert all(len(set(half[sample.group == g])) == 1 for g in range(14))
        assert half[~sample.member].sum() == 20
        assert np.array_equal(half, halves(sample, seed))
    assert not np.array_equal(halves(sample, 0), halves(sample, 1))


# H2
@pytest.mark.parametrize("population", [0, 400])
def test_the_achieved_rate_is_the_nominal_one_on_average(make_sample: Callable[..., Sample], population: int) -> None:
    rng, rates = np.random.default_rng(1), list[float]()
    for seed in range(300):
        scores = rng.standard_normal((2, 100))
        sample = make_sample(*scores, population=rng.standard_normal(population))
        rates += [r.value or 0.0 for r in Rates(fpr=(0.1,)).measure([sample], seed) if r.metric == "fpr@10%"]
    error = np.std(rates) / np.sqrt(300)
    assert 0.1 - 3 * error - 1 / 51 < np.mean(rates) < 0.1 + 3 * error


# H3
@pytest.mark.parametrize(
    ("nonmembers", "population", "says"),
    [
        (99, 5000, "needs at least 100 non-members, has 99"),
        (150, 0, "needs at least 198 non-members, has 150"),
        (500, 98, "needs at least 99 records in the population, has 98"),
    ],
)
def test_a_rate_finer_than_the_pools_is_no_number(
    make_sample: Callable[..., Sample], find: Callable[..., Result], nonmembers: int, population: int, says: str
) -> None:
    sample = make_sample(np.arange(50), np.arange(nonmembers), population=np.arange(population))
    results = list(Rates(fpr=(0.1, 0.01)).measure([sample], seed=0))
    for metric in ("tpr@1%", "fpr@1%", "precision@1%"):
        found = find(results, metric)
        assert (found.value, found.low, found.high, found.note) == (None, None, None, says)
    assert find(results, "tpr@10%").value is not None


# H3
@pytest.mark.parametrize(("nonmembers", "population"), [(100, 99), (198, 0)])
def test_a_rate_as_fine_as_the_pools_is_a_number(
    make_sample: Callable[..., Sample], find: Callable[..., Result], nonmembers: int, population: int
) -> None:
    sample = make_sample(np.arange(50), np.arange(nonmembers), population=np.arange(population))
    assert find(list(Rates(fpr=(0.01,)).measure([sample], seed=0)), "tpr@1%").value is not None


# H3
def test_two_big_groups_cannot_be_halved_finely(
    make_sample: Callable[..., Sample], find: Callable[..., Result]
) -> None:
    sample = make_sample(np.arange(30), np.arange(30), group=np.r_[np.arange(30), 30, np.full(29, 31)])
    found = find(list(Rates(fpr=(0.1,)).measure([sample], seed=0)), "tpr@10%")
    assert found.value is None
    assert "more groups of non-members" in found.note


# H2
def test_a_population_unlike_the_non_members_is_named(
    make_sample: Callable[..., Sample], find: Callable[..., Result]
) -> None:
    rng = np.random.default_rng(2)
    scores = rng.standard_normal((3, 500))
    same = make_sample(scores[0], scores[1], population=scores[2])
    for shift, word in ((1.0, "more often"), (-1.0, "less often")):
        results = list(Rates(fpr=(0.1,)).measure([make_sample(scores[0], scores[1] + shift, population=scores[2])], 0))
        assert "population and non-members differ" in find(results, "fpr@10%").note
        assert word in find(results, "fpr@10%").note
    assert "differ" not in find(list(Rates(fpr=(0.1,)).measure([same], 0)), "fpr@10%").note


# H2
def test_a_small_population_is_not_mistaken_for_a_different_one(
    make_sample: Callable[..., Sample], find: Callable[..., Result]
) -> None:
    rng, notes = np.random.default_rng(3), []
    for _ in range(200):
        sample = make_sample(np.zeros(20), rng.standard_normal(4000), population=rng.standard_normal(60))
        notes.append(find(list(Rates(fpr=(0.1,)).measure([sample], 0)), "fpr@10%").note)
    assert sum("differ" in note for note in notes) <= 10
    assert sum("too small" in note for note in notes) >= 50


# H1
def test_rows_of_few_people_give_wide_rates(make_sample: Callable[..., Sample], find: Callable[..., Result]) -> None:
    rng = np.random.default_rng(4)
    group = np.repeat(np.arange(20), 50)
    value = rng.standard_normal(20)[group] + 0.1 * rng.standard_normal(1000)
    many = make_sample(value[:500], value[500:], population=rng.standard_normal(500))
    wide = find(list(Rates(fpr=(0.1,)).measure([replace(many, group=group)], 0)), "fpr@10%")
    narrow = find(list(Rates(fpr=(0.1,)).measure([many], 0)), "fpr@10%")
    assert wide.value == narrow.value
    assert (wide.high or 0) - (wide.low or 0) > 4 * ((narrow.high or 0) - (narrow.low or 0))


def test_when_nobody_is_called_a_member_precision_may_be_anything(
    make_sample: Callable[..., Sample], find: Callable[..., Result]
) -> None:
    results = list(Rates(fpr=(0.1,)).measure([make_sample(np.zeros(30), np.zeros(30), population=np.ones(50))], 0))
    found = find(results, "precision@10%")
    assert (found.value, found.low, found.high, found.n) == (None, 0, 1, 0)
    assert found.note == "nobody was called a member"
    assert find(results, "tpr@10%").value == 0


def test_unscored_rows_and_infinite_scores(make_sample: Callable[..., Sample], find: Callable[..., Result]) -> None:
    members, nonmembers = np.r_[np.ones(10), np.nan], np.r_[np.zeros(20), np.nan, np.nan]
    results = list(Rates(fpr=(0.1,)).measure([make_sample(members, nonmembers, population=np.full(9, np.inf))], 0))
    assert (find(results, "tpr@10%").n, find(results, "fpr@10%").n) == (10, 20)
    assert find(results, "threshold@10%").value is None
    empty = replace(make_sample(members, nonmembers), value=np.full(33, np.nan))
    found = find(list(Rates(fpr=(0.1,)).measure([empty], 0)), "fpr@10%")
    assert found.note == "needs at least 18 non-members, has 0"


def test_one_class_alone_and_impossible_rates_are_refused(make_sample: Callable[..., Sample]) -> None:
    with pytest.raises(BadInput, match="only non-members"):
        list(Rates().measure([make_sample([], [1, 2])], 0))
    for bad in (0, 1, -0.1):
        with pytest.raises(BadInput, match="fpr"):
            build("metrics", {"type": "rates", "fpr": [bad]})
