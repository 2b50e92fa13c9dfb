"""Every layout of every corpus, what goes wrong with files, and the way from release files to `load_dataset`."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import databases
import datasets
import pytest
from datasets import Dataset

import hfcf
from hfcf.core.schema import STATUS
from hfcf.core.task import find_problem, get_task
from hfcf.corpora import builder_class, names
from hfcf.corpora.base import CorpusError
from hfcf.pipeline.build_corpus import build, main
from hfcf.training.data import drop_related

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "corpora"


@pytest.fixture
def hover(tmp_path: Path) -> Path:
    return databases.hover(tmp_path / "hover")


@pytest.fixture
def feverous(tmp_path: Path) -> Path:
    return databases.feverous(tmp_path / "feverous")


def write_lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


ROW = {"id": "1", "claim": "Rome is in Italy.", "evidence": [{"title": "Rome", "text": "Rome is in Italy."}], "label": "SUPPORTS"}


# --- layouts


def test_hover_release_joins_sentences_from_the_database(hover: Path) -> None:
    ds = hfcf.load("hover", data_dir=hover, split="dev")
    assert list(ds.features) == [*get_task("verification").features, "num_hops"]
    assert ds["label"] == ["SUPPORTS", "REFUTES", "SUPPORTS"]
    assert ds["group_id"] == ["q-1", "q-1", "q-2"]
    assert set(ds["split"]) == {"validation"}
    assert ds[0]["evidence"] == [
        {"title": "Øresund Bridge", "text": "The Øresund Bridge links Copenhagen with the Swedish city of Malmö."},
        {"title": "Øresund Bridge", "text": "The bridge was designed by the architect George K. S. Rotne."},
        {"title": "George K. S. Rotne", "text": "George Rotne was a Danish architect who was born in 1935."},
    ]
    assert ds[2]["evidence"][0]["text"] == "Lake Bled lies in the Julian Alps of Slovenia."
    assert list(hfcf.load("hover", data_dir=hover)) == ["validation"]  # The blind test split is left out.


def test_hover_blind_test_and_missing_database_are_named(hover: Path) -> None:
    with pytest.raises(CorpusError, match="blind test split"):
        hfcf.load("hover", data_dir=hover, split="test")
    with pytest.raises(CorpusError, match=r"wiki_wo_links\.db"):
        hfcf.load("hover", data_dir=FIXTURES / "hover", split="validation")


def test_hover_release_never_guesses_a_sentence(hover: Path) -> None:
    path = hover / "hover_dev_release_v1.1.json"
    rows = json.loads(path.read_text())
    rows[2]["supporting_facts"][1][1] = 7
    path.write_text(json.dumps(rows))
    with pytest.raises(CorpusError, match=r"item 3 \(id 'h-3'\).*page 'Lake Bohinj'.*1 sentences.*number 7"):
        hfcf.load("hover", data_dir=hover, split="dev")
    ds = hfcf.load("hover", data_dir=hover, split="dev", on_error="reject")
    assert [row["status"] is None for row in ds] == [True, True, False]


def test_hover_with_text_in_the_release() -> None:
    ds = hfcf.load("hover", data_dir=FIXTURES / "hover_text", split="train")
    assert [len(evidence) for evidence in ds["evidence"]] == [3, 2]
    assert ds[1]["evidence"][1]["title"] == "Lake Bohinj"


def test_hover_factflip_takes_titles_from_a_release(tmp_path: Path) -> None:
    ds = hfcf.load("hover", data_dir=FIXTURES / "hover_factflip")  # ../hover holds the release
    assert {split: len(part) for split, part in ds.items()} == {"train": 1, "validation": 3}
    rows = list(ds["validation"])
    assert [row["label"] for row in rows] == ["SUPPORTS", "REFUTES", "SUPPORTS"]
    assert [row["group_id"] for row in rows] == ["q-1", "q-1", "q-2"]
    assert [piece["title"] for piece in rows[0]["evidence"]] == ["Øresund Bridge", "Øresund Bridge", "George K. S. Rotne"]
    assert [piece["title"] for piece in rows[2]["evidence"]] == [""]  # One sentence in the copy, two in the release.
    assert ds["train"][0]["num_hops"] is None

    shutil.copytree(FIXTURES / "hover_factflip", tmp_path / "alone")
    alone = hfcf.load("hover", data_dir=tmp_path / "alone", split="validation")
    assert alone["group_id"] == ["0", "0", "2"]  # The first two share their evidence.
    assert alone[0]["evidence"][0]["title"] == ""


def test_hover_swapped_integers_are_found() -> None:
    path = FIXTURES / "hover_factflip" / "test.json"
    swapped = [{**row, "label": 1 - row["label"]} for row in json.loads(path.read_text())]
    folder = Path(os.environ["HFCF_CACHE"]).parent / "swapped"
    folder.mkdir()
    (folder / "test.json").write_text(json.dumps(swapped))
    with pytest.raises(CorpusError, match="integers swapped"):
        hfcf.load("hover", data_dir=folder, release_dir=FIXTURES / "hover")


@pytest.mark.parametrize("name", ["hover_factflip/test.json", "hover/hover_dev_release_v1.1.json"])
def test_a_claim_of_hover_that_is_no_text_rejects_no_other_row(tmp_path: Path, name: str) -> None:
    for folder in ("hover_factflip", "hover"):
        shutil.copytree(FIXTURES / folder, tmp_path / folder)
    records = json.loads((tmp_path / name).read_text())
    (tmp_path / name).write_text(json.dumps([{**records[0], "claim": {"text": "a"}}, *records[1:]]))
    ds = hfcf.load("hover", data_dir=tmp_path / "hover_factflip", split="validation", on_error="reject")
    assert [row["status"] is None for row in ds] == [name.startswith("hover/"), True, True]


def test_fever_release() -> None:
    ds = hfcf.load("fever", data_dir=FIXTURES / "fever", split="validation")
    assert ds["id"] == ["1", "2", "4"]
    assert ds[0]["evidence"] == [{"title": "Vidova (film)", "text": "Vidova ( 1961 ) is a film by José Rade ."}]
    assert [piece["title"] for piece in ds[1]["evidence"]] == ["Vidova (film)", "José Rade"]
    assert ds[2]["evidence"] == [{"title": "Ostrava: A History", "text": "`` Ostrava '' is a book ."}]
    assert ds["group_id"] == ["1", "1", "4"]  # The first two share a sentence.
    assert "validation: 1 NOT ENOUGH INFO rows" in ds.info.description
    kept = hfcf.load("fever", data_dir=FIXTURES / "fever", split="validation", nei="keep")
    assert kept[2]["label"] == "NOT ENOUGH INFO"
    assert kept[2]["evidence"] == []


def test_fever_release_needs_its_pages(tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "fever" / "shared_task_dev.jsonl", tmp_path / "paper_dev.jsonl")
    with pytest.raises(CorpusError, match="wiki-pages"):
        hfcf.load("fever", data_dir=tmp_path, split="paper_dev")


def test_fever_rte_form() -> None:
    ds = hfcf.load("fever", data_dir=FIXTURES / "fever_rte", split="dev")
    assert ds["label"] == ["SUPPORTS", "REFUTES", "SUPPORTS"]
    assert ds[2]["evidence"] == [{"title": "", "text": "Bled ( [ blɛt ] ) is a lake ."}]
    assert ds["group_id"] == ["dev-1", "dev-1", "dev-3"]  # The first two share a sentence.


def test_fever_rte_form_has_three_files(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FIXTURES / "fever_rte", tmp_path / "rte"))
    (folder / "RTE-Fever/processed/dev.label").unlink()
    with pytest.raises(CorpusError, match=r"dev\.label"):
        hfcf.load("fever", data_dir=folder)


def test_feverous_copies() -> None:
    ds = hfcf.load("feverous", data_dir=FIXTURES / "feverous_programfc", split="validation")
    assert ds[0]["evidence"][0] == {
        "title": "Lake Bled",
        "text": "Lake Bled (German: Bleder See, [ˈbleːdɐ]) lies in Slovenia.",
    }
    assert ds["group_id"] == ["11", "11", "13"]
    assert ds["challenge"] == ["Other", "Multi-hop Reasoning", "Other"]


def test_feverous_release_with_table_cells(feverous: Path) -> None:
    ds = hfcf.load("feverous", data_dir=feverous, split="dev")
    assert ds[0]["evidence"] == [
        {"title": "Keanu Films", "text": "Year is 1994; Film is Speed."},
        {"title": "Keanu Films", "text": "Films by year"},
    ]
    assert [piece["text"] for piece in ds[1]["evidence"]] == [
        "Renée Grange farms near Lyon.",
        "Born: 4 May 1950.",
        "Her farm",
        "Life",
    ]
    assert ds["label"] == ["SUPPORTS", "NOT ENOUGH INFO"]


@pytest.mark.parametrize("element", [None, 3, {"text": "a"}])
def test_a_piece_of_evidence_without_a_name_rejects_its_row_alone(feverous: Path, element: Any) -> None:
    path = feverous / "feverous_dev_challenges.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    claims = [record for record in records if record.get("claim")]
    claims[0]["evidence"][0]["content"][0] = element
    write_lines(path, *records)
    first, second = hfcf.load("feverous", data_dir=feverous, split="dev", on_error="reject")
    assert "no known form" in first["status"]["reason"]
    assert second["status"] is None


def test_vitaminc() -> None:
    ds = hfcf.load("vitaminc", data_dir=FIXTURES / "vitaminc")
    assert {split: part["group_id"] for split, part in ds.items()} == {"validation": ["a", "a", "b"], "test": ["a", "a"]}
    assert ds["test"][0]["page"] == "Bled (lake)"
    assert ds["test"][0]["evidence"][0]["title"] == ""


def test_ids_that_come_again_may_be_groups(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "mine.jsonl", {**ROW, "id": 7}, {**ROW, "id": 7}, {**ROW, "id": 8, "group_id": "g"})
    with pytest.raises(CorpusError, match="row 2"):
        hfcf.load("jsonl", data_files=path, split="train")
    lines = [
        {("gold_label" if key == "label" else key): value for key, value in json.loads(line).items()}
        for line in path.read_text().splitlines()
    ]
    ds = hfcf.load("jsonl", data_files=write_lines(tmp_path / "gold.jsonl", *lines), split="train", numbered=True)
    assert set(ds["label"]) == {ROW["label"]}
    assert list(zip(ds["id"], ds["group_id"], strict=True)) == [("row-1", "7"), ("row-2", "7"), ("row-3", "g")]


@pytest.mark.parametrize("numbered", [False, True])
def test_rows_without_ids_are_no_group_with_those_of_another_file(tmp_path: Path, numbered: bool) -> None:
    def rows(name: str, numbers: range) -> Dataset:
        made = ({"claim": f"Town {i} is old.", "evidence": f"Town {i} stands.", "label": "SUPPORTS"} for i in numbers)
        return hfcf.load("jsonl", data_files=write_lines(tmp_path / name, *made), split="train", numbered=numbered)

    train, dev = rows("a.jsonl", range(10)), rows("b.jsonl", range(8, 22))
    assert not numbered or dev["id"] == [f"row-{i}" for i in range(1, 15)]
    assert len(set(dev["group_id"])) == 14
    assert dev["group_id"][:2] == train["group_id"][8:], "the same row, wherever it stands"
    assert drop_related(dev, train)["claim"] == dev["claim"][2:]


def test_names_of_numbered_labels_are_given_in_order(tmp_path: Path) -> None:
    rows = [{"claim": "Rome is old.", "evidence": "Rome was founded in 753 BC.", "label": number} for number in (0, 1, 2)]
    path = write_lines(tmp_path / "numbered.jsonl", *rows)
    ds = hfcf.load("jsonl", data_files=path, split="train", labels=["entailment", "neutral", "contradiction"])
    assert ds["label"][:] == ["SUPPORTS", "NOT ENOUGH INFO", "REFUTES"]


def test_a_model_s_labels_are_a_mapping() -> None:
    with pytest.raises(ValueError, match=r"labels must map .*got \['REFUTES', 'SUPPORTS'\]: write \{'LABEL_0'"):
        hfcf.Model("me/nli", labels=["REFUTES", "SUPPORTS"])  # type: ignore[arg-type]


# --- errors


def test_booleans_of_yaml_map_labels(tmp_path: Path) -> None:
    labels = {True: "SUPPORTS", "false": "REFUTES", 2: "NOT ENOUGH INFO"}
    given = ["true", True, "True", False, 2, "2"]
    path = write_lines(tmp_path / "mine.jsonl", *({**ROW, "id": str(i), "label": label} for i, label in enumerate(given)))
    ds = hfcf.load("jsonl", data_files=path, split="train", labels=labels)
    assert ds["label"] == ["SUPPORTS"] * 3 + ["REFUTES"] + ["NOT ENOUGH INFO"] * 2
    with pytest.raises(CorpusError, match="there is no label"):
        hfcf.load("jsonl", data_files=write_lines(tmp_path / "none.jsonl", {**ROW, "label": None}), labels=labels)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{"claim": "C."}\n{"claim": "D."}\n', "JSON lines"),
        (b'"claim"x,evidence\n', "not a CSV header"),
        ("claim,evidence,label\nC.,E.,SUPPORTS\n".encode("utf-16"), r"UTF-16.*CSV UTF-8"),
        (b"PK\x03\x04\x14\x00", r"Excel.*CSV UTF-8"),
    ],
)
def test_files_of_spreadsheets_that_are_no_csv_name_the_cure(content: bytes, told: str, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_bytes(content)
    for on_error in ("raise", "reject"):
        with pytest.raises(CorpusError, match=rf"mine\.csv.*{told}"):
            hfcf.load("csv", data_files=tmp_path / "mine.csv", split="train", on_error=on_error)


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_headers_with_capitals_and_blanks_are_meant(mark: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("PK,ID, Claim,Evidence ,TITLE,Label\n0,a,C.,E.,T.,SUPPORTS\n".replace(",", mark))
    ds = hfcf.load("csv", data_files=path, split="train")
    assert (ds[0]["id"], ds[0]["claim"], ds[0]["label"]) == ("a", "C.", "SUPPORTS")
    assert ds[0]["evidence"] == [{"title": "T.", "text": "E."}]


def test_absent_split_names_what_is_there() -> None:
    with pytest.raises(CorpusError, match=r"'train'.*train\.jsonl.*validation \(dev\.jsonl\).*role='train'"):
        hfcf.load("vitaminc", data_dir=FIXTURES / "vitaminc", split="train")
    with pytest.raises(CorpusError, match=r"paper_dev\.jsonl.*dev\.jsonl, vitaminc_real"):
        hfcf.load("fever", data_dir=FIXTURES / "vitaminc")


def test_unknown_names_and_options() -> None:
    with pytest.raises(ValueError, match=r"'hovr'.*hover"):
        hfcf.load("hovr", data_dir=FIXTURES)
    with pytest.raises(TypeError, match=r"fever.*'nie'.*: nei"):
        hfcf.load("fever", data_dir=FIXTURES / "fever", nie="keep")
    with pytest.raises(ValueError, match="got 'test'"):
        hfcf.load("fever", data_dir=FIXTURES / "fever", role="test")
    with pytest.raises(CorpusError, match="files"):
        hfcf.load("fever")


# --- rejecting


NASTY: list[tuple[bytes, str]] = [
    (b'{"id": "null", "claim": null, "evidence": ["E."], "label": "SUPPORTS"}', "the claim is null"),
    (b'{"id": "number", "claim": 5, "evidence": ["E."], "label": "SUPPORTS"}', "the claim has no letters"),
    (b'{"id": "list", "claim": ["c"], "evidence": ["E."], "label": "SUPPORTS"}', "the claim is a list, not text"),
    (b'{"id": "label", "claim": "C.", "evidence": ["E."], "label": "MAYBE"}', "the label 'MAYBE' is unknown"),
    (b'{"id": "label2", "claim": "C.", "evidence": ["E."], "label": 1}', "the label '1' is unknown"),
    (b'{"id": "nolabel", "claim": "C.", "evidence": ["E."]}', "there is no label"),
    (b'{"id": "empty", "claim": "C.", "evidence": [], "label": "SUPPORTS"}', "there is no evidence"),
    (b'{"id": "noevidence", "claim": "C.", "evidence": null, "label": "SUPPORTS"}', "there is no evidence"),
    (b'{"id": "blank", "claim": " ", "evidence": ["E."], "label": "SUPPORTS"}', "the claim is empty"),
    (b'{"id": "half", "claim": "a \\ud800 b", "evidence": ["E."], "label": "SUPPORTS"}', "half of a surrogate pair"),
    (b'{"id": "half2", "claim": "C.", "evidence": ["\\udc00."], "label": "SUPPORTS"}', "half of a surrogate pair"),
    (b'{"id": "control", "claim": "a\\u0007b", "evidence": ["E."], "label": "SUPPORTS"}', "control character U+0007"),
    (b'{"id": "dict", "claim": "C.", "evidence": {"a": 1}, "label": "SUPPORTS"}', "the evidence is an object"),
    (b'{"id": "piece", "claim": "C.", "evidence": ["E.", 7], "label": "SUPPORTS"}', "evidence piece 1 is a number (7)"),
    (b'{"id": "title", "claim": "C.", "evidence": [[3, "E."]], "label": "SUPPORTS"}', "title of evidence piece 0 is a number"),
    (b'{"id": "nulltext", "claim": "C.", "evidence": [["T", null]], "label": "SUPPORTS"}', "evidence piece 0 is null"),
    (b'{"id": "long", "claim": "C.", "evidence": ["' + b"long " * 40_000 + b'"], "label": "SUPPORTS"}', "200,000 characters"),
    (b'{"id": "good-1", "claim": "C.", "evidence": ["E."], "label": "SUPPORTS"}', "was used before, at row 1"),
    (b'{"id": "good-1", "claim": "C.", "evidence": ["E."], "label": "SUPPORTS"}', "was used before, at row 1"),
    (b'{"id": "cut", "claim": "C.", "evid', "is not JSON"),
    (b'["a", "list"]', "is a list, not an object"),
    (b'{"id": "latin", "claim": "Jos\xe9."}', "is not UTF-8: byte 0xe9"),
    (b"[" * 100_000, "is not JSON"),
]


def good(n: int) -> bytes:
    row = {"id": f"good-{n}", "claim": f"Town {n} 🏰 — מגדל.", "evidence": [f"Town\u2028{n}."], "label": "REFUTES"}
    return json.dumps(row, ensure_ascii=False).encode()


def test_reject_loses_and_shifts_nothing(tmp_path: Path) -> None:
    path, alone = tmp_path / "nasty.jsonl", tmp_path / "alone.jsonl"
    lines = [good(1)]
    for n, (line, _) in enumerate(NASTY, 2):
        lines += [line, good(n)]
    path.write_bytes(b"\xef\xbb\xbf" + b"\n".join(lines) + b"\n\n")
    alone.write_bytes(b"\n".join(good(n) for n in range(1, len(NASTY) + 2)))
    ds = hfcf.load("jsonl", data_files=path, split="train", on_error="reject")
    assert len(ds) == 2 * len(NASTY) + 1
    assert len(set(ds["id"])) == len(ds)
    assert datasets.Features({"status": ds.features["status"]}) == datasets.Features({"status": STATUS})
    for row, (_, reason) in zip(ds.select(range(1, len(ds), 2)), NASTY, strict=True):
        assert row["status"]["accepted"] is False
        assert row["status"]["stage"] == "load"
        assert reason in row["status"]["reason"]
    by_id = {row["id"]: row for row in ds}
    assert by_id["half"]["claim"] == r"a \ud800 b"
    assert by_id["control"]["claim"] == "a\u0007b"
    assert by_id["dict"]["evidence"] == [{"title": "", "text": '{"a": 1}'}]
    assert {"good-1#2", "good-1#3"} <= by_id.keys()
    undecided = ds.filter(lambda row: row["status"] is None).remove_columns("status")
    assert undecided.to_list() == hfcf.load("jsonl", data_files=alone, split="train").to_list()
    assert all(find_problem(row) is None for row in undecided)


def test_release_in_reject_mode_ties_no_good_rows_through_a_bad_one(tmp_path: Path) -> None:
    folder = tmp_path / "claims"
    folder.mkdir()
    row = {"id": 1, "claim": "C one.", "label": "supports", "challenge": "Other", "evidence": "A\tOne."}
    other = {**row, "id": 2, "claim": "C two.", "evidence": "B\tTwo."}
    bridge = {**row, "id": 3, "claim": "C one.", "evidence": "B\tTwo.", "label": "perhaps"}
    (folder / "dev.json").write_text(json.dumps([row, other, bridge]))
    ds = hfcf.load("feverous", data_dir=tmp_path, split="dev", on_error="reject")
    assert ds["group_id"] == ["1", "2", "3"]


# --- splits, roles, freshness


def test_slices_and_role() -> None:
    ds = hfcf.load("vitaminc", data_dir=FIXTURES / "vitaminc", split="dev[:2]", role="train")
    assert len(ds) == 2
    assert "role: train (rows of the official split 'validation[:2]')" in ds.info.description
    assert set(ds["split"]) == {"validation"}
    both = hfcf.load("vitaminc", data_dir=FIXTURES / "vitaminc", split="validation+test")
    assert both["split"] == ["validation"] * 3 + ["test"] * 2


def test_changed_file_gives_fresh_rows(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "mine.jsonl", ROW)
    times = (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    assert len(hfcf.load("jsonl", data_files=path, split="train")) == 1
    write_lines(path, {**ROW, "claim": "Rome is in Egypt."})
    os.utime(path, ns=times)  # The same size, and the same time: only the contents tell.
    assert hfcf.load("jsonl", data_files=path, split="train")["claim"] == ["Rome is in Egypt."]


def test_changed_database_gives_fresh_rows(hover: Path) -> None:
    hfcf.load("hover", data_dir=hover, split="dev")
    connection = sqlite3.connect(hover / "wiki_wo_links.db")
    connection.execute("UPDATE documents SET text = 'Bohinj is cold.' WHERE id = 'Lake Bohinj'")
    connection.commit()
    connection.close()
    os.utime(hover / "wiki_wo_links.db")
    assert hfcf.load("hover", data_dir=hover, split="dev")[2]["evidence"][1]["text"] == "Bohinj is cold."


# --- publishing


def test_a_corpus_is_built_again(tmp_path: Path) -> None:
    source, out = tmp_path / "source", tmp_path / "out"
    shutil.copytree(FIXTURES / "vitaminc", source)
    main("vitaminc", ["--data-dir", str(source), "--out", str(out)])
    rows = [json.loads(line) for line in (source / "dev.jsonl").read_text().splitlines()]
    write_lines(source / "dev.jsonl", *rows, {**rows[0], "unique_id": "a_9", "claim": "A new claim ."})
    build("vitaminc", data_dir=source, out=out)
    again = datasets.load_dataset(str(out), cache_dir=str(tmp_path / "hub"))
    assert again["validation"]["claim"][-1] == "A new claim ."
    assert len(list((out / "data").iterdir())) == 2
    card = (out / "README.md").read_text()
    assert "license: cc-by-sa-3.0" in card
    assert "| validation | 4 | 2 | 2 | 1 | 1 |" in card


def test_build_records_role_and_what_was_left_out(tmp_path: Path) -> None:
    build("fever", data_dir=FIXTURES / "fever", out=tmp_path, split="dev", role="train", on_error="reject")
    card = (tmp_path / "README.md").read_text()
    assert "role: train" in card
    assert "1 NOT ENOUGH INFO rows" in card
    loaded = datasets.load_dataset(str(tmp_path), cache_dir=str(tmp_path / "hub"))
    assert loaded["validation"]["status"] == [None, None, None]


def test_the_docs_have_the_current_tables() -> None:
    page = (ROOT / "docs" / "reference" / "corpora.md").read_text(encoding="utf-8")
    sections = re.findall(r"<!-- generated: corpora_(\w+) -->", page)
    assert set(sections) == {builder_class(name).INFO.task for name in names()}
