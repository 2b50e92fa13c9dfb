"""Adversarial FEVER: claims that the "breakers" of FEVER 2.0 wrote against FEVER's systems, with evidence text.

- Paper: Thorne, Vlachos, Cocarascu, Christodoulopoulos and Mittal, "The FEVER2.0 Shared Task", FEVER workshop 2019; with
  text in the baselines of Schuster, Fisch and Barzilay, "Get Your Vitamin C!", NAACL 2021.
- Licence: CC BY-SA 3.0 (Wikipedia text).
- Splits: test 766 rows, the SUPPORTS and REFUTES claims of FEVER 2.0's development set.
- Labels: SUPPORTS and REFUTES, as ours.
- Hub id: none; fever/fever v2.0 has the claims without text.
- Files: `fever_adversarial/test.jsonl`, of VitaminC's `fever_adversarial.zip`; `data_dir` may be that folder or the one
  above.
- One row per line, as CrossAug evaluates it: the file has one line per evidence sentence, so claims repeat, and a claim's
  sentences are not merged into one row. A row's id is its claim's id and the number of the line among that claim's:
  500009-1, 500009-2.
- Group: the claim's id.
- Extra column: `page`, the Wikipedia page. The piece's title stays empty, as in `vitaminc`, because the models that are
  evaluated on these lines read no title.

The text stays tokenised as released, with brackets for -LRB- ….

One row: claim "There is not a natural element that goes by the name of Moscovium .", evidence "Moscovium is a superheavy
synthetic element with symbol Mc and atomic number 115 .", label SUPPORTS, id "500009-1", page "Moscovium".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from hfcf.core.schema import TEXT
from hfcf.corpora.base import Corpus, CorpusInfo, Files, as_text, need, text_of
from hfcf.corpora.formats.read import Record, json_lines
from hfcf.tasks.verification import REFUTES, SUPPORTS
from hfcf.text.normalise import unbracket

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
    licence="cc-by-sa-3.0",
    splits={"test": 766},
    labels={SUPPORTS: SUPPORTS, REFUTES: REFUTES},
    release="with the baselines of VitaminC (tals.github.io)",
    layout="`fever_adversarial/test.jsonl`",
    notes="a row for each evidence sentence, as CrossAug evaluates it",
)


class FeverAdversarial(Corpus):
    """Release files → rows."""

    INFO = INFO
    FILES = (("test", "fever_adversarial/test.jsonl"), ("test", "test.jsonl"))
    EXTRA: ClassVar = {"page": TEXT}

    @classmethod
    def find(cls, data_dir: Path, name: str) -> Files:
        return {split: paths[:1] for split, paths in super().find(data_dir, name).items()}

    def start(self, files: Sequence[Path]) -> None:
        self._lines: Counter[str] = Counter()

    def records(self, path: Path) -> Iterator[Record]:
        return json_lines(path)

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        need(record, "id", "label", "claim", "evidence", "page")
        claim = str(as_text(record["id"]))
        self._lines[claim] += 1
        row |= {"id": f"{claim}-{self._lines[claim]}", "group_id": claim, "claim": record["claim"], "label": record["label"]}
        row["claim"] = unbracket(text_of(record, "claim"))
        row["evidence"] = [{"title": "", "text": unbracket(text_of(record, "evidence"))}]
        row["page"] = as_text(unbracket(text_of(record, "page").replace("-COLON-", ":").replace("_", " ")))
        row["label"] = self.label(record["label"])


BUILDER = FeverAdversarial
