"""What every corpus does: sound rows that can be published, and an error or a rejected row for damaged files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import datasets
import pytest
from datasets import Dataset

import hfcf
from hfcf.core.task import find_problem, get_task, tasks
from hfcf.corpora import builder_class, names
from hfcf.corpora.base import CorpusError
from hfcf.corpora.custom.source import NAMED
from hfcf.pipeline.build_corpus import build
from hfcf.tasks.qa import why_misplaced

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "corpora"
ANSWER, PLACE = '"answer_start": ', "at character 99"


class Case(NamedTuple):
    """A corpus, and how to damage a file of its fixture."""

    name: str
    file: str
    field: str
    """A field that rows need, as it stands in the file; "" in a file without names of fields."""
    value: str
    """A value as it stands in the file."""
    damaged: str = "perhaps"
    """What makes the value's row unreadable in its place; the error names it."""
    folder: str = ""
    named: str = ""
    """What the error names, if it is not the damaged value."""


CASES = [
    Case("ace2005", "data/English/nw/adj/MADE_NW_1.apf.xml", "", "PHYS"),
    Case("adversarial_qa", "combined/train.json", "answers", ANSWER, f"{ANSWER}99", named=PLACE),
    Case("ambigqa", "train_light.json", "question", "singleAnswer"),
    Case("boolq_contrast", "BoolQ/boolq_perturbed.json", "paragraph", "FALSE"),
    Case("cad_imdb", "sentiment/combined/paired/train_paired.tsv", "Text", "Positive"),
    Case("cad_nli", "NLI/original/train.tsv", "sentence1", "entailment"),
    Case("ccg_semeval", "original/train.tsv", "", "Other"),
    Case("checkwhy", "train.json", "label", "SUPPORTS"),
    Case("covidfact", "COVIDFACT_dataset.jsonl", "gold_source", "SUPPORTED"),
    Case("curated_trec", "CuratedTrec-train.txt", "question", "19(63|64)", "19(perhaps"),
    Case("entailment_bank", "dataset/task_1/dev.jsonl", "hypothesis", "sent1 &", "sent9 &", named="sent9"),
    Case("eraser_fever", "val.jsonl", "query", '"SUPPORTS"', '"perhaps"'),
    Case("eraser_multirc", "val.jsonl", "query", "True"),
    Case("ex_fever", "data/test.csv", "explanation", "REFUTE"),
    Case("fever", "shared_task_dev.jsonl", "claim", '"SUPPORTS"', '"perhaps"'),
    Case("fever_adversarial", "fever_adversarial/test.jsonl", "page", '"REFUTES"', '"perhaps"'),
    Case("fever_symmetric", "symmetric_v0.2/fever_symmetric_dev.jsonl", "evidence", '"REFUTES", "evid"', '"perhaps", "evid"'),
    Case("feverous", "claims/dev.json", "challenge", '"refutes"', '"perhaps"', "feverous_programfc"),
    Case("fm2", "dataset/dev.jsonl", "wikipedia_page", "REFUTES"),
    Case("healthver", "data/healthver_dev.csv", "topic_ip", "Refutes"),
    Case("hover", "hover_train_release_v1.1.json", "claim", '"SUPPORTED"', '"perhaps"', "hover_text"),
    Case("mrqa", "dev/BioASQ.jsonl", "detected_answers", "[[42, 49]", "[[42, 50]", named="42–50"),
    Case("natural_questions", "v1.0-simplified_simplified-nq-train.jsonl", "question_text", '"YES"', '"perhaps"'),
    Case("nq_open", "nq_open/NQ-open.dev.jsonl", "answer", '["1960"]', '"1960"', named="'answer'"),
    Case("politihop", "data/politihop_valid.tsv", "ruling", "\tfalse\t", "\tperhaps\t"),
    Case("pubhealth", "train.tsv", "explanation", "\ttrue\t", "\tperhaps\t"),
    Case("qed", "qed-train.jsonlines", "original_nq_answers", "single_sentence"),
    Case(
        "quoref_contrast",
        "quoref/quoref_original_subset_20191206_merged.json",
        "answers",
        ANSWER,
        f"{ANSWER}99",
        named="at character 99",
    ),
    Case("re_attack", "re-attack/re-attack.tsv", "", "Cause-Effect(e1,e2)"),
    Case("scierc", "train.json", "relations", "USED-FOR"),
    Case("scifact", "claims_train.jsonl", "cited_doc_ids", "SUPPORT"),
    Case("semeval", "TRAIN_FILE.TXT", "", "Other"),
    Case("squad", "train-v1.1.json", "answers", ANSWER, f"{ANSWER}99", named=PLACE),
    Case("triviaqa", "unfiltered-web-train.json", "Question", '"Aliases": [', '"Aliases": [7, '),
    Case("vitaminc", "dev.jsonl", "evidence", '"REFUTES"', '"perhaps"'),
    Case("wikifactcheck", "wfc_dev.tsv", "context", "José", "Jos\udce9", named="encoding"),
    Case("wikiwhy", "effect.json", "effect", '"People crossed Lake Bled on foot in 1929."', "7", "wikiwhy_context", "'3'"),
    Case("xquad", "xquad.en.json", "answers", ANSWER, f"{ANSWER}99", named=PLACE),
]
cases = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "datasets"))


def load(case: Case, folder: Path | None = None, **options: Any) -> dict[str, Dataset]:
    return dict(hfcf.load(case.name, data_dir=folder or FIXTURES / (case.folder or case.name), **options))


def damaged(case: Case, folder: Path, old: str, new: str, times: int = 1) -> Path:
    """Copy a fixture with a text of its file replaced."""
    copy = Path(shutil.copytree(FIXTURES / (case.folder or case.name), folder / case.name))
    text = (copy / case.file).read_bytes().decode()
    assert old in text
    (copy / case.file).write_bytes(text.replace(old, new, times).encode(errors="surrogateescape"))
    return copy


def read_error(case: Case, folder: Path) -> str:
    with pytest.raises(CorpusError) as error:
        load(case, folder)
    return str(error.value)


def test_every_corpus_has_a_case_and_a_script() -> None:
    own = {name for name in names() if builder_class(name).__module__.startswith("hfcf.corpora.")} - set(NAMED)
    assert {case.name for case in CASES} == own
    scripts = {path.stem.removeprefix("build_"): path.read_text() for path in (ROOT / "dataset_scripts").glob("build_*.py")}
    assert set(scripts) == own
    assert [name for name, text in scripts.items() if f'main("{name}")' not in text] == []


@pytest.mark.parametrize("name", names())
def test_front_matter(name: str) -> None:
    info = builder_class(name).INFO
    assert info.task in tasks()
    assert set(info.labels.values()) <= set(get_task(info.task).labels or info.labels.values())
    assert name in NAMED or (info.name == name and info.paper and info.citation and info.licence)


@cases
def test_rows_are_sound_and_can_be_published(case: Case, tmp_path: Path) -> None:
    info = builder_class(case.name).INFO
    task = get_task(info.task)
    splits = load(case)
    for split, part in splits.items():
        rows = part.to_list()
        assert list(part.features)[: len(task.features)] == list(task.features)
        assert "status" not in part.features
        assert len({row["id"] for row in rows}) == len(rows) > 0
        assert {(row["corpus"], row["split"]) for row in rows} == {(case.name, split)}
        assert all(row["group_id"] for row in rows)
        assert not info.labels or {row.get("label") for row in rows} <= {*info.labels.values(), *(task.labels or ()), None}
        for row in rows:
            assert row.get("claim") == "" or find_problem(row) is None, row["id"]  # WikiWhy has no claims yet
            for span in row.get("rationales") or ():
                assert row["evidence"][span["piece"]]["text"][span["start"] : span["end"]]
            if "tokens" in row:
                assert [row["text"][place["start"] : place["end"]] for place in row["offsets"]] == row["tokens"]
            if "answers" in row:
                assert why_misplaced(row["context"], row["answers"]) is None
    out = build(case.name, data_dir=FIXTURES / (case.folder or case.name), out=tmp_path / "out")
    published = datasets.load_dataset(str(out), cache_dir=str(tmp_path / "hub"))
    assert {split: part.to_list() for split, part in published.items()} == {split: part.to_list() for split, part in splits.items()}
    card = (out / "README.md").read_text()
    assert {"must not be republished" in card, "\nrepublish: false\n" in card} == {not info.republish}


@cases
def test_a_damaged_value_is_named_and_rejects_its_row_alone(case: Case, tmp_path: Path) -> None:
    folder = damaged(case, tmp_path, case.value, case.damaged)
    error = read_error(case, folder)
    assert Path(case.file).name.partition(".")[0] in error
    assert (case.named or case.damaged.strip('\t"').split('"')[0]) in error
    sound, splits = load(case), load(case, folder, on_error="reject")
    assert {split: len(part) for split, part in splits.items()} == {split: len(part) for split, part in sound.items()}
    rejected = {(row["split"], row["id"]): row["status"] for part in splits.values() for row in part if row["status"]}
    assert rejected
    assert {(status["accepted"], status["stage"], bool(status["reason"])) for status in rejected.values()} == {
        (False, "load", True)
    }
    whole = {(row["split"], row["id"]): row | {"group_id": ""} for part in sound.values() for row in part}
    rows = {(row["split"], row["id"]): row | {"group_id": ""} for part in splits.values() for row in part.remove_columns("status")}
    assert set(rows) - set(rejected) < set(whole)
    assert [key for key in set(rows) - set(rejected) if rows[key] != whole[key]] == []


@cases
def test_a_missing_field_is_named_with_its_file(case: Case, tmp_path: Path) -> None:
    if not case.field:
        pytest.skip("its records have no names of fields")
    quote, times = ("", 1) if Path(case.file).suffix in (".csv", ".tsv") else ('"', -1)
    error = read_error(case, damaged(case, tmp_path, f"{quote}{case.field}{quote}", f"{quote}something{quote}", times))
    assert Path(case.file).name in error
    assert case.field in error
    assert "something" in error


@cases
@pytest.mark.parametrize("how", ["cut", "encoding"])
def test_a_damaged_file_is_named(case: Case, how: str, tmp_path: Path) -> None:
    folder = damaged(case, tmp_path, case.value, f"{case.value[0]}\udcff{case.value[1:]}" if how == "encoding" else case.value)
    if how == "cut":
        whole = (folder / case.file).read_bytes().rstrip()
        (folder / case.file).write_bytes(whole[:-30])
    assert Path(case.file).name in read_error(case, folder)


def records_of(path: Path) -> tuple[list[Any], str] | None:
    """The records of a file of JSON lines or of one JSON list, and what separates them."""
    text = path.read_text()
    if text.startswith("["):
        return json.loads(text), ","
    if path.suffix in (".csv", ".tsv", ".xml", ".TXT") or text.startswith("{\n"):
        return None
    return [json.loads(line) for line in text.splitlines()], "\n"


def spoilt(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    return ({**record, name: value} for name in record for value in (5, None, ["\ud800"], {"a": []}))


@cases
def test_values_of_other_types_reject_no_other_row(case: Case, tmp_path: Path) -> None:
    folder = damaged(case, tmp_path, case.value, case.value)
    if (found := records_of(folder / case.file)) is None:
        pytest.skip("its records are no JSON objects")
    records, separator = found
    text = separator.join(map(json.dumps, [*records, *spoilt(records[-1])]))
    (folder / case.file).write_text(f"[{text}]" if separator == "," else text)
    sound, splits = load(case), load(case, folder, on_error="reject")
    whole = {(row["split"], row["id"]) for part in sound.values() for row in part}
    rows = {(row["split"], row["id"]): row for part in splits.values() for row in part}
    good = {key for key, row in rows.items() if key in whole and row["status"] is None}
    assert good == whole
    assert any(row["status"] for row in rows.values())
