"""Split: no group and no text in two parts, the same parts for the same seed, shares as asked."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leakmeter.core.errors import BadInput
from leakmeter.core.record import Record
from leakmeter.records.split import split

PARTS = {"train": 0.6, "holdout": 0.25, "population": 0.15}
RECORDS = st.lists(
    st.tuples(st.sampled_from([None, *"abcdefghijkl"]), st.integers(0, 30)), min_size=3, max_size=60
).map(lambda rows: [Record(f"r{i}", {"text": f"text {t}"}, group=g) for i, (g, t) in enumerate(rows)])


def together(records: list[Record], by: str) -> list[set[str]]:
    """From the definition: sets of ids that share a text or a group, joined until nothing changes."""
    units: list[tuple[set[str], set[object]]] = []
    for r in records:
        ids, marks = {r.id}, {r.fields["text"], *([("group", r.group)] if by == "group" and r.group else [])}
        for unit in [u for u in units if u[1] & marks]:
            units.remove(unit)
            ids, marks = ids | unit[0], marks | unit[1]
        units.append((ids, marks))
    return [ids for ids, _ in units]


@settings(deadline=None)
@given(records=RECORDS, seed=st.integers(0, 5), by=st.sampled_from(["group", "record"]))
def test_no_group_and_no_text_stands_in_two_parts(records, seed, by):
    units = together(records, by)
    if len(units) < len(PARTS):
        with pytest.raises(BadInput, match=f"hold only {len(units)} "):
            split(records, by, PARTS, seed)
        return
    parts = split(records, by, PARTS, seed)
    assert sorted(r.id for part in parts.values() for r in part) == sorted(r.id for r in records)
    place = {record.id: name for name, part in parts.items() for record in part}
    assert all(len({place[one] for one in unit}) == 1 for unit in units)
    for name, part in parts.items():
        assert part
        assert {record.split for record in part} == {name}


@settings(deadline=None)
@given(records=RECORDS, seed=st.integers(0, 5))
def test_the_order_of_the_records_does_not_matter(records, seed):
    if len(together(records, "group")) < len(PARTS):
        return
    parts = split(records, "group", PARTS, seed)
    shuffled = random.Random(seed).sample(records, len(records))
    again = split(shuffled, "group", PARTS, seed)
    assert {r.id: r.split for p in parts.values() for r in p} == {r.id: r.split for p in again.values() for r in p}


def people(n: int, texts: int = 3) -> list[Record]:
    return [Record(f"{g}-{i}", {"text": f"{g} wrote {i}"}, group=f"g{g}") for g in range(n) for i in range(texts)]


def test_parts_have_the_shares_asked_for():
    parts = split(people(1000), "group", PARTS, seed=1)
    assert {name: len(part) for name, part in parts.items()} == {"train": 1800, "holdout": 750, "population": 450}


def test_another_seed_gives_another_division():
    one, other = (split(people(200), "group", PARTS, seed)["holdout"] for seed in (0, 1))
    assert {r.group for r in one} != {r.group for r in other}


def test_a_few_more_records_move_few_others():
    before = split(people(1000), "group", PARTS, seed=0)
    after = split(people(1010), "group", PARTS, seed=0)
    place = {r.id: r.split for part in after.values() for r in part}
    moved = sum(place[r.id] != r.split for part in before.values() for r in part)
    assert moved <= 0.02 * 3000


def test_by_record_a_group_may_be_divided_but_equal_texts_stay_together():
    records = [Record(str(i), {"text": f"t{i // 2}"}, group="one") for i in range(200)]
    parts = split(records, "record", {"a": 0.5, "b": 0.5}, seed=0)
    assert [len(part) for part in parts.values()] == [100, 100]
    assert not {r.fields["text"] for r in parts["a"]} & {r.fields["text"] for r in parts["b"]}


def test_every_part_gets_something_while_there_are_groups_enough():
    parts = split(people(3), "group", {"train": 0.98, "holdout": 0.01, "population": 0.01}, seed=0)
    assert [len(part) for part in parts.values()] == [3, 3, 3]


@pytest.mark.parametrize(
    ("records", "by", "words"),
    [
        (people(2), "group", "2 groups .* 3 parts train, holdout, population.*split by record"),
        ([Record(str(i), {"text": "same"}, group=str(i)) for i in range(9)], "group", "only 1 groups that share no"),
        ([Record(str(i), {"text": "same"}) for i in range(9)], "record", "only 1 different texts"),
        ([], "group", "0 records"),
    ],
)
def test_too_few_groups_are_an_error_in_words(records, by, words):
    with pytest.raises(BadInput, match=words):
        split(records, by, PARTS, seed=0)


@pytest.mark.parametrize("parts", [{}, {"a": 0.5, "b": 0.4}, {"a": 1.2, "b": -0.2}, {"a": 1.0, "b": 0.0}])
def test_shares_that_are_none_are_refused(parts):
    with pytest.raises(BadInput, match="add up to 1"):
        split(people(9), "group", parts, seed=0)


def test_an_unknown_way_to_split_is_refused():
    with pytest.raises(BadInput, match="not by 'patient'"):
        split(people(9), "patient", PARTS, seed=0)
