"""The corpora whose loader is one short file: their layouts, what goes wrong with their files, and the real ones."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import datasets
import pytest

import hfcf
from hfcf.core.task import find_problem, get_task
from hfcf.corpora.base import CorpusError
from hfcf.pipeline.build_corpus import build
from hfcf.tasks.verification import LABELS

FIXTURES = Path(__file__).parents[1] / "fixtures" / "corpora"
DATA = os.environ.get("HFCF_DATA")
real = pytest.mark.skipif(not DATA, reason="HFCF_DATA, the folder of the real release files, is not set")
SUPPORTS, REFUTES, NEI = LABELS


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "datasets"))
    datasets.disable_progress_bars()


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


# --- bad files


class Case(NamedTuple):
    """A file of a fixture, and what to damage in it."""

    name: str
    file: str
    split: str
    line: int
    """The line to damage; it holds a letter that is not ASCII, and a row that ends there."""
    id: str
    """Of the row that is made from it."""
    field: str
    """The field to rename, and the name as it stands in the file."""
    label: str
    """The label to replace, as it stands in the line; none in a file without labels."""
    rows: int
    """Rows of the split."""


CASES = [
    Case("fm2", "dataset/dev.jsonl", "validation", 3, "f3", "wikipedia_page", '"REFUTES"', 3),
    Case(
        "fever_symmetric", "symmetric_v0.2/fever_symmetric_dev.jsonl", "validation", 5, "102", "evidence", '"SUPPORTS", "evid"', 5
    ),
    Case("fever_adversarial", "fever_adversarial/test.jsonl", "test", 4, "7003-1", "page", '"REFUTES"', 4),
    Case("ex_fever", "data/test.csv", "test", 8, "test-4", "explanation", "SUPPORT", 4),
    Case("covidfact", "COVIDFACT_dataset.jsonl", "full", 5, "covidfact-5", "gold_source", '"REFUTED"', 5),
    Case("wikifactcheck", "wfc_dev.tsv", "validation", 3, "502", "context", "", 5),
    Case("cad_nli", "NLI/original/train.tsv", "train", 2, "train-1", "sentence1", "entailment", 10),
    Case("cad_imdb", "sentiment/combined/paired/train_paired.tsv", "train", 5, "train-12-revised", "Text", "Negative", 4),
]
cases = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


@pytest.fixture
def damage(tmp_path: Path) -> Callable[..., Path]:
    """`damage(case, change)` is a copy of the fixture with the case's line, or with `whole` its file, changed."""

    def make(case: Case, change: Callable[[bytes], bytes], whole: bool = False) -> Path:
        folder = tmp_path / case.name
        shutil.copytree(FIXTURES / case.name, folder)
        path = folder / case.file
        lines = path.read_bytes().split(b"\n")
        if whole:
            changed = change(path.read_bytes())
        else:
            lines[case.line - 1] = change(lines[case.line - 1])
            changed = b"\n".join(lines)
        assert changed != path.read_bytes()
        path.write_bytes(changed)
        return folder

    return make


def place(case: Case) -> str:
    return rf"{case.file.rpartition('/')[2]}, line {case.line} "


@cases
def test_truncated_file(case: Case, damage: Any) -> None:
    last = (FIXTURES / case.name / case.file).read_bytes().rstrip(b"\n").rpartition(b"\n")[2]
    # In JSON inside the last text; in a table before its last cells.
    gone = len(last) // 2 + 1
    folder = damage(case, lambda data: data[:-gone], whole=True)
    with pytest.raises(CorpusError, match=rf"{Path(case.file).name}, line \d+.*(JSON|fields.*header|CSV)"):
        hfcf.load(case.name, data_dir=folder, split=case.split)


@cases
def test_missing_field(case: Case, damage: Any) -> None:
    table = case.file.endswith(("csv", "tsv"))
    name = case.field.encode()
    folder = damage(case, lambda data: data.replace(name, b"something", 1), whole=table)
    line = r"line \d+ " if table else f"line {case.line} "
    with pytest.raises(CorpusError, match=rf"{Path(case.file).name}, {line}.*'{case.field}'.*something"):
        hfcf.load(case.name, data_dir=folder, split=case.split)


@cases
def test_wrong_label(case: Case, damage: Any) -> None:
    if not case.label:
        pytest.skip("its labels are columns, not values")
    wrong = case.label.replace(case.label.strip('"').partition('"')[0], "perhaps", 1)
    folder = damage(case, lambda line: wrong.encode().join(line.rsplit(case.label.encode(), 1)))
    with pytest.raises(CorpusError, match=rf"{place(case)}.*label 'perhaps'"):
        hfcf.load(case.name, data_dir=folder, split=case.split)


@cases
def test_bytes_that_are_not_utf_8(case: Case, damage: Any) -> None:
    folder = damage(case, lambda line: line.decode().encode("latin-1"))
    with pytest.raises(CorpusError, match=rf"{place(case)}.*(UTF-8.*0x|encoding)"):
        hfcf.load(case.name, data_dir=folder, split=case.split)


@cases
def test_reject_keeps_the_row(case: Case, damage: Any) -> None:
    if case.label:
        wrong = case.label.replace(case.label.strip('"').partition('"')[0], "perhaps", 1)
        folder = damage(case, lambda line: wrong.encode().join(line.rsplit(case.label.encode(), 1)))
    else:
        folder = damage(case, lambda line: line.decode().encode("latin-1"))
    whole = load(case.name, case.split)
    ds = hfcf.load(case.name, data_dir=folder, split=case.split, on_error="reject")
    assert len(ds) == len(whole) == case.rows
    bad = [row for row in ds if row["status"]]
    assert all(row["status"]["stage"] == "load" and not row["status"]["accepted"] for row in bad)
    assert ("is unknown" if case.label else "encoding is broken") in bad[0]["status"]["reason"]
    assert bad[0]["id"].startswith(case.id)
    assert ds["id"] == whole["id"]
    good = {row["id"]: row for row in ds.remove_columns("status") if row["id"] not in {row["id"] for row in bad}}
    assert len(good) == case.rows - len(bad)
    assert len(bad) == (1 if case.label else 2)  # Both rows of a wikifactcheck line have the context.
    expected = {row["id"]: row for row in whole}
    same = [column for column in whole.column_names if column != "group_id"]
    assert all(row[column] == expected[name][column] for name, row in good.items() for column in same)


@cases
def test_values_of_another_type_are_named(case: Case, tmp_path: Path) -> None:
    """Numbers and lists in the place of text reach neither Arrow nor a traceback."""
    if not case.file.endswith("jsonl"):
        pytest.skip("every value of a table is text")
    shutil.copytree(FIXTURES / case.name, tmp_path / case.name)
    path = tmp_path / case.name / case.file
    lines = path.read_text().splitlines()
    original = json.loads(lines[case.line - 1])
    for field, value in ((field, value) for field in original for value in (5, None, ["\ud800"], {"a": []})):
        lines[case.line - 1] = json.dumps({**original, field: value})
        path.write_text("\n".join(lines))
        ds = hfcf.load(case.name, data_dir=tmp_path / case.name, split=case.split, on_error="reject")
        assert len(ds) == case.rows or field == "accept"


@cases
def test_published_rows_are_the_same(case: Case, tmp_path: Path) -> None:
    build(case.name, data_dir=FIXTURES / case.name, out=tmp_path / "out")
    loaded = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "hub"))
    assert loaded[case.split].to_list() == load(case.name, case.split).to_list()


# --- real files


REAL = [
    ("fm2", "fool_me_twice", "validation", 1169, {SUPPORTS: 596, REFUTES: 573}, 209),
    ("fever_symmetric", "fever_symmetric", "validation", 708, {SUPPORTS: 354, REFUTES: 354}, 163),
    ("fever_symmetric", "fever_symmetric", "generated", 348, {SUPPORTS: 179, REFUTES: 169}, 114),
    ("fever_adversarial", "fever_adversarial", "test", 400, {SUPPORTS: 197, REFUTES: 203}, 278),
    ("ex_fever", "ex_fever", "test", 3000, {SUPPORTS: 973, REFUTES: 1018, NEI: 1009}, 2835),
    ("covidfact", "covidfact", "full", 2201, {SUPPORTS: 694, REFUTES: 1507}, 690),
    # 3,700 lines; in four of them the refuted claim is the claim itself.
    ("wikifactcheck", "wikifactcheck", "validation", 7396, {SUPPORTS: 3700, REFUTES: 3696}, 3700),
    ("cad_nli", "cad_nli", "train", 1666 + 2 * 3332, {SUPPORTS: 2770, REFUTES: 2782, NEI: 2778}, 1666),
    ("cad_nli", "cad_nli", "validation", 200 + 2 * 400, {SUPPORTS: 326, REFUTES: 349, NEI: 325}, 200),
]


@real
@pytest.mark.parametrize(("name", "folder", "split", "rows", "labels", "groups"), REAL, ids=[f"{n}-{s}" for n, _, s, *_ in REAL])
def test_real_files(name: str, folder: str, split: str, rows: int, labels: dict[str, int], groups: int) -> None:
    ds = hfcf.load(name, data_dir=Path(str(DATA)) / folder, split=split)
    assert len(ds) == len(set(ds["id"])) == rows
    assert Counter(ds["label"]) == labels
    assert len(set(ds["group_id"])) == groups
    # One context of WikiFactCheck holds U+0092, an apostrophe that the release lost.
    assert len([row for row in ds if find_problem(row)]) == (2 if name == "wikifactcheck" else 0)
    assert not [text for pieces in texts(ds) for text in pieces if "-LRB-" in text]


@real
def test_real_ex_fever_mini_test() -> None:
    ds = hfcf.load("ex_fever", data_files=Path(str(DATA)) / "ex_fever/data/mini_test.csv", split="test")
    assert len(ds) == 1000
    assert Counter(ds["label"]) == {SUPPORTS: 326, REFUTES: 353, NEI: 321}
    assert [row["id"] for row in ds if find_problem(row)] == []
