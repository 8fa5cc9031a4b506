"""Likelihoods on a GPU: tokens per second beside a loop of one text at a time and a loop of padded batches of 16.

All three use the same weights in the same precision, in turns; a ratio is the median over the rounds. The loops do what
is usually written: right padding, whole logits, log_softmax, gather. Ours also gives the moments over the vocabulary.

    python bench/gpu.py MODEL [--texts 20000] [--rounds 5]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from leakmeter.core.question import Likelihood
from leakmeter.models.causal import Causal
from leakmeter.records.people import Invented


def loop(model: Any, encoded: list[list[int]], batch: int) -> float:
    """The sum of log-probabilities of all texts but their first tokens, in padded batches in the given order."""
    total = 0.0
    with torch.inference_mode():
        for start in range(0, len(encoded), batch):
            part = encoded[start : start + batch]
            width = max(map(len, part))
            ids = torch.tensor([row + [0] * (width - len(row)) for row in part], device="cuda")
            mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in part], device="cuda")
            logp = model(input_ids=ids, attention_mask=mask).logits[:, :-1].float().log_softmax(-1)
            picked = logp.gather(2, ids[:, 1:, None])[..., 0] * mask[:, 1:]
            total += float(picked.sum())
    return total


def seconds(work: Callable[[], object]) -> float:
    torch.cuda.synchronize()
    began = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--texts", type=int, default=20000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    texts = [r.fields["text"] for r in Invented(people=given.texts, texts_per_person=1, seed=2).read().records]
    asked = [Likelihood("", (text,)) for text in texts]
    with Causal(path=given.model, device="cuda").open() as ours:
        model = ours.network.model
        encoded = [found.ids for found in ours.tokens.encode([("", text) for text in texts])]
        tokens = sum(map(len, encoded))
        few, some = encoded[: given.texts // 100], encoded[: given.texts // 10]

        def answer() -> pl.DataFrame:
            return pl.concat(ours.answer(Likelihood, asked))

        own = float(answer()["logprob"].explode().sum())
        loop(model, few[:8], 1)
        agrees = abs(loop(model, encoded[:512], 16) - float(answer()["logprob"].head(512).explode().sum()))
        rows = []
        for _ in range(given.rounds):
            mine = tokens / seconds(answer)
            padded = sum(map(len, some)) / seconds(lambda: loop(model, some, 16))
            single = sum(map(len, few)) / seconds(lambda: loop(model, few, 1))
            rows.append((mine, mine / padded, mine / single))
        parameters = sum(p.numel() for p in model.parameters())
    mine, padded, single = np.median(rows, axis=0)
    print(
        json.dumps(
            {
                "device": torch.cuda.get_device_name(0),
                "texts": len(texts),
                "tokens": tokens,
                "mean log-probability": round(own / tokens, 4),
                "sum differs from the loop's, per token": round(agrees / sum(map(len, encoded[:512])), 6),
                "tokens per second": round(float(mine)),
                "TFLOP/s (2 per parameter and token)": round(float(mine) * 2 * parameters / 1e12, 1),
                "times padded batches of 16": round(float(padded), 1),
                "times one at a time": round(float(single), 1),
                "peak GPU memory, MB": torch.cuda.max_memory_allocated() // 2**20,
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
