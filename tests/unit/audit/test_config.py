"""A config is checked whole before anything is loaded, and a sweep is a list of configs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from leakmeter.audit.config import read_yaml, settings, validated
from leakmeter.core.errors import BadInput


@pytest.fixture
def raw(corpus: Any) -> dict[str, Any]:
    return dict(corpus.config())


def test_attacks_default_to_what_the_bound_roles_can_answer(raw: dict[str, Any]) -> None:
    with_reference = {attack.type for attack in validated(raw).resolved_attacks()}
    del raw["models"]["reference"]
    without = {attack.type for attack in validated(raw).resolved_attacks()}
    assert {"ratio", "calibrated", "windows", "error_shift", "reference_alone"} <= with_reference - without
    assert {"loss", "zlib", "min_k", "min_k_plus", "bag_of_words", "length"} <= without


def test_an_attack_without_its_reference_is_refused_before_loading(raw: dict[str, Any]) -> None:
    del raw["models"]["reference"]
    with pytest.raises(BadInput, match="needs a model in the role 'reference'"):
        validated({**raw, "attacks": ["ratio"]})


def test_a_misspelt_attack_is_answered_with_the_one_meant(raw: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="Did you mean 'min_k_plus'"):
        validated({**raw, "attacks": ["min_k_pluss"]})


def test_an_unknown_parameter_names_the_known_ones(raw: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"Its parameters: .*share"):
        validated({**raw, "attacks": [{"type": "min_k", "percent": 20}]})


def test_an_unknown_key_is_refused(raw: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="recods"):
        validated({**raw, "recods": []})


def test_a_sweep_makes_one_config_per_combination(raw: dict[str, Any]) -> None:
    raw["attacks"] = ["loss", {"type": "min_k", "share": 0.2}]
    raw["sweep"] = {"attacks.min_k.share": [0.1, 0.5], "seed": [1, 2, 3]}
    made = settings(raw)
    assert [setting for setting, _ in made] == [
        {"attacks.min_k.share": share, "seed": seed} for share in (0.1, 0.5) for seed in (1, 2, 3)
    ]
    assert [config.attacks[1].share for _, config in made] == [0.1] * 3 + [0.5] * 3  # type: ignore[index, attr-defined]
    assert [config.seed for _, config in made] == [1, 2, 3] * 2


def test_a_sweep_reaches_into_models_and_list_positions(raw: dict[str, Any]) -> None:
    raw["sweep"] = {"models.target.order": [1, 2], "records.0.limit": [5]}
    (_, one), (_, two) = settings(raw)
    assert (one.models["target"][0].order, two.models["target"][0].order) == (1, 2)  # type: ignore[attr-defined]
    assert one.records[0].limit == 5  # type: ignore[attr-defined]


@pytest.mark.parametrize("sweep", [{"attacks.ratio.share": [1]}, {"seed": []}, ["seed"], {"seed": 3}])
def test_a_sweep_that_leads_nowhere_is_explained(raw: dict[str, Any], sweep: Any) -> None:
    raw["attacks"] = ["loss"]
    with pytest.raises(BadInput, match="sweep"):
        settings({**raw, "sweep": sweep})


def test_paths_in_a_yaml_file_are_meant_from_where_it_lies(tmp_path: Path) -> None:
    path = tmp_path / "audit.yaml"
    path.write_text("records: [{type: file, path: train.jsonl}]\nmodels: {target: {type: causal, path: model}}\n")
    read = read_yaml(path)
    assert read["records"][0]["path"] == str(tmp_path / "train.jsonl")
    assert read["models"]["target"]["path"] == str(tmp_path / "model")


@pytest.mark.parametrize(("text", "said"), [("a: [", "not valid YAML"), ("- 1", "should hold a mapping")])
def test_a_broken_yaml_file_is_explained(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "audit.yaml"
    path.write_text(text)
    with pytest.raises(BadInput, match=said):
        read_yaml(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"models": {"refrence": {"type": "ngram", "path": "x"}}}, "no target"),
        (
            {"models": {"target": {"type": "ngram", "path": "x"}, "refrence": {"type": "ngram", "path": "x"}}},
            "reference'",
        ),
        ({"models": {"target": []}}, "has no model"),
        ({"attacks": ["loss", "loss"]}, "named twice"),
        ({"attacks": [{"type": "min_k", 1: 2}]}, "should be words"),
    ],
)
def test_what_cannot_be_meant_is_refused(raw: dict[str, Any], change: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        validated({**raw, **change})


@pytest.mark.parametrize("bad", [{1: 2}, {"sweep": {1: [2]}}])
def test_keys_that_are_not_words_are_refused(raw: dict[str, Any], bad: dict[Any, Any]) -> None:
    with pytest.raises(BadInput):
        settings({**raw, **bad})


def test_swept_paths_are_meant_from_where_the_file_lies(tmp_path: Path) -> None:
    path = tmp_path / "audit.yaml"
    path.write_text("sweep: {models.target.path: [one, two], seed: [1]}\n")
    assert read_yaml(path)["sweep"]["models.target.path"] == [str(tmp_path / "one"), str(tmp_path / "two")]


def test_a_folder_is_no_config(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        read_yaml(tmp_path)
