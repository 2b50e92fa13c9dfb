"""Training on a GPU: the CPU's first step, and less memory by micro batches and by layers that are computed again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tiny
import torch
from datasets import Dataset
from safetensors.torch import load_file
from torch.optim.optimizer import register_optimizer_step_pre_hook

from hfcf.core.model import Model
from hfcf.training.classifier import train_texts_classifier
from hfcf.training.trainer import Hyperparameters

On = Callable[[str, Callable[[], Any]], Any]
TEXTS = list(dict.fromkeys(tiny.texts()))[:96]


@pytest.fixture
def gradients() -> Iterator[list[dict[str, torch.Tensor]]]:
    """The gradients of each step of an optimiser, by shape and place."""
    steps: list[dict[str, torch.Tensor]] = []

    def keep(optimiser: Any, *_: Any) -> None:
        weights = [p for group in optimiser.param_groups for p in group["params"] if p.grad is not None]
        steps.append({f"{i}": p.grad.detach().cpu() for i, p in enumerate(weights)} | {"device": weights[0].device})

    handle = register_optimizer_step_pre_hook(keep)
    yield steps
    handle.remove()


@pytest.fixture
def start(tiny_model: Callable[[str], str], tmp_path: Path) -> Model:
    """A tiny classifier without dropout."""
    folder = tmp_path / "start"
    shutil.copytree(tiny_model("classifier"), folder)
    config = json.loads((folder / "config.json").read_text())
    none = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (folder / "config.json").write_text(json.dumps({**config, **none}))
    return Model(str(folder))


def train(start: Model, out: Path, texts: list[str] = TEXTS, **settings: Any) -> Path:
    settings = {"max_length": 64, "batch_size": 32, "epochs": 1.0, "learning_rate": 1e-4, **settings}
    rows = Dataset.from_dict({"text": texts, "label": ["SUPPORTS", "REFUTES"] * (len(texts) // 2)})
    train_texts_classifier(rows, Hyperparameters(model=start, **settings), out, labels=["SUPPORTS", "REFUTES"], column="text")
    return out


@pytest.mark.parametrize(
    "settings", [{}, {"micro_batch_size": 8}, {"gradient_checkpointing": True}], ids=["whole", "parts", "again"]
)
def test_the_first_step_is_that_of_the_cpu(
    settings: dict[str, Any], start: Model, tmp_path: Path, gradients: list[Any], on: On
) -> None:
    on("cpu", lambda: train(start, tmp_path / "cpu"))
    expected = gradients[0]
    assert expected.pop("device").type == "cpu"
    gradients.clear()
    train(start, tmp_path / "gpu", **settings)
    assert len(gradients) == 3
    found = gradients[0]
    assert found.pop("device").type == "cuda"
    largest = max(value.abs().max().item() for value in expected.values())
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-3, atol=1e-4 * largest)


def test_mixed_precision_computes_in_bfloat16_and_stores_float32(
    start: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds, linear = set(), torch.nn.functional.linear

    def watched(*args: Any, **kwargs: Any) -> torch.Tensor:
        made = linear(*args, **kwargs)
        kinds.add(made.dtype)
        return made

    monkeypatch.setattr(torch.nn.functional, "linear", watched)
    train(start, tmp_path / "mixed", bf16=True)
    assert torch.bfloat16 in kinds
    weights = load_file(tmp_path / "mixed" / "model.safetensors").values()
    assert {weight.dtype for weight in weights} == {torch.float32}
    assert all(weight.isfinite().all() for weight in weights)


def test_parts_and_layers_that_are_computed_again_take_less_memory(start: Model, tmp_path: Path) -> None:
    long = [" ".join(TEXTS[i : i + 6]) for i in range(64)]
    peaks = {}
    for name, settings in {
        "first": {}, "whole": {}, "parts": {"micro_batch_size": 8}, "again": {"gradient_checkpointing": True},
    }.items():  # fmt: skip
        torch.cuda.empty_cache()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        train(start, tmp_path / name, long, max_length=256, batch_size=64, **settings)
        peaks[name] = torch.cuda.max_memory_allocated() - before
    assert peaks["parts"] < 0.5 * peaks["whole"], peaks
    assert peaks["again"] < 0.8 * peaks["whole"], peaks
