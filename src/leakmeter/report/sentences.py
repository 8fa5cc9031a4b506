"""Sentences: what a figure says to a reader who knows no statistics, true for exactly these numbers."""

from __future__ import annotations

from collections.abc import Sequence

from leakmeter.core.result import Result
from leakmeter.report.figures import CHANCE, Panel, Row
from leakmeter.report.wording import cases, number, one_in, p_value, percent, plural, rate


def picks(panel: Panel, row: Row) -> str:
    """An AUC as what it is: how often the right one of two texts is picked."""
    judged, tried = row.judged(), sum(other.measured("auc") is not None for other in panel.attacks)
    if judged is None:
        return f"{row.label} could not be measured."
    rank = f"the strongest of {tried} attacks" if row is panel.attacks[0] else f"one of {tried} attacks"
    said, span = cases(judged, CHANCE)
    corrected = f", corrected for having tried {tried} attacks" if row.measured("auc_simultaneous") else ""
    within = f" (interval {span}{corrected if tried > 1 else ''})" if span else ""
    chance = "; 50 would be chance" if row.side() else ", which cannot be told from chance, 50"
    return (
        f"Given one training text and one other text, {row.label}, {rank if tried > 1 else 'the only attack'}, "
        f"picks the training text in {said} of 100 cases{within}{chance}."
    )


def without_asking(control: Row, strength: Result) -> str:
    """What a control alone achieves, in whichever direction it points."""
    said, span = cases(strength, CHANCE)
    return (
        f"The control {control.label}, which never asked the model, tells a training text from another in {said} of "
        f"100 cases (interval {span}); 50 would be chance."
    )


def adds(row: Row) -> list[str]:
    """What asking the model adds to the best guess made without it."""
    net = row.measured("net_auc")
    if net is None:
        return []
    said, span = cases(net, 0.0)
    meaning = {
        1: "asking the model adds to what the texts alone give away",
        0: "asking the model adds nothing certain",
        -1: "asking the model does worse than not asking it",
    }[row.net_side()]
    difference = f"The difference to the best guess made without asking the model is {said} of 100 cases"
    return [f"{difference} (interval {span}): {meaning}."]


def identifies(row: Row) -> list[str]:
    """The share of members caught at the strictest rate of false accusations that could be measured, 1 % or 10 %."""
    for alpha in ("1%", "10%"):
        caught, accused = row.measured(f"tpr@{alpha}"), row.measured(f"fpr@{alpha}")
        if caught is None:
            continue
        in_fact = f"; {rate(accused)} of the others were in fact accused" if accused else ""
        setting = f"With its threshold set to accuse {one_in(alpha)} other texts wrongly"
        return [f"{setting}, it identifies {rate(caught)} of the training texts{in_fact}."]
    return []


def by_chance(row: Row) -> list[str]:
    adjusted = row.measured("p_holm")
    if adjusted is None:
        return []
    condition = "If the model treated both sets of texts alike, the probability of a figure this far from chance"
    return [f"{condition} would be {p_value(adjusted.value).replace('< ', 'below ')} (Holm-adjusted)."]


def inverted(below: Sequence[Row]) -> list[str]:
    """The attacks clearly below chance: the lowest with its figure, the others by name."""
    if not below:
        return []
    lowest, others = below[-1], below[:-1]
    judged = lowest.judged()
    said, span = cases(judged, CHANCE) if judged else ("", "")
    only = f"it picks the training text in only {said} of 100 cases (interval {span})"
    sentences = [f"The attack {lowest.label} is clearly below chance: {only}."]
    if others:
        sentences.append(f"Clearly below chance are also: {', '.join(row.label for row in others)}.")
    return sentences


def standing_out(row: Row) -> str:
    """A few members caught at few false accusations, though the average shows nothing."""
    caught, accused = row.figures["tpr@1%"], row.figures["fpr@1%"]
    return (
        f"With its threshold set to accuse 1 in 100 other texts wrongly, {row.label} identifies {rate(caught)} of the "
        f"training texts, while {rate(accused)} of the others were accused. A few texts may be recognised although "
        "most are not; this figure is not corrected for the number of attacks."
    )


def could_have_seen(panel: Panel) -> list[str]:
    """The smallest leak the run had the power to see."""
    sentences = []
    auc, tpr = panel.whole.get("detectable_auc"), panel.whole.get("detectable_tpr@1%")
    if auc is not None and auc.value is None and auc.note:
        sentences.append(f"{auc.note[0].upper()}{auc.note[1:]}.")
    if auc is not None and auc.value is not None:
        basis = f" ({auc.note})" if auc.note else ""
        sentences.append(
            f"This run could have noticed an attack that is right in {number(100 * auc.value, 1)} of 100 cases "
            f"or more{basis}; a weaker one could have gone unnoticed."
        )
    if tpr is not None and tpr.value is not None:
        sentences.append(
            f"It would likewise have noticed an attack that identifies {percent(tpr.value)} of the training texts or "
            "more while wrongly accusing 1 in 100 others."
        )
    return sentences


def too_few(panel: Panel) -> str:
    sizes = panel.size()
    if sizes is None:
        return "There are too few texts for an answer either way."
    return f"{plural(sizes[0], 'training text')} and {plural(sizes[1], 'other text')} allow no answer either way."


def unmeasured(panel: Panel) -> list[str]:
    """Why no attack has an AUC."""
    notes = dict.fromkeys(row.figures["auc"].note for row in panel.attacks if "auc" in row.figures)
    return [note for note in notes if note] or ["No attack that asks the model has an AUC in these results."]
