"""`evaluate`: statistics on losses or energies computed elsewhere (M15). A features table that enters at `judge`."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl

from leakmeter.audit.config import DEFAULT_METRICS
from leakmeter.audit.environment import hardware, versions
from leakmeter.audit.measure import Rows, Scored, measure
from leakmeter.audit.outcome import Outcome
from leakmeter.audit.run import judged
from leakmeter.audit.store import Store
from leakmeter.audit.verbs import write_report
from leakmeter.core.attack import Answers, Attack
from leakmeter.core.errors import BadInput
from leakmeter.core.keys import file_digest
from leakmeter.core.record import Record
from leakmeter.core.registry import build
from leakmeter.core.result import Metric

KNOWN = {"target", "reference", "member", "group", "split", "id", "text"}
LARGEST = 1e12
"""No loss is beyond this; what is would overflow in a least-squares fit."""
TRUTH = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


def evaluate(
    scores: str | PathLike[str] | pl.DataFrame,
    *,
    higher_is_member: bool = False,
    out: str | PathLike[str] | None = None,
    seed: int = 0,
    metrics: tuple[Any, ...] = DEFAULT_METRICS,
) -> Outcome:
    """Loss, ratio, calibrated and reference-alone rows with intervals, from a CSV or Parquet table.

    Columns: `target` and any of `reference`, `member`, `group`, `split`, `id`, `text`. `target` and `reference` are
    losses or energies (low = likely), unless `higher_is_member`. Rows of split "population" set the thresholds.
    """
    table = scores if isinstance(scores, pl.DataFrame) else _read(Path(scores))
    source = "a table in memory" if isinstance(scores, pl.DataFrame) else str(scores)
    rows, features = _prepared(table, 1.0 if higher_is_member else -1.0, source)
    scored, method = _judged(rows, features, table, seed)
    results = measure(rows, scored, [cast(Metric, build("metrics", m)) for m in metrics], (), seed)
    from leakmeter import __version__

    environment: dict[str, Any] = {
        "versions": versions(),
        "hardware": hardware(),
        "seed": seed,
        "rows": table.height,
        **method,
    }
    if not isinstance(scores, pl.DataFrame):
        environment["data"] = {"scores": file_digest(Path(scores))}
    document = {
        "leakmeter": __version__,
        "results": [result.to_json() for result in results],
        "warnings": [] if "group" in table.columns else ["The table has no `group` column: rows count as independent."],
        "environment": environment,
    }
    if out is None:
        return Outcome(document)
    store = Store(Path(out))
    outcome = Outcome(document, store.root)
    store.write_json(store.root / "results.json", document)
    write_report(outcome, store)
    return outcome


def _read(path: Path) -> pl.DataFrame:
    if not path.exists():
        raise BadInput(f"There is no file {path}. Give a CSV or Parquet file with the column `target`.")
    try:
        if path.suffix == ".parquet":
            return pl.read_parquet(path)
        head = pl.read_csv(path, n_rows=0).columns
        _require_columns(head, str(path))
        numbers = {"target", "reference"}
        kinds = {name: pl.Float64 if name in numbers else pl.String for name in head if name in KNOWN}
        try:
            return pl.read_csv(path, columns=list(kinds), schema_overrides=kinds)
        except pl.exceptions.ComputeError:
            # Some number is none; read as text, it is found and named by its row.
            return pl.read_csv(path, columns=list(kinds), schema_overrides=dict.fromkeys(kinds, pl.String))
    except (pl.exceptions.PolarsError, OSError) as error:
        kind = "Parquet" if path.suffix == ".parquet" else "CSV"
        raise BadInput(
            f"{path} cannot be read as {kind}. It should be a table with a header and a `target`."
        ) from error


def _prepared(table: pl.DataFrame, sign: float, source: str) -> tuple[Rows, pl.DataFrame]:
    """Rows and features, after everything that can be wrong with a table has been looked at."""
    _require_columns(table.columns, source)
    if table.is_empty():
        raise BadInput(f"{source} has no rows.")
    split = pl.Series(["audit"]).new_from_index(0, table.height)
    if "split" in table.columns:
        split = table["split"].cast(pl.String).fill_null("audit")
    population = split == "population"
    member = _labels(table["member"], source)
    if (member.is_null() & ~population).any():
        at = int((member.is_null() & ~population).arg_max() or 0)
        raise BadInput(
            f"{source}, row {at + 1}: no `member` value. Give 1 or 0 (only rows of split 'population' may lack it)."
        )
    counts = member.filter(~population)
    if not counts.any() or counts.all():
        only = "members" if counts.any() else "non-members"
        raise BadInput(f"{source} holds only {only}. Telling two kinds apart needs both: `member` should be 1 and 0.")
    ordinal = np.arange(table.height, dtype=np.uint32)
    group = pl.Series(ordinal)
    if "group" in table.columns:
        ranked = table["group"].rank("dense")
        # A row without a group is its own.
        group = pl.select(pl.coalesce(ranked, pl.Series(ordinal) + table.height)).to_series().cast(pl.UInt32)
    rows = Rows(pl.DataFrame({"record": ordinal, "group": group, "split": split, "population": population,
                              "member": member.fill_null(False) & ~population}))  # fmt: skip
    columns = {"record": ordinal}
    for name in ("target", "reference"):
        if name in table.columns:
            columns[name] = _numbers(table[name], source, name) * sign
    return rows, pl.DataFrame(columns)


def _require_columns(columns: list[str], source: str) -> None:
    for name in ("target", "member"):
        if name not in columns:
            raise BadInput(f"{source} has no column `{name}`; it has: {', '.join(columns)}.")


def _labels(column: pl.Series, source: str) -> pl.Series:
    if column.dtype == pl.Boolean:
        return column
    text = column.cast(pl.String).str.strip_chars().str.to_lowercase().str.strip_suffix(".0")
    wrong = text.is_not_null() & ~text.is_in(list(TRUTH))
    if wrong.any():
        at = int(wrong.arg_max() or 0)
        raise BadInput(f"{source}, row {at + 1}: `member` should be 1 or 0 (or true, false), and is something else.")
    return text.replace_strict(TRUTH, default=None, return_dtype=pl.Boolean)


def _numbers(column: pl.Series, source: str, name: str) -> Any:
    numbers = column.cast(pl.Float64, strict=False)
    wrong = ~(numbers.abs() < LARGEST).fill_null(False)
    if wrong.any():
        at = int(wrong.arg_max() or 0)
        raise BadInput(
            f"{source}, row {at + 1}: `{name}` is not a finite number, as in {int(wrong.sum())} rows. A loss of NaN "
            "usually means an empty text or a model that overflowed: remove or recompute those rows."
        )
    return numbers.to_numpy()


def _judged(rows: Rows, features: pl.DataFrame, table: pl.DataFrame, seed: int) -> tuple[list[Scored], dict[str, Any]]:
    """The attacks whose features a table can hold."""
    tables: Mapping[str, pl.DataFrame] = {"loss": features.select("record", loss="target")}
    if "reference" in features.columns:
        alone = features.select("record", reference_alone="reference")
        tables = {**tables, "ratio": features, "calibrated": features, "reference_alone": alone}
    if "text" in table.columns:
        records = [Record(str(i), {"text": text or ""}) for i, text in enumerate(table["text"])]
        for name in ("bag_of_words", "length", "zlib_alone"):
            tables = {**tables, name: cast(Attack, build("attacks", name)).read(Answers(records))}
    scored, fits = [], {}
    for name, own in tables.items():
        attack = cast(Attack, build("attacks", name))
        judgement = judged(attack, own, rows, seed)
        scored.append(Scored(attack.name, attack.blind, attack.cross_fits, judgement.scores))
        fits.update({f"{name} {key}": value.to_dicts()[0] for key, value in judgement.tables.items()})
    about = {name: cast(Attack, build("attacks", name)).about for name in tables}
    return scored, {"attacks": about, **({"fits": fits} if fits else {})}
