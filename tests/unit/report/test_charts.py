"""Charts: curves keep their shape when thinned, colours follow the page, nothing is left of the drawing program."""

from __future__ import annotations

import re

import numpy as np

from leakmeter.core.keys import generator
from leakmeter.core.result import Result
from leakmeter.report.charts import INKS, Curve, histogram, roc, thinned


def curve(points: int) -> Curve:
    x = np.linspace(0, 1, points)
    return Curve("loss", "first", False, x.tolist(), np.sqrt(x).tolist())


def test_a_thinned_curve_has_the_same_area_and_the_same_ends() -> None:
    steps = generator(3, "steps").random((2, 20_000))
    x, y = np.sort(steps[0]), np.sort(np.sqrt(steps[1]))
    few_x, few_y = thinned([0, *x, 1], [0, *y, 1])
    assert len(few_x) <= 215
    assert abs(np.trapezoid(few_y, few_x) - np.trapezoid(y, x)) < 2e-3
    assert (few_x[0], few_y[0], few_x[-1], few_y[-1]) == (0, 0, 1, 1)
    assert (few_x < 1e-3).sum() > 10  # the part that only a logarithmic axis shows


def test_a_short_curve_is_left_as_it_is() -> None:
    x, y = thinned([0, 0.5, 1], [0, 0.7, 1])
    assert x.tolist() == [0, 0.5, 1]
    assert y.tolist() == [0, 0.7, 1]


def test_colours_are_those_of_the_page_and_text_is_text() -> None:
    svg = roc([curve(50)], logarithmic=True, title="a < b")
    assert "var(--first)" in svg
    assert "var(--ink)" in svg
    assert not any(placeholder in svg for placeholder in INKS.values())
    assert "<title>a &lt; b</title>" in svg
    assert ">10%</text>" in svg
    assert "font-family" not in svg
    assert "matplotlib" not in svg.lower()
    assert not re.search(r"\d\.\d{3}", re.sub(r">[^<]*<", "><", svg))


def test_logarithmic_axes_begin_where_the_data_begin_to_tell() -> None:
    assert ">0.1%</text>" in roc([curve(500)], logarithmic=True, title="t")
    assert ">0.1%</text>" not in roc([curve(50)], logarithmic=True, title="t")


def test_a_histogram_marks_thresholds_inside_its_range_only() -> None:
    shape = Result(
        "loss", "loss", "histogram", None, series={"edges": [0, 1, 2], "member": [1, 3], "nonmember": [2, 2]}
    )
    svg = histogram(shape, {"10 % FPR": 1.5, "1 % FPR": 9.0}, "t")
    assert "10 % FPR" in svg
    assert "1 % FPR" not in svg.replace("10 % FPR", "")
    assert "var(--population)" not in svg


def test_the_readers_own_matplotlib_settings_change_nothing() -> None:
    import matplotlib as mpl

    usual = roc([curve(50)], logarithmic=False, title="t")
    with mpl.rc_context({"axes.facecolor": "red", "font.size": 30, "svg.fonttype": "path"}):
        assert roc([curve(50)], logarithmic=False, title="t") == usual
        assert mpl.rcParams["font.size"] == 30
