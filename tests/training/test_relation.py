from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from safetensors.torch import load_file
from tiny_relation import row

from hfcf.cli import models
from hfcf.core.model import Model, folder_hash
from hfcf.core.recipe import RecipeError
from hfcf.core.task import get_task
from hfcf.engines.classifier_spec import RBERT
from hfcf.engines.rbert import load_rbert
from hfcf.engines.relation_classifier import RelationClassifier
from hfcf.pipeline.train import train
from hfcf.training import relation
from hfcf.training.data import drop_related
from hfcf.training.relation import evaluate_relation, train_relation
from hfcf.training.trainer import Hyperparameters, LengthSampler

Tiny = Callable[[str], str]

FORTH, BACK, OTHER = "Entity-Origin(e1,e2)", "Entity-Origin(e2,e1)", "Other"
NAMES = ["film", "city", "album", "band", "state", "war"]
MADE = [
    row(f"{start} {text.format(one, NAMES[(i + 2) % 6])} .", label)
    for i, one in enumerate(NAMES)
    for start in ("", "In 1994")
    for text, label in (("the [{}] from {{{}}}", FORTH), ("the [{}] of which {{{}}} was made", BACK), ("[{}] and {{{}}}", OTHER))
]


def rows(made: list[dict[str, Any]] = MADE) -> Dataset:
    common = {"corpus": "made", "split": "train"}
    return Dataset.from_list([{**one, "group_id": one["id"], **common} for one in made], features=get_task("relation").features)


pytestmark = pytest.mark.usefixtures("on_cpu")


@pytest.fixture
def hp(tiny_model: Tiny) -> Hyperparameters:
    return Hyperparameters(model=Model(tiny_model("rbert")), max_length=32, batch_size=6, learning_rate=3e-3, epochs=3)


def test_it_learns_and_is_stored_whole(hp: Hyperparameters, tmp_path: Path) -> None:
    out = tmp_path / "out"
    train_relation(rows(), Hyperparameters(**{**vars(hp), "epochs": 20}), out)
    assert {path.name for path in out.iterdir()} >= {"config.json", "model.safetensors", RBERT, "tokenizer.json"}
    assert not (out / "checkpoints").exists()
    stored = {**load_file(out / "model.safetensors"), **load_file(out / RBERT)}
    assert {tensor.dtype for tensor in stored.values()} == {torch.float32}
    network, _ = load_rbert(Model(str(out)), torch.device("cpu"), torch.float32)
    assert network.labels == (FORTH, BACK, OTHER)
    found = evaluate_relation(rows(), RelationClassifier(model=Model(str(out)), max_length=32)).scores
    assert found.keys() == {"rows", "micro_f1", "macro_f1", "accuracy", "unread"}
    assert found["rows"] == len(MADE)
    assert found["micro_f1"] > 0.9


def test_no_bars_of_weights_are_shown(hp: Hyperparameters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr("transformers.utils.logging.is_progress_bar_enabled", lambda: True)
    monkeypatch.setattr("transformers.utils.logging.disable_progress_bar", lambda: calls.append("off"))
    monkeypatch.setattr("transformers.utils.logging.enable_progress_bar", lambda: calls.append("on"))
    train_relation(rows(), Hyperparameters(**{**vars(hp), "epochs": 1}), tmp_path / "out")
    load_rbert(Model(str(tmp_path / "out")), torch.device("cpu"), torch.float32)
    assert calls == ["off", "on"] * 3, "the encoder is loaded, stored, and loaded again"


def test_a_training_can_be_repeated(hp: Hyperparameters, tmp_path: Path) -> None:
    for out in ("one", "two"):
        train_relation(rows(), hp, tmp_path / out)
    assert folder_hash(str(tmp_path / "one")) == folder_hash(str(tmp_path / "two"))
    other = Hyperparameters(**{**vars(hp), "seed": 14})
    train_relation(rows(), other, tmp_path / "two")  # in a folder that holds another one: trained anew
    assert folder_hash(str(tmp_path / "one")) != folder_hash(str(tmp_path / "two"))


# --- the epoch


def test_the_best_epoch_is_stored_and_of_equal_ones_the_first(
    hp: Hyperparameters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = [0.2, 0.7, 0.7, 0.1]
    heads: list[torch.Tensor] = []
    scored = relation._BestEpoch.on_epoch_end

    def spied(self: Any, *args: Any, model: Any, **kwargs: Any) -> None:
        heads.append(model.classifier.weight.detach().clone())
        scored(self, *args, model=model, **kwargs)
        assert model.training

    left = iter(given)
    monkeypatch.setattr(relation, "micro_f1", lambda gold, predicted: next(left))
    monkeypatch.setattr(relation._BestEpoch, "on_epoch_end", spied)
    epoch = train_relation(rows(), Hyperparameters(**{**vars(hp), "epochs": 4}), tmp_path, dev=rows(MADE[:5]))
    assert epoch == 2
    assert len(heads) == 4
    stored = load_file(tmp_path / RBERT)["classifier.weight"]
    assert [torch.equal(stored, head) for head in heads] == [False, True, False, False]


def test_dev_rows_are_scored_as_the_engine_scores_them(
    hp: Hyperparameters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[float] = []
    micro = relation.micro_f1

    def spied(gold: Any, predicted: Any) -> float:
        assert gold == ["PHYS", *dev["label"][1:]]
        assert predicted[-1] is None  # the one that is too long
        found.append(micro(gold, predicted))
        return found[-1]

    long = row("the [film] of " + "the old and " * 10 + "{city}", FORTH)
    dev = rows([row("[film] in {city}", "PHYS"), *MADE[:9], long])
    monkeypatch.setattr(relation, "micro_f1", spied)
    train_relation(rows(), hp, tmp_path, dev=dev)
    assert len(found) == 3
    scored = evaluate_relation(dev, RelationClassifier(model=Model(str(tmp_path)), max_length=32))
    assert micro(scored.gold, scored.predicted) == pytest.approx(max(found), abs=1e-4)
    assert scored.scores["unread"] == 1


def test_scoring_changes_no_step(hp: Hyperparameters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rising = iter(range(100))
    train_relation(rows(), hp, tmp_path / "last")
    monkeypatch.setattr(relation, "micro_f1", lambda gold, predicted: next(rising) / 100)
    train_relation(rows(), hp, tmp_path / "best is last", dev=rows(MADE[:5]))
    assert folder_hash(str(tmp_path / "last")) == folder_hash(str(tmp_path / "best is last"))


# --- rows


def test_long_sentences_are_left_out_and_counted(hp: Hyperparameters, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    long = [row("the [film] of " + "the old and " * 10 + "{city}", FORTH)] * 2
    once = Hyperparameters(**{**vars(hp), "epochs": 1})
    with caplog.at_level(logging.WARNING, logger="hfcf"):
        train_relation(rows([*MADE, *long]), once, tmp_path / "with")
    assert [record.getMessage() for record in caplog.records] == ["2 of 38 rows are not trained on: they have more than 32 pieces"]
    train_relation(rows(), once, tmp_path / "without")
    assert folder_hash(str(tmp_path / "with")) == folder_hash(str(tmp_path / "without"))
    with pytest.raises(ValueError, match=r"2 rows.*32 pieces"):
        train_relation(rows(long), once, tmp_path / "none")


def test_classes_may_be_given(hp: Hyperparameters, tmp_path: Path) -> None:
    once = Hyperparameters(**{**vars(hp), "epochs": 1})
    train_relation(rows(), once, tmp_path, labels=["PHYS", OTHER, BACK, FORTH])
    [answer] = RelationClassifier(model=Model(str(tmp_path))).run([[["film", "of", "city"], [0, 1], [2, 3]]])
    assert list(answer) == ["PHYS", OTHER, BACK, FORTH]
    with pytest.raises(ValueError, match=r"Other.*'Entity-Origin\(e1,e2\)'"):
        train_relation(rows(), once, tmp_path, labels=[OTHER, BACK])


@pytest.mark.parametrize(
    "setting", [{"tune": "lora"}, {"tune": "lowrank"}, {"model": Model("offline:minilm", adapter="hfcf:verifier")}]
)
def test_only_whole_models_are_trained(hp: Hyperparameters, tmp_path: Path, setting: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"tune: full.*adapter"):
        train_relation(rows(), Hyperparameters(**{**vars(hp), **setting}), tmp_path)


def test_no_rows_have_no_scores(tiny_model: Tiny) -> None:
    engine = RelationClassifier(model=Model(tiny_model("rbert")))
    assert evaluate_relation(rows().select([]), engine).scores == {"rows": 0}


def test_a_class_that_means_no_relation_is_other_as_in_rows(tiny_model: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = {"no_relation": 0.4, "NA": 0.3, "born": 0.3}
    monkeypatch.setattr(RelationClassifier, "run", lambda self, requests: [answer] * len(requests))
    rows = Dataset.from_list([row("[Bob] met {Ada}", "Other"), row("[Bob] left {Rome}", "born")])
    found = evaluate_relation(rows, RelationClassifier(model=Model(tiny_model("rbert"))))
    assert found.predicted == ["Other", "Other"]
    assert found.scores["accuracy"] == 0.5


def test_rows_of_a_relation_that_is_no_class_are_left_out(tiny_model: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = {"met": 0.4, "born": 0.6}
    monkeypatch.setattr(RelationClassifier, "run", lambda self, requests: [answer] * len(requests))
    texts = {"born": "[Bob] left {Rome}", "wrote": "[Bob] wrote {Ada}", "Other": "[Bob] and {Ada}"}
    rows = Dataset.from_list([row(text, label) for label, text in texts.items()])
    found = evaluate_relation(rows, RelationClassifier(model=Model(tiny_model("rbert"))))
    assert found.scores["rows"] == 2, "a row without a relation counts"
    assert found.scores["accuracy"] == 0.5
    [(place, why)] = found.left_out.items()
    assert (place, "wrote" in why, "born" in why) == (1, True, True)


def test_a_class_that_may_mean_no_relation_is_named(tiny_model: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RelationClassifier, "run", lambda self, requests: [{"none": 0.6, "born": 0.4}] * len(requests))
    rows = Dataset.from_list([row("[Bob] met {Ada}", "Other"), row("[Bob] left {Rome}", "born")])
    found = evaluate_relation(rows, RelationClassifier(model=Model(tiny_model("rbert"))))
    (note,) = found.notes
    assert "1 rows" in note
    assert "none=Other" in note
    assert evaluate_relation(rows.select([1]), RelationClassifier(model=Model(tiny_model("rbert")))).notes == []


# --- the order


def test_batches_are_of_like_lengths_and_differ_from_epoch_to_epoch() -> None:
    lengths = [10 + 37 * i % 50 for i in range(44)]
    sampler = LengthSampler(lengths, 8, seed=1)
    epochs = [list(sampler) for _ in range(3)]
    assert len(sampler) == 44
    assert all(sorted(epoch) == list(range(44)) for epoch in epochs)
    cut = [{frozenset(epoch[i : i + 8]) for i in range(0, 44, 8)} for epoch in epochs]
    assert cut[0] != cut[1] != cut[2]
    for batches in cut:
        padded = sum(len(batch) * max(lengths[i] for i in batch) for batch in batches)
        assert padded < 1.35 * sum(lengths)
    assert list(LengthSampler(lengths, 8, seed=1)) == epochs[0] != list(LengthSampler(lengths, 8, seed=2))


# --- recipes


def test_a_row_with_the_same_sentence_is_not_apart() -> None:
    other = {**MADE[0], "id": "new", "head": MADE[0]["tail"], "tail": MADE[0]["head"]}
    assert drop_related(rows([other, MADE[1]]), rows([MADE[0]]))["id"] == [MADE[1]["id"]]


def test_a_recipe_trains_scores_and_writes_a_card_and_evaluate_says_the_same(
    hp: Hyperparameters, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(__file__).parent.parent / "fixtures" / "corpora"
    recipe = {
        "train": "relation", "model": hp.model.name, "max_length": 64, "epochs": 1, "learning_rate": 1e-3, "data_dir": str(folder),
        "data": [{"corpus": "ccg_semeval", "data_dir": "ccg_semeval", "sample": "original", "split": "train"}],
        "dev": {"corpus": "ccg_semeval", "data_dir": "ccg_semeval", "split": "validation"},
        "evaluate": [{"corpus": "ccg_semeval", "data_dir": "ccg_semeval", "split": "test"}],
    }  # fmt: skip
    with pytest.raises(RecipeError, match="dev: no row"):
        train({**recipe, "dev": {**recipe["data"][0]}}, tmp_path)
    report = train(recipe, tmp_path, command="hfcf train mine.yaml")
    assert report["scores"].keys() == {"dev, which chose the epoch", "ccg_semeval"}
    assert report["rows"]["train"] > 0
    assert all(0 <= its["micro_f1"] <= 1 for its in report["scores"].values() if its["rows"])
    card = (tmp_path / "README.md").read_text()
    assert "# Relation classifier (R-BERT) over" in card
    assert "relation-extraction" in card
    assert not re.search(r"\b(facts?|claims?|evidence)\b", card.lower())
    load_rbert(Model(str(tmp_path)), torch.device("cpu"), torch.float32)

    models.evaluate(str(tmp_path), [f"ccg_semeval={folder / 'ccg_semeval'}:test"], max_length=64)
    shown = capsys.readouterr().out
    assert "micro-F1" in shown
    assert "majority" not in shown
    its = report["scores"]["ccg_semeval"]
    assert all(str(its[key]) in shown for key in ("micro_f1", "macro_f1", "accuracy"))
