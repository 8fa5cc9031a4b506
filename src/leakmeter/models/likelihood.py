"""Likelihood: per token of a text its log-probability, and the moments of the distribution it was drawn from.

With z the logits at a position and p = softmax(z): log p(token); the mean E[log p] and the deviation of log p under p
itself (what Min-K%++ standardises with); and whether the token is the model's first choice. Only the positions asked
about go through the output layer, in chunks, so memory does not grow with the vocabulary times the text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from leakmeter.core.errors import ModelFailed
from leakmeter.core.question import Likelihood
from leakmeter.models.batching import pack
from leakmeter.models.network import Network
from leakmeter.models.rows import Piece, Row, Sharing, Window, joined, rows
from leakmeter.models.tokens import Encoded, Tokens

Floats = NDArray[np.float32]

_FLOOR = -1000.0
"""Logits are cut off this far below the greatest: some models give tokens they never use minus infinity."""
_PADDING = 0.08
"""The share of padding from which on short rows are put end to end instead."""
_CHUNK = {"cpu": 2**23}
"""Logits at once, enough for a fast product with the output layer; 2^26 elsewhere than on a CPU."""
_SLICE = {"cpu": 2**19}
"""Logits whose moments are taken at once, few enough to stay in a CPU's cache."""


@dataclass(frozen=True, slots=True)
class Scored:
    """The answers of a block, flat: the tokens of all its texts, one after the other."""

    logprob: Floats
    mean: Floats
    deviation: Floats
    first: NDArray[np.bool_]

    @classmethod
    def empty(cls, size: int) -> Scored:
        logprob, mean, deviation = np.full((3, size), np.nan, dtype=np.float32)
        return cls(logprob, mean, deviation, np.zeros(size, dtype=np.bool_))


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of a block of questions, tokenised once."""

    question: list[int]
    index: list[int]
    encoded: list[Encoded]

    @classmethod
    def of(cls, questions: Sequence[Likelihood], tokens: Tokens) -> Texts:
        texts = cls([], [], [])
        for chat in (False, True):
            asked = [(q, i) for q, it in enumerate(questions) if it.chat is chat for i in range(len(it.texts))]
            pairs = [(questions[q].context, questions[q].texts[i]) for q, i in asked]
            texts.encoded.extend(tokens.encode(pairs, chat))
            texts.question.extend(q for q, _ in asked)
            texts.index.extend(i for _, i in asked)
        return texts

    def counts(self) -> NDArray[np.int64]:
        """How many tokens of each are scored."""
        return np.asarray([len(ids) - start for ids, start in self.encoded], dtype=np.int64)


def score(network: Network, texts: Texts, window: Window, budget: int) -> Scored:
    """Score every text of a block in batches of at most `budget` tokens."""
    counts = texts.counts()
    slots = np.cumsum(counts) - counts
    pieces = [Piece(encoded, int(slot)) for encoded, slot in zip(texts.encoded, slots, strict=True)]
    # Beyond its seam a model reads positions otherwise, so only texts within it may stand in one tree.
    reach = min((reach for reach in (network.reach, network.seam) if reach), default=None)
    shared = len(pieces) > 1 and network.trees
    sharing = Sharing(min(budget, network.largest_tree), reach) if shared else None
    scored = Scored.empty(int(counts.sum()))
    for batch in _batches(list(rows(pieces, window, sharing)), sharing, network, budget):
        _score_batch(network, batch, scored)
    return scored


def _batches(work: Sequence[Row], sharing: Sharing | None, network: Network, budget: int) -> Iterator[Sequence[Row]]:
    """Rows in batches: plain ones first, then the trees."""
    if not network.shortcut:
        # Whole rows of logits come back: fewer tokens at a time.
        budget = min(budget, max(_CHUNK.get(network.device.type, 2**26) // network.vocabulary, 1))
    plain = [row for row in work if row.ends is None]
    trees = [row for row in work if row.ends is not None]
    for places in pack([len(row.ids) for row in plain], budget, network.seam):
        batch = [plain[i] for i in places]
        tokens, width = sum(len(row.ids) for row in batch), len(batch[0].ids)
        # Where much would be padding, short rows stand better end to end.
        if sharing and width <= sharing.limit() // 4 and tokens < (1 - _PADDING) * width * len(batch):
            trees += batch
        else:
            yield batch
    trees = joined(trees, sharing.limit()) if sharing else []
    for places in pack([len(row.ids) for row in trees], budget, network.seam):
        yield [trees[i] for i in places]


def frame(texts: Texts, scored: Scored, window: Window) -> pl.DataFrame:
    """The answers as a frame: one row per text."""
    counts = texts.counts()
    base = pl.DataFrame(
        {
            "q": np.asarray(texts.question, dtype=np.uint32),
            "i": np.asarray(texts.index, dtype=np.uint32),
            "n_tokens": counts.astype(np.uint32),
            "truncated": np.asarray([not window.holds(encoded) for encoded in texts.encoded], dtype=np.bool_),
            "tokens_digest": np.asarray([_digest(ids[start:]) for ids, start in texts.encoded], dtype=np.uint64),
        }
    )
    return pl.concat([base, lists(counts, scored)], how="horizontal").select(list(Likelihood.schema))


def lists(counts: NDArray[np.int64], scored: Scored) -> pl.DataFrame:
    """Flat columns as columns of lists: each text's slice of the whole."""
    cuts = pl.DataFrame({"begin": np.cumsum(counts) - counts, "count": counts})
    flat = {name: pl.Series(name, [pl.Series(getattr(scored, name))]) for name in Scored.__slots__}
    return cuts.select(
        pl.lit(whole).first().list.slice(pl.col("begin"), pl.col("count")).alias(name) for name, whole in flat.items()
    )


def _digest(ids: Sequence[int]) -> int:
    raw = np.asarray(ids, dtype="<i8").tobytes()
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest(), "little")


def _score_batch(network: Network, batch: Sequence[Row], scored: Scored) -> None:
    width = max(len(row.ids) for row in batch)
    ids = _padded([row.ids for row in batch], width, network)
    if batch[0].ends is not None:
        positions = _padded([row.positions for row in batch], width, network)
        # Padding is a tree of its own: it sees what stands before it, and nothing sees it.
        ends = _padded([row.ends for row in batch], width, network, fill=width)
        states = network.states(ids, positions, network.sees(ends))
    else:
        # Padding on the right needs no mask: under causal attention no token sees what follows it.
        states = network.states(ids)
    places = np.concatenate([i * width + row.source for i, row in enumerate(batch)])
    order = np.argsort(places, kind="stable")
    target = np.concatenate([row.target for row in batch])[order]
    slot = np.concatenate([row.slot for row in batch])[order]
    unique, which = np.unique(places[order], return_inverse=True)
    states = states.reshape(-1, states.shape[-1])[torch.from_numpy(unique).to(network.device)]
    step = max(_CHUNK.get(network.device.type, 2**26) // network.vocabulary, 16)
    for begin in range(0, len(unique), step):
        low, high = np.searchsorted(which, [begin, begin + step])
        asked = torch.from_numpy(np.stack([which[low:high] - begin, target[low:high]])).to(network.device)
        answers = _moments(network.logits(states[begin : begin + step]), asked[0], asked[1]).cpu().numpy()
        if not np.isfinite(answers).all():
            raise ModelFailed(
                "The model gives NaN or infinite logits, so its likelihoods mean nothing. Its weights may be damaged "
                f"(a training run that diverged), or {network.dtype} may be too narrow for it: try dtype: float32."
            )
        where = slot[low:high]
        scored.logprob[where], scored.mean[where], scored.deviation[where] = answers[:3]
        scored.first[where] = answers[3] > 0


def _moments(logits: Any, row: Any, target: Any) -> Any:
    """Log-probability, mean, deviation and whether it is the greatest, for each (row, target); [4, asked].

    With y = z − max z and e = exp y, everything is in the sums of e, e·y and e·y². Shifted by the maximum, y has no
    large mean to cancel against, and the greatest logit is exactly 0.
    """
    sums = torch.empty((3, len(logits)), dtype=torch.float32, device=logits.device)
    step = max(_SLICE.get(logits.device.type, 2**26) // logits.shape[1], 1)
    scratch = torch.empty_like(logits[:step])
    for begin in range(0, len(logits), step):
        y = logits[begin : begin + step]
        y.sub_(y.amax(-1, keepdim=True)).clamp_(min=_FLOOR)
        e = torch.exp(y, out=scratch[: len(y)])
        for power in range(3):
            torch.sum(e, -1, out=sums[power, begin : begin + step])
            if power < 2:
                e.mul_(y)
    total, mean, square = sums[0], sums[1] / sums[0], sums[2] / sums[0]
    deviation = (square - mean * mean).clamp(min=0).sqrt()
    picked = logits[row, target]
    norm = total.log()
    return torch.stack([picked - norm[row], (mean - norm)[row], deviation[row], (picked == 0).float()])


def _padded(parts: Sequence[Any], width: int, network: Network, fill: int = 0) -> Any:
    table = np.full((len(parts), width), fill, dtype=np.int64)
    for i, part in enumerate(parts):
        table[i, : len(part)] = part
    return torch.from_numpy(table).to(network.device)
