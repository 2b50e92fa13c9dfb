"""Folders of models as other libraries save them: what is recognised, and the line to type for the rest."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import tiny
from transformers import AutoModelForSequenceClassification, BertModel

from hfcf.core.model import Model, named
from hfcf.core.model_checks import check_weights
from hfcf.engines.classifier import Classifier
from hfcf.engines.networks import quiet_peft, quiet_weights
from hfcf.tasks.verification import LABELS

Tiny = Callable[[str], str]
PAIRS = [["The bridge stands in Rome.", "The bridge was built in 1901."], ["A short claim.", "One word."]]


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
    plain = BertModel.from_pretrained(tiny_model("classifier"))
    plain.config.id2label, plain.config.label2id = {0: "LABEL_0", 1: "LABEL_1"}, {"LABEL_0": 0, "LABEL_1": 1}
    plain.save_pretrained(encoder)
    tiny.tokenizer(pair=True).save_pretrained(encoder)
    folder = adapter(str(encoder), tmp_path / "peft", 3)
    with pytest.raises(ValueError, match=r"its classes are LABEL_0, LABEL_1, LABEL_2; what .* mean is not known"):
        answers(Model(folder))
    labels = {f"LABEL_{i}": label for i, label in enumerate(LABELS)}
    assert set(answers(Model(folder, labels=labels, inputs="claim-evidence"))[0]) == set(LABELS)


def test_an_adapter_without_its_base_says_what_to_type(tiny_model: Tiny, tmp_path: Path) -> None:
    folder = adapter(tiny_model("classifier"), tmp_path / "peft", 3, base_model_name_or_path=None)
    with pytest.raises(ValueError, match=rf'PEFT adapter, and its .* names no base: .*Model\("BASE", adapter="{folder}"\)'):
        check_weights(Model(folder), "MODEL")
    folder = adapter(tiny_model("classifier"), tmp_path / "gone", 3, base_model_name_or_path="/gone/base")
    with pytest.raises(ValueError, match=rf"MODEL: the base of the adapter {folder}: there is no folder /gone/base"):
        check_weights(Model(folder), "MODEL")
    patch = tmp_path / "patch"
    patch.mkdir()
    for name in ("patch.safetensors", "config.json"):
        (patch / name).write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match=rf"without its base: .*--adapter {patch}"):
        check_weights(Model(str(patch)), "MODEL")


def modules(folder: Path, model: str, *others: str) -> Path:
    """A folder of sentence-transformers with the weights in a subfolder."""
    shutil.copytree(model, folder / "0_Transformer")
    for name in others:
        (folder / name).mkdir()
        (folder / name / "model.safetensors").write_bytes(b"")
    paths = ["0_Transformer", *others]
    listed = [{"idx": i, "name": str(i), "path": path, "type": "sentence_transformers.models.X"} for i, path in enumerate(paths)]
    (folder / "modules.json").write_text(json.dumps(listed), encoding="utf-8")
    return folder


def test_a_cross_encoder_of_one_module_is_read(tiny_model: Tiny, tmp_path: Path) -> None:
    folder = modules(tmp_path / "cross", tiny_model("classifier"))
    model = Model(str(folder))
    check_weights(model, "MODEL")
    assert model.name == str(folder / "0_Transformer")
    assert answers(model) == answers(Model(tiny_model("classifier")))


def test_modules_that_are_no_classifier_are_refused(tiny_model: Tiny, tmp_path: Path) -> None:
    for folder in (
        modules(tmp_path / "more", tiny_model("classifier"), "1_Dense"),
        modules(tmp_path / "reader", tiny_model("reader")),
    ):
        with pytest.raises(ValueError, match="modules of sentence-transformers"):
            check_weights(Model(str(folder)), "MODEL")


def test_a_folder_without_configuration_says_what_is_missing(tiny_model: Tiny, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_model("classifier"), folder)
    (folder / "config.json").unlink()
    with pytest.raises(ValueError, match=rf'no config.json, .*: save .*model.config.save_pretrained\("{folder}"\)'):
        check_weights(Model(str(folder)), "MODEL")
    shutil.copytree(tiny_model("classifier"), tmp_path / "run" / "checkpoint-5")
    (tmp_path / "run" / "trainer_state.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match=r"give .*/run/checkpoint-5"):
        check_weights(Model(str(tmp_path / "run")), "MODEL")
