"""What a recipe promises: its schedule, and which settings belong together."""

from __future__ import annotations

from itertools import pairwise

import pytest
from pydantic import ValidationError

from leakmeter.training.recipe import Recipe


@pytest.mark.parametrize("schedule", ["cosine", "linear", "constant"])
def test_the_learning_rate_rises_to_its_peak_and_then_never_rises_again(schedule: str) -> None:
    recipe = Recipe(schedule=schedule, warmup=0.1)
    pace = [recipe.pace(step, 100) for step in range(100)]
    assert pace[:11] == pytest.approx([(step + 1) / 11 for step in range(11)])
    assert all(later <= earlier for earlier, later in pairwise(pace[10:]))
    assert all(0 < value <= 1 for value in pace)


def test_cosine_and_linear_are_halfway_down_in_the_middle_and_near_zero_at_the_end() -> None:
    for schedule in ("cosine", "linear"):
        recipe = Recipe(schedule=schedule, warmup=0.0)
        assert recipe.pace(50, 100) == pytest.approx(0.5)
        assert recipe.pace(99, 100) < 0.02


def test_a_single_step_is_taken_at_a_positive_learning_rate() -> None:
    assert all(Recipe(schedule=s, warmup=w).pace(0, 1) > 0 for s in ("cosine", "linear") for w in (0.0, 0.05, 0.99))


@pytest.mark.parametrize("setting", [{"patience": 2}, {"keep": "best"}])
def test_what_goes_by_the_validation_loss_needs_validation(setting: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="validation"):
        Recipe(**setting)
    Recipe(validation=0.1, **setting)


@pytest.mark.parametrize(
    "setting", [{"epochs": 0}, {"learning_rate": 0}, {"validation": 1.0}, {"schedule": "step"}, {"clip": 0}]
)
def test_settings_without_sense_are_refused(setting: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Recipe(**setting)
