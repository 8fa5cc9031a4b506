"""Who is a member is settled before anything is asked, and comparisons that cannot be fair are refused."""

from __future__ import annotations

from typing import Any

import pytest

from leakmeter.audit.config import AuditConfig
from leakmeter.audit.pools import divide
from leakmeter.audit.trained import Trained
from leakmeter.core.errors import BadInput
from leakmeter.core.record import Record, Select
from leakmeter.models.ngram import NGram
from leakmeter.training.architecture import Architecture
from leakmeter.training.recipe import Recipe


def record(i: int, split: str, member: bool | None = None, group: str | None = None) -> Record:
    return Record(f"{split}{i}", {"text": f"{split} text number {i}"}, member=member, group=group, split=split)


def config(tmp_path: Any, **more: Any) -> AuditConfig:
    (tmp_path / "lines.txt").write_text("a\n")
    return AuditConfig(**{"models": {"target": (NGram(path=tmp_path / "lines.txt"),)}, "metrics": (), **more})


def trained(*splits: str, validation: float = 0.0) -> Trained:
    return Trained(on=Select(split=splits), architecture=Architecture(), recipe=Recipe(validation=validation))


def test_membership_in_a_model_we_train_follows_from_its_selection(tmp_path: Any) -> None:
    pools = divide(
        config(tmp_path, models={"target": (trained("a"),), "reference": (trained("c"),)}),
        [record(i, split, member=False) for split in "abc" for i in range(3)],
    )
    assert [r.split for r in pools.asked] == ["a"] * 3 + ["b"] * 3
    assert list(pools.member) == [True] * 3 + [False] * 3


def test_what_a_target_validates_on_is_neither_member_nor_non_member(tmp_path: Any) -> None:
    pools = divide(
        config(tmp_path, models={"target": (trained("a", validation=0.2),)}),
        [record(i, split) for split in "ab" for i in range(20)],
    )
    assert pools.counts()["members"] == 16
    assert pools.counts()["non-members"] == 20


@pytest.mark.parametrize("other", [{"reference": (trained("b", "a"),)}, {"shadow": (trained("a"),)}])
def test_selections_of_two_roles_may_not_overlap(tmp_path: Any, other: Any) -> None:
    records = [record(i, split) for split in "ab" for i in range(3)]
    with pytest.raises(BadInput, match="3 records are both in the selection of"):
        divide(config(tmp_path, models={"target": (trained("a"),), **other}), records)


def test_a_population_that_holds_members_is_refused(tmp_path: Any) -> None:
    records = [record(i, split) for split in "ab" for i in range(3)]
    with pytest.raises(BadInput, match="population"):
        divide(config(tmp_path, models={"target": (trained("a"),)}, population=Select(split=("a",))), records)


@pytest.mark.parametrize(("member", "said"), [(True, "no non-members"), (False, "no members")])
def test_one_class_alone_is_refused(tmp_path: Any, member: bool, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        divide(config(tmp_path), [record(i, "a", member) for i in range(5)])


def test_records_of_unknown_membership_are_refused(tmp_path: Any) -> None:
    with pytest.raises(BadInput, match="not known whether the records of split 'a'"):
        divide(config(tmp_path), [record(0, "a"), record(1, "b", True)])


def test_members_equal_to_non_members_are_refused(tmp_path: Any) -> None:
    same = [Record(f"{m}{i}", {"text": f"the same text {i}"}, member=m) for m in (True, False) for i in range(5)]
    with pytest.raises(BadInput):
        divide(config(tmp_path), same).warnings()


def test_shared_texts_between_pools_are_a_warning_without_text(tmp_path: Any) -> None:
    members = [record(i, "a", True) for i in range(60)]
    others = [record(i, "b", False) for i in range(59)] + [Record("x", members[0].fields, member=False, split="b")]
    warnings = divide(config(tmp_path), members + others).warnings()
    assert len(warnings) == 1
    assert warnings[0].startswith("Members and non-members: ")
    assert "text number" not in warnings[0]


def test_groups_become_ordinals_and_records_without_one_stand_alone(tmp_path: Any) -> None:
    records = [record(0, "a", True, "p"), record(1, "a", True), record(2, "a", False, "p"), record(3, "a", False, "q")]
    rows = divide(config(tmp_path), records).rows(())
    assert rows.frame["group"].to_list() == [0, 1, 0, 2]
    assert rows.frame.columns == ["record", "group", "split", "population", "member"]


@pytest.mark.parametrize(
    ("name", "said"), [("text", "must be a label"), ("member", "not a field"), ("colour", "no record")]
)
def test_slices_must_be_labels(tmp_path: Any, name: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        divide(config(tmp_path, slices=(name,)), [record(i, "a", i % 2 == 0) for i in range(8)])


def test_a_slice_with_a_value_of_its_own_for_every_record_is_refused(tmp_path: Any) -> None:
    records = [Record(str(i), {"text": f"t{i}", "email": f"p{i}@example.org"}, member=i % 2 == 0) for i in range(8)]
    with pytest.raises(BadInput, match="must be a label"):
        divide(config(tmp_path, slices=("email",)), records)


def test_what_a_reference_was_trained_on_cannot_be_audited(tmp_path: Any) -> None:
    models = {"target": (trained("a"),), "reference": (trained("c"),)}
    with pytest.raises(BadInput, match="3 records are both"):
        divide(
            config(tmp_path, models=models, audit=Select(split=("a", "c"))),
            [record(i, s) for s in "ac" for i in range(3)],
        )


def test_members_cannot_be_the_population(tmp_path: Any) -> None:
    records = [record(0, "a", True), record(1, "a", False), record(2, "population", True)]
    with pytest.raises(BadInput, match="trained on"):
        divide(config(tmp_path), records)


def test_validation_rows_are_told_by_position_and_not_by_id(tmp_path: Any) -> None:
    """Two files may use the same ids."""
    records = [Record(str(i), {"text": f"{split} text {i}"}, split=split) for split in "abc" for i in range(10)]
    pools = divide(config(tmp_path, models={"target": (trained("a", "b", validation=0.2),)}), records)
    assert pools.counts()["members"] == 16
