"""What is known of models before they load: from files, from the table of checkpoints, from the Hub, or nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from huggingface_hub import constants
from huggingface_hub.errors import RepositoryNotFoundError
from huggingface_hub.hf_api import ModelInfo
from safetensors.numpy import save_file

import hfcf
from hfcf.core import offline, weights
from hfcf.core.public_models import checkpoint_of
from hfcf.core.hub_http import httpx
from hfcf.core.model import Model
from hfcf.core.weight_files import count_numbers, is_complete, licence_of, memory_of, weight_names
from hfcf.core.weights import Weights, list_weights, total

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FLOATS, INTEGERS = 40, 3


def repository(folder: Path, licence: str = "mit") -> Path:
    """A folder with the files of a small repository: 40 fractions, 3 integers."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {"w": np.zeros((4, FLOATS // 4), np.float32), "positions": np.zeros(INTEGERS, np.int64)}
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text("{}")
    (folder / "tokenizer.json").write_text("{}")
    (folder / "README.md").write_text(f"---\nlicense: {licence}\n---\n# A model\n")
    return folder


def snapshot(cache: Path, name: str, commit: str = COMMIT, ref: str | None = "main") -> Path:
    """Put a repository into a cache of the Hub's form."""
    root = cache / f"models--{name.replace('/', '--')}"
    if ref:
        (root / "refs").mkdir(parents=True)
        (root / "refs" / ref).write_text(commit)
    return repository(root / "snapshots" / commit)


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the Hub; the Hub itself must not be asked."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.model_info", lambda *_, **__: pytest.fail("the Hub was asked"))
    return tmp_path / "hub"


def of(name: str | Model) -> Weights:
    """What is known of the model of a system with a single one."""
    (found,) = list_weights(hfcf.MaskedLM(model=name))
    return found


def test_a_folder_is_read_and_nothing_of_it_is_loaded(tmp_path: Path, hub_cache: Path) -> None:
    folder = str(repository(tmp_path / "mine"))
    assert of(folder) == Weights(folder, ("model",), "mit", 0, 2 * FLOATS + 8 * INTEGERS, "yes")
    absent = of("./absent")
    assert (absent.cached, absent.download_bytes, absent.memory_bytes, absent.missing) == ("no", 0, None, ())


def test_shards_are_added_up(tmp_path: Path) -> None:
    names = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    for name in names:
        save_file({"w": np.zeros(5, np.float16)}, tmp_path / name)
    index = {"weight_map": {"a": names[0], "b": names[1]}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    for file in ("config.json", "tokenizer.json"):
        (tmp_path / file).write_text("{}")
    assert count_numbers(tmp_path) == {"F16": 10}
    assert is_complete(tmp_path)
    (tmp_path / names[1]).unlink()
    assert count_numbers(tmp_path) is None
    assert not is_complete(tmp_path)


def test_only_the_files_that_are_read_are_weights() -> None:
    names = [
        "pytorch_model.bin",
        "onnx/model.onnx",
        "model.safetensors",
        "consolidated.safetensors",
        "model.safetensors.index.json",
    ]
    assert weight_names(names) == ["model.safetensors"]
    assert weight_names(["pytorch_model.bin"]) == []
    assert weight_names(["adapter_model.safetensors", "adapter_config.json"]) == ["adapter_model.safetensors"]
    assert memory_of({"BF16": 5, "F32": 5, "U8": 3}) == 23


def test_a_card_that_names_no_licence_gives_none(tmp_path: Path) -> None:
    card = tmp_path / "README.md"
    for text, licence in (
        ("# no front matter", None),
        ("---\n[: broken\n---\n", None),
        ("---\nlicense: other\nlicense_name: qwen-research\n---\n", "qwen-research"),
        ("---\nlicense:\n- mit\n- apache-2.0\n---\n", "mit, apache-2.0"),
    ):
        card.write_text(text)
        assert licence_of(tmp_path) == licence


def test_the_cache_is_whole_partly_there_or_empty(hub_cache: Path) -> None:
    assert of("me/model") == Weights("me/model", ("model",), missing=(("me/model", None),))
    folder = snapshot(hub_cache, "me/model")
    whole = of("me/model")
    assert (whole.cached, whole.licence, whole.memory_bytes, whole.missing) == ("yes", "mit", 2 * FLOATS + 8 * INTEGERS, ())
    read = ("model.safetensors", "config.json", "tokenizer.json")
    assert whole.download_bytes == sum((folder / name).stat().st_size for name in read)
    assert of(Model("me/model", revision=COMMIT)).cached == "yes"
    assert of(Model("me/model", revision="other")).cached == "no"
    weights_file = folder / "model.safetensors"
    weights_file.write_bytes(weights_file.read_bytes()[:-4])
    assert of("me/model").cached == "partly", "the file was cut off"
    weights_file.unlink()
    weights_file.symlink_to(hub_cache / "a blob that is not there")
    cut = of("me/model")
    assert (cut.cached, cut.licence, cut.memory_bytes, cut.missing) == ("partly", "mit", None, (("me/model", None),))
    shutil.rmtree(folder)
    (folder.parents[1] / "blobs").mkdir()
    (folder.parents[1] / "blobs" / "sha.incomplete").write_text("")
    assert of("me/model").cached == "partly"


def test_the_table_of_checkpoints_counts_for_its_own_revision_alone(hub_cache: Path) -> None:
    name = "MoritzLaurer/DeBERTa-v3-base-mnli-fever-anli"
    known = checkpoint_of(name)
    assert known is not None
    pinned = of(Model(name, revision=known.revision))
    assert (pinned.model, pinned.licence) == (f"{name}@{known.revision}", known.licence)
    assert (pinned.download_bytes, pinned.memory_bytes) == (known.download_bytes, 2 * known.parameters)
    assert pinned.missing == ((pinned.model, known.download_bytes),)
    assert of(name).download_bytes is None, "another upload may have other sizes"
    there = snapshot(hub_cache, name, str(known.revision), ref=None)
    (there / "model.safetensors").unlink()
    partly = of(Model(name, revision=known.revision))
    small = sum((there / file).stat().st_size for file in ("config.json", "tokenizer.json"))
    assert (partly.cached, partly.missing) == ("partly", ((pinned.model, known.download_bytes - small),))


INFO = {
    "id": "me/model", "sha": COMMIT, "cardData": {"license": "apache-2.0"},
    "safetensors": {"parameters": {"F32": 1000, "I64": 2}, "total": 1002},
    "siblings": [
        {"rfilename": name, "size": size}
        for name, size in (
            ("model.safetensors", 4016), ("config.json", 100), ("tokenizer.json", 900), ("pytorch_model.bin", 5000),
            ("README.md", 9), ("onnx/config.json", 7),
        )
    ],
}  # fmt: skip


def test_the_hub_says_the_rest_where_it_may_be_asked(hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    asked: list[tuple[str, str | None]] = []

    def answer(name: str, *, revision: str | None, **_: Any) -> ModelInfo:
        asked.append((name, revision))
        return ModelInfo(**json.loads(json.dumps(INFO)))

    monkeypatch.setattr("huggingface_hub.model_info", answer)
    found = of(Model("me/model", revision="v1"))
    assert found == Weights("me/model@v1", ("model",), "apache-2.0", 5016, 2016, "no", (("me/model@v1", 5016),))
    assert asked == [("me/model", "v1")]
    snapshot(hub_cache, "me/here")
    assert of("me/here").cached == "yes"
    assert len(asked) == 1, "what the cache says is not asked"


@pytest.mark.parametrize(
    ("error", "note"),
    [
        (httpx.ConnectError("no route"), "the Hub could not be asked for me/model: ConnectError"),
        (
            RepositoryNotFoundError("404", response=httpx.Response(404, request=httpx.Request("GET", "https://hub"))),
            "the Hub has no model me/model for you",
        ),
    ],
)
def test_what_the_hub_does_not_say_is_unknown(
    hub_cache: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, note: str
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)

    def refuse(*_: Any, **__: Any) -> ModelInfo:
        raise error

    monkeypatch.setattr("huggingface_hub.model_info", refuse)
    assert of("me/model") == Weights("me/model", ("model",), missing=(("me/model", None),), note=note)


def test_an_adapter_comes_with_its_base(tmp_path: Path, hub_cache: Path) -> None:
    snapshot(hub_cache, "me/base")
    found = of(Model("me/base", adapter="me/adapter"))
    assert (found.model, found.cached, found.missing) == ("me/base + me/adapter", "yes; adapter: no", (("me/adapter", None),))
    adapter = repository(tmp_path / "peft", "cc-by-4.0")
    (adapter / "model.safetensors").rename(adapter / "adapter_model.safetensors")
    (adapter / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "me/base"}))
    found = of(str(adapter))
    assert (found.model, found.cached, found.licence) == (f"me/base + {adapter}", "yes", "mit + cc-by-4.0")
    assert found.memory_bytes == 2 * FLOATS + 8 * INTEGERS, "an adapter is merged into its base"


def test_models_of_packages_say_whether_they_are_there(hub_cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = repository(tmp_path / "package", "bsd")
    monkeypatch.setenv("HFCF_CACHE", str(tmp_path / "own"))  # that of other tests shares the converted models of the machine
    monkeypatch.setattr(offline, "check_installed", lambda name: package)
    monkeypatch.setitem(offline._MODELS, "plain", ("p", ".", None))
    monkeypatch.setitem(offline._MODELS, "made", ("p", ".", lambda source, out: shutil.copytree(source, out, dirs_exist_ok=True)))
    assert (of("offline:plain").cached, of("offline:plain").licence) == ("installed", "bsd")
    assert of("offline:made").cached == "installed", "it is not converted before it is used"
    offline.folder("made")
    assert of("offline:made").cached == "converted"
    monkeypatch.undo()
    absent = of("offline:absent")
    assert (absent.cached, absent.download_bytes) == ("no", 0)
    assert absent.note.startswith("no offline model 'absent'")


def test_a_pipeline_of_spacy_is_a_package_and_is_not_asked_of_the_hub(hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    absent = of("xx_made_up_trf")
    assert (absent.cached, absent.missing) == ("no", (("xx_made_up_trf", None),))
    assert "spacy download xx_made_up_trf" in absent.note
    assert of("json").cached == "installed", "a package of that name"


def test_each_model_is_listed_once_with_all_its_settings(hub_cache: Path, tmp_path: Path) -> None:
    folder = str(repository(tmp_path / "mine"))
    labels = {"LABEL_0": "REFUTES"}
    race = hfcf.RACE.preset(
        "llm", verifier=Model(folder, labels=labels), judges=[folder, "me/judge"], explainer="gradient_x_input", encoder=folder
    )
    used = {one.model: one.used_by for one in list_weights(race, {"flip_rate.verifier": Model(folder)})}
    assert used[folder] == ("verifier", "judges[0]", "encoder", "flip_rate.verifier")
    assert used["me/judge"] == ("judges[1]",)
    assert used["llm:gpt-4o-mini"] == ("generator",)
    assert used["offline:spacy"] == ("ner",)
    endpoint = next(one for one in list_weights(race) if one.model.startswith("llm:"))
    assert endpoint == Weights("llm:gpt-4o-mini", ("generator",), None, 0, 0, "behind HFCF_LLM_URL")


def test_what_a_setting_replaces_is_not_listed(hub_cache: Path) -> None:
    def used(system: Any) -> set[str]:
        return {name for one in list_weights(system) for name in one.used_by}

    trained, given = hfcf.CCG.preset("paper"), hfcf.CCG.preset("paper", indicator="me/indicator", editor="me/editor")
    assert {"classifier", "editor_training", "masked"} <= used(trained)
    assert "indicator" in used(given)
    assert not {"classifier", "editor_training"} & used(given)
    assert "masked" not in used(hfcf.CCG.preset("llm"))
    assert {one.model for one in list_weights(trained)} >= {"stanza:en", "gpt2"}
    (asked,) = list_weights(hfcf.LLM(model="m"))
    assert (asked.model, asked.cached) == ("llm:m", weights.ENDPOINT)


def test_a_base_of_two_adapters_is_downloaded_once() -> None:
    base = ("me/base", 100)
    two = [
        Weights("me/base + a", ("x",), memory_bytes=7, missing=(base, ("a", 1))),
        Weights("me/base + b", ("y",), missing=(base, ("b", None))),
    ]
    sums = total(two)
    assert (sums.download_bytes, sums.unknown_downloads, sums.memory_bytes, sums.unknown_memory) == (101, 1, 7, 1)


@pytest.mark.parametrize("system", ["race", "crossaug", "ccg", "rgf", "checkwhy"])
def test_every_public_checkpoint_of_a_hub_preset_is_known_without_a_network(system: str, hub_cache: Path) -> None:
    from hfcf.systems import system_class

    for one in list_weights(system_class(system).preset("hub")):
        if not one.model.startswith(("stanza:", "offline:", "en_core_web")):
            assert None not in (one.licence, one.download_bytes, one.memory_bytes), one
            assert one.cached == "no"


Tiny = Callable[[str], str]


def test_the_memory_is_that_of_the_loaded_network(tiny_model: Tiny, hub_cache: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    folder = tiny_model("gpt2")
    network = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    assert of(folder).memory_bytes == sum(tensor.nbytes for tensor in network.parameters())


@pytest.mark.parametrize("name", ["models/my/verifier", "my--verifier"])
def test_a_name_that_the_hub_cannot_have_is_a_note(hub_cache: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    found = of(name)
    assert (found.cached, found.missing) == ("no", ())
    assert found.note == f"there is no folder {name}, and the Hub has no such names"
