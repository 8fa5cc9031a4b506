"""Trained: a model that the audit itself trains on a selection of the records, then opens like any other."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from leakmeter.audit.store import Store
from leakmeter.core.errors import BadInput
from leakmeter.core.keys import canonical, short
from leakmeter.core.model import Answerer, ModelSpec
from leakmeter.core.question import Completion, Kind, Likelihood
from leakmeter.core.record import Record, Select
from leakmeter.text.passages import passages, plain_text
from leakmeter.training.architecture import Architecture
from leakmeter.training.examples import Example, held_out
from leakmeter.training.recipe import Recipe


class Trained(ModelSpec):
    """A base or an architecture, the records it is trained on, and how. Membership follows from `on`."""

    type: Literal["trained"] = "trained"
    on: Select
    base: Path | None = None
    architecture: Architecture | None = None
    recipe: Recipe = Recipe()
    epoch: int | None = None
    """The checkpoint to open; None: the one the recipe ends with."""
    vocabulary: Select | None = None
    """For an architecture: the records its tokeniser is learned from. None: the records of `on`."""
    repeats: str | None = None
    """The field that says how often a record is trained on in each epoch."""
    score: Literal["assistant", "all"] = "assistant"

    def answers(self) -> frozenset[Kind]:
        return frozenset({Likelihood, Completion})

    def fingerprint(self) -> str:
        raise BadInput("A model of type 'trained' has no weights before the audit has trained it.")

    def open(self) -> AbstractContextManager[Answerer]:
        raise BadInput("A model of type 'trained' is opened by an audit, after it has been trained.")

    def examples(self, records: Sequence[Record]) -> list[Example]:
        return [
            Example(part.context, part.text, part.chat, self._times(record))
            for record in records
            if self.on.takes(record)
            for part in passages(record.fields, self.score)
        ]

    def membership(self, records: Sequence[Record]) -> list[bool | None]:
        """Whether each record is trained on; None: held out for validation, so neither member nor non-member."""
        held: set[int] = set()
        if self.recipe.validation > 0:
            mine = [(i, example) for i, record in enumerate(records) for example in self.examples([record])]
            kept_back = held_out(self.recipe, [example for _, example in mine])
            held = {i for (i, _), out in zip(mine, kept_back, strict=True) if out}
        return [None if i in held else self.on.takes(record) for i, record in enumerate(records)]

    def _times(self, record: Record) -> int:
        if self.repeats is None:
            return 1
        value = record.fields.get(self.repeats, "1")
        if not value.isdigit():
            raise BadInput(f"`repeats: {self.repeats}` should name a field that holds whole numbers and nothing else.")
        return int(value)

    def job(self, records: Sequence[Record], store: Store) -> TrainJob:
        """The training job; its folder is named by everything that decides the weights."""
        if (self.base is None) == (self.architecture is None):
            raise BadInput("A trained model needs either `base` (a model folder) or `architecture` (from scratch).")
        examples = self.examples(records)
        if not examples:
            raise BadInput(f"No record is in the training selection (split {', '.join(self.on.split) or 'any'}).")
        texts = [plain_text(r.fields) for r in records if (self.vocabulary or self.on).takes(r)]
        decisive = self.recipe.model_dump(mode="json", exclude={"keep", "device"})
        start = self.architecture.key if self.architecture else self._base().fingerprint()
        key = short(start, canonical(decisive), canonical(examples), canonical(texts if self.architecture else []))
        keep = self.recipe.keep if self.epoch is None else "every"
        recipe = self.recipe.model_copy(update={"keep": keep})
        return TrainJob(
            self, recipe, tuple(examples), tuple(texts if self.architecture else ()), store.models / key, store
        )

    def _base(self) -> ModelSpec:
        from leakmeter.models.causal import Causal

        assert self.base is not None
        return Causal(path=self.base)


@dataclass(frozen=True)
class TrainJob:
    """Train once for all epochs; the folder's existence means complete."""

    spec: Trained
    recipe: Recipe
    examples: tuple[Example, ...]
    texts: tuple[str, ...]
    out: Path
    store: Store
    progress: Callable[[Any], None] | None = field(default=None, compare=False)

    model: None = None

    @property
    def label(self) -> str:
        return f"training on {len(self.examples)} texts"

    @property
    def checkpoint(self) -> Path | None:
        """The folder to open; None where it is still to be made."""
        written = self.out / "training.json"
        if not written.exists():
            return None
        about = json.loads(written.read_text())
        ends_with = about["best"] if self.recipe.keep == "best" else about["epochs"][-1]
        epoch = self.spec.epoch if self.spec.epoch is not None else ends_with
        folder = self.out / f"epoch-{epoch}"
        return folder if folder.exists() else None

    def run(self, answerer: Answerer | None) -> None:
        import shutil

        from leakmeter.training.loop import train

        if self.spec.epoch is not None and not 1 <= self.spec.epoch <= self.recipe.epochs:
            raise BadInput(
                f"`epoch: {self.spec.epoch}` was asked for, but the recipe trains {self.recipe.epochs} epochs."
            )
        self.store.private(self.store.models)
        if self.out.exists():
            shutil.rmtree(self.out)
        base = self.spec.architecture or self.spec.base
        assert base is not None
        train(self.recipe, base, self.examples, self.out, vocabulary=self.texts, progress=self.progress)
        self.store.event("trained", model=self.out.name, examples=len(self.examples), epochs=self.recipe.epochs)

    def opened(self) -> ModelSpec:
        """The trained checkpoint as an ordinary model."""
        from leakmeter.models.causal import Causal

        folder = self.checkpoint
        if folder is None:
            raise BadInput(f"Epoch {self.spec.epoch} was not written: early stopping ended the training before it.")
        return Causal(path=folder)
