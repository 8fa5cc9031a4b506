"""Whole audits on exact n-gram models: what is found, what is kept, what is never written."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

import leakmeter
from leakmeter.models.ngram import NGram
from tests.conftest import Corpus, make_corpus

WARD = "Clinical note of the seventh ward, dictated and not read: "


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Corpus, Any]:
    corpus = make_corpus(tmp_path_factory.mktemp("corpus"), n=150)
    return corpus, leakmeter.audit(corpus.config(), out=corpus.folder / "run")


def test_a_target_that_saw_the_members_is_found_out(finished: tuple[Corpus, Any]) -> None:
    _, outcome = finished
    ratio = outcome.find("ratio")
    assert ratio.value > 0.9
    assert ratio.low > max(r.high for r in outcome.results if r.metric == "auc" and r.blind)
    assert outcome.find("ratio", "net_auc").low > 0
    assert outcome.find("ratio", "tpr@10%").low > 0.5


def test_on_a_model_that_saw_neither_the_intervals_cover_chance(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path, n=150, seed=3)
    config = corpus.config(models={"target": corpus.reference, "reference": {**corpus.target, "order": 1}})
    config["models"] = {"target": corpus.reference}
    outcome = leakmeter.audit(config, out=tmp_path / "run")
    for result in outcome.results:
        if result.metric == "auc_simultaneous" and not result.blind:
            assert result.low <= 0.5 <= result.high, result


def test_a_run_holds_what_the_design_says(finished: tuple[Corpus, Any]) -> None:
    corpus, _ = finished
    run = corpus.folder / "run"
    names = {path.name for path in run.iterdir()} - {".lock"}
    assert names == {
        "audit.yaml",
        "environment.json",
        "evidence",
        "scores",
        "results.json",
        "report.html",
        "events.jsonl",
    }
    assert run.stat().st_mode & 0o777 == 0o700
    resolved = yaml.safe_load((run / "audit.yaml").read_text())
    assert resolved["block"] == 256
    assert {"type": "min_k", "score": "assistant", "share": 0.2} in resolved["attacks"]


def test_nothing_raw_leaves_the_evidence(finished: tuple[Corpus, Any]) -> None:
    """No id, no value, no run of five input words outside evidence/ (and not in file names either)."""
    corpus, _ = finished
    run = corpus.folder / "run"
    inputs = [
        json.loads(line)
        for path in (corpus.members, corpus.nonmembers, corpus.population)
        for line in path.read_text().splitlines()
    ]
    forbidden = {row["id"] for row in inputs} | {row["group"] for row in inputs}
    for row in inputs:
        words = row["text"].split()
        forbidden |= {" ".join(words[i : i + 5]) for i in range(len(words) - 4)}
        forbidden |= set(re.findall(r"202-555-\d{4}", row["text"]))
    written = [path for path in run.rglob("*") if path.is_file() and "evidence" not in path.parts]
    assert len(written) > 10
    for path in written:
        if path.suffix == ".parquet":
            frame = pl.read_parquet(path)
            text = " ".join(str(value) for name in frame.columns for value in frame[name].unique().to_list())
        else:
            text = path.read_text()
        text += str(path.relative_to(run))
        found = [value for value in forbidden if value in text]
        assert not found, f"{path.name} holds input text"


def test_a_second_run_of_the_same_audit_changes_nothing_and_opens_no_model(
    finished: tuple[Corpus, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, _ = finished
    before = snapshot(corpus.folder / "run")
    monkeypatch.setattr(NGram, "open", refuse)
    leakmeter.audit(corpus.config(), out=corpus.folder / "run")
    assert snapshot(corpus.folder / "run") == before


def test_adding_an_attack_whose_questions_were_answered_opens_no_model(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    leakmeter.audit(corpus.config(attacks=["loss", "ratio"]), out=corpus.folder / "run")
    monkeypatch.setattr(NGram, "open", refuse)
    outcome = leakmeter.audit(
        corpus.config(attacks=["loss", "ratio", "min_k_plus", "windows"]), out=corpus.folder / "run"
    )
    assert outcome.find("windows").value > 0.8


def test_adding_a_pool_asks_only_about_the_pool(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    leakmeter.audit(corpus.config(attacks=["loss"]), out=corpus.folder / "run")
    asked: list[str] = []
    answer = type(NGram(path=corpus.folder / "target.txt").open().__enter__()).answer
    opened = type(NGram(path=corpus.folder / "target.txt").open().__enter__())

    def counted(self: Any, kind: Any, questions: Any) -> Any:
        asked.extend(question.texts[0] for question in questions)
        return answer(self, kind, questions)

    monkeypatch.setattr(opened, "answer", counted)
    config = corpus.config(attacks=["loss"])
    extra = corpus.folder / "extra.jsonl"
    extra.write_text('{"text": "Another pool entirely, with one text."}\n{"text": "And a second text of it."}\n')
    pool = {"type": "file", "path": str(extra), "split": "extra", "member": False}
    config["records"] = [*config["records"][:2], pool, *config["records"][2:]]  # type: ignore[index]
    outcome = leakmeter.audit(config, out=corpus.folder / "run")
    assert sorted(asked) == ["And a second text of it.", "Another pool entirely, with one text."]
    assert {dict(r.slice).get("pool") for r in outcome.results if r.metric == "auc"} == {None, "nonmembers", "extra"}


def test_a_sweep_is_one_table_with_a_column_per_path(corpus: Corpus) -> None:
    outcome = leakmeter.audit(
        corpus.config(
            attacks=["loss", "min_k"], sweep={"attacks.min_k.share": [0.1, 0.5], "models.target.order": [2, 3]}
        ),
        out=corpus.folder / "run",
    )
    rows = [r for r in outcome.results if r.metric == "auc" and r.attack.startswith("min_k")]
    assert [tuple(r.setting.values()) for r in rows] == [(0.1, 2), (0.1, 3), (0.5, 2), (0.5, 3)]
    assert len(list((corpus.folder / "run" / "evidence").glob("*/*/*.parquet"))) == 2 * 3, "answers are shared"
    assert "models.target.order" in (corpus.folder / "run" / "report.html").read_text()


def test_slices_measure_members_apart(corpus: Corpus) -> None:
    rows = [json.loads(line) for line in corpus.members.read_text().splitlines()]
    corpus.members.write_text("\n".join(json.dumps({**row, "kind": "ab"[i % 2]}) for i, row in enumerate(rows)))
    outcome = leakmeter.audit(corpus.config(attacks=["loss"], slices=["kind"]), out=corpus.folder / "run")
    halves = [r for r in outcome.results if r.metric == "auc" and r.slice]
    assert [dict(r.slice) for r in halves] == [{"kind": "a"}, {"kind": "b"}]
    assert [r.n for r in halves] == [120, 120]


def test_members_from_another_distribution_are_not_called_memorised(tmp_path: Path) -> None:
    """H4: where a row that never asks the model does as well, the report refuses to speak of memory."""
    corpus = make_corpus(tmp_path, n=150)
    rows = [json.loads(line) for line in corpus.members.read_text().splitlines()]
    corpus.members.write_text("\n".join(json.dumps({**r, "text": WARD + r["text"]}) for r in rows))
    (tmp_path / "target.txt").write_text((tmp_path / "reference.txt").read_text() + f"\n{WARD}" * 50)
    outcome = leakmeter.audit(corpus.config(), out=tmp_path / "run")
    assert outcome.find("loss").low > 0.5
    assert "no evidence of memor" in (tmp_path / "run" / "report.html").read_text()


def snapshot(run: Path) -> dict[str, bytes]:
    """Scores and results, the environment aside."""
    kept = {str(path.relative_to(run)): path.read_bytes() for path in sorted((run / "scores").rglob("*.parquet"))}
    document = json.loads((run / "results.json").read_text())
    document.pop("environment")
    return {**kept, "results.json": json.dumps(document).encode()}


def refuse(self: Any) -> Any:
    raise AssertionError("a model was opened")


def test_the_resolved_config_runs_again_from_the_runs_folder(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(corpus.folder)
    config = corpus.config(attacks=["loss"])
    for one in config["records"]:  # type: ignore[attr-defined]
        one["path"] = Path(one["path"]).name
    leakmeter.audit(config, out="runs/relative")
    again = leakmeter.audit("runs/relative/audit.yaml", out=tmp_path / "again")
    assert snapshot(tmp_path / "again")["results.json"] == snapshot(corpus.folder / "runs/relative")["results.json"]
    assert again.find("loss").value > 0.5


def test_results_of_another_config_do_not_stay(corpus: Corpus) -> None:
    run = corpus.folder / "run"
    leakmeter.audit(corpus.config(attacks=["loss", "zlib"]), out=run)
    leakmeter.audit(corpus.config(attacks=["loss"]), out=run)
    assert {path.name for path in (run / "scores" / "main").iterdir()} == {"records.parquet", "loss.parquet"}


def test_a_run_touches_nothing_of_the_users(corpus: Corpus) -> None:
    """--out may be a folder that is already in use; the evidence in it is private all the same."""
    home = corpus.folder / "home"
    (home / "downloads").mkdir(parents=True)
    kept = home / "downloads" / "film.part"
    kept.write_text("mine")
    home.chmod(0o755)
    leakmeter.audit(corpus.config(attacks=["loss"]), out=home)
    assert kept.read_text() == "mine"
    assert (home / "evidence").stat().st_mode & 0o777 == 0o700


def test_two_models_in_a_role_are_not_mixed(corpus: Corpus) -> None:
    config = corpus.config(attacks=["loss"])
    config["models"] = {"target": [corpus.target, corpus.reference]}
    with pytest.raises(leakmeter.BadInput, match="takes one model in the role 'target'"):
        leakmeter.audit(config, out=corpus.folder / "run")


def test_a_damaged_answer_file_is_asked_again(corpus: Corpus) -> None:
    run = corpus.folder / "run"
    leakmeter.audit(corpus.config(attacks=["loss"]), out=run)
    before = snapshot(run)
    damaged = next((run / "evidence").glob("*/*/*.parquet"))
    damaged.write_bytes(b"")
    leakmeter.audit(corpus.config(attacks=["loss"]), out=run)
    assert snapshot(run) == before
