"""Membership from the target's likelihood against a reference model that never saw the texts (C1).

With ℓ_t the target's and r_t the reference's log-probability of token t, d_t = ℓ_t − r_t:

    ratio        Σ d / n                                        (Carlini et al. 2021; Mireshghallah et al. 2022)
    calibrated   mean ℓ − (a + b · mean r), a and b fitted by least squares on the population (ours): a reference
                 from another domain gets a small b instead of adding its noise
    windows      mean over window sizes w of the share of windows with Σ d > 0; w geometric from 2 to 40 (WBC 2026)
    error_shift  log of Σ max(d, 0) / Σ max(−d, 0) over the tokens that are not the target's first choice (EZ-MIA 2026)

The last two compare token by token, so both models must split the text alike and give each token a probability above
zero; where they do not, there is no score.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field, ValidationInfo, field_validator

from leakmeter.attacks.likelihood import LikelihoodAttack
from leakmeter.core.attack import Answers, Judgement
from leakmeter.core.question import Kind, Likelihood
from leakmeter.core.result import Floats, Ints

SMALLEST_SHIFT = 1e-6
"""Keeps the ratio of shifts finite where one side is empty."""
ENOUGH_POPULATION = 30
"""Below this, two numbers are not fitted on a population; the unlabelled audit rows serve instead."""


class AgainstReference(LikelihoodAttack):
    """Asks target and reference the same questions."""

    roles: ClassVar[Mapping[str, frozenset[Kind]]] = {
        "target": frozenset({Likelihood}),
        "reference": frozenset({Likelihood}),
    }


class Ratio(AgainstReference):
    type: Literal["ratio"] = "ratio"
    about: ClassVar[str] = "Log-probability under the target minus log-probability under the reference, per token."

    def read(self, answers: Answers) -> pl.DataFrame:
        """Both per token of the target, so that two tokenisers do not change the unit."""
        target = self._totals(answers, "target")
        both = target.join(self._totals(answers, "reference"), on="record", maintain_order="left", suffix="_reference")
        return both.select(
            "record",
            target=pl.col("total") / pl.col("count"),
            reference=pl.col("total_reference") / pl.col("count"),
        )

    def _totals(self, answers: Answers, role: str) -> pl.DataFrame:
        logprob = pl.col("logprob").cast(pl.List(pl.Float64))
        return self.tokens(answers, role).select("record", total=logprob.list.sum(), count=logprob.list.len())

    def judge(self, features: pl.DataFrame, seed: int) -> Judgement:
        return Judgement(features.select("record", ratio=pl.col("target") - pl.col("reference")))


class Calibrated(Ratio):
    type: Literal["calibrated"] = "calibrated"  # type: ignore[assignment]
    about: ClassVar[str] = "The target's log-probability minus what the reference's predicts for it."

    def judge(self, features: pl.DataFrame, seed: int) -> Judgement:
        scored = features.filter(pl.col("target").is_finite() & pl.col("reference").is_finite())
        fitted_on = scored.filter("population")
        source = "population"
        if fitted_on.height < ENOUGH_POPULATION:
            fitted_on, source = scored, "audit rows without labels"
        slope, intercept = _least_squares(fitted_on["reference"].to_numpy(), fitted_on["target"].to_numpy())
        calibrated = pl.col("target") - (intercept + slope * pl.col("reference"))
        fit = pl.DataFrame({"slope": [slope], "intercept": [intercept], "rows": [fitted_on.height], "on": [source]})
        return Judgement(features.select("record", calibrated=calibrated), {"fit": fit})


def _least_squares(x: Floats, y: Floats) -> tuple[float, float]:
    if len(x) == 0:
        return 0.0, 0.0
    spread = float(np.sum((x - x.mean()) ** 2))
    slope = float(np.sum((x - x.mean()) * (y - y.mean()))) / spread if spread > 0 else 0.0
    return slope, float(y.mean()) - slope * float(x.mean())


class Aligned(NamedTuple):
    """Token differences, all finite, of records whose texts both models split alike, laid end to end."""

    record: Ints
    start: Ints
    """Where each record's tokens begin, and after the last one where they all end."""
    shift: Floats
    """Target minus reference log-probability."""
    first: Floats
    """1 where the token was the target's first choice."""


def align(target: pl.DataFrame, reference: pl.DataFrame) -> Aligned:
    columns = ["record", "tokens_digest", "logprob"]
    both = target.select(*columns, "first").join(
        reference.select(columns), on=["record", "tokens_digest"], suffix="_reference", maintain_order="left"
    )
    finite = pl.element().is_finite().all()
    known = [pl.col(name).list.eval(finite).list.first() for name in ("logprob", "logprob_reference")]
    both = both.filter(pl.col("logprob").list.len() > 0, *known)
    lengths = both["logprob"].list.len().to_numpy()
    if both.is_empty():
        return Aligned(np.empty(0, np.int64), np.zeros(1, np.int64), np.empty(0), np.empty(0))
    ours, theirs, first = (both[name].explode().to_numpy() for name in ("logprob", "logprob_reference", "first"))
    return Aligned(
        both["record"].to_numpy().astype(np.int64),
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        ours.astype(np.float64) - theirs.astype(np.float64),
        first.astype(np.float64),
    )


class Windows(AgainstReference):
    type: Literal["windows"] = "windows"
    about: ClassVar[str] = "Share of token windows of many sizes in which the target is surer than the reference (WBC)."
    smallest: int = Field(default=2, ge=1)
    largest: int = Field(default=40, ge=1, validate_default=True)
    sizes: int = Field(default=10, ge=1)

    @field_validator("largest")
    @classmethod
    def _not_below_smallest(cls, largest: int, others: ValidationInfo) -> int:
        if largest < others.data.get("smallest", 1):
            raise ValueError(f"should not be below smallest, {others.data['smallest']}")
        return largest

    def window_sizes(self) -> list[int]:
        """Geometric from smallest to largest, without repetition."""
        return sorted({round(w) for w in np.geomspace(self.smallest, self.largest, self.sizes)})

    def read(self, answers: Answers) -> pl.DataFrame:
        tokens = align(self.tokens(answers), self.tokens(answers, "reference"))
        sums, begin = running_sums(tokens)
        length = np.diff(tokens.start)
        votes = np.zeros(len(begin))
        used = np.zeros(len(begin))
        for size in self.window_sizes():
            fits = length >= size
            if not fits.any():
                break
            won = np.concatenate([[0], np.cumsum(sums[size:] - sums[:-size] > 0)])
            count = (length - size + 1)[fits]
            votes[fits] += (won[begin[fits] + count] - won[begin[fits]]) / count
            used[fits] += 1
        with np.errstate(invalid="ignore"):
            score = np.where(used > 0, votes / used, np.nan)
        return pl.DataFrame({"record": tokens.record.astype(np.uint32), "windows": score})


def running_sums(tokens: Aligned) -> tuple[Floats, Ints]:
    """Each record's sums of shifts over its first 0, 1, … tokens, laid end to end, and where each record's begin.

    They start anew with every record: a score must not hang on the rounding of its neighbours in a block.
    """
    begin = tokens.start[:-1] + np.arange(len(tokens.record))
    sums = np.zeros(len(tokens.shift) + len(tokens.record))
    for at, start, end in zip(begin + 1, tokens.start[:-1], tokens.start[1:], strict=True):
        np.cumsum(tokens.shift[start:end], out=sums[at : at + end - start])
    return sums, begin


class ErrorShift(AgainstReference):
    type: Literal["error_shift"] = "error_shift"
    about: ClassVar[str] = "Upward against downward shifts from the reference where the target guesses wrong (EZ-MIA)."

    def read(self, answers: Answers) -> pl.DataFrame:
        tokens = align(self.tokens(answers), self.tokens(answers, "reference"))
        if len(tokens.record) == 0:
            return pl.DataFrame(schema={"record": pl.UInt32, "error_shift": pl.Float64})
        begin = tokens.start[:-1]
        wrong = 1.0 - tokens.first
        # A text without a single wrong guess is the extreme of memory, not a missing value: all its tokens count.
        errors = np.add.reduceat(wrong, begin)
        wrong = np.where(np.repeat(errors, np.diff(tokens.start)) > 0, wrong, 1.0)
        up = np.add.reduceat(wrong * np.maximum(tokens.shift, 0), begin)
        down = np.add.reduceat(wrong * np.maximum(-tokens.shift, 0), begin)
        score = np.log((up + SMALLEST_SHIFT) / (down + SMALLEST_SHIFT))
        return pl.DataFrame({"record": tokens.record.astype(np.uint32), "error_shift": score})
