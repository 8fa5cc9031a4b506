"""Files: records from JSONL, JSON, CSV, TSV, Parquet and text files, plain or compressed (.gz, .zst).

`id`, `member`, `group` and `split` are optional columns, every other column is a text field (layouts.py). Of a .txt
file, each line that is not blank is a record. What a spec and a file both say is settled so: a `split` in the spec
holds for the whole file; a `member` in the spec holds where the file has none, and a file that says otherwise is
refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field

from leakmeter.core.errors import BadInput
from leakmeter.core.keys import file_digest
from leakmeter.core.record import Record
from leakmeter.core.spec import Spec
from leakmeter.records.formats import Damaged, Row, rows
from leakmeter.records.layouts import absent, as_text, fields_of
from leakmeter.records.streams import require_file, stem_of, written_aside


class Loaded(NamedTuple):
    """Records, and a line "file:line: reason" for each one that was skipped."""

    records: list[Record]
    skipped: list[str]


class File(Spec):
    """Records in a file."""

    type: Literal["file"] = "file"
    path: Path
    split: str | None = None
    """None: what the file's column says, "audit" where it has none."""
    member: bool | None = None
    skip_bad: bool = False
    """Leave out lines that cannot be read, and count them, instead of refusing the file."""
    columns: Mapping[str, str] = {}
    """Our name → the file's: {"text": "body"}."""
    limit: int | None = Field(default=None, ge=1)
    """Read the first so many records."""

    def digest(self) -> str:
        """SHA-256 of the file as it lies there."""
        require_file(self.path)
        return file_digest(self.path)

    def read(self) -> Loaded:
        """The file's records. Ids that the file does not give are its name and the line."""
        records: list[Record] = []
        skipped: list[str] = []
        line_of: dict[str, int] = {}
        stem = stem_of(self.path)
        for line, row in rows(self.path):
            try:
                if isinstance(row, Damaged):
                    raise BadInput(row)
                record = self._record(row, f"{stem}:{line}")
            except BadInput as problem:
                where = f"{self.path}:{line}: {problem}"
                if not self.skip_bad:
                    raise BadInput(f"{where}. Mend the line, or skip such lines with skip_bad (--skip-bad).") from None
                skipped.append(where)
                continue
            if line_of.setdefault(record.id, line) != line:
                raise BadInput(
                    f"{self.path}: lines {line_of[record.id]} and {line} have the same id. An id names one record: "
                    "make ids unique or leave the column out, and records are named by their line."
                )
            if record.member is not None and self.member not in (None, record.member):
                raise BadInput(
                    f"{self.path}:{line}: the file calls this record a {_MEMBER[record.member]}, but the file was "
                    f"given as one of {_MEMBER[not record.member]}s. Remove the column or give the right file."
                )
            records.append(record)
            if self.limit is not None and len(records) == self.limit:
                break
        if not records:
            every = f", since all of its {len(skipped)} lines were skipped; the first: {skipped[0]}" if skipped else ""
            raise BadInput(f"{self.path} is empty: it has no records{every}.")
        return Loaded(records, skipped)

    def _record(self, row: Row, place: str) -> Record:
        if self.columns:
            row = _renamed(row, self.columns)
        name = _label("id", row.pop("id", None)) or place
        member = _truth(row.pop("member", None))
        group = _label("group", row.pop("group", None))
        split = _label("split", row.pop("split", None))
        return Record(
            id=name,
            fields=fields_of(row),
            member=self.member if member is None else member,
            group=group,
            split=self.split or split or "audit",
        )


_MEMBER = {True: "member", False: "non-member"}
_TRUTHS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def _truth(value: Any) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    if absent(value):
        return None
    # 1.0 is what tables make of 1 in a column where some values are missing.
    spelled = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip().lower()
    if spelled not in _TRUTHS:
        raise BadInput("member should be one of true, false, 1, 0, yes, no")
    return _TRUTHS[spelled]


def _label(column: str, value: Any) -> str | None:
    if value is None or absent(value):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise BadInput(f"{column} should be a text or a whole number")
    return as_text(column, value)


def _renamed(row: Row, columns: Mapping[str, str]) -> Row:
    missing = [theirs for theirs in columns.values() if theirs not in row]
    if missing:
        raise BadInput(f"there is no column {', '.join(missing)}, which columns names; there are {', '.join(row)}")
    rest = {name: value for name, value in row.items() if name not in columns.values()}
    return rest | {ours: row[theirs] for ours, theirs in columns.items()}


def as_row(record: Record) -> Row:
    """A record as a row of a file that `File` reads back."""
    row: Row = {"id": record.id, **record.fields, "member": record.member, "group": record.group, "split": record.split}
    if "messages" in row:
        row["messages"] = json.loads(row["messages"])
    return {name: value for name, value in row.items() if value is not None}


def write_jsonl(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    """Write rows as JSON lines, aside first, so that the file is there complete or not at all."""
    with written_aside(path) as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n")
