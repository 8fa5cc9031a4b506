"""How far log-probabilities move with the company they are computed in, in a given precision.

The same 500 mixed questions are asked with several token budgets, in reverse order, one at a time, and without shared
contexts. Printed is the largest and the 99.9th percentile difference per token against the first way, and how often the
first choice flips; then the same differences to float32, which is what the precision itself costs.

    python bench/precision.py MODEL [--device cuda] [--dtype bfloat16]
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from leakmeter.core.keys import generator
from leakmeter.core.question import Likelihood
from leakmeter.models.causal import Causal
from leakmeter.records.people import Invented


def questions(n: int) -> list[Likelihood]:
    """Whole mails, mails after their first line, and one value with alternatives after a shared prompt."""
    texts = [record.fields["text"] for record in Invented(people=n, texts_per_person=1, seed=5).read().records]
    rng = generator(0, "precision")
    made = []
    for i, text in enumerate(texts):
        head, _, tail = text.partition("\n")
        if i % 3 == 0:
            made.append(Likelihood("", (text,)))
        elif i % 3 == 1:
            made.append(Likelihood(head + "\n", (tail,)))
        else:
            values = tuple(f" 202-555-01{rng.integers(100):02d}" for _ in range(1 + i % 7))
            made.append(Likelihood(f"{head} The phone number is", tuple(dict.fromkeys(values))))
    return made


def answer(spec: Causal, asked: list[Likelihood], share: bool = True, alone: bool = False) -> pl.DataFrame:
    with spec.open() as answerer:
        if not share:
            answerer.network.__dict__["trees"] = False
        parts: Any
        if alone:
            parts = []
            for q, question in enumerate(asked):
                frame = pl.concat(answerer.answer(Likelihood, [question]))
                parts.append(frame.with_columns(q=pl.lit(q, dtype=pl.UInt32)))
        else:
            parts = list(answerer.answer(Likelihood, asked))
    return pl.concat(parts).sort("q", "i")


def gap(one: pl.DataFrame, other: pl.DataFrame) -> dict[str, float]:
    left, right = (frame["logprob"].explode().drop_nulls().to_numpy() for frame in (one, other))
    flips = (one["first"].explode().drop_nulls() != other["first"].explode().drop_nulls()).mean()
    apart = np.abs(left - right)
    mean = [f["logprob"].list.mean().drop_nulls().to_numpy() for f in (one, other)]
    return {
        "largest": float(apart.max()),
        "p99.9": float(np.quantile(apart, 0.999)),
        "median": float(np.median(apart)),
        "largest of a text's mean": float(np.abs(mean[0] - mean[1]).max()),
        "first choice flips": float(flips or 0.0),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--questions", type=int, default=500)
    given = parser.parse_args()
    asked = questions(given.questions)
    spec = Causal(path=given.model, device=given.device, dtype=given.dtype)
    began = time.perf_counter()
    first = answer(spec, asked)
    print(json.dumps({"tokens": int(first["n_tokens"].sum()), "seconds with opening": time.perf_counter() - began}))
    print("bit-equal when repeated:", first.equals(answer(spec, asked)))
    backwards = answer(spec, asked[::-1]).with_columns(q=(len(asked) - 1 - pl.col("q")).cast(pl.UInt32)).sort("q", "i")
    ways = {
        "budget / 4": answer(spec.model_copy(update={"token_budget": 256}), asked),
        "budget 4,096": answer(spec.model_copy(update={"token_budget": 4096}), asked),
        "in reverse order": backwards,
        "without shared contexts": answer(spec, asked, share=False),
        "one at a time": answer(spec, asked, alone=True),
        "float32": answer(spec.model_copy(update={"dtype": "float32"}), asked),
    }
    for name, frame in ways.items():
        print(json.dumps({"way": name, **{k: float(f"{v:.3g}") for k, v in gap(first, frame).items()}}))


if __name__ == "__main__":
    main()
