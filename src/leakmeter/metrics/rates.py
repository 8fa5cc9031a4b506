"""Rates: what an attacker gets who calls a record a member above a threshold fixed beforehand.

The threshold for a false-positive rate α comes from records that are not evaluated: the population, or without one
the other half of the non-members. With m such scores it is the ⌈(1−α)(m+1)⌉-th smallest, and a record is called a
member if it scores higher; so a new non-member is called one with probability at most α, ties included.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from leakmeter.core.keys import generator
from leakmeter.core.result import Bools, Floats, Ints, Metric, Result, Sample
from leakmeter.metrics.intervals import Interval, rate_interval
from leakmeter.metrics.roc import require_both_classes, scored

Rate = Annotated[float, Field(gt=0, lt=1)]
ROUNDING = 1e-9
"""Keeps (1 − 0.1) · 10 from being a little more than 9."""


def label(alpha: float) -> str:
    """0.1 → 10%, 0.001 → 0.1%."""
    return f"{100 * alpha:.10g}%"


def needed(alpha: float) -> int:
    """The number of non-members below which a rate of alpha cannot be seen: one of them is already more."""
    return math.ceil(1 / alpha - ROUNDING)


def threshold(scores: Floats, alpha: float) -> float | None:
    """The score that a non-member exceeds with probability at most alpha; None: too few scores to know one."""
    position = math.ceil((1 - alpha) * (scores.size + 1) - ROUNDING)
    return float(np.partition(scores, position - 1)[position - 1]) if position <= scores.size else None


def halves(sample: Sample, seed: int) -> Bools:
    """Which half each row is in: groups stay whole, and the groups with non-members are shared out evenly."""
    names, group = np.unique(sample.group, return_inverse=True)
    holds = np.bincount(group, ~sample.member, names.size) > 0
    shuffled = generator(seed, "halves").permutation(names.size)
    order = shuffled[np.argsort(~holds[shuffled], kind="stable")]
    second = np.zeros(names.size, np.bool_)
    second[order[1::2]] = True
    return second[group]


class Calls(NamedTuple):
    """Which rows an attacker calls members, and what is to be said about it."""

    called: Bools
    note: str = ""
    threshold: float | None = None


@dataclass(frozen=True, slots=True)
class Pool:
    """The scored rows of one signal, and the scores that thresholds come from."""

    value: Floats
    member: Bools
    group: Ints
    half: Bools
    """Without a population: which half a row is in."""
    population: Floats
    population_group: Ints

    @classmethod
    def of(cls, sample: Sample, seed: int) -> Pool:
        rows, others = scored(sample), ~np.isnan(sample.population)
        group = np.unique(sample.group[rows], return_inverse=True)[1]
        other = np.unique(sample.population_group[others], return_inverse=True)[1]
        half = np.zeros(group.size, np.bool_) if others.any() else halves(sample, seed)[rows]
        return cls(sample.value[rows], sample.member[rows], group, half, sample.population[others], other)

    def calls(self, alpha: float) -> Calls | str:
        """Who is called a member at this rate; or in words why nobody can say."""
        nonmembers = int(np.sum(~self.member))
        # Without a population, each half of the non-members must be able to set the other's threshold.
        least = needed(alpha) if self.population.size else max(needed(alpha), 2 * (needed(alpha) - 1))
        if nonmembers < least:
            return f"needs at least {least} non-members, has {nonmembers}"
        if self.population.size:
            fixed = threshold(self.population, alpha)
            if fixed is None:
                return f"needs at least {needed(alpha) - 1} records in the population, has {self.population.size}"
            return Calls(self.value > fixed, threshold=fixed)
        first, second = (threshold(self.value[~self.member & (self.half == half)], alpha) for half in (False, True))
        if first is None or second is None:
            return "needs more groups of non-members: these do not fall into two halves of sufficient size"
        called = self.value > np.where(self.half, first, second)
        return Calls(called, "thresholds cross-fitted: each half's from the other half's non-members")

    def share(self, hit: Bools, rows: Bools) -> tuple[float | None, float, float]:
        """The share of hits among these rows with its interval; no rows: anything is possible."""
        interval = rate_interval(hit[rows], self.group[rows])
        return (float(hit[rows].mean()) if rows.any() else None, *interval)

    def doubt(self, alpha: float, achieved: Interval, calls: Calls) -> str:
        """What to say when the nominal rate is not among those the non-members allow."""
        if achieved.covers(alpha) or calls.threshold is None:
            return ""
        own = rate_interval(self.population > calls.threshold, self.population_group)
        if own.low <= achieved.high and achieved.low <= own.high:
            return f"a population of {self.population.size} records is too small to hit this rate more closely"
        more = "more" if achieved.low > alpha else "less"
        return f"population and non-members differ: non-members pass the threshold {more} often than the population"


class Rates(Metric):
    """What happens at thresholds for given false-positive rates.

    tpr@α         the share of members called members (the same as recall)
    fpr@α         the share of non-members called members: the rate achieved, beside the nominal α
    precision@α   the share of members among those called members, in pools mixed as these are
    threshold@α   the score above which a record is called a member; none where thresholds are cross-fitted

    A rate finer than one non-member is no number here: the note says how many it would need.
    """

    type: Literal["rates"] = "rates"
    fpr: tuple[Rate, ...] = (0.1, 0.01, 0.001)

    about: ClassVar[str] = "true-positive rate, achieved false-positive rate and precision at fixed thresholds"

    def measure(self, samples: Sequence[Sample], seed: int) -> Iterable[Result]:
        for sample in samples:
            require_both_classes(sample)
            pool = Pool.of(sample, seed)
            result = partial(Result, sample.attack, sample.signal, slice=sample.slice, blind=sample.blind)
            for alpha in self.fpr:
                yield from _measured(result, pool, alpha)


def _measured(result: Callable[..., Result], pool: Pool, alpha: float) -> Iterable[Result]:
    """The results of one signal at one rate."""
    at, calls = "@" + label(alpha), pool.calls(alpha)
    members, nonmembers = int(np.sum(pool.member)), int(np.sum(~pool.member))
    if isinstance(calls, str):
        yield result("tpr" + at, None, n=members, note=calls)
        yield result("fpr" + at, None, n=nonmembers, note=calls)
        yield result("precision" + at, None, note=calls)
        return
    fpr = pool.share(calls.called, ~pool.member)
    note = calls.note or pool.doubt(alpha, Interval(fpr[1], fpr[2]), calls)
    mixed = f"members are {100 * members / pool.member.size:.3g} % of these records"
    found = int(np.sum(calls.called))
    yield result("tpr" + at, *pool.share(calls.called, pool.member), members, note=note)
    yield result("fpr" + at, *fpr, nonmembers, note=note)
    yield result(
        "precision" + at,
        *pool.share(pool.member, calls.called),
        found,
        note=mixed if found else "nobody was called a member",
    )
    if calls.threshold is not None:
        # A score may be infinite; a figure in a JSON file may not.
        finite = math.isfinite(calls.threshold)
        value, why = (calls.threshold, "") if finite else (None, "the threshold is infinite")
        yield result("threshold" + at, value, n=pool.population.size, note=why)
