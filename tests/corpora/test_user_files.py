"""Rows as users bring them, from files and in memory: each is read, or rejected with a reason, and a file as a frame."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from datasets import ClassLabel, Dataset, DatasetDict, Features, Value, load_dataset
from offline_models import installed
from typer.testing import CliRunner

import hfcf
from hfcf.cli import app
from hfcf.core.recipe import apply_changes, read_recipe
from hfcf.core.task import get_task
from hfcf.corpora.base import CorpusError
from hfcf.corpora.custom.columns import LayoutError
from hfcf.corpora.formats.read import csv_rows
from hfcf.pipeline.init_recipe import new_recipe

TEXT = Value("string")
TWAIN = {"claim": "He was born in 1835.", "title": "Mark Twain", "evidence": "He was born on 30 November 1835.", "label": "true"}
TAGGED = [
    {"text": "<e1>Ada</e1> was born in <e2>London</e2>.", "relation": "born_in"},
    {"text": "A letter of <e1>Bowie</e1> reached <e2>Berlin</e2>.", "relation": "NA"},
]


def write(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def sources(rows: list[dict[str, Any]], folder: Path) -> dict[str, Any]:
    """The same rows as a frame, as `load_dataset` gives them, as Arrow of other libraries, and as files."""
    frame = pd.DataFrame(rows)
    frame.to_csv(folder / "mine.csv", index=False)
    frame.to_csv(folder / "mine.tsv", index=False, sep="\t")
    write(folder / "mine.csv.gz", (folder / "mine.csv").read_text())
    write(folder / "mine.jsonl", lines(rows))
    write(folder / "mine.json", json.dumps(rows))
    large = pa.table({name: pa.array(frame[name], pa.large_string()) for name in frame})
    pq.write_table(large, folder / "mine.parquet")
    files = {name: folder / f"mine.{name}" for name in ("csv", "tsv", "csv.gz", "jsonl", "json", "parquet")}
    read_by_pandas = pd.read_csv(folder / "mine.csv", keep_default_na=False)
    loaded = load_dataset(
        "csv", data_files=str(files["csv"]), split="train", keep_default_na=False, cache_dir=str(folder / "cache")
    )
    view = pa.table({name: pa.array(frame[name].to_list(), pa.string_view()) for name in frame})
    return {"list": rows, "frame": read_by_pandas, "load_dataset": loaded, "string_view": Dataset(view), "large": large, **files}


@pytest.mark.parametrize("rows", [[TWAIN, {**TWAIN, "claim": "He died in 1910.", "label": "false"}], TAGGED])
def test_files_and_frames_of_the_same_rows_are_read_alike(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    given = sources(rows, tmp_path)
    read = {name: hfcf.from_dataset(each) for name, each in given.items()}
    expected = read["list"].to_list()
    assert {name: ds.to_list() for name, ds in read.items()} == dict.fromkeys(read, expected)
    if "claim" in rows[0]:
        assert expected[0]["evidence"] == [{"title": "Mark Twain", "text": TWAIN["evidence"]}]
        written = {name: hfcf.to_dataset(copied(ds), like=given[name]) for name, ds in read.items()}
        assert {name: [*pd.DataFrame(new)] for name, new in written.items()} == {name: [*rows[0]] for name in read}
    else:
        assert [row["label"] for row in expected] == ["born_in", "Other"]
        assert expected[0]["tokens"] == ["Ada", "was", "born", "in", "London", "."]


def test_each_split_has_its_own_classes() -> None:
    def split(names: list[str]) -> Dataset:
        rows = {"premise": ["Rome is old."] * 3, "hypothesis": ["A.", "B.", "C."], "label": [0, 1, 2]}
        return Dataset.from_dict(rows, features=Features({"premise": TEXT, "hypothesis": TEXT, "label": ClassLabel(names=names)}))

    own = DatasetDict(
        {"train": split(["entailment", "neutral", "contradiction"]), "test": split(["contradiction", "entailment", "neutral"])}
    )
    ds = hfcf.from_dataset(own)
    assert ds["train"]["label"][:] == ["SUPPORTS", "NOT ENOUGH INFO", "REFUTES"]
    assert ds["test"]["label"][:] == ["REFUTES", "SUPPORTS", "NOT ENOUGH INFO"]
    own["test"] = own["test"].remove_columns("label")
    with pytest.raises(CorpusError) as error:
        hfcf.from_dataset(own)
    assert "'test'" in str(error.value)
    assert "'label'" in str(error.value)


QUOTES = """id,claim,evidence,label
1,Paris was founded in 701 BC.,"Settlers founded it, in 701 BC.",true
2,"Heroes" is a song.,"Heroes" is a song by Bowie.,true
3,"12 inch singles were sold in 1980.,Singles of 12 inches were sold.,true
4,Cairo was founded in 704 BC.,Cairo is old.,true
5,Lima has a "golden" port.,"Lima has a golden port, and it is old.",true
6,"A claim
over two lines.","It says ""so"".",true
7,too few fields,true
8,A 3" pipe is thin.,A pipe of 3",true
"""


def test_no_row_of_a_csv_is_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "mine.csv", QUOTES)
    ds = hfcf.load("csv", data_files=file, split="train", on_error="reject")
    claims = [row["claim"] for row in ds if row["status"] is None]
    assert claims == [
        "Paris was founded in 701 BC.", '"Heroes" is a song.', '"12 inch singles were sold in 1980.',
        "Cairo was founded in 704 BC.",
        'Lima has a "golden" port.', "A claim\nover two lines.", 'A 3" pipe is thin.',
    ]  # fmt: skip
    assert [row["status"]["reason"] for row in ds if row["status"]] == ["line 9 has 3 fields and the header 4"]
    assert "8 rows: 7 are read, 1 rejected" in capsys.readouterr().err
    with pytest.raises(CorpusError):
        hfcf.load("csv", data_files=file, split="train")


def test_two_stray_quotes_that_look_like_one_cell(tmp_path: Path) -> None:
    rows = 'id,claim,evidence\n1,"12 inch,a\n2,b,c\n3,A pipe of 3",d\n'
    assert [record.value["id"] for record in csv_rows(write(tmp_path / "a.csv", rows))] == ["1", "2", "3"]
    many = "a,b\n" + '"open,1\n' * 3000
    assert sum(1 for _ in csv_rows(write(tmp_path / "b.csv", many))) == 3000


def placed(text: str, head: list[int], tail: list[int], names: tuple[str, str] = ("Ada Lovelace", "London")) -> dict[str, Any]:
    return {"text": text, "h": {"name": names[0], "pos": head}, "t": {"name": names[1], "pos": tail}, "relation": "in"}


def test_places_are_compared_with_names() -> None:
    text = "😀 Ada Lovelace moved to London."
    rows = [placed(text, [2, 14], [24, 30]), placed(text, [3, 15], [25, 31])]
    rows.append(placed(text, [2, 14], [24, 30], ("Ada", "London")))
    good, utf16, other = hfcf.from_dataset(rows)
    assert good["status"] is None
    assert good["tokens"][good["head"]["start"] : good["head"]["end"]] == ["Ada", "Lovelace"]
    assert "'da Lovelace '" in utf16["status"]["reason"]
    assert "UTF-16" in utf16["status"]["reason"]
    assert "'Ada Lovelace'" in other["status"]["reason"]
    inclusive = [placed(text, [2, 13], [24, 29])] * 3
    assert {row["head"]["end"] - row["head"]["start"] for row in hfcf.from_dataset(inclusive)} == {2}
    cut = [{"text": "The eggs came in a bucket.", "head": [4, 8], "tail": [19, 25], "relation": "in"}] * 2
    cut += [{**cut[0], "head": [5, 8]}]
    assert [bool(row["status"]) for row in hfcf.from_dataset(cut)] == [False, False, True]


@pytest.mark.parametrize("typed", [True, False])
def test_ends_are_decided_by_all_rows(typed: bool, tmp_path: Path) -> None:
    token = ["Ann", "Smith", "leads", "the", "company", "Acme", "."]
    row = {"token": token, "relation": "r", "subj_start": 0, "subj_end": 2, "obj_start": 5, "obj_end": 6}
    rows = [{**row, "id": f"{i}"} for i in range(5)] + [{**row, "id": "odd", "obj_start": 6}]
    source: Any = rows if typed else write(tmp_path / "mine.jsonl", lines(rows))
    ds = hfcf.from_dataset(source)
    assert [bool(each["status"]) for each in ds] == [False] * 5 + [True]
    assert ds[0]["head"] == {"start": 0, "end": 2, "type": ""}
    inclusive = [{**each, "subj_end": 1, "obj_end": 5} for each in rows[:5]]
    assert hfcf.from_dataset(inclusive)[0]["head"] == {"start": 0, "end": 2, "type": ""}


def test_names_that_are_there_twice(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "id,claim,evidence,evidence,label\n1,Rome is old.,a b,c d,true\n")
    frame = pd.DataFrame([["Rome is old.", "a b", "c d", "true"]], columns=["claim", "evidence", "evidence", "label"])
    for source in (file, frame):
        with pytest.raises(ValueError, match="'evidence'"):
            hfcf.from_dataset(source)
    twice = {"Claim": "Rome is old.", "claim": "Rome is new.", "evidence": "Rome stands.", "label": "true"}
    with pytest.raises(LayoutError) as unclear:
        hfcf.from_dataset([twice])
    assert "'Claim'" in str(unclear.value)
    assert hfcf.from_dataset([twice], columns={"claim": "claim"})["claim"][:] == ["Rome is new."]
    text = '{"claim": "Rome is old.", "claim": "Rome is new.", "evidence": "Rome stands.", "label": "true"}\n'
    good = lines([{"claim": "Oslo is old.", "evidence": "Oslo stands.", "label": "true"}])
    ds = hfcf.from_dataset(write(tmp_path / "a.jsonl", text + good))
    assert [row["claim"] for row in ds] == [None, "Oslo is old."]
    assert "'claim'" in ds["status"][0]["reason"]


def test_columns_without_names() -> None:
    frame = pd.DataFrame([["Rome is old.", "Rome stands.", "true"]])
    columns = {"claim": 0, "evidence": 1, "label": 2}
    ds = hfcf.from_dataset(frame, columns=columns)
    assert ds["claim"][:] == ["Rome is old."]
    assert list(hfcf.to_dataset(copied(ds), like=frame, columns=columns).columns) == [0, 1, 2]


@pytest.mark.parametrize("write_list", [json.dumps, repr])
@pytest.mark.parametrize(
    "evidence",
    [["Rome was founded.", "The Tiber flows."], [{"title": "Nile", "text": "The Nile flows."}], [["Nile", "The Nile flows."]]],
)
def test_lists_in_cells(evidence: Any, write_list: Callable[[Any], str], tmp_path: Path) -> None:
    rows = [{"claim": "Rome was founded.", "evidence": write_list(evidence), "label": "true"}]
    expected = hfcf.from_dataset([{**rows[0], "evidence": evidence}])["evidence"][0]
    for source in sources(rows, tmp_path).values():
        ds = hfcf.from_dataset(source)
        assert ds["evidence"][0] == expected
    assert hfcf.to_dataset(copied(hfcf.from_dataset(rows)), like=rows)[0]["evidence"] == rows[0]["evidence"]


def test_what_begins_as_a_list_and_is_none() -> None:
    cells = ["['a b' 'c d']", '["a b", ', "[1] Rome is old.", "[sic] Rome"]
    rows = [{"claim": "Rome is old.", "evidence": cell, "label": "true"} for cell in cells]
    assert [bool(status) for status in hfcf.from_dataset(rows)["status"]] == [True, True, False, False]


@pytest.mark.skipif(not installed("wordnet"), reason="WordNet is not installed")
@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "json", "jsonl", "parquet"])
def test_a_recipe_for_every_file(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sources(TAGGED, tmp_path)
    recipe = yaml.safe_load(new_recipe("synonym", "mine.yaml", f"mine.{ending}").text)
    assert recipe["corpus"] == "relations"
    assert recipe["columns"] == {"text": "text", "label": "relation"}
    answer = CliRunner().invoke(app, ["new", "ccg", "ccg.yaml", "--data", f"mine.{ending}"])
    assert answer.exit_code == 0, answer.exception
    assert hfcf.load(recipe["corpus"], data_files=f"mine.{ending}", split="train", columns=recipe["columns"])["label"][1] == "Other"


def test_labels_of_recipes_are_texts(tmp_path: Path) -> None:
    path = write(tmp_path / "a.yaml", "labels: {true: SUPPORTS, half-true: null}\ndata: [{labels: {0: REFUTES, unclear: null}}]\n")
    content = read_recipe(path)
    assert content["labels"] == {"true": "SUPPORTS", "half-true": None}
    assert content["data"][0]["labels"] == {"0": "REFUTES", "unclear": None}
    json.dumps(apply_changes({"labels": {0: "REFUTES", "x": None}}, []), sort_keys=True)


@pytest.mark.skipif(not installed("wordnet"), reason="WordNet is not installed")
def test_a_recipe_with_boolean_and_numbered_labels_runs(tmp_path: Path) -> None:
    rows = [{"claim": "The old dog is happy.", "evidence": "The dog sleeps.", "label": label} for label in (1.0, 0.0, float("nan"))]
    file = write(tmp_path / "mine.jsonl", lines(rows))
    for i, labels in enumerate(
        ({0: "REFUTES", 1: "SUPPORTS", "unclear": None}, {True: "SUPPORTS", "0": "REFUTES", "1": "SUPPORTS"})
    ):
        recipe = {"corpus": {"path": "json", "data_files": str(file)}, "labels": labels, "on_error": "reject", "system": "eda"}
        report = hfcf.run({**recipe, "preset": "offline", "metrics": {}}, tmp_path / f"out{i}")
        assert report["rows_in"] == 3


def copied(ds: Dataset, **changes: Any) -> Dataset:
    """Counterfactuals that differ from their sources in some columns, as `expand` gives them."""
    task = get_task("qa" if "question" in ds.features else "verification")
    rows = []
    for i, row in enumerate(ds):
        if row["status"] is not None:
            continue
        new = {**row, **{name: change(row[name]) if callable(change) else change for name, change in changes.items()}}
        edits = []
        if "claim" in row and row["claim"] != new["claim"]:
            place = {"field": "claim", "piece": -1, "start": 0, "end": len(row["claim"])}
            edits = [{**place, "before": row["claim"], "after": new["claim"]}]
        if "question" in row:
            from hfcf.tasks.qa import rewrite_all

            edits = rewrite_all(row, question=new["question"], answers=new["answers"])
        rows.append(
            {**new, "id": f"new-{i}", "source_id": row["id"], "system": "s", "change": "claim", "edits": edits, "scores": []}
        )
    return Dataset.from_list([{name: row[name] for name in task.counterfactual} for row in rows], features=task.counterfactual)


LIAR = {"mostly-true": "SUPPORTS", "half-true": None, "barely-true": "REFUTES", "pants-fire": "REFUTES"}


def test_an_unchanged_label_is_the_users_own() -> None:
    names = ["true", "mostly-true", "half-true", "barely-true", "false", "pants-fire"]
    own = pd.DataFrame([{"claim": f"Claim {name} is old.", "evidence": "Rome is old.", "label": name} for name in names])
    ds = hfcf.from_dataset(own, labels=LIAR)
    same = hfcf.to_dataset(copied(ds), like=own, labels=LIAR)
    assert same["label"].tolist() == ["true", "mostly-true", "barely-true", "false", "pants-fire"]
    changed = hfcf.to_dataset(copied(ds.select([1]), label="REFUTES"), like=own, labels=LIAR)
    assert changed["label"].tolist() == ["barely-true"]


def test_columns_that_go_with_label_and_text(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["entailment", "neutral", "contradiction"]
    own = [
        {
            "premise": "Rome is old.", "hypothesis": f"Rome is {i}.", "label": name, "label_text": name.upper(), "genre": f"g{i}",
            "explanation_1": "because", "hypothesis_parse": "(S)", "annotator_labels": [name],
        }
        for i, name in enumerate(names)
    ]  # fmt: skip
    new = hfcf.to_dataset(copied(hfcf.from_dataset(own), claim="Rome is new.", label="REFUTES"), like=own)
    assert [row["label_text"] for row in new] == ["CONTRADICTION"] * 3
    assert [row["genre"] for row in new] == ["g0", "g1", "g2"]
    assert {row[name] for row in new for name in ("explanation_1", "hypothesis_parse")} == {None}
    assert [row["annotator_labels"] for row in new] == [["contradiction"]] * 3
    said = capsys.readouterr().err
    assert "explanation_1" in said
    assert "label_text" in said


@pytest.mark.parametrize("beyond", [0, -1])
@pytest.mark.parametrize("form", ["lists", "one", "objects", "columns"])
def test_the_end_of_an_answer_moves(form: str, beyond: int) -> None:
    context, question = "The tower was opened in 1889 in Paris.", "When was the tower opened?"
    answer = {"text": "1889", "answer_start": 24, "answer_end": 28 + beyond}
    answers: dict[str, Any] = {
        "lists": {"answers": {name: [value] for name, value in answer.items()}},
        "one": {"answer": answer},
        "objects": {"answers": [answer]},
        "columns": {"answer": "1889", "answer_start": 24, "answer_end": 28 + beyond},
    }[form]  # fmt: skip
    own = [{"question": question, "context": context, **answers}]
    ds = hfcf.from_dataset(own)
    assert ds[0]["answers"] == {"text": ["1889"], "answer_start": [24]}
    made = copied(ds, question="Where is the tower?", answers={"text": ["Paris"], "answer_start": [32]})
    (row,) = hfcf.to_dataset(made, like=own)
    new = (
        row
        if form == "columns"
        else row["answers"]
        if form == "lists"
        else row["answers"][0]
        if form == "objects"
        else row["answer"]
    )
    moved = {"answer_start": 32, "answer_end": 37 + beyond}
    assert {name: new[name] for name in moved} == ({name: [value] for name, value in moved.items()} if form == "lists" else moved)


@pytest.mark.parametrize("stream", [True, False])
def test_no_relation_is_other_wherever_it_is(stream: bool, tmp_path: Path) -> None:
    rows = [{"text": f"<e1>Ada</e1> saw <e2>London {i}</e2>.", "label": "saw" if i < 1100 else "no_relation"} for i in range(1102)]
    ds = Dataset.from_list(rows)
    read = hfcf.from_dataset(ds.to_iterable_dataset() if stream else write(tmp_path / "a.jsonl", lines(rows)))
    assert [row["label"] for row in read][-3:] == ["saw", "Other", "Other"]


@pytest.mark.parametrize(("label", "other"), [("SUPPORT", "REFUTE"), ("entails", "contradicts"), ("supports ", "refutes")])
def test_known_spellings_of_labels(label: str, other: str) -> None:
    own = [{"claim": "Rome is old.", "evidence": "Rome is old now.", "label": label}]
    ds = hfcf.from_dataset(own)
    assert ds["label"][:] == ["SUPPORTS"]
    assert hfcf.to_dataset(copied(ds, label="REFUTES"), like=own)[0]["label"] == other
    with pytest.raises(ValueError, match="rather not"):
        hfcf.counterfactuals(claim="Rome is old.", evidence="Rome is old now.", label="rather not")


def test_numbers_as_labels(tmp_path: Path) -> None:
    rows = [
        {"claim": f"Claim {i} is old.", "evidence": "Rome is old.", "label": label}
        for i, label in enumerate((1.0, 0.0, float("nan")))
    ]
    labels = {0: "REFUTES", 1: "SUPPORTS"}
    for source in (rows, pd.DataFrame(rows), write(tmp_path / "a.jsonl", lines(rows))):
        ds = hfcf.from_dataset(source, labels=labels)
        assert ds["label"][:] == ["SUPPORTS", "REFUTES", None]
        assert ds["status"][2]["reason"] == "there is no label"
        with pytest.raises(LayoutError) as error:
            hfcf.from_dataset(source)
        assert "nan" not in str(error.value)
        assert '1: "…"' in str(error.value)


def test_numbers_as_answers_and_missing_values(tmp_path: Path) -> None:
    rows = [
        {"question": "When?", "context": "It opened in 1889.", "answer": 1889},
        {"question": "How many?", "context": "4 dogs.", "answer": 4},
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "a.csv", index=False)
    for source in (rows, pd.DataFrame(rows), tmp_path / "a.csv", write(tmp_path / "a.jsonl", lines(rows))):
        assert [each["text"] for each in hfcf.from_dataset(source)["answers"]] == [["1889"], ["4"]]
    ds = hfcf.from_dataset([TWAIN, {**TWAIN, "claim": float("nan")}])
    assert ds["status"][1]["reason"] == "the claim is null"


def test_true_and_false_are_answers(tmp_path: Path) -> None:
    rows = [{"question": f"Was it {how}?", "context": "It was open.", "answer": how == "open"} for how in ("open", "shut")]
    for source in (rows, pd.DataFrame(rows), Dataset.from_list(rows), write(tmp_path / "a.jsonl", lines(rows))):
        assert [each["text"] for each in hfcf.from_dataset(source)["answers"]] == [["true"], ["false"]]
    mine = Dataset.from_list(rows)
    ds = hfcf.from_dataset(mine)
    new = {**ds[0], "question": "Was it shut?", "answers": ds[1]["answers"], "source_id": ds[0]["id"], "edits": None}
    written = hfcf.to_dataset(Dataset.from_list([new]), like=mine)
    assert written[0]["answer"] is False


def test_a_file_without_a_record_that_can_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorpusError) as error:
        hfcf.from_dataset(write(tmp_path / "mine.jsonl", '{"claim": "Rome is\n["a"]\n'))
    for fact in ("mine.jsonl", "line 1", "JSON"):
        assert fact in str(error.value)
