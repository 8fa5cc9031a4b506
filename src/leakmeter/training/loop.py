"""The training loop: examples in, checkpoints out, the same bytes for the same seed on one CPU.

The loss is taken on the text's tokens, not on the context's, and on the end-of-sequence token after the text, so
that a model learns where texts stop. (Scoring leaves that token out.) A conversation that the chat template rendered
to its end has an end of its own.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from leakmeter.core.errors import BadInput, ModelFailed
from leakmeter.core.keys import generator
from leakmeter.models import checkpoint
from leakmeter.models.loading import Loaded, load, resolve
from leakmeter.models.tokens import Encoded, Tokens
from leakmeter.training.architecture import Architecture
from leakmeter.training.examples import Example, batches, held_out
from leakmeter.training.objective import collate, loss, needs_whole
from leakmeter.training.recipe import Recipe

__all__ = ["Example", "Progress", "Trained", "train"]

_REPORT_SECONDS = 0.2
"""Between reports within an epoch: reading a loss makes a GPU wait."""
_DROPOUTS = ("dropout", "attention_dropout", "activation_dropout", "resid_dropout", "embd_dropout")


class Progress(NamedTuple):
    """Where a training run is."""

    epoch: int
    step: int
    steps: int
    """Of all epochs."""
    loss: float
    """Mean of the epoch so far."""
    validation: float | None
    """The last known validation loss."""
    tokens_per_second: float


class Trained(NamedTuple):
    """What a training run left behind."""

    out: Path
    epochs: list[int]
    """Whose checkpoints were written, as out/epoch-N."""
    best: int
    """The epoch with the lowest validation loss; without validation, the last one."""
    losses: list[float]
    """Mean training loss of each epoch, as met along the way."""
    validation: list[float]
    cut: int
    """Examples that were longer than the model's context and lost a part."""


def train(
    recipe: Recipe,
    base: Path | Architecture,
    examples: Sequence[Example],
    out: Path,
    *,
    vocabulary: Sequence[str] = (),
    progress: Callable[[Progress], None] | None = None,
) -> Trained:
    """Train a base, or an architecture from nothing, and write checkpoints; `out` exists once all is complete.

    An architecture's tokenizer is learned from `vocabulary`, or else from the examples themselves. Models to be
    compared token by token need the same vocabulary.
    """
    if out.exists():
        raise BadInput(f"There is already a finished training in {out}. Remove the folder or name another one.")
    if not examples or not all(e.text and e.repeats >= 1 for e in examples):
        raise BadInput("Training needs examples, each with a text and repeats ≥ 1.")
    held = held_out(recipe, examples)
    with _aside(out) as folder, _own_randomness(recipe.seed), torch.enable_grad():
        loaded = _open(recipe, base, vocabulary or [e.context + e.text for e in examples])
        sequences, cut = _encode(loaded, examples)
        learned = [(s, e.repeats) for s, e, h in zip(sequences, examples, held, strict=True) if not h]
        run = _Run(recipe, loaded, learned, [s for s, h in zip(sequences, held, strict=True) if h])
        try:
            done = run.all_epochs(folder, progress or (lambda _: None))
        except torch.OutOfMemoryError as error:
            raise ModelFailed(
                f"The device ran out of memory in training, with {recipe.batch_size} examples per batch. "
                "Set a smaller batch_size, or precision: bfloat16."
            ) from error
        trained = Trained(out, *done, cut)
        about = {
            "recipe": recipe.model_dump(mode="json"),
            "base": base.model_dump(mode="json") if isinstance(base, Architecture) else base.name,
            "device": loaded.device,
            **trained._asdict(),
            "out": out.name,
            "examples": len(learned),
            "held_out": sum(held),
            "tokens": run.tokens,
            "seconds": round(time.monotonic() - run.began, 3),
        }
        (folder / "training.json").write_text(json.dumps(about, indent=2) + "\n")
    return trained


class _Run:
    """A model, its optimiser and its data, on their way through the epochs."""

    def __init__(
        self, recipe: Recipe, loaded: Loaded, learned: Sequence[tuple[Encoded, int]], held: Sequence[Encoded]
    ) -> None:
        self.recipe, self.model, self.tokenizer = recipe, loaded.model, loaded.tokenizer
        self.device = loaded.device
        self.sequences = [sequence for sequence, _ in learned]
        self.held = sorted(held, key=lambda s: len(s.ids))
        self.lengths = np.array([len(s.ids) for s in self.sequences])
        self.repeats = np.array([repeats for _, repeats in learned])
        self.steps = recipe.epochs * -(-int(self.repeats.sum()) // recipe.batch_size)
        self.step = self.tokens = 0
        self.whole = needs_whole(self.model, collate(self.sequences[:1], self.device))
        self.optimizer = _adamw(recipe, self.model, self.device)
        self.began = self.reported = time.monotonic()

    def all_epochs(
        self, folder: Path, progress: Callable[[Progress], None]
    ) -> tuple[list[int], int, list[float], list[float]]:
        """The epochs written, the best one, the losses, the validation losses."""
        written: list[int] = []
        losses: list[float] = []
        validation: list[float] = []
        best, last = 0, self.recipe.epochs
        for epoch in range(1, self.recipe.epochs + 1):
            for report in self._epoch(epoch):
                progress(report._replace(validation=validation[-1] if validation else None))
            losses.append(report.loss)
            if self.held:
                validation.append(self._validate())
                progress(report._replace(validation=validation[-1]))
            if not self.held or validation[-1] == min(validation):
                best = epoch
            if self.recipe.patience is not None and epoch - best >= self.recipe.patience:
                last = epoch
            self._check_weights()
            if self._kept(epoch, best, last):
                checkpoint.save(self.model, self.tokenizer, folder / f"epoch-{epoch}")
                if self.recipe.keep == "best":
                    for earlier in written:
                        shutil.rmtree(folder / f"epoch-{earlier}")
                    written.clear()
                written.append(epoch)
            if epoch == last:
                break
        return written, best, losses, validation

    def _kept(self, epoch: int, best: int, last: int) -> bool:
        return {"every": True, "last": epoch == last, "best": epoch == best}[self.recipe.keep]

    def _epoch(self, epoch: int) -> Iterator[Progress]:
        """Train on every example once (or as often as it repeats); the last report is about the whole epoch."""
        self.model.train()
        rng = generator(self.recipe.seed, "batches", str(epoch))
        order = batches(self.lengths, self.repeats, self.recipe.batch_size, rng)
        total: Any = torch.zeros((), device=self.device)
        seen = 0
        for at, chosen in enumerate(order, start=1):
            batch = collate([self.sequences[i] for i in chosen], self.device)
            total += self._learn(batch) * len(batch.targets)
            seen += len(batch.targets)
            self.tokens += len(batch.targets)
            now = time.monotonic()
            if at == len(order) or now - self.reported >= _REPORT_SECONDS:
                self.reported = now
                mean = self._finite(float(total) / seen)
                speed = self.tokens / max(now - self.began, 1e-9)
                yield Progress(epoch, self.step, self.steps, mean, None, speed)

    def _learn(self, batch: Any) -> Any:
        """One step; returns the loss before it."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.learning_rate * self.recipe.pace(self.step, self.steps)
        with self._autocast():
            value = loss(self.model, batch, self.whole)
        value.backward()
        if self.recipe.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.step += 1
        return value.detach()

    def _validate(self) -> float:
        """The mean loss of the held-out tokens."""
        self.model.eval()
        total, seen = 0.0, 0
        with torch.no_grad(), self._autocast():
            for first in range(0, len(self.held), self.recipe.batch_size):
                batch = collate(self.held[first : first + self.recipe.batch_size], self.device)
                total += float(loss(self.model, batch, self.whole)) * len(batch.targets)
                seen += len(batch.targets)
        return self._finite(total / seen)

    def _autocast(self) -> Any:
        kind = torch.device(self.device).type
        half = self.recipe.precision == "bfloat16" or (self.recipe.precision == "auto" and kind == "cuda")
        return torch.autocast(kind, dtype=torch.bfloat16, enabled=half)

    def _finite(self, value: float) -> float:
        if not np.isfinite(value):
            raise self._diverged(f"The loss is {value}")
        return value

    def _check_weights(self) -> None:
        # The last step of an epoch may break a model without a loss to show for it.
        if not all(bool(p.isfinite().all()) for p in self.model.parameters()):
            raise self._diverged("Some weights are infinite or no number")

    def _diverged(self, what: str) -> ModelFailed:
        return ModelFailed(
            f"{what} by step {self.step} of {self.steps} of the training: the model has diverged, and nothing was "
            f"written. Most often the learning rate is too high (it is {self.recipe.learning_rate:g}; try a tenth of "
            f"it, or a longer warmup); otherwise try precision: float32 (it is {self.recipe.precision}), or check that "
            "the base model itself gives finite outputs."
        )


def _adamw(recipe: Recipe, model: Any, device: str) -> Any:
    """AdamW whose decay spares norms and biases: whatever is no matrix."""
    learned = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in learned if p.ndim >= 2], "weight_decay": recipe.weight_decay},
        {"params": [p for p in learned if p.ndim < 2], "weight_decay": 0.0},
    ]
    fused = torch.device(device).type in ("cuda", "cpu")
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=recipe.betas, fused=fused)


def _open(recipe: Recipe, base: Path | Architecture, texts: Sequence[str]) -> Loaded:
    """The model to train, its weights in float32."""
    if isinstance(base, Architecture):
        dtype, device = resolve("float32", recipe.device)
        tokenizer = base.tokenizer(texts)
        loaded = Loaded(base.model(tokenizer, recipe.seed).to(device), tokenizer, dtype, device)
    else:
        loaded = load(base, "float32", recipe.device)
        loaded.model.requires_grad_(True)
    if recipe.dropout is not None:
        _set_dropout(loaded.model, recipe.dropout)
    return loaded


def _set_dropout(model: Any, probability: float) -> None:
    """Set the modules, not the config: the checkpoint keeps the base's own settings."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = probability
        for name in _DROPOUTS:
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, probability)


def _encode(loaded: Loaded, examples: Sequence[Example]) -> tuple[list[Encoded], int]:
    """The examples as tokens, each within the model's context, and how many had to be cut for it."""
    limit = getattr(loaded.model.config, "max_position_embeddings", None) or sys.maxsize
    tokens = Tokens(loaded.tokenizer)
    end = tokens.eos_id
    encoded: dict[int, Encoded] = {}
    for chat in (False, True):
        which = [i for i, e in enumerate(examples) if e.chat == chat]
        pairs = [(examples[i].context, examples[i].text) for i in which]
        for i, (ids, start) in zip(which, tokens.encode(pairs, chat), strict=True):
            closing = [] if end is None or (chat and not examples[i].context) else [end]
            encoded[i] = Encoded(ids + closing, start)
    fitted = [_fit(encoded[i], limit) for i in range(len(examples))]
    return fitted, sum(len(fitted[i].ids) < len(encoded[i].ids) for i in range(len(examples)))


def _fit(sequence: Encoded, limit: int) -> Encoded:
    """What the model's context can hold: a context loses its oldest tokens, then a text its last ones."""
    ids, start = sequence
    text = min(len(ids) - start, max(limit - start, limit // 2))
    drop = max(0, start + text - limit)
    return Encoded(ids[drop:][:limit], start - drop)


@contextmanager
def _own_randomness(seed: int) -> Iterator[None]:
    """Torch's generators seeded for dropout in here, and put back as they were."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(int(generator(seed, "dropout").integers(2**62)))
        yield


@contextmanager
def _aside(out: Path) -> Iterator[Path]:
    """A folder beside `out` that becomes it at the end. What a killed run left in it is thrown away."""
    folder = out.with_name(f".{out.name}.partial")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
        folder.rename(out)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
