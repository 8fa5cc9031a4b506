"""Intervals: how far a figure may be trusted, from what was counted.

Rates     Clopper–Pearson, exact; at the effective number of rows where rows come in groups (Korn & Graubard 1998).
AUC       `logit_t` where groups are many; `chernoff` where they are few or agree too well for a variance to speak.
          (The bootstrap is in roc.py.)
p-values  Holm's step-down correction.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, expit, logit, stdtrit

from leakmeter.core.result import Bools, Floats, Ints

ALPHA = 0.05
"""One minus the level of every interval, two-sided."""


class Interval(NamedTuple):
    """The values that the data do not contradict."""

    low: float
    high: float

    def covers(self, value: float) -> bool:
        return self.low <= value <= self.high

    def mirrored(self) -> Interval:
        """The interval of 1 − x."""
        return Interval(1 - self.high, 1 - self.low)


def hull(*intervals: Interval) -> Interval:
    """The shortest interval that contains all of these."""
    return Interval(min(i.low for i in intervals), max(i.high for i in intervals))


def clopper_pearson(hits: ArrayLike, trials: ArrayLike, alpha: float = ALPHA) -> tuple[Floats, Floats]:
    """The exact intervals of many binomial rates at once. Counts need not be whole: an effective n seldom is.

    Without a hit the low end is 0, without a miss the high end is 1, without a trial the interval is [0, 1].
    """
    hit, trial = np.broadcast_arrays(np.asarray(hits, np.float64), np.asarray(trials, np.float64))
    miss = trial - hit
    with np.errstate(invalid="ignore"):
        low = np.where(hit > 0, betaincinv(hit, miss + 1, alpha / 2), 0.0)
        high = np.where(miss > 0, betaincinv(hit + 1, miss, 1 - alpha / 2), 1.0)
    return low, high


def rate_interval(hit: Bools, group: Ints, alpha: float = ALPHA) -> Interval:
    """The exact interval of the share of hits among rows that come in groups.

    Where no group has two rows this is Clopper–Pearson. Otherwise it is Clopper–Pearson at Korn and Graubard's
    effective number of rows, n / deff · (t₍n−1₎ / t₍G−1₎)², deff ≥ 1 being the variance of the rate over G groups
    relative to independent rows. With all hits or none, nothing shows how alike a group's rows are: then a group
    counts once.
    """
    n, size = hit.size, np.bincount(group)
    hits = np.bincount(group, weights=hit, minlength=size.size)
    groups, rate = int(np.count_nonzero(size)), float(hit.mean()) if n else 0.0
    effective = float(n)
    if groups < n and (groups == 1 or rate in (0.0, 1.0)):
        effective = effective_groups(group)
    elif groups < n:
        between = groups / (groups - 1) * float(np.sum((hits - size * rate) ** 2)) / n**2
        design = max(1.0, between / (rate * (1 - rate) / n))
        penalty = float(stdtrit(n - 1, alpha / 2) / stdtrit(groups - 1, alpha / 2)) ** 2
        effective = n / design * penalty
    low, high = clopper_pearson(rate * effective, effective, alpha)
    return Interval(float(low), float(high))


def effective_groups(group: Ints) -> float:
    """How many groups of equal size these rows are worth: (Σ size)² / Σ size² (Kish)."""
    size = np.bincount(group).astype(np.float64)
    return float(size.sum() ** 2 / np.sum(size**2)) if group.size else 0.0


def logit_t(value: float, error: float, groups: float, alpha: float = ALPHA) -> Interval:
    """The interval of an AUC from its standard error: Student's t with groups − 1 degrees, on the logit scale."""
    if not 0 < value < 1:
        return Interval(value, value)
    reach = -float(stdtrit(max(groups - 1, 1.0), alpha / 2)) * error / (value * (1 - value))
    centre = float(logit(value))
    return Interval(float(expit(centre - reach)), float(expit(centre + reach)))


def chernoff(value: float, groups: float, alpha: float = ALPHA) -> Interval:
    """The interval of an AUC that holds for any scores, from the number of groups in the smaller class alone.

    An AUC is an average over ways of pairing members with non-members, and each way has `groups` independent pairs;
    by Hoeffding (1963) its tails are at most those of Chernoff's bound for so many coin flips. So the interval is
    {x : groups · KL(value ‖ x) ≤ ln(2/alpha)}; for a value of 1 its low end is (alpha/2)^(1/groups).
    """
    if groups <= 0:
        return Interval(0.0, 1.0)
    budget = math.log(2 / alpha) / groups
    low, high = (_furthest(value, end, budget) for end in (0.0, 1.0))
    return Interval(low, high)


def chernoff_p(value: float, groups: float) -> float:
    """The p-value against 0.5 that belongs to `chernoff`."""
    return min(1.0, 2 * math.exp(-groups * _divergence(value, 0.5)))


def _divergence(value: float, other: float) -> float:
    """The Kullback–Leibler divergence between two coins."""
    pairs = ((value, other), (1 - value, 1 - other))
    return sum(p * math.log(p / q) if q > 0 else math.inf for p, q in pairs if p > 0)


def _furthest(value: float, end: float, budget: float) -> float:
    """The point towards `end` at which the divergence from `value` reaches the budget, by bisection."""
    near, far = value, end
    for _ in range(60):
        middle = (near + far) / 2
        if _divergence(value, middle) <= budget:
            near = middle
        else:
            far = middle
    return near if _divergence(value, end) > budget else end


def holm(p: ArrayLike) -> Floats:
    """Holm's adjusted p-values: the k-th smallest of m times m − k + 1, never below the ones before it."""
    raw = np.asarray(p, np.float64)
    order = np.argsort(raw, kind="stable")
    scaled = raw[order] * np.arange(raw.size, 0, -1)
    adjusted = np.empty_like(raw)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(scaled)) if raw.size else scaled
    return adjusted
