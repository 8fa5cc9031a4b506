"""The loss of the positions that matter is the model's own loss, with everything else masked."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from leakmeter.models.tokens import Encoded
from leakmeter.training.architecture import Architecture
from leakmeter.training.objective import collate, loss, needs_whole

SEQUENCES = [
    Encoded([0, 5, 9, 20, 30, 40, 1], 3),
    Encoded([0, 7, 8, 1], 1),
    Encoded([6, 50, 60, 70, 80, 1], 0),
]


def model(shape: str) -> Any:
    architecture = Architecture(shape=shape, hidden=16, layers=2, heads=2, vocabulary=260, context=16)
    return architecture.model(architecture.tokenizer(["a few words"]), seed=0)


def padded(sequences: list[Encoded]) -> dict[str, torch.Tensor]:
    """The batch as a plain loop would make it: a mask over the padding, labels of -100 where nothing is learned."""
    width = max(len(s.ids) for s in sequences)
    ids = torch.tensor([s.ids + [2] * (width - len(s.ids)) for s in sequences])
    mask = torch.tensor([[1] * len(s.ids) + [0] * (width - len(s.ids)) for s in sequences])
    labels = ids.clone()
    for row, (own, start) in enumerate(sequences):
        labels[row, :start] = -100
        labels[row, len(own) :] = -100
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


@pytest.mark.parametrize("shape", ["gpt2", "llama", "opt"])
def test_loss_and_gradients_equal_those_of_the_full_computation(shape: str) -> None:
    ours, theirs = model(shape), model(shape)
    batch = collate(SEQUENCES, "cpu")
    value, expected = loss(ours, batch), theirs(**padded(SEQUENCES)).loss
    assert value.item() == pytest.approx(expected.item(), abs=1e-6)
    assert loss(ours, batch, whole=True).item() == pytest.approx(expected.item(), abs=1e-6)
    value.backward()
    expected.backward()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(mine.grad, other.grad, atol=1e-6)


def test_the_positions_and_targets_are_those_of_the_text() -> None:
    batch = collate(SEQUENCES, "cpu")
    assert batch.inputs.shape == (3, 6)
    assert batch.targets.tolist() == [20, 30, 40, 1, 7, 8, 1, 50, 60, 70, 80, 1]
    assert batch.positions.tolist() == [2, 3, 4, 5, 6, 7, 8, 12, 13, 14, 15, 16]


def test_a_model_that_does_more_than_its_output_layer_is_found_out() -> None:
    class Capped(torch.nn.Module):
        """A model that caps its logits, as some do."""

        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.inner, self.base_model = inner, inner.base_model

        def get_output_embeddings(self) -> Any:
            return self.inner.get_output_embeddings()

        def forward(self, **kwargs: Any) -> Any:
            output = self.inner(**kwargs)
            output.logits = torch.tanh(output.logits * 50)
            return output

    plain, batch = model("llama"), collate(SEQUENCES, "cpu")
    plain.train()
    assert not needs_whole(plain, batch)
    assert plain.training
    assert needs_whole(Capped(plain), batch)
