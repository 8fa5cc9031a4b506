"""AUCs equal their definition, and their intervals what resampling and simulation say."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from leakmeter.core.errors import BadInput
from leakmeter.core.keys import generator
from leakmeter.core.result import Bools, Floats, Sample
from leakmeter.metrics import roc
from leakmeter.metrics.intervals import logit_t
from leakmeter.metrics.roc import auc, curve, obuchowski, paired_aucs, rank, require_both_classes

FIELDS = ("member", "group", "population", "population_group")


def wins(value: Floats, member: Bools) -> Floats:
    """1 where a member beats a non-member, a half where they tie: all pairs, from the definition."""
    ours, theirs = value[member][:, None], value[~member][None, :]
    won: Floats = (ours > theirs) + 0.5 * (ours == theirs)
    return won


@pytest.mark.parametrize("levels", [1, 2, 5, 1000])
def test_auc_is_the_share_of_pairs_won_ties_counting_half(levels: int) -> None:
    rng = np.random.default_rng(levels)
    for _ in range(10):
        value = rng.integers(levels, size=60).astype(np.float64)
        member = rng.random(60) < 0.4
        assert auc(value, member) == pytest.approx(wins(value, member).mean(), abs=1e-15)


def test_auc_leaves_out_rows_without_a_score_and_takes_infinite_ones() -> None:
    value = np.array([np.inf, 2, np.nan, 1, -np.inf, np.nan])
    member = np.array([True, False, True, True, False, False])
    assert auc(value, member) == 0.75


def test_the_curve_encloses_the_auc_when_it_is_not_thinned() -> None:
    rng = np.random.default_rng(3)
    value, member = rng.integers(30, size=150).astype(np.float64), rng.random(150) < 0.5
    fpr, tpr = curve(value, member)
    assert (fpr[0], tpr[0], fpr[-1], tpr[-1]) == (0, 0, 1, 1)
    assert np.trapezoid(tpr, fpr) == pytest.approx(auc(value, member))


@pytest.mark.parametrize("shift", [0.0, 1.0, 4.0])
def test_a_thinned_curve_keeps_its_shape_down_to_one_false_positive(shift: float) -> None:
    rng = np.random.default_rng(4)
    member = np.arange(40_000) % 2 == 0
    value = rng.standard_normal(40_000) + shift * member
    fpr, tpr = curve(value, member)
    assert fpr.size <= 200
    whole_fpr, whole_tpr = curve(value, member, points=10**6)
    known = set(zip(whole_fpr.tolist(), whole_tpr.tolist(), strict=True))
    assert set(zip(fpr.tolist(), tpr.tolist(), strict=True)) <= known
    for rate in np.geomspace(1 / 20_000, 1, 60):
        best = whole_tpr[whole_fpr <= rate].max()
        assert tpr[fpr <= rate].max() == pytest.approx(best, abs=0.025)
    assert np.trapezoid(tpr, fpr) == pytest.approx(auc(value, member), abs=2e-3)


# H1
def test_bootstrap_replicates_are_aucs_of_resampled_groups(make_pools: Callable[..., list[Sample]]) -> None:
    samples = make_pools(2, (9, 12), size=3, rho=0.4, auc=0.7)
    tied = Sample("t", "t", False, np.round(samples[0].value), *[getattr(samples[0], f) for f in FIELDS])
    gappy = samples[1].value.copy()
    gappy[[1, 5, 40]] = np.nan
    missing = Sample("m", "m", False, gappy, *[getattr(samples[0], f) for f in FIELDS])
    everyone = [*samples, tied, missing]
    found = paired_aucs(everyone, seed=5, replicates=40)
    member, group = samples[0].member, samples[0].group
    weights = np.concatenate(list(roc._resamples(group, member, 40, generator(5, "bootstrap"))))
    assert (weights[:, :9].sum(axis=1) == 9).all()
    assert (weights[:, 9:].sum(axis=1) == 12).all()
    for row, weight in zip(found.draws, weights.astype(np.int64), strict=True):
        copies = np.repeat(np.arange(member.size), weight[group])
        for value, sample in zip(row, everyone, strict=True):
            known = copies[~np.isnan(sample.value[copies])]
            assert value == pytest.approx(wins(sample.value[known], member[known]).mean(), abs=1e-12)


# H1
@pytest.mark.parametrize("mixed", [False, True])
def test_the_covariance_is_obuchowskis_definition(make_pools: Callable[..., list[Sample]], mixed: bool) -> None:
    samples = make_pools(3, (8, 11), size=4, rho=0.5, auc=0.65, mixed=mixed)
    member, group = samples[0].member, samples[0].group
    components = []
    for sample in samples:
        pairs = wins(sample.value, member)
        ours = [float(np.sum(pairs[group[member] == g] - pairs.mean())) / pairs.size for g in range(19)]
        theirs = [float(np.sum(pairs[:, group[~member] == g] - pairs.mean())) / pairs.size for g in range(19)]
        components.append((np.array(ours), np.array(theirs)))
    numbers = len(set(group[member])), len(set(group[~member])), 19
    one, two, both = (n / (n - 1) for n in numbers)
    found = obuchowski([rank(sample.value, member) for sample in samples], group)
    for i, (x, y) in enumerate(components):
        for j, (v, w) in enumerate(components):
            assert found[i, j] == pytest.approx(one * x @ v + two * y @ w + both * (x @ w + y @ v), rel=1e-9)


# H1
@pytest.mark.parametrize("mixed", [False, True])
def test_bootstrap_and_obuchowski_agree_on_clustered_rows(
    make_pools: Callable[..., list[Sample]], mixed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = make_pools(2, (330, 420), size=4, rho=0.5, auc=0.72, mixed=mixed)
    second = Sample("b", "b", False, 0.6 * first.value + 0.8 * second.value, *[getattr(first, f) for f in FIELDS])
    drawn = paired_aucs([first, second], seed=1)
    monkeypatch.setattr(roc, "LARGE", 0)
    approximated = paired_aucs([first, second], seed=1)
    assert drawn.resampled
    assert not approximated.resampled
    for i in range(2):
        one, two = drawn.interval(i), approximated.interval(i)
        assert two.high - two.low == pytest.approx(one.high - one.low, rel=0.1)
        assert two.low == pytest.approx(one.low, abs=0.1 * (one.high - one.low))
    differences = [np.std(aucs.draws[:, 0] - aucs.draws[:, 1]) for aucs in (drawn, approximated)]
    assert differences[0] == pytest.approx(differences[1], rel=0.1)


# H1
@pytest.mark.parametrize("truth", [0.5, 0.8])
@pytest.mark.parametrize("mixed", [False, True])
def test_obuchowski_intervals_cover_the_truth_95_times_in_100(
    make_pools: Callable[..., list[Sample]], truth: float, mixed: bool
) -> None:
    samples = make_pools(1500, (40, 40), size=4, rho=0.6, auc=truth, mixed=mixed, seed=2)
    group, covered, naive = samples[0].group, 0, 0
    for sample in samples:
        ranking = rank(sample.value, sample.member)
        for rows in (group, np.arange(group.size)):
            error = float(np.sqrt(obuchowski([ranking], rows)[0, 0]))
            hit = logit_t(ranking.auc, error, 40).covers(truth)
            covered, naive = (covered + hit, naive) if rows is group else (covered, naive + hit)
    assert 0.935 <= covered / 1500 <= 0.98
    # Ignoring the groups would be wrong: too sure of pure groups, too timid about mixed ones.
    assert naive / 1500 > 0.98 if mixed else naive / 1500 < 0.85


# H1
@pytest.mark.parametrize(("groups", "size"), [((10, 10), 3), ((25, 60), 1)])
@pytest.mark.parametrize("truth", [0.5, 0.8])
def test_bootstrap_intervals_cover_the_truth_with_few_groups(
    make_pools: Callable[..., list[Sample]], groups: tuple[int, int], size: int, truth: float
) -> None:
    samples = make_pools(400, groups, size=size, rho=0.6 if size > 1 else 0.0, auc=truth, seed=3)
    aucs = paired_aucs(samples, seed=0)
    assert sum(aucs.interval(i).covers(truth) for i in range(400)) / 400 >= 0.93


# H1
@pytest.mark.parametrize("n", [1, 3, 5, 30])
def test_perfect_separation_has_the_low_end_of_an_exact_bound(make_sample: Callable[..., Sample], n: int) -> None:
    sample = make_sample(np.arange(n) + 100, np.arange(n))
    aucs = paired_aucs([sample], seed=0)
    assert aucs.value[0] == 1
    assert aucs.interval(0) == pytest.approx((0.025 ** (1 / n), 1))
    assert aucs.p_value(0) == pytest.approx(min(1, 2 * 0.5**n))


# H1
@pytest.mark.parametrize("n", [1, 2, 3, 5, 9, 30])
def test_intervals_are_never_bare_points_and_contain_the_auc(make_sample: Callable[..., Sample], n: int) -> None:
    rng = np.random.default_rng(n)
    for scores in (rng.standard_normal(2 * n), np.ones(2 * n), rng.integers(2, size=2 * n)):
        aucs = paired_aucs([make_sample(scores[:n], scores[n:])], seed=0)
        low, high = aucs.interval(0)
        assert 0 <= low <= aucs.value[0] <= high <= 1
        # No narrower than what a fair coin flipped four times as often would allow.
        assert high - low > 0.5 / np.sqrt(4 * n)
    if n < 5:
        assert aucs.p_value(0) > 0.1


# H1
def test_many_rows_of_few_people_are_few(make_pools: Callable[..., list[Sample]]) -> None:
    (sample,) = make_pools(1, (3, 3), size=400, rho=0.9)
    aucs = paired_aucs([sample], seed=0)
    low, high = aucs.interval(0)
    assert aucs.groups[0] == pytest.approx(3)
    assert high - low > 0.7


def test_a_group_in_both_classes_serves_in_one_pair_only(make_pools: Callable[..., list[Sample]]) -> None:
    (sample,) = make_pools(1, (10, 10), size=2, mixed=True)
    assert paired_aucs([sample], seed=0).groups[0] == 10


# H1
def test_large_pools_use_the_variance_and_agree_with_a_bootstrap_of_them(
    make_pools: Callable[..., list[Sample]], monkeypatch: pytest.MonkeyPatch
) -> None:
    (sample,) = make_pools(1, (13_000, 13_000), size=2, rho=0.5, auc=0.53)
    aucs = paired_aucs([sample], seed=0)
    assert not aucs.resampled
    monkeypatch.setattr(roc, "LARGE", 10**6)
    drawn = paired_aucs([sample], seed=0, replicates=400)
    assert aucs.error(0) == pytest.approx(np.std(drawn.draws[:, 0]), rel=0.1)
    assert aucs.interval(0) == pytest.approx(drawn.interval(0), abs=0.1 * 4 * aucs.error(0))


def test_equal_calls_give_equal_bits(make_pools: Callable[..., list[Sample]]) -> None:
    samples = make_pools(3, (20, 20), size=2, rho=0.3)
    one, two, three = (paired_aucs(samples, seed, 300) for seed in (1, 1, 2))
    assert one.draws.tobytes() == two.draws.tobytes()
    assert one.covariance.tobytes() == two.covariance.tobytes()
    assert not np.array_equal(one.draws, three.draws)


def test_a_signal_has_the_same_replicates_whoever_is_measured_with_it(make_pools: Callable[..., list[Sample]]) -> None:
    samples = make_pools(3, (20, 20))
    assert np.array_equal(paired_aucs(samples, 1, 300).draws[:, 2], paired_aucs(samples[2:], 1, 300).draws[:, 0])


@pytest.mark.parametrize(
    ("members", "nonmembers", "says"), [(3, 0, "only members"), (0, 3, "only non-members"), (0, 0, "no records")]
)
def test_one_class_alone_is_refused_in_plain_words(
    make_sample: Callable[..., Sample], members: int, nonmembers: int, says: str
) -> None:
    with pytest.raises(BadInput, match=says):
        require_both_classes(make_sample(np.zeros(members), np.zeros(nonmembers), slice={"length": "short"}))
