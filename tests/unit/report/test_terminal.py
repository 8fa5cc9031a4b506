"""The terminal summary: the page's verdict and figures within 80 columns."""

from __future__ import annotations

import io
import subprocess
import sys
from types import ModuleType
from typing import Any

from rich.console import Console

from leakmeter.report.terminal import print_summary
from leakmeter.report.verdict import summary


def printed(document: Any, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    print_summary(document, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_it_says_what_the_page_says(document: dict[str, Any]) -> None:
    shown = printed(document)
    words = " ".join(shown.split())
    judged = summary(document)
    assert words.startswith(judged.headline)
    for sentence in judged.sentences:
        assert " ".join(sentence.split()) in words
    assert f"Warning: {document['warnings'][0]}" in words


def test_every_row_is_one_line_of_at_most_80_columns(document: dict[str, Any]) -> None:
    lines = printed(document).splitlines()
    assert max(map(len, lines)) <= 80
    found = {(r["attack"], r["metric"]): r for r in document["results"] if not r["slice"]}
    for attack in {attack for attack, _ in found if attack}:
        auc = found[attack, "auc"]
        line = next(line for line in lines if line.startswith(f"{attack} "))
        assert f"{auc['value']:.3f} [{auc['low']:.3f}, {auc['high']:.3f}]" in line
    order = [line.split()[0] for line in lines if line[:1].isalpha()]
    assert order.index("lowercase") < order.index("never") < order.index("bag_of_words")


def test_what_cannot_be_measured_shows_its_note(sample: ModuleType) -> None:
    # H3
    results = sample.panel({"loss": 1.0}, {"length": 0.0}, 40)
    shown = printed({"results": [result.to_json() for result in results]})
    assert "– (1)" in shown
    assert "(1) A false-positive rate of 1% needs at least 100 non-members; there are 40." in " ".join(shown.split())


def test_words_of_results_are_not_read_as_markup(sample: ModuleType) -> None:
    results = [result.to_json() for result in sample.panel({"[red]loss": 1.0}, {"length": 0.0}, 40)]
    shown = printed({"results": results, "warnings": ["[bold]not bold[/bold]"]})
    assert "[red]loss" in shown
    assert "[bold]not bold[/bold]" in shown


def test_a_sweep_lists_its_settings(sample: ModuleType) -> None:
    shown = printed(sample.sweep(n=200))
    assert "models.target.epoch" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_it_needs_no_drawing_program() -> None:
    heavy = "{'matplotlib', 'torch', 'rich', 'sklearn'}"
    modules = "leakmeter.report.terminal, leakmeter.report.page, leakmeter.report.redact"
    program = f"import sys, {modules}; assert not {heavy} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", program], check=True)
