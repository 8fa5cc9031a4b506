"""leakmeter measures how much a language model gives away about the people and texts it was trained on.

    import leakmeter
    outcome = leakmeter.audit(target="model", members="train.jsonl", nonmembers="holdout.jsonl")
    print(outcome)

Names are loaded when they are first used: `import leakmeter` is quick and needs no torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_WHERE = {
    "audit": "leakmeter.audit.verbs",
    "evaluate": "leakmeter.audit.evaluate",
    "open_run": "leakmeter.audit.outcome",
    "split": "leakmeter.records.split",
    "train": "leakmeter.training.loop",
    "Answerer": "leakmeter.core.model",
    "Answers": "leakmeter.core.attack",
    "Ask": "leakmeter.core.attack",
    "Attack": "leakmeter.core.attack",
    "BadInput": "leakmeter.core.errors",
    "Completion": "leakmeter.core.question",
    "Decoding": "leakmeter.core.question",
    "Judgement": "leakmeter.core.attack",
    "LeakmeterError": "leakmeter.core.errors",
    "Likelihood": "leakmeter.core.question",
    "Metric": "leakmeter.core.result",
    "ModelSpec": "leakmeter.core.model",
    "Record": "leakmeter.core.record",
    "Result": "leakmeter.core.result",
    "Sample": "leakmeter.core.result",
    "Select": "leakmeter.core.record",
    "Skip": "leakmeter.core.attack",
}

__all__ = [
    "Answerer",
    "Answers",
    "Ask",
    "Attack",
    "BadInput",
    "Completion",
    "Decoding",
    "Judgement",
    "LeakmeterError",
    "Likelihood",
    "Metric",
    "ModelSpec",
    "Record",
    "Result",
    "Sample",
    "Select",
    "Skip",
    "audit",
    "evaluate",
    "open_run",
    "split",
    "train",
]

if TYPE_CHECKING:
    from leakmeter.audit.evaluate import evaluate
    from leakmeter.audit.outcome import open_run
    from leakmeter.audit.verbs import audit
    from leakmeter.core.attack import Answers, Ask, Attack, Judgement, Skip
    from leakmeter.core.errors import BadInput, LeakmeterError
    from leakmeter.core.model import Answerer, ModelSpec
    from leakmeter.core.question import Completion, Decoding, Likelihood
    from leakmeter.core.record import Record, Select
    from leakmeter.core.result import Metric, Result, Sample
    from leakmeter.records.split import split
    from leakmeter.training.loop import train


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'leakmeter' has no attribute '{name}'")
    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
