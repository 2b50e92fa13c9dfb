"""Every reader of rows on nasty files and rows: none is lost or shifted, each that can't be read says why."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import nasty
import pytest
from datasets import Dataset, Features, List, Value
from hypothesis import given
from hypothesis import strategies as st
from offline_models import installed

import hfcf
from hfcf.core.task import get_task
from hfcf.studies.human.export import export
from hfcf.studies.human.ratings import _read_lines, read_ratings
from hfcf.tasks.verification import LABELS

slow = pytest.mark.slow
ROWS = 40
"""Records of a file."""
values = nasty.mostly(
    20, nasty.texts, st.none(), st.integers(), st.floats(), st.booleans(), st.lists(nasty.texts, max_size=2), st.just({"text": "a"})
)
evidence = nasty.mostly(
    4, nasty.texts, nasty.evidence, nasty.evidence, st.lists(st.lists(nasty.texts, max_size=3), max_size=2), values
)
labels = nasty.mostly(9, st.sampled_from(["SUPPORTS", "refuted", "entailment", "NOT ENOUGH INFO"]), values)
whole = st.fixed_dictionaries(
    {"claim": values, "evidence": evidence, "label": labels},
    optional={"id": st.one_of(values, st.sampled_from(["1", "2"])), "title": values},
)


def partly(*fields: str) -> Any:
    """Records of some of the fields, with any values."""
    return st.fixed_dictionaries({}, optional=dict.fromkeys(fields, values))


claims = nasty.mostly(9, whole, st.fixed_dictionaries({}, optional={"claim": values, "evidence": evidence, "label": labels}))
tagged = st.lists(nasty.mostly(6, nasty.words, *map(st.just, ("<e1>", "</e1>", "<e2>", "</e2>")))).map(" ".join)
signs = st.sampled_from(["(", ")", "a", "b", ",", "→", "->", "&", "Claim", "hypothesis", "FACT(", "int1:", "\n"])
arguments = st.lists(signs).map(" ".join)
structures = st.fixed_dictionaries(
    {
        "claim": nasty.texts, "label": labels, "evidence": st.dictionaries(st.sampled_from(["a", "b", "c"]), nasty.texts),
        "structure": nasty.mostly(4, st.sampled_from(["a → Claim", "(a, b) → Claim", "a → b → Claim"]), arguments, values),
    }
)  # fmt: skip
# What the records of each form of a user's own files may be.
OWN = {
    "jsonl": ("verification", claims),
    "relations": (
        "relation",
        nasty.mostly(
            4, nasty.relations, st.fixed_dictionaries({"text": tagged, "label": nasty.texts}),
            partly("id", "tokens", "text", "head", "tail", "label"),
        ),
    ),
    "questions": (
        "qa", nasty.mostly(4, nasty.questions, partly("id", "question", "context", "answers", "answer", "answer_start", "aliases"))
    ),
    "structures": (
        "structures", nasty.mostly(4, structures, partly("id", "claim", "evidence", "evidence_info", "structure", "label"))
    ),
    "passages": ("", nasty.mostly(4, nasty.pieces, partly("id", "title", "text"))),
}  # fmt: skip


def lines_of(records: Any) -> Any:
    """Lines of records, and some of no record."""
    return nasty.mostly(
        20,
        records.map(lambda record: json.dumps(record).encode()),
        records.map(lambda record: json.dumps(record, ensure_ascii=False).encode("utf-8", "replace")),
        nasty.texts.map(lambda text: text.encode("utf-8", "surrogatepass").replace(b"\n", b" ")),
        st.binary(max_size=20).map(lambda some: some.replace(b"\n", b"")),
        st.just(b"[" * 20_000),
    )


lines = lines_of(claims)
cells = st.one_of(nasty.texts, st.just(""))
table = st.tuples(cells, nasty.texts, cells, labels.map(str))
typed = st.fixed_dictionaries(
    {"id": st.one_of(nasty.names, st.none()), "claim": nasty.texts, "evidence": nasty.evidence, "label": nasty.LABEL}
)


def rounds(normal: int, many: int) -> Any:
    """Run a test with few examples, and as a slow test with many."""
    return pytest.mark.parametrize("examples", [normal, pytest.param(many, marks=[slow, pytest.mark.timeout(3600)])])


def check_read(ds: Any, number: int, counted: Counter[str], task_name: str = "verification") -> None:
    assert len(ds) == number
    assert len(set(ds["id"])) == number
    task = get_task(task_name)
    for row in ds:
        if row["status"] is None:
            assert task.validate(row) is None
            counted["accepted"] += 1
        else:
            assert (row["status"]["accepted"], row["status"]["stage"]) == (False, "load")
            assert len(row["status"]["reason"]) > 3
    counted["rows"] += number


def load(form: str, path: Path) -> Any:
    return hfcf.load(form, data_files={"train": str(path)}, split="train", on_error="reject")


@rounds(2, 40)
@pytest.mark.parametrize("form", ["jsonl", "relations", "questions", "structures"])
def test_json_lines(form: str, examples: int, tmp_path: Path, counted: Counter[str]) -> None:
    path = tmp_path / "train.jsonl"
    task, records = OWN[form]

    @nasty.run_examples(examples)
    @given(st.lists(lines_of(records), min_size=ROWS, max_size=ROWS))
    def run(content: list[bytes]) -> None:
        # The first line is readable: a file whose first bytes are those of another form is refused as a whole.
        content = [b"{}", *content]
        path.write_bytes(b"\n".join(content))
        check_read(load(form, path), sum(bool(line.strip()) for line in content), counted, task)

    run()


@rounds(2, 40)
def test_passages(examples: int, tmp_path: Path, counted: Counter[str]) -> None:
    path = tmp_path / "train.jsonl"

    @nasty.run_examples(examples)
    @given(st.lists(lines_of(OWN["passages"][1]), min_size=ROWS, max_size=ROWS))
    def run(content: list[bytes]) -> None:
        content = [b'{"text": "Rome is old.", "id": "first"}', *content]
        path.write_bytes(b"\n".join(content))
        number = sum(bool(line.strip()) for line in content)
        ds = hfcf.load("passages", data_files=str(path), on_error="reject")
        assert len(set(ds["id"])) == len(ds)
        assert all(text.strip() for text in ds["text"])
        head, *reasons = ds.info.description.splitlines() or ["0 "]
        assert int(head.split()[0].replace(",", "")) + len(ds) == number, head
        assert all(len(reason.partition(f"{path}, ")[2]) > 10 for reason in reasons if reason != "…")
        counted["rows"] += number
        counted["accepted"] += len(ds)

    run()


@rounds(2, 40)
def test_csv(examples: int, tmp_path: Path, counted: Counter[str]) -> None:
    path = tmp_path / "train.csv"

    @nasty.run_examples(examples)
    @given(st.lists(table, min_size=ROWS, max_size=ROWS))
    def run(content: list[tuple[str, ...]]) -> None:
        with path.open("w", encoding="utf-8", errors="surrogatepass", newline="") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_ALL)
            writer.writerow(["id", "claim", "evidence", "label"])
            writer.writerows(content)
        check_read(load("csv", path), len(content), counted)

    run()


@rounds(2, 40)
def test_parquet(examples: int, tmp_path: Path, counted: Counter[str]) -> None:
    path = tmp_path / "train.parquet"
    columns = Features(
        {
            "id": Value("string"),
            "claim": Value("string"),
            "evidence": List({"title": Value("string"), "text": Value("string")}),
            "label": Value("string"),
        }
    )

    @nasty.run_examples(examples)
    @given(st.lists(typed, min_size=ROWS, max_size=ROWS))
    def run(content: list[dict[str, Any]]) -> None:
        Dataset.from_list(nasty.storable(content), features=columns).to_parquet(path)
        check_read(load("parquet", path), len(content), counted)

    run()


def stored(value: Any) -> Any:
    """A column's value as Arrow holds it."""
    if isinstance(value, list):
        return [stored(one) for one in value]
    return value and value.encode("utf-8", "backslashreplace").decode()


@rounds(2, 60)
@pytest.mark.parametrize(
    ("task", "column"), [("verification", "claim"), ("relation", "tokens"), ("qa", "question"), ("classification", "text")]
)
def test_rows_of_ones_own(task: str, column: str, examples: int, counted: Counter[str]) -> None:
    @nasty.run_examples(examples)
    @given(st.lists(nasty.OF_TASK[task], min_size=ROWS, max_size=ROWS))
    def run(content: list[dict[str, Any]]) -> None:
        if task == "verification":  # it refuses labels that it does not know as a whole
            content = [{**row, "label": row["label"] if row["label"] in LABELS else None} for row in content]
        content[0] |= nasty.GOOD_ROWS[task]
        ds = hfcf.from_dataset(content, task=task)
        check_read(ds, len(content), counted, task)
        for row, own in zip(ds, content, strict=True):
            assert row["status"] or row[column] == stored(own[column])

    run()


@rounds(1, 40)
@pytest.mark.parametrize("form", ["jsonl", "relations", "questions"])
def test_rows_of_mixed_types_are_read_or_refused_with_a_reason(form: str, examples: int, counted: Counter[str]) -> None:
    task, records = OWN[form]

    @nasty.run_examples(examples)
    @given(st.lists(records, min_size=ROWS, max_size=ROWS))
    def run(content: list[dict[str, Any]]) -> None:
        counted["rows"] += len(content)
        try:
            ds, why = hfcf.from_dataset(content, task=task), ""
        except (ValueError, TypeError) as error:
            ds, why = None, str(error)
        if ds is None:
            assert 10 < len(why) < 20_000
        else:
            counted["rows"] -= len(content)
            check_read(ds, len(content), counted, task)

    run()


@pytest.mark.skipif(not installed("wordnet"), reason="the offline WordNet is not installed")
@rounds(1, 15)
def test_a_published_run(examples: int, tmp_path: Path, counted: Counter[str]) -> None:
    path = tmp_path / "train.jsonl"
    number = iter(range(1000))

    @nasty.run_examples(examples)
    @given(st.lists(lines, min_size=2 * ROWS, max_size=2 * ROWS))
    def run(content: list[bytes]) -> None:
        good = {"claim": nasty.GOOD[0], "evidence": nasty.GOOD[0], "label": "SUPPORTS"}
        content = [json.dumps(good).encode(), *content]
        path.write_bytes(b"\n".join(content))
        out = tmp_path / f"out{next(number)}"
        report = hfcf.run({"corpus": "jsonl", "data_files": str(path), "on_error": "reject", "system": "eda"}, out)
        result = hfcf.load_result(out)
        rows = sum(bool(line.strip()) for line in content)
        rejected = [row for row in result.rejected["train"] if row["level"] == "row"]
        lost = [row["source_id"] for row in rejected]
        kept = set(result.dataset["train"]["source_id"])
        assert report["rows_in"] == rows == len(lost) + len(kept)
        assert not set(lost) & kept
        assert all(result.rejected["train"]["reason"])
        again = hfcf.from_dataset(result.dataset)["train"]
        assert list(again["claim"]) == list(result.dataset["train"]["claim"])
        assert not any(again["status"])
        ids = [name for part in result.augmented.values() for name in part["id"]]
        # A sound row of which nothing could be made stays among the rows to train on.
        assert len(ids) == len(set(ids)) == rows - sum(row["stage"] == "load" for row in rejected) + len(kept)
        counted["rows"] += rows
        counted["accepted"] += len(kept)

    run()


@rounds(2, 30)
def test_rating_sheets(examples: int, tmp_path: Path, counted: Counter[str]) -> None:
    number = iter(range(1000))
    answers = st.one_of(*[st.sampled_from(["0", "1", "1.0", ""])] * 5, nasty.texts)

    @nasty.run_examples(examples)
    @given(nasty.rows(nasty.questions, ROWS), st.lists(answers, min_size=2 * ROWS, max_size=2 * ROWS), st.booleans())
    def run(rows: list[dict[str, Any]], given_answers: list[str], sound: bool) -> None:
        rows[0] |= {"question": "who?", "context": "Ada.", "answers": {"text": ["Ada"], "answer_start": [0]}}
        out = tmp_path / f"out{next(number)}"
        report = export({"mine": rows}, "rgf", out, raters=1)["methods"]["mine"]
        shown = report["rows"]["all"]
        assert shown + sum(report["left_out"].values()) == len(rows)
        sheet = out / "raters" / "rater-1.csv"
        cells = _read_lines(sheet)
        assert len(cells) == shown
        for i, line in enumerate(cells):
            one, other = (answer.replace("\ud800", "?") for answer in given_answers[2 * i : 2 * i + 2])
            line |= {"fluency": "1", "correctness": "0"} if sound else {"fluency": one, "correctness": other}
        with sheet.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(cells[0]), quoting=csv.QUOTE_ALL)
            writer.writeheader()
            writer.writerows(cells)
        try:
            ratings, why = read_ratings(out, partial=not sound), ""
        except ValueError as error:
            ratings, why = {}, str(error)
        if ratings:
            assert ratings["methods"]["mine"]["fluency"]["all"]["rows"] == shown or not sound
            assert not (sound and ratings["missing"])
        else:
            assert not sound, why
            assert "rater-1.csv, line " in why or "no sheet has an answer" in why
        counted["rows"] += len(rows)
        counted["accepted"] += shown

    run()
