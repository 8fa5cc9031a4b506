"""Record: the unit whose leakage is measured; Select: which records are meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from leakmeter.core.spec import Spec


@dataclass(frozen=True, slots=True)
class Record:
    """One text, conversation or person, with what is known about it."""

    id: str
    fields: Mapping[str, str]
    """text | prompt, completion | messages (JSON) | document, summary | name, email, phone, …"""
    alternatives: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Per field: values that might have stood there instead (null values, canary candidates)."""
    member: bool | None = None
    """Ground truth for models we did not train."""
    group: str | None = None
    """The person, patient or author it belongs to; a record without one is its own group."""
    split: str = "audit"
    """A free name; the config says who trains on which split."""


class Select(Spec):
    """A selection of records: "what this model is trained on", "the population"."""

    type: str = "select"
    split: tuple[str, ...] = ()
    """Empty: every split."""
    member: bool | None = None
    """None: whatever the label."""

    def takes(self, record: Record) -> bool:
        return (not self.split or record.split in self.split) and self.member in (None, record.member)
