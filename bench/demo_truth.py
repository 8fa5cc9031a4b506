"""Is the demo right? The planted leak must be found, and on a model that saw none of it nothing may be found.

For every seed: invented people, the demo's target and reference, and a third model trained by the same recipe on other
people's mail. On the target, the ratio's AUC, the blind rows and the AUC by repetition are printed; on the third model,
whether every attack's Holm-adjusted interval covers 0.5.

    python bench/demo_truth.py [--seeds 20] [--first 0] [--found 3] [--out runs/demo-truth]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import leakmeter
from leakmeter.audit.demo import PEOPLE, config, trained
from leakmeter.audit.store import Store
from leakmeter.audit.trained import Trained
from leakmeter.records.people import Invented


def found(seed: int, out: Path) -> dict[str, Any]:
    """The demo itself."""
    outcome = leakmeter.audit(config(seed), out=out)
    aucs = {r.attack: r for r in outcome.results if r.metric == "auc" and not r.slice}
    blind = [r for r in aucs.values() if r.blind]
    return {
        "seed": seed,
        "ratio": [round(float(v or 0), 3) for v in (aucs["ratio"].value, aucs["ratio"].low, aucs["ratio"].high)],
        "highest blind interval": round(max(float(r.high or 0) for r in blind), 3),
        "by repetition": {
            str(r.slice["repeats"]): round(float(r.value or 0), 3)
            for r in outcome.results
            if (r.attack, r.metric) == ("ratio", "auc") and r.slice
        },
        "all": {name: round(float(r.value or 0), 3) for name, r in aucs.items()},
    }


def control(seed: int, out: Path) -> dict[str, Any]:
    """The same audit of a model that saw neither members nor non-members."""
    raw = config(seed)
    other = Invented(
        people=PEOPLE["train"], seed=10 * seed + 9, split="other", repeats=tuple(raw["records"][0]["repeats"])
    )
    vocabulary = Invented(people=PEOPLE["population"], seed=10 * seed + 3, split="population")
    store = Store(out)
    job = Trained(**trained("other", seed)).job([*other.read().records, *vocabulary.read().records], store)
    if job.checkpoint is None:
        job.run(None)
    raw["models"]["target"] = job.opened()
    raw["records"] = [{**one, "member": one["split"] == "train"} for one in raw["records"]]
    outcome = leakmeter.audit({**raw, "slices": []}, out=out)
    wide = [r for r in outcome.results if r.metric == "auc_simultaneous" and not r.blind]
    missed = [r.attack for r in wide if not float(r.low or 0) <= 0.5 <= float(r.high or 0)]
    lowest = min(float(r.value or 0) for r in outcome.results if r.metric == "p_holm")
    ratio = outcome.find("ratio")
    return {"seed": seed, "attacks": len(wide), "not covering 0.5": missed, "lowest Holm p": round(lowest, 4),
            "ratio": round(float(ratio.value or 0), 3)}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first of the seeds")
    parser.add_argument("--found", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("runs/demo-truth"))
    given = parser.parse_args()
    for seed in range(given.found):
        print(json.dumps({"on the target": found(seed, given.out / f"target-{seed}")}), flush=True)
    rows = []
    for seed in range(given.first, given.first + given.seeds):
        rows.append(control(seed, given.out / f"control-{seed}"))
        print(json.dumps({"on a model that saw nothing": rows[-1]}), flush=True)
    exceptions = sum(bool(row["not covering 0.5"]) for row in rows)
    print(json.dumps({"seeds": len(rows), "seeds with an interval off 0.5": exceptions}))


if __name__ == "__main__":
    main()
