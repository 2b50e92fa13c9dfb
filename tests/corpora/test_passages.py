from __future__ import annotations

import json
from pathlib import Path

import pytest
from datasets import Dataset, DatasetDict

import hfcf
from hfcf import corpora
from hfcf.core.passage_store import Passages
from hfcf.core.recipe import RecipeError
from hfcf.corpora.base import CorpusError
from hfcf.corpora.passages import collect_passages, from_recipe
from hfcf.engines.retriever import Retriever
from hfcf.training import distractors

# As pandas writes DPR's psgs_w100.tsv.
TSV = (
    "id\ttext\ttitle\n"
    '1\t"Aaron Aaron ( or ; ""Ahärôn"") is a prophet, 𝒜 😀."\tAaron\n'
    '2\t"God at Sinai\u2028granted."\t"""Heroes"" (David Bowie album)"\n'
    "3\tPlain text with a ' quote\tNull\n"
)
LINES = [
    {"id": 7, "title": "Rome", "text": "Rome is\told.\n\u2028"},
    {"text": "Cats purr."},
    {"id": "x", "title": None, "text": "NA"},
]
READ = [("7", "Rome", "Rome is\told.\n\u2028"), ("1", "", "Cats purr."), ("x", "", "NA")]


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def tuples(ds: Dataset) -> list[tuple[str, str, str]]:
    return [(row["id"], row["title"], row["text"]) for row in ds]


def test_the_tsv_of_wikipedias_passages(tmp_path: Path) -> None:
    (tmp_path / "psgs_w100.tsv").write_text(TSV, encoding="utf-8")
    ds = hfcf.load("passages", data_files=tmp_path / "psgs_w100.tsv")
    assert tuples(ds) == [
        ("1", "Aaron", 'Aaron Aaron ( or ; "Ahärôn") is a prophet, 𝒜 😀.'),
        ("2", '"Heroes" (David Bowie album)', "God at Sinai\u2028granted."),
        ("3", "Null", "Plain text with a ' quote"),
    ]
    assert tuples(hfcf.load("passages", data_dir=tmp_path)) == tuples(ds)


def test_json_lines_parquet_and_saved_datasets_give_the_same(tmp_path: Path) -> None:
    ds = hfcf.load("passages", data_files=str(write(tmp_path / "a.jsonl", LINES)))
    assert tuples(ds) == READ
    ds.to_parquet(tmp_path / "a.parquet")
    ds.save_to_disk(tmp_path / "saved")
    for place in ({"data_files": tmp_path / "a.parquet"}, {"data_dir": tmp_path / "saved"}):
        assert Passages.of(hfcf.load("passages", **place)) == Passages.of(ds)
    two = hfcf.load("passages", data_files=[tmp_path / "a.parquet", write(tmp_path / "b.jsonl", [{"text": "more"}])])
    assert tuples(two) == [*READ, ("3", "", "more")]


def test_a_changed_file_gives_another_collection_and_index(tmp_path: Path, cache: Path) -> None:
    path = write(tmp_path / "a.jsonl", LINES)
    first = Passages.of(hfcf.load("passages", data_files=path))
    assert Passages.of(hfcf.load("passages", data_files=path)) == first
    assert Retriever(passages=first).run(["dogs"]) == [[]]
    write(path, [*LINES[:1], {"text": "Dogs purr."}])
    second = Passages.of(hfcf.load("passages", data_files=path))
    assert [hit["text"] for hit in Retriever(passages=second).run(["dogs"])[0]] == ["Dogs purr."]
    assert len([*(cache / "indexes").glob("bm25-*/")]) == 2


BAD = {
    '{"text": "a"': "line 2.*not JSON",
    '["a"]': "line 2.*list",
    '{"title": "a"}': "line 2.*text is null",
    '{"text": null}': "line 2.*text is null",
    '{"text": " "}': "line 2.*text is empty",
    '{"text": ["a"]}': "line 2.*text is a list",
    '{"text": "a", "title": 3}': "line 2.*title is a number",
    '{"text": "a\\ud83d"}': "line 2.*surrogate",
}


@pytest.mark.parametrize("line", BAD)
def test_bad_lines_are_named_or_counted(line: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "good", "id": "first"}\n' + line + '\n{"text": "last", "id": "last"}\n', encoding="utf-8")
    with pytest.raises(CorpusError, match=f"a.jsonl, {BAD[line]}.*on_error"):
        hfcf.load("passages", data_files=path)
    for _ in range(2):  # read, and from the cache
        ds = hfcf.load("passages", data_files=path, on_error="reject")
        assert ds["id"][:] == ["first", "last"]
        assert "1 of 3 records left out" in ds.info.description
        assert "1 of 3 records left out" in caplog.text
        assert "line 2" in ds.info.description
        caplog.clear()


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ("id\ttext\ttitle\n1\ta\n2\tb\tB\n", "line 2: .*2 fields and the header 3"),
        ("id\tpassage\n1\ta\n", "line 2: the text is null"),
    ],
)
def test_broken_tables_are_errors(table: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text(table, encoding="utf-8")
    with pytest.raises(CorpusError, match=f"a.tsv, {why}"):
        hfcf.load("passages", data_files=tmp_path / "a.tsv")


def test_an_id_that_occurs_before_is_told(tmp_path: Path) -> None:
    lines = [{"id": "1", "text": "Rome."}, {"text": "Oslo."}, {"text": "Bonn."}, {"id": "1", "text": "Paris."}, {"text": "Lima."}]
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(CorpusError) as error:
        hfcf.load("passages", data_files=str(path))
    assert all(part in str(error.value) for part in ("line 4", "'1'"))
    ds = hfcf.load("passages", data_files=str(path), on_error="reject")
    assert ds["text"][:] == ["Rome.", "Oslo.", "Bonn.", "Lima."]
    assert ds["id"][:] == ["1", "2", "3", "4"], "a number that is an id is no passage's number"
    assert "line 4" in ds.info.description


def test_stray_quotes_swallow_no_passage(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text('id\ttext\ttitle\n1\t"a\tA\n2\tb\tB\n3\tc"\tC\n', encoding="utf-8")
    assert hfcf.load("passages", data_files=tmp_path / "a.tsv")["text"][:] == ['"a', "b", 'c"']


def test_missing_and_unknown_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "empty.jsonl").write_text("")
    for arguments, why in (
        ({}, "data_dir.*data_files"),
        ({"data_files": tmp_path / "b.jsonl"}, "b.jsonl.*no such file"),
        ({"data_files": tmp_path / "a.txt"}, "a.txt.* must end in .jsonl"),
        ({"data_files": {"train": "a.jsonl"}}, "no splits"),
        ({"data_files": []}, "names no file"),
        ({"data_files": tmp_path / "empty.jsonl"}, "no passages"),
        ({"data_dir": tmp_path}, "passages.jsonl.*a.txt"),
        ({"data_dir": tmp_path / "none"}, "no folder"),
    ):
        with pytest.raises(CorpusError, match=why):
            hfcf.load("passages", **arguments)
    with pytest.raises(ValueError, match="splits"):
        hfcf.load("passages", data_files="a.jsonl", split="train")
    assert "passages" not in corpora.names()


QA = [
    {"title": "Ada", "context": "Ada wrote it.", "question": "who?"},
    {"title": "Ada", "context": "Ada wrote it.", "question": "what?"},
    {"title": "", "context": "", "question": "open?"},
    {"title": "Bob", "context": "Ada wrote it.", "question": "who?"},
]


def test_the_passages_of_rows_are_different_and_in_their_order() -> None:
    rejected = Dataset.from_list([{"title": "", "context": "bad", "status": {"accepted": False, "stage": "load", "reason": "r"}}])
    ds = collect_passages(
        Dataset.from_list(QA), Dataset.from_list([*QA[:1], {"title": "", "context": "More.", "question": ""}]), rejected
    )
    assert [row[1:] for row in tuples(ds)] == [("Ada", "Ada wrote it."), ("Bob", "Ada wrote it."), ("", "More.")]
    assert len(set(ds["id"])) == 3
    assert collect_passages(Dataset.from_list(QA[3:]))["id"][0] == ds["id"][1]  # whatever else is collected
    with pytest.raises(ValueError, match=r"'context'.*claim"):
        collect_passages(Dataset.from_list([{"claim": "c"}]))
    with pytest.raises(ValueError, match="no row has a context"):
        collect_passages(Dataset.from_list(QA[2:3]))


def test_a_recipe_names_files_or_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ds = hfcf.load("passages", data_files=write(tmp_path / "a.jsonl", LINES))
    for settings in ("a.jsonl", ["a.jsonl"], {"data_files": "a.jsonl"}):
        assert from_recipe(settings, str(tmp_path)) == Passages.of(ds)
    assert from_recipe(ds) == from_recipe(Passages.of(ds)) == Passages.of(ds)
    asked = []

    def load(name: str, **arguments: object) -> Dataset | DatasetDict:
        asked.append((name, arguments))
        part = Dataset.from_list(QA)
        return (
            part if "split" in arguments else DatasetDict(train=part, test=Dataset.from_list([{"title": "", "context": "More."}]))
        )

    monkeypatch.setattr(corpora, "load", load)
    sources = [{"corpus": "one", "data_dir": "1", "split": "train"}, {"corpus": "two", "data_files": "2.json"}]
    assert len(from_recipe({"from": sources}, "data").open()) == 3
    assert asked == [("one", {"data_dir": "data/1", "split": "train"}), ("two", {"data_files": "data/2.json"})]
    for chosen, titles in (({"take": 2}, ["Ada"]), ({"skip": 2}, ["Bob"]), ({"skip": 1, "take": 1}, ["Ada"])):
        assert from_recipe({"from": [{"corpus": "one", "split": "train", **chosen}]}).open()["title"][:] == titles
    for wrong, why in (
        ({}, "give data_files"),
        ({"from": [{"split": "x"}]}, "'corpus'"),
        ({"from": [{"corpus": "one", "take": 2}]}, "one: take and skip are of one split"),
        ({"form": []}, "did you mean 'from'"),
    ):
        with pytest.raises(RecipeError, match=f"passages: {why}|passages.*{why}"):
            from_recipe(wrong)


def test_distractors_stand_anywhere_and_gold_pieces_keep_their_order() -> None:
    gold = [{"title": "", "text": f"Rome is {word}."} for word in ("old", "big")]
    span = {"piece": 1, "start": 0, "end": 4, "score": 1.0}
    ds = Dataset.from_list([{"id": str(i), "claim": "Rome is", "evidence": gold, "rationales": [span]} for i in range(40)])
    pieces = [{"title": "", "text": f"Rome fell {word}."} for word in ("late", "soon", "twice")]
    filled = distractors.fill_evidence(ds, pieces)
    for row in filled:
        assert [piece for piece, own in zip(row["evidence"], row["gold"], strict=True) if own] == gold
        assert sum(row["gold"]) == 2
        assert row["evidence"][row["rationales"][0]["piece"]] == gold[1]
        assert {piece["text"] for piece in row["evidence"]} == {piece["text"] for piece in (*gold, *pieces)}
    assert len({tuple(gold) for gold in filled["gold"]}) > 5
    some = distractors.fill_evidence(ds.select([7, 3]), pieces)
    assert list(some) == [filled[7], filled[3]]
    assert distractors.fill_evidence(ds, pieces, seed=14)["gold"] != filled["gold"][:]


def test_distractors_read_a_collection(tmp_path: Path) -> None:
    ds = Dataset.from_list([{"claim": "Rome is old", "evidence": [{"title": "", "text": "Rome is very old."}]}])
    pieces = [{"title": "", "text": "Old Rome fell."}, {"title": "", "text": "Cats purr."}]
    path = write(tmp_path / "pieces.jsonl", pieces)
    filled = distractors.from_recipe(ds, {"collection": str(path), "pieces": 2})
    assert filled[0] == distractors.fill_evidence(ds, pieces, pieces=2)[0]
    assert {piece["text"] for piece in filled[0]["evidence"]} == {"Rome is very old.", "Old Rome fell."}
    with pytest.raises(ValueError, match="none"):
        distractors.from_recipe(ds, {"collection": str(tmp_path / "none.jsonl")})
