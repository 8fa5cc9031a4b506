"""The page: complete, self-contained, escaped, the same every time."""

from __future__ import annotations

import copy
import html
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from types import ModuleType
from typing import Any

import pytest

from leakmeter.report.page import render
from leakmeter.report.verdict import summary

VOID = {"meta", "line", "path", "use", "br", "hr", "img", "input", "link", "circle", "rect"}


class Read(HTMLParser):
    """What a browser would find: elements with their attributes, and whether all were closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def visible(page: str) -> str:
    """The words of a page, without tags and style."""
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body)))


def test_the_verdict_comes_before_everything_else(page: str, document: dict[str, Any]) -> None:
    judged = summary(document)
    words = visible(page)
    places = [words.index(" ".join(part.split())) for part in (judged.headline, *judged.sentences)]
    assert places == sorted(places)
    headings = re.findall(r"<h[12] [^>]*>(.*?)</h[12]>", page)
    assert headings[0] == judged.headline
    assert headings[1] == "Warning"
    assert headings[2:5] == ["Attacks", "Trade-off between finding and accusing", "Scores"]
    assert headings[-4:] == ["How to read this", "What this report does not show", "Method", "Environment"]


def test_every_figure_of_the_attack_table_is_the_one_in_the_results(page: str, document: dict[str, Any]) -> None:
    table = page[page.index('<h2 id="attacks">') : page.index("<details>")]
    rows = {visible(row).split()[0]: visible(row) for row in re.findall(r"<tr.*?</tr>", table, flags=re.DOTALL)}
    checked = 0
    for result in document["results"]:
        if result["slice"] or not result["attack"] or result["metric"] not in ("auc", "net_auc"):
            continue
        row = rows[result["attack"]]
        for number in (result["value"], result["low"], result["high"]):
            assert f"{number:.3f}".replace("-", "−") in row
            checked += 1
    assert checked == 3 * (14 + 10)


def test_rates_stand_beside_what_was_achieved(page: str, document: dict[str, Any]) -> None:
    # H2
    found = {(r["attack"], r["metric"]): r for r in document["results"] if not r["slice"]}
    accused = found["loss", "fpr@10%"]["value"]
    row = next(row for row in re.findall(r"<tr.*?</tr>", page, flags=re.DOTALL) if ">loss<" in row)
    assert f"FPR {100 * accused:.1f}" in visible(row)


def test_what_cannot_be_measured_shows_its_note_instead_of_a_number(page: str) -> None:
    # H3
    assert "A false-positive rate of 0.1% needs at least 1,000 non-members; there are 800." in visible(page)


def test_attacks_are_sorted_and_controls_stand_apart(page: str) -> None:
    table = page[page.index('<h2 id="attacks">') : page.index("<details>")]
    asked, controls = table.split('<tbody class="blind">')
    for part in (asked, controls):
        aucs = [float(auc) for auc in re.findall(r'</svg></td>\s*<td><span class="figure">(0\.\d{3})<', part)]
        assert len(aucs) == (10 if part is asked else 4)
        assert aucs == sorted(aucs, reverse=True)
    assert "Never asked the model" in controls
    assert "bag_of_words" in controls
    assert "bag_of_words" not in visible(asked)


def test_slices_are_in_their_natural_order_and_drawn_only_where_they_have_one(page: str) -> None:
    repeats = page[page.index(">By repeats</h2>") :]
    assert re.findall(r'<th scope="row">(\d+)</th>', repeats)[:5] == ["1", "2", "4", "8", "16"]
    assert "AUC with its interval by repeats" in page
    assert "AUC with its interval by pool" not in page


def test_a_sweep_has_a_column_for_each_swept_path(sample: ModuleType) -> None:
    page = render(sample.sweep(n=60))
    section = page[page.index(">By setting</h2>") : page.index(">Attacks</h2>")]
    assert '<th scope="col" class="name">models.target.epoch</th>' in section
    assert re.findall(r'<td class="name">(.*?)</td>', section) == ["0", "1", "2", "3"]
    assert page.count("The same table for models.target.epoch =") == 3


def test_the_page_needs_nothing_from_outside_and_runs_nothing(page: str) -> None:
    assert page.startswith("<!doctype html>")
    read = Read(page)
    assert read.open == []
    policy = next(meta for meta in read.all("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    assert policy["content"] == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form"} & {
        tag for tag, _ in read.elements
    }
    assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)|javascript:", page)
    assert not [name for _, attributes in read.elements for name in attributes if name.startswith("on")]
    links = [a["href"] for _, a in read.elements if "href" in a]
    assert links
    assert all(link.startswith("#") for link in links)


def test_ids_are_unique_and_references_lead_somewhere(page: str) -> None:
    ids = re.findall(r'\sid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    referred = re.findall(r'(?:href="#|url\(#|aria-labelledby=")([^")]+)', page)
    assert set(referred) <= set(ids)


def test_tables_and_charts_say_what_they_are(page: str) -> None:
    read = Read(page)
    assert page.count("<table>") == page.count("<caption>") > 4
    assert all(cell.get("scope") for cell in read.all("th"))
    charts = [svg for svg in read.all("svg") if svg.get("role") == "img"]
    assert len(charts) == len(re.findall(r'<svg role="img" viewBox="[^"]+"><title>[^<]+</title>', page)) == 5
    assert all(svg.get("aria-hidden") == "true" for svg in read.all("svg") if svg not in charts)


def test_the_page_is_small(page: str) -> None:
    assert len(page.encode()) < 400_000


HOSTILE = '<script>alert("1")</script>'


@pytest.mark.parametrize("place", ["attack", "signal", "slice", "setting", "note", "warning", "environment", "version"])
def test_whatever_results_say_is_shown_and_never_obeyed(place: str, sample: ModuleType) -> None:
    document = {"leakmeter": "0.1.0", "results": [], "warnings": [], "environment": {}}
    shift, blind = {"loss": 2.0, "ratio": 0.1}, {"length": 0.0}
    parts = sample.panel(shift, blind, 40) + sample.panel(shift, blind, 40, slice={"pool": "a"})
    if place == "setting":
        parts += sample.panel(shift, blind, 40, setting={HOSTILE: HOSTILE})
    document["results"] = copy.deepcopy([part.to_json() for part in parts])
    for result in document["results"]:
        if place in ("attack", "signal", "note") and result["attack"] in ("loss", "length"):
            result[place] = HOSTILE + (result["metric"] if place == "note" else result["attack"])
        if place == "slice" and result["slice"]:
            result["slice"] = {HOSTILE: HOSTILE}
    if place == "signal":  # a second signal of the attack, so that signals are named
        document["results"] += [{**r, "signal": "second"} for r in document["results"] if r["attack"] == "loss"]
    document |= {"warnings": [HOSTILE]} if place == "warning" else {}
    document |= {"environment": {HOSTILE: [HOSTILE], "attacks": {"loss": HOSTILE}}} if place == "environment" else {}
    document |= {"leakmeter": HOSTILE} if place == "version" else {}
    page = render(document)
    assert HOSTILE in visible(page)
    assert "<script" not in page.lower()
    assert not Read(page).all("script")


def test_slice_values_inside_a_chart_are_kept_as_they_are(sample: ModuleType) -> None:
    parts = []
    for value in ("0.0625", "0.125"):
        parts += sample.panel({"loss": 1.0}, {"length": 0.0}, 60, slice={'rate $x$ id="y" #000001': value})
    page = render({"results": [part.to_json() for part in parts]})
    chart = re.findall(r"<svg role=.*?</svg>", page, flags=re.DOTALL)[-1]
    assert ">0.0625</text>" in chart
    assert ">0.125</text>" in chart
    assert 'rate $x$ id="y" #000001' in html.unescape(chart)


def test_the_same_results_give_the_same_bytes_in_any_process(sample: ModuleType) -> None:
    document = {"results": [part.to_json() for part in sample.panel({"loss": 1.0}, {"length": 0.0}, 60)]}
    here = render(document)
    assert render(copy.deepcopy(document)) == here
    program = (
        "import json, sys; from leakmeter.report.page import render; sys.stdout.write(render(json.load(sys.stdin)))"
    )
    there = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(document),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "123", "PYTHONIOENCODING": "utf-8"},
    )
    assert there.stdout == here


def test_results_without_curves_or_histograms_still_make_a_page(told: Any) -> None:
    told.row("ratio", (0.9, 0.88, 0.92), net_auc=(0.3, 0.2, 0.4)).row("length", (0.52, 0.47, 0.57), blind=True)
    page = render(told.document())
    assert "The model gives away" in page
    assert '<svg role="img"' not in page


def test_an_empty_run_makes_a_page_that_says_so() -> None:
    assert "Nothing was measured." in visible(render({"results": []}))


def test_methods_come_from_the_environment_and_are_not_shown_twice(page: str, sample: ModuleType) -> None:
    words = visible(page)
    assert words.count(sample.ABOUT["length"]) == 1
    assert words.count(sample.ABOUT["min_k"]) == 2  # min_k and min_k(k=0.1)
    assert "9f2c" * 16 in words
