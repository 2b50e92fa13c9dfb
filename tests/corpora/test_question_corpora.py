"""The corpora of questions and answers: their layouts, what goes wrong with their files, and the real ones."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hfcf
from hfcf.core.task import get_task
from hfcf.corpora.base import CorpusError, json_lines
from hfcf.corpora.formats.answers import context_group

FIXTURES = Path(__file__).parents[1] / "fixtures" / "corpora"
COLUMNS = list(get_task("qa").features)


def load(name: str, split: str | None = None, folder: str | None = None, **options: Any) -> Any:
    return hfcf.load(name, data_dir=FIXTURES / (folder or name), split=split, **options)


# --- SQuAD's layout


def test_squad() -> None:
    splits = load("squad")
    assert {split: part["id"] for split, part in splits.items()} == {"train": ["s1", "s2", "s3", "s4"], "validation": ["d1"]}
    ds = splits["train"]
    assert list(ds.features) == COLUMNS
    assert ds["title"] == ds["group_id"] == ["Lake_Bled"] * 3 + ["Caf%C3%A9_M%C3%BCller"]
    assert ds[1]["answers"] == {"text": ["its church", "church"], "answer_start": [91, 95]}
    assert splits["validation"][0]["answers"]["text"] == ["Moravia", "in Moravia", "Moravia"]  # those of three annotators
    assert load("xquad", "dev")[0]["answers"]["text"] == ["Moravia"]


def test_squad_v2_has_rows_without_an_answer(copied: Callable[[str], Path]) -> None:
    path = copied("squad") / "train-v1.1.json"
    content = json.loads(path.read_text())
    qas = content["data"][0]["paragraphs"][0]["qas"]
    qas[0] |= {"is_impossible": True, "answers": [], "plausible_answers": [{"text": "Slovenia", "answer_start": 18}]}
    qas[1]["is_impossible"] = False
    path.write_text(json.dumps(content))
    ds = hfcf.load("squad", data_files={"train": path}, split="train")
    assert ds["answers"][0] == {"text": [], "answer_start": []}
    assert len(ds["answers"][1]["text"]) == 2


def test_adversarial_qa() -> None:
    splits = load("adversarial_qa")
    assert {split: part["id"] for split, part in splits.items()} == {"train": ["combined-train"], "validation": ["combined-dev"]}
    blind = load("adversarial_qa", "test")
    assert blind[0]["answers"] == {"text": [], "answer_start": []}
    bert = load("adversarial_qa", "train", model="bert")
    assert (bert["id"], bert["model_in_the_loop"]) == (["2_dbert-train"], ["BERT"])
    alone = hfcf.load("adversarial_qa", data_dir=FIXTURES / "adversarial_qa" / "2_dbert", split="train", model="bert")
    assert alone["id"] == bert["id"]
    with pytest.raises(CorpusError, match=r"no folder .*3_droberta"):
        load("adversarial_qa", model="roberta")
    with pytest.raises(ValueError, match="got 'gpt'"):
        load("adversarial_qa", model="gpt")


def test_quoref_contrast() -> None:
    ds = load("quoref_contrast", "test")
    assert ds["id"] == ["o1", "o2", "p1", "p1#2", "p2"]
    assert ds["kind"] == ["original"] * 2 + ["perturbed"] * 3
    assert ds["original_id"] == ["o1", "o2", "o1", "o2", "o1"]
    assert set(ds["group_id"]) == {"A Boat"}
    assert ds[0]["answers"] == {"text": ["Ada", "Bo"], "answer_start": [0, 8]}
    assert ds["alternatives"] == [[[0, 1]], [[0]], [[0]], [[0]], [[0, 1]]]
    # The second original stands one character late in the file.
    assert ds[1]["answers"] == {"text": ["Bo"], "answer_start": [23]}
    assert "test: 1 answers with a place one character too low" in ds.info.description
    assert load("quoref_contrast", "test", part="perturbed")["id"] == ["p1", "p1#2", "p2"]
    with pytest.raises(ValueError, match="got 'both'"):
        load("quoref_contrast", part="both")


# --- Natural Questions and QED


def test_qed() -> None:
    splits = load("qed")
    assert {split: part["id"] for split, part in splits.items()} == {"train": ["-11", "12", "13"], "validation": ["14"]}
    ds = splits["train"]
    assert ds[0]["answers"] == {"text": ["José Rade and Eva Holm", "José Rade", "Eva Holm"], "answer_start": [36, 36, 50]}
    assert ds[0]["alternatives"] == [[0], [1, 2]]  # the third annotator says what the first says
    assert ds[0]["question_references"] == [{"start": 13, "end": 28, "text": "the film vidova"}]
    assert ds[0]["sentence_references"] == [{"start": 0, "end": 19, "text": "The Vidova ( film )", "bridge": None}]
    assert ds[0]["answer_references"] == [{"start": 36, "end": 58, "text": "José Rade and Eva Holm"}]
    assert ds[1]["sentence_references"] == [
        {"start": None, "end": None, "text": "", "bridge": "in"},
        {"start": None, "end": None, "text": "", "bridge": ""},
    ]
    assert ds["explanation_type"] == ["single_sentence", "single_sentence", "multi_sentence"]
    assert (ds[2]["question_references"], ds[2]["selected_sentence"]) == ([], None)
    assert ds[2]["answers"] == {"text": ["Moravia"], "answer_start": [18]}
    assert ds["group_id"] == ["Vidova (film)", "Vidova (film)", "Ostrava"]


def test_natural_questions_with_short_answers() -> None:
    splits = load("natural_questions")
    train, dev = splits["train"], splits["validation"]
    assert train["id"] == ["101", "102", "104"]
    assert "train: 2 questions without a short answer, yes or no were left out" in train.info.description
    assert train["title"] == train["group_id"] == ["Lake Bled (Slovenia)"] * 3
    assert train[0]["context"] == "Lake Bled lies in Slovenia and is 2,120 m long ."
    assert train[0]["answers"] == {"text": ["Slovenia"], "answer_start": [18]}
    assert (train[1]["answers"], train[1]["alternatives"]) == ({"text": ["yes"], "answer_start": []}, [])
    # A list of two spans answers together; "<" is text.
    assert train[2]["context"] == "Boats pletna < 20 guests"
    assert train[2]["answers"] == {"text": ["pletna", "< 20 guests"], "answer_start": [6, 13]}
    assert train[2]["alternatives"] == [[0, 1]]
    # Three of four annotators marked the paragraph, and one of them with "in"; yes beats no and a span.
    assert dev["id"] == ["201", "202"]
    assert dev[0]["title"] == "Lake Bled"
    assert dev[0]["answers"] == {"text": ["Slovenia", "in Slovenia"], "answer_start": [18, 15]}
    assert dev[0]["annotators"] == 3
    assert dev[1]["answers"] == {"text": ["yes"], "answer_start": []}


def test_natural_questions_by_the_names_of_their_files() -> None:
    file = FIXTURES / "natural_questions" / "v1.0-simplified_simplified-nq-train.jsonl"
    assert hfcf.load("natural_questions", data_files=file, split="train")["id"] == ["101", "102", "104"]


def test_natural_questions_of_mrqa(tmp_path: Path) -> None:
    ds = load("natural_questions", "train", "natural_questions_mrqa")
    assert ds["id"] == ["t1", "t2", "t3"]
    assert ds["aliases"][0] == ["Slovenia", "the Republic of Slovenia"]
    assert ds["title"] == [""] * 3
    both = shutil.copytree(FIXTURES / "natural_questions", tmp_path / "both")
    shutil.copy(FIXTURES / "natural_questions_mrqa" / "NaturalQuestionsShort.jsonl.gz", both)
    with pytest.raises(CorpusError, match=r"two forms.*form='short'"):
        hfcf.load("natural_questions", data_dir=both)
    assert hfcf.load("natural_questions", data_dir=both, form="mrqa", split="train")["id"] == ds["id"]
    assert hfcf.load("natural_questions", data_dir=both, form="short", split="train")["id"] == ["101", "102", "104"]
    with pytest.raises(CorpusError, match="no file is of the form 'mrqa'"):
        load("natural_questions", form="mrqa")


@pytest.mark.parametrize("split", [None, "-LRB-", 3, "all"])
def test_a_header_of_mrqa_without_a_split_ends_the_load(tmp_path: Path, split: Any) -> None:
    (tmp_path / "dev").mkdir()
    for name, folder in (("BioASQ", "dev"), ("HotpotQA", ".")):
        lines = [line.value for line in json_lines(next((FIXTURES / "mrqa" / "dev").glob(f"{name}.jsonl*")))]
        lines[0] = {"header": {"dataset": name, "split": split}}
        (tmp_path / folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(CorpusError, match=r"HotpotQA\.jsonl: its header names no split.*data_files=(\{.*\})") as error:
        hfcf.load("mrqa", data_dir=tmp_path)
    assert hfcf.load("mrqa", data_dir=tmp_path, dataset="BioASQ", split="validation")["id"] == ["b1", "b2", "b3"]  # by its folder
    cure = json.loads(str(error.value).partition("data_files=")[2].replace("SPLIT", "train"))
    assert hfcf.load("mrqa", data_files=cure, split="train")["id"] == ["h1", "h2", "h3"]


def test_mrqa() -> None:
    splits = load("mrqa")
    assert {split: part["id"] for split, part in splits.items()} == {
        "train": ["t1", "t2", "t3"],
        "validation": ["b1", "b2", "b3", "h1", "h2", "h3"],
    }
    ds = splits["validation"]
    assert ds["dataset"] == ["BioASQ"] * 3 + ["HotpotQA"] * 3
    # The same context is the same group.
    assert len(set(ds["group_id"])) == 2
    # The title leaves the context, and the places move with it.
    assert (ds[0]["title"], ds[0]["context"][:14]) == ("Lake Bled", "Lake Bled 🛶 li")
    assert ds[0]["answers"] == {"text": ["Slovenia", "Slovenia"], "answer_start": [20, 31]}
    assert (ds[2]["title"], ds[2]["context"]) == ("", "[DOC] Bled .")
    assert ds[0]["aliases"] == ["Slovenia", "the Republic of Slovenia"]
    assert ds[1]["answers"]["text"] == ["the EU"]  # the detection ignored capitals
    assert load("mrqa", "dev", dataset="HotpotQA")["id"] == ["h1", "h2", "h3"]
    with pytest.raises(CorpusError, match="'NewsQA'; there are BioASQ, HotpotQA"):
        load("mrqa", dataset="NewsQA")
    file = FIXTURES / "mrqa" / "dev" / "BioASQ.jsonl"
    assert hfcf.load("mrqa", data_files=file, split="validation")["id"] == ["b1", "b2", "b3"]
    assert hfcf.load("mrqa", data_files={"test": file}, split="test")["id"] == ["b1", "b2", "b3"]


TEXT = "Bled lies in Slovenia."


@pytest.mark.parametrize(
    ("head", "title"),
    [
        ("[TLE] Lake Bled [SEP] ", "Lake Bled"),
        ("[PAR] [TLE] Lake Bled [SEP] ", "Lake Bled"),
        ("[DOC] [TLE] Lake Bled 🛶 [PAR] ", "Lake Bled 🛶"),
        ("[TLE] Lake Bled ", ""),  # nothing says where the title ends
        ("[TLE]  [SEP] ", ""),
        ("[DLE] Lake Bled [SEP] ", ""),
        ("Lake [TLE] Bled [SEP] ", ""),  # not at the beginning
        ("[TLE] Bohinj [SEP] A lake. [TLE] Lake Bled [SEP] ", ""),  # two documents have no one title
        ("", ""),
    ],
)
def test_a_title_that_mrqa_marks_leaves_the_context_and_answers_keep_their_places(tmp_path: Path, head: str, title: str) -> None:
    context = head + TEXT

    def question(name: str, text: str, starts: list[int]) -> dict[str, Any]:
        spans = [[start, start + len(text) - 1] for start in starts]
        return {"qid": name, "question": "?", "answers": [text], "detected_answers": [{"text": text, "char_spans": spans}]}

    lake = [at for at in (context.find("Bled"), context.rfind("Bled")) if at >= 0]
    qas = [question("s", "Slovenia", [context.index("Slovenia")]), question("b", "Bled", sorted(set(lake)))]
    if title:
        qas.append(question("t", "Lake", [context.index("Lake")]))
    lines: list[dict[str, Any]] = [{"header": {"dataset": "Made", "split": "dev"}}, {"context": context, "qas": qas}]
    path = tmp_path / "Made.jsonl"
    path.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines))
    ds = hfcf.load("mrqa", data_files=path, split="validation")
    assert ds["title"] == [title] * len(qas)
    assert ds["context"][:2] == [TEXT if title else context] * 2
    for row in ds:
        assert all(
            row["context"][start:].startswith(text)
            for text, start in zip(row["answers"]["text"], row["answers"]["answer_start"], strict=True)
        )
    assert len(ds[1]["answers"]["text"]) == (1 if title else len(set(lake)))
    if title:  # an answer that only the title has keeps the whole context
        assert (ds[2]["context"], ds[2]["answers"]["text"]) == (context, ["Lake"])
    assert set(ds["group_id"]) == {context_group(context)}


def test_a_broken_archive_is_named(copied: Callable[[str], Path]) -> None:
    path = copied("mrqa") / "dev" / "HotpotQA.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(CorpusError, match=r"HotpotQA\.jsonl\.gz can't be read: .*end-of-stream"):
        hfcf.load("mrqa", data_files={"test": path})


# --- open questions


def test_nq_open() -> None:
    splits = load("nq_open")
    assert {split: len(part) for split, part in splits.items()} == {"train": 1, "validation": 2, "efficientqa": 1}
    ds = splits["validation"]
    assert ds[0]["answers"] == {"text": ["Slovenia", "in Slovenia"], "answer_start": []}
    assert (ds["id"], ds["context"], ds["title"]) == (["row-1", "row-2"], ["", ""], ["", ""])
    assert len({*ds["group_id"], *splits["train"]["group_id"]}) == 3


def test_triviaqa() -> None:
    splits = load("triviaqa")
    assert {split: part["id"] for split, part in splits.items()} == {"train": ["tc_1"], "validation": ["tc_2", "tc_3"]}
    assert splits["train"][0]["answers"] == {"text": ["Lake Bled", "Blejsko jezero", "Bled"], "answer_start": []}
    assert splits["train"][0]["normalized_aliases"] == ["blejsko jezero", "lake bled"]
    blind = load("triviaqa", "test")
    assert (blind["id"], blind[0]["answers"]["text"]) == (["tc_4"], [])


def test_curated_trec_keeps_patterns() -> None:
    splits = load("curated_trec")
    assert [answers["text"] for answers in splits["train"]["answers"]] == [["19(63|64)"], [r"Slovenia\b", "(in )?Slovenia"]]
    assert splits["test"]["question"] == ["When did Café Müller close?", 'Who rows "pletnas"?']
    assert splits["test"][0]["answers"] == {"text": ["1960", r"\d{4}"], "answer_start": []}
    assert {flag for part in splits.values() for flag in part["regex"]} == {True}


def test_ambigqa() -> None:
    ds = load("ambigqa", "dev")
    assert ds["id"] == ["-7", "-7-0-0", "-7-0-1", "8"]
    assert ds["group_id"] == ["-7", "-7", "-7", "8"]
    assert ds["ambiguous"] == [False, True, True, False]
    assert ds["annotation"] == [None, 0, 0, None]
    assert [answers["text"] for answers in ds["answers"]] == [["1961", "in 1961"], ["1961"], ["May 4, 1963", "1963"], ["Moravia"]]
    assert ds["original_question"] == ["When did Vidova first air?"] * 3 + ["Where is Ostrava?"]
    assert ds["question"][1] == "When did Vidova first air in Denmark?"


def test_boolq_contrast() -> None:
    ds = load("boolq_contrast", "dev")
    assert ds["id"] == ["1", "1-1", "1-3", "2"]
    assert ds["original_id"] == ["1", "1", "1", "2"]
    assert ds["kind"] == ["original", "perturbed", "perturbed", "original"]
    assert [answers["text"] for answers in ds["answers"]] == [["yes"], ["no"], ["yes"], ["no"]]
    assert not any(answers["answer_start"] for answers in ds["answers"])
    assert ds["group_id"] == ["Lake Bled"] * 3 + ["Pletna"]
    assert "1 perturbed questions without text were left out" in ds.info.description
