"""Batches are computed in parts, steps are counted, and a cut-off training ends as one that was not."""

from __future__ import annotations

import json
import math
import pickle
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import planted
import pytest
import test_open_reader
import test_relation
import test_train_reader
import test_training
import torch
from datasets import Dataset
from rich.console import Console
from safetensors.torch import load_file
from torch.optim.optimizer import register_optimizer_step_pre_hook
from transformers import AutoModelForSequenceClassification

from hfcf.cli import console
from hfcf.cli import models as cli
from hfcf.core import recipe
from hfcf.core.model import Model
from hfcf.corpora.passages import Passages
from hfcf.engines.retriever import Retriever
from hfcf.pipeline import train as pipeline
from hfcf.pipeline.train import plan_training
from hfcf.pipeline.training_recipes import parse_train
from hfcf.studies.compare.recipe import hyperparameters
from hfcf.systems.baselines.autocad import unlikelihood
from hfcf.systems.ccg.system import CCG
from hfcf.training import steps
from hfcf.training.classifier import train_texts_classifier
from hfcf.training.debias import Debias
from hfcf.training.explainer import train_explainer
from hfcf.training.generator import train_texts
from hfcf.training.masked_lm import train_masked_lm
from hfcf.training.open_domain import OpenHyperparameters
from hfcf.training.open_reader import train_open_reader
from hfcf.training.reader import train_reader
from hfcf.training.relation import train_relation
from hfcf.training.structures import train_graph_verifier
from hfcf.training.trainer import Hyperparameters
from hfcf.training.verifier import train_verifier

Tiny = Callable[[str], str]
LABELS = ["SUPPORTS", "REFUTES"]
# The texts differ in length, so that a mean over tokens is not the mean of means.
TEXTS = [f"film {n} was made in the {'old ' * (n % 5)}city" for n in range(12)]
TARGETS = [f"the city {'of the state ' * (n % 4)}" for n in range(12)]

pytestmark = pytest.mark.usefixtures("on_cpu")


def verify(hp: Hyperparameters, out: Path, debias: Debias | None = None) -> None:
    train_verifier(test_training.rows(12, group=2), hp, out, labels=LABELS, debias=debias)


def classify(hp: Hyperparameters, out: Path) -> None:
    rows = Dataset.from_dict({"text": TEXTS, "label": LABELS * 6})
    train_texts_classifier(rows, hp, out, labels=LABELS, column="text")


def relate(hp: Hyperparameters, out: Path) -> None:
    train_relation(test_relation.rows(test_relation.MADE[:12]), hp, out)


def write(hp: Hyperparameters, out: Path) -> None:
    train_texts(Dataset.from_dict({"source": TEXTS, "target": TARGETS}), hp, out, prompt=" :")


def edit(hp: Hyperparameters, out: Path, shifted: bool) -> None:
    pairs = {"source": TEXTS, "target": TARGETS, "wrong": [int(n % 3 == 0) for n in range(12)]}
    loss = unlikelihood(0.7, shifted=shifted, end=3)
    train_texts(Dataset.from_dict(pairs), hp, out, prompt="{}", checkpoints=False, loss=loss)


def fill(hp: Hyperparameters, out: Path) -> None:
    train_masked_lm(TEXTS, hp, out, share=0.3)


def link(hp: Hyperparameters, out: Path) -> None:
    requests = [[text, [f"it is {n}", "the city is old"][: 1 + n % 2], None] for n, text in enumerate(TEXTS)]
    train_graph_verifier(requests, LABELS * 6, hp, out, labels=LABELS)


def read(hp: Hyperparameters, out: Path) -> None:
    train_reader(test_train_reader.rows(), hp, out)


def read_all(hp: Hyperparameters, out: Path, method: str) -> None:
    if method == "dense":
        pytest.importorskip("faiss")
    retriever = Retriever(passages=Passages.of(Dataset.from_list(test_open_reader.PASSAGES)), k=3, method="bm25")
    retriever = replace(retriever, method=method, model=hp.model) if method == "dense" else retriever
    settings = {name: value for name, value in vars(hp).items() if name not in ("batch_size", "micro_batch_size")}
    micro = hp.micro_batch_size and 1
    made = OpenHyperparameters(**settings, batch_size=2, micro_batch_size=micro, retriever=retriever, no_answer=0.7)
    train_open_reader(test_open_reader.rows(), made, out)


def explain(hp: Hyperparameters, out: Path) -> None:
    train_explainer(planted.rows(12, seed=3), hp, out)


class Kind(NamedTuple):
    model: str
    train: Callable[[Hyperparameters, Path], None]


KINDS = {
    "verifier": Kind("mlm", verify),
    "reweight": Kind("mlm", partial(verify, debias=Debias(kind="reweight", at_least=1))),
    "product of experts": Kind("mlm", partial(verify, debias=Debias(kind="poe", bias="ngrams", folds=2))),
    "text classifier": Kind("mlm", classify),
    "relation": Kind("rbert", relate),
    "seq2seq": Kind("t5", write),
    "decoder": Kind("gpt2", write),
    "contrastive seq2seq": Kind("t5", partial(edit, shifted=False)),
    "contrastive decoder": Kind("gpt2", partial(edit, shifted=True)),
    "masked_lm": Kind("mlm", fill),
    "graph": Kind("mlm", link),
    "reader": Kind("reader", read),
    "open reader": Kind("reader", partial(read_all, method="bm25")),
    "dense open reader": Kind("reader", partial(read_all, method="dense")),
    "explainer": Kind("verifier", explain),
}


@dataclass
class Watch:
    """The losses and gradients of the optimiser's steps; `stop` cuts the training off before that step."""

    losses: list[float] = field(default_factory=list)
    gradients: list[torch.Tensor] = field(default_factory=list)
    parts: list[int] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    stop: int = -1
    pending: list[float] = field(default_factory=list)

    def step(self, optimiser: Any, *_: Any) -> None:
        if len(self.losses) == self.stop:
            raise KeyboardInterrupt
        weights = [p for group in optimiser.param_groups for p in group["params"] if p.grad is not None]
        self.gradients.append(torch.cat([p.grad.detach().flatten() for p in weights]))
        self.rates.append(optimiser.param_groups[0]["lr"])
        self.losses.append(sum(self.pending))
        self.parts.append(len(self.pending))
        self.pending.clear()

    def take(self) -> Watch:
        taken = replace(self)
        self.losses, self.gradients, self.parts, self.rates, self.stop, self.pending = [], [], [], [], -1, []
        return taken


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    made = Watch()
    backward = torch.Tensor.backward

    def watched(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        made.pending.append(self.item())
        return backward(self, *args, **kwargs)

    monkeypatch.setattr(torch.Tensor, "backward", watched)
    monkeypatch.setattr(torch.nn.functional, "dropout", lambda values, *_, **__: values)  # R-BERT has its own
    # The explainer's gates draw in the order of the rows: without a draw, parts of a batch have the same gates.
    monkeypatch.setattr("hfcf.training.explainer.sample", torch.sigmoid)
    handle = register_optimizer_step_pre_hook(made.step)
    yield made
    handle.remove()


@pytest.fixture
def settings(tiny_model: Tiny, tmp_path: Path) -> Callable[..., Hyperparameters]:
    """Settings of a training from a tiny model without dropout."""

    def make(kind: str, **changes: Any) -> Hyperparameters:
        folder = tmp_path / "start" / kind
        if not folder.exists():
            shutil.copytree(tiny_model(kind), folder)
            config = json.loads((folder / "config.json").read_text())
            none = {name: 0.0 for name in ("hidden_dropout_prob", "attention_probs_dropout_prob") if name in config}
            (folder / "config.json").write_text(json.dumps({**config, **none}))
        common = {"max_length": 48, "batch_size": 4, "learning_rate": 1e-4, "epochs": 1.0}
        return Hyperparameters(model=Model(str(folder)), **common).replace(**changes)

    return make


def weights(out: Path) -> dict[str, torch.Tensor]:
    return {
        f"{path.relative_to(out)}:{name}": tensor.float()
        for path in sorted(out.rglob("*.safetensors"))
        for name, tensor in load_file(path).items()
    }


def assert_same(first: Watch, second: Watch) -> None:
    assert second.losses == pytest.approx(first.losses, rel=1e-5, abs=1e-6)
    for one, other in zip(first.gradients, second.gradients, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-3, atol=1e-4 * one.abs().max().item())


@pytest.mark.parametrize("kind", ["verifier", "text classifier", "relation"])
def test_parts_have_the_mean_loss_of_the_batch(kind: str, settings: Callable[..., Any], watch: Watch, tmp_path: Path) -> None:
    model, train = KINDS[kind]
    train(settings(model), tmp_path / "whole")
    whole = watch.take()
    assert len(whole.losses) >= 2
    assert {*whole.parts} == {1}
    train(settings(model, micro_batch_size=2), tmp_path / "parts")
    parts = watch.take()
    assert {*parts.parts} == {2}
    assert_same(whole, parts)
    about = steps.read_steps(tmp_path / "parts")
    assert (about["steps"], about["micro_batch_size"], about["batch_size"]) == (len(parts.losses), 2, 4)


@pytest.mark.parametrize("kind", ["verifier", "relation", "seq2seq", "decoder", "reader", "open reader", "explainer"])
def test_layers_that_are_computed_again_have_the_same_loss(
    kind: str, settings: Callable[..., Any], watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, train = KINDS[kind]
    train(settings(model), tmp_path / "plain")
    plain = watch.take()
    again: list[Any] = []
    original = torch.utils.checkpoint.checkpoint
    for place in ("torch.utils.checkpoint.checkpoint", "transformers.modeling_utils.checkpoint"):
        monkeypatch.setattr(place, lambda *a, **k: again.append(k["use_reentrant"]) or original(*a, **k))
    train(settings(model, gradient_checkpointing=True), tmp_path / "again")
    assert again
    assert not any(again)
    assert_same(plain, watch.take())


@pytest.mark.parametrize("kind", KINDS)
def test_a_training_has_as_many_steps_as_asked_and_resumes(
    kind: str, settings: Callable[..., Any], watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HFCF_CHECKPOINT_SECONDS", "0")
    monkeypatch.setattr("hfcf.training.checkpoints._SHARE", 1e9)  # however slow the disk
    model, train = KINDS[kind]
    hp = settings(model, max_steps=7, micro_batch_size=2, warmup=0.3)
    train(hp, tmp_path / "whole")
    whole = watch.take()
    assert len(whole.losses) == 7
    assert steps.read_steps(tmp_path / "whole")["steps"] == 7
    peak = whole.rates.index(max(whole.rates))
    assert 1 <= peak <= 3, "a warm-up over a share of the seven steps"
    assert 0 < whole.rates[-1] < 0.5 * whole.rates[peak], "and a decay to zero at the seventh"
    for after in (1, 3, 4) if kind == "verifier" else (4,):
        out = tmp_path / f"cut-{after}"
        watch.stop = after
        with pytest.raises(KeyboardInterrupt):
            train(hp, out)
        watch.take()
        train(hp, out)
        resumed = watch.take()
        # The explainer takes minutes, writes no checkpoints, and starts anew.
        assert len(resumed.losses) == (7 if kind == "explainer" else 7 - after)
        found = weights(out)
        for name, tensor in weights(tmp_path / "whole").items():
            torch.testing.assert_close(found[name], tensor, rtol=1e-4, atol=1e-5)


# --- recipes


@pytest.mark.parametrize("name", ["reader", "question_generator", "answer_generator", "decomposer"])
def test_rgfs_models_are_trained_for_the_papers_steps(name: str) -> None:
    paper = parse_train(recipe.read_recipe(recipe.find_recipe(f"train_{name}"))).hyperparameters()
    assert (paper.max_steps, paper.gradient_checkpointing) == (20_000, True)
    assert paper.batch_size % (paper.micro_batch_size or 0) == 0
    offline = parse_train(recipe.read_recipe(recipe.find_recipe(f"train_{name}"), ["preset=offline"])).hyperparameters()
    assert (offline.max_steps, offline.micro_batch_size, offline.gradient_checkpointing) == (None, None, False)


def test_a_recipe_has_one_length() -> None:
    path = recipe.find_recipe("train_verifier")
    with pytest.raises(recipe.RecipeError, match=r"max_steps: 5 .*epochs: 3 "):
        parse_train(recipe.read_recipe(path, ["max_steps=5"]))
    assert parse_train(recipe.read_recipe(path, ["max_steps=5", "epochs=null"])).hyperparameters().max_steps == 5
    assert parse_train(recipe.read_recipe(path, ["max_steps=null"])).hyperparameters().epochs == 3
    with pytest.raises(recipe.RecipeError, match="epochs"):
        parse_train(recipe.read_recipe(path, ["epochs=null"]))
    with pytest.raises(recipe.RecipeError, match=r"max_steps .*1.* 0"):
        parse_train(recipe.read_recipe(path, ["epochs=null", "max_steps=0"])).hyperparameters()


def test_a_recipe_reports_its_steps(settings: Callable[..., Any], tmp_path: Path) -> None:
    changes = {"micro_batch_size": 2, "max_steps": 4, "baselines": False}
    content = test_training.recipe_of(tmp_path, settings("classifier").model.name, **changes)
    del content["epochs"]
    planned = plan_training(content)
    report = pipeline.train(content, tmp_path / "out")
    assert planned["rows"] == {"train": report["rows"]["train"], "held_out": report["rows"]["held_out"]}
    assert sum(planned["labels"].values()) == planned["rows"]["train"]
    assert set(planned["labels"]) == {"SUPPORTS", "REFUTES"}
    assert {name: planned[name] for name in ("steps", "exact", "batch_size", "micro_batch_size")} == {
        "steps": 4, "exact": True, "batch_size": 4, "micro_batch_size": 2
    }  # fmt: skip
    about = report["training"]
    assert about == {"steps": 4, "rows": about["rows"], "batch_size": 4, "micro_batch_size": 2}
    assert about["rows"] > planned["rows"]["train"], "NOT ENOUGH INFO rows are added"
    card = (tmp_path / "out" / "README.md").read_text()
    assert f"It made 4 steps of 4 inputs, 2 computed at a time; there were {about['rows']} inputs." in card
    assert "max_steps 4" in card
    assert "epochs" not in card


def test_the_dry_run_writes_nothing(
    tmp_path: Path, tiny_model: Tiny, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(json.dumps(test_training.recipe_of(tmp_path, tiny_model("classifier"))))
    before = {*tmp_path.iterdir()}
    monkeypatch.setattr(console, "out", Console(width=80))
    cli.train(str(path), dry_run=True)
    shown = capsys.readouterr().out
    train, steps_of_run = (int(re.search(pattern, shown)[1]) for pattern in (r"rows +(\d+) to train on", r"steps +about (\d+)"))
    assert steps_of_run == math.ceil(train / 4)
    assert {*tmp_path.iterdir()} == before
    with pytest.raises(ValueError, match="--out is missing"):
        cli.train(str(path))


def test_systems_train_for_steps() -> None:
    ccg = CCG.preset("offline").replace(editor_training={"batch_size": 4, "max_steps": 9, "micro_batch_size": 2})
    hp = ccg.values["editor_training"]
    assert (hp.max_steps, hp.micro_batch_size, hp.gradient_checkpointing) == (9, 2, False)


def test_every_arm_of_a_comparison_is_trained_for_as_many_steps() -> None:
    hp = hyperparameters({"model": "bert-base-uncased", "max_steps": 50, "micro_batch_size": 2}, "verifier")
    assert (hp.max_steps, hp.micro_batch_size) == (50, 2)
    assert {steps.count_steps(hp, rows) for rows in (100, 250)} == {50}
    with pytest.raises(recipe.RecipeError, match=r"verifier.*max_steps.*epochs"):
        hyperparameters({"model": "bert-base-uncased", "max_steps": 50, "epochs": 2}, "verifier")


# --- settings


def test_a_micro_batch_divides_the_batch() -> None:
    for size in (3, 8):
        with pytest.raises(ValueError, match=rf"micro_batch_size .*\(4\), got {size}"):
            Hyperparameters(model=Model("a"), micro_batch_size=size)
    for name in ("micro_batch_size", "max_steps"):
        with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
            Hyperparameters(model=Model("a"), **{name: 0})  # type: ignore[arg-type]


def test_a_model_that_can_not_compute_layers_again_is_named(tiny_model: Tiny) -> None:
    network = AutoModelForSequenceClassification.from_pretrained(tiny_model("classifier"))
    network.supports_gradient_checkpointing = False
    with (
        pytest.raises(ValueError, match=r"me/model \(BertForSequenceClassification\)"),
        steps.recomputed(network, "me/model", True),
    ):
        pass
    with pytest.raises(ValueError, match=r"me/model \(Linear\)"), steps.recomputed(torch.nn.Linear(1, 1), "me/model", True):
        pass
    with steps.recomputed(torch.nn.Linear(1, 1), "me/model", False):
        pass


def test_settings_are_pickled_whole() -> None:
    plain = Hyperparameters(model=Model("a"))
    for changed in (plain, replace(plain, max_steps=3, micro_batch_size=2, gradient_checkpointing=True)):
        assert pickle.loads(pickle.dumps(changed)) == changed


def test_a_training_has_one_length() -> None:
    with pytest.raises(ValueError, match=r"max_steps=7 .*epochs=10 .*hp\.replace"):
        Hyperparameters(model=Model("a"), max_steps=7, epochs=10)
    with pytest.raises(ValueError, match=r"max_steps=9 .*epochs=2 "):
        CCG.preset("offline").replace(editor_training={"model": "offline:t5", "max_steps": 9, "epochs": 2})
    with pytest.raises(ValueError, match=r"max_steps=7 .*epochs=10 "):
        replace(Hyperparameters(model=Model("a"), epochs=10), max_steps=7)
    changed = Hyperparameters(model=Model("a"), epochs=10).replace(max_steps=7)
    assert (changed.max_steps, changed.epochs, changed.replace(epochs=4).max_steps) == (7, 3.0, None)
    assert steps.count_steps(Hyperparameters(model=Model("a"), max_steps=7), 100) == 7


def test_at_least_so_many_steps() -> None:
    hp = Hyperparameters(model=Model("a"), batch_size=4, epochs=1)
    assert steps.count_steps(replace(hp, **steps.with_steps(hp, 10, 8)), 8) == 10
    counted = hp.replace(max_steps=7)
    assert steps.with_steps(counted, 10, 8) == {"max_steps": 10}
    assert steps.with_steps(counted, 5, 8) == {"max_steps": 7}
