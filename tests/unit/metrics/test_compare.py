"""Net of the best blind row: paired, careful, and in plain words when the pools differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from leakmeter.core.result import Result, Sample
from leakmeter.metrics import roc
from leakmeter.metrics.compare import Net
from leakmeter.metrics.roc import auc, paired_aucs

Make = Callable[..., list[Sample]]
Find = Callable[..., Result]


def blind(sample: Sample, name: str, shift: float = 0.0) -> Sample:
    return replace(sample, attack=name, signal=name, blind=True, value=sample.value + shift * sample.member)


# H4
def test_net_is_the_auc_minus_the_strength_of_the_best_blind_row(make_pools: Make, find: Find) -> None:
    one, two, three = make_pools(3, (120, 120))
    leak = replace(one, value=one.value + 1.5 * one.member, slice={"length": "long"})
    words, length = blind(two, "words", -0.8), blind(three, "length", 0.3)
    results = list(Net().measure([leak, words, length], seed=0))
    net = find(results, "net_auc")
    # H7: bag of words is below one half, and strong all the same.
    assert auc(words.value, words.member) < 0.5
    assert net.value == pytest.approx(auc(leak.value, leak.member) - (1 - auc(words.value, words.member)))
    assert "against words/words" in net.note
    assert (net.attack, net.signal, net.blind, net.n, net.slice) == ("made", "0", False, 240, {"length": "long"})
    assert net.low is not None
    assert 0 < net.low < (net.value or 0) < (net.high or 0)
    assert "no evidence" not in net.note


# H7
def test_a_blind_row_turned_upside_down_is_as_strong(make_pools: Make, find: Find) -> None:
    one, two = make_pools(2, (60, 60), auc=0.7)
    row = blind(two, "row")
    upright, reversed_ = (
        list(Net().measure([one, replace(row, value=sign * row.value)], seed=0)) for sign in (1.0, -1.0)
    )
    for metric in ("net_auc", "pools_differ"):
        ends = [(r.value, r.low, r.high) for r in (find(upright, metric), find(reversed_, metric))]
        assert ends[0] == pytest.approx(ends[1], abs=1e-12)


# H4
def test_a_signal_no_better_than_a_blind_row_is_no_evidence(make_pools: Make, find: Find) -> None:
    one, two = make_pools(2, (120, 120), auc=0.85)
    results = list(Net().measure([one, blind(two, "length")], seed=0))
    assert "no evidence of memorisation" in find(results, "net_auc").note
    pools = find(results, "pools_differ")
    assert (pools.attack, pools.signal, pools.n) == ("", "", 240)
    assert (pools.low or 0) > 0.5
    assert "the pools differ: length/length" in pools.note


# H4
def test_pools_that_do_not_differ_are_seldom_said_to(make_pools: Make, find: Find) -> None:
    said = 0
    for seed in range(60):
        rows = [blind(sample, str(i)) for i, sample in enumerate(make_pools(4, (50, 50), seed=seed))]
        pools = find(list(Net(replicates=200).measure(rows, seed=0)), "pools_differ")
        assert pools.value is not None
        assert pools.value >= 0.5
        assert (pools.low or 0) <= pools.value <= (pools.high or 0)
        said += "pools differ" in pools.note
    assert said <= 7  # the best of four rows, yet about 5 % of 60


# H4
def test_pairing_makes_the_interval_of_a_difference_short(make_pools: Make, find: Find) -> None:
    base, noise = make_pools(2, (150, 150), auc=0.75)
    copy = blind(replace(base, value=base.value + 0.1 * noise.value), "copy")
    net = find(list(Net().measure([base, copy], seed=0)), "net_auc")
    own = paired_aucs([base], seed=0).interval(0)
    assert (net.high or 0) - (net.low or 0) < 0.4 * (own.high - own.low)


# H1
@pytest.mark.parametrize("large", [False, True])
def test_the_interval_covers_the_true_difference(
    make_pools: Make, find: Find, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roc, "LARGE", 0 if large else 10**6)
    covered = 0
    for seed in range(150):
        one, two = make_pools(2, (40, 40), size=2, rho=0.5, auc=0.8, seed=seed)
        mild = blind(two, "mild", -0.6)
        net = find(list(Net(replicates=200).measure([one, mild], seed)), "net_auc")
        truth = 0.8 - float(ndtr(ndtri(0.8) - 0.6 / np.sqrt(2)))
        covered += (net.low or 0) <= truth <= (net.high or 0)
    assert covered >= 136


# H4
def test_the_low_end_lets_every_replicate_choose_its_blind_row(make_pools: Make, find: Find) -> None:
    asked, *others = make_pools(6, (60, 60), auc=0.6, seed=3)
    rows = [blind(sample, str(i)) for i, sample in enumerate(others)]
    found = find(list(Net().measure([asked, *rows], seed=0)), "net_auc")
    best = max(rows, key=lambda row: abs(auc(row.value, row.member) - 0.5))
    alone = find(list(Net().measure([asked, best], seed=0)), "net_auc")
    assert found.value == alone.value
    assert (found.low or 0) < (alone.low or 0)
    assert found.high == alone.high


def test_without_a_blind_row_there_is_nothing_to_compare(make_pools: Make) -> None:
    assert list(Net().measure(make_pools(2, (20, 20)), seed=0)) == []


def test_only_records_scored_by_both_are_compared(make_pools: Make, find: Find) -> None:
    one, two, three = make_pools(3, (40, 40), auc=0.7)
    gaps = np.arange(80) % 8 == 0
    holes = np.arange(80) % 10 == 1
    asked = replace(one, value=np.where(gaps, np.nan, one.value))
    row = blind(replace(two, value=np.where(holes, np.nan, two.value)), "row")
    results = list(Net().measure([asked, three, row], seed=0))
    both = ~gaps & ~holes
    expected = auc(one.value[both], one.member[both]) - max(s := auc(two.value[both], one.member[both]), 1 - s)
    assert find(results, "net_auc", "0").value == pytest.approx(expected)
    assert find(results, "net_auc", "0").n == both.sum()
    assert find(results, "net_auc", "2").n == (~holes).sum()
    assert find(results, "pools_differ").n == (~holes).sum()


def test_a_signal_without_common_records_says_so(make_pools: Make, find: Find) -> None:
    one, two = make_pools(2, (10, 10))
    asked = replace(one, value=np.where(one.member, one.value, np.nan))
    results = list(Net().measure([asked, blind(two, "row")], seed=0))
    assert find(results, "net_auc").value is None
    assert "no non-member was scored" in find(results, "net_auc").note
    assert find(results, "pools_differ").value is not None


# H1
@pytest.mark.parametrize("n", [1, 3, 5])
def test_tiny_pools_give_wide_differences(make_sample: Callable[..., Sample], find: Find, n: int) -> None:
    leak = make_sample(np.arange(n) + 10, np.arange(n))
    flat = make_sample(np.zeros(n), np.zeros(n), blind=True, signal="flat")
    net = find(list(Net().measure([leak, flat], seed=0)), "net_auc")
    assert net.value == 0.5
    assert (net.low or 0) < 0 < 0.5 <= (net.high or 0)


def test_equal_calls_give_equal_results(make_pools: Make) -> None:
    one, two = make_pools(2, (30, 30))
    runs = [list(Net().measure([one, blind(two, "row")], seed=9)) for _ in range(2)]
    assert runs[0] == runs[1]
