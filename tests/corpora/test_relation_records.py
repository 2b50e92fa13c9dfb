"""A user's own relation rows: their forms, bad ones, and sets that the library writes, a challenge set among them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import ClassLabel, Dataset

import hfcf
from hfcf.core.recipe import locate
from hfcf.core.task import get_task
from hfcf.corpora.base import CorpusError
from hfcf.hub.folder import write_parquet
from hfcf.pipeline.build_corpus import build
from hfcf.studies.compare.recipe import ColumnComparison, parse_comparison
from hfcf.studies.compare.samples import load_columns
from hfcf.training.data import load_rows
from hfcf.training.scorers import RELATIONS

ORIGIN, DESTINATION = "Entity-Origin(e1,e2)", "Entity-Destination(e1,e2)"
TOKENS = ["The", "mail", "came", "from", "Rome", "."]
ROW: dict[str, Any] = {"id": "1", "tokens": TOKENS, "head": [1, 2], "tail": [4, 5], "label": ORIGIN}
FORMS: dict[str, dict[str, Any]] = {
    "pairs": {},
    "objects": {"head": {"start": 1, "end": 2, "type": None}, "tail": {"start": 4, "end": 5}},
    "tags": {"tokens": None, "text": "The <e1>mail</e1> came from <e2>Rome</e2>.", "head": None, "tail": None},
    "characters": {"tokens": None, "text": "The mail came from Rome.", "head": [4, 8], "tail": {"start": 19, "end": 23}},
    "text beside tokens": {"text": "not <e1>read"},
}


def write(path: Path, *rows: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows), encoding="utf-8")
    return path


def canonical(*rows: dict[str, Any]) -> Dataset:
    places: dict[str, list[Any]] = {
        name: [{"start": row[name][0], "end": row[name][1], "type": "THING" if name == "head" else None} for row in rows]
        for name in ("head", "tail")
    }
    own: dict[str, Any] = {"group_id": "g", "corpus": "challenge:made", "split": "test"}
    made = [{**row, **own, **{name: places[name][i] for name in places}} for i, row in enumerate(rows)]
    return Dataset.from_list(made, features=get_task("relation").features)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_row(form: str, tmp_path: Path) -> None:
    ds = hfcf.load(
        "relations",
        data_files=write(
            tmp_path / "mine.jsonl", {name: value for name, value in {**ROW, **FORMS[form]}.items() if value is not None}
        ),
        split="train",
    )
    assert list(ds.features) == [*get_task("relation").features, "text", "offsets"]
    (row,) = ds.to_list()
    text = "The mail came from Rome." if form in ("tags", "characters") else "The mail came from Rome ."
    assert row.pop("text") == text
    assert [text[place["start"] : place["end"]] for place in row.pop("offsets")] == TOKENS
    head, tail = {"start": 1, "end": 2, "type": ""}, {"start": 4, "end": 5, "type": ""}
    assert row.pop("group_id").startswith("row-")
    own = {"id": "1", "corpus": "relations", "split": "train"}
    assert row == {**own, "tokens": TOKENS, "head": head, "tail": tail, "label": ORIGIN}


def test_the_tail_may_come_first_and_types_are_kept(tmp_path: Path) -> None:
    rows = [
        {
            "id": "a",
            "text": "a\u2028😀 b",
            "head": {"start": 4, "end": 5, "type": "X"},
            "tail": [0, 1],
            "label": "r",
            "group_id": 7,
        },
        {"id": "b", "text": "b 😀 a", "head": {"start": 4, "end": 5, "type": "GPE"}, "tail": [0, 1], "label": "r"},
    ]
    ds = hfcf.load("relations", data_dir=write(tmp_path / "dev.jsonl", *rows).parent, split="dev")
    assert [(head["start"], head["type"]) for head in ds["head"]] == [(2, "X"), (2, "GPE")]
    assert [place["start"] for place in ds["tail"]] == [0, 0]
    assert (ds["id"][0], ds["group_id"][0]) == ("a", "7")
    assert set(ds["split"]) == {"validation"}
    tagged = [{"text": "<e2>Rome</e2>'s <e1>old mail</e1>", "label": "Other"}]
    (row,) = hfcf.load("relations", data_files=write(tmp_path / "mine.jsonl", *tagged), split="train")
    assert (row["head"], row["tail"]) == ({"start": 2, "end": 4, "type": ""}, {"start": 0, "end": 1, "type": ""})


def test_a_text_that_marks_no_entity_says_how_to_name_their_places() -> None:
    rows = [{"text": "The mail came from Rome.", "a": 4, "b": 8, "c": 19, "d": 23, "label": ORIGIN}]
    with pytest.raises(ValueError, match=r"<e1>.*\"head\": \[") as error:
        hfcf.from_dataset(rows, task="relation", on_error="raise")
    assert error.value.__cause__ is None
    places = {"text": "text", "head": ["a", "b"], "tail": ["c", "d"]}
    (row,) = hfcf.from_dataset(rows, columns=places, ends="exclusive").to_list()
    assert (row["tokens"], row["head"]["start"], row["tail"]["start"]) == (TOKENS, 1, 4)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"tokens": None}, "'tokens'"),
    ({"tokens": "The mail"}, "one text"),
    ({"tokens": ["The", 3]}, "token 1"),
    ({"tokens": ["two words", *TOKENS[1:]]}, "white space"),
    ({"head": None}, "head"),
    ({"head": "mail"}, "head"),
    ({"head": [True, 2]}, "head"),
    ({"tail": [4, 4]}, "4–4"),
    ({"tail": [4, 7]}, "6 tokens"),
    ({"label": None}, "no label"),
    ({"label": " "}, "no label"),
]


def test_rejected_rows_stay_in_their_places(tmp_path: Path) -> None:
    bad = [{**ROW, "id": f"b{i}", **change} for i, (change, _) in enumerate(BAD)]
    path = write(tmp_path / "mine.jsonl", {**ROW, "id": "first"}, *bad, "{no json", {**ROW, "id": "last"})
    ds = hfcf.load("relations", data_files=path, split="train", on_error="reject")
    reasons = [status and status["reason"] for status in ds["status"]]
    assert [i for i, reason in enumerate(reasons) if reason is None] == [0, len(ds) - 1]
    assert [fact in reason for reason, (_, fact) in zip(reasons[1:], BAD, strict=False)] == [True] * len(BAD)
    assert "not JSON" in reasons[-2]
    source = {"corpus": "relations", "data_files": str(path), "on_error": "reject"}
    assert load_rows([source])["id"] == ["first", "last"]
    with pytest.raises(CorpusError, match="b0"):
        hfcf.load("relations", data_files=path)


def test_classes_of_parquet_come_back_as_their_names(tmp_path: Path) -> None:
    rows = canonical({**ROW, "id": "a", "label": ORIGIN}, {**ROW, "id": "b", "label": "Other"})
    names = ["unused", "Other", DESTINATION, ORIGIN]
    file = write_parquet(rows.cast_column("label", ClassLabel(names=names)), tmp_path / "data", "test")
    assert pq.read_table(file)["label"].to_pylist() == [3, 1]
    ds = hfcf.load("relations", data_dir=tmp_path, split="test")
    extra = ["text", "offsets", "corpus"]
    assert ds["label"] == [ORIGIN, "Other"]
    assert [row["type"] for row in (ds[0]["head"], ds[0]["tail"])] == ["THING", ""]
    for mine, given in zip(ds.remove_columns(extra), rows.remove_columns("corpus"), strict=True):
        assert mine == {**given, "tail": {**given["tail"], "type": ""}}
    assert hfcf.load("relations", data_files=file, split="test").to_list() == ds.to_list()
    assert list(hfcf.load("relations", data_files=file)) == ["test"]  # its name says so


def test_parquet_of_others(tmp_path: Path) -> None:
    table = {name: [ROW[name]] for name in ROW} | {"mine": [b"\xff"]}
    pq.write_table(pa.table(table), tmp_path / "train.parquet")
    assert hfcf.load("relations", data_dir=tmp_path, split="train")["label"] == [ORIGIN]
    pq.write_table(pa.table({**table, "label": pa.array(["Other"]).dictionary_encode()}), tmp_path / "train.parquet")
    assert hfcf.load("relations", data_dir=tmp_path, split="train")["label"] == ["Other"]
    pq.write_table(pa.table({**table, "label": [-1]}), tmp_path / "train.parquet")
    with pytest.raises(CorpusError, match=r"train\.parquet, row 1 \(id '1'\).*label.*-1"):
        hfcf.load("relations", data_dir=tmp_path)
    (tmp_path / "train.parquet").write_text("no Parquet")
    with pytest.raises(CorpusError, match=r"train\.parquet"):
        hfcf.load("relations", data_dir=tmp_path)


def test_where_files_are_looked_for(tmp_path: Path) -> None:
    write(tmp_path / "notes.jsonl", "{}")
    with pytest.raises(CorpusError, match=r"\.parquet.*notes\.jsonl"):
        hfcf.load("relations", data_dir=tmp_path)
    for i in range(2):
        shard = Dataset.from_list([{**ROW, "id": str(i)}])
        shard.to_parquet(str(write(tmp_path / "data" / "default" / f"train-0000{i}-of-00002.parquet")))
    assert hfcf.load("relations", data_dir=tmp_path, split="train")["id"] == ["0", "1"]
    write(tmp_path / "dev.jsonl", ROW)
    write(tmp_path / "validation.jsonl", {**ROW, "id": "official"})
    with pytest.raises(ValueError, match=r"validation\.jsonl and dev\.jsonl"):
        hfcf.load("relations", data_dir=tmp_path)
    (tmp_path / "dev.jsonl").unlink()
    ds = hfcf.load("relations", data_dir=tmp_path)
    assert {split: part["id"][:] for split, part in ds.items()} == {"validation": ["official"]}


@pytest.fixture
def challenge(tmp_path: Path) -> Path:
    """A published set of one made-up row, labels as classes."""
    rows = canonical({**ROW, "id": "1:flipped", "tokens": ["The", "mail", "went", "to", "Rome", "."], "label": DESTINATION})
    write_parquet(
        rows.cast_column("label", ClassLabel(names=[DESTINATION, ORIGIN])), tmp_path / "out" / "challenge" / "data", "test"
    )
    return tmp_path / "out" / "challenge"


def test_a_challenge_set_is_scored_by_a_comparison(challenge: Path) -> None:
    (file,) = (challenge / "data").iterdir()
    assert pq.read_schema(file).field("label").type == pa.int64()
    for folder in (challenge, challenge / "data"):
        ds = hfcf.load("relations", data_dir=folder, split="test")
        assert ds["id"] == ["1:flipped"]
        assert ds["label"] == [DESTINATION]
        assert ds["tokens"][0][2:4] == ["went", "to"]
    other = {**ROW, "id": "2", "tokens": [*TOKENS[:2], "went", "to", *TOKENS[4:]], "label": DESTINATION}
    mine = {"corpus": "relations", "data_files": str(write(challenge.parent / "mine.jsonl", ROW, other))}
    column = {"name": "Own", "test": {"corpus": "relations", "data_dir": "challenge", "split": "test"}}
    files: dict[str, Any] = {
        "name": "Files",
        "test": {"corpus": "relations", "data_files": {"test": f"challenge/data/{file.name}"}, "split": "test"},
    }
    content = {
        "compare": "models", "methods": {"none": None}, "seeds": [1],
        "data_dir": str(challenge.parent), "model": {"model": "tiny"}, "columns": [column, files],
        "defaults": {"train": mine, "dev": mine, "test": {"data_dir": "elsewhere"}},
    }  # fmt: skip
    recipe = parse_comparison(content)
    assert isinstance(recipe, ColumnComparison)
    _, (sample,) = load_columns(recipe)
    own, same = sample.sets
    assert own.ids == same.ids
    labels = {label for part in (sample.train, own.rows) for label in part["label"]}
    assert RELATIONS.letters(labels) == {"Other": "-", DESTINATION: "a", ORIGIN: "b"}
    assert locate(files["test"], "x")["data_files"] == {"test": f"x/challenge/data/{file.name}"}


def test_own_rows_are_published(challenge: Path, tmp_path: Path) -> None:
    out = build("relations", out=tmp_path / "built", data_dir=challenge)
    card = (out / "README.md").read_text(encoding="utf-8")
    assert f"| split | rows | groups | {DESTINATION} |" in card
    assert "Label map" not in card
    assert hfcf.load("relations", data_dir=out, split="test")["label"] == [DESTINATION]
