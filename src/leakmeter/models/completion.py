"""Completion: how a causal model goes on after prompts, in batches of prompts that are decoded alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl
import torch

from leakmeter.core.question import Completion, Decoding
from leakmeter.models.batching import pack
from leakmeter.models.decoding import Continuation, Ending, beam, choose
from leakmeter.models.network import Network
from leakmeter.models.noise import draw_key
from leakmeter.models.rows import Window
from leakmeter.models.stepping import stepping
from leakmeter.models.tokens import Tokens


class Completer:
    """A model that continues prompts."""

    def __init__(self, network: Network, tokens: Tokens, window: Window) -> None:
        self._network, self._tokens, self._window = network, tokens, window
        self._eos = _ends(network, tokens)

    def complete(self, questions: Sequence[Completion], budget: int) -> Iterator[pl.DataFrame]:
        """Answers, a frame per batch; a batch holds at most `budget` tokens, those to be generated included."""
        alike: dict[Decoding, list[int]] = {}
        for q, question in enumerate(questions):
            alike.setdefault(question.decoding, []).append(q)
        for how, members in alike.items():
            prompts = [self._prompt(questions[q]) for q in members]
            copies = how.beams if how.method == "beam" else how.returns
            lengths = [(len(ids) + how.max_tokens) * copies for ids, _ in prompts]
            for batch in pack(lengths, budget, self._network.seam):
                asked = [(members[n], questions[members[n]], prompts[n]) for n in batch]
                yield self._answer(asked, how)

    def _prompt(self, question: Completion) -> tuple[list[int], bool]:
        """A prompt's tokens, cut on the left where the model cannot read it all, and whether it was cut."""
        ids = self._tokens.encode([(question.prompt, "")], question.chat)[0].ids
        # A model without a beginning-of-sequence token still has to be given something to go on from.
        ids = ids or [self._tokens.pad_id]
        room = None if self._window.limit is None else max(self._window.limit - question.decoding.max_tokens, 2)
        if room is None or len(ids) <= room:
            return ids, False
        kept = 1 if ids[0] == self._window.bos_id else 0
        return ids[:kept] + ids[len(ids) - room + kept :], True

    def _answer(self, asked: Sequence[tuple[int, Completion, tuple[list[int], bool]]], how: Decoding) -> pl.DataFrame:
        prompts = [prompt for _, _, (prompt, _) in asked]

        def text(n: int, ids: Sequence[int]) -> str:
            return self._tokens.continuation(prompts[n], ids[:-1] if ids and ids[-1] in self._eos else ids)

        def stops(n: int, ids: Sequence[int]) -> bool:
            return any(stop in text(n, ids) for stop in how.stop)

        ending = Ending(self._eos, stops if how.stop else None)
        with torch.inference_mode():
            rows = stepping(self._network, prompts)
            if how.method == "beam":
                found = beam(rows, len(prompts), how, ending)
            else:
                keys = [[draw_key(how.seed, it.key(), d) for d in range(how.returns)] for _, it, _ in asked]
                found = choose(rows, keys, how, ending)
        return _frame(
            (q, i, _cut(text(n, one.ids), how.stop), one, cut)
            for n, (q, _, (_, cut)) in enumerate(asked)
            for i, one in enumerate(found[n])
        )


def _frame(answers: Iterator[tuple[int, int, str, Continuation, bool]]) -> pl.DataFrame:
    rows = [(q, i, text, one.logprob, len(one.ids), one.finished, cut) for q, i, text, one, cut in answers]
    return pl.DataFrame(rows, schema=Completion.schema, orient="row")


def _cut(text: str, stops: Sequence[str]) -> str:
    """The text before the first stop string."""
    found = [place for stop in stops if (place := text.find(stop)) >= 0]
    return text[: min(found)] if found else text


def _ends(network: Network, tokens: Tokens) -> frozenset[int]:
    """The tokens that end a text: the tokeniser's, and those the model's author lists for generation."""
    listed = getattr(getattr(network.model, "generation_config", None), "eos_token_id", None)
    ids = listed if isinstance(listed, list) else [listed]
    return frozenset(i for i in (*ids, tokens.eos_id) if i is not None)
