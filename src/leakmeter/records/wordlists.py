"""Word lists: names, towns, streets and things, written for this project, and fair draws from them."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from numpy.random import Generator

_ENDINGS = ("Street", "Road", "Lane", "Avenue", "Court")


@cache
def listed(name: str) -> tuple[str, ...]:
    """The lines of a list in data/."""
    return tuple((files("leakmeter.records") / "data" / f"{name}.txt").read_text(encoding="utf-8").splitlines())


def pick(draw: Generator, choices: tuple[str, ...]) -> str:
    """One of the choices, each as likely as another."""
    return choices[draw.integers(len(choices))]


def street(draw: Generator) -> str:
    """A house in a street."""
    return f"{draw.integers(2, 1000)} {pick(draw, listed('streets'))} {pick(draw, _ENDINGS)}"
