"""A model's folder of somebody else: its pickles are not read, and its code is not run, also where somebody could say yes."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
import tiny
import torch
from transformers import AutoModel, BertConfig, BertForSequenceClassification, BertModel

from hfcf.core.model import Model
from hfcf.core.model_checks import check_weights
from hfcf.core.pretrained import UnsafeModel, read_adapter, read_config, read_tokenizer, read_weights
from hfcf.engines.networks import load_network

CONFIG = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8, "vocab_size": 1500}
LORA = {"peft_type": "LORA", "r": 1, "target_modules": ["query"], "lora_alpha": 1, "base_model_name_or_path": None}


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, proof: Path) -> None:
        self.proof = proof

    def __reduce__(self) -> Any:
        return Path.touch, (self.proof,)


@pytest.fixture(autouse=True)
def somebody_says_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.input", lambda *_: "y")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    network = BertModel(BertConfig(**CONFIG))
    network.save_pretrained(tmp_path / "model")
    tiny.tokenizer(pair=True).save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_a_pickle_of_weights_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Trap(tmp_path / "proof")))
    for read in (lambda model: check_weights(model, "verifier"), lambda model: read_weights(AutoModel, model)):
        with pytest.raises(UnsafeModel, match=r"pytorch_model\.bin.*save_pretrained"):
            read(Model(str(folder)))
    assert not (tmp_path / "proof").exists()


def test_a_pickle_beside_safetensors_is_left_alone(folder: Path, tmp_path: Path) -> None:
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Trap(tmp_path / "proof")))
    assert read_weights(AutoModel, Model(str(folder))).config.hidden_size == 8
    assert not (tmp_path / "proof").exists()


def test_a_pickle_of_an_adapter_is_refused(folder: Path, tmp_path: Path) -> None:
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text(json.dumps(LORA))
    (adapter / "adapter_model.bin").write_bytes(pickle.dumps(Trap(tmp_path / "proof")))
    with pytest.raises(UnsafeModel, match=r"verifier.*adapter_model"):
        check_weights(Model(str(folder), adapter=str(adapter)), "verifier")
    with pytest.raises(UnsafeModel, match="adapter_model"):
        read_adapter(BertForSequenceClassification(BertConfig(**CONFIG)), adapter, "mine")
    assert not (tmp_path / "proof").exists()


@pytest.mark.parametrize("setting", [{"peft_type": "XLORA"}, {"megatron_config": {}, "megatron_core": "antigravity"}])
def test_an_adapter_that_names_code_or_further_weights_is_refused(folder: Path, tmp_path: Path, setting: dict[str, Any]) -> None:
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text(json.dumps({**LORA, **setting}))
    (adapter / "adapter_model.safetensors").write_bytes(b"")
    with pytest.raises(UnsafeModel, match=next(iter(setting))):
        read_adapter(BertForSequenceClassification(BertConfig(**CONFIG)), adapter, "mine")


def test_an_adapter_without_safetensors_is_not_looked_for_elsewhere(folder: Path, tmp_path: Path) -> None:
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text(json.dumps(LORA))
    with pytest.raises(UnsafeModel, match=r"has no adapter_model\.safetensors"):
        read_adapter(BertForSequenceClassification(BertConfig(**CONFIG)), adapter, "mine")


def test_code_of_a_folder_is_not_run_when_somebody_says_yes(folder: Path, tmp_path: Path) -> None:
    code = f"from pathlib import Path\nPath({str(tmp_path / 'proof')!r}).touch()\n"
    for name in ("configuration_mine", "modeling_mine", "tokenization_mine"):
        (folder / f"{name}.py").write_text(code)
    config = json.loads((folder / "config.json").read_text())
    mine = {"AutoConfig": "configuration_mine.C", "AutoModel": "modeling_mine.M", "AutoTokenizer": ["tokenization_mine.T", None]}
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "mine", "auto_map": mine}))
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "tokenizer_class": "T", "auto_map": mine}))
    model = Model(str(folder))
    for read in (read_config, read_tokenizer, lambda one: read_weights(AutoModel, one)):
        with pytest.raises(UnsafeModel, match="never run"):
            read(model)
    with pytest.raises(UnsafeModel, match="never run"):
        load_network(AutoModel, model, torch.float32)
    assert not (tmp_path / "proof").exists()
