"""Scores to measure: the same records seen by one signal or by many."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from scipy.special import ndtri

from leakmeter.core.result import Floats, Ints, Result, Sample

MakeSample = Callable[..., Sample]
MakePools = Callable[..., list[Sample]]


@pytest.fixture
def make_sample() -> MakeSample:
    """A sample from the scores of members and of non-members; every row its own group unless told otherwise."""

    def make(
        members: Sequence[float] | Floats,
        nonmembers: Sequence[float] | Floats,
        group: Ints | None = None,
        population: Sequence[float] | Floats = (),
        **more: object,
    ) -> Sample:
        value = np.concatenate([np.asarray(members, np.float64), np.asarray(nonmembers, np.float64)])
        named = {"attack": "loss", "signal": "loss", "blind": False, **more}
        return Sample(
            value=value,
            member=np.arange(value.size) < len(members),
            group=np.arange(value.size) if group is None else group,
            population=np.asarray(population, np.float64),
            population_group=np.arange(len(population)),
            **named,  # type: ignore[arg-type]
        )

    return make


@pytest.fixture
def make_pools() -> MakePools:
    """Many independent signals with a given AUC on the same records, whose groups have `size` rows alike by `rho`."""

    def make(
        signals: int,
        groups: tuple[int, int],
        size: int = 1,
        rho: float = 0.0,
        auc: float = 0.5,
        mixed: bool = False,
        seed: int = 0,
    ) -> list[Sample]:
        rng = np.random.default_rng(seed)
        count = sum(groups)
        group = np.repeat(np.arange(count), size)
        member = group < groups[0] if not mixed else np.arange(group.size) % 2 == 0
        shift = np.sqrt(2) * ndtri(auc)
        samples = []
        for i in range(signals):
            own, shared = rng.standard_normal(group.size), rng.standard_normal(count)[group]
            value = np.sqrt(1 - rho) * own + np.sqrt(rho) * shared + shift * member
            nobody = np.zeros(0)
            samples.append(Sample("made", str(i), False, value, member, group, nobody, nobody.astype(np.int64)))
        return samples

    return make


@pytest.fixture
def find() -> Callable[..., Result]:
    """The one result with this metric (and signal)."""

    def one(results: Sequence[Result], metric: str, signal: str | None = None) -> Result:
        (result,) = [r for r in results if r.metric == metric and signal in (None, r.signal)]
        return result

    return one
