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

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

from hfcf.core.schema import TEXT
from hfcf.corpora.base import BadRow, Corpus, CorpusInfo, Record, as_text, is_list_of, json_list, need, text_of
from hfcf.corpora.quoref_contrast import CITATION, PAPER
from hfcf.text.check import kind

ANSWERS = {"TRUE": "yes", "FALSE": "no"}
_HEADER = "Gold Answer"


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
        number = count(1)
        for item in json_list(path, key="data"):
            if item.unreadable:
                yield item
            elif not (item.number == 1 and item.value.get("answer") == _HEADER):
                passage = str(next(number))
                yield Record("item", item.number, {**item.value, "id": passage, "original_id": passage, "kind": "original"})
                perturbed = item.value.get("perturbed_questions")
                if not is_list_of(perturbed, dict):
                    why = f"{item.place}: perturbed_questions is {kind(perturbed)}, not a list of {{perturbed_q, answer}}"
                    yield Record("item", item.number, unreadable=why)
                    continue
                for i, question in enumerate(perturbed, 1):
                    shared = {name: value for name, value in item.value.items() if name not in ("question", "answer")}
                    own = {"question": question["perturbed_q"]} if "perturbed_q" in question else {}
                    own |= {"id": f"{passage}-{i}", "original_id": passage, "kind": "perturbed"}
                    yield Record("item", item.number, {**shared, **question, **own})

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        row |= {name: record[name] for name in ("id", "original_id", "kind")}
        need(record, "title", "paragraph", "question", "answer")
        if record["kind"] == "perturbed" and record["question"] == record["answer"] == "":
            self.leave_out(row, "perturbed questions without text were left out")
            return
        row |= {"context": text_of(record, "paragraph"), "question": text_of(record, "question")}
        row["title"] = row["group_id"] = as_text(text_of(record, "title"))
        if (answer := as_text(record["answer"])) not in ANSWERS:
            raise BadRow(f"the answer must be TRUE or FALSE, got {answer!r}")
        row["answers"] = {"text": [ANSWERS[answer]], "answer_start": []}


BUILDER = BoolQContrast
