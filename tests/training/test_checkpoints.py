"""A training that is cut off goes on from its last checkpoint, ends as if it had not been, and never on other data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from test_relation import MADE, rows
from transformers import Trainer

from hfcf.core.model import Model, folder_hash
from hfcf.systems.ccg.indicator import COLUMNS, _train
from hfcf.training import relation
from hfcf.training.checkpoints import CheckpointError
from hfcf.training.generator import train_texts
from hfcf.training.model_cache import stored_model
from hfcf.training.relation import train_relation
from hfcf.training.trainer import Hyperparameters

Tiny = Callable[[str], str]

pytestmark = pytest.mark.usefixtures("on_cpu")


@pytest.fixture
def hp(tiny_model: Tiny) -> Hyperparameters:
    return Hyperparameters(model=Model(tiny_model("rbert")), max_length=32, batch_size=12, learning_rate=3e-3, epochs=3)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps that trainings make; each may be saved, and number -1 as the next one to come cuts the training off."""
    made: list[int] = []
    original = Trainer.training_step

    def step(self: Trainer, *args: Any, **kwargs: Any) -> Any:
        if made and made[0] < 0:
            made[0] += 1
            if not made[0]:
                made.pop(0)
                raise KeyboardInterrupt
        made.append(self.state.global_step)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(Trainer, "training_step", step)
    return made


def cut(steps: list[int], after: int, train: Callable[[], object]) -> None:
    """Cut a training off in the step after so many."""
    steps[:] = [-after - 1]
    with pytest.raises(KeyboardInterrupt):
        train()
    steps.clear()


@pytest.mark.parametrize("after", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (3, 7))])
def test_it_goes_on_from_the_last_step(
    hp: Hyperparameters, after: int, steps: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scored(gold: Any, predicted: Any) -> float:
        return [0.5, 0.9, 0.7][(steps[-1] + 1) // 3 - 1]

    monkeypatch.setattr(relation, "micro_f1", scored)
    dev = rows(MADE[:5])
    assert train_relation(rows(), hp, tmp_path / "whole", dev=dev) == 2
    assert steps == [*range(9)]
    monkeypatch.setenv("HFCF_CHECKPOINT_SECONDS", "0")
    monkeypatch.setattr("hfcf.training.checkpoints._SHARE", 1e9)  # however slow the disk
    cut(steps, after, lambda: train_relation(rows(), hp, tmp_path / "cut", dev=dev))
    assert train_relation(rows(), hp, tmp_path / "cut", dev=dev) == 2
    assert steps == [*range(after, 9)]
    assert folder_hash(str(tmp_path / "cut")) == folder_hash(str(tmp_path / "whole"))
    assert not (tmp_path / "cut" / "checkpoints").exists()


def test_the_order_of_the_epoch_in_which_it_was_cut_off_is_that_of_the_whole_one(
    tiny_model: Tiny, steps: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hp = Hyperparameters(model=Model(tiny_model("t5")), max_length=32, batch_size=2, learning_rate=1e-2, epochs=2)
    words = ["the", "film", "was", "made", "in", "old", "city", "war"]
    pairs = {"source": [" ".join(words[: i % 7 + 1]) for i in range(12)], "target": [words[i % 8] for i in range(12)]}
    train_texts(Dataset.from_dict(pairs), hp, tmp_path / "whole", checkpoints=False)
    monkeypatch.setenv("HFCF_CHECKPOINT_SECONDS", "0")
    monkeypatch.setattr("hfcf.training.checkpoints._SHARE", 1e9)
    cut(steps, 8, lambda: train_texts(Dataset.from_dict(pairs), hp, tmp_path / "cut", checkpoints=False))
    train_texts(Dataset.from_dict(pairs), hp, tmp_path / "cut", checkpoints=False)
    assert steps == [8, 9, 10, 11]
    assert folder_hash(str(tmp_path / "cut")) == folder_hash(str(tmp_path / "whole"))


@pytest.mark.parametrize("damage", ["weights are gone", "weights are cut off", "the optimizer is gone"])
def test_a_checkpoint_that_is_not_whole_is_not_gone_on_from(
    hp: Hyperparameters, damage: str, steps: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HFCF_CHECKPOINT_SECONDS", "0")
    cut(steps, 2, lambda: train_relation(rows(), hp, tmp_path))
    (checkpoint,) = (tmp_path / "checkpoints").glob("checkpoint-*")
    (weights,) = checkpoint.glob("*.safetensors")
    if damage == "weights are cut off":
        weights.write_bytes(weights.read_bytes()[:-10])
    else:
        (weights if damage == "weights are gone" else checkpoint / "optimizer.pt").unlink()
    train_relation(rows(), hp, tmp_path)
    assert steps == [*range(9)]


@pytest.mark.parametrize("change", ["rows", "settings"])
def test_a_checkpoint_of_other_data_is_refused(
    hp: Hyperparameters, change: str, steps: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HFCF_CHECKPOINT_SECONDS", "0")
    cut(steps, 2, lambda: train_relation(rows(), hp, tmp_path))
    other = rows(MADE[::-1]) if change == "rows" else rows()
    with pytest.raises(CheckpointError, match="checkpoints"):
        train_relation(other, hp if change == "rows" else replace(hp, learning_rate=1e-3), tmp_path)
    assert not steps
    assert any((tmp_path / "checkpoints").glob("checkpoint-*"))


def test_ccgs_training_goes_on_and_is_stored_once(
    hp: Hyperparameters, steps: list[int], monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    monkeypatch.setenv("HFCF_CHECKPOINT_SECONDS", "0")
    monkeypatch.setattr("hfcf.training.checkpoints._SHARE", 1e9)
    part = [{column: row[column] for column in COLUMNS} for row in rows()]
    labels = sorted({row["label"] for row in part})
    cut(steps, 5, lambda: _train(part, hp, labels))
    digest = _train(part, hp, labels)
    assert steps == [5, 6, 7, 8]
    assert _train(part, hp, labels) == digest
    assert len(steps) == 4
    assert {path.name for path in (cache / "fitted").iterdir()} == {digest}
    cut_off = folder_hash(stored_model(digest).name)
    monkeypatch.setenv("HFCF_CACHE", str(cache / "another"))
    _train(part, hp, labels)
    assert folder_hash(stored_model(digest).name) == cut_off
