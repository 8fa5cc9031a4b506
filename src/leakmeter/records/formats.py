"""Formats: the rows of a file and the line each stands on, whatever the file's format.

A row is a mapping of columns; a line that cannot be one is a `Damaged` with the reason, so that whoever reads can
refuse the file or skip the line.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from leakmeter.core.errors import BadInput
from leakmeter.records.streams import COMPRESSED, format_of, lines, require_file

Row = dict[str, Any]


class Damaged(str):
    """Why a line is no row."""

    __slots__ = ()


Rows = Iterator[tuple[int, Row | Damaged]]
"""(line number, row): lines count from 1; in Parquet and JSON arrays the number counts rows."""

_NOT_UTF8 = Damaged("is not UTF-8 text; save the file as UTF-8 (for instance with iconv -f LATIN1 -t UTF-8)")
_BOM = b"\xef\xbb\xbf"


def rows(path: Path) -> Rows:
    """The rows of a file, in a format its name tells."""
    reader = _READERS.get(format_of(path))
    if reader is None:
        known = ", ".join(_READERS)
        raise BadInput(
            f"{path}: the name does not end in a format that can be read. Known: {known}; all but .parquet also "
            f"compressed ({', '.join(COMPRESSED)}). Rename or convert the file."
        )
    return reader(path)


def _numbered(path: Path) -> Iterator[tuple[int, bytes]]:
    for number, raw in enumerate(lines(path), start=1):
        yield number, raw.removeprefix(_BOM) if number == 1 else raw


def _jsonl(path: Path) -> Rows:
    return _json_lines(_numbered(path))


def _json_lines(numbered: Iterator[tuple[int, bytes]]) -> Rows:
    for number, raw in numbered:
        if raw.isspace():
            continue
        try:
            row = json.loads(raw.decode())
        except UnicodeDecodeError:
            yield number, _NOT_UTF8
        except (ValueError, RecursionError) as error:
            # Only what is wrong and where: the line itself may hold what nobody should see in a log.
            if isinstance(error, json.JSONDecodeError):
                yield number, Damaged(f"is not JSON ({error.msg}, column {error.colno})")
            else:
                yield number, Damaged("is JSON that cannot be read (a number too long, or lists too deep)")
        else:
            if isinstance(row, dict):
                yield number, row
            else:
                hint = "; a file that is one JSON array should be named .json" if isinstance(row, list) else ""
                yield number, Damaged(f"is not a JSON object with columns{hint}")


def _json(path: Path) -> Rows:
    """One JSON array, which is read as a whole; or JSON lines under this name, as many tools write them."""
    numbered = _numbered(path)
    blank: list[tuple[int, bytes]] = []
    for first in numbered:
        blank.append(first)
        if not first[1].isspace():
            break
    everything = chain(blank, numbered)
    if blank[-1][1].lstrip().startswith(b"{"):
        yield from _json_lines(everything)
        return
    try:
        array = json.loads(b"".join(raw for _, raw in everything).decode())
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} {_NOT_UTF8}.") from error
    except json.JSONDecodeError as error:
        raise BadInput(
            f"{path}:{error.lineno}: the file is not JSON ({error.msg}, column {error.colno}). A .json file holds one "
            "array of objects, or one object per line."
        ) from error
    except RecursionError as error:
        raise BadInput(f"{path} is not a JSON array of flat records: it is nested too deeply.") from error
    if not isinstance(array, list):
        raise BadInput(f"{path} should hold a JSON array of objects, one for each record.")
    for number, row in enumerate(array, start=1):
        yield number, row if isinstance(row, dict) else Damaged("is not a JSON object with columns")


def _csv(path: Path) -> Rows:
    return _table(path, ",")


def _tsv(path: Path) -> Rows:
    return _table(path, "\t")


def _table(path: Path, delimiter: str) -> Rows:
    not_utf8: set[int] = set()

    def decoded() -> Iterator[str]:
        for number, raw in _numbered(path):
            try:
                yield raw.decode()
            except UnicodeDecodeError:
                # The reader must see the line all the same, or it would join its neighbours into one row.
                not_utf8.add(number)
                yield raw.decode(errors="replace")

    cells = csv.reader(decoded(), delimiter=delimiter, strict=True)
    header = _header(path, cells)
    if not_utf8:
        raise BadInput(f"{path}:1: the line with the names of the columns {_NOT_UTF8}.")
    while True:
        start = cells.line_num + 1
        limit = csv.field_size_limit(2**31 - 1)
        try:
            values = next(cells)
        except StopIteration:
            return
        except csv.Error as error:
            yield start, Damaged(f"is not {path.suffix.lstrip('.').upper()} ({error})")
            continue
        finally:
            # The limit is the process's, not the reader's, and its default is shorter than many texts.
            csv.field_size_limit(limit)
        if not values:
            continue
        if not_utf8:
            not_utf8.clear()
            yield start, _NOT_UTF8
        elif len(values) != len(header):
            yield start, Damaged(f"has {len(values)} values for {len(header)} columns")
        else:
            yield start, dict(zip(header, values, strict=True))


def _header(path: Path, cells: Iterator[list[str]]) -> list[str]:
    try:
        header = next((row for row in cells if row), [])
    except csv.Error as error:
        raise BadInput(f"{path}:1: the line with the names of the columns cannot be read ({error}).") from error
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise BadInput(f"{path}:1: the column {', '.join(twice)} stands there twice. Give every column its own name.")
    return header


def _text(path: Path) -> Rows:
    for number, raw in _numbered(path):
        try:
            text = raw.decode().rstrip("\r\n")
        except UnicodeDecodeError:
            yield number, _NOT_UTF8
        else:
            if text.strip():
                yield number, {"text": text}


def _parquet(path: Path) -> Rows:
    import polars as pl

    require_file(path)
    try:
        number = 0
        for batch in pl.scan_parquet(path, glob=False).collect_batches(chunk_size=20_000, maintain_order=True):
            for row in batch.iter_rows(named=True):
                number += 1
                yield number, row
    except (pl.exceptions.PolarsError, OSError) as error:
        raise BadInput(f"{path} is no Parquet file, or a broken one. Write or copy it again.") from error


_READERS: dict[str, Callable[[Path], Rows]] = {
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".json": _json,
    ".csv": _csv,
    ".tsv": _tsv,
    ".txt": _text,
    ".parquet": _parquet,
}
