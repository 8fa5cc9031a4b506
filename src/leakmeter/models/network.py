"""Network: a causal language model as two steps, hidden states and then the output layer, and what it is safe to ask.

The shortcuts that make answering fast are not right for every architecture. Each is tried once on a few tokens against
the plain way, and used only where both agree.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch

_PREFIX, _LONG, _SHORT = 6, 24, 8
"""Tokens in the trial: a prefix and two tails; the first tail is long, so that misplaced positions show."""
_REACHES = ("sliding_window", "attention_chunk_size", "attention_window_size", "window_size")
"""What architectures call it."""


class Network:
    """A causal language model, asked for the hidden states of some tokens and for the logits at some of them."""

    def __init__(self, model: Any, device: str) -> None:
        self.model = model
        self.device = torch.device(device)
        self.dtype: torch.dtype = model.dtype
        config = model.config.get_text_config()
        self.vocabulary: int = model.get_input_embeddings().weight.shape[0]
        self.longest: int | None = getattr(config, "max_position_embeddings", None)
        reaches = [getattr(config, name, None) for name in _REACHES]
        self.reach: int | None = min((reach for reach in reaches if reach), default=None)
        """How far back some layers look, where they do not see everything."""
        self.largest_tree: int = min(max(config.hidden_size // 2, 128), 1024)
        """Where attention, which grows with the tree, costs about a twelfth of the rest."""
        self.seam: int | None = _seam(config)
        self._head = model.get_output_embeddings()
        self._cap: float | None = getattr(config, "final_logit_softcapping", None)
        self._scale = (getattr(config, "logit_scale", None) or 1.0) / (getattr(config, "logits_scaling", None) or 1.0)
        self._wide = False
        self.shortcut = False
        with torch.inference_mode():
            self.shortcut = self._agrees_on_logits()
            self._wide = self.shortcut and self._multiplies_wide()

    def states(self, ids: Any, positions: Any = None, mask: Any = None, cache: Any = None) -> Any:
        """The last hidden states of a batch of rows (or their logits, where the output layer is not separable)."""
        asked: dict[str, Any] = {"input_ids": ids, "attention_mask": mask, "use_cache": cache is not None}
        if positions is not None:
            asked["position_ids"] = positions
        if cache is not None:
            asked["past_key_values"] = cache
        if self.shortcut:
            return self.model.base_model(**asked).last_hidden_state
        return self.model(**asked).logits

    def logits(self, states: Any) -> Any:
        """The logits at chosen states, [n, hidden] → [n, vocabulary], in float32 and free to be overwritten."""
        if not self.shortcut:
            return states.float().clone()
        if self._wide:
            logits = torch.mm(states, self._head.weight.T, out_dtype=torch.float32)
        else:
            logits = self._head(states).float()
        if self._scale != 1.0:
            logits.mul_(self._scale)
        if self._cap:
            logits.div_(self._cap).tanh_().mul_(self._cap)
        return logits

    @cached_property
    def trees(self) -> bool:
        """Whether tokens see what an explicit mask and explicit positions say, and nothing else."""
        width = _PREFIX + _LONG + _SHORT
        if self.longest is not None and self.longest < width:
            return False
        row = self._trial(width)
        tail = torch.arange(_PREFIX + _LONG, width, device=self.device)
        alone = torch.cat([torch.arange(_PREFIX, device=self.device), tail])
        ends = torch.full((1, width), width, device=self.device)
        ends[0, _PREFIX : _PREFIX + _LONG] = _PREFIX + _LONG
        positions = torch.arange(width, device=self.device)[None]
        positions[0, tail] -= _LONG
        try:
            shared = self._near(self.states(row, positions, self.sees(ends)))
            apart = self._near(self.states(row[:, alone]))
            first = self._near(self.states(row[:, : _PREFIX + _LONG]))
            ignored = self._near(self.states(row))
            error = torch.cat([shared[: _PREFIX + _LONG] - first, shared[tail] - apart[_PREFIX:]])
            return self._negligible(error, ignored[tail] - apart[_PREFIX:])
        except Exception:  # whatever an architecture has against it, it is not for this one
            return False

    @cached_property
    def steps(self) -> bool:
        """Whether rows may be padded on the left and continued from a cache."""
        width = _SHORT + _PREFIX
        if self.longest is not None and self.longest < width + 1:
            return False
        row = self._trial(width + 1)
        pads = torch.zeros_like(row[:, :_PREFIX])
        short = torch.cat([pads, row[:, :_SHORT]], 1)
        mask = torch.ones(2, width + 1, dtype=torch.long, device=self.device)
        mask[1, :_PREFIX] = 0
        positions = (mask.cumsum(1) - 1).clamp(min=0)
        try:
            cache = self.cache()
            self.states(torch.cat([row[:, :width], short]), positions[:, :width], mask[:, :width], cache)
            cache.batch_select_indices(torch.tensor([1, 0], device=self.device))
            step = torch.stack([row[0, _SHORT], row[0, width]])[:, None]
            moved = self._near(self.states(step, positions.flip(0)[:, width:], mask.flip(0), cache))
            plain = self._near(self.states(row[:, : _SHORT + 1]))[-1], self._near(self.states(row))[-1]
            ignored = self._near(self.states(torch.cat([short, row[:, _SHORT : _SHORT + 1]], 1)))[-1]
            return self._negligible(moved - torch.stack(plain), ignored - plain[0])
        except Exception:  # as above
            return False

    def cache(self) -> Any:
        """An empty cache of keys and values, of the kind this model wants."""
        from transformers import DynamicCache

        return DynamicCache(config=self.model.config)

    def sees(self, ends: Any) -> Any:
        """The attention mask of rows of trees in preorder: a token sees those whose subtree it stands in.

        `ends` says where each token's subtree ends, so j is i or an ancestor of i if j ≤ i < ends[j].
        """
        width = ends.shape[1]
        place = torch.arange(width, device=ends.device)
        seen = (place[None, None, :] <= place[None, :, None]) & (place[None, :, None] < ends[:, None, :])
        mask = torch.zeros(seen.shape, dtype=self.dtype, device=ends.device)
        return mask.masked_fill_(~seen, torch.finfo(self.dtype).min)[:, None]

    def _trial(self, width: int) -> Any:
        return (torch.arange(width, device=self.device)[None] * 7919 + 11) % self.vocabulary

    def _near(self, states: Any) -> Any:
        return states.float().flatten(0, 1)

    def _negligible(self, error: Any, effect: Any) -> bool:
        """Whether a difference is rounding, judged beside the effect of getting it wrong.

        In half precision both are noisier; where the two cannot be told apart, the plain way is taken.
        """
        allowed = 0.01 if self.dtype == torch.float32 else 0.1
        return bool(error.abs().max() < allowed * effect.abs().max())

    def _agrees_on_logits(self) -> bool:
        if self._head is None or self.model.base_model is self.model:
            return False
        row = self._trial(min(_LONG, self.longest or _LONG))
        try:
            whole = self.model(input_ids=row, use_cache=False).logits[0].float()
            states = self.model.base_model(input_ids=row, use_cache=False).last_hidden_state[0]
            self.shortcut = True
            parts = self.logits(states)
        except Exception:  # as above
            return False
        if whole.shape != parts.shape:
            return False
        allowed = 1e-5 if self.dtype == torch.float32 else 1e-2
        return bool((whole - parts).abs().max() <= allowed * whole.abs().max())

    def _multiplies_wide(self) -> bool:
        """Whether a GPU can give float32 logits from half-precision states.

        Half-precision logits are rounded to steps of 1/8 at 16 and beyond, which is more than all that comes before.
        """
        half = self.device.type == "cuda" and self.dtype in (torch.bfloat16, torch.float16)
        if not half or getattr(self._head, "bias", None) is not None:
            return False
        states = self._head.weight[:4]
        try:
            wide = torch.mm(states, self._head.weight.T, out_dtype=torch.float32)
        except (RuntimeError, TypeError):
            return False
        narrow = self._head(states).float()
        return bool((wide - narrow).abs().max() <= 1e-2 * narrow.abs().max())


def _seam(config: Any) -> int | None:
    """The length beyond which position encodings change for a whole batch ("longrope", "dynamic")."""
    rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    if rope.get("rope_type") not in ("longrope", "dynamic"):
        return None
    found = rope.get("original_max_position_embeddings") or getattr(config, "original_max_position_embeddings", None)
    return int(found) if found else None
