from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from safetensors.torch import load_file
from transformers import AutoModelForMaskedLM, AutoTokenizer

from hfcf.core import offline
from hfcf.core import recipe as recipes
from hfcf.core.model import Model
from hfcf.core.task import get_task
from hfcf.pipeline.train import train
from hfcf.tasks.verification import SUPPORTS
from hfcf.text.normalise import normalise
from hfcf.training.masked_lm import (
    CLOZE,
    cloze,
    collect,
    evaluate_masked_lm,
    glosses,
    head_at_labels,
    is_held_out,
    train_masked_lm,
    unique,
    words,
)
from hfcf.training.trainer import Hyperparameters

Tiny = Callable[[str], str]


pytestmark = pytest.mark.usefixtures("on_cpu")


@pytest.fixture
def wordnet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """WordNet's files with a few made-up synsets in the place of the offline model."""
    folder = tmp_path / "wordnet" / "corpora" / "wordnet"
    folder.mkdir(parents=True)
    for part in ("noun", "verb", "adj", "adv"):
        lines = ["  1 This software and database is being provided to you, the LICENSEE, | by nobody"]
        lines += [
            f'00{i} 03 n 01 w{i} 0 000 | a {part} of the {name} kind; "he saw the {name} of it"; "the {name} is a {part}"  '
            for i, name in enumerate(["first", "second", "red", "old"])
        ]
        (folder / f"data.{part}").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(offline, "folder", lambda name: tmp_path / name)
    return folder


def rows(claims: list[str], evidence: list[str], corpus: str = "made") -> Dataset:
    made = [
        {
            "id": str(i), "claim": claim, "label": SUPPORTS, "evidence": [{"title": "Title of it", "text": text}],
            "group_id": f"group-{i}", "corpus": corpus, "split": "train",
        }
        for i, (claim, text) in enumerate(zip(claims, evidence, strict=True))
    ]  # fmt: skip
    return Dataset.from_list(made, features=get_task("verification").features)


# --- text


def test_the_glosses_are_definitions_and_examples_and_not_the_licence(wordnet: Path) -> None:
    found = list(glosses(wordnet))
    assert len(found) == 4 * 4 * 3
    assert found[:3] == ["a noun of the first kind", "he saw the first of it", "the first is a noun"]


def test_what_is_excluded_or_held_out_is_not_trained_on(wordnet: Path) -> None:
    training = rows(
        ["Rome is very old.", "Oslo is a big city."], ["It stands on a river. The River is long.", "It has a ``fine'' park."]
    )
    held = rows(["Paris is in France.", "rome is very old"], ["The river is long. It has a tower.", "No word of it is new."])
    excluded = rows(["Oslo is a big city"], ["A tower stands. It stands on a river ."])
    texts, sets, dropped = collect(training, held, [excluded], wordnet=True, held_out=0.3, seed=13)
    assert [text for text in texts if "kind" not in text and "of it" not in text and "is a" not in text] == [
        "Rome is very old.",
        "The River is long.",
        'It has a "fine" park.',
    ]
    assert dropped == 2
    assert sets["corpora"] == ["Paris is in France.", "It has a tower.", "No word of it is new."]
    every = {normalise(text) for text in texts}
    assert not every & {normalise(text) for its in sets.values() for text in its}
    assert set(sets["WordNet"]) == {text for text in glosses(wordnet) if is_held_out(text, 0.3, 13)}
    assert 0 < len(sets["WordNet"]) < 24
    assert collect(training, held, [], wordnet=False, held_out=0.3, seed=13)[1].keys() == {"corpora"}


def test_texts_are_told_apart_by_letters_and_digits() -> None:
    assert unique(["It is old.", "It is old !", "It is 3.", "It is 4.", "Too short"]) == ["It is old.", "It is 3.", "It is 4."]


def test_the_held_out_share_is_as_asked_and_follows_the_seed() -> None:
    texts = [f"a text of {chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(600)]
    held = [is_held_out(text, 0.2, 13) for text in texts]
    assert 80 < sum(held) < 160
    assert held != [is_held_out(text, 0.2, 14) for text in texts]


# --- training


def test_words_of_one_token_alone_are_masked(tiny_model: Tiny) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_model("mlm"))
    text = "The zyxqv film, of 1994, won't end."
    coded = tokenizer([text])
    found = words(coded, 0, text)
    assert [text[start:end] for _, (start, end) in found][:3] == ["The", "film", "of"]
    pieces = coded.tokens(0)
    assert all(pieces[k] == text[start:end] for k, (start, end) in found)
    assert all(not pieces[k].startswith("##") and not pieces[k + 1].startswith("##") for k, _ in found)
    assert "zyxqv" not in " ".join(pieces)


def test_the_loss_at_the_labels_is_the_loss(tiny_model: Tiny) -> None:
    network = AutoModelForMaskedLM.from_pretrained(tiny_model("mlm")).eval()
    torch.manual_seed(0)
    batch = {"input_ids": torch.randint(4, 900, (4, 9)), "attention_mask": torch.ones(4, 9, dtype=torch.long)}
    labels = torch.where(torch.rand(4, 9) < 0.3, batch["input_ids"], -100)
    whole = network(**batch, labels=labels)
    whole.loss.backward()
    gradient = network.bert.embeddings.word_embeddings.weight.grad.clone()
    network.zero_grad()
    with head_at_labels(network):
        part = network(**batch, labels=labels)
    part.loss.backward()
    assert part.logits.shape[:2] == (1, int((labels != -100).sum()))
    torch.testing.assert_close(part.loss, whole.loss)
    torch.testing.assert_close(network.bert.embeddings.word_embeddings.weight.grad, gradient)
    assert network(**batch, labels=labels).logits.shape == whole.logits.shape  # nothing is left behind


SENTENCES = [f"The {thing} was {done} in the {place}." for thing, done, place in zip(
    ["film", "album", "song", "band", "war", "game"] * 6, ["released", "written", "recorded", "formed", "fought", "played"] * 6,
    ["city", "state", "county", "town", "river", "area", "country"] * 5 + ["city"], strict=True)]  # fmt: skip


def test_training_learns_and_stores_half_precision(tiny_model: Tiny, tmp_path: Path) -> None:
    start = Model(tiny_model("mlm"))
    hp = Hyperparameters(model=start, learning_rate=3e-3, batch_size=8, epochs=12, max_length=32)
    train_masked_lm(SENTENCES, hp, tmp_path / "out", share=0.3)
    made = Model(str(tmp_path / "out"))
    before, after = (evaluate_masked_lm(SENTENCES, model, max_length=32) for model in (start, made))
    assert after["sentences"] == len(SENTENCES)
    assert after["masked"] == before["masked"] >= len(SENTENCES)
    assert after["top5"] > before["top5"] + 0.3
    assert after["top1"] <= after["top5"]
    assert {tensor.dtype for tensor in load_file(tmp_path / "out" / "model.safetensors").values()} == {torch.float16}
    assert AutoModelForMaskedLM.from_pretrained(made.name).dtype == torch.float32
    assert not (tmp_path / "out" / "checkpoints").exists()


def test_only_whole_training_is_known(tiny_model: Tiny, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="tune: full"):
        train_masked_lm(SENTENCES, Hyperparameters(model=tiny_model("mlm"), tune="lora"), tmp_path, share=0.15)


def test_texts_without_a_word_are_refused(tiny_model: Tiny, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nothing to train on"):
        train_masked_lm(["…", "?!"], Hyperparameters(model=tiny_model("mlm")), tmp_path, share=0.15)


def test_cloze_shows_five_fills_of_each_model(tiny_model: Tiny) -> None:
    found = cloze({"one": Model(tiny_model("mlm"))}, max_length=32)
    assert len(found) == len(CLOZE) + 1
    assert all(len(shown["one"].split(", ")) == 5 for text, shown in found.items() if "[MASK]" in text)
    assert all(text.count("[MASK]") == 1 for text, _ in CLOZE)


def test_the_recipe_trains_scores_and_writes_the_card(tiny_model: Tiny, tmp_path: Path, wordnet: Path) -> None:
    kept = ("id", "group_id", "claim", "evidence", "label")
    for name, its in (("a", rows(SENTENCES, [f"{text} It was {i} years old." for i, text in enumerate(SENTENCES)])), ("b", None)):
        its = its or rows([f"A claim of its own {i}." for i in range(6)], SENTENCES[:6])
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps({k: row[k] for k in kept}) + "\n" for row in its))
    recipe: dict[str, Any] = {
        "train": "masked_lm", "data": [{"corpus": "jsonl", "data_files": "a.jsonl"}], "wordnet": True, "mask": 0.3,
        "exclude": [{"corpus": "jsonl", "data_files": "b.jsonl"}], "held_out": 0.2, "model": tiny_model("mlm"),
        "max_length": 32, "batch_size": 8, "epochs": 1, "learning_rate": 1e-3, "data_dir": str(tmp_path),
    }  # fmt: skip
    report = train(recipe, tmp_path / "out", command="hfcf train it")
    scores = report["scores"]
    assert 0 < scores["sentences"]["dropped because an excluded set holds them"] <= 6
    assert scores["held out: WordNet"]["trained"]["masked"] > 0
    assert scores["held out: corpora"]["as shipped"]["sentences"] == scores["held out: corpora"]["trained"]["sentences"] > 0
    assert json.loads((tmp_path / "out" / "scores.json").read_text()) == json.loads(json.dumps(report))
    card = (tmp_path / "out" / "README.md").read_text()
    assert "# Masked language model" in card
    assert "WordNet 3.0" in card
    assert "mask 0.3" in card


def test_the_shipped_recipe_names_corpora_with_their_licence_alone() -> None:
    from hfcf.corpora import builder_class

    recipe = recipes.read_recipe(recipes.find_recipe("train_mlm"))
    assert {builder_class(source["corpus"]).INFO.licence for source in recipe["data"]} == {"cc-by-sa-3.0"}
    assert all(source["role"] == "train" for source in recipe["data"])
    assert [source["split"] for source in recipe["exclude"]] == ["validation", "generated"]
