"""What every corpus does: sound rows that can be published, and an error or a rejected row for damaged files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import datasets
import pytest
import sound_rows
from datasets import Dataset

import hfcf
from hfcf.core.task import get_task, tasks
from hfcf.corpora import builder_class, names
from hfcf.corpora.base import CorpusError
from hfcf.corpora.custom import OWN
from hfcf.pipeline.build_corpus import build

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


def bad(name: str, file: str, *changes: tuple[str, str, str], folder: str = "") -> list[Case]:
    """Cases of a file: a text of it, what stands in its place, and what the error names."""
    return [Case(name, file, "", old, new, folder, named) for old, new, named in changes]


START, SPAN = '"answer_start": 91', '"start_sentence": 1, "end_sentence": 3'
BAD = [
    *bad(
        "squad", "train-v1.1.json",
        (START, '"answer_start": 90', "character 90"), (START, '"answer_start": 92', "UTF-16"),
        (START, '"answer_start": 94', "bytes of UTF-8"), (START, '"answer_start": -1', "character -1"),
        (START, '"answer_start": "91"', "answers[0].answer_start"), (START, '"answer_start": true', "answers[0].answer_start"),
        (START, '"answer_start": null', "answers[0].answer_start"),
    ),
    *bad(
        "qed", "qed-train.jsonlines",
        ('"start": 13, "end": 28', '"start": 14, "end": 28', "14–28"),
        ('"start": 36, "end": 58', '"start": 36, "end": 57', "36–57"),
    ),
    *bad(
        "natural_questions", "v1.0-simplified_simplified-nq-train.jsonl",
        ('"short_answers": [{"start_token": 11', '"short_answers": [{"start_token": 3', "outside the long answer"),
        ('"end_token": 12}]', '"end_token": 1200}]', "11–1200"), ("?title=Lake_Bled", "?page=Lake_Bled", "no title="),
    ),
    *bad("mrqa", "dev/BioASQ.jsonl", ("[[42, 49]", "[[42]", "char_spans[0]")),
    *bad(
        "curated_trec", "curatedtrec-test.qa.csv",
        ("When did Café Müller close?\t['1960', '\\d{4}']", '{"question": "Who?", "answer": "a"}', "'answer'"),
        ("['1960', '\\d{4}']", "__import__('os')", "not a list"), ("\t['1960', '\\d{4}']", "", "1 fields"),
    ),
    *bad(
        "semeval", "TRAIN_FILE.TXT",
        ("</e1>and", "and", "<e1> <e2> </e2>"), ("<e1>doves</e1>", "<e1> </e1>", "the head is empty"),
        ("<e1>doves</e1>and<e2>moles</e2>", "<e2>doves</e2>and<e1>moles</e1>", "<e2> </e2> <e1> </e1>"),
        ("Other\nComment:", "Comment:", "2 lines"), ('2\t"A', '"A', '"A duel'), ("2\t", "1\t", "id '1'"),
    ),
    *bad(
        "ccg_semeval", "original/train.tsv",
        ("Other\t", "Other ", "1 fields"), ("sang .", "sang .\t1", "3 fields"),
        ("<e1> cook </e1>", "cook </e1>", "</e1> <e2> </e2>"), ("<e1> cook </e1> and", "<e1> </e1> and", "the head is empty"),
    ),
    *bad(
        "ccg_semeval", "original/dev.json",
        ('"subj_end": 1', '"subj_end": 9', "1 and 9"), ('"obj_start": 4', '"obj_start": "4"', "'obj_start'"),
        ('"id": "9"', '"id": "x"', "'x'"), ('mx_shortest_betweenness": [', 'mx_shortest_betweenness": [99, ', "mx_shortest_"),
    ),
    *bad(
        "scierc", "train.json",
        ('[2, 3, 5, 5, "USED-FOR"]', '[2, 3, 5, 8, "USED-FOR"]', "5–8"), ('[11, 11, 7, 7, "COM', '[0, 0, 7, 7, "COM', "0–0"),
        ('[2, 3, 5, 5, "USED-FOR"]', "[2, 3, 5, 5]", "[2, 3, 5, 5]"),
    ),
    *bad(
        "ace2005", "data/English/bc/timex2norm/MADE_BC_1.apf.xml",
        ('TYPE="ART"', 'TYPE="METONYMY"', "'METONYMY'"), ('<head><charseq START="', '<head><charseq START="x', "START"),
        ('<head><charseq START="', '<head><charseq START="9', "outside"),
    ),
    *bad(
        "politihop", "data/politihop_valid_xh.json", ('"context": ["Mayor", ', '"context": "a", "x": [', "node[0].context"),
        folder="politihop/Transformer-XH",
    ),
    *bad(
        "politihop", "data/politihop_valid.tsv",
        ('{""1"": [""1,2"", ""4""]}', "[1, 2]", "annotated_evidence"), ('""1,2""', '""one""', "'one'"),
        ('""1,2""', '""12""', "none of number 12"), ('[""1,2"", ""4""]', "[]", "chain is empty"),
        ('"[""Mayor', '"[Mayor', "ruling"),
    ),
    *bad(
        "scifact", "claims_train.jsonl",
        ('"13": [{"sen', '"99": [{"sen', "document 99"), ('[1], "label": "REF', '[2], "label": "REF', "none of number 2"),
        ('[1], "label": "REF', '["x"], "label": "REF', "sentences[0]"),
        ('{"11": [{"sentences": [3], "label": "CONTRADICT"}]}', "[1]", "evid"),
        ('"evidence": {}, "cited_doc_ids": [13]', '"evidence": {}, "cited_doc_ids": []', "cites no document"),
        ('{"13": [{', '{"11": [{"sentences": [0], "label": "SUPPORT"}], "13": [{', "'SUPPORT', 'REFUTE'"),
    ),
    *bad(
        "eraser_fever", "val.jsonl",
        ('{"docid": "AC/DC"', '{"docid": null', "evidences[0][0].docid"),
        ('"docid": "AC/DC"', '"docid": "../val.jsonl"', "'../val.jsonl'"),
        (SPAN, '"start_sentence": -1, "end_sentence": 3', "-1 to 3"), (SPAN, '"start_sentence": 1, "end_sentence": 2', "1 to 2"),
        (SPAN, '"start_sentence": 8, "end_sentence": 9', "which has 5"),
        ('"evidences": [[{"docid": "AC', '"evidences": [], "x": [[{"docid": "AC', "no evidence"),
    ),
    *bad(
        "checkwhy", "train.json",
        ('"claim": "Heavy', '"assertion": "Heavy', "KEYS['claim']"), ('"useful": true', '"useful": "maybe"', "'useful'"),
        ('"evidence": "Rain', '"text": "Rain", "evidence": "Rain', "both 'evidence' and 'text'"),
        ('"evidence_id": 1,', '"evidence_id": 1.5,', "'evidence_id'"), ('"evidence_id": 3', '"evidence_id": 2', "named Sentence2"),
        ('"one_to_multiple_linking(', '"import os\\nos.remove(', "line 1, column 1"),
        ("linking(Sentence5", "linking(Sentence9", "Sentence9"),
        ('"label": "REFUTES"', '"label": "SUPPORTS"', "prints REFUTES"), ('"useful": false', '"useful": true', "useful=True"),
        ('"useful": true', '"useful": false', "useful=False"),
    ),
    *bad(
        "wikiwhy", "effect.json",
        ('  "3": "People crossed Lake Bled on foot in 1929.",\n', "", "effect.json has no effect"),
        ('"People crossed Lake Bled on foot in 1929."', '" "', "the effect is empty"), folder="wikiwhy_context",
    ),
    *bad("wikiwhy", "explanation.json", ('"Ice carries people."', "1", "the explanation"), folder="wikiwhy_context"),
    *bad(
        "entailment_bank", "dataset/task_1/dev.jsonl",
        ("sent1 & sent3 ->", "sent1 & sent3 =>", "line 1"), ("-> int1: ice floats on liquid water;", "-> int1;", "int1"),
    ),
]  # fmt: skip


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
    own = {name for name in names() if builder_class(name).__module__.startswith("hfcf.corpora.")} - set(OWN)
    assert {case.name for case in CASES} == own
    scripts = {path.stem.removeprefix("build_"): path.read_text() for path in (ROOT / "dataset_scripts").glob("build_*.py")}
    assert set(scripts) == own
    assert [name for name, text in scripts.items() if f'main("{name}")' not in text] == []


@pytest.mark.parametrize("name", names())
def test_front_matter(name: str) -> None:
    info = builder_class(name).INFO
    assert info.task in tasks()
    assert set(info.labels.values()) <= set(get_task(info.task).labels or info.labels.values())
    assert name in OWN or (info.name == name and info.paper and info.citation and info.licence)


@cases
def test_rows_are_sound_and_can_be_published(case: Case, tmp_path: Path) -> None:
    info = builder_class(case.name).INFO
    task = get_task(info.task)
    splits = load(case)
    for split, part in splits.items():
        rows = part.to_list()
        assert list(part.features)[: len(task.features)] == list(task.features)
        assert "status" not in part.features
        sound_rows.check_places(rows)
        assert {(row["corpus"], row["split"]) for row in rows} == {(case.name, split)}
        assert not info.labels or {row.get("label") for row in rows} <= {*info.labels.values(), *(task.labels or ()), None}
        assert sound_rows.reasons([row for row in rows if row.get("claim") != ""]) == []  # WikiWhy has no claims yet
    out = build(case.name, data_dir=FIXTURES / (case.folder or case.name), out=tmp_path / "out")
    published = datasets.load_dataset(str(out), cache_dir=str(tmp_path / "hub"))
    assert {split: part.to_list() for split, part in published.items()} == {split: part.to_list() for split, part in splits.items()}
    card = (out / "README.md").read_text()
    assert {"must not be republished" in card, "\nrepublish: false\n" in card} == {not info.republish}


@pytest.mark.parametrize("case", CASES + BAD, ids=[f"{case.name}-{case.named}" for case in CASES + BAD])
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


FILES = [
    ("mrqa", "mrqa", "dev/BioASQ.jsonl", '{"header"', '{"head"', "not a header"),
    ("wikiwhy", "wikiwhy_context", "effect.json", '"effect"', '"effects"', "'effects'"),
    ("wikiwhy", "wikiwhy_context", "effect.json", '"effect": {', '"effect": ["a"], "other": {', "'effect' is a list"),
    ("wikiwhy", "wikiwhy_context", "context.json", '"dev"', '"extra"', "'extra'"),
    ("fever", "fever", "wiki-pages/wiki-001.jsonl", None, '{"id": null, "lines": ""}\n', "'lines'"),
    ("fever", "fever", "wiki-pages/wiki-001.jsonl", None, '{"id": "Vidova_-LRB-film-RRB-", "lines": 3}\n', "'lines'"),
    ("fever", "fever", "wiki-pages/wiki-001.jsonl", None, '{"id": "\\q"}\n', "not JSON"),
    ("fever", "fever_rte", "RTE-Fever/processed/dev.label", None, "entailment\n", "4 labels"),
    ("scifact", "scifact_rte", "RTE-scifact/processed/dev.label", None, "entailment\n", "3 labels"),
]


@pytest.mark.parametrize(("name", "folder", "file", "old", "new", "named"), FILES)
@pytest.mark.parametrize("on_error", ["raise", "reject"])
def test_a_file_of_another_layout_is_named(
    name: str, folder: str, file: str, old: str | None, new: str, named: str, on_error: str, copied: Callable[[str], Path]
) -> None:
    copy = copied(folder)
    text = (copy / file).read_text()
    assert old is None or old in text
    (copy / file).write_text(text + new if old is None else text.replace(old, new, 1))
    files = {"test": copy / file} if name == "mrqa" else None
    with pytest.raises(CorpusError) as error:
        hfcf.load(name, data_dir=None if files else copy, data_files=files, on_error=on_error)
    assert named in str(error.value)


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
