"""Stepping: rows of tokens that grow by one token at a time, with the logits for the next one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch

from leakmeter.models.network import Network


class Stepping(Protocol):
    """The rows of a batch while they are continued."""

    def begin(self) -> Any:
        """The logits after the prompts, a row each."""

    def step(self, tokens: Any) -> Any:
        """Append one token to every row; the logits after it."""

    def keep(self, rows: Any) -> None:
        """Go on with these rows, in this order; a row may be kept several times or not at all."""


def stepping(network: Network, prompts: Sequence[Sequence[int]]) -> Stepping:
    """Rows continued from a cache where the model allows it, and computed anew at every step elsewhere."""
    return Cached(network, prompts) if network.steps else Recomputed(network, prompts)


class Cached:
    """Rows padded on the left, with the keys and values of what was read before."""

    def __init__(self, network: Network, prompts: Sequence[Sequence[int]]) -> None:
        self._network = network
        width = max(len(prompt) for prompt in prompts)
        padded = [[0] * (width - len(prompt)) + list(prompt) for prompt in prompts]
        self._ids = torch.tensor(padded, device=network.device)
        self._mask = torch.tensor(
            [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts], device=network.device
        )
        self._cache = network.cache()

    def begin(self) -> Any:
        positions = (self._mask.cumsum(1) - 1).clamp(min=0)
        # With no padding there is nothing to mask, and attention has a faster way.
        mask = None if bool(self._mask.all()) else self._mask
        return self._logits(self._ids, positions, mask)

    def step(self, tokens: Any) -> Any:
        positions = self._mask.sum(1, keepdim=True)
        self._mask = torch.cat([self._mask, torch.ones_like(self._mask[:, :1])], 1)
        return self._logits(tokens[:, None], positions, self._mask)

    def keep(self, rows: Any) -> None:
        self._cache.batch_select_indices(rows)
        self._mask = self._mask[rows]

    def _logits(self, ids: Any, positions: Any, mask: Any) -> Any:
        return self._network.logits(self._network.states(ids, positions, mask, self._cache)[:, -1])


class Recomputed:
    """Rows padded on the right and computed from their beginning at every step, which is right for any causal model."""

    def __init__(self, network: Network, prompts: Sequence[Sequence[int]]) -> None:
        self._network = network
        self._rows = [list(prompt) for prompt in prompts]

    def begin(self) -> Any:
        width = max(len(row) for row in self._rows)
        ids = torch.tensor([row + [0] * (width - len(row)) for row in self._rows], device=self._network.device)
        last = torch.tensor([len(row) - 1 for row in self._rows], device=self._network.device)
        return self._network.logits(self._network.states(ids)[torch.arange(len(last), device=ids.device), last])

    def step(self, tokens: Any) -> Any:
        for row, token in zip(self._rows, tokens.tolist(), strict=True):
            row.append(token)
        return self.begin()

    def keep(self, rows: Any) -> None:
        self._rows = [list(self._rows[i]) for i in rows.tolist()]
