"""Masking: what is shown of a private value outside the evidence folder, enough to recognise one's own and no more."""

from __future__ import annotations

import re

DOTS = "•••"

_EMAIL = re.compile(r"(?P<local>[^\s@]+)@(?P<domain>[^\s@]+)")
_PHONE = re.compile(r"\+?[\d\s().\-/]+")
_FEWEST_DIGITS = 7
_SHOWN_DIGITS = 2


def mask(value: str) -> str:
    """A value with all but a hint covered; how long it was is covered too.

    `jane@example.org` → `j•••@e•••.org`, `202-555-0143` → `•••-•••-••43`, a name or other text → its first letter.
    """
    value = value.strip()
    if email := _EMAIL.fullmatch(value):
        return _email(email["local"], email["domain"])
    digits = "".join(re.findall(r"\d", value))
    if _PHONE.fullmatch(value) and len(digits) >= _FEWEST_DIGITS:
        return f"{DOTS}-{DOTS}-••{digits[-_SHOWN_DIGITS:]}"
    first = next((character for character in value if character.isalpha()), "")
    return first + DOTS


def _email(local: str, domain: str) -> str:
    """The ending of the domain is shown only where it is made of letters: an address may end in an IP number."""
    host, _, ending = domain.rpartition(".")
    if not host or not ending.isalpha():
        return f"{local[0]}{DOTS}@{domain[0]}{DOTS}"
    return f"{local[0]}{DOTS}@{host[0]}{DOTS}.{ending}"
