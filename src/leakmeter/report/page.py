"""The page: one HTML file from the content of a results.json, without script and without anything from outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from leakmeter.core.result import Result
from leakmeter.report import charts, figures, tables, verdict
from leakmeter.report.charts import Curve
from leakmeter.report.figures import Panel, Row
from leakmeter.report.tables import Table
from leakmeter.report.verdict import Verdict
from leakmeter.report.wording import cases, named, number, percent, to

_STRONG_INKS = ("first", "second", "third")


@dataclass(frozen=True, slots=True)
class KeyFigure:
    """A number large enough to be read first, and what it says."""

    name: str
    value: str
    interval: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing, what it shows, and which line is which."""

    svg: Markup
    caption: str


@dataclass(frozen=True, slots=True)
class Section:
    """A slice or a sweep: its tables and, where its values have an order, a chart."""

    title: str
    table: Table
    chart: Chart | None = None
    legend: Sequence[Curve] = ()
    matrix: Table | None = None


def render(document: Mapping[str, Any]) -> str:
    """The report as one HTML file."""
    results = figures.read(document)
    found = figures.panels(results)
    judged = verdict.verdict(results)
    every_setting = figures.overall(found)
    panel = next((p for p in every_setting if figures.names(p.setting) == figures.names(judged.setting)), None)
    strongest = panel.row(judged.attack, judged.signal) if panel else None
    curves = _curves(panel, strongest) if panel else []
    environment = dict(document.get("environment") or {})
    about = environment.pop("attacks", None)
    page: str = _template().render(
        version=document.get("leakmeter", ""),
        verdict=judged,
        warnings=list(document.get("warnings") or ()),
        key_figures=_key_figures(panel, strongest),
        attacks=tables.attacks(panel, (judged.attack, judged.signal)) if panel else None,
        figures=tables.every_figure(strongest, f"Every figure of {strongest.label}.") if strongest else None,
        roc=_roc(curves),
        curves=curves,
        histograms=_histograms(panel, strongest) if panel else [],
        slices=_slices(found, judged, strongest, panel),
        sweep=_sweep(every_setting, strongest),
        other_settings=_other_settings(every_setting, judged),
        methods=_methods(panel, about) if panel else [],
        environment=environment,
    )
    return page.lstrip()  # what macros leave before the first tag


def _template() -> Any:
    folder = files("leakmeter.report") / "templates"
    environment = Environment(
        loader=FunctionLoader(lambda name: (folder / name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Ours, and free of anything from results: the one thing besides charts that is not escaped.
    environment.globals["style"] = Markup((folder / "style.css").read_text(encoding="utf-8"))
    return environment.get_template("page.html.j2")


def _key_figures(panel: Panel | None, row: Row | None) -> list[KeyFigure]:
    if panel is None or row is None:
        return []
    shown = []
    if auc := row.judged():
        said, _ = cases(auc, figures.CHANCE)
        shown.append(_key("AUC", auc, f"{row.label} picks the training text out of two in {said} of 100 cases"))
    if net := row.measured("net_auc"):
        meaning = "what asking the model adds to the best row that never asked it"
        shown.append(_key("AUC, net", net, meaning, "+" if (net.value or 0) > 0 else ""))
    if caught := row.measured("tpr@1%") or row.measured("tpr@10%"):
        interval = "" if caught.low is None else to(percent(caught.low, ""), percent(caught.high))
        at = tables.nominal(caught.metric.removeprefix("tpr@"))
        meaning = f"of the training texts, the threshold being set for {at} false accusations"
        shown.append(KeyFigure("Identified", percent(caught.value), interval, meaning))
    reach = panel.whole.get("detectable_auc")
    if reach is not None and reach.value is not None:
        meaning = "the smallest leak this run had the power to notice"
        shown.append(KeyFigure("Could have seen", f"AUC {number(reach.value)}", "", meaning))
    return shown


def _key(name: str, result: Result, meaning: str, plus: str = "") -> KeyFigure:
    interval = "" if result.low is None else f"{number(result.low)} to {number(result.high)}"
    return KeyFigure(name, plus + number(result.value), interval, meaning)


def _curves(panel: Panel, strongest: Row | None) -> list[Curve]:
    """A ROC curve for every signal: the best three and the best control stand out, the others stay behind."""
    best = [row for row in panel.attacks if row.measured("auc")]
    if strongest in best:
        best = [strongest, *(row for row in best if row is not strongest)]
    inks = {id(row): ink for row, ink in zip(best, _STRONG_INKS, strict=False)}
    control = panel.best_control
    inks |= {id(control): "control"} if control else {}
    curves = []
    for row in [*best, *panel.controls]:
        series = row.figures["auc"].series if "auc" in row.figures else {}
        if series.get("fpr") and series.get("tpr"):
            curves.append(Curve(row.label, inks.get(id(row), "other"), row.blind, series["fpr"], series["tpr"]))
    return curves


def _roc(curves: Sequence[Curve]) -> list[Chart]:
    if not curves:
        return []
    plain = "ROC curves: training texts identified against other texts wrongly accused"
    fine = "The same with logarithmic axes: what happens at few false accusations"
    return [
        Chart(Markup(charts.roc(curves, False, plain)), f"{plain}."),
        Chart(Markup(charts.roc(curves, True, fine)), f"{fine}."),
    ]


def _histograms(panel: Panel, strongest: Row | None) -> list[Chart]:
    """The scores of the strongest attack and of the plain loss."""
    rows = [strongest, *(row for row in panel.attacks if row.attack == "loss" and row is not strongest)]
    shown = []
    for row in rows:
        shape = row.shape() if row else None
        if row is None or shape is None:
            continue
        title = f"Scores of {row.label}"
        thresholds = {
            f"{tables.nominal(alpha)} FPR": at.value
            for alpha in tables.RATES
            if (at := row.measured(f"threshold@{alpha}")) and at.value is not None
        }
        shown.append(
            Chart(
                Markup(charts.histogram(shape, thresholds, title)),
                f"{title}. The bins at the ends hold what lies beyond.",
            )
        )
    return shown


def _slices(found: Sequence[Panel], judged: Verdict, strongest: Row | None, panel: Panel | None) -> list[Section]:
    if strongest is None or panel is None:
        return []
    sections = []
    for name, members in tables.dimensions(found, judged.setting).items():
        caption = f"{strongest.label} by {name}. The signal is the one chosen on everything, not anew for each row."
        curves, chart = _along(name, members, [tables.value_of(p.slice) for p in members], strongest)
        everything = tables.matrix(members, panel.rows, f"AUC of every signal by {name}.")
        sections.append(Section(f"By {name}", tables.by_slice(members, strongest, caption), chart, curves, everything))
    return sections


def _along(name: str, members: Sequence[Panel], values: Sequence[str], row: Row) -> tuple[list[Curve], Chart | None]:
    """AUC along ordered values: the strongest attack, the loss, and the control farthest from chance on average."""
    labels = {(r.attack, r.signal): r for panel in members for r in panel.rows}
    loss = next((r for key, r in labels.items() if key[0] == "loss" and key != (row.attack, row.signal)), None)
    controls = [r for r in labels.values() if r.blind]
    control = max(controls, key=lambda r: sum(_distance(p, r) for p in members), default=None)
    curves = []
    for wanted, ink in ((row, "first"), (loss, "second"), (control, "control")):
        if wanted is None:
            continue
        there = [(x, p.row(wanted.attack, wanted.signal)) for x, p in enumerate(members)]
        points = [(x, auc) for x, r in there if r and (auc := r.measured("auc")) and auc.low is not None]
        if points:
            x, aucs = zip(*points, strict=True)
            bounds = [[a.value for a in aucs], [a.low for a in aucs], [a.high for a in aucs]]
            curves.append(Curve(wanted.label, ink, wanted.blind, x, *bounds))
    if len(values) < 2 or not curves or not figures.numeric(values):
        return [], None
    title = f"AUC with its interval by {name}"
    return curves, Chart(Markup(charts.along(values, curves, name, title)), f"{title}.")


def _distance(panel: Panel, row: Row) -> float:
    there = panel.row(row.attack, row.signal)
    return abs(there.auc - figures.CHANCE) if there and there.measured("auc") else 0.0


def _sweep(settings: Sequence[Panel], strongest: Row | None) -> Section | None:
    if len(settings) < 2:
        return None
    table = tables.by_setting(settings, "The strongest attack of each setting, chosen anew for each row.")
    paths = table.names
    if len(paths) != 1 or strongest is None:
        return Section("By setting", table)
    order = figures.ordered(str(panel.setting.get(paths[0], "")) for panel in settings)
    along = sorted(settings, key=lambda panel: order.index(str(panel.setting.get(paths[0], ""))))
    curves, chart = _along(paths[0], along, order, strongest)
    return Section("By setting", table, chart, curves)


def _other_settings(settings: Sequence[Panel], judged: Verdict) -> list[tuple[str, Table]]:
    """The full tables of the settings that the verdict's figures are not about."""
    shown = []
    for panel in settings:
        if figures.names(panel.setting) != figures.names(judged.setting):
            own = verdict.of_panel(panel)
            shown.append((named(panel.setting), tables.attacks(panel, (own.attack, own.signal))))
    return shown


def _methods(panel: Panel, about: object) -> list[tuple[str, str, bool]]:
    """What each attack does, in its own words, where the run recorded them."""
    known = about if isinstance(about, Mapping) else {}
    attacks = dict.fromkeys((row.attack, row.blind) for row in [*panel.attacks, *panel.controls])
    return [(name, str(known.get(name, known.get(name.partition("(")[0], ""))), blind) for name, blind in attacks]
