"""A third task as another package would bring it: questions whose answer is a number of the context, without labels.

Its corpus, its system, its trainer and its scorer stand here, too; entry points name them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from datasets import Dataset, List

from hfcf.core.edits import by_place, refuse_rest, replace_text
from hfcf.core.model import Model
from hfcf.core.schema import TEXT
from hfcf.core.segments import Mark, Segment
from hfcf.core.stage import Reject, Stage
from hfcf.core.system import System
from hfcf.core.task import HubNames, Task
from hfcf.corpora.base import Corpus, CorpusInfo, Fields
from hfcf.corpora.formats.read import Record, json_lines
from hfcf.systems._shared.judge import JudgeCandidates
from hfcf.text.check import text_problem

NUMBER = re.compile(r"\d+")
FIELDS = ("question", "context", "answer")


@dataclass(frozen=True, kw_only=True, eq=False)
class NumberQuestions(Task):
    """Rows of `question`, `context` and `answer`."""

    def validate(self, row: Mapping[str, Any]) -> str | None:
        for field in FIELDS:
            if field in row and (why := text_problem(row[field], f"the {field}", letters=field != "answer")):
                return why
        if {"context", "answer"} <= set(row) and row["answer"] not in NUMBER.findall(row["context"]):
            return f"the answer {row['answer']!r} is no number of the context"
        return None

    def segments(self, row: Mapping[str, Any]) -> list[Segment]:
        context, answer = row.get("context") or "", row.get("answer") or ""
        marks = tuple(Mark(one.start(), one.end(), "answer") for one in NUMBER.finditer(context) if one[0] == answer)
        texts = {"question": row.get("question") or "", "context": context, "answer": answer}
        return [Segment(field, -1, text, field, marks if field == "context" else ()) for field, text in texts.items()]

    def named_texts(self, row: Mapping[str, Any]) -> list[tuple[str, Any]]:
        return [(f"the {field}", row[field]) for field in FIELDS]

    def apply_edits(self, row: Mapping[str, Any], edits: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        places = by_place(edits)
        texts = {field: replace_text(row[field], places.pop((field, -1), [])) for field in FIELDS}
        refuse_rest(places)
        return texts

    def identity(self, row: Mapping[str, Any]) -> list[tuple[str, str]]:
        return [("question", f"{row.get('question')} {row.get('context')}")]

    def outcome(self, row: Mapping[str, Any]) -> str | None:
        return row.get("answer")


TASK = NumberQuestions(
    name="toy",
    columns=dict.fromkeys(FIELDS, TEXT),
    signature=("question",),
    empty_row=dict.fromkeys(FIELDS),
    labelled=False,
    outcome_name="answer",
    candidate={"answer": TEXT},
    trainer="toy_task:TRAINER",
    scorer="toy_task:SCORER",
    hub=HubNames(categories=("question-answering",), ids=("extractive-qa",), tag="question-answering"),
)


RECORD = Fields(id=str, **dict.fromkeys(FIELDS, str))


class Bridges(Corpus):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="bridges", title="Bridges, questions about numbers", paper="none", citation="", licence="cc-by-4.0",
        splits={"train": 24, "test": 12}, labels={}, task="toy",
    )  # fmt: skip
    FILES = (("train", "train.jsonl"), ("test", "test.jsonl"))

    def records(self, path: Path) -> Iterator[Record]:
        return json_lines(path)

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        RECORD.check(record)
        row |= {name: record[name] for name in ("id", *FIELDS)} | {"group_id": record["id"]}


INFO, BUILDER = Bridges.INFO, Bridges


@dataclass(frozen=True, kw_only=True)
class ChangeAnswer(Stage):
    """Put another number in the place of the answer, in the context and as the answer."""

    inputs: ClassVar = dict.fromkeys(FIELDS, TEXT)
    outputs: ClassVar = {"candidates": List(TASK.candidate_features)}

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        if row["answer"] == "0":
            raise Reject("nothing can be added to none")
        new = str(int(row["answer"]) + self.random(row["id"]).randint(1, 9))
        places = [("context", one.start()) for one in NUMBER.finditer(row["context"]) if one[0] == row["answer"]] + [("answer", 0)]
        edits = [
            {"field": field, "piece": -1, "start": at, "end": at + len(row["answer"]), "before": row["answer"], "after": new}
            for field, at in places
        ]
        return {"candidates": [{"answer": new, "change": "context", "edits": edits, "scores": [], "status": None}]}


class OtherNumber(System):
    """Questions with another answer: `change_answer`, `judge_candidates`."""

    task = "toy"
    chain = (ChangeAnswer, JudgeCandidates)


class Reader:
    """Learns which number of a context answers: the place that most answers of the training rows have."""

    changes: ClassVar[tuple[str, ...]] = ()
    ways: ClassVar[int | None] = None

    def train(self, rows: Dataset, hp: Any, out: Path, *, labels: Sequence[str], dev: Any = None, debias: Any = None) -> None:
        places = Counter(NUMBER.findall(row["context"]).index(row["answer"]) for row in rows)
        out.mkdir(parents=True, exist_ok=True)
        (out / "place.json").write_text(json.dumps([places.most_common(1)[0][0], len(rows)]), encoding="utf-8")

    def predict(self, rows: Dataset, model: Model, *, max_length: int, labels: Sequence[str]) -> list[str]:
        place, _ = json.loads((Path(model.name) / "place.json").read_text(encoding="utf-8"))
        return [NUMBER.findall(row["context"])[place] for row in rows]


class ExactMatch:
    """How many answers are right."""

    metrics: ClassVar[Mapping[str, str]] = {"em": "Exact match"}
    compared: ClassVar[tuple[str, ...]] = ("em",)
    note: ClassVar[str] = ""

    def gold(self, rows: Dataset) -> list[str]:
        return list(rows["answer"])

    def letters(self, labels: Iterable[str]) -> None:
        return None

    def scores(self, gold: Sequence[str], predicted: Sequence[str]) -> dict[str, float]:
        return {"em": round(float(np.mean([one == other for one, other in zip(gold, predicted, strict=True)])), 4)}

    def right(self, gold: Sequence[str], predicted: Sequence[str]) -> list[bool]:
        return [one == other for one, other in zip(gold, predicted, strict=True)]

    def resample(self, counts: Any, gold: Any, predicted: Any) -> Any:
        return np.stack([counts @ (predicted == gold).T.astype(float) / counts.sum(axis=1, keepdims=True)])


TRAINER, SCORER = Reader(), ExactMatch()
