"""A temperature on held-out rows: what it does to probabilities, and that every stored form holds it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import own_models
import pytest
from datasets import Dataset

from hfcf.core.model import Model
from hfcf.core.recipe import RecipeError
from hfcf.core.task import get_task
from hfcf.engines.classifier import Classifier, choose
from hfcf.pipeline.train import train
from hfcf.pipeline.training_recipes import parse_train
from hfcf.tasks.verification import LABELS
from hfcf.training.calibration import calibrate, calibration_error, divide_logits, fit_temperature, log_loss
from hfcf.training.trainer import Hyperparameters, trained_model
from hfcf.training.verifier import train_verifier

PAIRS = [["Claim 1.", "Piece 2."], ["The film is from Rome.", "A film of 1994."], ["He died in 1970.", "He was born in 1921."]]

pytestmark = [
    pytest.mark.usefixtures("on_cpu"),
    pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning"),  # PEFT asks for it
]


def rows(number: int, labels: tuple[str, ...] = LABELS) -> Dataset:
    made = [
        {
            "id": f"{i}", "claim": f"Claim {i} of Rome.", "evidence": [{"title": "", "text": f"Piece {i * i}."}],
            "group_id": f"{i // 2}", "label": labels[i % len(labels)], "corpus": "made", "split": "train",
        }
        for i in range(number)
    ]  # fmt: skip
    return Dataset.from_list(made, features=get_task("verification").features)


def said_by(model: Model, number: int) -> Dataset:
    """Rows with the model's own labels, but for every third: a model that is right two times of three, and too certain."""
    ds = rows(number)
    answers = Classifier(model=model, max_length=48).run([[row["claim"], row["evidence"][0]["text"]] for row in ds])
    predicted = [choose(answer, LABELS) for answer in answers]
    labels = [LABELS[(LABELS.index(label) + (i % 3 == 0)) % 3] for i, label in enumerate(predicted)]
    return ds.remove_columns("label").add_column("label", labels)


def softmax(logits: Any) -> Any:
    powers = np.exp(logits)
    return powers / powers.sum(-1, keepdims=True)


def test_the_temperature_that_made_labels_is_found() -> None:
    draw = np.random.default_rng(1)
    logits = draw.normal(size=(4000, 3)) * 2
    gold = [int(draw.choice(3, p=one)) for one in softmax(logits)]
    assert fit_temperature(logits * 3, gold) == pytest.approx(3, rel=0.1)
    assert fit_temperature(logits / 2, gold) == pytest.approx(0.5, rel=0.1)
    assert calibration_error(softmax(logits), gold) < 0.03 < calibration_error(softmax(logits * 3), gold)
    assert log_loss(softmax(logits), gold) < log_loss(softmax(logits * 3), gold)


def test_the_error_is_that_of_equal_bins() -> None:
    probabilities = np.array([[0.95, 0.05], [0.95, 0.05], [0.55, 0.45], [0.45, 0.55]])
    # Both rows at 0.95 right: a gap of 0.05; of those at 0.55 one right: 0.05.
    assert calibration_error(probabilities, [0, 0, 0, 0]) == pytest.approx(0.05)
    assert calibration_error(np.array([[1.0, 0.0]]), [1]) == 1.0


@pytest.mark.parametrize(("tune", "start"), [("full", "classifier"), ("lora", "classifier"), ("lora", "base"), ("lowrank", "base")])
def test_every_stored_form_holds_the_temperature(tiny_model: Callable[[str], str], tmp_path: Path, tune: str, start: str) -> None:
    """`start`: a model with the three classes already, whose head is tuned; or one whose head is new."""
    if start == "base":
        network, tokenizer = own_models.bert(2)
        network.bert.save_pretrained(tmp_path / "base")
        tokenizer.save_pretrained(tmp_path / "base")
    base = tiny_model("classifier") if start == "classifier" else str(tmp_path / "base")
    hp = Hyperparameters(model=Model(base), tune=tune, rank=2, epochs=1, learning_rate=1e-2, max_length=48)
    out = tmp_path / "out"
    train_verifier(rows(6), hp, out)
    model = trained_model(hp, out)
    before = Classifier(model=model, max_length=48).run(PAIRS)
    divide_logits(model, out, 2.0)
    after = Classifier(model=model, max_length=48).run(PAIRS)
    for one, other in zip(before, after, strict=True):
        assert choose(one, LABELS) == choose(other, LABELS)
        logits = np.log(np.maximum([one[label] for label in LABELS], 1e-6))
        if min(one.values()) > 1e-3:  # else rounding moves the logarithm
            assert [other[label] for label in LABELS] == pytest.approx(softmax(logits / 2).tolist(), abs=3e-3)
        assert max(other.values()) < max(one.values())


@pytest.mark.parametrize("architecture", ["bart", "gpt2"])
def test_heads_of_other_architectures(architecture: str, tmp_path: Path) -> None:
    folder = own_models.save(tmp_path / "m", architecture, LABELS, (0, 1, 2), hfcf_inputs="claim-evidence")
    model = Model(folder)
    divide_logits(model, Path(folder), 10.0)  # else some probabilities round to 0
    before = Classifier(model=model, max_length=48).run(PAIRS)
    divide_logits(model, Path(folder), 4.0)
    after = Classifier(model=model, max_length=48).run(PAIRS)
    for one, other in zip(before, after, strict=True):
        powers = {label: one[label] ** 0.25 for label in LABELS}
        assert other == pytest.approx({label: power / sum(powers.values()) for label, power in powers.items()}, abs=2e-3)


def test_calibration_on_rows_that_the_temperature_was_not_fitted_on(tiny_model: Callable[[str], str], tmp_path: Path) -> None:
    hp = Hyperparameters(model=Model(tiny_model("classifier")), epochs=1, learning_rate=1e-6, max_length=48)
    train_verifier(rows(3), hp, tmp_path)
    model = trained_model(hp, tmp_path)
    held_out = said_by(model, 60)
    report = calibrate(model, tmp_path, held_out, max_length=48)
    assert report["rows"] == 60
    assert report["temperature"] > 1
    assert report["ECE after"] < report["ECE before"]
    assert report["NLL after"] < report["NLL before"]
    again = calibrate(model, tmp_path, held_out, max_length=48)
    assert again["temperature"] == pytest.approx(1, abs=0.05)
    assert again["NLL before"] <= report["NLL after"] + 0.01  # fitted on all rows


def test_rows_that_fit_no_temperature_change_nothing(
    tiny_model: Callable[[str], str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hp = Hyperparameters(model=Model(tiny_model("classifier")), epochs=1, max_length=48)
    train_verifier(rows(3), hp, tmp_path)
    model, ds = trained_model(hp, tmp_path), rows(12)
    pairs = [[row["claim"], row["evidence"][0]["text"]] for row in ds]
    answers = Classifier(model=model, max_length=48).run(pairs)
    right = ds.remove_columns("label").add_column("label", [choose(answer, LABELS) for answer in answers])
    weights = (tmp_path / "model.safetensors").read_bytes()
    with caplog.at_level(logging.WARNING):
        report = calibrate(model, tmp_path, right, max_length=48)
    assert (report["temperature"], report["ECE after"]) == (1.0, report["ECE before"])
    assert "is not calibrated: its 12 held-out rows fit no temperature" in caplog.text
    assert (tmp_path / "model.safetensors").read_bytes() == weights


def test_what_can_not_be_calibrated(tiny_model: Callable[[str], str], tmp_path: Path) -> None:
    model = Model(tiny_model("classifier"))
    with pytest.raises(ValueError, match="calibrate: 0 "):
        calibrate(model, Path(model.name), rows(2).select([]), max_length=48)
    with pytest.raises(ValueError, match="MAYBE"):
        calibrate(model, Path(model.name), rows(4, ("MAYBE",)), max_length=48)
    with pytest.raises(ValueError, match=r"classifier\.bias, classifier\.weight"):
        divide_logits(model, tmp_path, 2.0)
    content = {"train": "verifier", "model": "offline:minilm", "data": [{"corpus": "fever"}], "calibrate": True}
    with pytest.raises(RecipeError, match=r"calibrate.*held_out"):
        parse_train(content)
    assert parse_train({**content, "held_out": 0.1}).calibrate  # type: ignore[attr-defined]


def own_files(folder: Path, ds: Dataset) -> dict[str, Any]:
    lines = [
        json.dumps({"id": row["id"], "group_id": row["group_id"], "claim": row["claim"], "evidence": row["evidence"][0]["text"],
                    "label": row["label"]})
        for row in ds
    ]  # fmt: skip
    (folder / "rows.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return {"corpus": "jsonl", "data_files": "rows.jsonl"}


def test_a_recipe_calibrates_and_says_so(tiny_model: Callable[[str], str], tmp_path: Path) -> None:
    source = own_files(tmp_path, said_by(Model(tiny_model("classifier")), 80))
    recipe = {
        "train": "verifier", "model": tiny_model("classifier"), "data": [source], "data_dir": str(tmp_path), "held_out": 0.4,
        "epochs": 1, "learning_rate": 1e-6, "max_length": 48, "tune": "lowrank", "rank": 2, "calibrate": True,
    }  # fmt: skip
    report = train(recipe, tmp_path / "one")
    found = report["scores"]["calibration"]
    assert found["rows"] == report["rows"]["held_out"]
    assert found["ECE after"] < found["ECE before"]
    card = (tmp_path / "one" / "README.md").read_text(encoding="utf-8")
    assert f"| calibration | rows {found['rows']}; temperature {found['temperature']}; ECE before {found['ECE before']};" in card
    assert f"fitted on the {found['rows']} held-out rows" in card
    plain = train({**recipe, "calibrate": False}, tmp_path / "two")
    assert "calibration" not in plain["scores"]
    assert "are not calibrated" in (tmp_path / "two" / "README.md").read_text(encoding="utf-8")


def test_nothing_is_trained_when_no_row_is_held_out(tiny_model: Callable[[str], str], tmp_path: Path) -> None:
    recipe = {
        "train": "verifier", "model": tiny_model("classifier"), "data": [own_files(tmp_path, rows(4))], "data_dir": str(tmp_path),
        "held_out": 0.001, "calibrate": True,
    }  # fmt: skip
    with pytest.raises(ValueError, match="calibrate"):
        train(recipe, tmp_path / "out")
    assert not list((tmp_path / "out").glob("*.safetensors"))
