"""Mail: a short business letter by an invented person, from a grammar whose slots nobody could guess.

data/mail.txt holds sentences by topic. Amounts, dates, numbers, codes, names and places fill their slots, about 150
bits in a text, so that a model which finds a text likely has seen it. Slots stand so close together that
two texts share phrases but hardly ever eight words in a row.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from numpy.random import Generator

from leakmeter.records.wordlists import listed, pick, street

if TYPE_CHECKING:
    from leakmeter.records.people import Person

SHORTEST, LONGEST = 50, 110
"""Words in a text."""

_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_LETTERS = tuple("ABCDEFGHJKLMNPQRSTUVWXYZ")
# Without vowels, so that a code spells no word.
_SIGNS = tuple("BCDFGHJKLMNPQRTVWX346789")


def write_mail(person: Person, draw: Generator) -> str:
    """One mail signed by the person."""
    while True:
        text = _attempt(person, draw)
        if SHORTEST <= len(text.split()) <= LONGEST:
            return text


def _attempt(person: Person, draw: Generator) -> str:
    topics = _grammar()
    topic, anything = topics[pick(draw, tuple(name for name in topics if name != "any"))], topics["any"]
    details = draw.permutation(len(topic["detail"]))[: draw.integers(1, 4)]
    slots = _Slots(person, draw)
    subject = slots.fill(pick(draw, topic["subject"]))
    sentences = [pick(draw, topic["open"]), *(topic["detail"][i] for i in details), pick(draw, anything["close"])]
    body = " ".join(_sentence(slots.fill(sentence)) for sentence in sentences[:4])
    return (
        f"Subject: {_sentence(subject)}\n\n{slots.fill(pick(draw, anything['greeting']))}\n\n{body}\n\n"
        f"{pick(draw, anything['farewell'])}\n{person.name}\n{slots.fill(pick(draw, anything['signature']))}"
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


class _Slots(dict[str, str]):
    """The values of one mail: a slot is drawn when first met and keeps its value; {town2} is another {town}."""

    def __init__(self, person: Person, draw: Generator) -> None:
        # What the writer tells about themselves is the person's, everything else is drawn.
        super().__init__({name: getattr(person, name) for name in ("phone", "email", "address", "employer")})
        self["title"] = _sentence(person.title)
        self._draw = draw

    def __missing__(self, slot: str) -> str:
        kind = slot.rstrip("2")
        self[slot] = _FILLERS[kind](self._draw) if kind in _FILLERS else pick(self._draw, listed(_LISTS[kind]))
        return self[slot]

    def fill(self, template: str) -> str:
        return template.format_map(self)


_LISTS = {
    "first": "first_names",
    "town": "towns",
    "company": "companies",
    "product": "products",
    "project": "projects",
    "place": "places",
}


def _amount(draw: Generator) -> str:
    cents = int(draw.integers(1_000, 1_000_000))
    return f"${cents // 100}.{cents % 100:02d}"


def _date(draw: Generator) -> str:
    return f"{pick(draw, _MONTHS)} {draw.integers(1, 29)}"


def _time(draw: Generator) -> str:
    return f"{draw.integers(1, 13)}:{5 * draw.integers(12):02d} {pick(draw, ('am', 'pm'))}"


def _order(draw: Generator) -> str:
    return f"{pick(draw, _LETTERS)}{pick(draw, _LETTERS)}-{draw.integers(10_000, 100_000)}"


def _other(draw: Generator) -> str:
    return f"{pick(draw, listed('first_names'))} {pick(draw, listed('last_names'))}"


_FILLERS: dict[str, Callable[[Generator], str]] = {
    "amount": _amount,
    "code": lambda draw: "".join(pick(draw, _SIGNS) for _ in range(4)),
    "date": _date,
    "month": lambda draw: pick(draw, _MONTHS),
    "number": lambda draw: str(draw.integers(100, 1000)),
    "order": _order,
    "other": _other,
    "percent": lambda draw: f"{draw.integers(2, 46)}%",
    "small": lambda draw: str(draw.integers(2, 61)),
    "street": street,
    "time": _time,
    "weekday": lambda draw: pick(draw, _WEEKDAYS),
}


@cache
def _grammar() -> dict[str, dict[str, tuple[str, ...]]]:
    """Topic → part of a mail → its templates."""
    topics: dict[str, dict[str, tuple[str, ...]]] = {}
    for line in listed("mail"):
        if line.startswith("["):
            topic = topics.setdefault(line.strip("[]"), {})
        elif line:
            part, _, template = line.partition(": ")
            topic[part] = (*topic.get(part, ()), template)
    return topics
