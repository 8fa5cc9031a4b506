"""Streams: the lines of a file, decompressed as its name says (.gz, .zst), one at a time."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO, cast

from leakmeter.core.errors import BadInput

COMPRESSED = (".gz", ".zst")
_CHUNK = 1 << 18


def format_of(path: Path) -> str:
    """The suffix that names a file's format: ".jsonl" for people.jsonl.gz."""
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix in COMPRESSED else suffix


def stem_of(path: Path) -> str:
    """A file's name without the suffixes that name its format and compression."""
    name = path.stem if path.suffix.lower() in COMPRESSED else path.name
    return Path(name).stem


def require_file(path: Path) -> None:
    """Say so in words where there is no file to read."""
    if path.is_dir():
        raise BadInput(f"{path} is a folder; give the file of records inside it.")
    if not path.exists():
        raise BadInput(f"There is no file {path}. Check the path; relative paths start at {Path.cwd()}.")
    if path.stat().st_size == 0:
        raise BadInput(f"{path} is empty: it has no records. Check that the program that made it finished.")


def lines(path: Path) -> Iterator[bytes]:
    """The lines of a file with their line ends, read as they are needed."""
    require_file(path)
    try:
        with path.open("rb") as file:
            match path.suffix.lower():
                case ".gz":
                    yield from gzip.GzipFile(fileobj=file)
                case ".zst":
                    yield from _split(_decompress(file))
                case _:
                    yield from file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadInput(f"{path} is a broken gzip file ({_lower(error)}). {_AGAIN}") from error
    except _BrokenZstandard as error:
        raise BadInput(f"{path} is a broken zstandard file ({error}). {_AGAIN}") from error
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror or error}.") from error


_AGAIN = "It may have been cut off while being copied, or its name ends wrongly: compress or copy it again."


class _BrokenZstandard(Exception):
    pass


def _decompress(file: BinaryIO) -> Iterator[bytes]:
    # zstandard's stream_reader takes a file that was cut off for a complete one, so frames are followed here.
    import zstandard

    frame = None
    try:
        while chunk := file.read(_CHUNK):
            while chunk:
                frame = frame or zstandard.ZstdDecompressor().decompressobj()
                yield frame.decompress(chunk)
                chunk = frame.unused_data if frame.eof else b""
                frame = None if frame.eof else frame
    except zstandard.ZstdError as error:
        raise _BrokenZstandard(_lower(error)) from error
    if frame is not None:
        raise _BrokenZstandard("it ends in the middle of a frame")


def _split(chunks: Iterable[bytes]) -> Iterator[bytes]:
    begun: list[bytes] = []
    for chunk in chunks:
        *complete, rest = chunk.split(b"\n")
        for line in complete:
            yield b"".join([*begun, line, b"\n"])
            begun = []
        begun.append(rest)
    if last := b"".join(begun):
        yield last


def _lower(error: Exception) -> str:
    text = str(error).rstrip(".")
    return text[:1].lower() + text[1:]


@contextmanager
def written_aside(path: Path) -> Iterator[IO[bytes]]:
    """A file to write that appears under its name only when it is complete; compressed as its name says."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with aside.open("wb") as file:
            match path.suffix.lower():
                case ".gz":
                    # Neither a time nor a name inside, so that equal rows give equal bytes.
                    with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
                        yield cast(IO[bytes], packed)
                case ".zst":
                    import zstandard

                    with zstandard.ZstdCompressor().stream_writer(file, closefd=False) as packed:
                        yield packed
                case _:
                    yield file
        aside.replace(path)
    except OSError as error:
        raise BadInput(f"{path} could not be written: {error.strerror or error}. Nothing was changed there.") from error
    finally:
        with suppress(OSError):
            aside.unlink()
