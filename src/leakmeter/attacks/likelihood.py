"""Membership from how likely the target finds a text, token by token (C1). One answer serves all of them.

With log-probabilities ℓ_t of the n scored tokens, and μ_t, σ_t the mean and deviation of log p over the vocabulary:

    loss        mean ℓ                                    (Yeom et al. 2018)
    zlib        mean ℓ / zlib size of the text            (Carlini et al. 2021)
    lowercase   mean ℓ(text) − mean ℓ(lower-cased text)   (Carlini et al. 2021, as a difference of logs)
    min_k       mean of the k % smallest ℓ                (Shi et al. 2024)
    min_k_plus  mean of the k % smallest (ℓ − μ)/σ        (Zhang et al. 2025)
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar, Literal

import polars as pl
from pydantic import Field

from leakmeter.core.attack import Answers, Ask, Attack, Skip
from leakmeter.core.question import Kind, Likelihood
from leakmeter.core.record import Record
from leakmeter.text.passages import Passage, passages

Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
SMALLEST_DEVIATION = 1e-6
"""A model that is certain has no deviation to divide by."""


class LikelihoodAttack(Attack):
    """Asks the models in its roles how likely the trained-on part of a record is."""

    roles: ClassVar[Mapping[str, frozenset[Kind]]] = {"target": frozenset({Likelihood})}
    score: Literal["assistant", "all"] = "assistant"
    """Which tokens of prompt–completion pairs and chats count: those a fine-tuning run learns, or all."""

    def ask(self, record: Record, answered: Answers) -> Iterable[Ask | Skip]:
        for passage in passages(record.fields, self.score):
            question = Likelihood(passage.context, (passage.text,), passage.chat)
            for role in self.roles:
                yield Ask(role, question)

    def tokens(self, answers: Answers, role: str = "target") -> pl.DataFrame:
        """One row per record; token columns of its passages joined end to end."""
        frame = answers(Likelihood, role)
        if frame["record"].n_unique() == frame.height:
            return frame
        joined = [pl.col(name).explode() for name, kind in frame.schema.items() if isinstance(kind, pl.List)]
        return frame.group_by("record", maintain_order=True).agg(
            pl.col("tokens_digest").cast(pl.String).str.join(" "), *joined
        )


def mean_of(column: str | pl.Expr) -> pl.Expr:
    """The mean of a token column, in double precision; null for a text without tokens."""
    expression = pl.col(column) if isinstance(column, str) else column
    return expression.cast(pl.List(pl.Float64)).list.mean()


def smallest(values: pl.Expr, share: float) -> pl.Expr:
    """The mean of the smallest `share` of a token column, at least one token."""
    count = (values.list.len() * share).floor().clip(lower_bound=1).cast(pl.UInt32)
    return mean_of(values.list.sort().list.head(count))


class Loss(LikelihoodAttack):
    type: Literal["loss"] = "loss"
    about: ClassVar[str] = "The target's mean log-probability per token (loss, with its sign turned)."

    def read(self, answers: Answers) -> pl.DataFrame:
        return self.tokens(answers).select("record", loss=mean_of("logprob"))


class Zlib(LikelihoodAttack):
    type: Literal["zlib"] = "zlib"
    about: ClassVar[str] = "Log-probability relative to how well zlib compresses the text."

    def read(self, answers: Answers) -> pl.DataFrame:
        sizes = pl.Series([zlib_size(passages(record.fields, self.score)) for record in answers.records])
        tokens = self.tokens(answers)
        return tokens.select("record", zlib=mean_of("logprob") / sizes.gather(tokens["record"]))


def zlib_size(parts: list[Passage]) -> int:
    return len(zlib.compress("\n".join(part.text for part in parts).encode()))


class Lowercase(LikelihoodAttack):
    type: Literal["lowercase"] = "lowercase"
    about: ClassVar[str] = "How much likelier the text is than the same text in lower case."

    def ask(self, record: Record, answered: Answers) -> Iterable[Ask | Skip]:
        for passage in passages(record.fields, self.score):
            for lowered, text in enumerate((passage.text, passage.text.lower())):
                yield Ask("target", Likelihood(passage.context, (text,), passage.chat), {"lowered": lowered})

    def read(self, answers: Answers) -> pl.DataFrame:
        frame = answers(Likelihood)
        if frame.is_empty():  # nothing was asked, so nothing carries the tag
            return pl.DataFrame(schema={"record": pl.UInt32, "lowercase": pl.Float64})
        sides = [
            frame.filter(pl.col("lowered") == lowered)
            .group_by("record", maintain_order=True)
            .agg(pl.col("logprob").explode())
            .select("record", mean_of("logprob").alias(name))
            for lowered, name in enumerate(("as_is", "lower"))
        ]
        both = sides[0].join(sides[1], on="record", maintain_order="left")
        return both.select("record", lowercase=pl.col("as_is") - pl.col("lower"))


class MinK(LikelihoodAttack):
    type: Literal["min_k"] = "min_k"
    about: ClassVar[str] = "Mean log-probability of the least likely tokens (Min-K %)."
    share: Share = 0.2

    def read(self, answers: Answers) -> pl.DataFrame:
        return self.tokens(answers).select("record", min_k=smallest(pl.col("logprob"), self.share))


class MinKPlus(LikelihoodAttack):
    type: Literal["min_k_plus"] = "min_k_plus"
    about: ClassVar[str] = (
        "Min-K % over log-probabilities standardised by the vocabulary's mean and deviation (Min-K %++)."
    )
    share: Share = 0.2

    def read(self, answers: Answers) -> pl.DataFrame:
        tokens = self.tokens(answers)
        deviation = pl.col("deviation").list.eval(pl.element().clip(lower_bound=SMALLEST_DEVIATION))
        standard = (pl.col("logprob") - pl.col("mean")) / deviation
        return tokens.select("record", min_k_plus=smallest(standard, self.share))
