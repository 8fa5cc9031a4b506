"""A built wheel works outside the checkout, and evaluates and renders where there is no torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]

WITHOUT_TORCH = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "transformers", "safetensors"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name.split(".")[0])
sys.meta_path.insert(0, Absent())
import leakmeter
assert leakmeter.__file__.startswith(sys.argv[1]), leakmeter.__file__
from leakmeter.cli import main
sys.argv = ["leakmeter", *sys.argv[2:]]
main()
"""


def test_a_wheel_evaluates_and_renders_without_torch(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, ROOT],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("leakmeter-*.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
        names = archive.namelist()
    assert "leakmeter/report/templates/page.html.j2" in names
    assert "leakmeter/py.typed" in names
    assert any(name.startswith("leakmeter/records/data/") for name in names)
    table = tmp_path / "losses.csv"
    table.write_text(
        "target,reference,member\n" + "".join(f"{2 + i % 7 / 7 - (i % 2) / 2},2,{i % 2}\n" for i in range(80))
    )

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", WITHOUT_TORCH, site, *arguments]
        environment = {**os.environ, "PYTHONPATH": str(site)}
        return subprocess.run(
            list(map(str, command)), cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    evaluated = run("evaluate", table, "--out", tmp_path / "run", "--json")
    assert evaluated.returncode == 0, evaluated.stderr
    assert {r["attack"] for r in json.loads(evaluated.stdout)["results"]} >= {"loss", "ratio"}
    assert run("report", tmp_path / "run").returncode == 0
    assert "AUC" in (tmp_path / "run" / "report.html").read_text()
    refused = run("audit", "--target", tmp_path, "--members", table, "--nonmembers", table)
    assert refused.returncode == 2
    assert "pip install 'leakmeter[hf]'" in refused.stderr
