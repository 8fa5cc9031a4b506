"""Local: jobs run one after another in this process, each model opened once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import ClassVar, Literal

from leakmeter.core.engine import Engine, Job


class Local(Engine):
    type: Literal["local"] = "local"
    about: ClassVar[str] = "In this process, one model at a time."

    def run(self, jobs: Sequence[Job]) -> Iterator[Job]:
        # Equal models are neighbours in a plan; each run of them shares one opening.
        for model, mine in groupby(jobs, key=lambda job: job.model):
            if model is None:
                for job in mine:
                    job.run(None)
                    yield job
                continue
            with model.open() as answerer:
                for job in mine:
                    job.run(answerer)
                    yield job
