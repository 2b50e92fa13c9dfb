"""Rows that have a system's result already: nothing of it is mixed with the next one's, nothing is lost, no id repeats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, DatasetDict, Features, IterableDataset, IterableDatasetDict, List, Value, load_dataset

import hfcf
from hfcf.core.expand import augmented, balanced_sample
from hfcf.core.prepare import clear_outputs
from hfcf.core.schema import STATUS
from hfcf.core.stage import StageError
from hfcf.core.task import get_task
from hfcf.systems._shared.judge import JudgeCandidates
from hfcf.systems.baselines.eda import EDA
from hfcf.systems.crossaug import CrossPairs, GenerateNegativeClaim
from hfcf.systems.race.edit import EditEvidence
from hfcf.tasks.verification import TASK

NEGATIVE = GenerateNegativeClaim(generator="planted")
EVIDENCE = [{"title": "Nile", "text": "The Nile flows through Egypt."}]
COMMON = {"corpus": "made", "split": "train"}
CLAIMS = [
    "The river Nile flows through Egypt.",
    "尼罗河流经埃及",
    "Cairo is older than the river Nile.",
    "1994 – 2006: Ägypten é",
    "It is old.",
]


def rows(**columns: Any) -> Dataset:
    made = [
        {"id": f"r{i}", "claim": claim, "evidence": EVIDENCE, "label": "SUPPORTS", "group_id": f"r{i}", **COMMON, **columns}
        for i, claim in enumerate(CLAIMS)
    ]
    return Dataset.from_list(made, features=get_task("verification").features)


def test_a_second_system_starts_with_the_rows_as_they_were() -> None:
    alone, first = EDA(alpha=0.9, seed=2)(rows()), EDA(alpha=0.2)(rows())
    assert {row["status"]["accepted"] for row in first} == {True, False}
    assert list(EDA(alpha=0.9, seed=2)(first)) == list(alone)
    stream = EDA(alpha=0.9, seed=2)(first.to_iterable_dataset())
    assert list(stream) == list(alone)


def test_no_row_keeps_what_an_earlier_system_made_of_it() -> None:
    first = EDA()(rows())
    made = Dataset.from_list(
        [{**row, "status": None, "claim": "尼罗河" if row["id"] == "r0" else row["claim"]} for row in first],
        features=first.features,
    )
    again = EDA()(made)
    assert first[0]["counterfactuals"]
    assert (again[0]["status"]["accepted"], again[0]["counterfactuals"]) == (False, None)


def test_rows_that_could_not_be_read_stay_rejected() -> None:
    features = Features({**get_task("verification").features, "status": STATUS})
    unread = {"accepted": False, "stage": "load", "reason": "the label 1 is unknown"}
    ds = Dataset.from_list([{**row, "status": unread if i == 2 else None} for i, row in enumerate(rows())], features=features)
    twice = EDA()(EDA()(ds))
    assert twice[2]["status"] == unread
    assert twice[2]["counterfactuals"] is None
    assert twice[0]["status"]["accepted"]


def test_rows_without_a_result_are_left_as_they_are() -> None:
    ds = hfcf.prepare(rows(), EDA())
    assert clear_outputs(ds, EDA().stages) is ds


def test_what_stages_read_before_they_fill_it_is_the_rows_own() -> None:
    row = {**rows()[0], "negative_claim": "It flows through Chad.", "edits": [], "candidates": [], "status": None}
    features = Features({**rows().features, **CrossPairs.inputs, **CrossPairs().columns()})
    ds = Dataset.from_list([row], features=features)
    assert clear_outputs(ds, [CrossPairs()])[0] == {**row, "candidates": None}


def test_a_system_on_its_own_augmented_rows_repeats_no_id(tmp_path: Path) -> None:
    once = augmented(EDA()(rows()))
    twice = augmented(EDA()(once))
    assert len(twice) > len(once) > len(rows())
    assert len(set(twice["id"])) == len(twice)
    assert list(twice["id"])[: len(once)] == list(once["id"])
    assert "r0:eda:claim#2" in twice["id"]
    assert twice.features == once.features
    twice.to_parquet(tmp_path / "train.parquet")
    assert list(hfcf.load("parquet", data_dir=tmp_path, split="train")["id"]) == list(twice["id"])


def test_published_classes_are_read_again(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    rows().to_json(tmp_path / "rows" / "train.jsonl")
    recipe = {"corpus": "jsonl", "data_dir": str(tmp_path / "rows"), "split": "train", "system": "eda"}
    hfcf.run(recipe, tmp_path / "out")
    published = hfcf.load_result(tmp_path / "out")
    made = published.dataset["train"]
    assert made.features["label"].names == list(TASK.labels or ())
    folder: Any = hfcf.load("parquet", data_dir=tmp_path / "out", split="train", on_error="reject")
    for read in (hfcf.from_dataset(made), hfcf.from_dataset(published.dataset)["train"], folder):
        assert list(read["claim"]) == list(made["claim"])
        assert set(read["label"]) == {"SUPPORTS"}
        assert not any(read["status"])
    for read in (hfcf.from_dataset(part) for part in published.augmented.values()):
        assert not any(read["status"])
    with pytest.raises(StageError, match=r"'label'.*from_dataset"):
        EDA()(made)
    assert EDA()(hfcf.from_dataset(made))["status"][0]["accepted"]
    assert load_dataset(str(tmp_path / "out"), split="train").features == made.features


def test_originals_keep_their_aliases() -> None:
    task = get_task("qa")
    row = {
        "id": "q1", "title": "", "context": "Ada wrote it.", "question": "Who wrote it?", "group_id": "q1", **COMMON,
        "answers": {"text": ["Ada"], "answer_start": [0]},
    }  # fmt: skip
    new = {**dict.fromkeys(task.counterfactual), **row, "id": "q1:made", "question": "What did Ada write?"}
    new |= {"answers": {"text": ["it"], "answer_start": [10]}, "source_id": "q1", "edits": [], "scores": []}
    features = {
        **task.features,
        "aliases": List(Value("string")),
        "counterfactuals": List(dict(task.counterfactual)),
        "status": STATUS,
    }
    made = [{**row, "aliases": ["Ada", "Lovelace"], "counterfactuals": [new], "status": None}]
    joined = augmented(Dataset.from_list(made, features=Features(features)))
    assert joined["aliases"][:] == [["Ada", "Lovelace"], None]
    assert list(joined["question"]) == ["Who wrote it?", "What did Ada write?"]


def test_verbs_take_several_splits_and_streams_or_say_so() -> None:
    done = EDA()(DatasetDict({"train": rows(), "test": rows().select([0])}))
    made = hfcf.expand(done)
    assert {split: len(part) for split, part in made.items()} == {"train": len(hfcf.expand(done["train"])), "test": 1}
    assert len(augmented(done)["test"]) == 2
    assert {row["reason"] for row in hfcf.rejected(done, system="eda")["train"]} >= {
        "the claim has none of the letters a–z, and EDA reads no others"
    }
    streams = IterableDatasetDict({split: part.to_iterable_dataset() for split, part in done.items()})
    assert list(hfcf.expand(streams)["train"]) == list(made["train"])
    given = IterableDatasetDict({"train": rows().to_iterable_dataset()})
    assert [row["id"] for row in EDA()(given)["train"]] == list(rows()["id"])
    for verb in (augmented, hfcf.rejected):
        for stream in (streams, streams["train"]):
            with pytest.raises(ValueError, match="stream"):
                verb(stream)
    with pytest.raises(ValueError, match="stream"):
        balanced_sample(streams["train"], 1, seed=1)
    with pytest.raises(ValueError, match="features"):
        hfcf.expand(IterableDataset.from_generator(lambda: iter([])))
    with pytest.raises(ValueError, match="'status'"):
        hfcf.rejected(rows())
    with pytest.raises(ValueError, match=r"Dataset.*DatasetDict.*IterableDataset.*list"):
        hfcf.prepare([], EDA())


SPAN = {"field": "evidence", "piece": 0, "start": 4, "end": 8}


@pytest.mark.parametrize(
    ("column", "change", "reason"),
    [
        ("entities", {"piece": 7}, "an entity is at 4–8 of evidence 7, where the row has no text"),
        ("entities", {"piece": -1}, "an entity is at 4–8 of evidence -1, where"),
        ("entities", {"end": 900}, "an entity is at 4–900 of evidence 0, where the row has no text"),
        ("entities", {"start": -3}, "an entity is at -3–8"),
        ("entities", {"start": None}, "an entity is at None–8"),
        ("entities", {"field": "evidence.title", "end": 4}, "at 4–4 of evidence.title 0, where the text is '', not 'Nile'"),
        ("entities", {"text": "Rome"}, "where the text is 'Nile', not 'Rome'"),
        ("rationales", {"piece": 7}, "a rationale is at 4–8 of evidence 7"),
        ("rationales", {"end": 900}, "a rationale is at 4–900"),
        ("rationales", {"field": "claim"}, "a rationale is at 4–8 of claim 0"),
    ],
)
def test_a_span_that_is_not_there_rejects_its_row(column: str, change: dict[str, Any], reason: str) -> None:
    spans = {"entities": [{**SPAN, "text": "Nile", "type": "GPE"}], "rationales": [{**SPAN, "score": 1.0}]}
    spans[column] = [{**spans[column][0], **change}]
    stage = EditEvidence(edit=False)
    row = {**rows()[0], **spans, **dict.fromkeys(stage.columns())}
    assert reason in stage(row)["status"]["reason"]
    good = {**row, "entities": [{**SPAN, "text": "Nile", "type": "GPE"}], "rationales": [{**SPAN, "score": 1.0}]}
    assert stage(good)["status"] is None


EDIT = {"field": "claim", "piece": -1, "start": 0, "end": 2, "before": "It", "after": "He"}


@pytest.mark.parametrize(
    ("claim", "edits", "reason"),
    [
        ("", None, "the claim is empty"),
        (" ", None, "the claim is empty"),
        ("so " * 9_000, None, "the claim has 27,000 characters; the limit is 20,000"),
        ("He is old.", [{**EDIT, "piece": 4}], "its edits do not fit the row: edits of places that the row does not have"),
        ("He is old.", [{**EDIT, "end": 99}], "its edits do not fit the row: the edit at 0–99"),
        ("He is old.", [{**EDIT, "before": "We"}], "its edits do not fit the row: the text at 0 is 'It'"),
        ("He is old.", [{**EDIT, "start": None}], "its edits do not fit the row"),
        ("He is old.", [EDIT], None),
    ],
)
def test_a_candidate_that_makes_no_row_is_rejected(claim: str, edits: list[Any] | None, reason: str | None) -> None:
    row = {**rows()[4], "negative_claim": claim, "edits": []}
    one = CrossPairs().row(row)["candidates"][0]
    one = {**one, "edits": edits or one["edits"]}
    stage = JudgeCandidates(system="crossaug")
    done = stage({**row, **dict.fromkeys(stage.columns()), "candidates": [one]})
    assert (done["status"]["accepted"], bool(done["counterfactuals"])) == (reason is None, reason is None)
    assert (reason or "") in (done["candidates"][0]["status"]["reason"] or "")


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [
        ("Rome is old.", "the evidence is text, not a list of {title, text}"),
        (["Rome is old."], "evidence piece 0 is text, not {title, text}"),
        ([{"text": "Rome is old."}], "evidence piece 0 is an object, not {title, text}"),
        ([["Rome", "It is old."]], "evidence piece 0 is a list, not {title, text}"),
        (5, "the evidence is a number, not"),
    ],
)
def test_evidence_of_another_shape_has_a_reason(evidence: Any, reason: str) -> None:
    row = {**rows()[0], "evidence": evidence}
    assert reason in (get_task("verification").validate(row) or "")
    if isinstance(evidence, str):
        with pytest.raises(StageError, match=r"'evidence'.*string.*\{title, text\}.*from_dataset"):
            hfcf.CrossAug.preset("paper")(Dataset.from_list([row]))


def test_half_a_surrogate_pair_rejects_its_row_alone() -> None:
    good = {"claim": CLAIMS[0], "evidence": EVIDENCE, "label": "SUPPORTS"}
    bad = [{**good, "claim": "a\ud800b"}, {**good, "evidence": [{"title": "\udfff", "text": "The Nile."}]}]
    ds = hfcf.from_dataset([good, *bad])
    assert ds["status"][0] is None
    for status, place in zip(ds["status"][1:], ("the claim", "the title of evidence piece 0"), strict=True):
        assert f"{place} holds half of a surrogate pair" in status["reason"]


def test_a_column_of_one_s_own_that_a_stage_fills_is_named(caplog: pytest.LogCaptureFixture) -> None:
    own = rows().add_column("negative_claim", ["mine"] * len(CLAIMS))
    cleared = clear_outputs(own, [NEGATIVE])
    assert set(cleared["negative_claim"]) == {None}
    assert "negative_claim" in caplog.text
    caplog.clear()
    clear_outputs(EDA()(rows()), EDA().stages)  # an earlier run filled these
    assert not caplog.text


def test_a_sample_leaves_rows_without_a_label_out() -> None:
    labelled = Dataset.from_dict({"id": ["1", "2", "3"], "label": ["a", "b", None]})
    assert balanced_sample(labelled, 2, seed=13)["label"] == ["a", "b"]


def test_with_another_task_come_its_defaults() -> None:
    llm = hfcf.LLM(model="llm:any")
    assert (llm.max_tokens, llm.replace(task="classification").max_tokens) == (256, 1024)
    assert llm.replace(task="classification").replace(task="verification").max_tokens == 256
    assert hfcf.LLM(model="llm:any", max_tokens=99).replace(task="classification").max_tokens == 99
