"""Intervals cover what they promise to cover, and corrections equal their definitions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import comb

from leakmeter.metrics.intervals import (
    chernoff,
    chernoff_p,
    clopper_pearson,
    effective_groups,
    holm,
    hull,
    logit_t,
    rate_interval,
)


# H1
@pytest.mark.parametrize("trials", [1, 2, 3, 5, 10, 23, 60])
def test_exact_intervals_cover_every_rate_at_least_95_times_in_100(trials: int) -> None:
    hits = np.arange(trials + 1)
    low, high = clopper_pearson(hits, trials)
    for rate in np.linspace(0, 1, 201):
        chance = comb(trials, hits) * rate**hits * (1 - rate) ** (trials - hits)
        assert chance[(low <= rate) & (rate <= high)].sum() >= 0.95 - 1e-12


# H1
def test_exact_intervals_solve_the_two_tail_equations() -> None:
    hits, trials = 7, 20
    low, high = (float(end) for end in clopper_pearson(hits, trials))

    def chance(k: int, p: float) -> float:
        return math.comb(trials, k) * p**k * (1 - p) ** (trials - k)

    assert sum(chance(k, low) for k in range(hits, trials + 1)) == pytest.approx(0.025)
    assert sum(chance(k, high) for k in range(hits + 1)) == pytest.approx(0.025)


# H1
def test_exact_intervals_at_the_edges() -> None:
    low, high = clopper_pearson([0, 10, 0], [10, 10, 0])
    assert low.tolist() == pytest.approx([0, 0.025**0.1, 0])
    assert high.tolist() == pytest.approx([1 - 0.025**0.1, 1, 1])


# H1
def test_a_rate_of_rows_without_groups_is_clopper_pearson() -> None:
    hit = np.arange(50) < 13
    low, high = clopper_pearson(13, 50)
    assert rate_interval(hit, np.arange(50)) == (float(low), float(high))


# H1
def test_rows_that_only_repeat_their_group_count_once() -> None:
    hit, group = np.arange(40) < 12, np.arange(40)
    plain = rate_interval(hit, group)
    repeated = rate_interval(np.repeat(hit, 9), np.repeat(group, 9))
    # A little wider than 40 independent rows (Student's t), nowhere near 360.
    assert plain.high - plain.low < repeated.high - repeated.low < 1.1 * (plain.high - plain.low)


# H1
def test_groups_of_independent_rows_cost_next_to_nothing() -> None:
    hit = np.tile([True, False, False, False], 200)
    group = np.arange(800) // 4
    grouped, plain = rate_interval(hit, group), rate_interval(hit, np.arange(800))
    assert grouped.high - grouped.low < 1.01 * (plain.high - plain.low)


# H1
@pytest.mark.parametrize("outcome", [False, True])
def test_without_variation_a_group_counts_once(outcome: bool) -> None:
    interval = rate_interval(np.full(60, outcome), np.arange(60) // 6)
    low, high = clopper_pearson(10 * outcome, 10)
    assert interval == pytest.approx((float(low), float(high)))


# H1
def test_no_rows_allow_any_rate_and_one_group_allows_nearly_any() -> None:
    nothing = np.zeros(0, np.int64)
    assert rate_interval(nothing.astype(bool), nothing) == (0, 1)
    low, high = rate_interval(np.array([True, False, True]), np.zeros(3, np.int64))
    assert low < 0.05
    assert high > 0.95


# H1
def test_clustered_rates_are_covered() -> None:
    rng = np.random.default_rng(0)
    group, rate, covered = np.repeat(np.arange(40), 5), 0.3, 0
    for _ in range(600):
        person = rng.beta(1.5, 3.5, 40)  # mean 0.3, intraclass correlation 1/6
        covered += rate_interval(rng.random(200) < person[group], group).covers(rate)
    assert covered / 600 >= 0.935


# H6
def test_holm_equals_its_definition() -> None:
    rng = np.random.default_rng(1)
    for size in (1, 2, 5, 9):
        p = np.round(rng.random(size) ** 3, 2)
        for level in (0.001, 0.01, 0.05, 0.2, 0.5):
            rejected: set[int] = set()
            for step, i in enumerate(sorted(range(size), key=lambda i: p[i])):
                if p[i] * (size - step) > level:
                    break
                rejected.add(i)
            assert set(np.flatnonzero(holm(p) <= level)) == rejected
    assert holm([]).size == 0
    assert holm([0.6, 0.7]).tolist() == [1, 1]


def test_effective_groups_is_the_number_of_groups_when_they_are_of_one_size() -> None:
    assert effective_groups(np.repeat(np.arange(7), 3)) == pytest.approx(7)
    assert effective_groups(np.array([0] * 99 + [1])) == pytest.approx(100**2 / (99**2 + 1))
    assert effective_groups(np.zeros(0, np.int64)) == 0


# H1
def test_the_chernoff_bound_is_closed_form_at_perfect_separation() -> None:
    for groups in (1, 3, 5, 100):
        assert chernoff(1.0, groups) == pytest.approx((0.025 ** (1 / groups), 1))
        assert chernoff(0.0, groups) == pytest.approx((0, 1 - 0.025 ** (1 / groups)))
    assert chernoff(0.7, 0) == (0, 1)


# H1
@pytest.mark.parametrize(("members", "nonmembers"), [(1, 1), (2, 3), (3, 3), (4, 4)])
def test_the_chernoff_bound_covers_whatever_the_number_of_records(members: int, nonmembers: int) -> None:
    # Scores are coins: a member shows 1 with probability p, a non-member with probability q; all outcomes enumerated.
    for p, q in itertools.product((0.05, 0.3, 0.5, 0.8, 0.99), repeat=2):
        truth, missed = 0.5 + (p - q) / 2, 0.0
        for ours, theirs in itertools.product(range(members + 1), range(nonmembers + 1)):
            auc = 0.5 + (ours / members - theirs / nonmembers) / 2
            chance = math.comb(members, ours) * p**ours * (1 - p) ** (members - ours)
            chance *= math.comb(nonmembers, theirs) * q**theirs * (1 - q) ** (nonmembers - theirs)
            missed += chance * (not chernoff(auc, min(members, nonmembers)).covers(truth))
        assert missed <= 0.05


def test_the_chernoff_p_value_agrees_with_its_interval() -> None:
    for value, groups in itertools.product((0.02, 0.3, 0.5, 0.81, 1.0), (1, 4, 12, 40)):
        p = chernoff_p(value, groups)
        assert (p < 0.05) == (not chernoff(value, groups, 0.05).covers(0.5))


def test_logit_intervals_stay_within_bounds_and_widen_with_fewer_groups() -> None:
    many, few = logit_t(0.97, 0.03, 1000), logit_t(0.97, 0.03, 5)
    assert 0 < few.low < many.low < 0.97 < many.high < few.high < 1
    assert logit_t(0.5, 0.02, 1e9) == pytest.approx((0.5 - 0.0392, 0.5 + 0.0392), abs=1e-4)
    assert hull(many, few) == few
    assert many.mirrored().mirrored() == pytest.approx(many)
