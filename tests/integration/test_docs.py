"""The documents are true: generated pages are current, links lead somewhere, named tests exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_generated_pages_are_current_and_links_lead_somewhere() -> None:
    result = subprocess.run(
        [sys.executable, ROOT / "docs" / "build.py", "--check"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


def test_every_file_the_coverage_names_exists() -> None:
    table = (ROOT / "docs" / "coverage.md").read_text()
    named = set(re.findall(r"`((?:src|tests|bench|docs)/[\w/.-]+)`", table))
    assert len(named) > 20
    missing = [path for path in sorted(named) if not (ROOT / path).exists()]
    assert not missing


def test_every_requirement_has_a_row() -> None:
    table = (ROOT / "docs" / "coverage.md").read_text()
    expected = [
        f"{letter}{i}"
        for letter, n in {"P": 18, "M": 16, "S": 12, "G": 7, "H": 8, "C": 6}.items()
        for i in range(1, n + 1)
    ]
    rows = re.findall(r"^\| ([PMSGHC]\d+) \|", table, re.MULTILINE)
    assert rows == expected


def test_the_repository_names_no_machine() -> None:
    """No absolute path of somebody's machine stands in a tracked file."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    pattern = re.compile("/(?:work|root|home)/[a-z]")
    found = [
        name
        for name in tracked
        if (ROOT / name).suffix in {".py", ".md", ".toml", ".txt", ".yaml", ""} and (ROOT / name).is_file()
        and pattern.search((ROOT / name).read_text(encoding="utf-8", errors="ignore"))
    ]  # fmt: skip
    assert not found
