from __future__ import annotations

import json
import logging
import re
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from datasets import Dataset, concatenate_datasets
from safetensors.torch import load_file
from sklearn.metrics import f1_score
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertForSequenceClassification,
    BertModel,
    RobertaConfig,
    RobertaModel,
)

from hfcf.core import recipe as recipes
from hfcf.core.model import Model
from hfcf.core.recipe import RecipeError
from hfcf.core.settings import settings_of
from hfcf.core.task import get_task
from hfcf.corpora import load
from hfcf.corpora.base import CorpusError
from hfcf.engines.base import Engine
from hfcf.engines.classifier import Classifier
from hfcf.engines.generator import PROMPT, Generator
from hfcf.engines.verifier_inputs import encode_pairs
from hfcf.hub.previous_run import ExistingResultError
from hfcf.pipeline.train import plan_training, select_rows, train
from hfcf.pipeline.training_recipes import parse_train
from hfcf.pipeline.trainings import load_evaluation_sets
from hfcf.tasks.verification import LABELS, NOT_ENOUGH_INFO, REFUTES, SUPPORTS
from hfcf.text.evidence import join
from hfcf.text.normalise import normalise
from hfcf.training import classifier
from hfcf.training import generator as generator_module
from hfcf.training.data import drop_overlap, load_rows
from hfcf.training.generator import evaluate_generator, train_generator
from hfcf.training.scorers import VERDICTS
from hfcf.training.steps import read_steps
from hfcf.training.trainer import Hyperparameters, in_bfloat16, trained_model
from hfcf.training.verifier import add_nei, evaluate_verifier, scores, train_verifier

Tiny = Callable[[str], str]

pytestmark = [
    pytest.mark.usefixtures("on_cpu"),
    pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning"),  # PEFT asks for it
    pytest.mark.filterwarnings("ignore:fan_in_fan_out is set to False"),  # PEFT on GPT-2's layers
]


def rows(number: int, *, pieces: int = 2, group: int = 1, labels: tuple[str, ...] = (SUPPORTS, REFUTES)) -> Dataset:
    """`number` rows, `group` of them to a group, with labels in turn."""
    made = [
        {
            "id": f"row-{i}", "claim": f"Claim {i} is about river {i}.", "label": labels[i % len(labels)],
            "evidence": [{"title": f"Title {i}", "text": f"Piece {k} of row {i}."} for k in range(pieces)],
            "group_id": f"group-{i // group}", "corpus": "made", "split": "train",
        }
        for i in range(number)
    ]  # fmt: skip
    return Dataset.from_list(made, features=get_task("verification").features)


# --- NOT ENOUGH INFO rows


def test_half_of_each_label_is_added_and_the_originals_stay() -> None:
    ds = concatenate_datasets([rows(30), rows(11, labels=(REFUTES,))])
    made = add_nei(ds)
    assert made.select(range(41)).to_list() == ds.to_list()
    new = made.select(range(41, len(made)))
    assert set(new["label"]) == {NOT_ENOUGH_INFO}
    assert len(new) == 15 // 2 + 26 // 2
    assert len(set(new["id"]) - set(ds["id"])) == len({*new["id"]})
    assert made.features == ds.features


def test_both_ways_are_used_about_equally() -> None:
    ds = rows(400)
    new = add_nei(ds).select(range(400, 600))
    ways: Counter[str] = Counter()
    for row in new:
        own = [piece["text"] for piece in ds[int(row["id"].split("-")[1])]["evidence"]]
        found = [piece["text"] for piece in row["evidence"]]
        removed, anew = set(found) < set(own), not set(found) & set(own)
        assert removed != anew
        assert len(found) == (1 if removed else 2)
        ways["removed" if removed else "anew"] += 1
    assert 70 < ways["removed"] < 130
    assert sum(ways.values()) == 200


def test_a_claim_never_gets_evidence_of_its_own_group() -> None:
    for row in add_nei(rows(60, pieces=1, group=5)).select(range(60, 90)):
        assert len(row["evidence"]) == 1  # a single piece is replaced, and not removed
        other = int(row["evidence"][0]["text"].rsplit(" ", 1)[1][:-1])
        assert f"group-{other // 5}" != row["group_id"]


def test_distractors_are_no_true_evidence() -> None:
    ds = rows(60, pieces=3)
    ds = ds.add_column("gold", [[True, False, True]] * 60)
    removed = [row for row in add_nei(ds).select(range(60, 90)) if len(row["evidence"]) == 2]
    assert removed
    assert all("Piece 1" in " ".join(piece["text"] for piece in row["evidence"]) for row in removed)


def test_nei_rows_follow_the_seed() -> None:
    ds = rows(60)
    assert add_nei(ds).to_list() == add_nei(ds).to_list() != add_nei(ds, seed=14).to_list()


@pytest.mark.parametrize("ds", [rows(20, labels=(NOT_ENOUGH_INFO,)), rows(10, pieces=1, group=10)])
def test_neither_nei_rows_nor_a_set_of_one_group_make_nei_rows(ds: Dataset) -> None:
    assert add_nei(ds).to_list() == ds.to_list()


# --- rows


def jsonl(path: Path, ds: Dataset) -> str:
    kept = ("id", "group_id", "claim", "evidence", "label")
    path.write_text("".join(json.dumps({k: row[k] for k in kept}) + "\n" for row in ds))
    return str(path)


def test_what_an_excluded_set_repeats_is_dropped() -> None:
    ds, other = rows(6), rows(6).select([0])
    changed = other.map(lambda row: {"claim": "An unknown claim."})
    assert drop_overlap(ds, other)[0]["id"][:] == [f"row-{i}" for i in range(1, 6)]
    assert drop_overlap(ds, changed)[1] == 1
    assert drop_overlap(ds, other.map(lambda row: {"claim": row["claim"].upper() + " !", "evidence": []}))[1] == 1
    assert drop_overlap(ds, changed.map(lambda row: {"evidence": row["evidence"][:1]}))[1] == 0


def test_rows_are_taken_and_skipped(tmp_path: Path) -> None:
    source = {"corpus": "jsonl", "data_files": jsonl(tmp_path / "train.jsonl", rows(8)), "split": "train"}
    ids = load_rows([{**source, "take": 3}, {**source, "skip": 6}, {**source, "skip": 4, "take": 1}])["id"][:]
    assert ids == ["row-0", "row-1", "row-2", "row-6", "row-7", "row-4"]


def test_claims_with_fewer_pieces_of_evidence_are_left_out_before_rows_are_taken(tmp_path: Path) -> None:
    piece = {"title": "", "text": "One more."}
    ds = rows(6).map(lambda row, i: {"evidence": [*row["evidence"], piece] if i % 2 else row["evidence"][:1]}, with_indices=True)
    source = {"corpus": "jsonl", "data_files": jsonl(tmp_path / "train.jsonl", ds), "split": "train"}
    assert load_rows([{**source, "pieces": 2, "take": 2}])["id"][:] == ["row-1", "row-3"]
    questions = {"corpus": "squad", "data_files": {"train": str(tmp_path / "squad.json")}, "split": "train"}
    asked = {"id": "q", "question": "Who?", "answers": [{"text": "Ada", "answer_start": 0}]}
    (tmp_path / "squad.json").write_text(
        json.dumps({"data": [{"title": "t", "paragraphs": [{"context": "Ada.", "qas": [asked]}]}]})
    )
    with pytest.raises(RecipeError, match=r"squad.*pieces.*qa"):
        load_rows([{**questions, "pieces": 2}])


@pytest.mark.parametrize("split", ["validation", "test"])
def test_a_development_or_test_split_trains_only_when_it_is_said(tmp_path: Path, split: str) -> None:
    source = {"corpus": "jsonl", "data_files": {split: jsonl(tmp_path / "some.jsonl", rows(4))}, "split": split}
    assert len(load_rows([source])) == 4
    with pytest.raises(RecipeError, match=rf"jsonl.*split '{split}'.*role: train"):
        load_rows([source], training=True)
    assert len(load_rows([{**source, "role": "train"}], training=True)) == 4


@pytest.mark.parametrize("name", ["train_verifier", "train_generator"])
@pytest.mark.parametrize("preset", ["paper", "offline"])
def test_the_shipped_recipes_say_it(name: str, preset: str) -> None:
    content = recipes.read_recipe(recipes.find_recipe(name), [f"preset={preset}"])
    for source in content["data"]:
        assert source["split"] == "train" or source["role"] == "train"


# --- settings


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tune": "some"}, "tune must be 'full', 'lora' or 'lowrank', got 'some'"),
        ({"tune": ""}, "tune must be 'full', 'lora' or 'lowrank', got ''"),
        ({"max_length": 0}, "max_length must be at least 1, got 0"),
        ({"batch_size": True}, "batch_size must be a valid integer, got True"),
        ({"learning_rate": "1e-5"}, "learning_rate must be a valid number, got '1e-5'"),
        ({"warmup": 1.5}, "warmup must be at most 1, got 1.5"),
    ],
)
def test_invalid_settings_are_an_error_that_names_them(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Hyperparameters(model=Model("a"), **changes)


def test_recipes_take_the_settings_of_a_training_as_keys() -> None:
    from hfcf.pipeline.training_recipes import TrainRecipe
    from hfcf.studies.compare.recipe import TrainingSettings

    for name, setting in settings_of(Hyperparameters).items():
        for recipe in (TrainRecipe, TrainingSettings):
            if name != "model" and (name, recipe) != ("seed", TrainingSettings):
                assert recipe.model_fields[name].default == setting.default
                assert recipe.model_fields[name].description


@pytest.mark.parametrize("epochs", [2, 2.0])
def test_values_stay_as_they_are_given(epochs: float) -> None:
    """The digest of a training tells 2 from 2.0, and a trained model is found by it."""
    hp = Hyperparameters(model=Model("a"), epochs=epochs)
    assert repr(hp.epochs) == repr(epochs)


def test_the_defaults_are_the_papers() -> None:
    hp = Hyperparameters(model="roberta-base")  # type: ignore[arg-type]
    assert (hp.model, hp.max_length, hp.batch_size, hp.learning_rate) == (Model("roberta-base"), 130, 4, 1e-5)


# --- the verifier


def settings(folder: str, **changes: Any) -> Hyperparameters:
    standard = {"max_length": 48, "batch_size": 4, "learning_rate": 3e-3, "epochs": 1, "rank": 8}
    return Hyperparameters(**{"model": Model(folder), **standard, **changes})


@pytest.fixture
def networks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The networks that `fit` returns while the test runs."""
    kept: list[Any] = []
    for module in (classifier, generator_module):
        original = module.fit
        monkeypatch.setattr(module, "fit", lambda *a, _fit=original, **k: kept.append(_fit(*a, **k)) or kept[-1])
    return kept


def encoder_of(tiny_model: Tiny, tmp_path: Path, **settings: Any) -> Path:
    """The encoder of a classifier, without its head."""
    BertModel.from_pretrained(tiny_model("classifier"), **settings).save_pretrained(tmp_path / "encoder")
    AutoTokenizer.from_pretrained(tiny_model("classifier")).save_pretrained(tmp_path / "encoder")
    return tmp_path / "encoder"


def answers_of(network: Any, folder: str, pairs: list[list[str]], max_length: int) -> list[list[float]]:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    batch = encode_pairs(tokenizer, pairs, max_length, padding=True, return_tensors="pt")
    with torch.no_grad():
        return network(**batch).logits.softmax(-1).tolist()


@pytest.mark.parametrize("tune", ["full", "lora", "lowrank"])
def test_a_stored_verifier_answers_as_it_did_after_training(
    tune: str, tiny_model: Tiny, tmp_path: Path, networks: list[Any]
) -> None:
    folder, out = tiny_model("classifier"), tmp_path / "out"
    hp, ds = settings(folder, tune=tune, rank=15 if tune == "lowrank" else 8), rows(24)
    train_verifier(ds, hp, out)
    pairs = [[row["claim"], join(row["evidence"])[0]] for row in ds]
    found = Classifier(model=trained_model(hp, out), max_length=48).run(pairs)
    values = [[row[label] for label in LABELS] for row in found]
    error = {"full": 1e-4, "lora": 0.01, "lowrank": 0.05}[tune]
    for row, expected in zip(values, answers_of(networks[0], folder, pairs, 48), strict=True):
        assert row == pytest.approx(expected, abs=error)
    base = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    old = answers_of(base, folder, pairs, 48)
    moved = [abs(a - b) for row, before in zip(values, old, strict=True) for a, b in zip(row, before, strict=True)]
    assert max(moved) > 0.1


def test_a_head_of_several_layers_is_stored_whole_beside_a_lora_adapter(tiny_model: Tiny, tmp_path: Path) -> None:
    folder, out = Path(shutil.copytree(tiny_model("classifier"), tmp_path / "roberta")), tmp_path / "out"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    sizes = {"vocab_size": len(tokenizer), "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = RobertaConfig(**sizes, intermediate_size=16, pad_token_id=tokenizer.pad_token_id, max_position_embeddings=80)
    RobertaModel(config).save_pretrained(folder)
    hp, ds = settings(str(folder), tune="lora", rank=4), rows(8)
    train_verifier(ds, hp, out)
    (answer, *_) = Classifier(model=trained_model(hp, out), max_length=48).run([["Rome is old.", "Rome is old."]])
    assert sum(answer.values()) == pytest.approx(1, abs=1e-4)
    stored = {name for name in load_file(out / "adapter_model.safetensors") if "classifier" in name}
    assert {name.rpartition("classifier.")[2] for name in stored} == {
        "dense.weight", "dense.bias", "out_proj.weight", "out_proj.bias"
    }  # fmt: skip


@pytest.mark.parametrize(("bf16", "has_it"), [(False, True), (True, False), (True, True)])
def test_mixed_precision_computes_in_bfloat16_and_stores_float32(
    bf16: bool, has_it: bool, tiny_model: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds, forward = set(), BertModel.forward

    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        kinds.add(torch.mm(torch.ones(2, 2), torch.ones(2, 2)).dtype)
        return forward(self, *args, **kwargs)

    monkeypatch.setattr(BertModel, "forward", watched)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": has_it}, raising=False)
    train_verifier(rows(8), settings(tiny_model("classifier"), bf16=bf16), tmp_path)
    assert kinds == {torch.bfloat16 if bf16 and has_it else torch.float32}
    assert {tensor.dtype for tensor in load_file(tmp_path / "model.safetensors").values()} == {torch.float32}


def test_several_gpus_of_one_process_share_no_batch(tiny_model: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    train_verifier(rows(8), settings(tiny_model("classifier"), batch_size=4, epochs=1.0), tmp_path)
    assert read_steps(tmp_path)["steps"] == 2, "by DataParallel, a batch would have 4 rows of each GPU"


@pytest.mark.parametrize("computes", [False, True])
def test_a_device_that_only_emulates_bfloat16_trains_in_float32(computes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    hp = settings("me/model", bf16=True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation or computes)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": computes}, raising=False)
    for device in (torch.device("cuda"), torch.device("cpu")):
        assert in_bfloat16(hp, device) == computes
        assert not in_bfloat16(replace(hp, bf16=False), device)


@pytest.mark.parametrize("tune", ["lora", "lowrank"])
def test_an_adapter_is_smaller_than_its_model_and_names_no_folder_of_this_machine(
    tune: str, tiny_model: Tiny, tmp_path: Path
) -> None:
    folder, out = tiny_model("classifier"), tmp_path / "out"
    train_verifier(rows(4), settings(folder, tune=tune, rank=2), out)
    files = {path.name for path in out.iterdir() if path.is_file()}
    assert {"adapter_model.safetensors", "adapter_config.json", "config.json"} <= files
    assert not {"model.safetensors", "README.md"} & files
    assert (out / "adapter_model.safetensors").stat().st_size < (Path(folder) / "model.safetensors").stat().st_size / 3


def test_a_new_head_follows_the_seed(tiny_model: Tiny, tmp_path: Path, networks: list[Any]) -> None:
    encoder = encoder_of(tiny_model, tmp_path)
    for i, seed in enumerate((1, 1, 2)):
        train_verifier(rows(4), settings(str(encoder), seed=seed, learning_rate=1e-30), tmp_path / str(i))
    one, same, other = (network.classifier.weight for network in networks)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


@pytest.mark.parametrize("tune", ["lora", "lowrank"])
def test_a_new_pooler_is_stored(tune: str, tiny_model: Tiny, tmp_path: Path, networks: list[Any]) -> None:
    encoder, out = encoder_of(tiny_model, tmp_path, add_pooling_layer=False), tmp_path / "out"
    hp = settings(str(encoder), tune=tune)
    train_verifier(rows(8), hp, out)
    network, _ = Classifier(model=trained_model(hp, out), max_length=48).loaded()
    assert torch.allclose(network.bert.pooler.dense.weight, networks[0].bert.pooler.dense.weight, atol=5e-3)


def test_a_training_can_start_from_an_adapter_and_goes_on_from_its_answers(
    tiny_model: Tiny, tmp_path: Path, networks: list[Any]
) -> None:
    encoder, first = encoder_of(tiny_model, tmp_path), tmp_path / "first"
    hp = settings(str(encoder), tune="lowrank")
    train_verifier(rows(8), hp, first, labels=LABELS[:2])
    start, pairs = trained_model(hp, first), [["Claim 1.", "Piece 2."], ["Claim 3.", "Piece 4."]]
    train_verifier(rows(4), settings(str(encoder), model=start, learning_rate=1e-30), tmp_path / "second", labels=LABELS[:2])
    before, after = (Classifier(model=model, max_length=48).run(pairs) for model in (start, Model(str(tmp_path / "second"))))
    assert [set(one) for one in after] == [{SUPPORTS, REFUTES}] * 2
    assert [list(one.values()) for one in after] == [pytest.approx(list(one.values()), abs=1e-4) for one in before]
    with pytest.raises(ValueError, match=r"all weights.*tune=full"):
        train_verifier(rows(4), settings(str(encoder), model=start, tune="lowrank"), tmp_path / "third", labels=LABELS[:2])
    with pytest.raises(ValueError, match=r"SUPPORTS, REFUTES.*SUPPORTS, REFUTES, NOT ENOUGH INFO"):
        train_verifier(rows(4), settings(str(encoder), model=start), tmp_path / "third")


def test_a_checkpoint_that_was_cut_off_is_not_gone_on_from(tiny_model: Tiny, tmp_path: Path, networks: list[Any]) -> None:
    hp, ds = settings(tiny_model("classifier")), rows(8)
    train_verifier(ds, hp, tmp_path / "whole")
    half = tmp_path / "cut" / "checkpoints" / "checkpoint-1"
    half.mkdir(parents=True)
    (half / "model.safetensors").write_bytes(b"half of")
    train_verifier(ds, hp, tmp_path / "cut")
    assert torch.equal(networks[0].classifier.weight, networks[1].classifier.weight)


def test_a_finished_training_does_not_stand_in_for_the_next(tiny_model: Tiny, tmp_path: Path, networks: list[Any]) -> None:
    hp = settings(tiny_model("classifier"))
    train_verifier(rows(8), hp, tmp_path / "out")
    train_verifier(rows(8, labels=(REFUTES, SUPPORTS)), hp, tmp_path / "out")
    assert not torch.equal(networks[0].classifier.weight, networks[1].classifier.weight)
    assert not (tmp_path / "out" / "checkpoints").exists()


def test_a_claim_only_verifier_sees_no_evidence(tiny_model: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Dataset] = []
    monkeypatch.setattr(classifier, "fit", lambda network, tokenizer, encoded, hp, **k: kept.append(encoded))
    for hidden in (True, False):
        train_verifier(rows(3), settings(tiny_model("classifier")), tmp_path, claim_only=hidden)
    lengths = [[len(ids) for ids in encoded["input_ids"]] for encoded in kept]
    assert all(one < other for one, other in zip(*lengths, strict=True))
    assert kept[0]["labels"][:] == [0, 1, 0]


# --- how well a verifier does


class Fixed(Engine):
    """Answers by claim."""

    model, labels, max_length = Model("fixed"), LABELS, 130

    def count_cut(self, requests: Any) -> int:
        return 0

    def run(self, requests: Any) -> list[dict[str, float]]:
        return [json.loads(claim) for claim, _ in requests]


def judged(*cases: tuple[str, float, float, float]) -> Dataset:
    """Rows of (gold label, three probabilities)."""
    ds = rows(len(cases))
    claims = [json.dumps(dict(zip(LABELS, case[1:], strict=True))) for case in cases]
    columns = {"claim": claims, "label": [case[0] for case in cases]}
    return ds.map(lambda row, i: {name: values[i] for name, values in columns.items()}, with_indices=True)


def test_scores_are_those_counted_by_hand() -> None:
    ds = judged(
        (SUPPORTS, 0.8, 0.1, 0.1), (SUPPORTS, 0.3, 0.1, 0.6), (SUPPORTS, 0.2, 0.7, 0.1), (REFUTES, 0.1, 0.2, 0.7),
        (REFUTES, 0.4, 0.3, 0.3), (NOT_ENOUGH_INFO, 0.1, 0.2, 0.7),
    )  # fmt: skip
    # Three ways: S→S, S→N, S→R, R→N, R→S, N→N. F1 of S: p 1/2, r 1/3 = 0.4; of R: 0; of N: p 1/3, r 1 = 0.5.
    assert evaluate_verifier(ds, Fixed(), ways=3).scores == {"rows": 6, "accuracy": 0.3333, "macro_f1": 0.3, "majority": 0.5}  # type: ignore[arg-type]
    # Two ways: S→S, S→S, S→R, R→R, R→S. F1 of S: p 2/3, r 2/3; of R: p 1/2, r 1/2.
    assert evaluate_verifier(ds, Fixed(), ways=2).scores == {"rows": 5, "accuracy": 0.6, "macro_f1": 0.5833, "majority": 0.6}  # type: ignore[arg-type]


def test_a_set_without_rows_has_no_scores() -> None:
    assert evaluate_verifier(judged((NOT_ENOUGH_INFO, 0.1, 0.2, 0.7)), Fixed(), ways=2).scores == {"rows": 0}  # type: ignore[arg-type]


def test_macro_f1_is_over_the_labels_of_the_rows() -> None:
    """As scikit-learn has it with the labels of the gold rows, and over no label that is only predicted or nowhere."""
    assert scores([SUPPORTS, SUPPORTS], [SUPPORTS, REFUTES]) == {"accuracy": 0.5, "macro_f1": 0.6667}
    gold, answers = [SUPPORTS, SUPPORTS, NOT_ENOUGH_INFO], [SUPPORTS, REFUTES, NOT_ENOUGH_INFO]
    # F1 of S: p 1, r 1/2 = 2/3; of N: 1.
    assert VERDICTS.scores(gold, answers)["macro_f1"] == pytest.approx(5 / 6, abs=1e-4)
    assert f1_score(gold, answers, labels=[SUPPORTS, NOT_ENOUGH_INFO], average="macro") == pytest.approx(5 / 6)
    letters = [np.array([label[0] for label in labels]) for labels in (gold, answers)]
    assert VERDICTS.resample(np.ones((1, 3)), letters[0], letters[1][None])[:, 0, 0] == pytest.approx([2 / 3, 5 / 6])


def test_rows_of_one_label_have_no_macro_f1() -> None:
    result = evaluate_verifier(judged((SUPPORTS, 0.8, 0.1, 0.1), (SUPPORTS, 0.2, 0.7, 0.1)), Fixed(), ways=2)  # type: ignore[arg-type]
    assert result.scores == {"rows": 2, "accuracy": 0.5, "majority": 1.0}
    assert result.notes[0] == "there is no macro-F1: all rows that are scored are SUPPORTS"


# --- the generator


@pytest.mark.parametrize("kind", ["t5", "gpt2"])
def test_a_generator_is_trained_on_supported_claims_alone(
    kind: str, tiny_model: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Dataset] = []
    monkeypatch.setattr(generator_module, "fit", lambda network, tokenizer, encoded, hp, **k: kept.append(encoded))
    ds = rows(6)
    train_generator(ds, settings(tiny_model(kind)), tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tiny_model(kind))
    supported = [row for row in ds if row["label"] == SUPPORTS]
    assert len(kept[0]) == len(supported) == 3
    for made, row in zip(kept[0], supported, strict=True):
        text = normalise(join(row["evidence"])[0])
        target = normalise(tokenizer.decode([i for i in made["labels"] if i != -100], skip_special_tokens=True))
        assert target == normalise(row["claim"])
        size = made["labels"].count(-100) if kind == "gpt2" else len(made["input_ids"])
        read = made["input_ids"][:size]
        prompt = normalise(PROMPT.format("")) if kind == "gpt2" else ""
        assert normalise(tokenizer.decode(read, skip_special_tokens=True)) == text + prompt
        assert made["labels"][-1] == tokenizer.eos_token_id
        if kind == "gpt2":
            assert made["input_ids"][size:] == made["labels"][size:]


def test_a_prefixed_generator_is_told_to_support_or_to_refute(
    tiny_model: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Dataset] = []
    monkeypatch.setattr(generator_module, "fit", lambda network, tokenizer, encoded, hp, **k: kept.append(encoded))
    ds = rows(3, labels=(SUPPORTS, REFUTES, NOT_ENOUGH_INFO))
    train_generator(ds, settings(tiny_model("t5")), tmp_path, prefixed=True)
    tokenizer = AutoTokenizer.from_pretrained(tiny_model("t5"))
    read = [normalise(tokenizer.decode(ids, skip_special_tokens=True)) for ids in kept[0]["input_ids"]]
    texts = [normalise(join(evidence)[0]) for evidence in ds["evidence"]]
    assert read == [f"support{texts[0]}", f"refute{texts[1]}"]
    asked: list[Any] = []

    class Writer:
        def run(self, requests: Any) -> list[Any]:
            asked.extend(requests)
            return [[] for _ in requests]

    monkeypatch.setattr(generator_module, "Generator", lambda model, **settings: Writer())
    evaluate_generator(ds, Model("a"), max_length=64, prefixed=True)
    assert [text.partition(":")[0] for text, _ in asked] == ["support", "refute"]


@pytest.mark.parametrize(("kind", "tune"), [("t5", "full"), ("t5", "lowrank"), ("gpt2", "full"), ("gpt2", "lora")])
def test_a_stored_generator_writes_what_it_learned(
    kind: str, tune: str, tiny_model: Tiny, tmp_path: Path, networks: list[Any]
) -> None:
    hp, out = settings(tiny_model(kind), tune=tune, rank=15, epochs=2), tmp_path / "out"
    train_generator(rows(8), hp, out)
    engine = Generator(model=trained_model(hp, out), num_beams=2, num_return_sequences=1, max_new_tokens=5)
    network = engine.loaded()[0]
    state = networks[0].state_dict()
    assert all(torch.allclose(weight, state[name], atol=0.05) for name, weight in network.state_dict().items())
    assert engine.run([["Piece 0 of row 1.", []]])[0]


def test_a_generator_is_scored_beside_the_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    ds = rows(4).map(lambda row: {"evidence": [{"title": "", "text": row["claim"]}]})

    class Writer:
        def run(self, requests: Any) -> list[Any]:
            return [[{"text": requests[0][0]}], []]

    monkeypatch.setattr(generator_module, "Generator", lambda model, **settings: Writer())
    found = evaluate_generator(ds, Model("a"), max_length=64)
    assert found["rows"] == 2
    assert found["first piece"]["bleu"] == pytest.approx(100)
    assert found["model"]["bleu"] < 70


# --- recipes


def recipe_of(tmp_path: Path, tiny: str, **changes: Any) -> dict[str, Any]:
    jsonl(tmp_path / "train.jsonl", rows(40))
    jsonl(tmp_path / "other.jsonl", rows(3))
    return {
        "train": "verifier", "model": tiny, "data_dir": str(tmp_path), "max_length": 48, "batch_size": 4, "epochs": 1,
        "data": [{"corpus": "jsonl", "data_files": "train.jsonl", "split": "train"}],
        "exclude": [{"corpus": "jsonl", "data_files": "other.jsonl", "split": "train"}],
        "evaluate": [{"name": "Others", "corpus": "jsonl", "data_files": "other.jsonl", "split": "train"}],
        "held_out": 0.25, "nei": ["jsonl"], "baselines": True, **changes,
    }  # fmt: skip


@pytest.mark.parametrize("tune", ["full", "lowrank"])
def test_a_recipe_trains_scores_and_describes_a_verifier(tune: str, tiny_model: Tiny, tmp_path: Path) -> None:
    out = tmp_path / "out"
    recipe = recipe_of(tmp_path, tiny_model("classifier"), tune=tune)
    report = train(recipe, out, command="hfcf train mine.yaml")
    counts = report["rows"]
    assert counts["dropped as repeats"] == 3
    assert counts["train"] + counts["held_out"] == 37
    assert counts["held_out"] > 0
    assert json.loads((out / "scores.json").read_text()) == report
    assert set(report["scores"]) == {"held out: jsonl", "Others"}
    others = report["scores"]["Others"]
    assert others["2-way"]["verifier"]["rows"] == others["2-way"]["claim only"]["rows"] == 3
    assert report["scores"]["held out: jsonl"]["3-way"]["verifier"]["rows"] > counts["held_out"]
    assert "hfcf train mine.yaml" in (out / "README.md").read_text()
    hp = Hyperparameters(model=Model(tiny_model("classifier")), tune=tune)
    [answer] = Classifier(model=trained_model(hp, out), max_length=48).run([["A claim.", "Evidence."]])
    assert set(answer) == set(LABELS)


@pytest.mark.parametrize(
    ("changes", "told"), [({"ways": 4}, "ways must be at most 3, got 4"), ({"ways": 2, "nei": ["jsonl"]}, r"ways.*3.*2.*nei")]
)
def test_ways_that_do_not_go_are_an_error(changes: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=told):
        train(recipe_of(tmp_path, "x", **changes), tmp_path / "out")


@pytest.mark.parametrize("name", ["checkpoints/mine.txt", "model.safetensors"])
def test_a_training_touches_no_folder_of_others(name: str, tmp_path: Path) -> None:
    mine = tmp_path / "out" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(ExistingResultError, match=name.partition("/")[0]):
        train(recipe_of(tmp_path, "x"), tmp_path / "out")
    assert mine.read_text() == "mine"


def test_a_training_shows_in_a_log_where_it_is(tiny_model: Tiny, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="hfcf"):
        train_verifier(rows(44), settings(tiny_model("classifier"), epochs=2), tmp_path)
    lines = [record.getMessage() for record in caplog.records if record.getMessage().startswith("training: ")]
    assert len(lines) == 2
    assert re.fullmatch(r"training: epoch 1.0 of 2, step 11 of 22, loss [\d.e-]+, less than 1 min left", lines[0])
    assert re.fullmatch(r"training: epoch 2.0 of 2, step 22 of 22, loss [\d.e-]+", lines[1])


def test_a_recipe_trains_a_two_way_verifier(tiny_model: Tiny, tmp_path: Path) -> None:
    encoder = encoder_of(tiny_model, tmp_path)
    recipe = recipe_of(tmp_path, str(encoder), ways=2, nei=[])
    report = train(recipe, tmp_path / "out")
    assert set(report["scores"]["Others"]) == {"2-way"}
    with pytest.raises(ExistingResultError, match=r"epochs .*1\.0 .*2\.0 "):
        train({**recipe, "epochs": 2}, tmp_path / "out")
    with pytest.raises(ExistingResultError, match="first 8 "):
        train(recipe, tmp_path / "out", limit=8)
    assert json.loads((tmp_path / "out" / "config.json").read_text())["label2id"] == {SUPPORTS: 0, REFUTES: 1}


def test_labels_of_a_training_are_those_of_its_rows(tiny_model: Tiny, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    encoder = encoder_of(tiny_model, tmp_path)
    recipe = recipe_of(tmp_path, str(encoder), nei=[], evaluate=[], baselines=False, held_out=0.0, max_length=24, limit=4)
    with caplog.at_level(logging.WARNING):
        train(recipe, tmp_path / "two")
    assert set(json.loads((tmp_path / "two" / "config.json").read_text())["label2id"]) == {SUPPORTS, REFUTES}
    with pytest.raises(RecipeError, match=r"1 rows.*(SUPPORTS|REFUTES)"):
        plan_training(recipe, limit=1)
    assert re.search(r"\d+ of 4 rows have more than max_length=24 tokens, and are cut", caplog.text)
    third = [
        {**row, "id": f"n{i}", "group_id": f"n{i}", "claim": f"New {i}.", "label": NOT_ENOUGH_INFO} for i, row in enumerate(rows(4))
    ]
    jsonl(tmp_path / "third.jsonl", Dataset.from_list(third))
    recipe["data"] = [*recipe["data"], {"corpus": "jsonl", "data_files": "third.jsonl", "split": "train"}]
    train(recipe, tmp_path / "three")
    assert set(json.loads((tmp_path / "three" / "config.json").read_text())["label2id"]) == set(LABELS)
    with caplog.at_level(logging.WARNING):
        assert set(select_rows(parse_train({**recipe, "ways": 2}))[0]["label"]) == {SUPPORTS, REFUTES}
    assert "rows are not trained on: ways is 2, and they are neither SUPPORTS nor REFUTES" in caplog.text


def test_what_can_not_be_trained_is_refused_before_the_first_step(tiny_model: Tiny, tmp_path: Path) -> None:
    recipe, out = recipe_of(tmp_path, tiny_model("classifier"), nei=[]), tmp_path / "out"
    data, one_group = recipe["data"][0], [{**row, "group_id": "g"} for row in rows(8)]
    jsonl(tmp_path / "one_group.jsonl", Dataset.from_list(one_group))
    for changes, told in (
        ({"max_length": 5000}, "max_length .*5000"),
        ({"data": [{**data, "skip": 40}]}, "no row"),
        ({"exclude": [{**recipe["exclude"][0], "data_files": "train.jsonl"}]}, "no row.* 40 "),
        ({"calibrate": True, "held_out": 0.999, "data": [{**data, "data_files": "one_group.jsonl"}]}, "no row|held.out"),
    ):
        for each in (plan_training, partial(train, out=out)):
            with pytest.raises(ValueError, match=told):
                each({**recipe, **changes})
    train(recipe, out)


def test_a_training_that_is_refused_leaves_its_folder_to_the_mended_one(
    tiny_model: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, out = recipe_of(tmp_path, tiny_model("classifier"), evaluate=[], baselines=False), tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr("hfcf.pipeline.trainings.train_verifier", Mock(side_effect=ValueError("no")))
        with pytest.raises(ValueError, match="no"):
            train(recipe, out)
    assert not (out / "recipe.yaml").exists()
    train({**recipe, "learning_rate": 0.002}, out)
    with monkeypatch.context() as patch:  # once it is trained the folder is its own
        patch.setattr("hfcf.pipeline.trainings.evaluate_verifier", Mock(side_effect=ValueError("no")))
        with pytest.raises(ValueError, match="no"):
            train({**recipe, "learning_rate": 0.002}, out)
    with pytest.raises(ExistingResultError, match="learning_rate"):
        train(recipe, out)


def test_a_head_whose_classes_nobody_named_is_not_trained_on(tiny_model: Tiny, tmp_path: Path) -> None:
    network = BertForSequenceClassification.from_pretrained(tiny_model("classifier"))
    network.config.id2label = dict(enumerate(("no", "unclear", "yes")))
    network.save_pretrained(tmp_path / "mine")
    AutoTokenizer.from_pretrained(tiny_model("classifier")).save_pretrained(tmp_path / "mine")
    with pytest.raises(ValueError, match=r'labels=.*"unclear"'):
        train(recipe_of(tmp_path, str(tmp_path / "mine")), tmp_path / "out")


def test_rows_to_score_on_that_are_trained_on_are_counted(
    tiny_model: Tiny, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recipe = parse_train(recipe_of(tmp_path, tiny_model("classifier"), nei=[], exclude=[]))
    training, _ = select_rows(recipe)
    sources = [source.model_copy(update={"name": "again"}) for source in recipe.data]
    with caplog.at_level(logging.WARNING):
        assert len(load_evaluation_sets(sources, recipe.data_dir, training)["again"]) == 0
    assert f"evaluate: again: {len(training)} of {len(training)} rows are left out: their group or a text" in caplog.text


def test_rows_of_a_folder_that_holds_a_dataset_are_trained_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Dataset.from_list([{"claim": f"Claim {i}.", "evidence": "A text.", "label": LABELS[i % 2]} for i in range(4)])
    own.save_to_disk(tmp_path / "saved")
    (tmp_path / "hub" / "data").mkdir(parents=True)
    own.to_parquet(tmp_path / "hub" / "data" / "train-0.parquet")
    configs = "configs:\n- config_name: default\n  data_files:\n  - {split: train, path: data/train-*.parquet}"
    (tmp_path / "hub" / "README.md").write_text(f"---\n{configs}\n---\n", encoding="utf-8")
    shutil.copytree(tmp_path / "hub", tmp_path / "fever")  # of a corpus's name, which stays the corpus's
    monkeypatch.chdir(tmp_path)
    for corpus in ("saved", "hub"):
        recipe = {"train": "verifier", "model": "x", "data": [{"corpus": corpus}]}
        assert select_rows(parse_train(recipe))[0]["claim"][:] == own["claim"][:], corpus
        recipe["data_dir"] = "elsewhere"
        assert len(select_rows(parse_train(recipe))[0]) == 4
    with pytest.raises(CorpusError, match="fever"):
        load("fever")


def test_a_recipe_trains_a_generator(tiny_model: Tiny, tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path, tiny_model("t5"), train="generator")
    report = train({k: v for k, v in recipe.items() if k not in ("nei", "evaluate", "baselines")}, tmp_path / "out", limit=8)
    assert report["rows"]["train"] == 8
    assert set(report["scores"]["held out: jsonl"]["model"]) == {"bleu", "chrf", "copied"}


def test_a_recipe_with_rows_of_a_test_set_is_refused_before_training(tiny_model: Tiny, tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path, tiny_model("classifier"))
    jsonl(tmp_path / "test.jsonl", rows(4))
    recipe["data"] = [{"corpus": "jsonl", "data_dir": ".", "split": "test"}]
    with pytest.raises(RecipeError, match="role: train"):
        train(recipe, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("changes", "message"), [({"train": "parser"}, "verifier, generator"), ({"epoch": 1}, "'epochs'")])
def test_a_recipe_that_does_not_fit_is_an_error(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=message):
        train(recipe_of(tmp_path, "a", **changes), tmp_path / "out")


def test_a_generator_of_which_no_row_is_held_out_has_its_card_and_its_scores(tiny_model: Tiny, tmp_path: Path) -> None:
    recipe = {
        "train": "generator", "model": tiny_model("t5"), "data": [{"corpus": "hover"}], "data_dir": "recipes:demo",
        "held_out": 0.0, "limit": 4, "epochs": 1, "max_length": 32,
    }  # fmt: skip
    report = train(recipe, tmp_path / "out")
    assert report["scores"] == {}
    assert (tmp_path / "out" / "scores.json").exists()
    assert "generator" in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


def test_rows_of_a_user_that_cannot_be_read_are_left_out_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"claim": f"Claim {i} is old.", "evidence": "Rome is old.", "label": label} for i, label in enumerate((1.0, 0.0, None))]
    file = tmp_path / "mine.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    source = {"corpus": {"path": "json", "data_files": str(file)}, "labels": {"0": "REFUTES", "1": "SUPPORTS"}}
    for given in (source, {**source, "corpus": "jsonl", "data_files": str(file)}):
        assert load_rows([given], training=True)["label"][:] == ["SUPPORTS", "REFUTES"]
        assert "row 3: there is no label" in capsys.readouterr().err
    with pytest.raises(CorpusError, match="label"):
        load_rows([{**source, "on_error": "raise"}], training=True)


def test_a_training_of_many_short_epochs_prints_ten_lines(caplog: pytest.LogCaptureFixture) -> None:
    from types import SimpleNamespace

    from hfcf.training.trainer import training_progress

    state = SimpleNamespace(global_step=0, max_steps=267, epoch=0.0, num_train_epochs=267)
    with caplog.at_level("INFO"), training_progress() as progress:
        progress.on_train_begin(None, state, None)
        for step in range(1, 268):
            state.global_step, state.epoch = step, float(step)
            progress.on_epoch_end(None, state, None)
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 10
    assert "267 of 267" in lines[-1]
