"""Planted models of RGF: what they read and write follows from the texts alone, so that every filter has work to do."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from datasets import Dataset

from hfcf.core.task import get_task
from hfcf.engines.question_generator import AnswerGenerator, QuestionGenerator
from hfcf.engines.reader import Reader

NAME = re.compile(r"[A-Z][\w\u0300-\u036f]+(?: [A-Z][\w\u0300-\u036f]+)+|👩‍🚀 Zoë")
_CAPTAINS = "In 1994 the captain of Richmond was Jeff Hogg; e\u0301douard Le\u0301vy came later."
PASSAGES = [
    {"id": "p1", "title": "Richmond", "text": "Trent Cotchin is the captain of Richmond Football Club."},
    {"id": "p2", "title": "Richmond reserves", "text": "👩‍🚀 Zoë  is the captain of Richmond’s reserve team, before Steve Morris."},
    {"id": "p3", "title": "Seasons", "text": _CAPTAINS},
    {"id": "p4", "title": "", "text": "The captain of a ship commands it."},
    {"id": "p5", "title": "Long", "text": f"{'A filler sentence about nothing. ' * 300}Mark Twain wrote it, says the captain."},
    {"id": "p6", "title": "Copy", "text": _CAPTAINS},
    {"id": "p7", "title": "Essendon", "text": "Dyson Heppell leads Essendon Football Club as its captain, and Zach Merrett plays."},
]  # fmt: skip


def content(asked: Mapping[str, Any]) -> str:
    """What a prompt asks about, after the examples."""
    return str(asked["messages"][-1]["content"]).rpartition("Passage: ")[2]


def answer_to(asked: Mapping[str, Any]) -> dict[str, list[str]]:
    """Read names, ask for them, and give a name back where the question has its number of letters."""
    passage, rest = content(asked).partition("\n")[::2]
    names = [match[0] for match in NAME.finditer(passage)]
    if rest.startswith("Answer: "):
        answer = rest.removeprefix("Answer: ").partition("\n")[0]
        return {"questions": [f"who is the captain with {len(answer)} letters", "who", "who  "]}
    if letters := re.search(r"with (\d+) letters", rest):
        return {"answers": [name for name in names if len(name) == int(letters[1])][:1]}
    return {"answers": names[:3]}


def collection() -> Dataset:
    return Dataset.from_list(PASSAGES)


def rows() -> Dataset:
    context = PASSAGES[0]["text"]
    first = {
        "id": "q1", "title": "Richmond", "context": context, "question": "Who is the captain of Richmond Football Club?",
        "answers": {"text": ["Trent Cotchin", "Cotchin"], "answer_start": [0, 6]}, "group_id": "g1", "corpus": "made",
        "split": "train",
    }  # fmt: skip
    no_spans = {"text": ["Jeff Hogg"], "answer_start": []}
    made = [
        first,
        {**first, "id": "q2", "question": "who wrote the long book?", "answers": {"text": ["trent cotchin!"], "answer_start": []}},
        {**first, "id": "open", "title": "", "context": "", "question": "who was captain in 1994", "answers": no_spans},
        {**first, "id": "yes", "question": "is he the captain?", "answers": {"text": ["yes"], "answer_start": []}},
        {**first, "id": "no answer", "answers": {"text": [], "answer_start": []}},
        {**first, "id": "no question", "question": " "},
        {**first, "id": "misplaced", "answers": {"text": ["Cotchin"], "answer_start": [3]}},
        {**first, "id": "unknown words", "question": "qwertz uiop?"},
    ]
    return Dataset.from_list(made, features=get_task("qa").features)


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the planted models in the place of those that engines load."""
    patch.setattr(Reader, "run", read)
    patch.setattr(Reader, "count_cut", lambda self, requests: 0)  # no tokenizer of theirs is there
    patch.setattr(QuestionGenerator, "run", ask)
    patch.setattr(AnswerGenerator, "run", answer)


def read(self: Reader, requests: Sequence[Any]) -> list[Any]:
    """Names, in order; a reader called "deaf 3" gives nothing back to a question of a length that 3 divides."""
    results = []
    for question, context, *_ in requests:
        names = [(place[0], place.start()) for place in NAME.finditer(context)]
        if asked := re.search(r"« (.*) »", question):
            # A generated question names its answer, so that readers can give it back.
            names = [one for one in names if one[0] == asked[1]]
        if self.model.name.startswith("deaf") and len(question) % int(self.model.name[5:]) == 0:
            names = []
        results.append(
            [
                {
                    "text": text, "start": start, "end": start + len(text), "score": -0.1 * i,
                    "probability": round(0.9 - 0.1 * i, 5), "no_answer": 0.05,
                }
                for i, (text, start) in enumerate(names[: self.n_best])
            ]
        )  # fmt: skip
    return results


def ask(self: QuestionGenerator, requests: Sequence[Any]) -> list[Any]:
    results = []
    for title, context, start, end in requests:
        name = context[start:end]
        texts = [
            (f"who is the captain of {title or 'it'} « {name} »?", True),
            (f"Who is the captain of {title or 'it'} « {name} »", True),
            (f"who leads Richmond Football Club and wears number 9 « {name} »?", True),
            ("who is the captain of richmond football club", True),
            ("who is the", False),
        ]
        results.append([{"text": text, "score": -0.5 - i, "finished": end} for i, (text, end) in enumerate(texts)])
    return [result[: self.num_return_sequences] for result in results]


def answer(self: AnswerGenerator, requests: Sequence[Any]) -> list[Any]:
    results = []
    for _, context in requests:
        texts = [name.lower() for name in NAME.findall(context)] + ["trent cotchin", "Nobody Known", "the"]
        results.append([{"text": text, "score": -1.0 - i, "finished": True} for i, text in enumerate(dict.fromkeys(texts))])
    return results
