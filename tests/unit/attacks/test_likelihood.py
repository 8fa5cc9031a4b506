"""Each membership signal equals its definition, computed by a plain loop on a small vocabulary (C1)."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import polars as pl
import pytest

from leakmeter.attacks.blind import ReferenceAlone
from leakmeter.attacks.likelihood import Loss, Lowercase, MinK, MinKPlus, Zlib
from leakmeter.attacks.reference import Calibrated, ErrorShift, Ratio, Windows
from leakmeter.core.attack import Answers
from leakmeter.core.errors import BadInput
from leakmeter.core.question import Likelihood
from leakmeter.core.record import Record
from leakmeter.core.registry import build

VOCABULARY = 7


class Texts:
    """Random distributions over a small vocabulary for each token of each text, from two models."""

    def __init__(self, lengths: list[int], seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.tokens = [rng.integers(VOCABULARY, size=n) for n in lengths]
        self.target = [self._log_softmax(rng.normal(size=(n, VOCABULARY)) * 2) for n in lengths]
        self.reference = [self._log_softmax(rng.normal(size=(n, VOCABULARY)) * 2) for n in lengths]
        self.records = [Record(str(i), {"text": f"Text {i} " * (i + 2)}) for i in range(len(lengths))]

    @staticmethod
    def _log_softmax(logits: Any) -> Any:
        return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))

    def frame(self, model: list[Any], digests: list[int] | None = None) -> pl.DataFrame:
        rows = range(len(self.tokens))
        probabilities = [np.exp(log_p) for log_p in model]
        means = [(p * log_p).sum(axis=1) for p, log_p in zip(probabilities, model, strict=True)]
        squares = [(p * log_p**2).sum(axis=1) for p, log_p in zip(probabilities, model, strict=True)]
        return pl.DataFrame(
            {
                "record": list(rows),
                "model": ["m"] * len(rows),
                "i": [0] * len(rows),
                "n_tokens": [len(t) for t in self.tokens],
                "truncated": [False] * len(rows),
                "tokens_digest": digests or list(rows),
                "logprob": [log_p[np.arange(len(t)), t].tolist() for log_p, t in zip(model, self.tokens, strict=True)],
                "mean": [m.tolist() for m in means],
                "deviation": [np.sqrt(s - m**2).tolist() for s, m in zip(squares, means, strict=True)],
                "first": [(log_p.argmax(axis=1) == t).tolist() for log_p, t in zip(model, self.tokens, strict=True)],
            },
            schema={
                "record": pl.UInt32,
                "model": pl.String,
                **{k: v for k, v in Likelihood.schema.items() if k != "q"},
            },
        )

    def answers(self) -> Answers:
        frames = {
            ("target", "likelihood"): self.frame(self.target),
            ("reference", "likelihood"): self.frame(self.reference),
        }
        return Answers(self.records, frames)

    def logprobs(self, model: list[Any]) -> list[list[float]]:
        return [
            [float(log_p[t, token]) for t, token in enumerate(tokens)]
            for log_p, tokens in zip(model, self.tokens, strict=True)
        ]


@pytest.fixture
def texts() -> Texts:
    return Texts([1, 2, 5, 13, 30, 44, 60])


def scores(attack: Any, answers: Answers, signal: str) -> list[float]:
    features = attack.read(answers).with_columns(
        population=pl.lit(False), member=pl.lit(None, dtype=pl.Boolean), group="record", split=pl.lit("audit")
    )
    return list(attack.judge(features, 0).scores.sort("record")[signal].to_list())


def test_loss_is_the_mean_log_probability(texts: Texts) -> None:
    expected = [sum(values) / len(values) for values in texts.logprobs(texts.target)]
    assert scores(Loss(), texts.answers(), "loss") == pytest.approx(expected, abs=1e-6)


def test_zlib_divides_the_loss_by_the_compressed_size(texts: Texts) -> None:
    sizes = [len(zlib.compress(record.fields["text"].encode())) for record in texts.records]
    expected = [np.mean(v) / size for v, size in zip(texts.logprobs(texts.target), sizes, strict=True)]
    assert scores(Zlib(), texts.answers(), "zlib") == pytest.approx(expected, abs=1e-6)


def test_min_k_is_the_mean_of_the_least_likely_fifth(texts: Texts) -> None:
    expected = []
    for values in texts.logprobs(texts.target):
        k = max(1, int(len(values) * 0.2))
        expected.append(float(np.mean(sorted(values)[:k])))
    assert scores(MinK(), texts.answers(), "min_k") == pytest.approx(expected, abs=1e-6)


def test_min_k_plus_standardises_over_the_vocabulary(texts: Texts) -> None:
    expected = []
    for log_p, tokens in zip(texts.target, texts.tokens, strict=True):
        standard = []
        for t, token in enumerate(tokens):
            p = np.exp(log_p[t])
            mean = sum(p[z] * log_p[t, z] for z in range(VOCABULARY))
            variance = sum(p[z] * (log_p[t, z] - mean) ** 2 for z in range(VOCABULARY))
            standard.append((log_p[t, token] - mean) / np.sqrt(variance))
        k = max(1, int(len(standard) * 0.2))
        expected.append(float(np.mean(sorted(standard)[:k])))
    assert scores(MinKPlus(), texts.answers(), "min_k_plus") == pytest.approx(expected, abs=1e-5)


def test_lowercase_compares_a_text_with_itself_in_lower_case() -> None:
    texts, lowered = Texts([4, 9], seed=1), Texts([4, 8], seed=2)
    frame = pl.concat(
        [
            texts.frame(texts.target).with_columns(lowered=pl.lit(0)),
            lowered.frame(lowered.target).with_columns(lowered=pl.lit(1)),
        ]
    )
    answers = Answers(texts.records, {("target", "likelihood"): frame})
    pairs = zip(texts.logprobs(texts.target), lowered.logprobs(lowered.target), strict=True)
    expected = [np.mean(as_is) - np.mean(lower) for as_is, lower in pairs]
    assert scores(Lowercase(), answers, "lowercase") == pytest.approx(expected, abs=1e-6)


def test_lowercase_asks_for_both_spellings_of_the_same_text() -> None:
    asked = list(Lowercase().ask(Record("r", {"text": "Dear Ada"}), Answers(())))
    assert [a.question.texts for a in asked] == [("Dear Ada",), ("dear ada",)]  # type: ignore[union-attr]


def test_ratio_is_the_mean_difference_of_log_probabilities(texts: Texts) -> None:
    pairs = zip(texts.logprobs(texts.target), texts.logprobs(texts.reference), strict=True)
    expected = [np.mean(ours) - np.mean(theirs) for ours, theirs in pairs]
    assert scores(Ratio(), texts.answers(), "ratio") == pytest.approx(expected, abs=1e-6)


def test_ratio_keeps_its_unit_when_the_tokenisers_differ(texts: Texts) -> None:
    """Both sides are divided by the target's tokens: a reference with twice the tokens is not half as sure."""
    other = Texts([2 * len(t) for t in texts.tokens], seed=5)
    frames = {
        ("target", "likelihood"): texts.frame(texts.target),
        ("reference", "likelihood"): other.frame(other.target),
    }
    pairs = zip(texts.logprobs(texts.target), other.logprobs(other.target), strict=True)
    expected = [(sum(ours) - sum(theirs)) / len(ours) for ours, theirs in pairs]
    assert scores(Ratio(), Answers(texts.records, frames), "ratio") == pytest.approx(expected, abs=1e-5)


def test_windows_average_the_votes_of_all_windows(texts: Texts) -> None:
    attack = Windows()
    assert attack.window_sizes() == [2, 3, 4, 5, 8, 11, 15, 21, 29, 40]
    expected = []
    for ours, theirs in zip(texts.logprobs(texts.target), texts.logprobs(texts.reference), strict=True):
        shares = []
        for size in attack.window_sizes():
            votes = [
                sum(-theirs[t] for t in range(s, s + size)) > sum(-ours[t] for t in range(s, s + size))
                for s in range(len(ours) - size + 1)
            ]
            if votes:
                shares.append(sum(votes) / len(votes))
        expected.append(sum(shares) / len(shares) if shares else np.nan)
    assert scores(attack, texts.answers(), "windows") == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_error_shift_is_the_log_ratio_of_shifts_at_wrong_guesses(texts: Texts) -> None:
    expected = []
    for log_p, log_r, tokens in zip(texts.target, texts.reference, texts.tokens, strict=True):
        up = down = 0.0
        wrong = [t for t, token in enumerate(tokens) if log_p[t].argmax() != token] or list(range(len(tokens)))
        for t in wrong:
            shift = log_p[t, tokens[t]] - log_r[t, tokens[t]]
            up, down = up + max(shift, 0), down + max(-shift, 0)
        expected.append(np.log((up + 1e-6) / (down + 1e-6)))
    assert scores(ErrorShift(), texts.answers(), "error_shift") == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("attack", [Windows(), ErrorShift()], ids=lambda a: a.type)
def test_token_by_token_attacks_give_no_score_where_the_tokenisers_differ(attack: Any, texts: Texts) -> None:
    digests = [99 if i == 5 else i for i in range(len(texts.tokens))]
    reference = texts.frame(texts.reference, digests)
    answers = Answers(
        texts.records, {("target", "likelihood"): texts.frame(texts.target), ("reference", "likelihood"): reference}
    )
    scored = attack.read(answers)
    assert 5 not in scored["record"].to_list()
    assert 6 in scored["record"].to_list()


def test_a_surer_target_raises_every_signal(texts: Texts) -> None:
    """Higher always means "leaks more": pull the target towards the true tokens and no score may fall."""
    sharper = Texts([1])
    sharper.tokens, sharper.records, sharper.reference = texts.tokens, texts.records, texts.reference
    sharper.target = []
    for log_p, tokens in zip(texts.target, texts.tokens, strict=True):
        pulled = log_p.copy()
        pulled[np.arange(len(tokens)), tokens] += 3.0
        sharper.target.append(Texts._log_softmax(pulled))
    for attack in (Loss(), Zlib(), MinK(), MinKPlus(), Ratio(), Windows()):
        signal = attack.type
        before, after = scores(attack, texts.answers(), signal), scores(attack, sharper.answers(), signal)
        rises = [b <= a for b, a in zip(before, after, strict=True) if not np.isnan(b)]
        assert all(rises), signal
        assert any(b < a for b, a in zip(before, after, strict=True)), signal


def test_passages_of_one_conversation_count_as_one_text() -> None:
    texts = Texts([3, 4])
    frame = texts.frame(texts.target).with_columns(record=pl.Series([0, 0], dtype=pl.UInt32))
    answers = Answers(texts.records[:1], {("target", "likelihood"): frame})
    whole = [value for values in texts.logprobs(texts.target) for value in values]
    assert scores(Loss(), answers, "loss") == pytest.approx([np.mean(whole)], abs=1e-6)
    assert scores(MinK(share=0.3), answers, "min_k") == pytest.approx([np.mean(sorted(whole)[:2])], abs=1e-6)


def _features(rng: Any, members: int, slope: float, noise: float) -> pl.DataFrame:
    n = 3 * members
    population = np.arange(n) >= 2 * members
    member = np.arange(n) < members
    hardness = rng.normal(size=n)
    target = hardness + 0.5 * member + 0.05 * rng.normal(size=n)
    reference = slope * hardness + noise * rng.normal(size=n)
    return pl.DataFrame(
        {
            "record": np.arange(n, dtype=np.uint32),
            "population": population,
            "member": pl.Series([None] * n, dtype=pl.Boolean),
            "group": np.arange(n),
            "split": ["audit"] * n,
            "target": target,
            "reference": reference,
        }
    )


def _auc(values: Any, members: int) -> float:
    inside, outside = values[:members], values[members : 2 * members]
    return float((inside[:, None] > outside[None, :]).mean())


def test_calibrated_is_the_residual_of_a_least_squares_line_on_the_population() -> None:
    features = _features(np.random.default_rng(0), 300, slope=0.6, noise=0.4)
    rows = features.filter("population")
    slope, intercept = np.polyfit(rows["reference"].to_numpy(), rows["target"].to_numpy(), 1)
    expected = features["target"].to_numpy() - (intercept + slope * features["reference"].to_numpy())
    judgement = Calibrated().judge(features, 0)
    assert judgement.scores["calibrated"].to_numpy() == pytest.approx(expected)
    assert judgement.tables["fit"]["on"][0] == "population"


def test_calibrated_is_not_worse_than_the_loss_with_a_reference_from_another_domain() -> None:
    """There the plain ratio is worse than the loss: the reference only adds its own noise."""
    for seed in range(5):
        features = _features(np.random.default_rng(seed), 1000, slope=0.0, noise=2.0)
        loss = _auc(features["target"].to_numpy(), 1000)
        ratio = _auc((features["target"] - features["reference"]).to_numpy(), 1000)
        calibrated = _auc(Calibrated().judge(features, 0).scores["calibrated"].to_numpy(), 1000)
        assert ratio < loss - 0.03
        assert calibrated >= loss - 0.01


def test_calibrated_beats_the_ratio_where_the_reference_is_on_another_scale() -> None:
    features = _features(np.random.default_rng(3), 1000, slope=0.5, noise=0.1)
    ratio = _auc((features["target"] - features["reference"]).to_numpy(), 1000)
    calibrated = _auc(Calibrated().judge(features, 0).scores["calibrated"].to_numpy(), 1000)
    assert calibrated > ratio + 0.02


EVERY = [Loss(), Zlib(), Lowercase(), MinK(), MinKPlus(), Ratio(), Calibrated(), Windows(), ErrorShift()]


@pytest.mark.parametrize("attack", [*EVERY, ReferenceAlone()], ids=lambda attack: attack.type)
def test_a_block_in_which_nothing_is_asked_joins_the_others(attack: Any, texts: Texts) -> None:
    silent = Record("r", {"messages": '[{"role": "user", "content": "Is anybody there?"}]'})
    assert list(attack.ask(silent, Answers(()))) == []
    empty = attack.read(Answers([silent]))
    asked = texts.answers()
    frames = {where: frame.with_columns(lowered=pl.lit(0)) for where, frame in asked.frames.items()}
    full = attack.read(Answers(asked.records, frames))
    assert empty.is_empty()
    assert empty.schema == full.schema
    pl.concat([empty, full])


def test_the_windows_of_a_text_are_the_same_in_any_block() -> None:
    """Where the models are even over a window, the rounding of a neighbour's sums would decide the vote."""
    texts = Texts([30, 30])
    tiny = 2.0**-54  # next to the neighbour's sum of 3, shifts of −3, −3 and 6 of these round to 0, 0 and 8
    logprobs = {"target": [[-0.1] * 30, [-6 * tiny, -6 * tiny, 0.0] * 10]}
    logprobs["reference"] = [[-0.2] * 30, [-3 * tiny, -3 * tiny, -6 * tiny] * 10]
    frames = {
        (role, kind): frame.with_columns(logprob=pl.Series(logprobs[role], dtype=pl.List(pl.Float32)))
        for (role, kind), frame in texts.answers().frames.items()
    }
    alone = {where: frame.filter(pl.col("record") == 1) for where, frame in frames.items()}
    attack = Windows(smallest=3, largest=3, sizes=1)
    assert scores(attack, Answers(texts.records, alone), "windows") == [0.0]
    assert scores(attack, Answers(texts.records, frames), "windows") == [1.0, 0.0]


@pytest.mark.parametrize("role", ["target", "reference"])
@pytest.mark.parametrize("attack", [Windows(), ErrorShift()], ids=lambda attack: attack.type)
def test_a_probability_of_zero_costs_its_own_record_the_score_and_no_other(attack: Any, role: str) -> None:
    texts = Texts([30] * 4)
    before = dict(attack.read(texts.answers()).iter_rows())
    getattr(texts, role)[1][3, texts.tokens[1][3]] = -np.inf
    with np.errstate(invalid="ignore"):  # the moments of the test's own distribution
        answers = texts.answers()
    assert dict(attack.read(answers).iter_rows()) == {i: before[i] for i in (0, 2, 3)}


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        *[
            ({"type": name, "share": share}, "share")
            for name in ("min_k", "min_k_plus")
            for share in (0, -1, 5, np.nan)
        ],
        ({"type": "windows", "smallest": 0}, "smallest"),
        ({"type": "windows", "smallest": 41}, "largest"),
        ({"type": "windows", "smallest": 4, "largest": 3}, "largest"),
        ({"type": "windows", "sizes": 0}, "sizes"),
    ],
    ids=str,
)
def test_parameters_without_a_meaning_are_refused_by_name(wrong: Any, field: str) -> None:
    with pytest.raises(BadInput, match=field + ":"):
        build("attacks", wrong)


def test_windows_of_one_size_are_allowed() -> None:
    assert Windows(smallest=1, largest=1, sizes=1).window_sizes() == [1]
    assert MinK(share=1).share == 1
