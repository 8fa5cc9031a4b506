"""The records most exposed in a finished run: by ordinal, or with ids and text where the user asks to see them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from leakmeter.audit.outcome import open_run
from leakmeter.core.errors import BadInput

SHOWN = 60
"""Characters of a text shown with --reveal."""


def exposed(run: Path, n: int, attack: str | None, setting: str, reveal: bool) -> pl.DataFrame:
    """The n members with the highest scores: record, group, score, and the share of non-members scoring as high."""
    folder = run / "scores" / setting
    if not folder.exists():
        known = sorted(path.name for path in (run / "scores").glob("*")) if (run / "scores").exists() else []
        raise BadInput(f"{run} has no scores for '{setting}'. It has: {', '.join(known) or 'none; is it finished?'}.")
    attack = attack or _best(run)
    path = folder / f"{''.join(c if c.isalnum() else '_' for c in attack)}.parquet"
    if not path.exists():
        known = sorted(p.stem for p in folder.glob("*.parquet") if p.stem != "records")
        raise BadInput(f"{run} has no scores of '{attack}'. It has: {', '.join(known)}.")
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
    return _revealed(run, setting, table) if reveal else table


def _best(run: Path) -> str:
    aucs = [
        r for r in open_run(run).results if r.metric == "auc" and not r.blind and not r.slice and r.value is not None
    ]
    if not aucs:
        raise BadInput(f"{run} has no attack with an AUC. Name one with --attack.")
    return max(aucs, key=lambda r: r.value or 0).attack


def _revealed(run: Path, setting: str, table: pl.DataFrame) -> pl.DataFrame:
    """Ids from the evidence; texts from the files the config names, as far as they are still there."""
    names = run / "evidence" / f"records-{setting}.parquet"
    if not names.exists():
        raise BadInput(f"The evidence of {run} has been purged, so there is nothing to reveal.")
    ids = pl.read_parquet(names).select("record", "id")
    texts = _texts(run)
    shown = table.join(ids, on="record", how="left", maintain_order="left")
    return shown.with_columns(text=pl.Series([texts.get(name, "")[:SHOWN] for name in shown["id"]], dtype=pl.String))


def _texts(run: Path) -> dict[str, str]:
    from leakmeter.audit.config import read_yaml
    from leakmeter.core.registry import build
    from leakmeter.text.passages import plain_text

    texts: dict[str, str] = {}
    for raw in read_yaml(run / "audit.yaml").get("records", []):
        source = build("records", raw)
        try:
            records = source.read().records if hasattr(source, "read") else ()
        except BadInput:
            continue  # moved or changed since: its ids are still shown
        texts.update((record.id, " ".join(plain_text(record.fields).split())) for record in records)
    return texts
