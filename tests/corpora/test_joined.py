"""Corpora whose rows carry human rationales or split passages: PolitiHop, SciFact, HealthVer, PubHealth and ERASER's two."""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pytest

import hfcf
from hfcf.core.model import Model
from hfcf.core.schema import RATIONALES
from hfcf.core.task import find_problem
from hfcf.corpora.base import CorpusError
from hfcf.systems.race.explain import Explain
from hfcf.tasks.verification import NOT_ENOUGH_INFO, REFUTES, SUPPORTS

FIXTURES = Path(__file__).parent.parent / "fixtures" / "corpora"


def texts(row: dict[str, Any]) -> list[str]:
    return [piece["text"] for piece in row["evidence"]]


def rationales(row: dict[str, Any]) -> list[str]:
    """The spans, cut from their pieces."""
    assert {(span["field"], span["score"]) for span in row["rationales"]} <= {("evidence", 1.0)}
    return [row["evidence"][span["piece"]]["text"][span["start"] : span["end"]] for span in row["rationales"]]


# --- layouts


def test_politihop_release() -> None:
    ds = hfcf.load("politihop", data_dir=FIXTURES / "politihop", split="valid")
    assert ds["id"] == ["1001", "1002", "1011"]
    assert ds["label"] == [REFUTES, REFUTES, SUPPORTS]
    assert ds["group_id"] == ["1001", "1001", "1011"]  # Two chains of one claim.
    assert ds["author"] == ["Speaker: Ada Berg", "Speaker: Ada Berg", "Speaker: Bloggers"]
    assert texts(ds[0]) == [
        "The bridge cost 40 million crowns.",
        '"It was paid by the state," said Åsa Lind, an auditor.',
        "No city money went into the bridge.",
    ]
    assert texts(ds[1]) == ["The council confirmed it.", "No city money went into the bridge."]  # The chain's order.
    assert texts(ds[2]) == ["Rides on Sundays\tare free."]
    assert ds[2]["claim"] == 'Buses are "free" on Sundays.'
    assert all(rationales(row) == texts(row) for row in ds)
    assert "validation: 1 half-true rows were left out" in ds.info.description
    assert list(hfcf.load("politihop", data_dir=FIXTURES / "politihop")) == ["train", "validation"]


def test_politihop_whole_ruling_marks_the_chain() -> None:
    ds = hfcf.load("politihop", data_dir=FIXTURES / "politihop", split="validation", evidence="ruling")
    chain = hfcf.load("politihop", data_dir=FIXTURES / "politihop", split="validation")
    assert [len(evidence) for evidence in ds["evidence"]] == [5, 5, 3]  # Less the lone dash.
    assert all(find_problem(row) is None for row in ds)
    assert [sorted(rationales(row)) for row in ds] == [sorted(texts(row)) for row in chain]
    assert [span["piece"] for span in ds[1]["rationales"]] == [3, 4]
    with pytest.raises(ValueError, match=r"evidence must be 'chain' or 'ruling', got 'all'"):
        hfcf.load("politihop", data_dir=FIXTURES / "politihop", evidence="all")


@pytest.mark.parametrize("folder", ["Transformer-XH", "Transformer-XH/data"])
def test_politihop_graphs_have_the_rows_of_the_release(folder: str) -> None:
    ds = hfcf.load("politihop", data_dir=FIXTURES / "politihop" / folder, split="dev")
    release = hfcf.load("politihop", data_dir=FIXTURES / "politihop", split="dev")
    for column in ("id", "claim", "label", "group_id", "author"):
        assert ds[column] == release[column]
    assert texts(ds[1]) == ["The council confirmed it .", "No city money went into the bridge ."]
    assert all(rationales(row) == texts(row) for row in ds)
    whole = hfcf.load("politihop", data_dir=FIXTURES / "politihop" / folder, split="dev", evidence="ruling")
    assert texts(whole[0])[0] == "Mayor Ada Berg spoke about the bridge on Monday ."
    assert rationales(whole[0]) == texts(whole[0])[1:]


def test_scifact_release() -> None:
    ds = hfcf.load("scifact", data_dir=FIXTURES / "scifact")
    assert list(ds) == ["train"]  # The blind test split is left out.
    rows = list(ds["train"])
    assert [row["id"] for row in rows] == ["1", "2", "3", "4"]
    assert [row["label"] for row in rows] == [SUPPORTS, REFUTES, REFUTES, NOT_ENOUGH_INFO]
    assert [row["group_id"] for row in rows] == ["1", "1", "3", "3"]  # They share an abstract.
    assert [piece["title"] for piece in rows[0]["evidence"]] == ["Cold baths and sleep"] * 4 + ["Swimming in winter"] * 2
    assert rationales(rows[0]) == [
        "We followed 40 swimmers for a year.",
        "Swimmers slept longer by 20 minutes (p = 0.01).",
        "They slept longer than before.",
    ]
    assert rationales(rows[2]) == ["Cooking lowers it by half."]
    assert texts(rows[3]) == ["Carrots hold β-carotene.", "Cooking lowers it by half."]
    assert rows[3]["rationales"] == []


def test_scifact_rationale_sentences_alone_and_the_folder_data(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "scifact", tmp_path / "data")  # As the archive unpacks.
    ds = hfcf.load("scifact", data_dir=tmp_path, split="train", evidence="rationale")
    assert [len(evidence) for evidence in ds["evidence"]] == [3, 1, 1, 2]
    assert all(rationales(row) == texts(row) for row in ds.select(range(3)))
    assert ds[3]["rationales"] == []


def test_scifact_rte_forms() -> None:
    ds = hfcf.load("scifact", data_dir=FIXTURES / "scifact_rte")
    assert ds["train"]["id"] == ["train-0", "train-1", "train-2", "train-3"]
    assert ds["train"]["label"] == [SUPPORTS, REFUTES, REFUTES, SUPPORTS]
    assert ds["train"]["group_id"] == ["train-0", "train-1", "train-0", "train-3"]
    assert ds["train"]["claim"][1] == '"Cooked" carrots hold more β-carotene.'
    assert texts(ds["train"][1]) == ['Carrots hold "β-carotene". Cooking lowers it by half.']
    assert ds["validation"]["id"] == ["dev-1", "dev-2"]
    assert ds["validation"]["label"] == [REFUTES, SUPPORTS]
    assert set(map(str, ds["validation"]["rationales"])) == {"None"}


def test_healthver() -> None:
    ds = hfcf.load("healthver", data_dir=FIXTURES / "healthver", split="dev")
    assert ds["id"] == ["dev-1", "dev-2", "dev-3", "dev-4", "dev-5"]
    assert ds["label"] == [SUPPORTS, REFUTES, NOT_ENOUGH_INFO, SUPPORTS, REFUTES]
    assert ds["group_id"] == ["dev-1", "dev-1", "dev-3", "dev-3", "dev-3"]  # Topics 2 and 3 share a passage.
    assert ds["claim"][1] == 'Masks do "nothing", they say'
    assert texts(ds[0]) == ["Masks filter droplets.", "In a trial of 200 nurses, fewer fell ill (P. Lee et al. report it)."]
    assert texts(ds[2]) == ["The virus survives on steel for 3 days."]
    assert ds["question"][3] == "how to clean"


def test_pubhealth(tmp_path: Path) -> None:
    ds = hfcf.load("pubhealth", data_dir=FIXTURES / "pubhealth")
    train = ds["train"]
    assert train["id"] == ["101", "102", "106"]
    assert train["label"] == [REFUTES, SUPPORTS, REFUTES]
    assert train["group_id"] == ["101", "102", "101"]  # The same explanation.
    assert texts(train[0]) == ["No study found an effect.", "Dr. Berg's team looked at 12 trials."]
    for why in ("1 rows labelled mixture", "1 rows labelled unproven", "1 rows without a label"):
        assert f"train: {why} were left out" in train.info.description
    assert ds["test"]["id"] == ["201"]  # Its file has a column of row numbers.
    shutil.copytree(FIXTURES / "pubhealth", tmp_path / "PUBHEALTH")
    assert len(hfcf.load("pubhealth", data_dir=tmp_path, split="train")) == 3


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_eraser_fever(form: str, copied: Callable[[str], Path]) -> None:
    folder = copied("eraser_fever")
    for path in (folder / "docs").iterdir():
        path.rename(path.with_name(unicodedata.normalize(form, path.name)))
    ds = hfcf.load("eraser_fever", data_dir=folder, split="val")
    assert ds["id"] == ["1", "2", "3", "4"]
    assert ds["label"] == [SUPPORTS, REFUTES, SUPPORTS, REFUTES]
    assert ds["group_id"] == ["1", "1", "1", "4"]
    assert ds["claim"][2] == "Oslo ( city ) has an old harbour."
    assert [piece["title"] for piece in ds[0]["evidence"]] == ["Café (film)"] * 3 + ["Oslo"] * 5
    assert texts(ds[0])[:3] == ["Café is a film ( 1999 ) .", "It was shot in Oslo .", "Ann Dahl directed it ."]
    assert rationales(ds[0]) == ["It was shot in Oslo .", "Oslo is the capital of Norway ."]
    assert rationales(ds[2]) == ["It has a harbour .", "The harbour is old ."]  # Two groups together, each sentence once.
    assert ds[3]["evidence"] == [{"title": "AC/DC", "text": "AC/DC play rock ."}]  # docs/AC__DC


@pytest.mark.parametrize("context", [1, "1"])  # A command line gives text.
def test_eraser_context(context: Any) -> None:
    ds = hfcf.load("eraser_fever", data_dir=FIXTURES / "eraser_fever", split="val", context=context)
    assert [len(evidence) for evidence in ds["evidence"]] == [4, 2, 4, 1]
    assert rationales(ds[2]) == ["It has a harbour .", "The harbour is old ."]
    with pytest.raises(ValueError, match=r"context must be a number of sentences.*got -1"):
        hfcf.load("eraser_fever", data_dir=FIXTURES / "eraser_fever", context=-1)


def test_eraser_multirc() -> None:
    ds = hfcf.load("eraser_multirc", data_dir=FIXTURES / "eraser_multirc", split="validation")
    assert ds["claim"][1] == "What colour was Mia 's cat ? || Black"
    assert ds["label"] == [SUPPORTS, REFUTES, SUPPORTS, REFUTES]
    assert ds["group_id"] == ["a.txt:0:0", "a.txt:0:0", "a.txt:0:0", "b.txt:0:0"]
    assert ds[0]["evidence"][0] == {"title": "", "text": "Mia had a cat ."}
    assert [rationales(row) for row in ds] == [
        ["Mia had a cat .", "The cat was grey ."],
        ["Mia had a cat .", "The cat was grey ."],
        ["It slept ."],
        ["It rained ."],
    ]


def test_explaining_replaces_human_rationales(tiny_model: Callable[[str], str]) -> None:
    """The column is of the type that RACE writes: `prepare` keeps it, and a run overwrites it, so rename it to keep it."""
    ds = hfcf.load("scifact", data_dir=FIXTURES / "scifact", split="train")
    assert datasets.Features({"r": ds.features["rationales"]}) == datasets.Features({"r": RATIONALES})
    explain = Explain(verifier=Model(tiny_model("classifier")), explainer="gradient_x_input")
    ready = hfcf.prepare(ds, explain)
    assert ready["rationales"] == ds["rationales"]
    run = ready.map(explain, batched=True)
    human, predicted = ds["rationales"], run["rationales"]
    assert [status is None for status in run["status"]] == [True, True, True, False]
    assert human[3] == predicted[3]  # A NOT ENOUGH INFO row is rejected as it is.
    assert all({span["score"] for span in spans} != {1.0} for spans in predicted[:3])
    kept = hfcf.prepare(ds.rename_column("rationales", "human_rationales"), explain)
    assert kept.map(explain, batched=True)["human_rationales"] == human


# --- what goes wrong


def test_scifact_names_what_is_missing(copied: Callable[[str], Path]) -> None:
    with pytest.raises(CorpusError, match="blind test split"):
        hfcf.load("scifact", data_dir=FIXTURES / "scifact", split="test")
    folder = copied("scifact")
    (folder / "corpus.jsonl").unlink()
    with pytest.raises(CorpusError, match=r"claims_train\.jsonl.*corpus\.jsonl.*RTE-scifact/train\.tsv"):
        hfcf.load("scifact", data_dir=folder, split="train")


def test_eraser_names_what_is_missing(copied: Callable[[str], Path]) -> None:
    folder = copied("eraser_fever")
    (folder / "docs" / "Oslo").unlink()
    with pytest.raises(CorpusError, match=r"val\.jsonl, line 1 \(id '1'\).*'Oslo'.*docs"):
        hfcf.load("eraser_fever", data_dir=folder)
    ds = hfcf.load("eraser_fever", data_dir=folder, split="val", on_error="reject")
    assert [row["status"] is None for row in ds] == [False, False, False, True]
    assert ds[0]["status"]["reason"] == "the document 'Oslo' is not in docs"
    assert ds["claim"][0] == "Café was shot in the capital of Norway."
    shutil.rmtree(folder / "docs")
    with pytest.raises(CorpusError, match=r"val\.jsonl.*folder.* docs"):
        hfcf.load("eraser_fever", data_dir=folder)
