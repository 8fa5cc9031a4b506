"""Split: records divided into parts such that no group, and no text, stands in two of them.

Groups are ranked by a hash of the seed and their name and dealt out in that order, so the same records always fall
the same way and a few more records move few others. Groups that share a text are one group here: a text in two parts
would be member and non-member at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isclose

import numpy as np

from leakmeter.core.errors import BadInput
from leakmeter.core.keys import digest
from leakmeter.core.record import Record
from leakmeter.text.passages import plain_text


def split(records: Sequence[Record], by: str, parts: Mapping[str, float], seed: int) -> dict[str, list[Record]]:
    """The records of each part, in their order, with `split` set to the part's name. Sizes count records.

    `by` is "group", where a record without a group stands alone, or "record", which keeps only equal texts together.
    """
    _check(by, parts)
    unit, rank = _units(records, by, seed)
    order = sorted(range(len(rank)), key=rank.__getitem__)
    if len(order) < len(parts):
        what = "groups that share no text" if by == "group" else "different texts"
        raise BadInput(
            f"{len(records):,} records hold only {len(order):,} {what}, too few for the {len(parts)} parts "
            f"{', '.join(parts)}. Ask for fewer parts" + (", or split by record." if by == "group" else ".")
        )
    names = list(parts)
    part_of = np.empty(len(order), dtype=np.int64)
    part_of[order] = _deal(np.bincount(unit)[order], list(parts.values()))
    dealt: dict[str, list[Record]] = {name: [] for name in names}
    for record, its_unit in zip(records, unit, strict=True):
        name = names[part_of[its_unit]]
        dealt[name].append(replace(record, split=name))
    return dealt


def _check(by: str, parts: Mapping[str, float]) -> None:
    if by not in ("group", "record"):
        raise BadInput(f"Records are split by 'group' or by 'record', not by '{by}'.")
    if not parts or min(parts.values()) <= 0 or not isclose(sum(parts.values()), 1, abs_tol=1e-6):
        given = ", ".join(f"{name} {share:g}" for name, share in parts.items())
        raise BadInput(f"The parts of a split should be positive shares that add up to 1, got: {given or 'none'}.")


def _units(records: Sequence[Record], by: str, seed: int) -> tuple[list[int], list[bytes]]:
    """For each record the unit that must stay together, and for each unit its rank."""
    parent: dict[bytes, bytes] = {}

    def root(key: bytes) -> bytes:
        while parent.setdefault(key, key) != key:
            parent[key] = key = parent[parent[key]]
        return key

    names = []
    for record in records:
        text = digest("text", plain_text(record.fields).strip())
        name = digest("group", record.group) if by == "group" and record.group is not None else text
        names.append(name)
        parent[root(text)] = root(name)
    number: dict[bytes, int] = {}
    unit = [number.setdefault(root(name), len(number)) for name in names]
    rank = [b"\xff" * 17] * len(number)
    for name, its_unit in zip(names, unit, strict=True):
        rank[its_unit] = min(rank[its_unit], digest(str(seed), "split", name.hex()))
    return unit, rank


def _deal(sizes: np.ndarray[tuple[int], np.dtype[np.int64]], shares: Sequence[float]) -> list[int]:
    """The part of each unit in turn: cut where the records so far come nearest to the shares, no part left empty."""
    so_far = np.concatenate([[0], np.cumsum(sizes)])
    cuts = [0]
    for i, share in enumerate(np.cumsum(shares)[:-1], start=1):
        nearest = int(np.abs(so_far - share * so_far[-1]).argmin())
        cuts.append(min(max(nearest, cuts[-1] + 1), len(sizes) - (len(shares) - i)))
    cuts.append(len(sizes))
    return [part for part in range(len(shares)) for _ in range(cuts[part + 1] - cuts[part])]
