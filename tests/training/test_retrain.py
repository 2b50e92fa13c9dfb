"""A folder that is trained into again holds, and is read as, the new model alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from hfcf.core.model import Model
from hfcf.core.task import get_task
from hfcf.engines.classifier import Classifier
from hfcf.tasks.verification import REFUTES, SUPPORTS
from hfcf.training.trainer import Hyperparameters, trained_model
from hfcf.training.verifier import train_verifier

PAIRS = [["Claim 1.", "Piece 2."], ["Claim 3.", "Piece 4."]]
ADAPTER = {"adapter_model.safetensors", "adapter_config.json"}
STORED = {"lowrank": ADAPTER, "lora": ADAPTER, "full": {"model.safetensors"}}

pytestmark = [
    pytest.mark.usefixtures("on_cpu"),
    pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning"),  # PEFT asks for it
]


def answers(base: str, out: Path, tune: str) -> list[Any]:
    """Of a verifier that is trained into `out`."""
    made = [
        {
            "id": f"{i}", "claim": f"Claim {i}.", "evidence": [{"title": "", "text": f"Piece {i}."}], "group_id": f"{i}",
            "label": (SUPPORTS, REFUTES)[i % 2], "corpus": "made", "split": "train",
        }
        for i in range(4)
    ]  # fmt: skip
    hp = Hyperparameters(model=Model(base), tune=tune, rank=2, epochs=1, learning_rate=1e-2, max_length=48)
    train_verifier(Dataset.from_list(made, features=get_task("verification").features), hp, out)
    return Classifier(model=trained_model(hp, out), max_length=48).run(PAIRS)


def test_training_again_leaves_nothing_of_the_older_weights(tiny_model: Callable[[str], str], tmp_path: Path) -> None:
    base, out = tiny_model("classifier"), tmp_path / "out"
    out.mkdir()
    (out / "mine.safetensors").write_bytes(b"mine")
    fresh = {tune: answers(base, tmp_path / tune, tune) for tune in STORED}
    for tune in ("lowrank", "lora", "full", "lowrank"):
        assert answers(base, out, tune) == fresh[tune], tune
        weights = {path.name for path in out.iterdir() if path.suffix == ".safetensors" or path.name == "adapter_config.json"}
        assert weights == STORED[tune] | {"mine.safetensors"}
