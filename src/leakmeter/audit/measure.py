"""From scores to results: slices are cut, metrics are applied. The same for an audit and for `evaluate`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np
import polars as pl

from leakmeter.core.attack import Scalar
from leakmeter.core.result import Bools, Metric, Result, Sample


@dataclass(frozen=True)
class Rows:
    """What is known about the scored records: ordinals and labels, no ids and no text."""

    frame: pl.DataFrame
    """record, group (ordinals), split, population, member; then a column per sliced field."""

    @property
    def audited(self) -> pl.DataFrame:
        return self.frame.filter(~pl.col("population"))

    def hidden(self) -> pl.DataFrame:
        """The same with the labels of audited rows blanked, as `judge` sees them; a split's name is a label too."""
        return self.frame.with_columns(
            member=pl.when("population").then("member").otherwise(None),
            split=pl.when("population").then("split").otherwise(pl.lit("audit")),
        )


@dataclass(frozen=True)
class Scored:
    """The scores of one attack: a column per signal, a row per record of `Rows`, in the same order."""

    attack: str
    blind: bool
    cross_fitted: bool
    scores: pl.DataFrame

    @property
    def signals(self) -> list[str]:
        return [name for name, kind in self.scores.schema.items() if name != "record" and kind.is_numeric()]


def samples(rows: Rows, scored: Sequence[Scored], where: Bools, cut: Mapping[str, Scalar]) -> list[Sample]:
    """Every signal on the audited rows of `where`, with the whole population."""
    population = rows.frame["population"].to_numpy()
    keep = where & ~population
    group = rows.frame["group"].to_numpy().astype(np.int64)
    member = rows.frame["member"].fill_null(False).to_numpy()
    made = []
    for one in scored:
        for signal in one.signals:
            value = one.scores[signal].cast(pl.Float64).fill_null(np.nan).to_numpy()
            made.append(
                Sample(one.attack, signal, one.blind, value[keep], member[keep], group[keep],
                       value[population], group[population], one.cross_fitted, cut)
            )  # fmt: skip
    return made


def slices(rows: Rows, fields: Sequence[str]) -> Iterator[tuple[dict[str, Scalar], Bools]]:
    """All rows; members against each pool of non-members where there are several; members by the value of a field."""
    frame = rows.frame
    member = frame["member"].fill_null(False).to_numpy()
    outside = ~member & ~frame["population"].to_numpy()
    yield {}, np.ones(frame.height, dtype=bool)
    pools = frame.filter(pl.Series(outside))["split"].unique(maintain_order=True).to_list()
    if len(pools) > 1:
        for pool in pools:
            yield {"pool": pool}, member | (outside & (frame["split"] == pool).to_numpy())
    for name in fields:
        values = frame.filter(pl.Series(member))[name].drop_nulls().unique().to_list()
        for value in sorted(values, key=_natural):
            yield {name: value}, (member & (frame[name] == value).fill_null(False).to_numpy()) | outside


def _natural(value: str) -> tuple[float, str]:
    """Numbers by size, before words; equal numbers by spelling, so that the order is always the same."""
    try:
        number = float(value)
    except ValueError:
        return float("inf"), value
    return number if isfinite(number) else float("inf"), value


def measure(
    rows: Rows, scored: Sequence[Scored], metrics: Iterable[Metric], fields: Sequence[str], seed: int
) -> list[Result]:
    """Every metric on every slice; the population and the blind rows come along in each."""
    metrics = list(metrics)
    results: list[Result] = []
    for cut, where in slices(rows, fields):
        mine = samples(rows, scored, where, cut)
        for metric in metrics:
            results.extend(metric.measure(mine, seed))
    return results


def with_setting(results: Iterable[Result], setting: Mapping[str, Scalar]) -> list[Result]:
    return [replace(result, setting=dict(setting)) for result in results]
