"""The commands as a user runs them, on a finished run and on files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from leakmeter.cli.app import app
from tests.conftest import Corpus, make_corpus


def run(*arguments: object) -> Any:
    result = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "120"})
    assert result.exit_code == 0, (result.output, result.exception)
    return result


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    corpus = make_corpus(tmp_path_factory.mktemp("corpus"))
    (corpus.folder / "audit.yaml").write_text(json.dumps(corpus.config()))
    run("audit", corpus.folder / "audit.yaml", "--out", corpus.folder / "run", "--quiet")
    return corpus


def test_top_shows_ordinals_and_no_text(finished: Corpus) -> None:
    rows = json.loads(run("top", finished.folder / "run", "-n", 5, "--attack", "ratio", "--json").stdout)
    assert len(rows) == 5
    assert {"id", "text"}.isdisjoint(rows[0])
    assert [r["score"] for r in rows] == sorted((r["score"] for r in rows), reverse=True)
    assert all(r["split"] == "members" for r in rows)


def test_top_reveals_ids_and_texts_when_asked(finished: Corpus) -> None:
    rows = json.loads(run("top", finished.folder / "run", "-n", 3, "--reveal", "--json").stdout)
    members = {row["id"]: row["text"] for row in map(json.loads, finished.members.read_text().splitlines())}
    assert all(members[row["id"]].startswith(row["text"]) and row["text"] for row in rows)


def test_report_is_rendered_again_from_results_alone(finished: Corpus) -> None:
    page = finished.folder / "run" / "report.html"
    before = page.read_bytes()
    page.unlink()
    run("report", finished.folder / "run")
    assert page.read_bytes() == before


def test_a_dry_run_says_what_is_left_to_ask(corpus: Corpus) -> None:
    path = corpus.folder / "audit.yaml"
    path.write_text(json.dumps(corpus.config(attacks=["loss", "lowercase"])))
    costs = json.loads(run("audit", path, "--out", corpus.folder / "run", "--dry-run", "--json").stdout)
    target = next(cost for cost in costs if cost["model"] == "target")
    assert target["questions"] == 2 * 240
    texts = [
        json.loads(line)["text"]
        for f in (corpus.members, corpus.nonmembers, corpus.population)
        for line in f.read_text().splitlines()
    ]
    assert target["tokens"] == pytest.approx(2 * sum(map(len, texts)), rel=0.02)
    assert not (corpus.folder / "run" / "results.json").exists()
    run("audit", path, "--out", corpus.folder / "run", "--quiet")
    costs = json.loads(run("audit", path, "--out", corpus.folder / "run", "--dry-run", "--json").stdout)
    assert next(cost for cost in costs if cost["model"] == "target")["questions"] == 0


def test_pools_of_non_members_are_named_on_the_command_line(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    from leakmeter.audit import verbs

    monkeypatch.setattr(verbs, "named_model", lambda named: {"type": "ngram", "path": str(named), "order": 5})
    result = run(
        "audit", "--target", corpus.folder / "target.txt", "--members", corpus.members, "--nonmembers",
        f"ours={corpus.nonmembers}", "--nonmembers", f"theirs={corpus.population}", "--attacks", "loss,length",
        "--out", corpus.folder / "run", "--json",
    )  # fmt: skip
    found = json.loads(result.stdout)["results"]
    assert [r["slice"].get("pool") for r in found if (r["attack"], r["metric"]) == ("loss", "auc")] == [
        None,
        "ours",
        "theirs",
    ]


def test_purge_removes_the_evidence_and_keeps_the_results(corpus: Corpus) -> None:
    (corpus.folder / "audit.yaml").write_text(json.dumps(corpus.config(attacks=["loss"])))
    folder = corpus.folder / "run"
    run("audit", corpus.folder / "audit.yaml", "--out", folder, "--quiet")
    run("purge", folder, "--yes")
    assert not (folder / "evidence").exists()
    assert (folder / "report.html").exists()
    result = CliRunner().invoke(app, ["top", str(folder), "--reveal"])
    assert "purged" in str(result.exception)


@pytest.mark.parametrize("kind", ["attacks", "models", "metrics", "engines", "records"])
def test_list_shows_ours_and_the_plugins(kind: str) -> None:
    rows = json.loads(run("list", kind, "--json").stdout)
    assert all(row["about"] for row in rows)
    if kind == "attacks":
        assert {"ratio", "vowels"} <= {row["name"] for row in rows}


def test_doctor_says_what_there_is() -> None:
    findings = {f["what"]: f for f in json.loads(run("doctor", "--json").stdout)}
    assert findings["torch"]["ok"]
    assert "ratio" in findings["attacks"]["detail"]


def test_split_keeps_groups_together_and_writes_files_an_audit_reads(corpus: Corpus) -> None:
    sizes = json.loads(run("split", corpus.members, "--parts", "train=0.5,holdout=0.5", "--json").stdout)["parts"]
    groups = {}
    for part in ("train", "holdout"):
        rows = [json.loads(line) for line in Path(sizes[part]["file"]).read_text().splitlines()]
        groups[part] = {row["group"] for row in rows}
        assert all(row["text"] for row in rows)
    assert not groups["train"] & groups["holdout"]
    assert sum(sizes[part]["records"] for part in groups) == 80


def test_help_has_an_example_for_every_command() -> None:
    top = run("--help").stdout
    for command in (
        "demo",
        "audit",
        "evaluate",
        "split",
        "train",
        "top",
        "report",
        "list",
        "purge",
        "convert",
        "doctor",
    ):
        assert command in top
        assert "leakmeter " + command in run(command, "--help").stdout.replace("\n", " ")


def test_importing_leakmeter_loads_neither_torch_nor_sklearn_nor_polars() -> None:
    heavy = "('torch', 'sklearn', 'polars', 'pydantic')"
    script = f"import sys, leakmeter, leakmeter.cli.app; print([m for m in {heavy} if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()
        == "[]"
    )


def test_the_public_names_are_these_and_all_of_them_load() -> None:
    import leakmeter

    assert len(leakmeter.__all__) == 22
    for name in leakmeter.__all__:
        assert getattr(leakmeter, name) is not None
    assert callable(leakmeter.audit)
