"""Causal: a causal language model on this machine (a folder, a LoRA adapter, a GGUF file), ready to answer."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, cast

import polars as pl
from pydantic import Field

from leakmeter.core.errors import BadInput, CannotAnswer
from leakmeter.core.keys import file_digest, short
from leakmeter.core.model import ModelSpec
from leakmeter.core.question import Completion, Kind, Likelihood, Question
from leakmeter.models import loading

if TYPE_CHECKING:
    from leakmeter.models.batching import Halved

for _package in ("torch", "transformers", "safetensors"):
    # Said here, where naming the model imports this file, and not only when it is opened.
    if find_spec(_package) is None:
        raise ModuleNotFoundError(f"No module named '{_package}'", name=_package)

_BUDGET = {"cpu": 1024, "cuda": 16384}
"""Tokens per batch: on a CPU what keeps its caches warm, on a GPU what keeps it busy."""
_DECODING = 8
"""While decoding, one token per row is computed at a time, so more rows fit."""


class Causal(ModelSpec):
    """A causal language model on this machine."""

    type: Literal["causal"] = "causal"
    about: ClassVar[str] = "A causal language model: a folder of safetensors, a LoRA adapter, or a GGUF file."
    path: Path
    """A folder with config.json and *.safetensors, an adapter folder with adapter_config.json, or a .gguf file."""
    base: Path | None = None
    """The base of an adapter whose own config does not say where it lies."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """auto: bfloat16 on a GPU, float32 on a CPU."""
    device: str = "auto"
    bos: Literal["auto", "always", "never"] = "auto"
    """Whether a beginning-of-sequence token stands before every text; auto: unless it is there already."""
    token_budget: int | None = Field(default=None, ge=1)
    """Tokens per batch; by default 1,024 on a CPU and 16,384 on a GPU, halved when memory runs out."""
    max_length: int | None = Field(default=None, ge=8)
    """Tokens the model reads at once; by default what its config says."""
    stride: int | None = Field(default=None, ge=1)
    """How many new tokens each window on a longer text scores; by default half of it."""

    def answers(self) -> frozenset[Kind]:
        return frozenset({Likelihood, Completion})

    def fingerprint(self) -> str:
        dtype, _ = loading.resolve(self.dtype, self.device)
        settings = (str(self.version), dtype, self.bos, str(self.max_length), str(self.stride))
        return short("causal", *settings, *(part for file in self._files() for part in file))

    @contextmanager
    def open(self) -> Iterator[CausalAnswerer]:
        answerer = CausalAnswerer(self, loading.load(self.path, self.dtype, self.device, self.base))
        try:
            yield answerer
        finally:
            answerer.close()

    def default_reference(self) -> Causal | None:
        if not loading.is_adapter(self.path):
            return None
        return self.model_copy(update={"path": loading.base_of(self.path, self.base), "base": None})

    def environment(self) -> Mapping[str, object]:
        dtype, device = loading.resolve(self.dtype, self.device)
        return {"files": dict(self._files()), "precision": dtype, "device": device}

    def _files(self) -> list[tuple[str, str]]:
        """Names and SHA-256; where the files lie is left out, since it says nothing about the model."""
        found = loading.files(self.path, self.base)
        own = {self.path, self.path.parent}
        names = [file.name if file.parent in own else f"base/{file.name}" for file in found]
        return [(name, _digest(file, *_stamp(file))) for name, file in zip(names, found, strict=True)]


class CausalAnswerer:
    """An open causal language model."""

    def __init__(self, spec: Causal, loaded: loading.Loaded) -> None:
        from leakmeter.models.network import Network
        from leakmeter.models.rows import Window
        from leakmeter.models.tokens import Tokens

        self.network = Network(loaded.model, loaded.device)
        self.tokens = Tokens(loaded.tokenizer, spec.bos)
        known = [length for length in (self.network.longest, spec.max_length) if length]
        limit = min(known) if known else None
        stride = spec.stride or (limit or 2) // 2
        if limit is not None and stride > limit - 2:
            raise BadInput(f"stride: {stride} leaves no context in windows of {limit} tokens. Use at most {limit - 2}.")
        self.window = Window(limit, stride, self.tokens.bos_id)
        self.budget = spec.token_budget or _BUDGET.get(self.network.device.type, _BUDGET["cuda"])
        self.events: list[Halved] = []
        """What happened while the last questions were answered: memory that ran out, the budget that held."""

    def answer(self, kind: Kind, questions: Sequence[Question]) -> Iterator[pl.DataFrame]:
        """Answers in frames. They come when the block is done, since it begins again when memory runs out."""
        self.events.clear()
        if not questions:
            return
        if kind is Likelihood:
            yield from self._likelihood(cast("Sequence[Likelihood]", questions))
        elif kind is Completion:
            yield from self._completion(cast("Sequence[Completion]", questions))
        else:
            raise CannotAnswer(f"A causal language model answers likelihoods and completions, not {kind.__name__}.")

    def close(self) -> None:
        import gc

        import torch

        del self.network
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _likelihood(self, questions: Sequence[Likelihood]) -> Iterator[pl.DataFrame]:
        import torch

        from leakmeter.models import likelihood
        from leakmeter.models.batching import within_memory

        texts = likelihood.Texts.of(questions, self.tokens)
        with torch.inference_mode():
            scored = within_memory(
                lambda budget: likelihood.score(self.network, texts, self.window, budget), self.budget, self.events
            )
        yield likelihood.frame(texts, scored, self.window)

    def _completion(self, questions: Sequence[Completion]) -> Iterator[pl.DataFrame]:
        from leakmeter.models.batching import within_memory
        from leakmeter.models.completion import Completer

        completer = Completer(self.network, self.tokens, self.window)
        yield from within_memory(
            lambda budget: list(completer.complete(questions, budget)), self.budget * _DECODING, self.events
        )


def _stamp(file: Path) -> tuple[int, int]:
    status = os.stat(file)
    return status.st_size, status.st_mtime_ns


@cache
def _digest(file: Path, size: int, modified: int) -> str:
    return file_digest(file)
