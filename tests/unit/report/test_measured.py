"""The report on what our own metrics measure: the names and notes of both sides agree."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from leakmeter.core.keys import generator
from leakmeter.core.registry import names
from leakmeter.core.result import Metric, Sample
from leakmeter.report.page import render
from leakmeter.report.verdict import summary


def measured(leak: float, difference: float, n: int = 150) -> dict[str, Any]:
    """The results of every registered metric on n members, n others and a population of n."""
    from leakmeter.core.registry import build

    draws = generator(5, "measured")
    member = np.arange(2 * n) < n
    samples = []
    for attack, shift, blind in (("loss", 0.6 * leak, False), ("ratio", leak, False), ("length", difference, True)):
        value = draws.normal(size=2 * n) + shift * member
        samples.append(
            Sample(attack, attack, blind, value, member, np.arange(2 * n), draws.normal(size=n), 2 * n + np.arange(n))
        )
    metrics = [build("metrics", name) for name in names("metrics")]
    results = [result for metric in metrics if isinstance(metric, Metric) for result in metric.measure(samples, 3)]
    plain = {"leakmeter": "0.1.0", "results": [result.to_json() for result in results], "warnings": []}
    return json.loads(json.dumps(plain, allow_nan=False))


@pytest.mark.parametrize(
    ("leak", "difference", "level"), [(2.0, 0.0, "leaks"), (0.0, 0.0, "no evidence"), (1.5, 2.0, "pools differ")]
)
def test_the_verdict_on_measured_results(leak: float, difference: float, level: str) -> None:
    document = measured(leak, difference)
    judged = summary(document)
    assert judged.level == level
    said = " ".join(judged.sentences)
    assert "the strongest of 2 attacks" in said
    assert "corrected for having tried 2 attacks" in said
    assert ("could have noticed" in said) == (level == "no evidence")  # H8
    assert ("control length, which never asked the model" in said) == (level == "pools differ")  # H4


def test_measured_results_fill_the_page() -> None:
    page = render(measured(2.0, 0.0))
    table = page[page.index('<h2 id="attacks">') : page.index("<details>")]
    for row in re.findall(r'<tr(?: class="strongest")?>\s*<th scope="row">.*?</tr>', table, flags=re.DOTALL):
        figures = re.findall(r'<span class="figure">(.*?)</span>', row)
        assert len(figures) == 6
        empty = 3 if "length" in row else 1  # blind rows have no net figure and no Holm p; 0.1 % needs 1,000 (H3)
        assert sum("–" in figure[:1] for figure in figures) == empty
    assert page.count('<svg role="img"') == 4
