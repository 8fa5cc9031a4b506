"""The AUC metric: what it reports about a signal, and what it refuses to claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from leakmeter.core.errors import BadInput
from leakmeter.core.registry import build
from leakmeter.core.result import Metric, Result, Sample
from leakmeter.metrics.auc import Auc
from leakmeter.metrics.intervals import holm
from leakmeter.metrics.roc import paired_aucs


@pytest.fixture
def measure() -> Callable[..., list[Result]]:
    def all_results(samples: list[Sample], metric: Metric | None = None) -> list[Result]:
        return list((metric or Auc()).measure(samples, seed=0))

    return all_results


def test_each_signal_gets_auc_p_and_corrected_p(
    make_pools: Callable[..., list[Sample]], measure: Callable[..., list[Result]], find: Callable[..., Result]
) -> None:
    leak, noise, other = make_pools(3, (150, 150))
    leak = replace(leak, value=leak.value + leak.member, slice={"length": "short"})
    other = replace(other, blind=True)
    results = measure([leak, noise, other])
    found = find(results, "auc", "0")
    assert (found.attack, found.slice, found.blind, found.n) == ("made", {"length": "short"}, False, 300)
    assert found.value is not None
    assert found.low is not None
    assert 0.5 < found.low < found.value < (found.high or 0) < 1
    assert len(found.series["fpr"]) == len(found.series["tpr"]) <= 200
    assert np.trapezoid(found.series["tpr"], found.series["fpr"]) == pytest.approx(found.value, abs=0.01)
    # H6: two signals asked the target; the blind one is not part of the family.
    p = [find(results, "p", signal).value or 0.0 for signal in "01"]
    assert [find(results, "p_holm", signal).value for signal in "01"] == holm(p).tolist()
    assert {r.metric for r in results if r.signal == "2"} == {"auc", "p"}
    assert all(r.blind for r in results if r.signal == "2")
    # H1: only p-values have no interval.
    assert all((r.low is None) == r.metric.startswith("p") for r in results)


# H6
def test_the_simultaneous_interval_contains_the_single_one_and_is_that_of_a_stricter_level(
    make_pools: Callable[..., list[Sample]], measure: Callable[..., list[Result]], find: Callable[..., Result]
) -> None:
    samples = make_pools(14, (100, 100))
    results = measure(samples)
    aucs = paired_aucs(samples, seed=0)
    for i in range(14):
        single, wide = find(results, "auc", str(i)), find(results, "auc_simultaneous", str(i))
        strict = aucs.interval(i, 0.05 / 14)
        assert wide.low == min(single.low or 0, strict.low)
        assert wide.high == max(single.high or 0, strict.high)
        # The normal quantile grows from 1.96 to 2.91 when 14 signals share 5 %.
        assert (strict.high - strict.low) / ((single.high or 0) - (single.low or 0)) == pytest.approx(1.48, abs=0.13)
    alone = measure(samples[:1])
    assert find(alone, "auc").low == find(alone, "auc_simultaneous").low


# H6
def test_without_a_signal_all_simultaneous_intervals_cover_one_half(
    make_pools: Callable[..., list[Sample]], measure: Callable[..., list[Result]]
) -> None:
    def any_missed(seed: int) -> bool:
        results = measure(make_pools(6, (40, 40), size=2, rho=0.5, seed=seed), Auc(replicates=200))
        family = [r for r in results if r.metric == "auc_simultaneous"]
        return any(not (r.low or 0) <= 0.5 <= (r.high or 0) for r in family)

    assert sum(any_missed(seed) for seed in range(60)) <= 7  # 5 % of 60 is 3


# H7
def test_far_below_chance_is_reported(
    make_pools: Callable[..., list[Sample]], measure: Callable[..., list[Result]], find: Callable[..., Result]
) -> None:
    results = measure(make_pools(1, (80, 80), auc=0.2))
    assert (find(results, "auc").high or 1) < 0.5
    assert find(results, "auc").note.startswith("below chance")
    assert (find(results, "p").value or 0) < 1e-6


# H7
@pytest.mark.parametrize(
    ("groups", "size", "rho", "mixed"),
    [((60, 60), 1, 0.0, False), ((20, 20), 3, 0.7, False), ((60, 200), 2, 0.4, False), ((30, 30), 4, 0.5, True)],
)
def test_without_a_signal_p_values_are_uniform(
    make_pools: Callable[..., list[Sample]], groups: tuple[int, int], size: int, rho: float, mixed: bool
) -> None:
    from scipy.stats import kstest

    samples = make_pools(800, groups, size=size, rho=rho, mixed=mixed, seed=7)
    aucs = paired_aucs(samples, seed=0, replicates=16)
    p = np.array([aucs.p_value(i) for i in range(800)])
    assert kstest(p, "uniform").pvalue > 0.01
    assert 0.025 <= np.mean(p < 0.05) <= 0.075


def test_permuted_labels_leave_uniform_p_values(make_pools: Callable[..., list[Sample]]) -> None:
    from scipy.stats import kstest

    (leak,) = make_pools(1, (60, 60), auc=0.9)
    rng, p = np.random.default_rng(0), []
    for _ in range(500):
        shuffled = replace(leak, member=rng.permutation(leak.member))
        p.append(paired_aucs([shuffled], seed=0, replicates=1).p_value(0))
    assert kstest(p, "uniform").pvalue > 0.01


@pytest.mark.parametrize("n", [1, 3, 200])
def test_constant_scores_are_chance(
    make_sample: Callable[..., Sample], measure: Callable[..., list[Result]], find: Callable[..., Result], n: int
) -> None:
    results = measure([make_sample(np.ones(n), np.ones(n))])
    assert find(results, "auc").value == 0.5
    assert find(results, "p").value == 1
    assert (find(results, "auc").low or 0) < 0.5 < (find(results, "auc").high or 0)


def test_unscored_rows_are_left_out(
    make_sample: Callable[..., Sample], measure: Callable[..., list[Result]], find: Callable[..., Result]
) -> None:
    rng = np.random.default_rng(0)
    ours, theirs = rng.standard_normal(40) + 1, rng.standard_normal(40)
    gaps = np.full(5, np.nan)
    with_gaps = measure([make_sample(np.r_[ours, gaps], np.r_[gaps, theirs])])
    without = measure([make_sample(ours, theirs)])
    assert find(with_gaps, "auc").n == 80
    assert find(with_gaps, "auc").value == find(without, "auc").value
    assert find(with_gaps, "auc").series == find(without, "auc").series


def test_a_signal_that_scored_one_pool_only_does_not_lose_the_others(
    make_sample: Callable[..., Sample], measure: Callable[..., list[Result]], find: Callable[..., Result]
) -> None:
    rng = np.random.default_rng(0)
    good = make_sample(rng.standard_normal(20), rng.standard_normal(20), signal="good")
    bad = replace(good, signal="bad", value=np.where(good.member, good.value, np.nan))
    results = measure([bad, good])
    assert find(results, "auc", "bad").value is None
    assert "no non-member was scored" in find(results, "auc", "bad").note
    assert find(results, "p_holm", "good").value == find(results, "p", "good").value


def test_a_pool_of_members_only_is_refused(
    make_sample: Callable[..., Sample], measure: Callable[..., list[Result]]
) -> None:
    with pytest.raises(BadInput, match="only members"):
        measure([make_sample([1, 2, 3], [])])


@pytest.mark.parametrize("name", ["auc", "rates", "net", "power", "histogram"])
def test_no_signals_are_no_results_and_blind_ones_alone_are_fine(
    make_pools: Callable[..., list[Sample]], name: str
) -> None:
    metric = build("metrics", name)
    assert isinstance(metric, Metric)
    assert metric.about
    assert list(metric.measure([], seed=0)) == []
    for result in metric.measure([replace(sample, blind=True) for sample in make_pools(2, (20, 20))], seed=0):
        assert result.blind
        assert result.value is None or np.isfinite(result.value)


def test_it_is_found_by_name_and_refuses_too_few_replicates(make_pools: Callable[..., list[Sample]]) -> None:
    assert build("metrics", {"type": "auc", "replicates": 500}) == Auc(replicates=500)
    with pytest.raises(BadInput, match="replicates"):
        build("metrics", {"type": "auc", "replicates": 10})
    samples = make_pools(2, (30, 30))
    assert list(Auc().measure(samples, 3)) == list(Auc().measure(samples, 3))
