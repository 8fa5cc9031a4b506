"""Power: leakage of the size named is found as often as promised."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from leakmeter.core.result import Result, Sample
from leakmeter.metrics.intervals import clopper_pearson
from leakmeter.metrics.power import Power, detectable_tpr, hanley_mcneil
from leakmeter.metrics.rates import Rates
from leakmeter.metrics.roc import paired_aucs

Make = Callable[..., list[Sample]]
Find = Callable[..., Result]


# H8
@pytest.mark.parametrize(
    ("groups", "size", "rho"), [((60, 60), 1, 0.0), ((40, 300), 1, 0.0), ((500, 500), 1, 0.0), ((80, 80), 4, 0.5)]
)
@pytest.mark.parametrize("signals", [1, 10])
def test_the_detectable_auc_is_detected_four_times_in_five(
    make_pools: Make, find: Find, groups: tuple[int, int], size: int, rho: float, signals: int
) -> None:
    noise = make_pools(signals, groups, size=size, rho=rho, seed=11)
    value = find(list(Power().measure(noise, seed=0)), "detectable_auc").value
    assert value is not None
    trials = make_pools(400, groups, size=size, rho=rho, auc=value, seed=12)
    aucs = paired_aucs(trials, seed=0, replicates=16)
    detected = np.mean([aucs.p_value(i) < 0.05 / signals for i in range(400)])
    # With clusters the design effect is an estimate, and the largest over the signals is on the careful side.
    assert 0.72 <= detected <= (0.88 if rho == 0 else 0.96)


# H8
def test_the_detectable_tpr_is_detected_four_times_in_five() -> None:
    rng = np.random.default_rng(0)
    for members, alpha in ((400, 0.1), (1000, 0.01)):
        value = detectable_tpr(members, alpha, 0.05, 0.8)
        assert value is not None
        hits = rng.binomial(members, value, 4000)
        least = next(k for k in range(members + 1) if _low(k, members) > alpha)
        assert np.mean(hits >= least) == pytest.approx(0.8, abs=0.03)
    assert detectable_tpr(2, 0.5, 0.05, 0.8) is None


def _low(hits: int, trials: int) -> float:
    return float(clopper_pearson(hits, trials)[0])


def test_hanley_and_mcneils_error_is_that_of_exponential_scores() -> None:
    rng = np.random.default_rng(1)
    # Members' scores twice as spread out: AUC = 2/3.
    ours, theirs = 2 * rng.exponential(size=(2000, 30)), rng.exponential(size=(2000, 45))
    aucs = (ours[:, :, None] > theirs[:, None, :]).mean(axis=(1, 2))
    assert np.std(aucs) == pytest.approx(hanley_mcneil(2 / 3, 30, 45), rel=0.06)


# H8
def test_more_records_show_less_leakage_and_more_signals_need_more(make_pools: Make, find: Find) -> None:
    def seen(signals: int, n: int) -> float:
        return find(list(Power().measure(make_pools(signals, (n, n)), 0)), "detectable_auc").value or 0

    assert 0.5 < seen(1, 1000) < seen(1, 100) < seen(10, 100) < 1


# H3, H8
def test_what_could_not_be_seen_is_said(make_pools: Make, make_sample: Callable[..., Sample], find: Find) -> None:
    results = list(Power(fpr=(0.1, 0.01)).measure(make_pools(2, (50, 50)), 0))
    assert find(results, "detectable_tpr@10%").value is not None
    assert find(results, "detectable_tpr@1%").value is None
    assert find(results, "detectable_tpr@1%").note == "needs at least 100 non-members, has 50"
    tiny = find(list(Power().measure([make_sample([3, 4, 5], [0, 1, 2])], 0)), "detectable_auc")
    assert tiny.value is None
    assert "no AUC at all" in tiny.note


def test_one_figure_for_the_slice_and_none_when_nobody_asked(make_sample: Callable[..., Sample], find: Find) -> None:
    rng = np.random.default_rng(2)
    scores = rng.standard_normal((2, 200))
    asked = make_sample(*scores, slice={"length": "short"})
    unasked = make_sample(*scores, blind=True)
    result = find(list(Power().measure([asked, unasked], 0)), "detectable_auc")
    assert (result.attack, result.signal, result.n, result.slice) == ("", "", 400, {"length": "short"})
    assert result.note.startswith("with 80 % power over one signal; the pools are worth 200 independent members")
    assert list(Power().measure([unasked], 0)) == []


# H8
def test_rates_of_the_detectable_size_are_told_apart_by_rates(make_sample: Callable[..., Sample], find: Find) -> None:
    rng, told = np.random.default_rng(3), 0
    value = detectable_tpr(300, 0.1, 0.05, 0.8)
    assert value is not None
    for seed in range(150):
        leaks = rng.random(300) < (value - 0.1) / 0.9
        sample = make_sample(
            np.where(leaks, 9.0, rng.standard_normal(300)),
            rng.standard_normal(300),
            population=rng.standard_normal(5000),
        )
        found = find(list(Rates(fpr=(0.1,)).measure([sample], seed)), "tpr@10%")
        told += (found.low or 0) > 0.1
    assert told / 150 == pytest.approx(0.8, abs=0.09)
