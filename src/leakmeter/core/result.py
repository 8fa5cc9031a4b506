"""Results: what metrics make of scores. One schema, the same in Python and in results.json."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from leakmeter.core.attack import Scalar
from leakmeter.core.spec import Spec

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Sample:
    """The scores of one signal on one slice of the audited records, ready to be measured."""

    attack: str
    signal: str
    blind: bool
    value: Floats
    """Scores of audited records; higher means "leaks more". NaN: not scored."""
    member: Bools
    group: Ints
    """An ordinal per person, patient or author; rows of one group are not independent."""
    population: Floats
    """Scores of the population; empty where there is none."""
    population_group: Ints
    cross_fitted: bool = False
    """Whether each score comes from a model fitted on other rows' labels, so that scores hang together."""
    slice: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """One figure, with the interval that says how far to trust it."""

    attack: str
    signal: str
    metric: str
    value: float | None
    """None: not measurable here; `note` says why."""
    low: float | None = None
    high: float | None = None
    n: int = 0
    slice: Mapping[str, Scalar] = field(default_factory=dict)
    setting: Mapping[str, Scalar] = field(default_factory=dict)
    blind: bool = False
    note: str = ""
    series: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def to_json(self, series: bool = True) -> dict[str, Any]:
        names = [name for name in self.__slots__ if series or name != "series"]
        plain = {name: getattr(self, name) for name in names}
        return {k: dict(v) if isinstance(v, Mapping) else v for k, v in plain.items()}


class Metric(Spec, ABC):
    """A pure function of scores."""

    about: ClassVar[str] = ""

    @abstractmethod
    def measure(self, samples: Sequence[Sample], seed: int) -> Iterable[Result]:
        """Results for the samples of one slice: all signals at once, so that they can be compared in pairs."""
