"""CCG as a whole: what it learns it learns from the rows it is given, bad rows come back, and every result leads to its source."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiny_relation
from datasets import Dataset, DatasetDict
from offline_models import installed

import hfcf
from hfcf.core.artifacts import artifact_path
from hfcf.core.model import Model
from hfcf.core.stage import Stage, StageError
from hfcf.core.task import get_task, revert_edits
from hfcf.engines.parser import Constituents
from hfcf.pipeline import run as runner
from hfcf.systems.ccg import editor as editors
from hfcf.systems.ccg.system import CCG
from hfcf.tasks.relation import entities
from hfcf.training import relation as trainer
from hfcf.training.model_cache import stored_model
from hfcf.training.trainer import Hyperparameters

pytestmark = [
    pytest.mark.skipif(not installed("wordnet"), reason="the offline WordNet is not installed"),
    pytest.mark.usefixtures("no_request_cache"),
]

CAUSE, ORIGIN, MAKER = "Cause-Effect(e1,e2)", "Entity-Origin(e1,e2)", "Product-Producer(e2,e1)"
SENTENCES = [
    ("The [film] was directed by an American {director}", CAUSE),
    ("a [film] that was made by an old {actor}", ORIGIN),
    ("the [band] was formed in the city of {London}", MAKER),
    ("the [book] was released by a small {band}", ORIGIN),
    ("An [actress] born in the {state}", CAUSE),
    ("[director] of the {film}", "Other"),
]


def relations(sentences: list[tuple[str, str]], first: int = 0) -> Dataset:
    made = [
        {**tiny_relation.row(text, label), "id": f"{i}", "group_id": f"{i}", "corpus": "made", "split": "train"}
        for i, (text, label) in enumerate(sentences, first)
    ]
    return Dataset.from_list(made, features=get_task("relation").features)


@pytest.fixture
def ccg(tiny_model: Callable[[str], str]) -> CCG:
    """CCG that trains tiny models, for a step or two."""
    hp = Hyperparameters(model=Model(tiny_model("rbert")), max_length=64, batch_size=8, learning_rate=1e-3, epochs=1)
    return CCG(
        masked=Model(tiny_model("mlm")), top=30, parser=None, classifier=hp,
        editor_training=replace(hp, model=Model(tiny_model("t5"))), num_beams=4, num_candidates=4, max_new_tokens=24, max_length=64,
    )  # fmt: skip


@pytest.fixture
def trained_on(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[list[str]]]:
    """What the two training functions were given: the ids of rows, and the texts of pairs."""
    seen: dict[str, list[list[str]]] = {"indicator": [], "editor": []}
    train_relation, train_texts = trainer.train_relation, editors.train_texts

    def relation(rows: Dataset, *args: Any, **kwargs: Any) -> None:
        seen["indicator"].append(list(rows["id"]))
        train_relation(rows, *args, **kwargs)

    def texts(pairs: Dataset, *args: Any, **kwargs: Any) -> None:
        seen["editor"].append(list(pairs["source"]))
        train_texts(pairs, *args, **kwargs)

    monkeypatch.setattr(trainer, "train_relation", relation)
    monkeypatch.setattr(editors, "train_texts", texts)
    return seen


def fit(ccg: CCG, ds: Dataset) -> tuple[CCG, Dataset]:
    fitted = ccg.fit(ds)
    return fitted, hfcf.prepare(ds, fitted).map(fitted.identify_causal_terms, batched=True)


def learned(stage: Stage) -> dict[str, Any]:
    assert stage.fitted
    content: dict[str, Any] = json.loads(artifact_path(stage.fitted).read_text(encoding="utf-8"))
    return content


def test_everything_is_learned_from_the_given_rows(ccg: CCG, trained_on: dict[str, list[list[str]]]) -> None:
    whole = relations(SENTENCES)
    sample = whole.select(range(4))
    fitted, identified = fit(ccg, sample)
    known = [row for row in identified if row["causal_terms"]]
    assert known, "the tiny indicator flips nothing: choose other sentences"
    assert trained_on["indicator"] == [["0", "1", "2", "3"]]
    assert trained_on["editor"] == [[editors.prompt_text(row, row["label"], ccg.editor_training.model) for row in known]]
    assert list(fitted.fitted) == ["identify_causal_terms", "expand_relation", "edit_relation"]
    assert learned(fitted.expand_relation)["relation_net"]["relations"] == sorted({CAUSE, ORIGIN, MAKER})
    content = learned(fitted.edit_relation)
    assert sum(sum(terms["forward"].values()) for terms in content["terms"].values()) == len(known)
    assert content["editor_contents"] == stored_model(content["editor"]).key()
    # The same rows from elsewhere, beside other held-out ones: nothing is trained again, and nothing else is learned.
    for held_out in (SENTENCES[4:], [("the [song] of a {river}", MAKER)]):
        again, _ = fit(ccg, Dataset.from_list([*sample, *relations(held_out, 4)], features=sample.features).select(range(4)))
        assert again.fitted == fitted.fitted
    assert [len(calls) for calls in trained_on.values()] == [1, 1]
    # One row of the sample itself changes all.
    other, _ = fit(ccg, relations([*SENTENCES[:3], ("the [song] was written by a {singer}", ORIGIN)]))
    assert set(other.fitted.values()).isdisjoint(fitted.fitted.values())


def test_each_split_is_fitted_alone(ccg: CCG, trained_on: dict[str, list[list[str]]]) -> None:
    whole = relations(SENTENCES)
    parts = DatasetDict({"train": whole.select([0, 1, 5]), "test": whole.select([2, 3, 4])})
    done = ccg(parts)
    assert trained_on["indicator"] == [["0", "1", "5"], ["2", "3", "4"]]
    assert [row["id"] for part in done.values() for row in part] == ["0", "1", "5", "2", "3", "4"]


def test_a_stream_gives_the_same_rows(ccg: CCG) -> None:
    ds = relations(SENTENCES)
    expected = list(ccg(ds))
    found = list(ccg(ds.to_iterable_dataset()))
    assert [(row["id"], row["causal_terms"], row["new_relations"], row["status"]) for row in found] == [
        (row["id"], row["causal_terms"], row["new_relations"], row["status"]) for row in expected
    ]


def test_counterfactuals_keep_the_entities(ccg: CCG) -> None:
    # Without the editor, that so short a training teaches nothing.
    ds = relations(SENTENCES)
    done = ccg.replace(use_editor=False, classifier=replace(ccg.classifier, epochs=20.0))(ds)
    sources, made = {row["id"]: row for row in ds}, hfcf.expand(done)
    assert len(made), "the tiny indicator flips nothing, or no relation has another term: choose other sentences"
    for row in made:
        source = sources[row["source_id"]]
        assert entities(row) == entities(source)
        assert row["label"] not in (source["label"], "Other")
        assert revert_edits(row, row["edits"]) == {name: source[name] for name in ("tokens", "head", "tail")}
    told = {row["source_id"]: row["reason"] for row in hfcf.rejected(done, system="ccg") if row["level"] == "row"}
    assert told["5"] == "the relation is Other"
    assert set(told) | set(made["source_id"]) == set(sources)


LONG = " ".join(["[film]", *["city"] * 298, "{band}"])
BAD = {
    "the [film] {band} played": "there is no word between the entities",
    "the [film {band] in} town": "the entities overlap",
    "the [film {band} in] town": "one entity lies inside the other",
    LONG: "the sentence is longer than the 64 pieces that the indicator reads",
}
ODD = ["[film] by {xyzzyx}", "[Ταινία] της {πόλης} 映画 — “ü”", "[film] , {band}", "[film] by the {band}", "{band} with a [3.5]"]


def test_bad_rows_come_back_as_they_were(ccg: CCG, tiny_model: Callable[[str], str]) -> None:
    made = [{**tiny_relation.row(text, CAUSE), "id": f"bad {i}"} for i, text in enumerate(BAD)]
    made += [{**tiny_relation.row(text, ORIGIN), "id": f"odd {i}"} for i, text in enumerate(ODD)]
    odd, outside = made[-1], {"start": 9, "end": 12, "type": None}
    made += [{**odd, "id": "other", "label": "Other"}, {**odd, "id": "empty", "tokens": []}]
    made += [{**odd, "id": "outside", "head": outside}, {**odd, "id": "null", "tail": None}]
    good = [{**row, "id": f"good {i}"} for i, row in enumerate(relations(SENTENCES))]
    common = {"group_id": "g", "corpus": "made", "split": "train"}
    ds = Dataset.from_list([{**row, **common} for row in [*made, *good]], features=get_task("relation").features)
    given = ccg.replace(indicator=Model(tiny_model("rbert")), use_editor=False)
    done = given(ds)
    assert list(done.select_columns(ds.column_names)) == list(ds)
    status = {row["id"]: row["status"] for row in done}
    for i, reason in enumerate(BAD.values()):
        assert status[f"bad {i}"] == {"accepted": False, "stage": "identify_causal_terms", "reason": reason}
    assert status["odd 2"]["reason"] == "there is no word that could be masked"
    assert status["other"]["reason"] == "the relation is Other"
    assert status["empty"]["reason"] == "there are no tokens"
    assert "outside" in status["outside"]["reason"]
    assert status["null"]["reason"] == "the tail has no place"
    assert all(row["accepted"] or row["reason"] for row in status.values())
    # The broken ones teach nothing: without them the others fare the same.
    sound = ds.filter(lambda row: row["id"].startswith(("good", "odd")))
    assert {row["id"]: row["status"] for row in given(sound)} == {i: row for i, row in status.items() if i in sound["id"]}


def test_a_word_that_wordnet_does_not_know_is_named(ccg: CCG) -> None:
    ds = relations([("[film] by {xyzzyx}", CAUSE), *SENTENCES])
    fitted, identified = fit(ccg, ds)
    row = {**identified[0], "status": None}
    assert fitted.expand_relation(row)["status"]["reason"] == "WordNet knows no noun 'xyzzyx', the tail entity's head word"


def test_what_is_missing_is_named(ccg: CCG) -> None:
    ds = relations(SENTENCES)
    prepared = hfcf.prepare(ds, ccg)
    with pytest.raises(StageError, match=r"'causal_terms'.*ccg\.identify_causal_terms"):
        ccg.edit_relation.fit(ds)
    for stage in ccg.stages[:3]:
        with pytest.raises(StageError, match=rf"{stage.name} .*not fitted: run system = system\.fit"):
            stage(prepared[0])
    broken = Dataset.from_list([{**ds[0], "tokens": []}], features=ds.features)
    with pytest.raises(StageError, match=r"no row.*indicator"):
        ccg(broken)


def test_a_given_indicator_or_editor_is_not_trained(
    ccg: CCG, tiny_model: Callable[[str], str], trained_on: dict[str, list[list[str]]]
) -> None:
    given = ccg.replace(indicator=Model(tiny_model("rbert")), editor=Model(tiny_model("t5")))
    done = given(relations(SENTENCES))
    assert trained_on == {"indicator": [], "editor": []}
    assert all(row["status"]["accepted"] is not None for row in done)
    fitted = given.fit(relations(SENTENCES))
    assert list(fitted.fitted) == ["expand_relation", "edit_relation"]
    assert learned(fitted.edit_relation)["editor"] is None


def test_few_rows_are_trained_on_for_min_steps_with_the_systems_seed(ccg: CCG, monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[tuple[float, int]] = []

    def watched(train: Any) -> Any:
        def run(rows: Dataset, hp: Hyperparameters, *args: Any, **kwargs: Any) -> None:
            trained.append((hp.epochs * len(rows), hp.seed))
            train(rows, hp, *args, **kwargs)

        return run

    monkeypatch.setattr(trainer, "train_relation", watched(trainer.train_relation))
    monkeypatch.setattr(editors, "train_texts", watched(editors.train_texts))
    ccg.replace(min_steps=0, seed=7).identify_causal_terms.fit(relations(SENTENCES))
    assert trained == [(len(SENTENCES), 7)]
    ccg.replace(min_steps=6, seed=7).fit(relations(SENTENCES))
    assert trained[1:] == [(6 * 8, 7)] * 2


def test_an_editor_that_was_trained_anew_is_another(ccg: CCG) -> None:
    fitted, identified = fit(ccg, relations(SENTENCES))
    assert ccg.fit(identified).fitted == fitted.fitted
    config = Path(stored_model(learned(fitted.edit_relation)["editor"]).name) / "config.json"
    text = config.read_text()
    config.write_text(text.replace(" ", "\n", 1))  # of another size it would be set aside as damaged
    assert ccg.fit(identified).fitted != fitted.fitted


@pytest.mark.parametrize("name", ["classifier", "editor_training"])
def test_an_adapter_is_refused_at_once(name: str, ccg: CCG) -> None:
    with pytest.raises(ValueError, match=rf"{name}: tune='lora'.*adapter"):
        ccg.replace(**{name: replace(getattr(ccg, name), tune="lora")})


def test_a_recipe_may_give_mappings() -> None:
    changes = ["parser={backend: spacy, model: mine}", "classifier={model: bert, epochs: 2}", "top_k=2"]
    parsed = runner.read_recipe("ccg_semeval", ["preset=offline", "seed=7", *(f"settings.{change}" for change in changes)])
    system = runner.make_system(parsed.system, preset=parsed.preset, seed=parsed.seed, settings=parsed.settings)
    assert isinstance(system, CCG)
    assert system.parser == Constituents(backend="spacy", model=Model("mine"))
    assert system.classifier == replace(CCG.preset("offline").classifier, model=Model("bert"), epochs=2)
    assert [stage.seed for stage in system.stages] == [7] * 6
    assert system.edit_relation.top_k == 2
    assert runner.read_models(system, {})["editor_training"] == "offline:t5"


def test_the_paper_preset_is_the_papers() -> None:
    paper = hfcf.CCG.preset("paper")
    assert (paper.top, paper.ratio, paper.order, paper.top_k) == (100, 0.8, "lca", 1)
    assert (paper.edit_relation.num_beams, paper.edit_relation.num_candidates) == (100, 10)
    hp = paper.editor_training
    assert (hp.model.name, hp.epochs, hp.learning_rate, hp.batch_size, hp.max_length) == ("gpt2", 2, 2e-5, 1, 47)
    hp = paper.classifier
    assert (hp.model.name, hp.epochs, hp.learning_rate, hp.batch_size, hp.max_length) == ("bert-base-uncased", 5, 2e-5, 16, 128)
    assert paper.judge_candidates.verifier is None
    assert paper.min_steps == 0


def test_with_folds_no_row_is_judged_by_an_indicator_that_has_seen_it(ccg: CCG, trained_on: dict[str, list[list[str]]]) -> None:
    ds = relations([*SENTENCES, ("the [film] of a {river}", MAKER), ("a [river] left the {city}", ORIGIN)])
    stage = ccg.replace(folds=2).identify_causal_terms.fit(ds)
    content = learned(stage)
    folds = content["folds"]
    judge = {row_id: stored_model(content["indicators"][fold]) for row_id, fold in folds.items()}
    assert set(judge) == set(ds["id"])
    seen = [set(ids) for ids in trained_on["indicator"]]
    assert len(seen) == len(set(judge.values())) == 2
    assert all(row_id not in seen[fold] for row_id, fold in folds.items())
    assert all((folds[first] == folds[other]) == (judge[first] == judge[other]) for first in judge for other in judge)
    assert set.union(*seen) == set(judge)
    # Each indicator has seen every relation that has two rows.
    labels = dict(zip(ds["id"], ds["label"], strict=True))
    twice = {label for label in labels.values() if list(labels.values()).count(label) > 1}
    assert all(twice <= {labels[row_id] for row_id in ids} for ids in seen)
    identified = hfcf.prepare(ds, stage).map(stage, batched=True)
    alone = {
        row["id"]: hfcf.prepare(ds.filter(lambda other, row_id=row["id"]: other["id"] == row_id), ccg).map(
            ccg.replace(indicator=judge[row["id"]]).identify_causal_terms, batched=True
        )[0]
        for row in identified
    }
    assert [row["causal_terms"] for row in identified] == [alone[row["id"]]["causal_terms"] for row in identified]
    # The same rows train nothing again, and find the same file.
    assert ccg.replace(folds=2).identify_causal_terms.fit(ds) == stage
    assert len(trained_on["indicator"]) == 2


def test_a_row_from_elsewhere_has_no_indicator_of_a_fold(ccg: CCG) -> None:
    stage = ccg.replace(folds=2).identify_causal_terms.fit(relations(SENTENCES))
    other = hfcf.prepare(relations([SENTENCES[0]], 90), stage).map(stage, batched=True)[0]
    assert other["status"]["reason"].startswith("no indicator was trained for this row")


def test_training_settings_of_a_preset_may_be_changed_one_by_one() -> None:
    made = CCG.preset("offline", classifier={"epochs": 3})
    assert made.classifier == replace(CCG.preset("offline").classifier, epochs=3)
    with pytest.raises(ValueError, match=r"classifier.*seed"):
        CCG.preset("offline", classifier={"seed": 3})
    with pytest.raises(TypeError, match=r"epoch.*epochs"):
        CCG.preset("offline", classifier={"epoch": 3})
    with pytest.raises(ValueError, match=r"epochs.*'x'"):
        CCG(classifier={"epochs": "x"})
    with pytest.raises(ValueError, match=r"folds.*1.*0"):
        CCG.preset("offline", folds=0)
