"""HealthVer: claims about COVID-19 against passages of the scientific literature.

- Files: `data/healthver_{train,dev,test}.csv`, or the same in data_dir.
- Evidence: the passage, split into its sentences by `sentences.py` (as in RACE, which does not name its splitter); no titles.
- Id: the file and the row's number in it, dev-1, dev-2 …, because the files' `id` numbers a passage.
- Group: `topic_ip`, the question with which claims and passages were searched; topics that share a passage are one group.
- Extra column: `question`.

One row: claim "The CORONAVIRUS is not of natural origin", evidence [title "", text "Covid19 infection began in Wuhan (Hubei,
China) in December, 2019."], label NOT ENOUGH INFO, question "what is the origin of COVID-19".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from hfcf.core.schema import TEXT
from hfcf.corpora.base import Corpus, CorpusInfo, Fields, Record, csv_rows, split_files
from hfcf.corpora.formats.wikipedia import split_sentences
from hfcf.tasks.verification import NOT_ENOUGH_INFO, REFUTES, SUPPORTS

_ROW = Fields(id=str, evidence=str, claim=str, label=str, topic_ip=str, question=str)


class HealthVer(Corpus):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="healthver",
        title="HealthVer: evidence-based fact checking of health-related claims",
        paper="Sarrouti et al. (Findings of EMNLP 2021), Evidence-based Fact-Checking of Health-related Claims",
        citation="""@inproceedings{sarrouti-etal-2021-evidence-based,
  title = {Evidence-based Fact-Checking of Health-related Claims},
  author = {Sarrouti, Mourad and Ben Abacha, Asma and Mrabet, Yassine and Demner-Fushman, Dina},
  booktitle = {Findings of the Association for Computational Linguistics: EMNLP 2021},
  year = {2021}
}""",
        licence="unknown",  # not stated; the Hub's dwadden/healthver_entailment is a converted form
        splits={"train": 10_590, "validation": 1_917, "test": 1_823},
        labels={"Supports": SUPPORTS, "Refutes": REFUTES, "Neutral": NOT_ENOUGH_INFO},
        release="github.com/sarrouti/HealthVer",
        layout="`data/healthver_{train,dev,test}.csv`",
        notes="evidence split into sentences",
    )
    FILES = split_files("data/healthver_{}.csv", "healthver_{}.csv")
    ONE_FORM = True
    GROUPS_BY_KEYS = True
    EXTRA: ClassVar = {"question": TEXT}

    def records(self, path: Path) -> Iterator[Record]:
        for i, record in enumerate(csv_rows(path), 1):
            record.value["row"] = f"{path.stem.removeprefix('healthver_')}-{i}"
            yield record

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        row["id"] = record["row"]
        _ROW.check(record)
        row |= {"claim": record["claim"].strip(), "label": record["label"], "question": record["question"]}
        passage = record["evidence"].strip()
        row["keys"] = [("topic", record["topic_ip"]), ("passage", passage)]
        row["evidence"] = [{"title": "", "text": sentence} for sentence in split_sentences(passage)]
        row["label"] = self.label(record["label"])


BUILDER = HealthVer
