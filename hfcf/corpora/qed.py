"""QED: questions of Natural Questions on one paragraph, with an explanation of how the paragraph answers them.

- Files: `qed-train.jsonlines` and `qed-dev.jsonlines`.
- Context: `paragraph_text`, tokens joined by blanks, as Natural Questions has them. Title: `title_text`. The question has no
  question mark.
- Answers: every span of `original_nq_answers`. They are alternatives, one from each annotator. An alternative may be a list of
  several spans that answer the question together. `alternatives` has their numbers: [[0], [1, 2]] is one span, or two together.
- The explanation trains a categoriser of question changes (§4.2 of RGF). `question_references` has the noun phrases of the question
  that refer to something in the sentence. `sentence_references`, parallel to it, has their names there. Both are empty if
  `explanation_type` is not "single_sentence". A reference that the sentence only implies has null positions, an empty text and a
  `bridge`. A `bridge` is the preposition that would connect it to the sentence, and may be ""; it is null otherwise.
  `answer_references` has the spans that the annotators of QED took for the answer.
- Positions are code points with an exclusive end. (The release's README calls them inclusive; its texts show otherwise.) Positions
  of `question_references` are in the question, and all other positions are in the context. All positions are checked.
- Group: the title.
- Further extra columns: `selected_sentence`, the sentence that answers; `sentence_starts`; `url`.

One row: question "who got the first nobel prize in physics", answers {"text": ["Wilhelm Conrad Röntgen , of Germany", "Wilhelm
Conrad Röntgen"], "answer_start": [56, 56]}, alternatives [[0], [1]]. Its question_references is `[{"start": 8, "end": 40, "text":
"the first nobel prize in physics"}]`. Its sentence_references is `[{"start": 0, "end": 32, "text": "The first Nobel Prize in
Physics", "bridge": null}]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NotRequired

from datasets import List
from pydantic import StrictInt
from typing_extensions import TypedDict

from hfcf.core.schema import INT, TEXT
from hfcf.corpora.base import BadRow, Corpus, CorpusInfo, Fields, split_files
from hfcf.corpora.formats.answers import ALTERNATIVES, alternative_answers, check_places

SPAN = {"start": INT, "end": INT, "text": TEXT}
_PLACE = dict[str, Any]


class _Equality(TypedDict):
    question_reference: _PLACE
    sentence_reference: _PLACE


class _Answer(TypedDict):
    paragraph_reference: _PLACE


_RECORD = Fields(
    example_id=Any, title_text=str, question_text=str, paragraph_text=str, original_nq_answers=[[_PLACE]],
    sentence_starts=NotRequired[list[StrictInt] | None], url=NotRequired[str | None],
    annotation={
        "explanation_type": Literal["single_sentence", "multi_sentence", "none"],
        "referential_equalities": NotRequired[list[_Equality] | None],
        "answer": NotRequired[list[_Answer] | None],
        "selected_sentence": NotRequired[_PLACE | None],
    },
)  # fmt: skip


class QED(Corpus):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="qed",
        title="QED: explanations in question answering",
        paper="Lamm et al. (TACL 2021), QED: A Framework and Dataset for Explanations in Question Answering",
        citation="""@article{lamm-etal-2021-qed,
  title = {{QED}: A Framework and Dataset for Explanations in Question Answering},
  author = {Lamm, Matthew and Palomaki, Jennimaria and Alberti, Chris and Andor, Daniel and Choi, Eunsol and Soares, Livio Baldini
    and Collins, Michael},
  journal = {Transactions of the Association for Computational Linguistics},
  volume = {9},
  year = {2021}
}""",
        licence="cc-by-sa-3.0",
        splits={"train": 7_638, "validation": 1_355},
        task="qa",
        release="github.com/google-research-datasets/QED",
        layout="`qed-train.jsonlines`, `qed-dev.jsonlines`",
        notes="real questions, tokenised paragraphs; `question_references` and `sentence_references`; `alternatives`",
    )
    FILES = split_files("qed-{}.jsonlines", names=(("train", "train"), ("validation", "dev")))
    EXTRA: ClassVar = {
        "alternatives": ALTERNATIVES,
        "explanation_type": TEXT,
        "question_references": List(SPAN),
        "sentence_references": List({**SPAN, "bridge": TEXT}),
        "answer_references": List(SPAN),
        "selected_sentence": SPAN,
        "sentence_starts": List(INT),
        "url": TEXT,
    }

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        row["id"] = record.get("example_id")
        _RECORD.check(record)
        context, question = record["paragraph_text"], record["question_text"]
        row |= {"context": context, "question": question, "url": record.get("url")}
        row["title"] = row["group_id"] = record["title_text"]
        spans = [[span_of(span, context, "an answer") for span in spans] for spans in record["original_nq_answers"]]
        if any(span["start"] is None for alternative in spans for span in alternative):
            raise BadRow("an answer has no place in the paragraph")
        answers, row["alternatives"] = alternative_answers(
            [(span["start"], span["text"]) for span in alternative] for alternative in spans
        )
        row["answers"] = check_places(context, answers)
        row["sentence_starts"] = record.get("sentence_starts")
        row |= self._explanation(record["annotation"], question, context)

    def _explanation(self, annotation: Mapping[str, Any], question: str, context: str) -> dict[str, Any]:
        equalities, answers = (annotation.get(name) or [] for name in ("referential_equalities", "answer"))
        sentence = annotation.get("selected_sentence")
        return {
            "explanation_type": annotation["explanation_type"],
            "question_references": [
                span_of(equality["question_reference"], question, "a reference of the question") for equality in equalities
            ],
            "sentence_references": [
                {
                    **span_of(equality["sentence_reference"], context, "a reference of the sentence"),
                    "bridge": _bridge(equality["sentence_reference"]),
                }
                for equality in equalities
            ],
            "answer_references": [span_of(answer["paragraph_reference"], context, "an answer's reference") for answer in answers],
            "selected_sentence": span_of(sentence, context, "the selected sentence") if sentence else None,
        }


def span_of(span: dict[str, Any], text: str, what: str) -> dict[str, Any]:
    """Return a span of the release as {start, end, text}; missing places, −1 or null, are null."""
    start, end, string = span.get("start"), span.get("end"), span.get("string") or ""
    if start in (None, -1) and end in (None, -1) and not string:
        return {"start": None, "end": None, "text": ""}
    if type(start) is not int or type(end) is not int or start < 0 or text[start:end] != string:
        there = text[start:end] if type(start) is int and type(end) is int and start >= 0 else ""
        raise BadRow(f"{what} {string!r} is not at {start}–{end}, where the text has {there!r}")
    return {"start": start, "end": end, "text": string}


def _bridge(span: dict[str, Any]) -> str | None:
    bridge = span.get("bridge")
    return None if bridge is None or bridge is False else str(bridge)


BUILDER = QED
