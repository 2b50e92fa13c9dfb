"""BoolQ's contrast set: yes/no questions on a passage, and revisions by experts, mostly to change the answer.

- File: `boolq_perturbed.json`, in `data_dir` or its `BoolQ/`. Its first item is a header, not a row. The questions are of
  BoolQ's validation split.
- Two kinds of rows, `kind` "original" and "perturbed"; a perturbed question follows its original, whose id is its `original_id`.
  Not every perturbation changes the answer, and in the real file one perturbed question repeats its original.
- Answers: TRUE is "yes", FALSE "no". They are not spans of the context, so `answer_start` is empty.
- A perturbation without a question and an answer is left out and counted.
- Ids: the passage's number, from 1, and for a perturbation its number after it: "7", "7-1", "7-2". Group: the passage's title.
- Extra columns: `kind` and `original_id`.

One row: question "was chasing cars written for grey's anatomy", title "Chasing Cars", context "``Chasing Cars'' is a song by
Northern Irish alternative rock band Snow Patrol. …", answers {"text": ["no"], "answer_start": []}, kind "original", id and
original_id "1".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

from hfcf.core.schema import TEXT
from hfcf.corpora.base import BadRow, Corpus, CorpusInfo, Fields, Record, as_text, json_list, split_records
from hfcf.corpora.quoref_contrast import CITATION, PAPER

ANSWERS = {"TRUE": "yes", "FALSE": "no"}
_HEADER = "Gold Answer"
_PASSAGE = Fields(perturbed_questions=[dict[str, Any]])
_QUESTION = Fields(title=str, paragraph=str, question=str, answer=Any)


class BoolQContrast(Corpus):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="boolq_contrast",
        title="BoolQ's contrast set",
        paper=f"{PAPER}; the originals: Clark et al. (NAACL 2019), "
        "BoolQ: Exploring the Surprising Difficulty of Natural Yes/No Questions",
        citation=CITATION
        + """

@inproceedings{clark-etal-2019-boolq,
  title = {{B}ool{Q}: Exploring the Surprising Difficulty of Natural Yes/No Questions},
  author = {Clark, Christopher and Lee, Kenton and Chang, Ming-Wei and Kwiatkowski, Tom and Collins, Michael and
    Toutanova, Kristina},
  booktitle = {Proceedings of NAACL-HLT},
  year = {2019}
}""",
        licence="cc-by-sa-3.0",  # BoolQ's; the repository of the contrast sets names none
        splits={"validation": 404},  # 69 originals and 335 perturbed questions
        task="qa",
        release="github.com/allenai/contrast-sets",
        layout="`BoolQ/boolq_perturbed.json`",
        notes="yes/no answers, which are not spans; pairs share `original_id`",
    )
    FILES = (("validation", "BoolQ/boolq_perturbed.json"), ("validation", "boolq_perturbed.json"))
    ONE_FORM = True
    EXTRA: ClassVar = {"kind": TEXT, "original_id": TEXT}

    def records(self, path: Path) -> Iterator[Record]:
        items = json_list(path, key="data")
        passages = (item for item in items if not (item.number == 1 and item.value.get("answer") == _HEADER))
        number = count(1)
        return split_records(passages, lambda item: _questions(item, str(next(number))))

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        row |= {name: record[name] for name in ("id", "original_id", "kind")}
        _QUESTION.check(record)
        if record["kind"] == "perturbed" and record["question"] == record["answer"] == "":
            self.leave_out(row, "perturbed questions without text were left out")
            return
        row |= {"context": record["paragraph"], "question": record["question"]}
        row["title"] = row["group_id"] = as_text(record["title"])
        if (answer := as_text(record["answer"])) not in ANSWERS:
            raise BadRow(f"the answer must be TRUE or FALSE, got {answer!r}")
        row["answers"] = {"text": [ANSWERS[answer]], "answer_start": []}


def _questions(item: Mapping[str, Any], passage: str) -> Iterator[dict[str, Any]]:
    """Yield a passage's original question, and its perturbed questions."""
    _PASSAGE.check(item)
    yield {**item, "id": passage, "original_id": passage, "kind": "original"}
    shared = {name: value for name, value in item.items() if name not in ("question", "answer")}
    for i, question in enumerate(item["perturbed_questions"], 1):
        own = {"question": question["perturbed_q"]} if "perturbed_q" in question else {}
        yield {**shared, **question, **own, "id": f"{passage}-{i}", "original_id": passage, "kind": "perturbed"}


BUILDER = BoolQContrast
