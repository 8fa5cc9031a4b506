"""NGram: an exact model of bytes, small enough to check by hand. It needs no torch and is quick.

p(b | the n−1 bytes before) = (count + s) / (count of those n−1 bytes + 256 s), counted in the lines of a text file.
Before a line stand newlines, and a newline ends it; so does it end a completion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from leakmeter.core.errors import BadInput, CannotAnswer
from leakmeter.core.keys import digest, file_digest, generator, short
from leakmeter.core.model import Answerer, ModelSpec
from leakmeter.core.question import Completion, Kind, Likelihood, Question
from leakmeter.core.result import Floats, Ints

LETTERS = 256
END = 10


class NGram(ModelSpec):
    """An n-gram model over the bytes of a file's lines, with additive smoothing."""

    type: Literal["ngram"] = "ngram"
    about: ClassVar[str] = "An exact n-gram model of bytes over the lines of a file; for tests and examples."
    path: Path
    order: int = Field(default=3, ge=1, le=7)
    smoothing: float = Field(default=0.1, gt=0)

    def answers(self) -> frozenset[Kind]:
        return frozenset({Likelihood, Completion})

    def fingerprint(self) -> str:
        return short("ngram", str(self.version), str(self.order), str(self.smoothing), file_digest(self._file()))

    def _file(self) -> Path:
        if not self.path.is_file():
            raise BadInput(f"There is no file {self.path} for the n-gram model. Give a text file, one text per line.")
        return self.path

    def environment(self) -> dict[str, object]:
        return {"files": {self.path.name: file_digest(self._file())}, "precision": "float64"}

    @contextmanager
    def open(self) -> Iterator[Answerer]:
        yield Counted(self._file().read_bytes(), self.order, self.smoothing)


class Counted:
    """The counts of an n-gram model, and what follows from them for every context that was seen."""

    def __init__(self, text: bytes, order: int, smoothing: float) -> None:
        self.order, self.smoothing = order, smoothing
        lines = [line + b"\n" for line in text.split(b"\n") if line]
        context, letter = self._followed([b"\n" * (order - 1)] * len(lines), lines)
        self.seen, row = np.unique(context, return_inverse=True)
        # The last row is for contexts never seen.
        self.counts = np.zeros((len(self.seen) + 1, LETTERS))
        np.add.at(self.counts, (row, letter), 1)

    def _followed(self, before: Sequence[bytes], texts: Sequence[bytes]) -> tuple[Ints, Ints]:
        """For every byte of every text, the n−1 bytes before it as one number, and the byte itself."""
        lengths = np.array([len(text) for text in texts])
        flat = np.frombuffer(
            b"".join(part for pair in zip(before, texts, strict=True) for part in pair), dtype=np.uint8
        )
        width = self.order - 1
        begin = np.cumsum(lengths + width) - lengths - width
        at = np.repeat(begin, lengths) + _counting(lengths)
        code = np.zeros(len(at), dtype=np.int64)
        for back in range(width):
            code = code * LETTERS + flat[at + back]
        return code, flat[at + width].astype(np.int64)

    @cached_property
    def log_p(self) -> Floats:
        smooth = self.counts + self.smoothing
        return cast(Floats, np.log(smooth / smooth.sum(axis=1, keepdims=True)))

    @cached_property
    def moments(self) -> tuple[Floats, Floats, Ints]:
        """Mean and deviation of log p over the letters, and the first choice, for each context."""
        p = np.exp(self.log_p)
        mean = (p * self.log_p).sum(axis=1)
        variance = (p * (self.log_p - mean[:, None]) ** 2).sum(axis=1)
        return mean, np.sqrt(variance), self.log_p.argmax(axis=1)

    def _rows(self, context: Ints) -> Ints:
        at = np.searchsorted(self.seen, context)
        found = (at < len(self.seen)) & (self.seen[np.minimum(at, len(self.seen) - 1)] == context)
        return np.where(found, at, len(self.seen))

    def answer(self, kind: Kind, questions: Sequence[Question]) -> Iterator[pl.DataFrame]:
        if kind is Likelihood:
            yield self._likelihoods(cast(Sequence[Likelihood], questions))
        elif kind is Completion:
            yield self._completions(cast(Sequence[Completion], questions))
        else:
            raise CannotAnswer(f"An n-gram model cannot answer {kind.__name__} questions.")

    def _likelihoods(self, questions: Sequence[Likelihood]) -> pl.DataFrame:
        start = b"\n" * (self.order - 1)
        position = [(q, i) for q, question in enumerate(questions) for i in range(len(question.texts))]
        texts = [text.encode() for question in questions for text in question.texts]
        before = [(start + question.context.encode())[len(question.context.encode()) :] for question in questions]
        lengths = np.array([len(text) for text in texts])
        context, letter = self._followed([before[q] for q, _ in position], texts)
        row = self._rows(context)
        mean, deviation, first = self.moments
        return pl.DataFrame(
            {
                "q": np.array([q for q, _ in position], dtype=np.uint32),
                "i": np.array([i for _, i in position], dtype=np.uint32),
                "n_tokens": lengths.astype(np.uint32),
                "truncated": np.zeros(len(texts), dtype=bool),
                "tokens_digest": np.array([int.from_bytes(digest(t.decode())[:8]) for t in texts], dtype=np.uint64),
                "logprob": _lists(self.log_p[row, letter].astype(np.float32), lengths),
                "mean": _lists(mean[row].astype(np.float32), lengths),
                "deviation": _lists(deviation[row].astype(np.float32), lengths),
                "first": _lists(first[row] == letter, lengths),
            }
        )

    def _completions(self, questions: Sequence[Completion]) -> pl.DataFrame:
        rows = []
        for q, question in enumerate(questions):
            if question.decoding.method == "beam":
                raise CannotAnswer("An n-gram model decodes greedily or by sampling, not by beam search.")
            rows += [(q, i, *self._complete(question, i)) for i in range(question.decoding.returns)]
        names = list(Completion.schema)
        return pl.DataFrame(rows, schema=names, orient="row").cast(dict(Completion.schema))  # type: ignore[arg-type]

    def _complete(self, question: Completion, draw: int) -> tuple[str, float, int, bool, bool]:
        decoding = question.decoding
        rng = generator(decoding.seed, question.key().hex(), str(draw))
        letters = b"\n" * (self.order - 1) + question.prompt.encode()
        made: list[int] = []
        total = 0.0
        while len(made) < decoding.max_tokens:
            context, _ = self._followed([letters[len(letters) - self.order + 1 :]], [b"?"])
            log_p = self.log_p[int(self._rows(context)[0])]
            noise = rng.gumbel(size=LETTERS) * decoding.temperature if decoding.method == "sample" else 0.0
            letter = int(np.argmax(log_p + noise))
            total += float(log_p[letter])
            if letter == END and len(made) >= decoding.min_tokens:
                return _text(made), total, len(made) + 1, True, False
            made.append(letter)
            letters += bytes([letter])
            if any(stop in _text(made) for stop in decoding.stop):
                cut = min(_text(made).index(stop) for stop in decoding.stop if stop in _text(made))
                return _text(made)[:cut], total, len(made), True, False
        return _text(made), total, len(made), False, False


def _text(letters: list[int]) -> str:
    return bytes(letters).decode(errors="replace")


def _counting(lengths: Ints) -> Ints:
    """0, 1, …, n−1 for each length n, end to end."""
    ends = np.cumsum(lengths)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - lengths, lengths)


def _lists(values: NDArray[Any], lengths: Ints) -> pl.Series:
    """A flat array as one list per row."""
    row = pl.Series(np.repeat(np.arange(len(lengths)), lengths))
    frame = pl.DataFrame({"row": row, "value": values}).group_by("row", maintain_order=True).agg("value")
    every = pl.DataFrame({"row": np.arange(len(lengths))})
    joined = every.join(frame, on="row", how="left", maintain_order="left")["value"]
    return joined.fill_null(pl.Series([[]], dtype=joined.dtype)) if joined.null_count() else joined
