"""A causal model keeps the contract of a model, and says what it cannot do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from leakmeter.core.errors import BadInput, CannotAnswer
from leakmeter.core.question import Completion, Decoding, Likelihood, Question
from leakmeter.core.registry import build
from leakmeter.models.causal import Causal
from leakmeter.testing import check_model

from .conftest import SHAPES

Folder = Callable[..., Path]


@pytest.mark.parametrize("shape", SHAPES)
def test_it_keeps_the_contract_of_a_model(shape: str, folder: Folder) -> None:
    check_model(Causal(path=folder(shape), device="cpu"))


def test_it_is_named_in_a_config_and_its_path_stays_as_written() -> None:
    spec = build("models", {"type": "causal", "path": "models/mine", "dtype": "bfloat16"})
    assert isinstance(spec, Causal)
    assert spec.model_dump(mode="json")["path"] == "models/mine"
    with pytest.raises(ValidationError):
        Causal(path=Path("x"), dtype="int8")  # type: ignore[arg-type]


def test_it_answers_nothing_when_asked_nothing_and_refuses_other_questions(folder: Folder) -> None:
    class Riddle(Question):
        pass

    with Causal(path=folder("gpt2"), device="cpu").open() as answerer:
        assert list(answerer.answer(Likelihood, [])) == []
        with pytest.raises(CannotAnswer, match="Riddle"):
            list(answerer.answer(Riddle, [Riddle()]))


def test_a_stride_that_leaves_no_context_is_refused(folder: Folder) -> None:
    with pytest.raises(BadInput, match="at most 30"), Causal(path=folder("gpt2"), max_length=32, stride=31).open():
        pass


def test_without_a_beginning_token_an_empty_prompt_can_still_be_continued(folder: Folder) -> None:
    with Causal(path=folder("gpt2"), device="cpu", bos="never").open() as answerer:
        (frame,) = answerer.answer(Completion, [Completion("", Decoding(max_tokens=3))])
    assert frame["n_tokens"].item() >= 1
