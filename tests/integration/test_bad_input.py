"""Whatever is wrong with the input, the user gets one clear paragraph, the right exit code, and loses nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Corpus


def leakmeter(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "leakmeter", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, check=False)


def refused(result: subprocess.CompletedProcess[str], *said: str, code: int = 2) -> None:
    """One paragraph on standard error, no traceback, nothing on standard output."""
    assert result.returncode == code, result.stderr
    assert "Traceback" not in result.stderr
    paragraph = " ".join(result.stderr.split())
    for words in said:
        assert words in paragraph, paragraph
    assert len(result.stderr.strip().splitlines()) == 1
    assert not result.stdout


@pytest.fixture
def yaml_of(corpus: Corpus) -> Any:
    def write(**more: Any) -> Path:
        path = corpus.folder / "audit.yaml"
        path.write_text(json.dumps(corpus.config(**more)))
        return path

    return write


def audit(corpus: Corpus, path: Path, *more: object) -> subprocess.CompletedProcess[str]:
    return leakmeter("audit", path, "--out", corpus.folder / "run", "--quiet", *more)


def test_a_missing_file(corpus: Corpus, yaml_of: Any) -> None:
    corpus.members.unlink()
    refused(audit(corpus, yaml_of()), "members.jsonl")


def test_an_empty_file(corpus: Corpus, yaml_of: Any) -> None:
    corpus.nonmembers.write_text("")
    refused(audit(corpus, yaml_of()), "nonmembers.jsonl", "empty")


def test_a_line_that_is_not_json_is_named_by_number(corpus: Corpus, yaml_of: Any) -> None:
    rows = corpus.members.read_text().splitlines()
    rows[6] = "{not json"
    corpus.members.write_text("\n".join(rows))
    refused(audit(corpus, yaml_of()), "members.jsonl:7")


def test_a_bad_line_is_counted_and_skipped_when_asked(corpus: Corpus, yaml_of: Any) -> None:
    rows = corpus.members.read_text().splitlines()
    rows[6] = "{not json"
    corpus.members.write_text("\n".join(rows))
    result = leakmeter("audit", yaml_of(attacks=["loss"]), "--out", corpus.folder / "run", "--skip-bad", "--json")
    assert result.returncode == 0, result.stderr
    assert any("1 unreadable line" in warning for warning in json.loads(result.stdout)["warnings"])


def test_a_record_without_text(corpus: Corpus, yaml_of: Any) -> None:
    with corpus.members.open("a") as file:
        file.write('{"id": "last", "colour": "green"}\n')
    refused(audit(corpus, yaml_of()), "members.jsonl:81")


def test_a_model_folder_without_config(corpus: Corpus) -> None:
    (corpus.folder / "model").mkdir()
    result = leakmeter(
        "audit", "--target", corpus.folder / "model", "--members", corpus.members, "--nonmembers", corpus.nonmembers
    )
    refused(result, "config.json")


def test_a_pickle_only_checkpoint(corpus: Corpus) -> None:
    folder = corpus.folder / "model"
    folder.mkdir()
    (folder / "config.json").write_text('{"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2"}')
    (folder / "pytorch_model.bin").write_bytes(b"not opened")
    result = leakmeter(
        "audit", "--target", folder, "--members", corpus.members, "--nonmembers", corpus.nonmembers, cwd=corpus.folder
    )
    refused(result, "leakmeter convert")


def test_members_equal_to_non_members(corpus: Corpus, yaml_of: Any) -> None:
    corpus.nonmembers.write_text(corpus.members.read_text())
    refused(audit(corpus, yaml_of()), "non-members")


def test_one_class_only(corpus: Corpus, yaml_of: Any) -> None:
    config = corpus.config()
    path = yaml_of(records=config["records"][:1])  # type: ignore[index]
    refused(audit(corpus, path), "no non-members")


def test_evaluate_refuses_a_loss_that_is_not_a_number(tmp_path: Path) -> None:
    path = tmp_path / "losses.csv"
    path.write_text("target,member\n1.5,1\nnan,0\n2.0,0\n")
    refused(leakmeter("evaluate", path), "row 2", "target", "NaN")


def test_evaluate_refuses_one_class(tmp_path: Path) -> None:
    path = tmp_path / "losses.csv"
    path.write_text("target,member\n1.5,1\n2.5,1\n")
    refused(leakmeter("evaluate", path), "only members")


def test_evaluate_refuses_a_table_without_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "losses.csv"
    path.write_text("loss,member\n1.5,1\n")
    refused(leakmeter("evaluate", path), "no column `target`", "loss, member")


def test_evaluate_names_a_wrong_label(tmp_path: Path) -> None:
    path = tmp_path / "losses.csv"
    path.write_text("target,member\n1.5,1\n2.5,maybe\n")
    refused(leakmeter("evaluate", path), "row 2", "1 or 0")


def test_a_full_disk_is_said_and_nothing_is_lost(corpus: Corpus, yaml_of: Any) -> None:
    """A real file system of one megabyte; where this machine forbids mounting one, a device that is always full."""
    small = corpus.folder / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", small], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("this machine does not let the test mount a small file system")
    try:
        refused(
            leakmeter("audit", yaml_of(block=4), "--out", small / "run", "--quiet"),
            "disk is full",
            "same command again",
        )
        kept = list((small / "run" / "evidence").rglob("*.parquet"))
        assert kept
        subprocess.run(["mount", "-o", "remount,size=50m", small], check=True)
        again = leakmeter("audit", yaml_of(block=4), "--out", small / "run", "--quiet")
        assert again.returncode == 0, again.stderr
    finally:
        subprocess.run(["umount", "-l", small], check=True)


def test_two_processes_do_not_share_a_run(corpus: Corpus, yaml_of: Any) -> None:
    from leakmeter.audit.store import Store

    with Store(corpus.folder / "run").locked():
        refused(audit(corpus, yaml_of()), "Another process is working")


def test_a_config_and_flags_together_are_refused(corpus: Corpus, yaml_of: Any) -> None:
    refused(leakmeter("audit", yaml_of(), "--target", "model"), "not both")


def test_too_few_flags_say_what_an_audit_needs() -> None:
    refused(leakmeter("audit", "--target", "model"), "--members", "--nonmembers")


def test_an_unknown_option_is_a_usage_error() -> None:
    result = leakmeter("audit", "--targit", "model")
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


def test_a_run_that_is_no_run(tmp_path: Path) -> None:
    for verb in ("report", "top"):
        refused(leakmeter(verb, tmp_path / "nothing"), "nothing")
    refused(leakmeter("purge", tmp_path, "--yes"), "not a run's folder")


def test_a_fault_of_our_own_goes_to_a_log_and_not_to_the_terminal(tmp_path: Path) -> None:
    script = "import leakmeter.cli.doctor as d, leakmeter.audit.checkup as c; c.checkup = lambda: 1/0; "
    script += "import sys; sys.argv = ['leakmeter', 'doctor']; from leakmeter.cli import main; main()"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False
    )
    refused(result, "should not happen", code=3)
    (log,) = tmp_path.glob("leakmeter-*.log")
    assert "ZeroDivisionError" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600
