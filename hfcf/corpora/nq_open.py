"""NQ-open: questions of Natural Questions with short answers and without passages, for open-domain question answering.

- Files: `NQ-open.train.jsonl`, `NQ-open.dev.jsonl`, on which papers report, and the split `efficientqa`, the dev set of the
  EfficientQA competition (`NQ-open.efficientqa.dev.1.1.jsonl`); in `data_dir` or its `nq_open/`.
- A row has no context, and its answers have no positions: `answers` is {"text": […], "answer_start": []}. The texts are
  alternatives.
- The release has no ids: rows are row-1, row-2 …. The group is a hash of question and answers, because row 1 of another file is
  another row.

One row: question "when was the last time anyone was on the moon", context "", answers {"text": ["14 December 1972 UTC", "December
1972"], "answer_start": []}.
"""

from __future__ import annotations

from typing import Any

from hfcf.corpora.base import Corpus, CorpusInfo, Fields, split_files
from hfcf.corpora.formats.answers import open_answers

_NAMES = (("train", "train"), ("validation", "dev"), ("efficientqa", "efficientqa.dev.1.1"))
_LINE = Fields(question=str, answer=[str])


class NQOpen(Corpus):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="nq_open",
        title="NQ-open: open-domain Natural Questions",
        paper="Lee, Chang and Toutanova (ACL 2019), Latent Retrieval for Weakly Supervised Open Domain Question Answering; the "
        "questions: Kwiatkowski et al. (TACL 2019), Natural Questions",
        citation="""@inproceedings{lee-etal-2019-latent,
  title = {Latent Retrieval for Weakly Supervised Open Domain Question Answering},
  author = {Lee, Kenton and Chang, Ming-Wei and Toutanova, Kristina},
  booktitle = {Proceedings of ACL},
  year = {2019}
}""",
        licence="cc-by-sa-3.0",
        hub_id="google-research-datasets/nq_open",
        splits={"train": 87_925, "validation": 3_610, "efficientqa": 1_800},
        task="qa",
        release="github.com/google-research-datasets/natural-questions (nq_open)",
        layout="`NQ-open.{train,dev,efficientqa.dev.1.1}.jsonl`, or the folder `nq_open/` with them",
        notes="no passages; the split `efficientqa`",
    )
    FILES = split_files("NQ-open.{}.jsonl", "nq_open/NQ-open.{}.jsonl", names=_NAMES)
    ONE_FORM = True

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        _LINE.check(record)
        row |= {"question": record["question"], "answers": open_answers(record["answer"], "answer")}


BUILDER = NQOpen
