"""Adversarial FEVER: claims that the "breakers" of FEVER 2.0 wrote against FEVER's systems, with evidence text.

- Split: test, the SUPPORTS and REFUTES claims of FEVER 2.0's development set.
- Files: `fever_adversarial/test.jsonl`, of `fever_adversarial.zip` with the baselines of VitaminC (Schuster, Fisch and Barzilay,
  "Get Your Vitamin C!", NAACL 2021); `data_dir` may be that folder or the one above.
- One row for each line, as CrossAug evaluates it: one line for each evidence sentence, so claims repeat. Id: the claim's id and
  the number of the line among the claim's lines: 500009-1, 500009-2. Group: the claim's id.
- Extra column: `page`, the Wikipedia page. The title stays empty, as in `vitaminc`, because the evaluated models read no title.
- The text stays tokenised as released, with brackets for -LRB- ….

One row: claim "There is not a natural element that goes by the name of Moscovium .", evidence "Moscovium is a superheavy
synthetic element with symbol Mc and atomic number 115 .", label SUPPORTS, id "500009-1", page "Moscovium".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from hfcf.core.schema import TEXT
from hfcf.corpora.base import Corpus, CorpusInfo, Fields, as_text
from hfcf.corpora.formats.wikipedia import page_title
from hfcf.tasks.verification import REFUTES, SUPPORTS
from hfcf.text.normalise import unbracket

_ROW = Fields(id=Any, label=str, claim=str, evidence=str, page=str)


class FeverAdversarial(Corpus):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="fever_adversarial",
        title="Adversarial FEVER: claims of the FEVER 2.0 breakers, with evidence text",
        paper="Thorne et al. (FEVER workshop 2019), The FEVER2.0 Shared Task",
        citation="""@inproceedings{thorne-etal-2019-fever2,
  title = {The {FEVER}2.0 Shared Task},
  author = {Thorne, James and Vlachos, Andreas and Cocarascu, Oana and Christodoulopoulos, Christos and Mittal, Arpit},
  booktitle = {Proceedings of the Second Workshop on Fact Extraction and VERification (FEVER)},
  year = {2019}
}""",
        licence="cc-by-sa-3.0",  # Wikipedia text
        splits={"test": 766},
        labels={SUPPORTS: SUPPORTS, REFUTES: REFUTES},
        release="with the baselines of VitaminC (tals.github.io)",
        layout="`fever_adversarial/test.jsonl`",
        notes="a row for each evidence sentence, as CrossAug evaluates it",
    )
    FILES = (("test", "fever_adversarial/test.jsonl"), ("test", "test.jsonl"))
    ONE_FORM = True
    EXTRA: ClassVar = {"page": TEXT}

    def start(self, files: Sequence[Path]) -> None:
        self._lines: Counter[str] = Counter()

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        _ROW.check(record)
        claim = str(as_text(record["id"]))
        self._lines[claim] += 1
        row |= {"id": f"{claim}-{self._lines[claim]}", "group_id": claim, "label": record["label"]}
        row["claim"] = unbracket(record["claim"])
        row["evidence"] = [{"title": "", "text": unbracket(record["evidence"])}]
        row["page"] = as_text(page_title(record["page"]))
        row["label"] = self.label(record["label"])


BUILDER = FeverAdversarial
