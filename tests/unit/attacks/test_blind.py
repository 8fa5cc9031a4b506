"""Rows that never ask the target: what they see is in the texts alone (H4)."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from leakmeter.attacks.blind import BagOfWords, Length, ReferenceAlone, ZlibAlone, assign_folds
from leakmeter.core.attack import Answers
from leakmeter.core.errors import BadInput
from leakmeter.core.record import Record
from leakmeter.core.registry import build


def table(texts: list[str], members: list[bool], groups: list[int], population: list[bool] | None = None) -> Any:
    attack = BagOfWords()
    features = attack.read(Answers([Record(str(i), {"text": text}) for i, text in enumerate(texts)]))
    features = features.with_columns(
        population=pl.Series(population or [False] * len(texts)),
        member=pl.Series(members),
        group=pl.Series(groups),
        split=pl.lit("audit"),
    )
    return attack.judge(features, 0).scores["bag_of_words"].to_numpy()


def auc(scores: Any, members: Any) -> float:
    inside, outside = scores[members], scores[~members]
    return float(((inside[:, None] > outside) + 0.5 * (inside[:, None] == outside)).mean())


def words(rng: Any, n: int, among: int = 400) -> list[str]:
    return [" ".join(f"w{w}" for w in rng.integers(among, size=30)) for _ in range(n)]


def test_bag_of_words_sees_pools_with_different_words() -> None:
    rng = np.random.default_rng(0)
    texts = [text + (" invoice" if i < 100 and i % 2 else "") for i, text in enumerate(words(rng, 200))]
    member = np.arange(200) < 100
    assert auc(table(texts, member.tolist(), list(range(200))), member) > 0.65


def test_bag_of_words_sees_nothing_in_pools_drawn_alike() -> None:
    member = np.arange(300) < 150
    values = [
        auc(table(words(np.random.default_rng(seed), 300), member.tolist(), list(range(300))), member)
        for seed in range(8)
    ]
    assert abs(np.mean(values) - 0.5) < 0.05


def test_bag_of_words_never_scores_a_row_by_a_model_that_saw_its_group() -> None:
    """Each group has a secret word; a classifier that saw the group would score it perfectly."""
    rng = np.random.default_rng(1)
    groups = [i // 4 for i in range(240)]
    texts = [text + f" secret{g}" * 5 for text, g in zip(words(rng, 240), groups, strict=True)]
    member = np.array([rng.random() < 0.5 for _ in range(60)]).repeat(4)
    assert auc(table(texts, member.tolist(), groups), member) < 0.65


def test_the_population_is_scored_too() -> None:
    texts = words(np.random.default_rng(2), 150)
    population = [i >= 100 for i in range(150)]
    scores = table(texts, [i < 50 for i in range(150)], list(range(150)), population)
    assert np.isfinite(scores).all()


def test_folds_keep_groups_together_and_are_of_one_size() -> None:
    group = np.repeat(np.arange(100), np.arange(100) % 4 + 1)
    fold = assign_folds(group, 5, seed=0)
    assert all(len(set(fold[group == g])) == 1 for g in range(100))
    assert np.bincount(fold).tolist() == [50] * 5
    assert fold.tolist() != assign_folds(group, 5, seed=1).tolist()


def test_a_groups_own_labels_do_not_move_its_scores() -> None:
    texts = words(np.random.default_rng(3), 120, among=80)
    groups = [i // 3 for i in range(120)]
    member = [g < 20 for g in groups]
    before = table(texts, member, groups)
    for group in (0, 19, 20, 39):
        mine = np.array(groups) == group
        after = table(texts, [m != bool(own) for m, own in zip(member, mine, strict=True)], groups)
        assert (after[mine] == before[mine]).all()
        assert (after[~mine] != before[~mine]).any()


@pytest.mark.parametrize(
    "wrong",
    [{"folds": 1}, {"buckets": 1}, {"strength": 0}, {"strength": -1}, {"strength": np.nan}, {"strength": np.inf}],
    ids=str,
)
def test_bag_of_words_refuses_parameters_without_a_meaning(wrong: Any) -> None:
    with pytest.raises(BadInput, match=next(iter(wrong))):
        build("attacks", {"type": "bag_of_words", **wrong})


def test_a_block_without_a_single_word_joins_the_others() -> None:
    blocks = [BagOfWords().read(Answers([Record("r", {"text": text})])) for text in ("!?", "Dear Ada")]
    assert pl.concat(blocks)["words"].list.len().to_list() == [0, 2]


def test_length_and_compression_come_from_the_text_alone() -> None:
    records = [Record("a", {"text": "x" * 100}), Record("b", {"text": "the quick brown fox jumps"})]
    assert Length().read(Answers(records))["length"].to_list() == [100.0, 25.0]
    compressible, ordinary = ZlibAlone().read(Answers(records))["zlib_alone"].to_list()
    assert compressible > ordinary


@pytest.mark.parametrize("attack", [BagOfWords(), Length(), ZlibAlone(), ReferenceAlone()], ids=lambda a: a.type)
def test_blind_rows_ask_the_target_nothing(attack: Any) -> None:
    assert attack.blind
    asked = list(attack.ask(Record("r", {"text": "Dear Ada"}), Answers(())))
    assert all(ask.role != "target" for ask in asked)


def test_the_interval_of_cross_fitted_rows_covers_chance_as_often_as_it_says() -> None:
    """Resampling finished scores misses that fits and scores share rows; the widened interval does not."""
    from leakmeter.core.result import Sample
    from leakmeter.metrics.roc import paired_aucs

    member = np.arange(120) < 60
    group = np.arange(120)
    covered = {True: 0, False: 0}
    for seed in range(60):
        score = table(words(np.random.default_rng(1000 + seed), 120, among=60), member.tolist(), group.tolist())
        for widened in covered:
            sample = Sample("bag", "bag", True, score, member, group, np.empty(0), np.empty(0, np.int64), widened)
            low, high = paired_aucs([sample], 0, 200).interval(0)
            covered[widened] += low <= 0.5 <= high
    assert covered[True] >= 54
    assert covered[True] > covered[False]
