"""The n-gram model is exact: its answers are counts, counted again here by hand."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from pathlib import Path

import polars as pl
import pytest

from leakmeter.core.errors import BadInput, CannotAnswer
from leakmeter.core.question import Completion, Decoding, Likelihood
from leakmeter.models.ngram import NGram
from leakmeter.testing import check_model

LINES = ["hello world", "help me", "he said no", "naïve"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "lines.txt"
    file.write_text("\n".join(LINES))
    return file


def by_hand(order: int, smoothing: float, before: bytes, letter: int) -> list[float]:
    counts: dict[bytes, Counter[int]] = defaultdict(Counter)
    for line in LINES:
        padded = b"\n" * (order - 1) + line.encode() + b"\n"
        for at in range(order - 1, len(padded)):
            counts[padded[at - order + 1 : at]][padded[at]] += 1
    mine = counts[before]
    total = sum(mine.values()) + 256 * smoothing
    return [math.log((mine[b] + smoothing) / total) for b in range(256)]


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_every_column_equals_the_counts(path: Path, order: int) -> None:
    model = NGram(path=path, order=order, smoothing=0.3)
    with model.open() as answerer:
        frame = pl.concat(answerer.answer(Likelihood, [Likelihood("hel", ("p me!", "", "lo"))]))
    for i, text in enumerate((b"p me!", b"", b"lo")):
        row = frame.row(i, named=True)
        assert row["n_tokens"] == len(text)
        whole = b"\n" * (order - 1) + b"hel" + text
        for t, letter in enumerate(text):
            at = len(whole) - len(text) + t
            log_p = by_hand(order, 0.3, whole[at - order + 1 : at], letter)
            mean = sum(math.exp(v) * v for v in log_p)
            variance = sum(math.exp(v) * (v - mean) ** 2 for v in log_p)
            assert row["logprob"][t] == pytest.approx(log_p[letter], abs=1e-5)
            assert row["mean"][t] == pytest.approx(mean, abs=1e-5)
            assert row["deviation"][t] == pytest.approx(math.sqrt(variance), abs=1e-5)
            assert row["first"][t] == (log_p[letter] == max(log_p) and log_p.index(max(log_p)) == letter)


def test_greedy_follows_the_counts_and_ends_with_the_line(path: Path) -> None:
    with NGram(path=path, order=4).open() as answerer:
        (row,) = pl.concat(answerer.answer(Completion, [Completion("he said", Decoding(max_tokens=9))])).to_dicts()
    assert row["text"] == " no"
    assert row["finished"]
    assert row["n_tokens"] == 4


def test_stop_strings_end_a_text(path: Path) -> None:
    question = Completion("hel", Decoding(max_tokens=20, stop=(" ",)))
    with NGram(path=path, order=4).open() as answerer:
        (row,) = pl.concat(answerer.answer(Completion, [question])).to_dicts()
    assert row["text"] == "lo"


def test_it_keeps_the_contract_of_a_model(path: Path) -> None:
    check_model(NGram(path=path))


def test_its_key_is_its_content_and_not_its_place(path: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "copy.txt"
    elsewhere.write_bytes(path.read_bytes())
    assert NGram(path=path).fingerprint() == NGram(path=elsewhere).fingerprint()
    assert NGram(path=path).fingerprint() != NGram(path=path, order=2).fingerprint()
    elsewhere.write_text("other")
    assert NGram(path=path).fingerprint() != NGram(path=elsewhere).fingerprint()


def test_what_it_cannot_do_it_says(path: Path, tmp_path: Path) -> None:
    with NGram(path=path).open() as answerer, pytest.raises(CannotAnswer, match="beam"):
        list(answerer.answer(Completion, [Completion("a", Decoding("beam", beams=2))]))
    with pytest.raises(BadInput, match="no file"):
        NGram(path=tmp_path / "none.txt").fingerprint()
