"""Results as a report looks them up: a panel for each setting and slice, in it a row for each signal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import isfinite
from typing import Any

from leakmeter.core.attack import Scalar
from leakmeter.core.errors import BadInput
from leakmeter.core.result import Result

Names = tuple[tuple[str, str], ...]
"""A slice or a setting as a value that can be compared: (name, value as text), sorted."""

CHANCE = 0.5


@dataclass(frozen=True, slots=True)
class Row:
    """Everything measured about one signal of one attack on one slice."""

    attack: str
    signal: str
    label: str
    blind: bool
    figures: Mapping[str, Result] = field(default_factory=dict)

    def measured(self, metric: str) -> Result | None:
        """The figure, where it is a number."""
        found = self.figures.get(metric)
        return found if found is not None and found.value is not None else None

    def shape(self) -> Result | None:
        """The histogram of its scores, where there is one."""
        found = self.figures.get("histogram")
        return found if found is not None and found.series.get("edges") else None

    def judged(self) -> Result | None:
        """The AUC with the interval that verdicts go by: the simultaneous one where there is one."""
        plain, wide = self.measured("auc"), self.measured("auc_simultaneous")
        return plain if plain is None or wide is None else replace(plain, low=wide.low, high=wide.high)

    def side(self) -> int:
        """1: above chance by that interval; −1: below; 0: it covers chance, or there is none."""
        return _side(self.judged(), CHANCE)

    def net_side(self) -> int:
        """The same for what it adds to the best row that never asked the model."""
        return _side(self.measured("net_auc"), 0.0)

    @property
    def auc(self) -> float:
        """The AUC to sort by; a signal without one sorts last."""
        found = self.measured("auc")
        return found.value if found is not None and found.value is not None else float("-inf")


def _side(result: Result | None, pivot: float) -> int:
    if result is None or result.low is None or result.high is None:
        return 0
    return int(result.low > pivot) - int(result.high < pivot)


def _less(bound: float | None) -> float | None:
    return None if bound is None else 1 - bound


@dataclass(frozen=True, slots=True)
class Panel:
    """The rows of one slice in one setting, the highest AUC first, and the figures about the slice as a whole."""

    setting: Mapping[str, Scalar]
    slice: Mapping[str, Scalar]
    rows: tuple[Row, ...]
    whole: Mapping[str, Result]

    @property
    def attacks(self) -> list[Row]:
        """The rows that asked the model."""
        return [row for row in self.rows if not row.blind]

    @property
    def controls(self) -> list[Row]:
        """The rows that never asked the model."""
        return [row for row in self.rows if row.blind]

    @property
    def best_control(self) -> Row | None:
        """The control that tells the two sets apart best, in whichever direction."""
        return max(
            (row for row in self.controls if row.measured("auc")), key=lambda row: abs(row.auc - CHANCE), default=None
        )

    def pools_differ(self) -> Result | None:
        """How well the best control tells the two sets apart, 0.5 to 1, where its interval excludes chance.

        The interval is the one corrected for having chosen among controls, where the results have it.
        """
        found, control = self.whole.get("pools_differ"), self.best_control
        if control is None:
            return None
        if found is None or found.value is None:
            auc = control.figures["auc"]
            found = (
                auc
                if control.auc >= CHANCE
                else replace(auc, value=1 - control.auc, low=_less(auc.high), high=_less(auc.low))
            )
        return found if _side(found, CHANCE) > 0 else None

    def row(self, attack: str, signal: str) -> Row | None:
        return next((row for row in self.rows if (row.attack, row.signal) == (attack, signal)), None)

    def size(self) -> tuple[int, int] | None:
        """How many members and non-members stand behind the figures, where a rate or a histogram tells."""
        for row in self.rows:
            for alpha in ("10%", "1%", "0.1%"):
                caught, accused = row.figures.get(f"tpr@{alpha}"), row.figures.get(f"fpr@{alpha}")
                if caught is not None and accused is not None and caught.n and accused.n:
                    return caught.n, accused.n
            shape = row.shape()
            if shape is not None and {"member", "nonmember"} <= shape.series.keys():
                return round(sum(shape.series["member"])), round(sum(shape.series["nonmember"]))
        return None


def read(document: Mapping[str, Any]) -> list[Result]:
    """The results of a results.json; unknown fields are left aside, so that a newer file can still be shown."""
    known = {f.name for f in fields(Result)}
    entries = document.get("results")
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        raise BadInput("This is no results.json: it has no list under 'results'. Render the results.json of a run.")
    results = []
    for position, entry in enumerate(entries):
        if isinstance(entry, Result):
            results.append(entry)
            continue
        if not isinstance(entry, Mapping) or not {"attack", "signal", "metric", "value"} <= entry.keys():
            raise BadInput(
                f"Result {position} of this results.json lacks one of attack, signal, metric, value. "
                "The file may be damaged; run the audit again, its answers are kept."
            )
        results.append(Result(**{name: value for name, value in entry.items() if name in known}))
    return results


def names(of: Mapping[str, Scalar]) -> Names:
    return tuple(sorted((name, str(value)) for name, value in of.items()))


def panels(results: Iterable[Result]) -> list[Panel]:
    """Results sorted into panels, in the order in which settings and slices first appear."""
    found: dict[tuple[Names, Names], list[Result]] = {}
    for result in results:
        found.setdefault((names(result.setting), names(result.slice)), []).append(result)
    return [_panel(group) for group in found.values()]


def _panel(group: Sequence[Result]) -> Panel:
    signals: dict[tuple[str, str], list[Result]] = {}
    for result in group:
        if result.attack:
            signals.setdefault((result.attack, result.signal), []).append(result)
    lone = {attack for attack, _ in signals if sum(other == attack for other, _ in signals) == 1}
    rows = [
        Row(
            attack=attack,
            signal=signal,
            label=attack if attack in lone else f"{attack} · {signal}",
            blind=any(result.blind for result in about),
            figures={result.metric: result for result in about},
        )
        for (attack, signal), about in signals.items()
    ]
    rows.sort(key=lambda row: (-row.auc, row.label))
    whole = {result.metric: result for result in group if not result.attack}
    return Panel(group[0].setting, group[0].slice, tuple(rows), whole)


def overall(found: Sequence[Panel]) -> list[Panel]:
    """One panel per setting: the one over everything, or where there is none the setting's first."""
    chosen: dict[Names, Panel] = {}
    for panel in found:
        key = names(panel.setting)
        if key not in chosen or (chosen[key].slice and not panel.slice):
            chosen[key] = panel
    return list(chosen.values())


def ordered(values: Iterable[str]) -> list[str]:
    """Slice values in their natural order: by number where all are numbers, otherwise as they came."""
    values = list(dict.fromkeys(values))
    return sorted(values, key=float) if numeric(values) else values


def numeric(values: Iterable[str]) -> bool:
    """Whether all values are numbers, so that they have an order to draw along."""
    try:
        return all(isfinite(float(value)) for value in values)
    except ValueError:
        return False
