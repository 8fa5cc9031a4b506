"""Shapes: how scores are spread, as counts for a histogram."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from leakmeter.core.result import Floats, Metric, Result, Sample


class Histogram(Metric):
    """Counts of members, non-members and population over the same bins; what lies outside is in the end bins.

    The bins span the 0.5th to the 99.5th percentile of all scores, so that one outlier does not flatten the picture.
    """

    type: Literal["histogram"] = "histogram"
    bins: int = Field(default=40, ge=1)

    about: ClassVar[str] = "how the scores of members, non-members and population are spread"

    def measure(self, samples: Sequence[Sample], seed: int) -> Iterable[Result]:
        for sample in samples:
            known = ~np.isnan(sample.value)
            parts = {
                "member": sample.value[known & sample.member],
                "nonmember": sample.value[known & ~sample.member],
                "population": sample.population[~np.isnan(sample.population)],
            }
            edges = _edges(np.concatenate(list(parts.values())), self.bins)
            series = {"edges": edges.tolist()}
            for name, scores in parts.items():
                counts = np.histogram(np.clip(scores, edges[0], edges[-1]), edges)[0]
                series[name] = counts.tolist() if scores.size else []
            yield Result(
                sample.attack,
                sample.signal,
                "histogram",
                None,
                n=int(known.sum()),
                slice=sample.slice,
                blind=sample.blind,
                series=series,
            )


def _edges(scores: Floats, bins: int) -> Floats:
    finite = scores[np.isfinite(scores)]
    low, high = np.percentile(finite, [0.5, 99.5]) if finite.size else (0.0, 0.0)
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        # All scores alike: one bin's worth of room on either side, whatever their size.
        room = max(abs(low), 1.0) / 2
        low, high = low - room, high + room
    return np.linspace(low, high, bins + 1)
