"""Masks show a hint and never the value."""

from __future__ import annotations

import pytest

from leakmeter.report.redact import mask


@pytest.mark.parametrize(
    ("value", "masked"),
    [
        ("jane.doe@example.com", "j•••@e•••.com"),
        ("jane@mail.example.org", "j•••@m•••.org"),
        ("root@localhost", "r•••@l•••"),
        ("root@192.0.2.17", "r•••@1•••"),
        ("202-555-0143", "•••-•••-••43"),
        ("(202) 555-0143", "•••-•••-••43"),
        ("+1 202 555 0143", "•••-•••-••43"),
        ("Jane", "J•••"),
        ("Jane Example", "J•••"),
        ("12 Oak Street, Springfield, IL", "O•••"),
        ("Øystein", "Ø•••"),
        ("  padded  ", "p•••"),
        ("12345", "•••"),
        ("", "•••"),
    ],
)
def test_masked(value: str, masked: str) -> None:
    assert mask(value) == masked


def test_the_length_of_a_value_does_not_show() -> None:
    assert mask("Jo") == mask("Josephine-Charlotte")
    assert mask("j@example.org") == mask("josephine.charlotte@example.org")
