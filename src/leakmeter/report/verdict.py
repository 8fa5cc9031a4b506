"""The verdict: what the results mean, first of all things on a page.

An attack counts as above or below chance only by its simultaneous interval, so that picking the strongest of many is
honest. It counts as a leak only where it also beats every row that never asked the model, so that two unlike sets of
texts are not called memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from leakmeter.core.attack import Scalar
from leakmeter.core.result import Result
from leakmeter.report import figures, sentences
from leakmeter.report.figures import Panel, Row
from leakmeter.report.wording import named

Level = Literal["leaks", "pools differ", "inverted", "inconclusive", "no evidence"]

SEVERITY: tuple[Level, ...] = ("leaks", "pools differ", "inverted", "inconclusive", "no evidence")
"""The gravest first: what a sweep is headed by."""

TOO_BLUNT = 0.70
"""A run that could not have noticed an AUC of this size says nothing by noticing none."""

_APART = "The two sets of texts can be told apart without asking the model"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a run shows, for a reader who knows no statistics."""

    level: Level
    headline: str
    sentences: list[str] = field(default_factory=list)
    attack: str = ""
    signal: str = ""
    """The signal the figures are about; empty where nothing was measured."""
    setting: Mapping[str, Scalar] = field(default_factory=dict)
    """Of a sweep: the setting the figures are about."""


def summary(document: Mapping[str, Any]) -> Verdict:
    """The verdict on the content of a results.json."""
    return verdict(figures.read(document))


def verdict(results: Sequence[Result]) -> Verdict:
    """The verdict on all results of a run: over everything, with a sentence on each pool that would get another."""
    found = figures.panels(results)
    settings = figures.overall(found)
    if not settings:
        return Verdict("inconclusive", "Nothing was measured.", ["The results are empty: no attack was evaluated."])
    judged = [_with_pools(of_panel(panel), found) for panel in settings]
    return judged[0] if len(judged) == 1 else _of_sweep(settings, judged)


def of_panel(panel: Panel) -> Verdict:
    """The verdict on one slice of one setting."""
    attacks = [row for row in panel.attacks if row.measured("auc")]
    if not attacks:
        return Verdict("inconclusive", "Nothing could be measured.", sentences.unmeasured(panel), setting=panel.setting)
    above = [row for row in attacks if row.side() > 0]
    below = [row for row in attacks if row.side() < 0]
    leaking = [row for row in above if row.net_side() > 0]
    unasked = _told_apart_unasked(panel)
    if leaking:
        return _leaks(panel, leaking[0], below, unasked)
    if not above and any(_farther_than_controls(row, panel) for row in below):
        return _inverted(panel, below, unasked)
    if unasked:
        return _pools_differ(panel, attacks[0], below, unasked)
    if above:
        return _uncontrolled(panel, above[0], below)
    return _nothing_found(panel, attacks)


def _of(panel: Panel, row: Row, level: Level, headline: str, said: list[str]) -> Verdict:
    return Verdict(level, headline, said, row.attack, row.signal, panel.setting)


def _told_apart_unasked(panel: Panel) -> str:
    """The sentence that says so, where a control tells the two sets of texts apart; otherwise empty."""
    control, strength = panel.best_control, panel.pools_differ()
    return sentences.without_asking(control, strength) if control and strength else ""


def _leaks(panel: Panel, row: Row, below: list[Row], unasked: str) -> Verdict:
    said = [sentences.picks(panel, row), *sentences.adds(row), *sentences.identifies(row), *sentences.by_chance(row)]
    if unasked:
        said.append(
            f"The two sets of texts also differ in themselves, which the difference takes off: {_inside(unasked)}"
        )
    return _of(
        panel, row, "leaks", "The model gives away which texts it was trained on.", said + sentences.inverted(below)
    )


def _pools_differ(panel: Panel, strongest: Row, below: list[Row], unasked: str) -> Verdict:
    said = [unasked, sentences.picks(panel, strongest), *sentences.adds(strongest)]
    said += sentences.inverted(below)
    said.append(
        "To measure memorisation, draw training texts and other texts from one source, for instance by splitting the "
        "data before training, and audit again."
    )
    claim = "this figure is no evidence of memorisation"
    if strongest.side() <= 0:
        claim = "this run shows neither that the model leaks nor that it does not"
    return _of(panel, strongest, "pools differ", f"{_APART}; {claim}.", said)


def _uncontrolled(panel: Panel, row: Row, below: list[Row]) -> Verdict:
    """Above chance, but not above the controls, which themselves show nothing; or there are none."""
    said = [sentences.picks(panel, row), *sentences.adds(row), *sentences.inverted(below)]
    if row.measured("net_auc"):
        headline = "An attack does better than chance, but not clearly better than guessing from the texts alone."
        said.append("More texts would narrow the intervals.")
    else:
        headline = "An attack does better than chance, but no control rules out that the texts themselves differ."
        said.append(
            "No row that never asks the model was measured beside it. Add some (bag of words, length, the reference "
            "alone) before reading this as memorisation."
        )
    return _of(panel, row, "inconclusive", headline, said)


def _farther_than_controls(row: Row, panel: Panel) -> bool:
    """Whether an attack below chance lies farther from it than what tells the two sets apart unasked, if anything."""
    judged, strength = row.judged(), panel.pools_differ()
    if strength is None:
        return True
    return judged is not None and (judged.high or 0.0) < 1 - (strength.high or 1.0)


def _inverted(panel: Panel, below: list[Row], unasked: str) -> Verdict:
    said = sentences.inverted(below)
    said.append(
        "Far below chance is as informative as far above it, so this is no evidence that nothing leaks. The usual "
        "causes are training texts and other texts swapped in the input, or two sets of texts that differ in kind."
    )
    if unasked:
        said.append(f"The two sets of texts also differ in themselves: {_inside(unasked)}")
    return _of(panel, below[-1], "inverted", "An attack points the wrong way: check the labels first.", said)


def _nothing_found(panel: Panel, attacks: list[Row]) -> Verdict:
    said = [sentences.picks(panel, attacks[0]), *sentences.could_have_seen(panel)]
    could, judged = panel.whole.get("detectable_auc"), attacks[0].judged()
    reach = could.value if could else judged.high if judged else None
    if reach is None or reach > TOO_BLUNT:
        headline = "Too few texts to tell whether the model leaks."
        return _of(panel, attacks[0], "inconclusive", headline, [sentences.too_few(panel), *said])
    if few := [row for row in attacks if _catches_a_few(row, panel.controls)]:
        headline = "On average nothing shows, but a few texts may be given away."
        return _of(panel, few[0], "inconclusive", headline, [sentences.standing_out(few[0]), *said])
    said.append("A stronger attack, other texts or more of them may still find a leak.")
    headline = "No evidence, in this run, that the model gives away which texts it was trained on."
    return _of(panel, attacks[0], "no evidence", headline, said)


def _catches_a_few(row: Row, controls: Sequence[Row]) -> bool:
    """Whether far more members than others pass the strict threshold, and more than any control's threshold catches.

    An average hides it when only some texts, say the repeated ones, leak.
    """
    caught, accused = row.measured("tpr@1%"), row.measured("fpr@1%")
    if caught is None or accused is None or caught.low is None or accused.high is None:
        return False
    guessed = [control.figures["tpr@1%"].value or 0.0 for control in controls if control.measured("tpr@1%")]
    return caught.low > max([accused.high, *guessed])


def _with_pools(of_all: Verdict, found: Sequence[Panel]) -> Verdict:
    """The verdict, and a sentence for every named pool of non-members that would get another one."""
    added = []
    for panel in found:
        if list(panel.slice) != ["pool"] or figures.names(panel.setting) != figures.names(of_all.setting):
            continue
        alone = of_panel(panel)
        if alone.level != of_all.level:
            added.append(f"Against the pool {panel.slice['pool']} alone the verdict differs: {_inside(alone.headline)}")
    return replace(of_all, sentences=[*of_all.sentences, *added])


def _of_sweep(settings: Sequence[Panel], judged: Sequence[Verdict]) -> Verdict:
    """One verdict over several settings: the gravest, there the strongest attack, and how many settings share it."""

    def gravity(pair: tuple[Panel, Verdict]) -> tuple[int, float]:
        row = pair[0].row(pair[1].attack, pair[1].signal)
        return SEVERITY.index(pair[1].level), -row.auc if row else 0.0

    gravest = min(zip(settings, judged, strict=True), key=gravity)[1]
    same = sum(each.level == gravest.level for each in judged)
    said = [
        f"The figures here are for {named(gravest.setting)}; the table of settings has the others.",
        *gravest.sentences,
        f"The correction for many attacks holds within a setting, not for having looked at {len(judged)} settings.",
    ]
    return replace(
        gravest, headline=f"In {same} of {len(judged)} settings: {_inside(gravest.headline)}", sentences=said
    )


def _inside(sentence: str) -> str:
    """A sentence as part of another."""
    return sentence[0].lower() + sentence[1:]
