"""Each rule of the verdict, on results made for it."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

import pytest

from leakmeter.core.errors import BadInput
from leakmeter.core.result import Result
from leakmeter.report.verdict import Verdict, summary, verdict

NARROW = "\N{NARROW NO-BREAK SPACE}"


def text(judged: Verdict) -> str:
    return " ".join([judged.headline, *judged.sentences])


def test_a_leak_is_said_in_cases_out_of_a_hundred(told: Any) -> None:
    told.row(
        "ratio",
        (0.871, 0.85, 0.89),
        simultaneous=(0.871, 0.842, 0.898),
        net_auc=(0.34, 0.31, 0.37),
        p_holm=0.0004,
        rates={"tpr@1%": (0.23, 0.19, 0.28), "fpr@1%": (0.012, 0.006, 0.021)},
    ).row("loss", (0.7, 0.66, 0.74), net_auc=(0.17, 0.12, 0.22), p_holm=0.0004)
    told.row("length", (0.53, 0.49, 0.57), blind=True)
    judged = verdict(told.results)
    assert judged.level == "leaks"
    assert judged.headline == "The model gives away which texts it was trained on."
    assert (judged.attack, judged.signal) == ("ratio", "ratio")
    assert "ratio, the strongest of 2 attacks, picks the training text in 87 of 100 cases" in text(judged)
    assert "(interval 84–90, corrected for having tried 2 attacks)" in text(judged)  # H6: the simultaneous interval
    assert "is 34 of 100 cases (interval 31–37)" in text(judged)  # H4
    # H2: what the threshold was set for, and what it did
    assert "set to accuse 1 in 100 other texts wrongly" in text(judged)
    assert f"it identifies 23{NARROW}% (19–28{NARROW}%) of the training texts" in text(judged)
    assert f"1.2{NARROW}% (0.60–2.1{NARROW}%) of the others were in fact accused" in text(judged)
    assert "below 0.001 (Holm-adjusted)" in text(judged)


def test_an_interval_of_one_attack_alone_is_not_enough_when_many_were_tried(told: Any) -> None:
    # H6
    told.row("ratio", (0.54, 0.505, 0.575), simultaneous=(0.54, 0.49, 0.59), net_auc=(0.04, 0.01, 0.07))
    told.row("length", (0.50, 0.46, 0.54), blind=True).whole("detectable_auc", 0.56)
    assert verdict(told.results).level == "no evidence"


def test_pools_that_differ_are_not_called_memory(told: Any) -> None:
    # H4
    told.row("ratio", (0.83, 0.80, 0.86), net_auc=(0.02, -0.01, 0.05))
    told.row("bag_of_words", (0.81, 0.78, 0.84), blind=True).row("length", (0.6, 0.56, 0.64), blind=True)
    judged = verdict(told.results)
    assert judged.level == "pools differ"
    assert "told apart without asking the model; this figure is no evidence of memorisation" in judged.headline
    assert (
        "The control bag_of_words, which never asked the model, tells a training text from another in 81 of 100 cases"
        in text(judged)
    )
    assert "adds nothing certain" in text(judged)
    assert "gives away" not in text(judged).replace("which texts alone give away", "")


def test_pools_that_differ_also_take_the_meaning_from_a_figure_near_chance(told: Any) -> None:
    told.row("ratio", (0.50, 0.46, 0.54), net_auc=(-0.31, -0.36, -0.26))
    told.row("bag_of_words", (0.81, 0.78, 0.84), blind=True).whole("detectable_auc", 0.55)
    judged = verdict(told.results)
    assert judged.level == "pools differ"
    assert "neither that the model leaks nor that it does not" in judged.headline
    assert "asking the model does worse than not asking it" in text(judged)


def test_a_leak_beyond_pools_that_differ_says_both(told: Any) -> None:
    told.row("ratio", (0.93, 0.91, 0.95), net_auc=(0.23, 0.2, 0.26)).row("length", (0.7, 0.66, 0.74), blind=True)
    judged = verdict(told.results)
    assert judged.level == "leaks"
    assert "also differ in themselves, which the difference takes off: the control length" in text(judged)


def test_whether_pools_differ_goes_by_the_interval_corrected_for_choosing_a_control(told: Any) -> None:
    told.row("ratio", (0.52, 0.47, 0.57), net_auc=(-0.03, -0.08, 0.02)).whole("detectable_auc", 0.56)
    told.row("length", (0.45, 0.41, 0.49), blind=True).row("zlib_alone", (0.54, 0.5, 0.58), blind=True)
    assert verdict(told.results).level == "pools differ"
    assert (
        "The control length, which never asked the model, tells a training text from another in 55 of 100 cases"
        in text(verdict(told.results))
    )
    told.whole("pools_differ", (0.55, 0.49, 0.61))
    assert verdict(told.results).level == "no evidence"


def test_no_evidence_says_what_could_have_been_seen_and_never_that_all_is_well(told: Any) -> None:
    # H8
    told.row("ratio", (0.52, 0.48, 0.56), net_auc=(0.01, -0.03, 0.05)).row("loss", (0.5, 0.46, 0.54))
    told.row("length", (0.51, 0.47, 0.55), blind=True)
    told.whole("detectable_auc", 0.561).whole("detectable_tpr@1%", 0.034)
    judged = verdict(told.results)
    assert judged.level == "no evidence"
    assert "picks the training text in 52 of 100 cases" in text(judged)
    assert "cannot be told from chance" in text(judged)
    assert "right in 56.1 of 100 cases or more" in text(judged)
    assert f"identifies 3.4{NARROW}% of the training texts or more" in text(judged)
    assert not re.search(r"\bsafe|\bsecure|does not leak\b|no leak\b", text(judged), re.IGNORECASE)


def test_far_below_chance_is_reported(told: Any) -> None:
    # H7
    told.row("ratio", (0.49, 0.45, 0.53)).row("loss", (0.44, 0.41, 0.48)).row("zlib", (0.31, 0.27, 0.35))
    told.row("length", (0.5, 0.46, 0.54), blind=True).whole("detectable_auc", 0.55)
    judged = verdict(told.results)
    assert judged.level == "inverted"
    assert judged.attack == "zlib"
    assert "only 31 of 100 cases (interval 27–35)" in text(judged)
    assert "also: loss." in text(judged)
    assert "swapped" in text(judged)


def test_far_below_chance_is_not_put_down_to_a_small_difference_between_pools(told: Any) -> None:
    told.row("loss", (0.31, 0.27, 0.35), net_auc=(-0.24, -0.28, -0.2)).row("length", (0.55, 0.52, 0.58), blind=True)
    judged = verdict(told.results)
    assert judged.level == "inverted"
    assert "also differ in themselves: the control length" in text(judged)
    told.row("bag_of_words", (0.71, 0.67, 0.75), blind=True)
    assert verdict(told.results).level == "pools differ"


def test_a_leak_does_not_hide_an_attack_below_chance(told: Any) -> None:
    told.row("ratio", (0.9, 0.88, 0.92), net_auc=(0.4, 0.35, 0.45)).row("lowercase", (0.4, 0.36, 0.44))
    told.row("length", (0.5, 0.46, 0.54), blind=True)
    judged = verdict(told.results)
    assert judged.level == "leaks"
    assert "The attack lowercase is clearly below chance" in text(judged)


def test_too_few_texts_give_no_answer(told: Any) -> None:
    rates = {"tpr@10%": (0.2, 0.0, 0.6), "fpr@10%": (0.1, 0.0, 0.5)}
    told.row("ratio", (0.61, 0.32, 0.85), net_auc=(0.1, -0.3, 0.5), rates=rates)
    told.row("length", (0.5, 0.2, 0.8), blind=True).whole("detectable_auc", 0.87)
    judged = verdict(told.results)
    assert judged.level == "inconclusive"
    assert judged.headline.startswith("Too few texts")
    assert "200 training texts and 200 other texts allow no answer" in text(judged)


def test_a_run_that_could_have_seen_nothing_at_all_says_so(told: Any) -> None:
    # H8
    told.row("ratio", (0.55, 0.45, 0.65)).row("length", (0.5, 0.4, 0.6), blind=True)
    told.results.append(Result("", "", "detectable_auc", None, note="no AUC at all would be told from 0.5"))
    judged = verdict(told.results)
    assert judged.level == "inconclusive"
    assert "No AUC at all would be told from 0.5." in judged.sentences


def test_without_a_stated_power_a_wide_interval_is_enough_to_withhold_an_answer(told: Any) -> None:
    told.row("ratio", (0.61, 0.32, 0.85)).row("length", (0.5, 0.2, 0.8), blind=True)
    assert verdict(told.results).level == "inconclusive"


def test_without_a_control_nothing_is_called_a_leak(told: Any) -> None:
    # H4
    judged = verdict(told.row("ratio", (0.9, 0.88, 0.92)).results)
    assert judged.level == "inconclusive"
    assert "no control rules out" in judged.headline


def test_above_chance_but_not_above_a_control_that_shows_nothing_is_open(told: Any) -> None:
    told.row("ratio", (0.55, 0.51, 0.59), net_auc=(0.03, -0.02, 0.08)).row("length", (0.52, 0.48, 0.56), blind=True)
    judged = verdict(told.results)
    assert judged.level == "inconclusive"
    assert "not clearly better than guessing from the texts alone" in judged.headline


def test_a_few_texts_given_away_are_not_averaged_out(told: Any) -> None:
    few = {"tpr@1%": (0.06, 0.045, 0.08), "fpr@1%": (0.01, 0.004, 0.02)}
    told.row("ratio", (0.51, 0.48, 0.54), rates=few).whole("detectable_auc", 0.55)
    told.row("length", (0.5, 0.47, 0.53), blind=True, rates={"tpr@1%": (0.01, 0.0, 0.02)})
    judged = verdict(told.results)
    assert judged.level == "inconclusive"
    assert f"identifies 6.0{NARROW}% (4.5–8.0{NARROW}%)" in text(judged)
    assert "not corrected for the number of attacks" in text(judged)


def test_a_rate_that_cannot_be_measured_falls_back_to_a_coarser_one(told: Any) -> None:
    # H3
    rates = {"tpr@10%": (0.6, 0.5, 0.7), "fpr@10%": (0.1, 0.05, 0.2), "tpr@1%": None, "fpr@1%": None}
    told.row("ratio", (0.87, 0.8, 0.92), net_auc=(0.3, 0.2, 0.4), rates=rates)
    told.row("length", (0.52, 0.45, 0.6), blind=True)
    judged = verdict(told.results)
    assert "1 in 10 other texts" in text(judged)
    assert "1 in 100" not in text(judged)


def test_bounds_that_exclude_chance_never_read_as_if_they_touched_it(told: Any) -> None:
    told.row("ratio", (0.52, 0.502, 0.538), net_auc=(0.02, 0.004, 0.036)).row("length", (0.5, 0.48, 0.52), blind=True)
    judged = verdict(told.results)
    assert "(interval 50.2–53.8)" in text(judged)
    assert "(interval 0.4–3.6)" in text(judged)


def test_the_attack_named_is_the_one_that_leaks_even_if_another_has_a_higher_auc(told: Any) -> None:
    told.row("ratio", (0.8, 0.6, 0.95), net_auc=(0.2, -0.05, 0.4)).row(
        "loss", (0.75, 0.7, 0.8), net_auc=(0.2, 0.1, 0.3)
    )
    told.row("length", (0.55, 0.48, 0.62), blind=True)
    judged = verdict(told.results)
    assert (judged.level, judged.attack) == ("leaks", "loss")
    assert "loss, one of 2 attacks" in text(judged)


def test_what_could_not_be_measured_says_why() -> None:
    result = Result("loss", "loss", "auc", None, note="All 40 scores are equal.")
    judged = verdict([result])
    assert judged.level == "inconclusive"
    assert judged.sentences == ["All 40 scores are equal."]


def test_empty_results_are_no_verdict() -> None:
    assert verdict([]).level == "inconclusive"
    with pytest.raises(BadInput, match="no list under 'results'"):
        summary({"leakmeter": "0.1.0"})
    with pytest.raises(BadInput, match="Result 0"):
        summary({"results": [{"attack": "loss"}]})


def test_a_pool_with_another_verdict_is_named(told: Any) -> None:
    # M6
    told.row("ratio", (0.9, 0.88, 0.92), net_auc=(0.3, 0.2, 0.4)).row("length", (0.52, 0.47, 0.57), blind=True)
    wiki = {"pool": "wiki"}
    told.row("ratio", (0.9, 0.88, 0.92), net_auc=(0.0, -0.1, 0.1), slice=wiki)
    told.row("length", (0.9, 0.87, 0.93), blind=True, slice=wiki)
    judged = verdict(told.results)
    assert judged.level == "leaks"
    assert "Against the pool wiki alone the verdict differs: the two sets of texts can be told apart" in text(judged)


def test_a_sweep_counts_its_settings_and_shows_the_worst(sample: ModuleType) -> None:
    judged = summary(sample.sweep())
    assert judged.level == "leaks"
    assert judged.headline.startswith("In 3 of 4 settings: the model gives away")
    assert judged.setting == {"models.target.epoch": 3}
    assert "not for having looked at 4 settings" in text(judged)


def test_a_newer_results_file_with_unknown_fields_is_still_read(told: Any) -> None:
    document = told.row("ratio", (0.9, 0.88, 0.92)).document()
    document["results"][0]["invented_later"] = 1
    assert summary(document).attack == "ratio"
