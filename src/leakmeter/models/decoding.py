"""Decoding: how continuations are chosen: the likeliest token, a draw, or a beam search.

Log-probabilities are the model's own, whatever temperature or cut-off the choice was made with. Beam search ranks by
log-probability / length^penalty and stops, for each prompt by itself, once no running beam can beat the worst of the
kept ones at its present length.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from leakmeter.core.errors import ModelFailed
from leakmeter.core.question import Decoding
from leakmeter.models.noise import uniform
from leakmeter.models.stepping import Stepping


class Continuation(NamedTuple):
    """Tokens generated after a prompt; an end-of-sequence token is counted among them."""

    ids: list[int]
    logprob: float
    finished: bool
    """It ended by itself, with an end-of-sequence token or a stop string."""


@dataclass(frozen=True, slots=True)
class Ending:
    """When a continuation ends by itself."""

    eos: frozenset[int]
    stops: Callable[[int, Sequence[int]], bool] | None
    """Whether the tokens after prompt number n contain a stop string."""

    def reached(self, prompt: int, ids: Sequence[int], least: int) -> bool:
        if ids[-1] in self.eos:
            return True
        return self.stops is not None and len(ids) >= least and self.stops(prompt, ids)


@dataclass(slots=True)
class _Line:
    """One continuation in the making."""

    prompt: int
    key: int
    ids: list[int] = field(default_factory=list)
    logprob: float = 0.0
    finished: bool = False


def choose(rows: Stepping, keys: Sequence[Sequence[int]], how: Decoding, ending: Ending) -> list[list[Continuation]]:
    """Greedy decoding or sampling: `keys[n]` holds the keys of the draws for prompt n."""
    lines = [_Line(prompt, key) for prompt, draws in enumerate(keys) for key in draws]
    logits = rows.begin()
    active = lines
    if len(lines) > len(keys):
        repeated = torch.tensor([line.prompt for line in lines], device=logits.device)
        rows.keep(repeated)
        logits = logits[repeated]
    for step in range(how.max_tokens):
        logprobs = _logprobs(logits, ending, step < how.min_tokens)
        if how.method == "sample":
            chosen = _drawn(logprobs, how, torch.tensor([line.key for line in active], device=logits.device), step)
        else:
            chosen = logprobs.argmax(-1)
        gained = logprobs.gather(1, chosen[:, None])[:, 0]
        for line, token, gain in zip(active, chosen.tolist(), gained.tolist(), strict=True):
            line.ids.append(token)
            line.logprob += gain
            line.finished = ending.reached(line.prompt, line.ids, how.min_tokens)
        going = [i for i, line in enumerate(active) if not line.finished]
        if not going or step + 1 == how.max_tokens:
            break
        if len(going) < len(active):
            chosen = chosen[(kept := torch.tensor(going, device=logits.device))]
            rows.keep(kept)
            active = [active[i] for i in going]
        logits = rows.step(chosen)
    found: list[list[Continuation]] = [[] for _ in keys]
    for line in lines:
        found[line.prompt].append(Continuation(line.ids, line.logprob, line.finished))
    return found


def beam(rows: Stepping, prompts: int, how: Decoding, ending: Ending) -> list[list[Continuation]]:
    """Beam search: the best `how.returns` continuations of each prompt, the best first."""
    searches = [_Search(prompt, how, ending) for prompt in range(prompts)]
    logits = rows.begin()
    active = searches
    for step in range(how.max_tokens):
        logprobs = _logprobs(logits, ending, step < how.min_tokens)
        width, vocabulary = len(logprobs) // len(active), logprobs.shape[1]
        scores = torch.tensor([search.scores[:width] for search in active], device=logits.device)
        total = (logprobs.view(len(active), width, vocabulary) + scores[:, :, None]).flatten(1)
        candidates = min(max(2, 1 + len(ending.eos)) * how.beams, total.shape[1])
        best = total.topk(candidates)
        for search, values, places in zip(active, best.values.tolist(), best.indices.tolist(), strict=True):
            search.advance([(value, *divmod(place, vocabulary)) for value, place in zip(values, places, strict=True)])
        going = [(n, search) for n, search in enumerate(active) if not search.done]
        if not going or step + 1 == how.max_tokens:
            break
        origin = [n * width + parent for n, search in going for parent in search.parents]
        rows.keep(torch.tensor(origin, device=logits.device))
        active = [search for _, search in going]
        logits = rows.step(torch.tensor([ids[-1] for s in active for ids in s.running], device=logits.device))
    return [search.results() for search in searches]


class _Search:
    """The beams of one prompt."""

    def __init__(self, prompt: int, how: Decoding, ending: Ending) -> None:
        self._prompt, self._how, self._ending = prompt, how, ending
        self.running: list[list[int]] = [[]]
        self.scores: list[float] = [0.0]
        self.parents: list[int] = []
        self.done = False
        self._kept: list[tuple[float, int, Continuation]] = []
        """A heap of the best ended continuations, the worst at its top."""
        self._count = 0

    def advance(self, candidates: Sequence[tuple[float, int, int]]) -> None:
        """One step: candidates (score, beam, token), the best first, end, run on or are dropped."""
        beams, old = self._how.beams, self.running
        running: list[list[int]] = []
        self.scores, self.parents = [], []
        spare: list[tuple[list[int], int]] = []
        for rank, (score, parent, token) in enumerate(candidates):
            ids = [*old[parent], token]
            ended = self._ending.reached(self._prompt, ids, self._how.min_tokens)
            if ended or len(ids) == self._how.max_tokens:
                # Candidates beyond the number of beams are there to run on, not to be kept.
                if rank < beams:
                    self._keep(Continuation(ids, score, ended))
                spare.append((ids, parent))
            elif len(running) < beams:
                running.append(ids)
                self.scores.append(score)
                self.parents.append(parent)
        length = len(old[0]) + 1
        if running and len(self._kept) == beams:
            self.done = self.scores[0] / length**self._how.length_penalty <= self._kept[0][0]
        elif not running:
            self.done = True
        while running and len(running) < beams:
            # Every search keeps its number of rows; these cannot win.
            ids, parent = spare[0]
            running.append(ids)
            self.scores.append(-1e9)
            self.parents.append(parent)
        self.running = running

    def results(self) -> list[Continuation]:
        return [kept for _, _, kept in sorted(self._kept, key=lambda k: (-k[0], -k[1]))][: self._how.returns]

    def _keep(self, ended: Continuation) -> None:
        self._count -= 1
        entry = (ended.logprob / len(ended.ids) ** self._how.length_penalty, self._count, ended)
        if len(self._kept) < self._how.beams:
            heapq.heappush(self._kept, entry)
        else:
            heapq.heappushpop(self._kept, entry)


def _logprobs(logits: Any, ending: Ending, goes_on: bool) -> Any:
    logprobs = torch.log_softmax(logits, -1)
    if bool(logprobs.isnan().any()):
        raise ModelFailed(
            "The model gives NaN logits, so nothing can be generated with it. Its weights may be damaged (a training "
            "run that diverged), or its precision too narrow for it: try dtype: float32."
        )
    if goes_on and ending.eos:
        logprobs[:, sorted(ending.eos)] = -torch.inf
    return logprobs


def _drawn(logprobs: Any, how: Decoding, keys: Any, step: int) -> Any:
    """One token per row by the Gumbel-max trick: the argmax of log p + Gumbel noise is a draw from p."""
    scores = logprobs / how.temperature
    if 0 < how.top_k < scores.shape[1]:
        scores = scores.masked_fill(scores < scores.topk(how.top_k).values[:, -1:], -torch.inf)
    if how.top_p < 1:
        ordered, order = scores.sort(dim=-1, descending=True, stable=True)
        share = ordered.softmax(-1)
        before = share.cumsum(-1) - share
        dropped = torch.zeros_like(scores, dtype=torch.bool).scatter(1, order, before >= how.top_p)
        scores = scores.masked_fill(dropped, -torch.inf)
    tokens = torch.arange(scores.shape[1], device=scores.device)[None]
    noise = -(-uniform(keys[:, None], step, tokens).log()).log()
    return (scores.double() + noise).argmax(-1)
