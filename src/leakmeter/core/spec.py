"""Spec: whatever a config file can name. Its fields are its parameters; its key is the hash of its canonical form."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from leakmeter.core.keys import canonical, short


class Spec(BaseModel):
    """A frozen, named set of parameters, the same in YAML and in Python."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: ClassVar[int] = 1
    """Raised when the meaning of the same parameters changes; part of the key."""

    type: str = ""

    def canonical(self) -> str:
        """The one spelling of this spec, with every default written out."""
        return canonical([self.version, self.model_dump(mode="json")])

    def __hash__(self) -> int:
        """By the key, so that a spec with a list among its parameters can stand in a table too."""
        return hash(self.key)

    @cached_property
    def key(self) -> str:
        return short(type(self).__name__, self.canonical())
