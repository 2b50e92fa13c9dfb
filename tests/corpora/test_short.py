"""The corpora whose loader is one short file: their layouts, what goes wrong with their files, and the real ones."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import datasets
import pytest

import hfcf
from hfcf.core.task import get_task
from hfcf.corpora.base import CorpusError
from hfcf.tasks.verification import LABELS

FIXTURES = Path(__file__).parents[1] / "fixtures" / "corpora"
SUPPORTS, REFUTES, NEI = LABELS


def load(name: str, split: str | None = None, **options: Any) -> Any:
    return hfcf.load(name, data_dir=FIXTURES / name, split=split, **options)


def texts(ds: datasets.Dataset) -> list[list[str]]:
    return [[piece["text"] for piece in evidence] for evidence in ds["evidence"]]


# --- layouts


def test_fm2() -> None:
    splits = load("fm2")
    assert {split: part["id"] for split, part in splits.items()} == {
        "train": ["t1"],
        "validation": ["f1", "f2", "f3"],
        "test": ["e1"],
    }
    ds = splits["validation"]
    assert list(ds.features) == [*get_task("verification").features, "category", "sections"]
    assert ds["label"] == [SUPPORTS, REFUTES, REFUTES]
    assert ds["group_id"] == ["Lake Bled", "Lake Bled", "Øresund Bridge"]
    assert ds[0]["claim"] == "Lake Bled can be crossed in a wooden boat."
    assert ds[0]["evidence"] == [
        {"title": "Lake Bled", "text": "A boat called pletna crosses the lake."},
        {"title": "Lake Bled", "text": "Pletnas are built of larch wood."},
    ]
    assert ds[0]["sections"] == ["Summary", "Transport | Boats"]
    assert ds["category"] == ["Geography", "Geography", "Technology"]
    inner = hfcf.load("fm2", data_dir=FIXTURES / "fm2" / "dataset", split="dev")
    assert inner.to_list() == ds.to_list()


def test_fever_symmetric_file_names_choose_the_version() -> None:
    splits = load("fever_symmetric")
    assert {split: len(part) for split, part in splits.items()} == {"validation": 5, "test": 2, "generated": 4, "full": 5}
    ds = splits["validation"]
    assert ds["id"] == ["101", "1010000002", "1010000003", "1010000004", "102"]
    assert ds["label"] == [SUPPORTS, SUPPORTS, REFUTES, REFUTES, SUPPORTS]
    assert ds["group_id"] == ["101", "101", "101", "101", "102"]
    assert splits["test"]["group_id"] == ["103", "103"]  # They share their evidence.
    assert ds[0]["evidence"] == [{"title": "", "text": "Ostrava is a city ( in Moravia ) ."}]
    assert splits["generated"]["group_id"] == ["101", "101", "101", "105"]
    assert splits["generated"][3]["evidence"] == [{"title": "", "text": "Rade was a Danish actor ."}]
    old = hfcf.load("fever_symmetric", data_dir=FIXTURES / "fever_symmetric" / "symmetric_v0.1")
    assert {split: part["id"] for split, part in old.items()} == {split: splits[split]["id"] for split in ("generated", "full")}
    path = FIXTURES / "fever_symmetric/symmetric_v0.1/fever_symmetric_full.jsonl"
    assert list(hfcf.load("fever_symmetric", data_files=path)) == ["full"]


def test_fever_adversarial_has_one_row_per_line() -> None:
    ds = load("fever_adversarial", "test")
    assert ds["id"] == ["7001-1", "7001-2", "7002-1", "7003-1"]
    assert ds["group_id"] == ["7001", "7001", "7002", "7003"]
    assert ds["label"] == [SUPPORTS, SUPPORTS, REFUTES, REFUTES]
    assert texts(ds)[:2] == [["Vidova ( 40 km long ) is a river ."], ["It flows into the Elbe ."]]
    assert ds["claim"][0] == ds["claim"][1]
    assert ds["page"] == ["Vidova (river)", "Vidova (river)", "Vidova: A Life", "José Rade"]
    inner = hfcf.load("fever_adversarial", data_dir=FIXTURES / "fever_adversarial/fever_adversarial", split="test")
    assert inner.to_list() == ds.to_list()


def test_ex_fever_takes_sentences_of_the_explanation() -> None:
    splits = load("ex_fever")
    assert {split: part["id"] for split, part in splits.items()} == {
        "validation": ["dev-1"],
        "test": ["test-1", "test-2", "test-3", "test-4"],
    }
    ds = splits["test"]
    assert ds["label"] == [SUPPORTS, REFUTES, NEI, SUPPORTS]
    assert ds["group_id"] == ["test-1", "test-1", "test-1", "test-4"]  # The first three have the same golden pages.
    assert ds[0]["claim"] == "Lake Bled lies in a country that joined the EU in 2004."
    assert texts(ds) == [
        ["Lake Bled lies in Slovenia.", "Slovenia joined the EU in 2004."],
        ["Lake Bled lies in Slovenia.", "Slovenia joined the EU in 2004, not in 1995."],
        ["No information shows that Lake Bled is famous for its trout."],
        ['José Rade acted in "Vidova".', '"Vidova" is a film of 1961.'],
    ]
    assert ds[3]["pages"] == ["José Rade", "Vidova (film)"]


def test_ex_fever_mini_test_is_read_when_it_is_named() -> None:
    ds = hfcf.load("ex_fever", data_files=FIXTURES / "ex_fever/data/mini_test.csv", split="test")
    assert ds["id"] == ["mini_test-1", "mini_test-2"]
    assert ds["label"] == [REFUTES, SUPPORTS]


def test_covidfact() -> None:
    ds = load("covidfact", "full")
    assert ds["id"] == [f"covidfact-{n}" for n in range(1, 6)]
    assert ds["label"] == [SUPPORTS, REFUTES, REFUTES, SUPPORTS, REFUTES]
    # The first three share their source, the others their evidence.
    assert ds["group_id"] == ["covidfact-1"] * 3 + ["covidfact-4"] * 2
    assert texts(ds)[1] == ["Masks of cotton let more droplets through.", "The masks were worn for one hour."]
    assert ds[4]["gold_source"] == "https://example.org/copy"
    assert set(ds["flair"]) == {"Preprint"}
    with pytest.raises(CorpusError, match=r"full \(COVIDFACT_dataset\.jsonl\)"):
        load("covidfact", "test")


def test_wikifactcheck_has_two_rows_per_line() -> None:
    splits = load("wikifactcheck")
    assert splits["train"]["id"] == ["400", "400-refuted"]
    ds = splits["validation"]
    assert ds["id"] == ["501", "501-refuted", "502", "502-refuted", "503"]
    assert ds["group_id"] == ["501", "501", "502", "502", "503"]
    assert ds["label"] == [SUPPORTS, REFUTES, SUPPORTS, REFUTES, SUPPORTS]
    assert ds["claim"][:2] == ["It was built in 1701.", "It was built in 1801."]
    assert texts(ds)[2:4] == [['José Rade said "no".\tThen he left.']] * 2
    assert ds[0]["url"] == "http://example.org/a"
    assert "validation: 1 refuted claims that are the claim itself were left out" in ds.info.description


def test_cad_nli_groups_revisions_with_their_original() -> None:
    splits = load("cad_nli")
    assert {split: len(part) for split, part in splits.items()} == {"train": 10, "validation": 1, "test": 1}
    ds = splits["train"]
    assert ds["id"][:4] == ["train-1", "train-2", "train-1-revised_premise-1", "train-1-revised_premise-2"]
    assert ds["group_id"] == [f"train-{n}" for n in (1, 2, 1, 1, 2, 2, 1, 1, 2, 2)]
    assert ds["kind"] == ["original"] * 2 + ["revised_premise"] * 4 + ["revised_hypothesis"] * 4
    assert ds["label"] == [SUPPORTS, REFUTES, REFUTES, NEI, SUPPORTS, NEI, REFUTES, NEI, SUPPORTS, NEI]
    assert texts(ds)[1] == ['A girl wearing "Bled" on her shirt runs.']
    assert ds["claim"][8] == "A girl moves."
    inner = hfcf.load("cad_nli", data_dir=FIXTURES / "cad_nli" / "NLI", split="train")
    assert inner.to_list() == ds.to_list()
    alone = hfcf.load("cad_nli", data_files=FIXTURES / "cad_nli/NLI/revised_premise/train.tsv", split="train")
    assert alone["group_id"] == ["train-1", "train-1", "train-2", "train-2"]


def test_cad_nli_files_must_be_parallel(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "cad_nli/NLI", tmp_path / "NLI")
    path = tmp_path / "NLI/revised_hypothesis/train.tsv"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(CorpusError, match=r"revised_hypothesis/train\.tsv.*3.*original/train\.tsv.*2"):
        hfcf.load("cad_nli", data_dir=tmp_path, split="train")
    shutil.copy(FIXTURES / "cad_nli/NLI/original/train.tsv", tmp_path / "train.tsv")
    with pytest.raises(CorpusError, match="its folder names its kind"):
        hfcf.load("cad_nli", data_files=tmp_path / "train.tsv")


def test_cad_imdb_pairs_reviews_with_their_revisions() -> None:
    splits = load("cad_imdb")
    assert {split: part["id"] for split, part in splits.items()} == {
        "train": ["train-7", "train-7-revised", "train-12", "train-12-revised"],
        "validation": ["dev-9", "dev-9-revised"],
        "test": ["test-orig-1", "test-new-1"],  # no paired file
    }
    ds = splits["train"]
    assert ds["label"] == ["negative", "positive", "positive", "negative"]
    assert ds["original_id"] == [None, "train-7", None, "train-12"]
    assert ds["group_id"] == ["train-7", "train-7", "train-12", "train-12"]
    assert ds["text"][2] == 'The film "Vidova" made my evening in Ålesund.'
    assert splits["test"]["kind"] == ["original", "revised"]
    assert splits["test"]["original_id"] == [None, None]
    inner = hfcf.load("cad_imdb", data_dir=FIXTURES / "cad_imdb/sentiment", split="train", kind="revised")
    assert inner.to_list() == [row for row in ds if row["kind"] == "revised"]
    pairs = hfcf.pair(inner, load("cad_imdb", "train", kind="original"), on="original_id")
    assert pairs[0]["source"]["text"] == ds[0]["text"]
