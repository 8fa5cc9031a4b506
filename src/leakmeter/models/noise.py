"""Noise: uniform numbers that are a pure function of a key, a step and a token.

Sampling takes its randomness from here, so a draw is the same in any batch, on any device and after any restart: the
arithmetic is on 64-bit integers, which wrap around alike everywhere.
"""

from __future__ import annotations

from typing import Any

from leakmeter.core.keys import digest

_ODD = 0x1E3779B97F4A7C15
"""Spreads consecutive numbers over the 64 bits (the golden ratio, as for Weyl sequences)."""


def draw_key(seed: int, question: bytes, draw: int) -> int:
    """The key of one draw for one question, as a signed 64-bit integer."""
    return int.from_bytes(digest("draw", str(seed), question.hex(), str(draw))[:8], "little", signed=True)


def uniform(keys: Any, step: int, tokens: Any) -> Any:
    """Numbers strictly between 0 and 1 for every key (a column of integers) and token (a row) at one step."""
    at_step = _mix(keys ^ ((step + 1) * _ODD & 0x7FFFFFFFFFFFFFFF))
    mixed = _mix(at_step + tokens * _ODD)
    return (_right(mixed, 11).double() + 0.5) * 2.0**-53


def _mix(x: Any) -> Any:
    """A bijection of 64-bit integers in which every input bit moves every output bit (splitmix64's finaliser)."""
    x = (x ^ _right(x, 30)) * -0x40A7B892E31B1A47
    x = (x ^ _right(x, 27)) * -0x6B2FB644ECCEEE15
    return x ^ _right(x, 31)


def _right(x: Any, by: int) -> Any:
    """A shift that brings in zeros, on signed integers."""
    return (x >> by) & ((1 << (64 - by)) - 1)
