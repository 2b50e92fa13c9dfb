"""MRQA 2019: eighteen question answering datasets in one form, for training on some datasets and testing on the rest.

    ds = hfcf.load("mrqa", data_files={"validation": "dev/TriviaQA-web.jsonl.gz"}, split="validation")
    ds = hfcf.load("mrqa", data_dir="mrqa/", dataset="HotpotQA", split="dev")

- Files: `.jsonl` or `.jsonl.gz` with a header that names the dataset and the split, in `data_dir` or its `train/`, `dev/` and
  `test/`. The header decides the split, unless the user's mapping does.
- The first line is {"header": {"dataset": …, "split": …}}; the split may also be called `mrqa_split`. A context line is {context,
  qas: [{qid, question, answers, detected_answers: [{text, char_spans: [[start, end]]}]}]}. The end of a place is inclusive. The
  tokens of the lines are not read.
- Answers: each place of each detected answer, with its text in the context. That text must be the answer's `text`, but for
  capitals, accents, and blanks and punctuation inside, which a detection may ignore.
- Title: if a context has a single [TLE], at its beginning, the title is the text up to the next [SEP], [PAR] or [DOC]. The context
  is what follows. A position of an answer in that head is left out. A question with no other position keeps the whole context, as
  do contexts with several titles. Other markers stay in the context. The form has no field for titles, so all other titles are
  empty.
- The option `dataset` loads one dataset, by the name in the header (SQuAD, NewsQA, TriviaQA, SearchQA, HotpotQA,
  NaturalQuestions; BioASQ, DROP, DuoRC, RACE, RelationExtraction, TextbookQA …).
- Group: the context of the file, with its title. Two contexts of one article are two groups.
- Extra columns: `dataset`, the header's name, and `aliases`, every right answer of `answers`, in the context or not, for the shared
  task's metric.

One row (made up) of the context "[TLE] Lake Bled [PAR] Lake Bled lies in Slovenia.": question "Where is Lake Bled?", title "Lake
Bled", context "Lake Bled lies in Slovenia.", answers {"text": ["Slovenia"], "answer_start": [18]}, aliases ["Slovenia", "the
Republic of Slovenia"], dataset "HotpotQA".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import datasets
from datasets import List
from pydantic import StrictInt

from hfcf.core.schema import TEXT
from hfcf.corpora.base import (
    BadRow,
    Corpus,
    CorpusError,
    CorpusInfo,
    Fields,
    Files,
    Record,
    as_text,
    json_lines,
    split_records,
)
from hfcf.corpora.base.info import ALIASES
from hfcf.corpora.formats.answers import context_group

FORM_EXTRA = {"aliases": List(TEXT)}
"""The columns that this form adds."""
ENDINGS = (".jsonl", ".jsonl.gz")
_SPLIT = re.compile(r"\w+(\.\w+)*")
_HEAD = re.compile(r"\s*(?:\[(?:DOC|PAR)\]\s*)*\[TLE\](?P<title>[^\[\]]*)\[(?:SEP|PAR|DOC)\]\s*(?=\S)")
_UNNAMED = ""
_FOLDERS = {"": _UNNAMED, "train/": "train", "dev/": "validation", "test/": "test"}
"""The split of a file whose header names none."""
_LINE = Fields(context=str, qas=[dict[str, Any]])
_QUESTION = Fields(
    context=str, question=str, answers=[str],
    detected_answers=[{"text": str, "char_spans": list[tuple[StrictInt, StrictInt]]}],  # the end is inclusive
)  # fmt: skip


class MRQA(Corpus):
    """Release files → rows."""

    VERSION = datasets.Version("1.1.0")  # titles

    INFO = CorpusInfo(
        name="mrqa",
        title="MRQA 2019: extractive question answering in one form",
        paper="Fisch et al. (MRQA 2019), MRQA 2019 Shared Task: Evaluating Generalization in Reading Comprehension",
        citation="""@inproceedings{fisch-etal-2019-mrqa,
  title = {{MRQA} 2019 Shared Task: Evaluating Generalization in Reading Comprehension},
  author = {Fisch, Adam and Talmor, Alon and Jia, Robin and Seo, Minjoon and Choi, Eunsol and Chen, Danqi},
  booktitle = {Proceedings of the 2nd Workshop on Machine Reading for Question Answering},
  year = {2019}
}""",
        licence="unknown",  # each dataset has its own
        hub_id="mrqa-workshop/mrqa",
        splits={"train": 516_819, "validation": 58_221, "test": 9_633},
        task="qa",
        release="github.com/mrqa/MRQA-Shared-Task-2019",
        layout="`*.jsonl.gz`, or `train/`, `dev/` and `test/` with them",
        notes='`dataset="HotpotQA"` loads one dataset; TriviaQA, HotpotQA, BioASQ …; not checked against the real files',
    )
    FILES = tuple(
        (split, f"{folder}*{ending}")
        for split, folder in (("train", "train/"), ("validation", "dev/"), ("test", "test/"))
        for ending in ENDINGS
    )
    OPTIONS: ClassVar = {"dataset": "load only the dataset of this name"}
    EXTRA: ClassVar = {**FORM_EXTRA, "dataset": TEXT}

    @classmethod
    def find(cls, data_dir: Path, name: str) -> Files:
        files: Files = {}
        for folder, split in _FOLDERS.items():
            for ending in ENDINGS:
                for path in sorted((data_dir / folder).glob(f"*{ending}")):
                    if (first := header(path)) is not None:
                        files.setdefault(named_split(first) or split, []).append(path)
        return files

    @classmethod
    def split_of(cls, path: Path) -> str | None:
        return header_split(path)

    @classmethod
    def locate(cls, name: str, *, data_dir: Any, data_files: Any, options: dict[str, Any]) -> tuple[Files, dict[str, Path]]:
        """Return the files of each split, of the chosen dataset."""
        files, resources = super().locate(name, data_dir=data_dir, data_files=data_files, options=options)
        if (dataset := options.get("dataset")) is not None:
            names = {path: str((header(path) or {}).get("dataset")) for paths in files.values() for path in paths}
            files = {split: kept for split, paths in files.items() if (kept := [path for path in paths if names[path] == dataset])}
            if not files:
                raise CorpusError(
                    f"{name}: no file is of the dataset {dataset!r}; there are {', '.join(sorted(set(names.values())))}"
                )
        if unnamed := files.get(_UNNAMED):
            cure = f'name it yourself, instead of data_dir: data_files={{"SPLIT": "{unnamed[0]}"}}'
            raise CorpusError(f"{unnamed[0]}: its header names no split; {cure}")
        return files, resources

    def records(self, path: Path) -> Iterator[Record]:
        return questions(path)

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        row["dataset"] = as_text(record.get("dataset"))
        fill_question(row, record)


def header(path: Path) -> dict[str, Any] | None:
    """Return the header in the first line of a file, or None if the file has no header."""
    first = next(json_lines(path), None)
    found = first.value.get("header") if first else None
    return found if isinstance(found, dict) else None


def header_split(path: Path) -> str | None:
    """Return the split that a file's header names, see `named_split`."""
    return named_split((header(path) or {}) if path.is_file() else {})


def named_split(header: Mapping[str, Any]) -> str | None:
    """Return the split that a header names, or None if it names no split that `datasets` allows."""
    split = header.get("split", header.get("mrqa_split"))
    allowed = isinstance(split, str) and split != "all" and _SPLIT.fullmatch(split)
    return ALIASES.get(split, split) if allowed else None


def questions(path: Path) -> Iterator[Record]:
    """Yield the questions of a file, each with its context and the name of its dataset."""
    if (first := header(path)) is None:
        raise CorpusError(f'{path}: the first line is not a header; a file of MRQA starts with {{"header": {{"dataset": …}}}}')
    shared = {"dataset": first.get("dataset")}
    return split_records(
        (line for line in json_lines(path) if line.number > 1),
        lambda line: [{**shared, "context": line["context"], **question} for question in _LINE.check(line)["qas"]],
    )


def fill_question(row: dict[str, Any], record: dict[str, Any]) -> None:
    """Write a question of `questions` into `row`."""
    name = "qid" if "qid" in record else "id"
    row["id"] = record.get(name)
    _QUESTION.check(record)
    context = record["context"]
    row |= {"context": context, "question": record["question"], "group_id": context_group(context)}
    row["aliases"] = list(dict.fromkeys(record["answers"]))
    spans = {_span(context, answer["text"], place): None for answer in record["detected_answers"] for place in answer["char_spans"]}
    row["title"], cut = _split_title(context)
    if inside := [(start - cut, text) for start, text in spans if start >= cut]:
        row["context"] = context[cut:]
    answers = inside or list(spans)
    row["answers"] = {"text": [text for _, text in answers], "answer_start": [start for start, _ in answers]}


def _split_title(context: str) -> tuple[str, int]:
    """Return the title with which a context begins, and where the text after it starts; "" and 0 unless it has a single title."""
    head = _HEAD.match(context)
    if head is None or not (title := head["title"].strip()) or "[TLE]" in context[head.end() :]:
        return "", 0
    return title, head.end()


def _span(context: str, text: str, place: Sequence[int]) -> tuple[int, str]:
    start, end = place
    there = context[start : end + 1] if 0 <= start <= end else ""
    # An exclusive end would include a blank or a full stop.
    edges = there and all(there[at].isalnum() or there[at] == (text.strip() or " ")[at] for at in (0, -1))
    if not edges or _plain(there) != _plain(text):
        raise BadRow(f"the answer {text!r} is not at {start}–{end} (inclusive) of the context, which has {there!r} there")
    return start, there


def _plain(text: str) -> str:
    """Return a text without capitals, accents, blanks and punctuation; a text of only these is returned without blanks."""
    plain = "".join(character for character in unicodedata.normalize("NFKD", text).casefold() if character.isalnum())
    return plain or "".join(text.split())


BUILDER = MRQA
