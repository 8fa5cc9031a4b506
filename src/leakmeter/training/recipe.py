"""Recipe: how a model is trained, whatever it is trained from and on."""

from __future__ import annotations

from math import ceil, cos, pi
from typing import Annotated, Literal

from pydantic import Field, model_validator

from leakmeter.core.spec import Spec

Share = Annotated[float, Field(ge=0.0, lt=1.0)]


class Recipe(Spec):
    """The settings of one training run. The defaults suit the fine-tuning of a pretrained model."""

    type: Literal["recipe"] = "recipe"
    epochs: int = Field(3, ge=1)
    batch_size: int = Field(16, ge=1)
    """Examples per step. Batches hold examples of similar length, so this decides the steps, not the padding."""
    learning_rate: float = Field(5e-5, gt=0)
    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    """How the learning rate falls from its peak to zero, after the warm-up."""
    warmup: Share = 0.05
    """The share of all steps in which the learning rate rises to its peak."""
    betas: tuple[Share, Share] = (0.9, 0.999)
    weight_decay: float = Field(0.0, ge=0)
    """Decoupled from the gradient; norms and biases are spared."""
    clip: float | None = Field(1.0, gt=0)
    """The largest gradient norm; None: not clipped."""
    dropout: Share | None = None
    """For every dropout the model has; None: the model's own."""
    validation: Share = 0.0
    """The share of distinct examples held out by a hash: never trained on, their loss is taken after each epoch."""
    patience: int | None = Field(None, ge=1)
    """Stop after this many epochs in a row without a lower validation loss."""
    keep: Literal["every", "last", "best"] = "last"
    """The epochs whose checkpoints are written; best: the lowest validation loss."""
    seed: int = 0
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """The arithmetic of a step (weights stay in float32); auto: bfloat16 on a GPU, float32 on a CPU."""
    device: str = "auto"

    @model_validator(mode="after")
    def _validation_where_needed(self) -> Recipe:
        if self.validation == 0 and (self.patience is not None or self.keep == "best"):
            raise ValueError(
                "patience and keep: best go by the validation loss; set validation to the share of examples to hold out"
            )
        return self

    def pace(self, step: int, steps: int) -> float:
        """The learning rate of a step (counted from 0), as a share of its peak."""
        rising = ceil(self.warmup * steps)
        if step < rising:
            return (step + 1) / (rising + 1)
        done = (step - rising) / (steps - rising)
        match self.schedule:
            case "cosine":
                return (1 + cos(pi * done)) / 2
            case "linear":
                return 1 - done
            case "constant":
                return 1.0
