"""A made-up results.json: scores drawn with a seed, turned into results as a run would have them.

Its intervals are the simple large-sample ones, since the report shows intervals and does not make them.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import NormalDist
from typing import Any

import numpy as np

from leakmeter.core.keys import generator
from leakmeter.core.result import Floats, Result

LEAK = {
    "calibrated": 1.75, "ratio": 1.6, "windows": 1.35, "error_shift": 1.2, "min_k_plus": 0.95, "min_k": 0.8,
    "min_k(k=0.1)": 0.75, "loss": 0.7, "zlib": 0.66, "lowercase": 0.45,
}  # fmt: skip
"""Attack → how far members' scores lie above the others', in standard deviations."""

ABOUT = {
    "calibrated": "The target's log-probability minus what the reference's predicts for it.",
    "ratio": "Log-probability under the target minus log-probability under the reference, per token.",
    "windows": "Share of token windows in which the target is surer than the reference (WBC).",
    "error_shift": "Upward against downward shifts from the reference where the target guesses wrong (EZ-MIA).",
    "min_k_plus": "Min-K % over log-probabilities standardised over the vocabulary (Min-K %++).",
    "min_k": "Mean log-probability of the least likely tokens (Min-K %).",
    "loss": "The target's mean log-probability per token (loss, with its sign turned).",
    "zlib": "Log-probability relative to how well zlib compresses the text.",
    "lowercase": "How much likelier the text is than the same text in lower case.",
    "bag_of_words": "A classifier on which words occur, fitted on other records; asks no model.",
    "length": "How long the text is; asks no model.",
    "zlib_alone": "How well zlib compresses the text; asks no model.",
    "reference_alone": "The reference's mean log-probability; never asks the target.",
}

BLIND = {"bag_of_words": 0.06, "length": 0.02, "zlib_alone": 0.0, "reference_alone": -0.03}

RATES = ("10%", "1%", "0.1%")

ENVIRONMENT: dict[str, Any] = {
    "attacks": ABOUT,
    "models": {
        "target": {
            "type": "causal",
            "folder": "models/mail-small/epoch-3",
            "sha256": {"model.safetensors": "9f2c" * 16, "config.json": "07ab" * 16},
            "precision": "float32",
            "device": "cpu",
        },
        "reference": {"type": "causal", "sha256": {"model.safetensors": "41d8" * 16}, "precision": "float32"},
    },
    "versions": {"python": "3.11.9", "torch": "2.13.0", "transformers": "5.1.0", "leakmeter": "0.1.0"},
    "seed": 7,
    "seconds": {"training": 61.2, "answering": 38.4, "judging": 0.9, "measuring": 2.1},
    "questions": 12800,
}


def document(shift: Mapping[str, float] = LEAK, blind: Mapping[str, float] = BLIND, n: int = 800) -> dict[str, Any]:
    """A whole document: over everything, by pool, by number of repeats."""
    results = panel(shift, blind, n)
    for pool, extra in (("mail", 0.0), ("wiki", 0.9)):
        moved = {name: by + extra for name, by in blind.items()}
        results += panel(shift, moved, n // 2, slice={"pool": pool})
    for repeats, factor in (("16", 1.5), ("1", 0.35), ("2", 0.55), ("4", 0.85), ("8", 1.2)):
        stronger = {name: by * factor for name, by in shift.items()}
        results += panel(stronger, blind, n // 5, slice={"repeats": repeats})
    warnings = [
        "3 non-members share more than half of their 8-word sequences with a member; they count as near copies."
    ]
    return {
        "leakmeter": "0.1.0",
        "results": [result.to_json() for result in results],
        "warnings": warnings,
        "environment": ENVIRONMENT,
    }


def sweep(n: int = 400) -> dict[str, Any]:
    """A document of a sweep over training epochs: nothing at first, then more and more."""
    results = []
    for epoch in range(4):
        shift = {name: by * epoch / 3 for name, by in LEAK.items()}
        results += panel(shift, BLIND, n, setting={"models.target.epoch": epoch})
    return {
        "leakmeter": "0.1.0",
        "results": [result.to_json() for result in results],
        "warnings": [],
        "environment": ENVIRONMENT,
    }


def panel(shift: Mapping[str, float], blind: Mapping[str, float], n: int, **where: Any) -> list[Result]:
    """All results of one slice with n members and n others."""
    draws = generator(11, repr(sorted(where.items())))
    member, other, population = (drawn - drawn.mean() for drawn in draws.normal(size=(3, n)))
    results: list[Result] = []
    best, named = max(
        (0.5 + abs(NormalDist().cdf(by / 2**0.5) - 0.5), name) for name, by in (blind or {"": 0.0}).items()
    )
    tried = len(shift)
    for name, by in [*shift.items(), *blind.items()]:
        own = draws.normal(size=(3, n)) * 0.6
        sets = [0.8 * member + own[0] + by, 0.8 * other + own[1], 0.8 * population + own[2]]
        about: dict[str, Any] = {"attack": name, "signal": name.partition("(")[0], "blind": name in blind, **where}
        auc, error = _auc(sets[0], sets[1])
        fpr, tpr = _roc(sets[0], sets[1])
        results.append(
            Result(**about, metric="auc", value=auc, low=max(auc - 1.96 * error, 0), high=min(auc + 1.96 * error, 1),
                   n=2 * n, series={"fpr": fpr, "tpr": tpr})
        )  # fmt: skip
        wide = NormalDist().inv_cdf(1 - 0.025 / tried) * error
        p = 2 * (1 - NormalDist().cdf(abs(auc - 0.5) / error))
        results.append(Result(**about, metric="p", value=p, n=2 * n))
        if name not in blind:
            note = f"over {tried} signals"
            family: dict[str, Any] = {
                "low": max(auc - wide, 0.0),
                "high": min(auc + wide, 1.0),
                "n": 2 * n,
                "note": note,
            }
            results.append(Result(**about, metric="p_holm", value=min(1.0, p * tried), n=2 * n, note=note))
            results.append(Result(**about, metric="auc_simultaneous", value=auc, **family))
        if name not in blind and blind:
            net = auc - best
            results.append(
                Result(**about, metric="net_auc", value=net, low=net - 2.2 * error, high=net + 2.2 * error, n=2 * n,
                       note=f"against {named}/{named}, which never asked the target")
            )  # fmt: skip
        for alpha in RATES:
            results += _rates(sets, alpha, about)
        edges = np.linspace(min(map(np.min, sets)), max(map(np.max, sets)), 41)
        counts = [np.histogram(values, edges)[0].tolist() for values in sets]
        series = {"edges": edges.tolist(), **dict(zip(("member", "nonmember", "population"), counts, strict=True))}
        results.append(Result(**about, metric="histogram", value=None, n=3 * n, series=series))
    if blind:
        strength = max(
            0.5 + abs(r.value - 0.5) for r in results if r.blind and r.metric == "auc" and r.value is not None
        )
        reach = 2.5 * (1 / (6 * n)) ** 0.5
        results.append(
            Result(
                "",
                "",
                "pools_differ",
                strength,
                strength - reach,
                min(strength + reach, 1.0),
                2 * n,
                blind=True,
                **where,
            )
        )
    spread = 2.8 * (1 / (6 * n)) ** 0.5
    basis = f"with 80 % power over {tried} signals; the pools are worth {n} independent members and {n} non-members"
    results.append(Result("", "", "detectable_auc", min(0.5 + spread, 1.0), n=2 * n, note=basis, **where))
    results.append(Result("", "", "detectable_tpr@1%", min(0.01 + 2.8 * (0.01 / n) ** 0.5, 1.0), n=n, **where))
    return results


def _auc(member: Floats, other: Floats) -> tuple[float, float]:
    above = np.searchsorted(np.sort(other), member) / len(other)
    below = 1 - np.searchsorted(np.sort(member), other) / len(member)
    variance = above.var() / len(member) + below.var() / len(other)
    return float(above.mean()), max(float(variance**0.5), 0.1 / len(member))


def _roc(member: Floats, other: Floats) -> tuple[list[float], list[float]]:
    at = np.sort(np.concatenate([member, other]))[::-1]
    fpr = 1 - np.searchsorted(np.sort(other), at) / len(other)
    tpr = 1 - np.searchsorted(np.sort(member), at) / len(member)
    return [0.0, *fpr.tolist()], [0.0, *tpr.tolist()]


def _rates(sets: list[Floats], alpha: str, about: Mapping[str, Any]) -> list[Result]:
    member, other, population = sets
    level = float(alpha.rstrip("%")) / 100
    if level < 1 / len(other):
        note = (
            f"A false-positive rate of {alpha} needs at least {round(1 / level):,} non-members; there are {len(other)}."
        )
        return [Result(**about, metric=f"{name}@{alpha}", value=None, note=note) for name in ("tpr", "fpr")]
    threshold = float(np.quantile(population, 1 - level))
    results = [Result(**about, metric=f"threshold@{alpha}", value=threshold)]
    for name, values in (("tpr", member), ("fpr", other)):
        share = float((values > threshold).mean())
        reach = 1.96 * (share * (1 - share) / len(values)) ** 0.5 + 1 / len(values)
        low, high = max(share - reach, 0.0), min(share + reach, 1.0)
        results.append(Result(**about, metric=f"{name}@{alpha}", value=share, low=low, high=high, n=len(values)))
    caught, accused = (result.value or 0 for result in results[1:])
    results.append(
        Result(**about, metric=f"precision@{alpha}", value=caught / max(caught + accused, 1e-9), n=len(other))
    )
    return results
