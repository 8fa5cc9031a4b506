"""Keys: digests of content, so that the same thing has the same name everywhere.

A key is blake2b over length-prefixed fields. The lengths keep ("ab", "c") apart from ("a", "bc").
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

_SIZE = 16


def digest(*parts: str) -> bytes:
    """The 16-byte key of a sequence of fields. The lengths come first, so the joined fields have one reading only."""
    lengths = " ".join(map(str, map(len, parts)))
    return hashlib.blake2b(f"{lengths}\n{''.join(parts)}".encode("utf-8", "surrogatepass"), digest_size=_SIZE).digest()


def canonical(value: object) -> str:
    """JSON with sorted keys and no spaces: one spelling for one value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def short(*parts: str) -> str:
    """A key as the 32 hex digits used in file names."""
    return digest(*parts).hex()


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def generator(seed: int, *parts: str) -> np.random.Generator:
    """A random generator that depends on a seed and a purpose, and on nothing that ran before."""
    return np.random.default_rng(np.frombuffer(digest(str(seed), *parts), dtype=np.uint32))


def sequence_digest(keys: Sequence[bytes]) -> str:
    """The name of a set of keyed things in their order."""
    return hashlib.blake2b(b"".join(keys), digest_size=_SIZE).hexdigest()
