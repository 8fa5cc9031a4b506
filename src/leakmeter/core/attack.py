"""Attacks: they ask questions about records and judge the answers. No attack loads a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import polars as pl

from leakmeter.core.question import Kind, Question
from leakmeter.core.record import Record
from leakmeter.core.spec import Spec

Scalar = str | int | float | bool


class Ask(NamedTuple):
    """One question for the model in a role. Tags come back as columns beside the answer."""

    role: str
    question: Question
    tags: Mapping[str, Scalar] = {}


class Skip(NamedTuple):
    """A record this attack cannot ask about; counted and shown."""

    reason: str


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers about one block of records, as `read` and a second round of `ask` see them."""

    records: Sequence[Record]
    """The block's records; column `record` of a frame is a position in it."""
    frames: Mapping[tuple[str, str], pl.DataFrame] = field(default_factory=dict)
    """(role, kind of question) → record, model, the asker's tags, then the answer's columns."""

    def __call__(self, kind: Kind, role: str = "target") -> pl.DataFrame:
        """The answers of one kind from one role, a row for each text of each question."""
        frame = self.frames.get((role, kind.kind))
        if frame is not None:
            return frame
        empty = {name: dtype for name, dtype in kind.schema.items() if name != "q"}
        return pl.DataFrame(schema={"record": pl.UInt32(), "model": pl.String(), **empty})


class Judgement(NamedTuple):
    """What an attack concludes: a table of signals per record, and tables about itself."""

    scores: pl.DataFrame
    """`record`, optionally `model` and tags, then one column per signal; higher means "leaks more"."""
    tables: Mapping[str, pl.DataFrame] = {}


class Attack(Spec, ABC):
    """An idea for telling what leaked. Its fields are its parameters: an attack is its own config."""

    roles: ClassVar[Mapping[str, frozenset[Kind]]] = {}
    """What it asks of whom, checked before anything is loaded. An attack without "target" is blind."""
    many: ClassVar[frozenset[str]] = frozenset()
    """The roles in which it takes several models; it tells them apart by the column `model`."""
    rounds: ClassVar[int] = 1
    """2: asked again with what was answered."""
    cross_fits: ClassVar[bool] = False
    """True: `judge` sees the labels of audit rows and promises to score each row without its own."""
    about: ClassVar[str] = ""
    """One line for `leakmeter list attacks` and the report."""

    @property
    def blind(self) -> bool:
        """Whether it never asks the target."""
        return "target" not in self.roles

    @property
    def name(self) -> str:
        """How results name it: its type, and the parameters that differ from their defaults."""
        changed = {
            name: getattr(self, name)
            for name, info in type(self).model_fields.items()
            if name != "type" and getattr(self, name) != info.default
        }
        return self.type + ("(" + ", ".join(f"{k}={v}" for k, v in changed.items()) + ")" if changed else "")

    def ask(self, record: Record, answered: Answers) -> Iterable[Ask | Skip]:
        """The questions about one record.

        In a second round it is called again, with the first round's answers for the record in `answered`, and yields
        all its questions: those of the first round that it still wants to read, and the new ones.
        """
        return ()

    @abstractmethod
    def read(self, answers: Answers) -> pl.DataFrame:
        """One block's answers → one row per record: column `record`, then small scalar (or list) columns."""

    def judge(self, features: pl.DataFrame, seed: int) -> Judgement:
        """The whole table → scores. It also holds `group`, `split`, `population` and, where not hidden, `member`."""
        bookkeeping = {"group", "split", "population", "member"}
        return Judgement(features.select([c for c in features.columns if c not in bookkeeping]))
