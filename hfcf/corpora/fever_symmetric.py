"""FEVER Symmetric: FEVER pairs whose claim and evidence were each changed, so that neither alone reveals the label.

- Files, whose names say the version, and so the split; `data_dir` may be the repository or one version's folder:
  - version 0.2, `symmetric_v0.2/fever_symmetric_{dev,test}.jsonl`: the splits "validation" and "test". The evidence is the field
    `evidence`; sentence1, sentence2, gold_label and evid repeat other fields and are not read.
  - version 0.1, `symmetric_v0.1/fever_symmetric_{generated,full}.jsonl`: the splits "generated" and "full". The evidence is the
    field `evidence_sentence`. The paper and CrossAug evaluate on "generated"; "full" also has the original FEVER pairs.
- The versions, and the splits of version 0.1, share rows: evaluate on a single one of them.
- Group: rows that share a claim or an evidence text, and rows made from one FEVER claim. An id is FEVER's, with 0000002, 0000003
  or 0000004 after it in a generated row; the FEVER id names the group.
- The text stays tokenised as released, with brackets for -LRB- …; the release has no page names, so titles are empty.

One row: claim "Savages was exclusively a German film .", evidence "Savages is a 2012 German crime thriller film directed by
Oliver Stone .", label SUPPORTS, id "2190280000002", group "219028".
"""

from __future__ import annotations

import re
from typing import Any

from hfcf.corpora.base import Corpus, CorpusInfo, Fields, as_text
from hfcf.tasks.verification import REFUTES, SUPPORTS
from hfcf.text.normalise import unbracket

_NAMES = (("validation", "2", "dev"), ("test", "2", "test"), ("generated", "1", "generated"), ("full", "1", "full"))
_GENERATED = re.compile("0{6}[234]$")
_ROWS = {field: Fields(id=Any, label=str, claim=str, **{field: str}) for field in ("evidence_sentence", "evidence")}


class FeverSymmetric(Corpus):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="fever_symmetric",
        title="FEVER Symmetric: pairs that neither the claim nor the evidence alone gives away",
        paper="Schuster et al. (EMNLP-IJCNLP 2019), Towards Debiasing Fact Verification Models",
        citation="""@inproceedings{schuster-etal-2019-towards,
  title = {Towards Debiasing Fact Verification Models},
  author = {Schuster, Tal and Shah, Darsh J and Yeo, Yun Jie Serene and Filizzola, Daniel and Santus, Enrico and
    Barzilay, Regina},
  booktitle = {Proceedings of EMNLP-IJCNLP 2019},
  year = {2019}
}""",
        licence="cc-by-sa-3.0",  # Wikipedia text (`DATA_LICENSE`)
        splits={"validation": 708, "test": 712, "generated": 717, "full": 956},
        labels={SUPPORTS: SUPPORTS, REFUTES: REFUTES},
        release="github.com/TalSchuster/FeverSymmetric",
        layout="`symmetric_v0.1/`, `symmetric_v0.2/`",
        notes="splits `generated` and `full` are v0.1, `validation` and `test` v0.2; they share rows",
    )
    FILES = (
        *((split, f"symmetric_v0.{version}/fever_symmetric_{name}.jsonl") for split, version, name in _NAMES),
        *((split, f"fever_symmetric_{name}.jsonl") for split, _, name in _NAMES),
    )
    ONE_FORM = True
    GROUPS_BY_KEYS = True

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        field = "evidence_sentence" if "evidence_sentence" in record else "evidence"
        row["id"] = record.get("id")
        _ROWS[field].check(record)
        source = _GENERATED.sub("", str(as_text(record["id"])))
        text = record[field]
        row |= {"group_id": source, "claim": unbracket(record["claim"])}
        row["evidence"] = [{"title": "", "text": unbracket(text)}]
        row["keys"] = [("fever", source), ("claim", record["claim"]), ("evidence", text)]
        row["label"] = self.label(record["label"])


BUILDER = FeverSymmetric
