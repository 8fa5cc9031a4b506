"""Rows that never ask the target (H4). What they can tell, the target did not give away.

bag_of_words     logistic regression on which words occur, cross-fitted by group: each row is scored by a model
                 that saw neither it nor anything of its group
length           characters of the text
zlib_alone       compressed size per character
reference_alone  the reference's mean log-probability (on published data this alone reached AUC 0.81)
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl
from pydantic import Field

from leakmeter.attacks.likelihood import LikelihoodAttack, mean_of
from leakmeter.core.attack import Answers, Attack, Judgement
from leakmeter.core.keys import generator
from leakmeter.core.question import Kind, Likelihood
from leakmeter.core.result import Bools, Floats, Ints
from leakmeter.text.passages import plain_text

WORD = re.compile(r"\w+")


def _per_record(answers: Answers, **columns: Any) -> pl.DataFrame:
    return pl.DataFrame({"record": np.arange(len(answers.records), dtype=np.uint32), **columns})


class Length(Attack):
    type: Literal["length"] = "length"
    about: ClassVar[str] = "How long the text is; asks no model."

    def read(self, answers: Answers) -> pl.DataFrame:
        return _per_record(answers, length=[float(len(plain_text(r.fields))) for r in answers.records])


class ZlibAlone(Attack):
    type: Literal["zlib_alone"] = "zlib_alone"
    about: ClassVar[str] = "How well zlib compresses the text; asks no model."

    def read(self, answers: Answers) -> pl.DataFrame:
        texts = [plain_text(record.fields).encode() for record in answers.records]
        return _per_record(answers, zlib_alone=[-len(zlib.compress(text)) / max(len(text), 1) for text in texts])


class ReferenceAlone(LikelihoodAttack):
    type: Literal["reference_alone"] = "reference_alone"
    about: ClassVar[str] = "The reference's mean log-probability; never asks the target."
    roles: ClassVar[Mapping[str, frozenset[Kind]]] = {"reference": frozenset({Likelihood})}

    def read(self, answers: Answers) -> pl.DataFrame:
        return self.tokens(answers, "reference").select("record", reference_alone=mean_of("logprob"))


class BagOfWords(Attack):
    type: Literal["bag_of_words"] = "bag_of_words"
    about: ClassVar[str] = "A classifier on which words occur, fitted on other records; asks no model."
    cross_fits: ClassVar[bool] = True
    folds: int = Field(default=5, ge=2)
    buckets: int = Field(default=2**16, ge=2)
    strength: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """Inverse of the L2 penalty."""

    def read(self, answers: Answers) -> pl.DataFrame:
        words = [self._words(plain_text(record.fields)) for record in answers.records]
        return _per_record(answers, words=pl.Series(words, dtype=pl.List(pl.Int64)))

    def _words(self, text: str) -> list[int]:
        """Buckets of the words that occur; a hash that is the same on every machine."""
        return sorted({zlib.crc32(word.encode()) % self.buckets for word in WORD.findall(text.lower())})

    def judge(self, features: pl.DataFrame, seed: int) -> Judgement:
        words = _presence(features["words"])
        population = features["population"].to_numpy()
        member = features["member"].fill_null(False).to_numpy()
        group = features["group"].to_numpy()
        fold = np.full(features.height, -1)
        fold[~population] = assign_folds(group[~population], self.folds, seed)
        score = np.full(features.height, np.nan)
        seen = np.zeros(features.height)
        for k in range(self.folds):
            fit = ~population & (fold != k)
            if member[fit].all() or not member[fit].any():
                continue
            decide = self._fitted(words[fit], member[fit])
            held_out = fold == k
            score[held_out] = decide(words[held_out])
            # The population is in no fold; it gets the mean of all of them.
            score[population] = np.nan_to_num(score[population]) + decide(words[population])
            seen[population] += 1
        score[population] = score[population] / np.maximum(seen[population], 1)
        return Judgement(features.select("record").with_columns(bag_of_words=pl.Series(score)))

    def _fitted(self, words: Any, member: Bools) -> Any:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(C=self.strength, class_weight="balanced", max_iter=1000)
        model.fit(words, member)
        return lambda rows: model.decision_function(rows) if rows.shape[0] else np.empty(0)


def _presence(words: pl.Series) -> Any:
    """Which words occur in which row. A word of a single row cannot tell rows apart and has no column."""
    from scipy.sparse import csr_matrix

    lengths = words.list.len().to_numpy()
    rows = np.repeat(np.arange(len(words)), lengths)
    _, column, count = np.unique(words.explode().drop_nulls().to_numpy(), return_inverse=True, return_counts=True)
    shared = count > 1
    keep = shared[column]
    # Rows of length one, so that long texts do not dominate.
    weight: Floats = 1.0 / np.sqrt(np.maximum(lengths, 1))[rows]
    narrow = np.cumsum(shared) - 1
    shape = (len(words), max(int(shared.sum()), 1))
    return csr_matrix((weight[keep], (rows[keep], narrow[column[keep]])), shape=shape)


def assign_folds(group: Ints, folds: int, seed: int) -> Ints:
    """Folds that never split a group and are of about the same size.

    They do not look at labels: a fold that balanced them would move with a row's own label, and so would its score.
    """
    _, index, size = np.unique(group, return_inverse=True, return_counts=True)
    order = np.lexsort((generator(seed, "folds").random(len(size)), -size))
    fold_of_group = np.empty(len(size), dtype=np.int64)
    fold_of_group[order] = np.arange(len(size)) % folds
    return fold_of_group[index]
