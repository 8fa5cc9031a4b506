"""ROC: how well scores tell members from non-members, and how far that may be trusted.

AUC is the share of (member, non-member) pairs in which the member scores higher, ties counting half (Mann–Whitney).
`paired_aucs` measures many signals on the same records at once, with the same resamples, so that they can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit, ndtr, stdtr, stdtrit

from leakmeter.core.errors import BadInput
from leakmeter.core.keys import generator
from leakmeter.core.result import Bools, Floats, Ints, Sample
from leakmeter.metrics.intervals import ALPHA, Interval, chernoff, chernoff_p, effective_groups, hull, logit_t

LARGE = 50_000
"""Rows above which the Obuchowski variance takes the place of the bootstrap."""
FEW_GROUPS = 8
"""Independent pairs of groups below which only `chernoff` is believed."""
TAIL = 5
"""Replicates that must lie beyond the end of a percentile interval for it to be used."""
CROSS_FITTED = np.sqrt(2.0)
"""How much wider the spread of a cross-fitted AUC is. Each pair of rows counts twice, once in fitting for the other and
once in being scored; near chance that doubles the variance, and a resampling of finished scores cannot see it."""
CHUNK = 16
"""Replicates computed at a time: few enough for the caches, and 16 × 50,000 rows × 8 bytes is 6 MB an array."""


def require_both_classes(sample: Sample) -> None:
    """Refuse a pool of members only, of non-members only, or of nothing."""
    members, rows = int(sample.member.sum()), sample.member.size
    if 0 < members < rows:
        return
    where = f" in the slice {dict(sample.slice)}" if sample.slice else ""
    if rows == 0:
        found = f"There are no records to measure{where}"
    else:
        found = f"The {rows} records{where} are only {'members' if members else 'non-members'}"
    raise BadInput(
        f"{found}. Telling members from non-members needs some of both: texts the model was trained on, and texts "
        "like them that it never saw. Give both pools, or check the column `member`."
    )


def scored(sample: Sample) -> Bools:
    """Which rows this signal has a score for."""
    return ~np.isnan(sample.value)


def unmeasurable(sample: Sample) -> str:
    """Why a signal has no AUC although the pools are fine: it scored only one of them. Empty: it has one."""
    member = sample.member[scored(sample)]
    if member.size == 0:
        return "not measurable: no record was scored"
    if member.all():
        return "not measurable: no non-member was scored"
    return "" if member.any() else "not measurable: no member was scored"


@dataclass(frozen=True, slots=True)
class Ranking:
    """The scored rows of one signal, each class in ascending order, and where each stands in the other."""

    members: Ints
    """Positions of the members' rows, by score."""
    nonmembers: Ints
    below: Ints
    """For each member: how many non-members score lower; `upto`: lower or equal."""
    upto: Ints
    above: Floats
    """For each non-member: the share of members that score higher, ties counting half."""

    @property
    def share(self) -> Floats:
        """For each member: the share of non-members that score lower, ties counting half."""
        return (self.below + self.upto) / (2.0 * self.nonmembers.size)

    @property
    def auc(self) -> float:
        # An exact sum of whole numbers: the same in whatever order the rows came.
        pairs = int(self.below.sum()) + int(self.upto.sum())
        return pairs / (2 * self.members.size * self.nonmembers.size)


def rank(value: Floats, member: Bools) -> Ranking:
    """Sort once; everything about the AUC follows from it. Rows without a score (NaN) are left out."""
    known = ~np.isnan(value)
    ours, theirs = np.flatnonzero(known & member), np.flatnonzero(known & ~member)
    ours = ours[np.argsort(value[ours])]
    theirs = theirs[np.argsort(value[theirs])]
    high, low = value[ours], value[theirs]
    lower, upto = np.searchsorted(high, low, "left"), np.searchsorted(high, low, "right")
    above = 1.0 - (lower + upto) / (2.0 * max(ours.size, 1))
    return Ranking(ours, theirs, np.searchsorted(low, high, "left"), np.searchsorted(low, high, "right"), above)


def auc(value: Floats, member: Bools) -> float:
    """The share of (member, non-member) pairs in which the member scores higher, ties counting half."""
    return rank(value, member).auc


def curve(value: Floats, member: Bools, points: int = 200) -> tuple[Floats, Floats]:
    """False- and true-positive rates over all thresholds, from (0, 0) to (1, 1), thinned to at most `points`.

    Thinning keeps true points of the curve: those nearest to a logarithmic grid of false-positive rates, so that a
    chart with a logarithmic axis keeps its shape down to one false positive, and to linear grids of both rates.
    """
    known = ~np.isnan(value)
    ours, theirs = np.sort(value[known & member]), np.sort(value[known & ~member])
    cuts = np.sort(np.concatenate([ours, theirs]))
    cuts = cuts[np.append(True, cuts[1:] != cuts[:-1])][::-1]
    true = np.append(0, ours.size - np.searchsorted(ours, cuts))
    false = np.append(0, theirs.size - np.searchsorted(theirs, cuts))
    fpr, tpr = false / max(false[-1], 1), true / max(true[-1], 1)
    if fpr.size > points:
        share = points // 4
        grid = np.concatenate([[0.0], np.geomspace(1 / false[-1], 1, points - 2 * share - 3), np.linspace(0, 1, share)])
        # Half a count above the grid, so that rounding never steps back over a false positive.
        across = np.searchsorted(false, grid * false[-1] + 0.5, "right") - 1
        up = np.searchsorted(true, np.linspace(0, 1, share) * true[-1], "left")
        keep = np.unique(np.concatenate([[0], across, up, [fpr.size - 1]]))
        fpr, tpr = fpr[keep], tpr[keep]
    return fpr, tpr


@dataclass(frozen=True, slots=True)
class PairedAucs:
    """The AUCs of several signals on the same records, with what is needed to compare them."""

    value: Floats
    rows: Ints
    """Rows used, per signal."""
    groups: Floats
    """Independent pairs of groups, per signal: see `independent_groups`."""
    covariance: Floats
    """Between signals, over groups (Obuchowski)."""
    draws: Floats
    """(replicates, signals): bootstrap replicates, or above `LARGE` rows draws from the normal approximation."""
    resampled: bool
    """Whether the draws are bootstrap replicates."""

    def error(self, i: int) -> float:
        """The standard error of one AUC."""
        return float(np.sqrt(max(self.covariance[i, i], 0.0)))

    def fragile(self, i: int) -> bool:
        """Whether a variance says too little here: few groups, less than one inversion per group, or no variation."""
        spare = min(self.value[i], 1 - self.value[i])
        return bool(self.groups[i] < FEW_GROUPS or self.groups[i] * spare < 1 or self.covariance[i, i] <= 0)

    def interval(self, i: int, alpha: float = ALPHA) -> Interval:
        """The interval of one AUC; it always contains the AUC.

        Up to `LARGE` rows: the percentiles of the group bootstrap, expanded for the number of groups. Above, or where
        the level is too fine for the replicates: Student's t on the logit scale with the Obuchowski variance. Where a
        variance says too little (`fragile`), the interval is widened to `chernoff`, which needs none.
        """
        value = float(self.value[i])
        ends = [Interval(value, value)]
        tail = expanded(alpha, float(self.groups[i]))
        draws = self.draws[:, i][np.isfinite(self.draws[:, i])]
        if self.resampled and tail / 2 * draws.size >= TAIL:
            ends.append(percentiles(draws, tail))
        else:
            ends.append(logit_t(value, self.error(i), float(self.groups[i]), alpha))
        if self.fragile(i):
            ends.append(chernoff(value, float(self.groups[i]), alpha))
        return hull(*ends)

    def p_value(self, i: int) -> float:
        """Two-sided, against 0.5: the Obuchowski variance over groups and Student's t with groups − 1 degrees.

        Not on the logit scale, where p-values of few groups would be too large. Where a variance says too little
        (`fragile`) the p-value of `chernoff` is taken if it is larger: 3 groups a class never give less than 0.25.
        """
        value, groups = float(self.value[i]), float(self.groups[i])
        p = 0.0
        if self.error(i) > 0:
            p = 2 * float(stdtr(max(groups - 1, 1.0), -abs(value - 0.5) / self.error(i)))
        return max(p, chernoff_p(value, groups)) if self.fragile(i) else p


def expanded(alpha: float, groups: float) -> float:
    """The level at which percentiles of a bootstrap over so many groups cover as often as they should.

    Percentile intervals are too short by about √((g−1)/g) and know no t distribution; Hesterberg (2015) asks for
    the percentiles of the level 2Φ(−t·√(g/(g−1))) instead.
    """
    freedom = max(groups - 1, 1.0)
    reach = -float(stdtrit(freedom, alpha / 2)) * np.sqrt((freedom + 1) / freedom)
    return 2 * float(ndtr(-reach))


def percentiles(draws: Floats, alpha: float) -> Interval:
    """The interval that leaves out alpha/2 of the draws at either end."""
    low, high = np.quantile(draws, [alpha / 2, 1 - alpha / 2])
    return Interval(float(low), float(high))


def paired_aucs(samples: Sequence[Sample], seed: int, replicates: int = 1000) -> PairedAucs:
    """The AUCs of signals on the same records. Equal calls give equal bits, whoever calls.

    Up to `LARGE` rows groups are resampled with replacement, the same groups for every signal; above, draws come from
    the normal approximation on the logit scale, with the covariance between signals.
    """
    first = samples[0]
    group = np.unique(first.group, return_inverse=True)[1]
    rankings = [rank(sample.value, sample.member) for sample in samples]
    value = np.array([ranking.auc for ranking in rankings])
    wider = np.array([CROSS_FITTED if sample.cross_fitted else 1.0 for sample in samples])
    covariance = obuchowski(rankings, group) * np.outer(wider, wider)
    rng = generator(seed, "bootstrap")
    if first.member.size <= LARGE:
        parts = [_aucs(rankings, group, weights) for weights in _resamples(group, first.member, replicates, rng)]
        draws = np.concatenate(parts)
        draws = np.clip(value + (draws - value) * wider, 0.0, 1.0)
    else:
        draws = _normal(value, covariance, rng.standard_normal((replicates, len(samples))))
    groups = np.array([independent_groups(ranking, group) for ranking in rankings])
    rows = np.array([r.members.size + r.nonmembers.size for r in rankings], np.int64)
    return PairedAucs(value, rows, groups, covariance, draws, first.member.size <= LARGE)


def independent_groups(ranking: Ranking, group: Ints) -> float:
    """How many independent (member, non-member) pairs of groups there are: what an AUC really rests on.

    The effective number of groups in the smaller class; a group in both classes cannot serve in two pairs.
    """
    ours, theirs = group[ranking.members], group[ranking.nonmembers]
    every = np.count_nonzero(np.bincount(np.concatenate([ours, theirs])))
    return min(effective_groups(ours), effective_groups(theirs), every / 2)


def obuchowski(rankings: Sequence[Ranking], group: Ints) -> Floats:
    """The covariance of AUCs whose rows come in groups, which may hold members, non-members or both.

    Obuchowski (1997): DeLong's placements, centred, are summed over each group; the covariance follows from the sums
    over members, the sums over non-members, and how the two go together within a group.
    """
    count = int(group.max()) + 1
    ours = np.zeros((len(rankings), count))
    theirs = np.zeros((len(rankings), count))
    factors = np.ones((3, len(rankings)))
    for i, ranking in enumerate(rankings):
        near, far = group[ranking.members], group[ranking.nonmembers]
        ours[i] = np.bincount(near, ranking.share - ranking.auc, count) / ranking.members.size
        theirs[i] = np.bincount(far, ranking.above - ranking.auc, count) / ranking.nonmembers.size
        seen = np.bincount(near, minlength=count) > 0, np.bincount(far, minlength=count) > 0
        numbers = (seen[0].sum(), seen[1].sum(), (seen[0] | seen[1]).sum())
        # One group alone shows no variation between groups: such an AUC is `fragile`, whatever stands here.
        factors[:, i] = [n / max(n - 1, 1) for n in numbers]
    # Plain loops instead of BLAS: the same bits whatever the number of threads.
    within = [np.einsum("ig,jg->ij", a, b) for a, b in ((ours, ours), (theirs, theirs), (ours, theirs))]
    scale = [np.sqrt(np.outer(f, f)) for f in factors]
    total: Floats = scale[0] * within[0] + scale[1] * within[1] + scale[2] * (within[2] + within[2].T)
    return total


def _resamples(group: Ints, member: Bools, replicates: int, rng: np.random.Generator) -> Iterator[Floats]:
    """How often each group was drawn, (replicates of one chunk, groups).

    Drawn within the groups that hold only members, only non-members, or both, so that no replicate lacks a class.
    """
    count = int(group.max()) + 1
    ours = np.bincount(group[member], minlength=count) > 0
    theirs = np.bincount(group[~member], minlength=count) > 0
    strata = [np.flatnonzero(kind) for kind in (ours & ~theirs, theirs & ~ours, ours & theirs)]
    for start in range(0, replicates, CHUNK):
        weights = np.zeros((min(CHUNK, replicates - start), count))
        for drawn in weights:
            for stratum in strata:
                if stratum.size:
                    drawn[stratum] = np.bincount(rng.integers(stratum.size, size=stratum.size), minlength=stratum.size)
        yield weights


def _aucs(rankings: Sequence[Ranking], group: Ints, weights: Floats) -> Floats:
    """The AUCs of one chunk of replicates, (replicates, signals); NaN where a signal has lost a class."""
    found = np.full((weights.shape[0], len(rankings)), np.nan)
    for i, ranking in enumerate(rankings):
        ours = weights.take(group[ranking.members], axis=1)
        theirs = weights.take(group[ranking.nonmembers], axis=1)
        lower = np.zeros((weights.shape[0], ranking.nonmembers.size + 1))
        np.cumsum(theirs, axis=1, out=lower[:, 1:])
        won = np.einsum("br,br->b", ours, lower.take(ranking.below, axis=1))
        tied = won
        if not np.array_equal(ranking.below, ranking.upto):
            tied = np.einsum("br,br->b", ours, lower.take(ranking.upto, axis=1))
        pairs = ours.sum(axis=1) * lower[:, -1]
        np.divide((won + tied) / 2, pairs, out=found[:, i], where=pairs > 0)
    return found


def _normal(value: Floats, covariance: Floats, standard: Floats) -> Floats:
    """Draws from the normal approximation, on the logit scale so that they stay within [0, 1]."""
    inside = np.clip(value, 1e-9, 1 - 1e-9)
    slope = 1 / (inside * (1 - inside))
    spread, axes = np.linalg.eigh(covariance * np.outer(slope, slope))
    reach = axes * np.sqrt(np.maximum(spread, 0))
    moved: Floats = expit(logit(inside) + np.einsum("bk,sk->bs", standard, reach))
    return moved
