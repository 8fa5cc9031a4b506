"""The store: one run's directory. Files are written aside and renamed, so that existence means complete."""

from __future__ import annotations

import errno
import fcntl
import io
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from leakmeter.core.errors import BadInput
from leakmeter.core.keys import sequence_digest
from leakmeter.core.question import Kind

PART = ".leakmeter-part"
"""The ending of a file that is still being written."""


def file_name(name: str) -> str:
    """A name that is safe in a path, whatever a user or a plug-in called the thing."""
    return "".join(c if c.isalnum() else "_" for c in name)


class Store:
    """Where a run keeps what it asked, what was answered and what came of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        try:
            if not root.exists():
                root.mkdir(parents=True, mode=0o700)
        except (FileExistsError, NotADirectoryError) as error:
            raise BadInput(f"{root} is a file, so no run can be kept there. Give another --out.") from error
        except OSError as error:
            raise _unwritable(root, error) from error

    @property
    def evidence(self) -> Path:
        return self.root / "evidence"

    @property
    def models(self) -> Path:
        return self.root / "models"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One process at a time; the lock goes with the process that holds it."""
        with (self.root / ".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise BadInput(
                    f"Another process is working on {self.root}. Wait for it to end, or give another --out."
                ) from error
            self._sweep_leftovers()
            yield

    def _sweep_leftovers(self) -> None:
        """Remove what a killed process was still writing."""
        ours = (self.root / "scores", self.evidence, self.models)
        written = [*self.root.glob(f"*{PART}"), *(path for folder in ours for path in folder.rglob(f"*{PART}"))]
        for path in [*written, *self.models.glob(".*.partial")]:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def write(self, path: Path, data: bytes) -> None:
        """Write aside, then rename."""
        aside = path.with_name(path.name + PART)
        try:
            if self.evidence in path.parents:
                self.private(self.evidence)
            path.parent.mkdir(parents=True, exist_ok=True)
            aside.write_bytes(data)
            aside.rename(path)
        except OSError as error:
            aside.unlink(missing_ok=True)
            raise _unwritable(path, error) from error

    def private(self, folder: Path) -> None:
        """Make a folder of the run that its owner alone may read, also where the run's own folder is open to others."""
        folder.mkdir(exist_ok=True)
        folder.chmod(0o700)

    def write_frame(self, path: Path, frame: pl.DataFrame) -> None:
        buffer = io.BytesIO()
        frame.rechunk().write_parquet(buffer, compression="zstd", statistics=False)
        self.write(path, buffer.getvalue())

    def write_json(self, path: Path, value: Any) -> None:
        text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
        self.write(path, (text + "\n").encode())

    def event(self, what: str, **details: Any) -> None:
        """A line in events.jsonl: what happened, when. Numbers and names of ours; never text of the user's."""
        line = json.dumps({"at": round(time.time(), 3), "what": what, **details})
        try:
            with (self.root / "events.jsonl").open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as error:
            raise _unwritable(self.root / "events.jsonl", error) from error

    def answers_path(self, model: str, block: str, kind: Kind, keys: list[bytes]) -> Path:
        return self.evidence / model / block / f"{kind.kind}-{sequence_digest(keys)}.parquet"

    def answer_files(self, model: str, block: str, kind: Kind) -> list[Path]:
        """The complete answer files of a block, in an order that does not depend on the disk."""
        return [
            path for path in sorted((self.evidence / model / block).glob(f"{kind.kind}-*.parquet")) if _readable(path)
        ]

    def answered(self, model: str, block: str, kind: Kind) -> set[bytes]:
        """The keys of the questions of a block that have been answered."""
        files = self.answer_files(model, block, kind)
        return {key for file in files for key in pl.read_parquet(file, columns=["key"])["key"].unique().to_list()}

    def answers(self, model: str, block: str, kind: Kind) -> pl.DataFrame:
        """Every stored answer of a block; column `key` names the question."""
        frames = [pl.read_parquet(file) for file in self.answer_files(model, block, kind)]
        if len(frames) <= 1:
            return frames[0] if frames else pl.DataFrame()
        return pl.concat(frames).unique(["key", "i"], keep="first", maintain_order=True)

    def purge(self) -> list[Path]:
        """Remove what may hold raw text: the evidence, and models trained on the user's data."""
        gone = [path for path in (self.evidence, self.models) if path.exists() and any(path.iterdir())]
        for path in gone:
            shutil.rmtree(path)
        return gone


def _readable(path: Path) -> bool:
    """Whether a file is whole Parquet. One that a broken disk or a person has damaged counts as not answered."""
    with path.open("rb") as file:
        head = file.read(4)
        file.seek(0, os.SEEK_END)
        if file.tell() < 12:
            return False
        file.seek(-4, os.SEEK_END)
        return head == file.read() == b"PAR1"


def _unwritable(path: Path, error: OSError) -> BadInput:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return BadInput(
            f"The disk is full: {path} could not be written. Free some space and run the same command again; "
            "everything finished so far is kept and will not be done again."
        )
    return BadInput(f"{path} could not be written: {os.strerror(error.errno or 0)}. Check the path and its rights.")
