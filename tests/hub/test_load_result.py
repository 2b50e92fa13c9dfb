"""What was pushed is read back: by `load_dataset`, by `hfcf.load_result` and as a model, here and in processes of their own."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pytest
from hub_parts import File, Repository
from local_hub import OTHER, OTHER_TOKEN, TOKEN, USER, LocalHub
from made import NAME, copied, model_folder, run_folder

import hfcf
from hfcf.hub.errors import HubError
from hfcf.hub.push import push
from hfcf.tasks.verification import LABELS

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # how huggingface_hub uploads


def test_a_result_is_the_same_from_the_hub_and_from_the_folder(hub: LocalHub, run_out: Path) -> None:
    pushed = push(run_out, NAME)
    hub.requests.clear()
    here, there = hfcf.load_result(run_out), hfcf.load_result(NAME)
    assert len(repr(there)) < 300
    assert (here.commit, there.commit) == (None, pushed.commit)
    assert here.recipe == there.recipe == {"corpus": "fever", "system": "crossaug"}
    assert here.run == there.run == json.loads((run_out / "run.json").read_text())
    assert here.metrics == {}
    read = [request.path for request in hub.requests]
    assert not any("rejected" in path or "augmented" in path for path in read), "these are read when they are asked for"
    for part in ("dataset", "augmented", "rejected"):
        one, other = getattr(here, part), getattr(there, part)
        assert {split: rows.to_list() for split, rows in one.items()} == {split: rows.to_list() for split, rows in other.items()}
        assert one["train"].features == other["train"].features
    assert there.rejected is there.rejected
    assert any("rejected" in request.path for request in hub.requests)
    assert there.dataset["train"].features["label"].names == list(LABELS)
    assert len(there.dataset["train"]) == there.run["counterfactuals"] == 40
    assert TOKEN not in repr(there)


def test_a_revision_is_read_whole_whatever_comes_after(hub: LocalHub, run_out: Path) -> None:
    first = push(run_out, NAME).commit
    old = hfcf.load_result(NAME)
    push(copied(run_out, 40), NAME)
    push(copied(run_out, 20), NAME, revision="small")
    rejected = {"old": old.rejected, **{at: hfcf.load_result(NAME, revision=at).rejected for at in (first, "main", "small")}}
    assert [len(part["train"]) for part in rejected.values()] == [20, 20, 14, 7]
    with pytest.raises(HubError, match=r"nowhere.*revision"):
        hfcf.load_result(NAME, revision="nowhere")
    with pytest.raises(HubError, match=r"folder.*revision"):
        hfcf.load_result(run_out, revision="main")


def test_who_has_no_access_is_told_how_to_get_it(hub: LocalHub, run_out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    push(run_out, NAME)
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(HubError, match=rf"{NAME}.*private.*access") as caught:
        hfcf.load_result(NAME)
    assert "\n" not in str(caught.value)
    with pytest.raises(HubError, match=r"token.*stale") as caught:
        hfcf.load_result(NAME, token="hf_" + "stale" * 6)
    assert "stalestale" not in str(caught.value)
    with pytest.raises(HubError, match=r"private.*access"):
        hfcf.load_result(NAME, token=OTHER_TOKEN)
    result = hfcf.load_result(NAME, token=TOKEN)
    assert len(result.rejected["train"]) == 20
    assert TOKEN not in repr(result)
    with pytest.raises((AttributeError, TypeError, pickle.PicklingError)):
        pickle.dumps(result)  # a token could be in it
    repo = hub.repository(NAME)
    repo.private, repo.gated = False, True
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", f"{os.environ['HFCF_CACHE']}/empty")
    for token in (None, OTHER_TOKEN):
        with pytest.raises(HubError, match=r"gated.*access.*page"):
            hfcf.load_result(NAME, token=token)
    repo.granted.add(OTHER)
    assert hfcf.load_result(NAME, token=OTHER_TOKEN).commit == repo.heads[-1]
    assert len(hfcf.load_result(NAME, token=TOKEN).dataset["train"]) == 40


def test_offline_the_cache_answers(hub: LocalHub, run_out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    push(run_out, NAME)
    online = hfcf.load_result(NAME)
    assert len(online.augmented["train"]) > 50
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    hub.requests.clear()
    offline = hfcf.load_result(NAME)
    assert offline.commit == online.commit
    assert offline.augmented["train"].to_list() == online.augmented["train"].to_list()
    with pytest.raises(HubError, match=r"offline.*cache.*load it once"):
        assert offline.rejected
    with pytest.raises(HubError, match=r"offline.*cache"):
        hfcf.load_result(f"{USER}/other")
    assert hub.requests == []


def test_what_is_no_result_is_said(hub: LocalHub, run_out: Path, tmp_path: Path) -> None:
    with pytest.raises(HubError, match=r"run\.json.*hfcf run"):
        hfcf.load_result(tmp_path)
    with pytest.raises(HubError, match=r"folder.* \.\./x.*repository"):
        hfcf.load_result("../x")
    push(run_out, NAME)
    repo = hub.repository(NAME)
    repo.add("main", {path: file for path, file in repo.tree().items() if path != "run.json"})
    with pytest.raises(HubError, match=rf"{NAME}.*run\.json.*hfcf run"):
        hfcf.load_result(NAME)


ORDINARY = {
    "a pattern": "configs:\n- config_name: default\n  data_files: data/*.csv\n",
    "a folder": "configs:\n- data_dir: data\n",
    "a list": "configs:\n- config_name: default\n  data_files: [data/a.csv]\n",
    "no list": "configs: none\n",
    "no YAML": "license: [\n",
    "no card": "",
}


@pytest.mark.parametrize("name", ORDINARY)
def test_an_ordinary_data_set_is_no_result(hub: LocalHub, run_out: Path, name: str) -> None:
    repo = hub.repositories["dataset", NAME] = Repository("dataset", False)
    repo.add("main", {"README.md": File(f"---\n{ORDINARY[name]}---\n# Mine".encode(), False), "data/a.csv": File(b"a", False)})
    with pytest.raises(HubError, match=r"run\.json.*hfcf run.*load_dataset"):
        hfcf.load_result(NAME)
    (run_out / "README.md").write_bytes(repo.tree()["README.md"].content)
    if name == "no YAML":
        with pytest.raises(HubError, match=r"README\.md.*\(") as caught:
            hfcf.load_result(run_out)
        assert "\n" not in str(caught.value)
    else:
        assert dict(hfcf.load_result(run_out).dataset) == {}


@pytest.mark.parametrize(("name", "content"), [("run.json", b"{"), ("run.json", b"\xff"), ("recipe.yaml", b"a: [")])
def test_a_broken_file_is_named(run_out: Path, name: str, content: bytes) -> None:
    (run_out / name).write_bytes(content)
    with pytest.raises(HubError, match=rf"{name}.*\(.*\).*run again"):
        hfcf.load_result(run_out)


def test_a_run_without_counterfactuals_has_empty_parts(tmp_path: Path) -> None:
    out = run_folder(tmp_path, n=1)
    result = hfcf.load_result(out)
    assert (dict(result.dataset), dict(result.augmented)) == ({}, {})
    assert result.run["empty"] == ["default", "augmented"]
    assert result.rejected["train"]["reason"][:] == ["the label 'MAYBE' is unknown"]


READ_BACK = """
import json, sys
from datasets import load_dataset
import hfcf
from hfcf.engines.classifier import Classifier
from hfcf.core.model import Model

run, model, adapter, base = sys.argv[1:]
told = {
    "default": len(load_dataset(run, "default", split="train")), "rejected": len(load_dataset(run, "rejected", split="train")),
    "augmented": {split: len(rows) for split, rows in load_dataset(run, "augmented").items()},
    "names": load_dataset(run, "default", split="train").features["label"].names,
    "result": len(hfcf.load_result(run).dataset["train"]),
}
pair = [("Rome is old.", "Rome was founded long ago.")]
told["answers"] = [Classifier(model=one, max_length=64).run(pair) for one in (Model(model), Model(base, adapter=adapter))]
told["key"] = Model(model).key()
print(json.dumps(told))
"""


def in_a_new_process(hub: LocalHub, code: str, *arguments: Any, **environ: str) -> subprocess.CompletedProcess[str]:
    fresh = {
        **os.environ, "HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN, "HF_HUB_DISABLE_XET": "1", "HF_HUB_OFFLINE": "0",
        "HF_UPDATE_DOWNLOAD_COUNTS": "0", "HFCF_REQUEST_CACHE": "off", **environ,
    }  # fmt: skip
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, env=fresh, capture_output=True, text=True, timeout=250)


@pytest.mark.slow
def test_other_processes_read_back_what_was_pushed(
    hub: LocalHub, run_out: Path, tmp_path: Path, tiny_model: Callable[[str], str]
) -> None:
    """The way of any user: no part of this process's set-up is theirs; and once more offline, from the cache alone."""
    from transformers import AutoModelForSequenceClassification

    from hfcf.core.model import Model
    from hfcf.engines.classifier import Classifier
    from hfcf.engines.networks import save_patch

    base = tiny_model("classifier")
    network = AutoModelForSequenceClassification.from_pretrained(base)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    network.classifier.weight.data += 1
    (tmp_path / "patch").mkdir()
    save_patch(network, before, tmp_path / "patch", rank=1, head=())
    adapter = model_folder(tmp_path / "adapter", str(tmp_path / "patch"), tune="lowrank")
    whole = model_folder(tmp_path / "whole", tiny_model("verifier"))
    push(run_out, NAME)
    push(whole, f"{USER}/verifier")
    push(adapter, f"{USER}/verifier-patch")
    arguments = [NAME, f"{USER}/verifier", f"{USER}/verifier-patch", base]
    home = {"HF_HOME": str(tmp_path / "home")}
    done = in_a_new_process(hub, READ_BACK, *arguments, **home)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["default"], told["rejected"], told["result"]) == (40, 20, 40)
    assert sum(told["augmented"].values()) == 99
    assert told["names"] == list(LABELS)
    pair = [("Rome is old.", "Rome was founded long ago.")]
    ours = [Classifier(model=one, max_length=64).run(pair) for one in (Model(str(whole)), Model(base, adapter=str(adapter)))]
    assert told["answers"] == [[pytest.approx(one) for one in answers] for answers in ours]
    assert told["answers"][0] != told["answers"][1]
    assert hub.repository(f"{USER}/verifier", "model").heads[-1] in told["key"]
    hub.requests.clear()
    again = in_a_new_process(hub, READ_BACK, *arguments, **home, HF_HUB_OFFLINE="1")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout.splitlines()[-1]) == told
    assert hub.requests == []
    assert TOKEN not in done.stdout + done.stderr + again.stdout + again.stderr


# --- a recipe that says push


def test_a_recipe_pushes_at_its_end_and_is_looked_at_before(hub: LocalHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = {"id": "1", "claim": "Rome has 3 old bridges.", "evidence": ["The city has 3 old bridges."], "label": "SUPPORTS"}
    (tmp_path / "mine.jsonl").write_text(json.dumps(line))
    mine: dict[str, Any] = {
        "corpus": "jsonl", "data_files": str(tmp_path / "mine.jsonl"), "system": "eda", "preset": "paper", "push": f"{USER}/mine",
    }  # fmt: skip
    found = hfcf.run(mine, tmp_path / "out")
    result = hfcf.load_result(f"{USER}/mine")
    assert result.recipe["push"] == f"{USER}/mine"
    assert hub.repository(f"{USER}/mine").private
    assert found["counterfactuals"] == sum(map(len, result.dataset.values()))
    asked = len(hub.requests)
    for wrong, message in (({"push": "a/b/c"}, "NAMESPACE/NAME"), ({"corpus": "ace2005"}, "licence.*ace2005.*republish")):
        with pytest.raises(ValueError, match=message):
            hfcf.run({**mine, **wrong}, tmp_path / "never")
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(HubError, match="token to write"):
        hfcf.run(mine, tmp_path / "never")
    assert not (tmp_path / "never").exists()
    assert len(hub.requests) == asked


def test_a_damaged_cache_of_the_rows_is_read_again(
    run_out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hf")
    expected = hfcf.load_result(run_out).dataset["train"].to_list()
    for file in (tmp_path / "hf").rglob("*.arrow"):
        file.write_bytes(file.read_bytes()[:-100])
    assert hfcf.load_result(run_out).dataset["train"].to_list() == expected
    assert "is damaged" in caplog.text
