"""What was pushed is read back: by `hfcf.load_result`, from the Hub and from a folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pytest
import yaml
from datasets import load_dataset
from hub_parts import File
from local_hub import OTHER_TOKEN, TOKEN, USER, LocalHub
from made import NAME, copied, model_folder, run_folder
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForSequenceClassification

import hfcf
from hfcf.core.model import Model
from hfcf.engines.classifier import Classifier
from hfcf.engines.networks import quiet_peft
from hfcf.hub.errors import HubError
from hfcf.hub.push import push, read_contents
from hfcf.hub.run_folder import data_files, is_own_card
from hfcf.report import report
from hfcf.tasks.verification import LABELS

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # how huggingface_hub uploads


def test_a_result_is_the_same_from_the_hub_and_from_the_folder(hub: LocalHub, run_out: Path) -> None:
    pushed = push(run_out, NAME)
    local, remote = hfcf.load_result(run_out), hfcf.load_result(NAME)
    assert len(repr(remote)) < 300
    assert (local.commit, remote.commit) == (None, pushed.commit)
    assert local.recipe == remote.recipe == {"corpus": "fever", "system": "crossaug"}
    assert local.run == remote.run == json.loads((run_out / "run.json").read_text())
    assert local.metrics == {}
    for part in ("dataset", "augmented", "rejected"):
        one, other = getattr(local, part), getattr(remote, part)
        assert {split: rows.to_list() for split, rows in one.items()} == {split: rows.to_list() for split, rows in other.items()}
        assert one["train"].features == other["train"].features
    assert remote.dataset["train"].features["label"].names == list(LABELS)
    assert len(remote.dataset["train"]) == remote.run["counterfactuals"] == 40
    assert len(load_dataset(str(run_out), "rejected", split="train")) == 20
    assert TOKEN not in repr(remote)


def test_load_dataset_reads_a_pushed_run(hub: LocalHub, run_out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_ENDPOINT", hub.url)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    push(run_out, NAME)
    for config, expected in (("default", 40), ("augmented", 99), ("rejected", 20)):
        splits = load_dataset(NAME, config, cache_dir=str(tmp_path / "cache"))
        assert sum(map(len, splits.values())) == expected
        assert splits["train"].to_list() == load_dataset(str(run_out), config, split="train").to_list()


def test_a_pushed_adapter_answers_as_in_its_folder(hub: LocalHub, tmp_path: Path, tiny_model: Callable[[str], str]) -> None:
    base = tiny_model("classifier")
    network = AutoModelForSequenceClassification.from_pretrained(base)
    with quiet_peft():
        tuned = get_peft_model(network, LoraConfig(task_type="SEQ_CLS", target_modules=["query"], init_lora_weights=False))
        tuned.save_pretrained(tmp_path / "weights")
    adapter = model_folder(tmp_path / "adapter", str(tmp_path / "weights"), base=base, tune="lora")
    push(adapter, f"{USER}/verifier-lora")
    assert {"adapter_config.json", "adapter_model.safetensors"} < set(hub.repository(f"{USER}/verifier-lora", "model").tree())
    pair = [("Rome is old.", "Rome was founded long ago.")]
    models = (Model(base), Model(base, adapter=str(adapter)), Model(base, adapter=f"{USER}/verifier-lora"))
    [alone], [local], [pushed] = (Classifier(model=model, max_length=64).run(pair) for model in models)
    assert pushed == pytest.approx(local)
    assert pushed != pytest.approx(alone)


def test_a_revision_is_read_whole_whatever_comes_after(hub: LocalHub, run_out: Path) -> None:
    first = push(run_out, NAME).commit
    push(copied(run_out, 40), NAME)
    push(copied(run_out, 20), NAME, revision="small")
    assert [len(hfcf.load_result(NAME, revision=at).rejected["train"]) for at in (first, "main", "small")] == [20, 14, 7]
    with pytest.raises(HubError, match="nowhere"):
        hfcf.load_result(NAME, revision="nowhere")
    with pytest.raises(HubError, match="revision"):
        hfcf.load_result(run_out, revision="main")


def test_who_has_no_access_is_told_how_to_get_it(hub: LocalHub, run_out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    push(run_out, NAME)
    monkeypatch.delenv("HF_TOKEN")
    for token in (None, "hf_" + "stale" * 6, OTHER_TOKEN):
        with pytest.raises(HubError, match=NAME) as caught:
            hfcf.load_result(NAME, token=token)
        assert "\n" not in str(caught.value)
        assert "stalestale" not in str(caught.value)
    assert len(hfcf.load_result(NAME, token=TOKEN).rejected["train"]) == 20


def test_offline_the_cache_answers(hub: LocalHub, run_out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    push(run_out, NAME)
    online = hfcf.load_result(NAME)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    hub.requests.clear()
    offline = hfcf.load_result(NAME)
    assert offline.commit == online.commit
    assert offline.augmented["train"].to_list() == online.augmented["train"].to_list()
    with pytest.raises(HubError, match="offline"):
        hfcf.load_result(f"{USER}/other")
    assert hub.requests == []


def test_what_is_no_result_is_said(hub: LocalHub, run_out: Path, tmp_path: Path) -> None:
    with pytest.raises(HubError, match=r"run\.json"):
        hfcf.load_result(tmp_path)
    with pytest.raises(HubError, match="repository"):
        hfcf.load_result("../x")
    push(run_out, NAME)
    repo = hub.repository(NAME)
    repo.add("main", {path: file for path, file in repo.tree().items() if path != "run.json"})
    with pytest.raises(HubError, match=rf"{NAME}.*run\.json"):
        hfcf.load_result(NAME)
    repo.add("main", {"README.md": File(b"# Mine", False), "data/a.csv": File(b"a", False)})
    with pytest.raises(HubError, match=NAME):
        hfcf.load_result(NAME)


@pytest.mark.parametrize(("name", "content"), [("run.json", b"{"), ("run.json", b"\xff"), ("recipe.yaml", b"a: [")])
def test_a_broken_file_is_named(run_out: Path, name: str, content: bytes) -> None:
    (run_out / name).write_bytes(content)
    with pytest.raises(HubError) as caught:
        hfcf.load_result(run_out)
    assert name in str(caught.value)


def test_a_run_without_counterfactuals_has_empty_parts(tmp_path: Path) -> None:
    result = hfcf.load_result(run_folder(tmp_path, n=1))
    assert (dict(result.dataset), dict(result.augmented)) == ({}, {})
    assert result.run["empty"] == ["default", "augmented"]
    assert result.rejected["train"]["reason"][:] == ["the label 'MAYBE' is unknown"]


READS = {"load_result": hfcf.load_result, "report": report, "push": read_contents}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("where", ["../secret.parquet", "data/../../secret.parquet", "/etc/passwd"])
def test_a_card_names_no_file_outside_of_its_folder(run_out: Path, read: str, where: str) -> None:
    _, front, rest = (run_out / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    files = [{"config_name": "default", "data_files": [{"split": "train", "path": [where]}]}]
    card = yaml.safe_dump({**yaml.safe_load(front), "configs": files})
    (run_out / "README.md").write_text(f"---\n{card}---\n{rest}", encoding="utf-8")
    with pytest.raises(ValueError, match=r"outside|README\.md"):
        READS[read](run_out)


def test_files_and_cards_of_others_are_left_out() -> None:
    assert data_files({"configs": [{"config_name": "mine", "data_files": "data/*.csv"}, {"data_dir": "data"}]}) == {}
    assert [is_own_card(front) for front in ({"tags": ["hfcf", "hfcf-race"]}, {"tags": "text"}, {})] == [True, False, False]


def test_a_recipe_pushes_at_its_end_and_is_looked_at_before(hub: LocalHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = {"id": "1", "claim": "Rome has 3 old bridges.", "evidence": ["The city has 3 old bridges."], "label": "SUPPORTS"}
    (tmp_path / "mine.jsonl").write_text(json.dumps(line))
    mine: dict[str, Any] = {
        "corpus": "jsonl", "data_files": str(tmp_path / "mine.jsonl"), "system": "eda", "preset": "paper", "push": f"{USER}/mine",
    }  # fmt: skip
    found = hfcf.run(mine, tmp_path / "out")
    result = hfcf.load_result(f"{USER}/mine")
    assert hub.repository(f"{USER}/mine").private
    assert found["counterfactuals"] == sum(map(len, result.dataset.values()))
    count = len(hub.requests)
    for wrong, part in (({"push": "a/b/c"}, "NAMESPACE/NAME"), ({"corpus": "ace2005"}, "licence")):
        with pytest.raises(ValueError, match=part):
            hfcf.run({**mine, **wrong}, tmp_path / "never")
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(HubError, match="token"):
        hfcf.run(mine, tmp_path / "never")
    assert not (tmp_path / "never").exists()
    assert len(hub.requests) == count
