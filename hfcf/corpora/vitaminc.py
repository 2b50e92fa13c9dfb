"""VitaminC: claims with one evidence sentence, in sets of near-identical contrasts.

- Files: `train.jsonl`, `dev.jsonl`, `test.jsonl`. Or the two parts of the test split in their own folders,
  `vitaminc_real/test.jsonl` (34,481 rows) and `vitaminc_synthetic/test.jsonl` (20,716). `data_dir` may be either folder or the
  folder above.
- Group: `case_id`, the contrasts made from one revision.
- Extra column: `page`, the Wikipedia page. The title stays empty, because the authors' models read no title and the claims were
  written for the sentence alone.
- The text stays tokenised as released (with brackets for -LRB- …); a few real sentences have U+FFFD where the release lost a
  character.

One row: claim "Westlife made under 23.5 million sales in the UK .", evidence "According to the British Phonographic Industry (
BPI ) , Westlife has been certified for 13 million albums …", label REFUTES, page "Westlife".
"""

from __future__ import annotations

from typing import Any, ClassVar

from hfcf.core.schema import TEXT
from hfcf.corpora.base import Corpus, CorpusInfo, Fields, split_files
from hfcf.tasks.verification import LABELS
from hfcf.text.normalise import unbracket

_ROW = Fields(unique_id=Any, case_id=str, label=str, claim=str, evidence=str, page=str)


class VitaminC(Corpus):
    """Release files → rows."""

    ID = "unique_id"
    INFO = CorpusInfo(
        name="vitaminc",
        title="VitaminC: robust fact verification with contrastive evidence",
        paper="Schuster, Fisch and Barzilay (NAACL 2021), Get Your Vitamin C! Robust Fact Verification with Contrastive Evidence",
        citation="""@inproceedings{schuster-etal-2021-get,
  title = {Get Your Vitamin C! Robust Fact Verification with Contrastive Evidence},
  author = {Schuster, Tal and Fisch, Adam and Barzilay, Regina},
  booktitle = {Proceedings of NAACL-HLT 2021},
  year = {2021}
}""",
        licence="cc-by-sa-3.0",  # Wikipedia text
        hub_id="tals/vitaminc",
        splits={"train": 370_653, "validation": 63_054, "test": 55_197},
        labels={label: label for label in LABELS},
        release="github.com/TalSchuster/VitaminC",
        layout="`train.jsonl`, `dev.jsonl`, `test.jsonl`",
        notes="`case_id` is the group",
    )
    FILES = (*split_files("{}.jsonl"), ("test", "vitaminc_real/test.jsonl"), ("test", "vitaminc_synthetic/test.jsonl"))
    EXTRA: ClassVar = {"page": TEXT}

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        _ROW.check(record)
        row |= {"id": record["unique_id"], "group_id": record["case_id"], "label": record["label"]}
        row |= {field: unbracket(record[field]) for field in ("claim", "page")}
        row["evidence"] = [{"title": "", "text": unbracket(record["evidence"])}]
        row["label"] = self.label(record["label"])


BUILDER = VitaminC
