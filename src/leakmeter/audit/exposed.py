"""The records most exposed in a finished run: by ordinal, or with ids and text where the user asks to see them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from leakmeter.audit.config import read_yaml, settings
from leakmeter.audit.outcome import open_run
from leakmeter.audit.pools import divide
from leakmeter.audit.run import Run
from leakmeter.audit.store import Store, file_name
from leakmeter.core.errors import BadInput
from leakmeter.core.keys import canonical
from leakmeter.text.passages import plain_text

SHOWN = 60
"""Characters of a text shown with --reveal."""


def exposed(run: Path, n: int, attack: str | None, setting: str | None, reveal: bool) -> pl.DataFrame:
    """The n members with the highest scores: record, group, score, and how many non-members score as high."""
    known = sorted(path.name for path in (run / "scores").glob("*"))
    setting = setting or (known[0] if known else "main")
    folder = run / "scores" / setting
    if not folder.exists():
        raise BadInput(f"{run} has no scores for '{setting}'. It has: {', '.join(known) or 'none; is it finished?'}.")
    attack = attack or _best(run, known.index(setting))
    path = folder / f"{file_name(attack)}.parquet"
    if not path.exists():
        there = sorted(p.stem for p in folder.glob("*.parquet") if p.stem != "records")
        raise BadInput(f"{run} has no scores of '{attack}'. It has: {', '.join(there)}.")
    scores = pl.read_parquet(path)
    signal = next(name for name in scores.columns if name != "record")
    rows = pl.read_parquet(folder / "records.parquet").join(scores, on="record", maintain_order="left")
    rows = rows.filter(pl.col(signal).is_not_null() & pl.col(signal).is_not_nan())
    outside = np.sort(rows.filter(~pl.col("member") & ~pl.col("population"))[signal].to_numpy())
    found = rows.filter("member").sort(signal, "record", descending=[True, False]).head(n)
    as_high = len(outside) - np.searchsorted(outside, found[signal].to_numpy(), side="left")
    table = found.select("record", "group", "split", score=signal).with_columns(
        non_members_as_high=pl.Series(as_high), attack=pl.lit(attack)
    )
    return _revealed(run, setting, known.index(setting), table) if reveal else table


def _best(run: Path, number: int) -> str:
    """The attack with the highest AUC in one setting of the run."""
    outcome = open_run(run)
    settings = list({canonical(dict(r.setting)): r.setting for r in outcome.results}.values())
    mine = [r for r in outcome.results if r.metric == "auc" and not r.blind and not r.slice and r.value is not None]
    mine = [r for r in mine if r.setting == settings[number]]
    if not mine:
        raise BadInput(f"{run} has no attack with an AUC. Name one with --attack.")
    return max(mine, key=lambda r: r.value or 0).attack


def _revealed(run: Path, setting: str, number: int, table: pl.DataFrame) -> pl.DataFrame:
    """Ids from the evidence; texts from the records that the config names, where they are still the same."""
    names = run / "evidence" / f"records-{setting}.parquet"
    if not names.exists():
        raise BadInput(f"The evidence of {run} has been purged, so there is nothing to reveal.")
    ids = pl.read_parquet(names)["id"]
    shown = table.with_columns(id=ids.gather(table["record"]))
    return shown.with_columns(text=pl.Series(_texts(run, number, table["record"].to_list(), ids), dtype=pl.String))


def _texts(run: Path, number: int, ordinals: list[int], ids: pl.Series) -> list[str]:
    """The beginning of each record's text; nothing where its file has changed since, and why where it is gone."""
    _, config = settings(read_yaml(run / "audit.yaml"))[number]
    try:
        asked = divide(config, Run(Store(run)).load(config)).asked
    except BadInput as error:
        return [f"(the records cannot be read again: {error})"] * len(ordinals)
    same = len(asked) == len(ids) and all(record.id == name for record, name in zip(asked, ids, strict=True))
    if not same:
        return ["(the records have changed since)"] * len(ordinals)
    return [" ".join(plain_text(asked[i].fields).split())[:SHOWN] for i in ordinals]
