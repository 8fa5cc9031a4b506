"""Engines: they decide where jobs run, and know nothing of what a job does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar, Protocol

from leakmeter.core.model import Answerer, ModelSpec
from leakmeter.core.spec import Spec


class Job(Protocol):
    """A piece of work that ends in files. Jobs are independent; doing one twice gives the same files."""

    @property
    def model(self) -> ModelSpec | None:
        """The model to open for it, shared by the jobs that name an equal one; None: it needs none."""

    @property
    def label(self) -> str: ...

    def run(self, answerer: Answerer | None) -> None: ...


class Engine(Spec, ABC):
    """Where jobs run."""

    about: ClassVar[str] = ""

    @abstractmethod
    def run(self, jobs: Sequence[Job]) -> Iterator[Job]:
        """Run the jobs and yield each as it is done."""
