"""Questions: data that an attack asks and a model answers.

A question is a frozen value with a key; each kind has a polars schema for its answer. Answers come as frames in
which column `q` is the question's position in what was asked, `i` counts the texts of one question.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import polars as pl

from leakmeter.core.errors import BadInput
from leakmeter.core.keys import digest


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a model. Subclasses are data: equal questions are one question."""

    kind: ClassVar[str]
    schema: ClassVar[dict[str, pl.DataType]]

    def key(self) -> bytes:
        raise TypeError(f"{type(self).__name__} has no key")


@dataclass(frozen=True, slots=True)
class Likelihood(Question):
    """How likely are these texts after this context, token by token?

    With `chat`, the context is a JSON list of the messages so far and each text is the assistant's reply; with an
    empty context each text is itself a JSON list of messages. The model renders both with its chat template.
    """

    context: str
    texts: tuple[str, ...]
    chat: bool = False

    kind: ClassVar[str] = "likelihood"
    schema: ClassVar[dict[str, pl.DataType]] = {
        "q": pl.UInt32(),
        "i": pl.UInt32(),
        "n_tokens": pl.UInt32(),
        "truncated": pl.Boolean(),
        "tokens_digest": pl.UInt64(),
        "logprob": pl.List(pl.Float32()),
        "mean": pl.List(pl.Float32()),
        "deviation": pl.List(pl.Float32()),
        "first": pl.List(pl.Boolean()),
    }

    def __post_init__(self) -> None:
        if not self.texts:
            raise BadInput("A Likelihood question needs at least one text to score.")

    def key(self) -> bytes:
        return digest("likelihood", "chat" if self.chat else "", self.context, *self.texts)


@dataclass(frozen=True, slots=True)
class Decoding:
    """How a continuation is chosen: greedy, `beams` > 1 for beam search, or `method="sample"`."""

    method: Literal["greedy", "beam", "sample"] = "greedy"
    max_tokens: int = 32
    min_tokens: int = 0
    beams: int = 1
    length_penalty: float = 1.0
    returns: int = 1
    """How many continuations: draws when sampling, best beams in beam search."""
    temperature: float = 1.0
    top_k: int = 0
    """0: no limit."""
    top_p: float = 1.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    """The text ends before the first of these strings."""

    def __post_init__(self) -> None:
        if self.method == "beam" and self.beams < 2:
            raise BadInput(f"Beam search needs beams ≥ 2, got {self.beams}. Use method: greedy for one beam.")
        if self.method == "greedy" and (self.beams != 1 or self.returns != 1):
            raise BadInput("Greedy decoding has one beam and returns one text. Use method: beam or sample for more.")
        if self.method == "beam" and self.returns > self.beams:
            raise BadInput(f"Beam search with {self.beams} beams cannot return {self.returns} texts.")
        if self.temperature <= 0 or not 0 < self.top_p <= 1 or self.max_tokens < 1:
            raise BadInput("Decoding needs temperature > 0, 0 < top_p ≤ 1 and max_tokens ≥ 1.")


@dataclass(frozen=True, slots=True)
class Completion(Question):
    """How would the model go on? The prompt is text, or with `chat` a JSON list of messages."""

    prompt: str
    decoding: Decoding = Decoding()
    chat: bool = False

    kind: ClassVar[str] = "completion"
    schema: ClassVar[dict[str, pl.DataType]] = {
        "q": pl.UInt32(),
        "i": pl.UInt32(),
        "text": pl.String(),
        "logprob": pl.Float64(),
        "n_tokens": pl.UInt32(),
        "finished": pl.Boolean(),
        "truncated": pl.Boolean(),
    }

    def key(self) -> bytes:
        return digest("completion", "chat" if self.chat else "", self.prompt, repr(self.decoding))


Kind = type[Question]
"""A kind of question. (Inside a Spec, `type` is a field, so the class needs a name of its own.)"""
