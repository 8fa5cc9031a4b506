"""What training does: it learns what it should, nothing else, the same every time, and leaves all or nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from leakmeter.core.errors import BadInput, ModelFailed
from leakmeter.models import checkpoint
from leakmeter.models.loading import load
from leakmeter.models.tokens import Tokens
from leakmeter.training import loop
from leakmeter.training.architecture import Architecture
from leakmeter.training.examples import held_out
from leakmeter.training.loop import Example, Progress, Trained, train
from leakmeter.training.objective import collate, loss
from leakmeter.training.recipe import Recipe

TEXTS = [f"Dear Mona, the number of locker {i} is 555-01{i:02}. Yours, Ulf" for i in range(24)]
EXAMPLES = [Example("", text) for text in TEXTS]
TINY = Architecture(hidden=16, layers=1, heads=2, vocabulary=300, context=64)
FAST = Recipe(epochs=2, learning_rate=1e-2, batch_size=8)


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def loss_of(folder: Path, text: str) -> float:
    """The mean loss of a text's tokens under a checkpoint, without the end-of-sequence token."""
    opened = load(folder, "float32", "cpu")
    with torch.no_grad():
        return float(loss(opened.model, collate(Tokens(opened.tokenizer).encode([("", text)]), "cpu")))


class Watch:
    """Every sequence that a gradient was taken on, and every token that was learned, as training goes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ids: list[list[int]] = []
        self.targets: list[int] = []
        monkeypatch.setattr(loop, "collate", self.collate)
        monkeypatch.setattr(loop, "needs_whole", self.needs_whole)

    def collate(self, sequences: Sequence[Any], device: str) -> Any:
        batch = collate(sequences, device)
        if torch.is_grad_enabled():
            self.ids.extend(s.ids for s in sequences)
            self.targets.extend(batch.targets.tolist())
        return batch

    def needs_whole(self, model: Any, batch: Any) -> bool:
        self.ids.clear()  # what was collated until now was for this trial, and is not learned
        self.targets.clear()
        return False


def test_the_loss_falls_and_every_figure_is_in_training_json(tmp_path: Path) -> None:
    reports: list[Progress] = []
    done = train(FAST.model_copy(update={"epochs": 6}), TINY, EXAMPLES, tmp_path / "out", progress=reports.append)
    assert done.losses[-1] < done.losses[0] - 1
    assert done == Trained(tmp_path / "out", [6], 6, done.losses, [], 0)
    assert {path.name for path in done.out.iterdir()} == {"epoch-6", "training.json"}
    about = json.loads((done.out / "training.json").read_text())
    assert about["losses"] == done.losses
    assert about["recipe"]["epochs"] == 6
    assert about["examples"] == 24
    assert about["base"]["hidden"] == 16
    assert [r.epoch for r in reports] == sorted(r.epoch for r in reports)
    assert reports[-1].step == reports[-1].steps == 6 * 3
    assert reports[-1].loss == done.losses[-1]


def test_training_from_a_checkpoint_goes_on_from_its_loss(tmp_path: Path) -> None:
    first = train(FAST.model_copy(update={"epochs": 6}), TINY, EXAMPLES, tmp_path / "one")
    gentle = Recipe(epochs=1, learning_rate=1e-6)
    second = train(gentle, first.out / "epoch-6", EXAMPLES, tmp_path / "two")
    assert abs(second.losses[0] - first.losses[-1]) < 0.3
    assert weights(second.out / "epoch-1") != weights(first.out / "epoch-6")


def test_repeats_show_an_example_that_often_in_every_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(monkeypatch)
    examples = [Example("", "first text"), Example("", "second text", repeats=3)]
    train(FAST, TINY, examples, tmp_path / "out", vocabulary=TEXTS)
    assert sorted(Counter(map(tuple, watch.ids)).values()) == [2, 6]


def test_held_out_examples_are_never_trained_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # S2: validation rows are no members; whoever labels members can ask `held_out`.
    recipe = FAST.model_copy(update={"validation": 0.25})
    watch = Watch(monkeypatch)
    done = train(recipe, TINY, EXAMPLES, tmp_path / "out")
    tokens = Tokens(load(done.out / "epoch-2", "float32", "cpu").tokenizer)
    decoded = {tokens.decode(ids) for ids in watch.ids}
    held = held_out(recipe, EXAMPLES)
    assert decoded == {e.text for e, h in zip(EXAMPLES, held, strict=True) if not h}
    assert sum(held) == 6
    assert len(done.validation) == 2


def test_the_loss_is_taken_on_the_text_and_its_end_and_not_on_the_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch(monkeypatch)
    done = train(FAST.model_copy(update={"epochs": 1}), TINY, [Example("QUESTION:", " answer")], tmp_path / "out")
    tokenizer = load(done.out / "epoch-1", "float32", "cpu").tokenizer
    assert tokenizer.decode(watch.targets) == " answer" + tokenizer.eos_token


def test_conversations_are_rendered_with_the_chat_template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = TINY.tokenizer(TEXTS)
    tokenizer.chat_template = (
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
        "{% if add_generation_prompt %}bot: {% endif %}"
    )
    checkpoint.save(TINY.model(tokenizer, 0), tokenizer, tmp_path / "base")
    watch = Watch(monkeypatch)
    ask = json.dumps([{"role": "user", "content": "Hi"}])
    both = json.dumps([{"role": "user", "content": "Hi"}, {"role": "bot", "content": "Ho"}])
    examples = [Example(ask, "Hello", chat=True), Example("", both, chat=True), Example("", "plain")]
    train(Recipe(epochs=1), tmp_path / "base", examples, tmp_path / "out")
    texts = {tokenizer.decode(ids) for ids in watch.ids}
    assert texts == {"<s>user: Hi\nbot: Hello</s>", "<s>user: Hi\nbot: Ho\n", "<s>plain</s>"}


def test_training_stops_after_patience_epochs_without_a_lower_validation_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    course = iter([3.0, 2.0, 2.5, 2.4, 1.0])
    monkeypatch.setattr(loop._Run, "_validate", lambda self: next(course))
    recipe = Recipe(epochs=5, validation=0.2, patience=2, learning_rate=1e-3)
    done = train(recipe, TINY, EXAMPLES, tmp_path / "out")
    assert done.validation == [3.0, 2.0, 2.5, 2.4]
    assert (done.best, done.epochs) == (2, [4])


def test_overfitting_is_stopped_before_all_epochs_are_over(tmp_path: Path) -> None:
    # S11: random texts cannot be learned from other random texts, so the validation loss must turn.
    digits = [Example("", " ".join(str((i * 7919 + j * j * 104729) % 9973) for j in range(8))) for i in range(12)]
    recipe = Recipe(epochs=60, validation=0.3, patience=2, learning_rate=2e-2, batch_size=4, schedule="constant")
    done = train(recipe, TINY, digits, tmp_path / "out", vocabulary=TEXTS)
    assert len(done.losses) < 60
    assert done.best == len(done.losses) - 2
    assert done.validation[done.best - 1] == min(done.validation)


@pytest.mark.parametrize(("keep", "written"), [("every", [1, 2, 3, 4]), ("last", [4]), ("best", [2])])
def test_the_epochs_asked_for_are_kept(
    keep: str, written: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    course = iter([3.0, 2.0, 2.5, 2.4])
    monkeypatch.setattr(loop._Run, "_validate", lambda self: next(course))
    done = train(Recipe(epochs=4, validation=0.2, keep=keep), TINY, EXAMPLES, tmp_path / "out")
    assert done.epochs == written
    assert sorted(p.name for p in done.out.glob("epoch-*")) == [f"epoch-{epoch}" for epoch in written]


@pytest.mark.parametrize("shape", ["gpt2", "opt"])
def test_two_runs_write_the_same_bytes_and_leave_torch_as_it_was(shape: str, tmp_path: Path) -> None:
    architecture = TINY.model_copy(update={"shape": shape})
    recipe = FAST.model_copy(update={"dropout": 0.2, "validation": 0.2})
    for before in (1, 2):
        torch.manual_seed(before)
        state, threads = torch.get_rng_state(), torch.get_num_threads()
        with torch.no_grad():
            train(recipe, architecture, EXAMPLES, tmp_path / str(before))
        assert torch.equal(torch.get_rng_state(), state)
        assert torch.get_num_threads() == threads
    assert weights(tmp_path / "1/epoch-2") == weights(tmp_path / "2/epoch-2")
    other = recipe.model_copy(update={"seed": 1})
    train(other, architecture, EXAMPLES, tmp_path / "3")
    assert weights(tmp_path / "1/epoch-2") != weights(tmp_path / "3/epoch-2")


@pytest.mark.parametrize("shape", ["gpt2", "llama", "opt"])
def test_dropout_reaches_every_shape_and_stays_out_of_the_checkpoint(shape: str, tmp_path: Path) -> None:
    architecture = TINY.model_copy(update={"shape": shape})
    once = FAST.model_copy(update={"epochs": 1})
    plain = train(once, architecture, EXAMPLES, tmp_path / "plain")
    dropped = train(once.model_copy(update={"dropout": 0.5}), architecture, EXAMPLES, tmp_path / "dropped")
    assert dropped.losses != plain.losses
    configs = [(done.out / "epoch-1/config.json").read_text() for done in (plain, dropped)]
    assert configs[0] == configs[1]


def test_progress_does_not_change_what_is_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(FAST, TINY, EXAMPLES, tmp_path / "quiet")
    monkeypatch.setattr(loop, "_REPORT_SECONDS", 0.0)
    reports: list[Progress] = []
    train(FAST, TINY, EXAMPLES, tmp_path / "loud", progress=reports.append)
    assert [r.step for r in reports] == [1, 2, 3, 4, 5, 6]
    assert weights(tmp_path / "quiet/epoch-2") == weights(tmp_path / "loud/epoch-2")


def test_weight_decay_spares_norms_and_biases() -> None:
    model = Architecture(shape="gpt2", hidden=16, layers=1, heads=2, vocabulary=300).model(TINY.tokenizer(TEXTS), 0)
    optimizer = loop._adamw(Recipe(weight_decay=0.5), model, "cpu")
    names = {id(p): name for name, p in model.named_parameters()}
    decays = {names[id(p)]: group["weight_decay"] for group in optimizer.param_groups for p in group["params"]}
    assert set(decays) == set(names.values())
    assert all(decay == (0.0 if "ln_" in name or name.endswith("bias") else 0.5) for name, decay in decays.items())


def test_texts_longer_than_the_context_are_cut_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(monkeypatch)
    examples = [*EXAMPLES[:3], Example("", "x7" * 200), Example("y8" * 200, "the end")]
    done = train(FAST, TINY, examples, tmp_path / "out", vocabulary=TEXTS)
    assert done.cut == 2
    assert max(len(ids) for ids in watch.ids) == 64
    decoded = [Tokens(load(done.out / "epoch-2", "float32", "cpu").tokenizer).decode(ids) for ids in watch.ids]
    assert any(text.endswith("y8the end") for text in decoded)  # a long context gives way to its text


def test_a_checkpoint_opens_as_an_ordinary_model_with_the_loss_it_was_trained_to(tmp_path: Path) -> None:
    recipe = Recipe(epochs=40, learning_rate=2e-2, batch_size=2)
    done = train(recipe, TINY, EXAMPLES[:2], tmp_path / "out")
    folder = done.out / "epoch-40"
    assert not list(folder.rglob("*.bin"))
    learned, strange = (loss_of(folder, text) for text in (TEXTS[0], "Hello zebra, 9 quick jumps!"))
    assert learned == pytest.approx(done.losses[-1], abs=0.2)
    assert learned < strange - 2


@pytest.mark.parametrize(
    ("examples", "what"), [(EXAMPLES, "The loss is (nan|inf) by step 3 of 3"), (EXAMPLES[:8], "Some weights are")]
)
def test_divergence_is_explained_and_leaves_nothing_behind(examples: list[Example], what: str, tmp_path: Path) -> None:
    with pytest.raises(ModelFailed, match=what + r".* learning rate is too high \(it is 1e\+39"):
        train(Recipe(learning_rate=1e39, epochs=1, batch_size=8), TINY, examples, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_training_leaves_no_folder_and_a_killed_one_is_begun_again(tmp_path: Path) -> None:
    def interrupt(report: Progress) -> None:
        if report.epoch == 2:
            raise KeyboardInterrupt

    every = FAST.model_copy(update={"keep": "every"})
    with pytest.raises(KeyboardInterrupt):
        train(every, TINY, EXAMPLES, tmp_path / "out", progress=interrupt)
    assert list(tmp_path.iterdir()) == []
    leftover = tmp_path / ".out.partial/epoch-9"
    leftover.mkdir(parents=True)
    done = train(every, TINY, EXAMPLES, tmp_path / "out")
    assert {path.name for path in done.out.iterdir()} == {"epoch-1", "epoch-2", "training.json"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_finished_training_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(BadInput, match="already a finished training"):
        train(FAST, TINY, EXAMPLES, tmp_path / "out")


@pytest.mark.parametrize("examples", [[], [Example("", "")], [Example("", "a", repeats=0)]])
def test_examples_without_anything_to_learn_are_refused(examples: list[Example], tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="needs examples"):
        train(FAST, TINY, examples, tmp_path / "out")


@pytest.mark.parametrize(("precision", "half"), [("auto", False), ("float32", False), ("bfloat16", True)])
def test_precision_is_that_of_a_step_and_weights_stay_in_float32(
    precision: str, half: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The arithmetic itself is not run: virtual machines that announce AMX and forbid it die of it.
    seen: set[tuple[bool, torch.dtype, torch.dtype]] = set()

    def watched(model: Any, batch: Any, whole: bool) -> Any:
        enabled, dtype = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
        seen.add((enabled, dtype, next(model.parameters()).dtype))
        with torch.autocast("cpu", enabled=False):
            return loss(model, batch, whole)

    monkeypatch.setattr(loop, "loss", watched)
    train(FAST.model_copy(update={"precision": precision, "validation": 0.2}), TINY, EXAMPLES, tmp_path / "out")
    assert {(enabled, weight) for enabled, _, weight in seen} == {(half, torch.float32)}
    assert not half or {dtype for _, dtype, _ in seen} == {torch.bfloat16}
