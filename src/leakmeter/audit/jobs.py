"""Jobs: pieces of work that end in files. A job knows its files; an engine decides where it runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import polars as pl

from leakmeter.audit.store import Store
from leakmeter.core.errors import ModelFailed
from leakmeter.core.model import Answerer, ModelSpec
from leakmeter.core.question import Kind, Question

Progress = Callable[[int], None]


@dataclass(frozen=True)
class AnswerJob:
    """One model, one block, the questions of all attacks that are not answered yet."""

    model: ModelSpec
    model_key: str
    block: str
    kind: Kind
    questions: Sequence[Question]
    keys: list[bytes]
    store: Store
    progress: Progress | None = field(default=None, compare=False)

    @property
    def label(self) -> str:
        return f"{self.kind.kind} of {self.block}"

    def run(self, answerer: Answerer | None) -> None:
        assert answerer is not None
        began = time.perf_counter()
        frames = []
        for frame in answerer.answer(self.kind, self.questions):
            frames.append(frame)
            if self.progress:
                self.progress(frame["q"].n_unique())
        answers = self._checked(pl.concat(frames) if frames else pl.DataFrame(schema=self.kind.schema))
        named = answers.with_columns(pl.Series("key", self.keys, dtype=pl.Binary).gather(answers["q"])).drop("q")
        self.store.write_frame(self.store.answers_path(self.model_key, self.block, self.kind, self.keys), named)
        seconds = round(time.perf_counter() - began, 3)
        self.store.event(
            "answered", model=self.model_key, block=self.block, kind=self.kind.kind, n=len(self.keys), seconds=seconds
        )
        happened = getattr(answerer, "events", [])
        while happened:
            self.store.event("model", model=self.model_key, note=str(happened.pop(0)))

    def _checked(self, answers: pl.DataFrame) -> pl.DataFrame:
        """Every question answered once, in order, and no answer that is not a number."""
        answers = answers.select(list(self.kind.schema)).sort("q", "i")
        if answers["q"].n_unique() != len(self.questions) or answers.select("q", "i").is_duplicated().any():
            raise ModelFailed(
                f"The model '{self.model.type}' was asked {len(self.questions)} {self.kind.kind} questions and "
                f"answered {answers['q'].n_unique()} of them, or some twice. This is a fault in the model's code; "
                "nothing was stored."
            )
        for name, kind in answers.schema.items():
            values = answers[name].explode().drop_nulls() if isinstance(kind, pl.List) else answers[name]
            if values.dtype.is_float() and not values.is_finite().all():
                raise ModelFailed(
                    f"The model '{self.model.type}' gave a {name} that is not a finite number (NaN or infinite). Its "
                    "weights may be broken, or its precision too low (try dtype: float32). The answers of other blocks "
                    "are kept."
                )
        return answers
