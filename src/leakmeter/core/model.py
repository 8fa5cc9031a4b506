"""Models: who answers. A spec says which; opening it gives an Answerer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import polars as pl

from leakmeter.core.question import Kind, Question
from leakmeter.core.spec import Spec


class Answerer(Protocol):
    """An open model. One frame per batch, column `q` = position in `questions`; never one object per answer."""

    def answer(self, kind: Kind, questions: Sequence[Question]) -> Iterator[pl.DataFrame]: ...


class ModelSpec(Spec, ABC):
    """A model as a config file names it."""

    @abstractmethod
    def answers(self) -> frozenset[Kind]:
        """The kinds of question it can answer, known before it is loaded."""

    @abstractmethod
    def fingerprint(self) -> str:
        """A digest of the weights and the resolved precision: the model's key, wherever its files lie."""

    @abstractmethod
    def open(self) -> AbstractContextManager[Answerer]:
        """Load it; leaving the context frees it."""

    def default_reference(self) -> ModelSpec | None:
        """The model this one was made from, where its files say so (a LoRA adapter's base)."""
        return None

    def environment(self) -> Mapping[str, object]:
        """What a reader needs to obtain the same model: files with their SHA-256, precision, device."""
        return {}
