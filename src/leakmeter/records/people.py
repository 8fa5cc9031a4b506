"""People who do not exist, and the mail they never wrote: invented from a seed, the same on every machine.

Names are ordinary, everything else about a person cannot be anybody's: phone numbers end in 555-01xx, which is kept
for fiction, domains lie under example.org, .com and .net, towns and companies are made up. The word lists in data/ were
written for this project.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from numpy.random import Generator
from pydantic import Field, PositiveInt

from leakmeter.core.errors import BadInput
from leakmeter.core.keys import generator
from leakmeter.core.record import Record
from leakmeter.core.spec import Spec
from leakmeter.records.files import Loaded
from leakmeter.records.mail import write_mail
from leakmeter.records.wordlists import listed, pick, street

_DOMAINS = ("example.org", "example.com", "example.net")
_MAILBOXES = (
    "{first}.{last}",
    "{f}{last}",
    "{first}_{last}",
    "{last}.{first}",
    "{first}{n}",
    "{last}{n}",
    "{f}.{last}{n}",
)


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody invented."""

    id: str
    name: str
    email: str
    phone: str
    address: str
    employer: str
    title: str
    university: str


class Invented(Spec):
    """Mail-like texts by invented people: no two texts are equal, all texts of a person are one group."""

    type: Literal["invented"] = "invented"
    people: PositiveInt = 500
    texts_per_person: PositiveInt = 2
    seed: int = 0
    split: str = "audit"
    member: bool | None = None
    repeats: tuple[PositiveInt, ...] = Field(default=(1,), min_length=1)
    """How often training shows a text: the values are dealt out evenly, as the field `repeats`."""

    def read(self) -> Loaded:
        """The texts as records; the first people stay the same when more are asked for, and so do their texts."""
        people = [person for person in invent_people(self.people, self.seed) for _ in range(self.texts_per_person)]
        shuffled = generator(self.seed, "repeats").permutation(len(people)).tolist()
        records = []
        for i, (person, rank) in enumerate(zip(people, shuffled, strict=True)):
            name = f"{person.id}-{i % self.texts_per_person}"
            fields = {"text": write_mail(person, generator(self.seed, "mail", name))}
            fields["repeats"] = str(self.repeats[rank % len(self.repeats)])
            records.append(Record(name, fields, member=self.member, group=person.id, split=self.split))
        return Loaded(records, [])


def invent_people(n: int, seed: int) -> list[Person]:
    """n people with different names and different e-mail addresses."""
    first, last = listed("first_names"), listed("last_names")
    if n > len(first) * len(last):
        raise BadInput(f"There are names for {len(first) * len(last):,} invented people, not for {n:,}. Ask for fewer.")
    people = []
    taken: set[str] = set()
    for i, place in enumerate(generator(seed, "names").permutation(len(first) * len(last))[:n].tolist()):
        draw = generator(seed, "person", str(i))
        name = (first[place % len(first)], last[place // len(first)])
        employer = pick(draw, listed("companies"))
        state, zip_start, *areas = pick(draw, listed("states")).split()
        town = pick(draw, listed("towns"))
        people.append(
            Person(
                id=f"person-{seed}-{i}",
                name=" ".join(name),
                email=_email(draw, name, employer, taken),
                phone=f"{pick(draw, tuple(areas))}-555-01{draw.integers(100):02d}",
                address=f"{street(draw)}, {town}, {state} {zip_start}{draw.integers(10_000):04d}",
                employer=employer,
                title=pick(draw, listed("titles")),
                university=pick(draw, (f"University of {town}", f"{pick(draw, listed('towns'))} College")),
            )
        )
    return people


def _email(draw: Generator, name: tuple[str, str], employer: str, taken: set[str]) -> str:
    first, last = (part.lower() for part in name)
    company = employer.split()[0].lower()
    while True:
        mailbox = pick(draw, _MAILBOXES).format(first=first, last=last, f=first[0], n=draw.integers(2, 100))
        domain = pick(draw, _DOMAINS)
        email = f"{mailbox}@{company}.{domain}" if draw.integers(2) else f"{mailbox}@{domain}"
        if email not in taken:
            taken.add(email)
            return email
