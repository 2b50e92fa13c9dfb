"""AmbigQA (AmbigNQ): questions of NQ-open; ambiguous questions are rewritten once for each of their answers.

- Files: `train_light.json` and `dev_light.json` of the light version, in `data_dir` or its `ambignq_light/`. Or `train.json` and
  `dev.json` of the full version, in `data_dir` or its `ambignq/`. The test split is not public.
- A row for each disambiguated question of an annotation `multipleQAs`. The annotations `singleAnswer` of a question are one row:
  the question itself, with the answers of all these annotators. If annotators disagree whether a question is ambiguous, it has rows
  of both kinds. Two annotators who disambiguate it may have written the same question; both rows stay.
- A pair, as the paper of RGF takes it (§6.1): two rows with the same `group_id` and `annotation`.
- A row has no context, and its answers have no positions. The texts are alternatives.
- Group: the id of the question in Natural Questions. Ids: that id, or with "-<annotation>-<question>" after it.
- Extra columns: `original_question`; `ambiguous`, whether the row is a disambiguated question; `annotation`, the number of its
  annotation from 0, null for a row of `singleAnswer`.

One row: question "When did the Simpsons first air on television as an animated short on the Tracey Ullman Show?", answers {"text":
["April 19, 1987"], "answer_start": []}, original_question "When did the simpsons first air on television?", ambiguous true,
annotation 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from datasets import Value

from hfcf.core.schema import INT, TEXT
from hfcf.corpora.base import BadRow, Corpus, CorpusInfo, Fields, Record, as_text, json_list, split_files, split_records
from hfcf.corpora.formats.answers import open_answers

_NAMES = (("train", "train"), ("validation", "dev"))
_RECORD = Fields(id=Any, question=str, annotations=[{"type": Literal["singleAnswer", "multipleQAs"]}])
_ANNOTATIONS = {
    "singleAnswer": Fields(answer=[str]),
    "multipleQAs": Fields(qaPairs=[{"question": str, "answer": [str]}]),
}


class AmbigQA(Corpus):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="ambigqa",
        title="AmbigQA: answering ambiguous open-domain questions",
        paper="Min et al. (EMNLP 2020), AmbigQA: Answering Ambiguous Open-domain Questions",
        citation="""@inproceedings{min-etal-2020-ambigqa,
  title = {{A}mbig{QA}: Answering Ambiguous Open-domain Questions},
  author = {Min, Sewon and Michael, Julian and Hajishirzi, Hannaneh and Zettlemoyer, Luke},
  booktitle = {Proceedings of EMNLP},
  year = {2020}
}""",
        licence="cc-by-sa-3.0",
        hub_id="sewon/ambig_qa",
        splits={"train": 10_036, "validation": 2_002},  # questions before they are disambiguated
        task="qa",
        release="nlp.cs.washington.edu/ambigqa",
        layout="`train_light.json`, `dev_light.json`, or the full `train.json`, `dev.json`",
        notes="no passages; a row for each disambiguated question; not checked against the real files",
    )
    FILES = split_files("{}_light.json", "ambignq_light/{}_light.json", "{}.json", "ambignq/{}.json", names=_NAMES)
    ONE_FORM = True
    EXTRA: ClassVar = {"original_question": TEXT, "ambiguous": Value("bool"), "annotation": INT}

    def records(self, path: Path) -> Iterator[Record]:
        return split_records(json_list(path), lambda record: ({**record, **fields} for fields in _questions(record)))

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        name = str(as_text(record["id"]))
        row |= {"id": name + record["suffix"], "group_id": name, "original_question": as_text(record["question"])}
        row |= {"ambiguous": record["annotation"] is not None, "annotation": record["annotation"]}
        row |= {"question": record["asked"], "answers": record["answers"]}


def _questions(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List the questions that a record asks, each with its answers, its annotation and the end of its id."""
    _RECORD.check(record)
    if not record["annotations"]:
        raise BadRow("there are no annotations")
    single: list[str] = []
    pairs: list[dict[str, Any]] = []
    for i, annotation in enumerate(record["annotations"]):
        _ANNOTATIONS[annotation["type"]].check(annotation)
        single += annotation.get("answer", ())
        for k, pair in enumerate(annotation.get("qaPairs", ())):
            answers = open_answers(pair["answer"], "answer")
            pairs.append({"asked": pair["question"], "answers": answers, "annotation": i, "suffix": f"-{i}-{k}"})
    answers = open_answers(single, "answer")
    return [*([{"asked": record["question"], "answers": answers, "annotation": None, "suffix": ""}] if single else []), *pairs]


BUILDER = AmbigQA
