"""Comparison: what is left of a signal once the best guess that never asked the target is taken off."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from leakmeter.core.result import Bools, Metric, Result, Sample
from leakmeter.metrics.intervals import ALPHA, Interval, hull
from leakmeter.metrics.roc import PairedAucs, expanded, paired_aucs, percentiles, scored, unmeasurable


class Net(Metric):
    """AUCs net of the best blind row, on the same records and the same resamples.

    net_auc        a signal's AUC minus the strength max(AUC, 1 − AUC) of the strongest blind row. The interval errs
                   on the careful side: its low end takes the strongest blind row anew in every replicate, its high end
                   keeps the row and direction found on all records.
    pools_differ   the strength of the strongest blind row, one figure for the pools; its interval is corrected for
                   having chosen among the blind rows. Above 0.5, members and non-members can be told apart unasked.

    Only records scored by the signal and by every blind row are compared.
    """

    type: Literal["net"] = "net"
    replicates: int = Field(default=1000, ge=200)

    about: ClassVar[str] = "AUC net of the best signal that never asks the target; whether the pools differ"

    def measure(self, samples: Sequence[Sample], seed: int) -> Iterable[Result]:
        blind = [sample for sample in samples if sample.blind and not unmeasurable(sample)]
        if not blind:
            return
        by_all = np.logical_and.reduce([scored(sample) for sample in blind])
        # Signals that scored the same records share one bootstrap; the first one also measures the blind rows.
        alike: dict[bytes, list[Sample]] = {by_all.tobytes(): []}
        for sample in samples:
            if not sample.blind:
                alike.setdefault((by_all & scored(sample)).tobytes(), []).append(sample)
        for turn, (rows, asked) in enumerate(alike.items()):
            everyone = [_on(np.frombuffer(rows, np.bool_), sample) for sample in (*blind, *asked)]
            reason = unmeasurable(everyone[-1])
            aucs = None if reason else paired_aucs(everyone, seed, self.replicates)
            if turn == 0:
                yield _pools_differ(blind, aucs, reason)
            for i, sample in enumerate(asked, len(blind)):
                yield _net(sample, blind, aucs, i, reason)


def _net(sample: Sample, blind: Sequence[Sample], aucs: PairedAucs | None, i: int, reason: str) -> Result:
    result = partial(Result, sample.attack, sample.signal, "net_auc", slice=sample.slice)
    if aucs is None:
        return result(None, note=f"{reason} by this signal and every blind row")
    best = _strongest(aucs, len(blind))
    row = f"{blind[best].attack}/{blind[best].signal}"
    low, high = _difference(aucs, i, best, len(blind))
    note = f"against {row}, which never asked the target"
    if low <= 0:
        note += "; not clearly above it, so this figure is no evidence of memorisation"
    value = float(aucs.value[i]) - strength(aucs, best)
    return result(value, low, high, int(aucs.rows[i]), note=note)


def _pools_differ(blind: Sequence[Sample], aucs: PairedAucs | None, reason: str) -> Result:
    """The strongest blind row as a statement about the pools."""
    result = partial(Result, "", "", "pools_differ", slice=blind[0].slice, blind=True)
    if aucs is None:
        return result(None, note=f"{reason} by every blind row")
    best = _strongest(aucs, len(blind))
    low, high = _strength_interval(aucs, best, ALPHA / len(blind))
    row = f"{blind[best].attack}/{blind[best].signal}"
    note = f"the best row that never asked the model is {row}"
    if low > 0.5:
        note = (
            f"the pools differ: {row} tells members from non-members without asking the model, so an attack that does "
            "no better is no evidence of memorisation"
        )
    return result(strength(aucs, best), low, high, int(aucs.rows[best]), note=note)


def _strongest(aucs: PairedAucs, blind: int) -> int:
    """The best of the first rows, which are the blind ones."""
    return int(np.argmax(np.abs(aucs.value[:blind] - 0.5)))


def strength(aucs: PairedAucs, i: int) -> float:
    """How well a signal tells the classes apart in either direction."""
    return 0.5 + abs(float(aucs.value[i]) - 0.5)


def _strength_interval(aucs: PairedAucs, i: int, alpha: float) -> Interval:
    """The interval of a strength, in the direction found on all records."""
    interval = aucs.interval(i, alpha)
    return interval if aucs.value[i] >= 0.5 else interval.mirrored()


def _difference(aucs: PairedAucs, i: int, best: int, blind: int) -> Interval:
    """The interval of a signal's AUC minus the strength of the best blind row."""
    value = float(aucs.value[i]) - strength(aucs, best)
    usable = aucs.draws[np.isfinite(aucs.draws).all(axis=1)]
    direction = 1.0 if aucs.value[best] >= 0.5 else -1.0
    chosen = usable[:, i] - 0.5 - direction * (usable[:, best] - 0.5)
    anew = usable[:, i] - 0.5 - np.abs(usable[:, :blind] - 0.5).max(axis=1)
    tail = expanded(ALPHA, float(min(aucs.groups[i], aucs.groups[best])))
    ends = [Interval(value, value)]
    if usable.size:
        ends.append(Interval(percentiles(anew, tail).low, percentiles(chosen, tail).high))
    if aucs.fragile(i) or aucs.fragile(best):
        # Both intervals are bounds here, not variances: their reaches are added as squares (Zou & Donner 2008).
        ours, theirs = aucs.interval(i), _strength_interval(aucs, best, ALPHA)
        down = np.hypot(aucs.value[i] - ours.low, theirs.high - strength(aucs, best))
        up = np.hypot(ours.high - aucs.value[i], strength(aucs, best) - theirs.low)
        ends.append(Interval(value - float(down), value + float(up)))
    return hull(*ends)


def _on(rows: Bools, sample: Sample) -> Sample:
    """The same sample on some of its rows."""
    if rows.all():
        return sample
    return replace(sample, value=sample.value[rows], member=sample.member[rows], group=sample.group[rows])
