"""A dry run: what an audit would ask of which model, and what that would cost, measured on a few questions."""

from __future__ import annotations

import resource
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from leakmeter.audit.config import settings
from leakmeter.audit.jobs import AnswerJob
from leakmeter.audit.plan import BlockPlan, Bound, cut, plan
from leakmeter.audit.pools import divide
from leakmeter.audit.run import Run
from leakmeter.audit.store import Store
from leakmeter.audit.trained import Trained
from leakmeter.core.question import Completion, Likelihood, Question

PROBED = 50
"""Questions answered to measure the speed."""


class Cost(NamedTuple):
    """What one model would be asked. Estimates are None where nothing could be measured."""

    model: str
    questions: int
    texts: int
    tokens: int | None
    seconds: float | None
    memory_mb: int | None
    note: str = ""


def dry_run(raw: Mapping[str, Any], out: Path) -> list[Cost]:
    """The cost of every model in the first round of questions, over all settings; nothing is stored but the folder."""
    store = Store(out)
    run = Run(store)
    costs: dict[str, Cost] = {}
    for _, config in settings(raw):
        records = run.load(config)
        asked = divide(config, records).asked
        blocks = [BlockPlan(block) for block in cut(asked, config.block)]
        for block in blocks:
            for attack in config.resolved_attacks():
                block.ask(attack)
        for name, spec in config.model_list():
            role = name.rpartition("-")[0] if name not in config.models else name
            if isinstance(spec, Trained):
                job = spec.job(records, store)
                if job.checkpoint is None:
                    n = sum(
                        len(block.pools.get((role, kind), ())) for block in blocks for kind in (Likelihood, Completion)
                    )
                    note = f"would first be trained: {len(job.examples)} texts, {job.recipe.epochs} epochs"
                    costs[f"{name} {job.out.name[:8]}"] = Cost(name, n, n, None, None, None, note)
                    continue
                spec = job.opened()
            key = spec.fingerprint()
            left = plan(blocks, [Bound(role, name, spec, key)], store)
            known = costs.get(key)
            if known is None or known.questions < sum(len(job.questions) for job in left):
                costs[key] = _measured(name, left)
    return list(costs.values())


def _measured(name: str, jobs: Sequence[AnswerJob]) -> Cost:
    questions = [question for job in jobs for question in job.questions]
    texts = sum(_texts(question) for question in questions)
    if not questions:
        return Cost(name, 0, 0, 0, 0.0, None, "everything is answered already; the model would not be loaded")
    probe = questions[:: max(1, len(questions) // PROBED)][:PROBED]
    with jobs[0].model.open() as answerer:
        tokens = 0
        began = time.perf_counter()
        for kind in {type(question) for question in probe}:
            mine = [question for question in probe if type(question) is kind]
            answers = pl.concat(answerer.answer(kind, mine))
            tokens += int(answers["n_tokens"].sum())
        seconds = time.perf_counter() - began
    share = sum(map(_size, questions)) / max(sum(map(_size, probe)), 1)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return Cost(name, len(questions), texts, round(tokens * share), seconds * share, memory)


def _texts(question: Question) -> int:
    return len(question.texts) if isinstance(question, Likelihood) else 1


def _size(question: Question) -> int:
    """Characters that have to be worked through: what time goes by, before anything is tokenised."""
    if isinstance(question, Likelihood):
        return len(question.context) + sum(map(len, question.texts)) + 1
    if isinstance(question, Completion):
        return len(question.prompt) + 4 * question.decoding.max_tokens
    return 1
