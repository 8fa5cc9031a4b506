"""A plug-in: an attack that counts vowels, a metric, and a model to which every letter is equally likely."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import log
from typing import Any, ClassVar, Literal
from zlib import crc32

import numpy as np
import polars as pl

from leakmeter import Answers, Ask, Attack, Likelihood, Metric, ModelSpec, Record, Result, Sample


class Vowels(Attack):
    type: Literal["vowels"] = "vowels"
    about: ClassVar[str] = "Log-probability per vowel of the text."
    roles: ClassVar[Mapping[str, frozenset[Any]]] = {"target": frozenset({Likelihood})}
    letters: str = "aeiou"

    def ask(self, record: Record, answered: Answers) -> Iterable[Ask]:
        text = record.fields["text"]
        yield Ask("target", Likelihood("", (text,)), {"vowels": sum(text.count(v) for v in self.letters)})

    def read(self, answers: Answers) -> pl.DataFrame:
        total = pl.col("logprob").cast(pl.List(pl.Float64)).list.sum()
        return answers(Likelihood).select("record", vowels=total / (1 + pl.col("vowels")))


class MeanGap(Metric):
    type: Literal["mean_gap"] = "mean_gap"
    about: ClassVar[str] = "Mean score of members minus mean score of non-members, with a normal interval."

    def measure(self, samples: Sequence[Sample], seed: int) -> Iterator[Result]:
        for s in samples:
            inside, outside = s.value[s.member], s.value[~s.member]
            gap = float(np.nanmean(inside) - np.nanmean(outside))
            error = 1.96 * float(np.sqrt(np.nanvar(inside) / len(inside) + np.nanvar(outside) / len(outside)))
            yield Result(s.attack, s.signal, "mean_gap", gap, gap - error, gap + error, len(s.value), s.slice)


class Uniform(ModelSpec):
    type: Literal["uniform"] = "uniform"
    letters: int = 256

    def answers(self) -> frozenset[Any]:
        return frozenset({Likelihood})

    def fingerprint(self) -> str:
        return f"uniform-{self.letters}"

    @contextmanager
    def open(self) -> Iterator[Uniform]:
        yield self

    def answer(self, kind: Any, questions: Sequence[Likelihood]) -> Iterator[pl.DataFrame]:
        asked = [(q, i, text) for q, question in enumerate(questions) for i, text in enumerate(question.texts)]
        rows = [(q, i, len(text)) for q, i, text in asked]
        each = -log(self.letters)
        yield pl.DataFrame(
            {
                "q": [q for q, _, _ in rows],
                "i": [i for _, i, _ in rows],
                "n_tokens": [n for *_, n in rows],
                "truncated": [False] * len(rows),
                "tokens_digest": [crc32(text.encode()) for *_, text in asked],
                "logprob": [[each] * n for *_, n in rows],
                "mean": [[each] * n for *_, n in rows],
                "deviation": [[0.0] * n for *_, n in rows],
                "first": [[True] * n for *_, n in rows],
            },
            schema=Likelihood.schema,
        )
