"""What the framework itself costs: a million values, scored by a model that answers at once.

Two shapes: a million records of one text (membership), and ten thousand records whose true value is asked about
together with 99 alternatives (probing). Asking, planning, storing, reading back and judging count; inventing the
records and the model's own time do not, and are printed beside it.

    python bench/overhead.py [--values 1000000]
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl

from leakmeter import Answers, Ask, Attack, Likelihood, ModelSpec, Record
from leakmeter.audit.config import AuditConfig
from leakmeter.audit.pools import divide
from leakmeter.audit.run import Run
from leakmeter.audit.store import Store

TOKENS = 8
BLOCK = 4096
"""Records per block. The default of 256 suits slow models, where a block is minutes of work."""


class AtOnce(ModelSpec):
    """Every token of every text has the same log-probability; the time this takes is kept apart."""

    type: Literal["at_once"] = "at_once"
    spent: ClassVar[float] = 0.0

    def answers(self) -> frozenset[Any]:
        return frozenset({Likelihood})

    def fingerprint(self) -> str:
        return "at-once"

    @contextmanager
    def open(self) -> Iterator[AtOnce]:
        yield self

    def answer(self, kind: Any, questions: Sequence[Likelihood]) -> Iterator[pl.DataFrame]:
        began = time.perf_counter()
        counts = np.array([len(question.texts) for question in questions])
        n = int(counts.sum())
        first = np.repeat(np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
        values = pl.Series(np.full((n, TOKENS), -1.5, dtype=np.float32)).arr.to_list()
        frame = pl.DataFrame(
            {
                "q": np.repeat(np.arange(len(questions)), counts).astype(np.uint32),
                "i": (np.arange(n) - first).astype(np.uint32),
                "n_tokens": np.full(n, TOKENS, dtype=np.uint32),
                "truncated": np.zeros(n, dtype=bool),
                "tokens_digest": np.zeros(n, dtype=np.uint64),
                "logprob": values,
                "mean": values,
                "deviation": values,
                "first": pl.Series(np.ones((n, TOKENS), dtype=bool)).arr.to_list(),
            }
        )
        AtOnce.spent += time.perf_counter() - began
        yield frame


class Alternatives(Attack):
    """The rank of the true value among its alternatives."""

    type: Literal["alternatives"] = "alternatives"
    roles: ClassVar[Mapping[str, frozenset[Any]]] = {"target": frozenset({Likelihood})}

    def ask(self, record: Record, answered: Answers) -> Iterable[Ask]:
        value, nulls = record.fields["text"], record.alternatives["text"]
        yield Ask("target", Likelihood("The number is ", (value, *nulls)))

    def read(self, answers: Answers) -> pl.DataFrame:
        total = answers(Likelihood).with_columns(total=pl.col("logprob").list.sum())
        truth = total.filter(pl.col("i") == 0).select("record", truth="total")
        beaten = total.filter(pl.col("i") > 0).join(truth, on="record", maintain_order="left")
        share = (pl.col("total") < pl.col("truth")).cast(pl.Float64)
        return beaten.group_by("record", maintain_order=True).agg(alternatives=share.mean())


def measure(records: Sequence[Record], attack: Attack, values: int) -> dict[str, float]:
    AtOnce.spent = 0.0
    with tempfile.TemporaryDirectory() as folder:
        config = AuditConfig(models={"target": AtOnce()}, attacks=(attack,), metrics=(), block=BLOCK)
        run = Run(Store(Path(folder)))
        began = time.perf_counter()
        pools = divide(config, records)
        bound = run.bind(config, records)
        rows = pools.rows(())
        scored, _ = run.judge(config, run.answer(config, pools.asked, bound), bound, rows)
        run._write_scores("main", rows, scored, pools)
        total = time.perf_counter() - began
    return {
        "values": values,
        "seconds": round(total, 2),
        "model_seconds": round(AtOnce.spent, 2),
        "overhead_us_per_value": round((total - AtOnce.spent) / values * 1e6, 2),
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--values", type=int, default=1_000_000)
    n = parser.parse_args().values
    from leakmeter.attacks.likelihood import Loss

    few = n // 100
    nulls = [f"555-{i:04d}" for i in range(99)]
    people = [
        Record(str(i), {"text": f"202-555-{i:05d}"}, {"text": nulls}, member=i % 2 == 0, split="ab"[i % 2])
        for i in range(few)
    ]
    print(json.dumps({"shape": "1 true value with 99 alternatives", **measure(people, Alternatives(), few * 100)}))
    texts = [
        Record(str(i), {"text": f"Order {i} left the harbour."}, member=i % 2 == 0, split="ab"[i % 2]) for i in range(n)
    ]
    print(json.dumps({"shape": "1 text per record", **measure(texts, Loss(), n)}))


if __name__ == "__main__":
    main()
