"""SciERC: entities and their relations in abstracts of artificial-intelligence papers.

- Splits: 350, 50 and 100 abstracts. COMPARE and CONJUNCTION have no direction; their first argument is still the head.
- Files: `{train,dev,test}.json` in DyGIE's format (`hfcf.corpora.formats.dygie`), or the same in `processed_data/json/`, as in
  the release; `data_dir` may also be the folder above `scierc/`.
- One row for each relation: a sentence with three relations is three rows. Its id is the document, the sentence and the number in
  it, counted from 0: ICCV_2003_158_abs-0-2. Group: the document (`doc_key`).
- Types: Task, Method, Metric, Material, OtherScientificTerm, Generic.
- Extra columns: `text`, the tokens joined by spaces, and `offsets`.

One row: tokens "The algorithm utilizes both spatial and temporal intensity variation as cues …", head "cues" (Generic), tail
"algorithm" (Generic), label "USED-FOR".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from hfcf.corpora.base import Corpus, CorpusInfo, Record, split_files
from hfcf.corpora.formats import dygie
from hfcf.corpora.formats.tokens import EXTRA

_LABELS = ("USED-FOR", "FEATURE-OF", "HYPONYM-OF", "PART-OF", "EVALUATE-FOR", "COMPARE", "CONJUNCTION")


class SciERC(Corpus):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="scierc",
        title="SciERC: relations in scientific abstracts",
        paper="Luan et al. (EMNLP 2018), Multi-Task Identification of Entities, Relations, and Coreference for Scientific "
        "Knowledge Graph Construction",
        citation="""@inproceedings{luan-etal-2018-multi,
  title = {Multi-Task Identification of Entities, Relations, and Coreference for Scientific Knowledge Graph Construction},
  author = {Luan, Yi and He, Luheng and Ostendorf, Mari and Hajishirzi, Hannaneh},
  booktitle = {Proceedings of EMNLP},
  year = {2018}
}""",
        licence="unknown",  # the release names none
        splits={"train": 3_219, "validation": 455, "test": 974},
        labels={label: label for label in _LABELS},
        task="relation",
        release="nlp.cs.washington.edu/sciIE",
        layout="`{train,dev,test}.json` in DyGIE's format",
        notes="a row for each relation; the group is the abstract",
    )
    FILES = split_files("{}.json", "processed_data/json/{}.json", "scierc/{}.json")
    ONE_FORM = True
    EXTRA: ClassVar = EXTRA

    def records(self, path: Path) -> Iterator[Record]:
        return dygie.relations(path)

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        row["label"] = dygie.fill(row, record)
        row["label"] = self.label(row["label"])


BUILDER = SciERC
