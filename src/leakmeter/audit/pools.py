"""Pools: who is a member, who is not, who is the population; and whether these may be compared at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl

from leakmeter.audit.config import AuditConfig
from leakmeter.audit.measure import Rows
from leakmeter.audit.trained import Trained
from leakmeter.core.errors import BadInput
from leakmeter.core.record import Record, Select
from leakmeter.records.overlap import overlap, require_distinct, warning
from leakmeter.text.passages import plain_text

RESERVED = {"record", "group", "split", "population", "member"}
MOST_VALUES = 20
LONGEST_VALUE = 32
"""The values of a slice and the names of splits stand in scores and reports, so they must be labels and not texts."""
FEW = 50
"""Fewer members or non-members than this are worth a warning."""


@dataclass(frozen=True)
class Pools:
    """The records that are asked about, in run order, with their membership in the target."""

    asked: Sequence[Record]
    member: Sequence[bool]
    population: Sequence[bool]
    group: Sequence[int]
    """An ordinal for each record's group."""

    def rows(self, slices: Sequence[str]) -> Rows:
        """Ordinals and labels; ids and groups stay behind."""
        return Rows(
            pl.DataFrame(
                {
                    "record": np.arange(len(self.asked), dtype=np.uint32),
                    "group": pl.Series(self.group, dtype=pl.UInt32),
                    "split": [record.split for record in self.asked],
                    "population": self.population,
                    "member": self.member,
                    **{name: pl.Series([r.fields.get(name) for r in self.asked], dtype=pl.String) for name in slices},
                }
            )
        )

    def names(self) -> pl.DataFrame:
        """The map from ordinals to ids and groups, which stays in the evidence."""
        return pl.DataFrame(
            {
                "record": np.arange(len(self.asked), dtype=np.uint32),
                "id": [record.id for record in self.asked],
                "group": [record.group for record in self.asked],
            },
            schema_overrides={"group": pl.String},
        )

    def counts(self) -> dict[str, int]:
        members = sum(m and not p for m, p in zip(self.member, self.population, strict=True))
        population = sum(self.population)
        return {
            "members": members,
            "non-members": len(self.asked) - members - population,
            "population": population,
            "groups": len(set(self.group)),
        }

    def warnings(self) -> list[str]:
        """What a reader must know about the pools, in counts only."""
        parts: dict[str, list[str]] = {"members": [], "non-members": [], "population": []}
        for record, member, population in zip(self.asked, self.member, self.population, strict=True):
            part = "population" if population else "members" if member else "non-members"
            parts[part].append(plain_text(record.fields))
        require_distinct(parts["members"], parts["non-members"])
        found = []
        for left, right in combinations(parts, 2):
            said = warning(overlap(parts[left], parts[right]))
            if said:
                found.append(f"{left.capitalize()} and {right}: {said}")
        few = [f"{len(texts)} {part}" for part, texts in parts.items() if part != "population" and len(texts) < FEW]
        if few:
            found.append(f"Only {' and '.join(few)}: intervals are wide and low false-positive rates cannot be seen.")
        return found


def divide(config: AuditConfig, records: Sequence[Record]) -> Pools:
    """Members and non-members of the target among the audited records, and the population beside them."""
    check_labels(config, records)
    selections = _selections(config)
    _refuse_overlaps(selections, records)
    target = next((spec for spec in config.models.get("target", ()) if isinstance(spec, Trained)), None)
    others = [on for role, on in selections if role not in ("target", "the population", "the audited records")]
    # A stable order by split: blocks never span two of them.
    rank = {split: i for i, split in enumerate(dict.fromkeys(record.split for record in records))}
    ordered = sorted(records, key=lambda r: rank[r.split])
    labels = target.membership(ordered) if target else [record.member for record in ordered]
    places: dict[tuple[str, bool | None], tuple[bool, bool]] = {}
    asked, member, population = [], [], []
    for record, label in zip(ordered, labels, strict=True):
        place = places.get((record.split, record.member))
        if place is None:  # a selection looks at these two alone, so one record decides for all like it
            audited = config.audit.takes(record) if config.audit else not any(s.takes(record) for s in others)
            place = places[record.split, record.member] = (config.population.takes(record), audited)
        in_population, audited = place
        if in_population and label:
            raise BadInput(
                f"The population (split '{record.split}') holds records that the target was trained on. It sets the "
                "thresholds and must be non-members: give it records of its own."
            )
        if not in_population:
            if not audited:
                continue
            if label is None and target:
                continue  # the target chose its epoch on it, so it is no fair member and no fair non-member
            if label is None:
                raise BadInput(
                    f"It is not known whether the records of split '{record.split}' were trained on. Give "
                    "`member: true` or `member: false` in the file or its `records:` entry, or use --members and "
                    "--nonmembers."
                )
        asked.append(record)
        member.append(bool(label) and not in_population)
        population.append(in_population)
    pools = Pools(asked, member, population, _ordinals(asked))
    counts = pools.counts()
    for part in ("members", "non-members"):
        if counts[part] == 0:
            raise BadInput(
                f"There are no {part} among the {len(asked)} audited records, so nothing can be told apart. An audit "
                "needs texts the target was trained on and texts it was not trained on."
            )
    return pools


def _ordinals(records: Sequence[Record]) -> list[int]:
    """A number for each group; a record without one is its own."""
    known: dict[str, int] = {}
    numbers = []
    alone = 0
    for record in records:
        if record.group is None:
            numbers.append(len(known) + alone)
            alone += 1
        else:
            number = known.get(record.group)
            if number is None:
                number = known[record.group] = len(known) + alone
            numbers.append(number)
    return numbers


def _selections(config: AuditConfig) -> list[tuple[str, Select]]:
    trained = [(role, spec.on) for role, specs in config.models.items() for spec in specs if isinstance(spec, Trained)]
    chosen = [("the audited records", config.audit)] if config.audit else []
    return [*trained, ("the population", config.population), *chosen]


def _refuse_overlaps(selections: Sequence[tuple[str, Select]], records: Sequence[Record]) -> None:
    """A reference or a population that saw the members would hide the leak it is there to show."""
    for (one, mine), (other, theirs) in combinations(selections, 2):
        if one == other or {one, other} == {"target", "the audited records"}:
            continue
        both = sum(mine.takes(record) and theirs.takes(record) for record in records)
        if both:
            raise BadInput(
                f"{both} records are both in the selection of {one} and in that of {other}. Give each its own split "
                "(`on: {split: […]}`, `population: {split: […]}`)."
            )


def check_labels(config: AuditConfig, records: Sequence[Record]) -> None:
    """Refuse splits and slices whose values might be somebody's text: they are shown, and never masked."""
    splits = {record.split for record in records}
    if len(splits) > MOST_VALUES or any(len(split) > LONGEST_VALUE for split in splits):
        raise BadInput(
            f"The records have {len(splits)} splits, or some with long names. A split is a label such as 'train' that "
            f"reports show: at most {MOST_VALUES} of them, each up to {LONGEST_VALUE} characters."
        )
    for name in config.slices:
        if name in RESERVED:
            raise BadInput(f"`slices: {name}` is not a field of the records; give the name of one of their columns.")
        held = [record.fields[name] for record in records if name in record.fields]
        values = set(held)
        if not values:
            raise BadInput(f"`slices: {name}`: no record has a field of that name.")
        if len(values) > MOST_VALUES or max(map(len, values)) > LONGEST_VALUE or 2 * len(values) > len(held):
            raise BadInput(
                f"`slices: {name}` has {len(values)} different values in {len(held)} records. A slice's values are "
                f"shown in the report, so it must be a label: at most {MOST_VALUES} values, each up to {LONGEST_VALUE} "
                "characters, and each on two records or more."
            )
