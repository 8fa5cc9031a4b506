"""The plan: what is asked about each block of records, and which jobs that leaves. It reads the store, no more.

Questions are de-duplicated within a block, so a question asked by five attacks is answered once and jobs are
independent of each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import polars as pl

from leakmeter.audit.jobs import AnswerJob
from leakmeter.audit.store import Store, file_name
from leakmeter.core.attack import Answers, Attack, Scalar, Skip
from leakmeter.core.errors import BadInput
from leakmeter.core.model import ModelSpec
from leakmeter.core.question import Kind, Question
from leakmeter.core.record import Record


@dataclass(frozen=True, slots=True)
class Block:
    """Neighbouring records of one split; `start` is the ordinal of the first."""

    name: str
    start: int
    records: Sequence[Record]


def cut(records: Sequence[Record], size: int) -> list[Block]:
    """Blocks that never span two splits, so that adding a pool leaves the other pools' blocks as they were."""
    blocks = []
    start = 0
    for split, run in groupby(records, key=lambda record: record.split):
        mine = list(run)
        for i in range(0, len(mine), size):
            blocks.append(Block(f"{file_name(split)}-{i // size:05d}", start + i, mine[i : i + size]))
        start += len(mine)
    return blocks


@dataclass(frozen=True, slots=True)
class Bound:
    """A model in a role, opened under `spec`, its answers kept under `key`."""

    role: str
    name: str
    spec: ModelSpec
    key: str


@dataclass(slots=True)
class Asks:
    """What one attack asks of one role, in columns: record, question, and the asker's tags."""

    record: list[int] = field(default_factory=list)
    question: list[int] = field(default_factory=list)
    tags: dict[int, Mapping[str, Scalar]] = field(default_factory=dict)
    """Row → its tags, where it has any."""

    def frame(self) -> pl.DataFrame:
        frame = pl.DataFrame(
            {"record": self.record, "question": self.question}, schema={"record": pl.UInt32, "question": pl.UInt32}
        )
        if not self.tags:
            return frame
        names = dict.fromkeys(name for tags in self.tags.values() for name in tags)
        rows = [self.tags.get(row, {}) for row in range(len(self.record))]
        return frame.with_columns(pl.Series(name, [tags.get(name) for tags in rows]) for name in names)


Pool = dict[Question, int]


@dataclass(slots=True)
class BlockPlan:
    """The questions about one block: who asks what, each question once."""

    block: Block
    pools: dict[tuple[str, Kind], Pool] = field(default_factory=dict)
    asks: dict[Attack, dict[tuple[str, Kind], Asks]] = field(default_factory=dict)
    skipped: dict[Attack, Counter[str]] = field(default_factory=dict)
    _keys: dict[tuple[str, Kind], list[bytes]] = field(default_factory=dict)

    def ask(self, attack: Attack, answered: Sequence[Answers] | None = None) -> None:
        """Collect an attack's questions; in a later round, with what was answered about each record."""
        mine = self.asks[attack] = {}
        skipped = self.skipped[attack] = Counter()
        open_asks: dict[tuple[str, Kind], tuple[Asks, Pool]] = {}
        nothing = Answers(())
        for position, record in enumerate(self.block.records):
            for item in attack.ask(record, nothing if answered is None else answered[position]):
                if isinstance(item, Skip):
                    skipped[item.reason] += 1
                    continue
                role, question, tags = item
                where = (role, type(question))
                found = open_asks.get(where)
                if found is None:
                    self._check(attack, *where)
                    mine[where] = Asks()
                    found = open_asks[where] = (mine[where], self.pools.setdefault(where, {}))
                asks, pool = found
                asks.record.append(position)
                asks.question.append(pool.setdefault(question, len(pool)))
                if tags:
                    asks.tags[len(asks.record) - 1] = tags

    def _check(self, attack: Attack, role: str, kind: Kind) -> None:
        if kind not in attack.roles.get(role, ()):
            raise BadInput(
                f"The attack '{attack.type}' asks the role '{role}' a {kind.__name__} question without declaring it. "
                f"Add it to the attack's `roles`."
            )

    def keys(self, role: str, kind: Kind) -> list[bytes]:
        """The keys of a role's questions, in the order of their indices."""
        pool = self.pools.get((role, kind), {})
        known = self._keys.setdefault((role, kind), [])
        if len(known) < len(pool):
            known.extend(question.key() for question in list(pool)[len(known) :])
        return known


def plan(blocks: Iterable[BlockPlan], bound: Sequence[Bound], store: Store) -> list[AnswerJob]:
    """The jobs that answer what is asked and not answered yet, model by model."""
    blocks = list(blocks)
    jobs = []
    for key, same in _by_key(bound).items():
        for block in blocks:
            for kind in sorted({kind for _, kind in block.pools}, key=lambda kind: kind.kind):
                wanted: dict[bytes, Question] = {}
                for model in same:
                    pool = block.pools.get((model.role, kind))
                    if pool:
                        wanted.update(zip(block.keys(model.role, kind), pool, strict=True))
                if not wanted:
                    continue
                done = store.answered(key, block.block.name, kind)
                left = {k: question for k, question in wanted.items() if k not in done} if done else wanted
                if left:
                    name = block.block.name
                    jobs.append(AnswerJob(same[0].spec, key, name, kind, list(left.values()), list(left), store))
    return jobs


def _by_key(bound: Sequence[Bound]) -> dict[str, list[Bound]]:
    """Models with the same weights are one model, whatever roles they play."""
    same: dict[str, list[Bound]] = {}
    for model in bound:
        same.setdefault(model.key, []).append(model)
    return same


class BlockAnswers:
    """The stored answers about one block, as its attacks see them; each file is read once."""

    def __init__(self, plan: BlockPlan, bound: Sequence[Bound], store: Store) -> None:
        self.plan = plan
        self._bound = bound
        self._store = store
        self._read: dict[tuple[str, Kind], pl.DataFrame] = {}

    def of(self, attack: Attack) -> Answers:
        frames = {}
        for (role, kind), asks in self.plan.asks[attack].items():
            joined = asks.frame().join(self._answers(role, kind), on="question", maintain_order="left_right")
            frames[role, kind.kind] = joined.drop("question")
        return Answers(self.plan.block.records, frames)

    def _answers(self, role: str, kind: Kind) -> pl.DataFrame:
        if (role, kind) not in self._read:
            keys = self.plan.keys(role, kind)
            index = pl.DataFrame(
                {"key": keys, "question": range(len(keys))}, schema={"key": pl.Binary, "question": pl.UInt32}
            )
            self._read[role, kind] = pl.concat(
                self._store.answers(model.key, self.plan.block.name, kind)
                .join(index, on="key", maintain_order="left")
                .drop("key")
                .with_columns(pl.lit(model.name).alias("model"))
                for model in self._bound
                if model.role == role
            )
        return self._read[role, kind]

    def per_record(self, attack: Attack) -> list[Answers]:
        """The answers split by record, for a second round of asking."""
        whole = self.of(attack)
        split = {where: frame.partition_by("record", as_dict=True) for where, frame in whole.frames.items()}
        alone = pl.lit(0, dtype=pl.UInt32).alias("record")
        return [
            Answers(
                (record,), {where: parts[i,].with_columns(alone) for where, parts in split.items() if (i,) in parts}
            )
            for i, record in enumerate(whole.records)
        ]
