"""The report in a real browser: it renders, in light and dark, narrow and wide, and breaks none of its own rules."""

from __future__ import annotations

import html
import importlib.util
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from leakmeter.report.page import render

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on PATH")

DARK, LIGHT = "--blink-settings=preferredColorScheme=0", "--blink-settings=preferredColorScheme=1"
PHONE = 390


@pytest.fixture(scope="module")
def documents() -> dict[str, Any]:
    where = Path(__file__).parents[1] / "unit" / "report" / "sample.py"
    spec = importlib.util.spec_from_file_location("report_sample", where)
    assert spec is not None
    assert spec.loader is not None
    sample = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sample)
    return {"leak": sample.document(), "sweep": sample.sweep(n=100)}


@pytest.fixture(scope="module")
def pages(documents: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    made = {name: folder / f"{name}.html" for name in documents}
    for name, path in made.items():
        path.write_text(render(documents[name]), encoding="utf-8")
    return made


def browse(page: Path, tmp_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    assert CHROMIUM is not None
    quiet = "--disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update"
    return subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            *quiet.split(),
            "--disable-sync",
            "--enable-logging=stderr",
            f"--user-data-dir={tmp_path / 'profile'}",
            *options,
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )


def complaints(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What the page's console said."""
    return [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def pixels(page: Path, tmp_path: Path, scheme: str) -> tuple[np.ndarray[Any, Any], list[str]]:
    picture = tmp_path / "page.png"
    done = browse(page, tmp_path, scheme, f"--screenshot={picture}", "--window-size=1280,4000", "--hide-scrollbars")
    with Image.open(picture) as image:
        return np.asarray(image.convert("L"), dtype=float), complaints(done)


@pytest.mark.parametrize("name", ["leak", "sweep"])
def test_the_page_is_drawn_and_the_console_stays_silent(name: str, pages: dict[str, Path], tmp_path: Path) -> None:
    grey, said = pixels(pages[name], tmp_path, LIGHT)
    assert said == []
    assert grey.shape == (4000, 1280)
    assert np.median(grey) > 240
    drawn = (np.abs(grey - np.median(grey)) > 60).mean(axis=1) > 0
    for part in np.array_split(drawn, 8):  # no half of a page is blank
        assert part.mean() > 0.1


def test_the_dark_page_is_light_on_dark_charts_included(pages: dict[str, Path], tmp_path: Path) -> None:
    grey, said = pixels(pages["leak"], tmp_path, DARK)
    assert said == []
    assert np.median(grey) < 50
    assert (grey > 150).mean() > 0.005
    # No white card is left in the dark: no row of the picture is mostly bright.
    assert ((grey > 200).mean(axis=1) < 0.5).all()


def test_a_page_that_breaks_the_policy_is_noticed(pages: dict[str, Path], tmp_path: Path) -> None:
    doctored = tmp_path / "doctored.html"
    page = pages["leak"].read_text(encoding="utf-8")
    doctored.write_text(page.replace("</main>", "<script>1</script></main>"), encoding="utf-8")
    _, said = pixels(doctored, tmp_path, LIGHT)
    assert any("Content Security Policy" in line for line in said)


@pytest.mark.parametrize("name", ["leak", "sweep"])
def test_nothing_but_tables_scrolls_sideways_on_a_phone(name: str, pages: dict[str, Path], tmp_path: Path) -> None:
    # A headless window is never narrower than 500 px, so the page is put into a narrow frame that can be measured.
    inner = html.escape(pages[name].read_text(encoding="utf-8"), quote=True)
    frame = tmp_path / "frame.html"
    measure = "frames[0].document.documentElement.scrollWidth"
    frame.write_text(
        f'<!doctype html><meta charset="utf-8"><iframe style="width:{PHONE}px;height:800px;border:0" srcdoc="{inner}"'
        f" onload=\"document.body.append('width ' + {measure})\"></iframe>",
        encoding="utf-8",
    )
    done = browse(frame, tmp_path, "--dump-dom")
    width = re.search(r"width (\d+)<?/?", done.stdout[done.stdout.rindex("</iframe>") :])
    assert width is not None
    assert int(width[1]) <= PHONE


def test_the_page_prints(pages: dict[str, Path], tmp_path: Path) -> None:
    printed = tmp_path / "page.pdf"
    browse(pages["leak"], tmp_path, f"--print-to-pdf={printed}", "--no-pdf-header-footer")
    assert printed.read_bytes().startswith(b"%PDF-")
    assert len(re.findall(rb"/Type\s*/Page\b", printed.read_bytes())) >= 3
