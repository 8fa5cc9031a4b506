"""Power: what a run could have seen, from the size of its pools."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.special import betainc, betaincinv, ndtri, stdtrit

from leakmeter.core.result import Metric, Result, Sample
from leakmeter.metrics.intervals import ALPHA, chernoff_p
from leakmeter.metrics.rates import Rate, label, needed
from leakmeter.metrics.roc import FEW_GROUPS, independent_groups, obuchowski, rank, require_both_classes, unmeasurable


@dataclass(frozen=True, slots=True)
class Pools:
    """What the evaluated pools are worth in independent records, for the signal that makes least of them."""

    members: float
    nonmembers: float
    groups: float
    """Independent pairs of groups."""
    rows: int

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> Pools:
        """Rows divided by the design effect: the variance of the AUC over groups relative to independent rows."""
        group = np.unique(samples[0].group, return_inverse=True)[1]
        apart = np.arange(group.size)
        worth = []
        for sample in samples:
            ranking = rank(sample.value, sample.member)
            design = 1.0
            if group.max() + 1 < group.size and (alone := obuchowski([ranking], apart)[0, 0]) > 0:
                design = max(1.0, obuchowski([ranking], group)[0, 0] / alone)
            members, nonmembers = ranking.members.size, ranking.nonmembers.size
            groups = independent_groups(ranking, group)
            worth.append((members / design, nonmembers / design, groups, members + nonmembers))
        least = [min(figures) for figures in zip(*worth, strict=True)]
        return cls(max(least[0], 1.0), max(least[1], 1.0), least[2], int(least[3]))


def detectable_auc(pools: Pools, alpha: float, power: float) -> float | None:
    """The AUC whose p-value is below alpha with this probability; None: not even 1 would be.

    An AUC is seen when what at least this share of runs would find, z standard errors below it, is still t standard
    errors above 0.5. The errors are Hanley and McNeil's (1982). Where p-values come from `chernoff` (see
    `PairedAucs.fragile`), that must be below alpha as well.
    """
    t, z = -float(stdtrit(max(pools.groups - 1, 1.0), alpha / 2)), float(ndtri(power))

    def seen(auc: float) -> bool:
        found = auc - z * hanley_mcneil(auc, pools.members, pools.nonmembers)
        clear = found - 0.5 >= t * hanley_mcneil(found, pools.members, pools.nonmembers)
        bounded = pools.groups < FEW_GROUPS or pools.groups * (1 - auc) < 1
        return clear and not (bounded and chernoff_p(found, pools.groups) >= alpha)

    return _first(seen, 0.5, 1.0)


def hanley_mcneil(auc: float, members: float, nonmembers: float) -> float:
    """The standard error of an AUC for scores of an exponential kind."""
    one, two = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    spread = auc * (1 - auc) + (members - 1) * (one - auc**2) + (nonmembers - 1) * (two - auc**2)
    return math.sqrt(max(spread, 0.0) / (members * nonmembers))


def detectable_tpr(members: float, fpr: float, alpha: float, power: float) -> float | None:
    """The true-positive rate whose exact interval at level alpha lies above `fpr` with this probability."""
    counts = range(1, math.floor(members) + 1)
    least = 1 + bisect_left(counts, True, key=lambda hits: bool(betainc(hits, members - hits + 1, fpr) <= alpha / 2))
    return float(betaincinv(least, members - least + 1, power)) if least in counts else None


def _first(holds: Callable[[float], bool], low: float, high: float) -> float | None:
    """The point from which on something holds, by bisection."""
    if not holds(high):
        return None
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


class Power(Metric):
    """The smallest leakage that these pools would have shown, at the level of the strictest Holm step, alpha/m.

    detectable_auc     the smallest AUC told from 0.5 with the given power
    detectable_tpr@α   the smallest true-positive rate told from a false-positive rate of α
    """

    type: Literal["power"] = "power"
    fpr: tuple[Rate, ...] = (0.1, 0.01, 0.001)
    power: Rate = 0.8

    about: ClassVar[str] = "the smallest leakage these pools had the power to show"

    def measure(self, samples: Sequence[Sample], seed: int) -> Iterable[Result]:
        for sample in samples:
            require_both_classes(sample)
        asked = [sample for sample in samples if not sample.blind and not unmeasurable(sample)]
        if not asked:
            return
        pools, alpha, place = Pools.of(asked), ALPHA / len(asked), asked[0].slice
        family = f"{len(asked)} signals" if len(asked) > 1 else "one signal"
        basis = (
            f"with {100 * self.power:.3g} % power over {family}; the pools are worth "
            f"{pools.members:.0f} independent members and {pools.nonmembers:.0f} non-members"
        )
        value = detectable_auc(pools, alpha, self.power)
        note = basis if value is not None else f"no AUC at all would be told from 0.5 {basis}"
        yield Result("", "", "detectable_auc", value, n=pools.rows, slice=place, note=note)
        nonmembers = min(int(np.sum(~s.member & ~np.isnan(s.value))) for s in asked)
        for fpr in self.fpr:
            value, note = detectable_tpr(pools.members, fpr, alpha, self.power), basis
            if value is None:
                note = f"no true-positive rate at all would be told from {label(fpr)} {basis}"
            if nonmembers < needed(fpr):
                value, note = None, f"needs at least {needed(fpr)} non-members, has {nonmembers}"
            name = f"detectable_tpr@{label(fpr)}"
            yield Result("", "", name, value, n=pools.rows, slice=place, note=note)
