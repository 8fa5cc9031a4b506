"""Every question of a block is asked once, whoever asks it; what is answered is not asked again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import polars as pl
import pytest

from leakmeter.attacks.likelihood import Loss, Lowercase, MinK
from leakmeter.attacks.reference import Ratio
from leakmeter.audit.config import AuditConfig
from leakmeter.audit.plan import BlockAnswers, BlockPlan, Bound, cut, plan
from leakmeter.audit.pools import divide
from leakmeter.audit.run import Run
from leakmeter.audit.store import Store
from leakmeter.core.attack import Answers, Ask, Attack, Skip
from leakmeter.core.errors import BadInput
from leakmeter.core.question import Completion, Decoding, Likelihood
from leakmeter.core.record import Record
from leakmeter.models.ngram import NGram


def records(n: int, split: str = "audit") -> list[Record]:
    return [Record(f"{split}{i}", {"text": f"Text {i}"}, split=split, member=i % 2 == 0) for i in range(n)]


@pytest.fixture
def model(tmp_path: Path) -> NGram:
    (tmp_path / "lines.txt").write_text("Text one\nText two\n")
    return NGram(path=tmp_path / "lines.txt")


def bound(model: NGram, *roles: str) -> list[Bound]:
    return [Bound(role, role, model, model.fingerprint()) for role in roles]


def test_blocks_keep_splits_apart_and_count_ordinals_through() -> None:
    blocks = cut(records(5, "a") + records(3, "b b"), 2)
    assert [(b.name, b.start, len(b.records)) for b in blocks] == [
        ("a-00000", 0, 2), ("a-00001", 2, 2), ("a-00002", 4, 1), ("b_b-00000", 5, 2), ("b_b-00001", 7, 1),
    ]  # fmt: skip


def test_a_question_of_several_attacks_is_asked_once(model: NGram, tmp_path: Path) -> None:
    block = BlockPlan(cut(records(3), 8)[0])
    for attack in (Loss(), MinK(), Ratio(), Lowercase()):
        block.ask(attack)
    jobs = plan([block], bound(model, "target"), Store(tmp_path / "run"))
    assert [sorted(q.texts[0] for q in job.questions) for job in jobs] == [  # type: ignore[attr-defined]
        ["Text 0", "Text 1", "Text 2", "text 0", "text 1", "text 2"]
    ]


def test_two_roles_with_the_same_weights_are_one_model(model: NGram, tmp_path: Path) -> None:
    block = BlockPlan(cut(records(3), 8)[0])
    block.ask(Ratio())
    assert len(plan([block], bound(model, "target", "reference"), Store(tmp_path / "run"))) == 1


def test_answered_questions_are_not_planned_again(model: NGram, tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    blocks = [BlockPlan(block) for block in cut(records(6), 2)]
    for block in blocks:
        block.ask(Loss())
    models = bound(model, "target")
    jobs = plan(blocks, models, store)
    with model.open() as answerer:
        jobs[1].run(answerer)
    assert [job.block for job in plan(blocks, models, store)] == ["audit-00000", "audit-00002"]
    blocks[1].ask(Lowercase())
    later = [job for job in plan(blocks, models, store) if job.block == "audit-00001"]
    assert [q.texts for job in later for q in job.questions] == [("text 2",), ("text 3",)]  # type: ignore[attr-defined]


def test_answers_reach_the_asker_with_its_tags_in_the_order_asked(model: NGram, tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    block = BlockPlan(cut(records(4), 8)[0])
    block.ask(Lowercase())
    for job in plan([block], bound(model, "target"), store):
        with model.open() as answerer:
            job.run(answerer)
    frame = BlockAnswers(block, bound(model, "target"), store).of(Lowercase())(Likelihood)
    assert frame["record"].to_list() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert frame["lowered"].to_list() == [0, 1] * 4
    assert set(frame["model"]) == {"target"}


class Echo(Attack):
    """Asks for a continuation, then how likely that continuation is; skips one record."""

    type: Literal["echo"] = "echo"
    roles: ClassVar[Mapping[str, frozenset[Any]]] = {"target": frozenset({Likelihood, Completion})}
    rounds: ClassVar[int] = 2

    def ask(self, record: Record, answered: Answers) -> Iterable[Ask | Skip]:
        if record.id == "audit1":
            yield Skip("no reason")
            return
        yield Ask("target", Completion(record.fields["text"][:4], Decoding(max_tokens=3)))
        for text in answered(Completion)["text"]:
            yield Ask("target", Likelihood(record.fields["text"][:4], (text,)))

    def read(self, answers: Answers) -> pl.DataFrame:
        return answers(Likelihood).select("record", echo=pl.col("logprob").list.sum())


def test_a_second_round_asks_with_what_was_answered(model: NGram, tmp_path: Path) -> None:
    config = AuditConfig(models={"target": (model,)}, attacks=(Echo(),), metrics=(), block=2)
    run = Run(Store(tmp_path / "run"))
    pools = divide(config, records(6))
    models = run.bind(config, [])
    scored, warnings = run.judge(config, run.answer(config, pools.asked, models), models, pools.rows(()))
    assert scored[0].scores["echo"].is_null().to_list() == [False, True, False, False, False, False]
    assert warnings == ["echo: 1 records were skipped: no reason."]


def test_an_attack_that_asks_what_it_did_not_declare_is_refused() -> None:
    class Undeclared(Loss):
        roles: ClassVar[Mapping[str, frozenset[Any]]] = {"target": frozenset({Completion})}

    with pytest.raises(BadInput, match="without declaring it"):
        BlockPlan(cut(records(1), 8)[0]).ask(Undeclared())
