"""The causal objective: the mean cross-entropy of the tokens to learn, computed at their positions only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from leakmeter.models.tokens import Encoded


class Batch(NamedTuple):
    """Token sequences side by side, and the positions whose next token is to be learned."""

    inputs: Any
    """Sequences × positions, padded on the right."""
    positions: Any
    """Into the flattened inputs."""
    targets: Any
    """The token that should follow each position."""


def collate(sequences: Sequence[Encoded], device: str) -> Batch:
    """Sequences as one batch. A sequence's last token is never an input: nothing is learned after it.

    The padding needs no mask: it stands on the right, where no learned position can see it.
    """
    width = max(len(one.ids) for one in sequences) - 1
    inputs = np.zeros((len(sequences), width), dtype=np.int64)
    positions, targets = [], []
    for row, (ids, start) in enumerate(sequences):
        inputs[row, : len(ids) - 1] = ids[:-1]
        first = max(start, 1)  # the first token of all has nothing before it to be predicted from
        positions.append(np.arange(row * width + first - 1, row * width + len(ids) - 1))
        targets.append(np.asarray(ids[first:], dtype=np.int64))
    arrays = inputs, np.concatenate(positions), np.concatenate(targets)
    return Batch(*(torch.from_numpy(array).to(device, non_blocking=True) for array in arrays))


def loss(model: Any, batch: Batch, whole: bool = False) -> Any:
    """The mean cross-entropy of a batch's targets; `whole`: by way of the model's own, complete output."""
    if whole:
        logits = model(input_ids=batch.inputs, use_cache=False).logits.flatten(0, 1)[batch.positions]
    else:
        hidden = model.base_model(input_ids=batch.inputs, use_cache=False).last_hidden_state
        logits = model.get_output_embeddings()(hidden.flatten(0, 1)[batch.positions])
    return torch.nn.functional.cross_entropy(logits.float(), batch.targets)


def needs_whole(model: Any, batch: Batch) -> bool:
    """Whether a model does more to its last hidden states than its output layer (scaling, capping); tried out."""
    if model.get_output_embeddings() is None:
        return True
    training = model.training
    model.eval()
    with torch.no_grad():
        short, full = loss(model, batch), loss(model, batch, whole=True)
    model.train(training)
    return not torch.allclose(short, full, rtol=1e-3, atol=1e-3)
