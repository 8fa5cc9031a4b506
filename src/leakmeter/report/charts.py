"""Charts as inline SVG: small, without script, and coloured by the page's style so that they read in light and dark.

matplotlib draws with placeholder colours, each of which becomes a CSS variable of the page. Text stays text. Nothing
random or dated is left in the SVG, so the same results give the same bytes.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from leakmeter.core.keys import short
from leakmeter.core.result import Floats, Result

INKS = {
    "ink": "#000001",
    "faint": "#000002",
    "chance": "#000003",
    "first": "#000004",
    "second": "#000005",
    "third": "#000006",
    "other": "#000007",
    "control": "#000008",
    "member": "#000009",
    "nonmember": "#00000a",
    "population": "#00000b",
}
"""A name of a colour in the page's style → the placeholder matplotlib draws with."""

_LOOK: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "leakmeter",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INKS["faint"],
    "axes.labelcolor": INKS["ink"],
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": INKS["faint"],
    "grid.linewidth": 0.6,
    "text.color": INKS["ink"],
    "xtick.color": INKS["ink"],
    "ytick.color": INKS["ink"],
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "path.simplify_threshold": 0.3,
    "lines.solid_joinstyle": "round",
    "text.parse_math": False,
}
_SIZE = (5.0, 3.7)
_POINTS = 70
"""Of a curve, how many points per scale are kept: more cannot be seen at this size."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A line of a chart and how it stands out."""

    label: str
    ink: str
    dashed: bool
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()

    @property
    def strong(self) -> bool:
        return self.ink != "other"


def roc(curves: Sequence[Curve], logarithmic: bool, title: str) -> str:
    """True against false positives, all signals in one chart; the strong ones on top."""
    with _canvas() as (figure, axes):
        floor = _floor(curves) if logarithmic else 0.0
        ends = np.array([max(floor, 1e-9), 1.0])
        axes.plot(ends if logarithmic else [0, 1], ends if logarithmic else [0, 1], color=INKS["chance"], lw=1, ls=":")
        for curve in sorted(curves, key=lambda c: c.strong):
            x, y = thinned(curve.x, curve.y)
            axes.plot(
                np.maximum(x, floor),
                np.maximum(y, floor),
                color=INKS[curve.ink],
                lw=1.9 if curve.strong else 0.9,
                ls=(0, (4, 2)) if curve.dashed else "-",
            )
        if logarithmic:
            axes.set(xscale="log", yscale="log", xlim=(floor, 1), ylim=(floor, 1.05))
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter(lambda value, _: f"{100 * value:.6f}".rstrip("0").rstrip(".") + "%")
                axis.set_minor_formatter(lambda *_: "")
        else:
            axes.set(xlim=(0, 1), ylim=(0, 1.01))
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
        axes.set_xlabel("other texts wrongly accused")
        axes.set_ylabel("training texts identified")
        return _svg(figure, title)


def histogram(shape: Result, thresholds: Mapping[str, float], title: str) -> str:
    """The scores of members and non-members as shares of each, with the thresholds set on the population."""
    edges = np.asarray(shape.series["edges"], dtype=float)
    with _canvas() as (figure, axes):
        for name, filled in (("nonmember", True), ("member", True), ("population", False)):
            counts = np.asarray(shape.series.get(name, ()), dtype=float)
            if not counts.sum():
                continue
            shares = 100 * counts / counts.sum()
            if filled:
                axes.stairs(shares, edges, fill=True, color=INKS[name], alpha=0.35, lw=0)
            axes.stairs(shares, edges, color=INKS[name], lw=1.4, ls="-" if filled else (0, (2, 2)))
        top = axes.get_ylim()[1]
        for place, (name, at) in enumerate(thresholds.items()):
            if edges[0] <= at <= edges[-1]:
                axes.axvline(at, color=INKS["ink"], lw=0.9, ls=(0, (5, 2)))
                axes.text(at, top * (1.01 + 0.06 * (place % 2)), name, ha="center", va="bottom", fontsize=8)
        axes.set_ylim(0, top)
        axes.set_xlabel("score (higher: looks more like a training text)")
        axes.set_ylabel("share of each set, %")
        return _svg(figure, title)


def along(values: Sequence[str], curves: Sequence[Curve], name: str, title: str) -> str:
    """AUC with its interval along the values of a slice or a setting; x counts the values."""
    with _canvas() as (figure, axes):
        axes.axhline(0.5, color=INKS["chance"], lw=1, ls=":")
        for place, curve in enumerate(curves):
            x = np.asarray(curve.x, dtype=float) + 0.07 * (place - (len(curves) - 1) / 2)
            y = np.asarray(curve.y, dtype=float)
            reach = [y - np.asarray(curve.low, dtype=float), np.asarray(curve.high, dtype=float) - y]
            style = {"color": INKS[curve.ink], "ls": (0, (4, 2)) if curve.dashed else "-", "lw": 1.5}
            axes.errorbar(x, y, yerr=np.maximum(reach, 0), marker="o", ms=4, elinewidth=1.3, capsize=2.5, **style)
        axes.set_xticks(range(len(values)), [value if len(value) <= 14 else value[:13] + "…" for value in values])
        axes.set_xlim(-0.5, len(values) - 0.5)
        axes.set_xlabel(name)
        axes.set_ylabel("AUC")
        return _svg(figure, title)


def thinned(x: Sequence[float], y: Sequence[float]) -> tuple[Floats, Floats]:
    """A curve of few points, chosen evenly along both axes and along the logarithm of x; the ends stay."""
    across, up = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if len(across) <= 3 * _POINTS:
        return across, up
    even, fine = np.linspace(0, 1, _POINTS), np.logspace(-5, 0, _POINTS)
    found = [np.searchsorted(across, even), np.searchsorted(across, fine), np.searchsorted(up, even)]
    last = len(across) - 1
    kept = np.unique(np.clip(np.concatenate([*found, [0, last]]), 0, last))
    return across[kept], up[kept]


def _floor(curves: Sequence[Curve]) -> float:
    """Where logarithmic axes begin: the decade below the smallest rate that the data can show."""
    smallest = min((value for curve in curves for value in curve.x if value > 0), default=0.01)
    return float(np.clip(10.0 ** np.floor(np.log10(smallest)), 1e-6, 0.1))


@contextmanager
def _canvas() -> Iterator[tuple[Any, Any]]:
    """A figure with one pair of axes, drawn with our look whatever the reader's matplotlibrc says."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_LOOK)
        figure = Figure(figsize=_SIZE, layout="constrained")
        axes = figure.add_subplot()
        figure.patch.set_visible(False)
        axes.patch.set_visible(False)
        yield figure, axes


def _svg(figure: Any, title: str) -> str:
    """The figure as an element to put into a page: named, scalable, its colours those of the page."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    body = file.getvalue()
    box = re.search(r'viewBox="([^"]+)"', body)
    inner = body[body.index(">", body.index("<svg")) + 1 : body.rindex("</svg>")]
    inner = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", inner, flags=re.DOTALL)
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', inner))
    prefix = "c" + short(title, str(box))[:8]
    # Only tags are rewritten: what stands between them are words and numbers of the results.
    inner = re.sub(r"<[^>]*>", lambda tag: _tidied(tag[0], used, prefix), inner)
    inner = re.sub(r">\s*\n\s*<", "><", inner).replace("<g></g>", "").replace("<defs></defs>", "").strip()
    return f'<svg role="img" viewBox="{box[1] if box else ""}"><title>{escape(title)}</title>{inner}</svg>'


def _tidied(tag: str, used: set[str], prefix: str) -> str:
    """One tag with page colours and the page's font, short numbers, and ids that no other chart of the page has."""
    tag = tag.replace("xlink:href", "href").replace("\n", " ")
    tag = re.sub(r' id="([^"]+)"', lambda m: f' id="{prefix}-{m[1]}"' if m[1] in used else "", tag)
    tag = re.sub(r'(href="|url\()#', rf"\1#{prefix}-", tag)
    tag = re.sub(r"font-family: [^;\"]*;? ?", "", tag)
    tag = re.sub(r"-?\d+\.\d{2,}", lambda m: f"{float(m[0]):.1f}".removesuffix(".0"), tag)
    tag = re.sub(r' transform="rotate\(-?0 [^"]*"', "", tag)
    for name, placeholder in INKS.items():
        tag = tag.replace(placeholder, f"var(--{name})")
    return tag
