"""AUC: how well each signal tells members from non-members, whether that could be chance, and its ROC curve."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import ClassVar, Literal

from pydantic import Field

from leakmeter.core.result import Metric, Result, Sample
from leakmeter.metrics.intervals import ALPHA, Interval, holm, hull
from leakmeter.metrics.roc import PairedAucs, curve, paired_aucs, require_both_classes, unmeasurable


class Auc(Metric):
    """The area under the ROC curve, two-sided: far below 0.5 is information too.

    auc                with its interval (see `PairedAucs.interval`) and its curve as a series
    p                  against 0.5, two-sided: Student's t on the Obuchowski variance over groups; with few groups a
                       bound that no score can make small (see `PairedAucs.p_value`)
    p_holm             corrected for the number of signals that asked the target
    auc_simultaneous   the interval at the level alpha/m for m such signals: that all of them cover the truth has 95 %
    """

    type: Literal["auc"] = "auc"
    replicates: int = Field(default=1000, ge=200)

    about: ClassVar[str] = "area under the ROC curve, with interval, p-value, Holm-corrected p-value and curve"

    def measure(self, samples: Sequence[Sample], seed: int) -> Iterable[Result]:
        for sample in samples:
            require_both_classes(sample)
        measurable = [sample for sample in samples if not unmeasurable(sample)]
        for sample in samples:
            if reason := unmeasurable(sample):
                yield Result(
                    sample.attack, sample.signal, "auc", None, slice=sample.slice, blind=sample.blind, note=reason
                )
        if measurable:
            aucs = paired_aucs(measurable, seed, self.replicates)
            p = [aucs.p_value(i) for i in range(len(measurable))]
            asked = [i for i, sample in enumerate(measurable) if not sample.blind]
            adjusted = dict(zip(asked, holm([p[i] for i in asked]).tolist(), strict=True))
            for i, sample in enumerate(measurable):
                result = partial(
                    Result, sample.attack, sample.signal, n=int(aucs.rows[i]), slice=sample.slice, blind=sample.blind
                )
                value, interval = float(aucs.value[i]), aucs.interval(i)
                fpr, tpr = curve(sample.value, sample.member)
                series = {"fpr": fpr.tolist(), "tpr": tpr.tolist()}
                yield result("auc", value, *interval, note=_note(aucs, i, interval), series=series)
                yield result("p", p[i])
                if i in adjusted:
                    family = f"corrected for {len(asked)} signals that asked the target"
                    yield result("p_holm", adjusted[i], note=family)
                    # The hull keeps the family's interval from being shorter than the signal's own.
                    wide = hull(interval, aucs.interval(i, ALPHA / len(asked)))
                    yield result("auc_simultaneous", value, *wide, note=family)


def _note(aucs: PairedAucs, i: int, interval: Interval) -> str:
    notes = []
    if interval.high < 0.5:
        notes.append("below chance: members score lower than non-members, so the signal tells them apart the wrong way")
    if aucs.fragile(i):
        notes.append("few groups or hardly any inversion: the interval is a bound that holds for any scores")
    return "; ".join(notes)
