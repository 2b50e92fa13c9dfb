"""FEVER Symmetric: FEVER pairs whose claim and evidence were each changed, so that neither alone tells the label.

- Paper: Schuster, Shah, Yeo, Filizzola, Santus and Barzilay, "Towards Debiasing Fact Verification Models",
  EMNLP-IJCNLP 2019.
- Licence: CC BY-SA 3.0 (Wikipedia text, `DATA_LICENSE`).
- Splits: validation 708 and test 712 rows (version 0.2); generated 717 and full 956 rows (version 0.1).
- Labels: SUPPORTS and REFUTES, as ours.
- Hub id: none known.
- Files, of which the name says the version, and so the split:
  - version 0.2, `symmetric_v0.2/fever_symmetric_{dev,test}.jsonl`: the splits "validation" and "test". The evidence is
    the field `evidence`; sentence1, sentence2, gold_label and evid repeat the others and are not read.
  - version 0.1, `symmetric_v0.1/fever_symmetric_{generated,full}.jsonl`: the splits "generated" and "full". The
    evidence is the field `evidence_sentence`. "generated" is what the paper and CrossAug evaluate on; "full" also has
    the FEVER pairs that it was made from.
  `data_dir` may be the repository or one version's folder. The versions, and the splits of version 0.1, share rows:
  evaluate on one of them.
- Group: rows that share a claim or an evidence text belong together, as do the rows made from one FEVER claim (an id is
  FEVER's, with 0000002, 0000003 or 0000004 after it in a row that was made). The group's name is that FEVER id.

The text stays tokenised as released, with brackets for -LRB- …; the release has no page names, so titles are empty.

One row: claim "Savages was exclusively a German film .", evidence "Savages is a 2012 German crime thriller film directed
by Oliver Stone .", label SUPPORTS, id "2190280000002", group "219028".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hfcf.corpora.base import Corpus, CorpusInfo, Files, as_text, need, text_of
from hfcf.corpora.formats.read import Record, json_lines
from hfcf.tasks.verification import REFUTES, SUPPORTS
from hfcf.text.normalise import unbracket

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
    licence="cc-by-sa-3.0",
    splits={"validation": 708, "test": 712, "generated": 717, "full": 956},
    labels={SUPPORTS: SUPPORTS, REFUTES: REFUTES},
    release="github.com/TalSchuster/FeverSymmetric",
    layout="`symmetric_v0.1/`, `symmetric_v0.2/`",
    notes="splits `generated` and `full` are v0.1, `validation` and `test` v0.2; they share rows",
)

_NAMES = (
    ("validation", "symmetric_v0.2/", "fever_symmetric_dev.jsonl"),
    ("test", "symmetric_v0.2/", "fever_symmetric_test.jsonl"),
    ("generated", "symmetric_v0.1/", "fever_symmetric_generated.jsonl"),
    ("full", "symmetric_v0.1/", "fever_symmetric_full.jsonl"),
)
_MADE = re.compile("0{6}[234]$")


class FeverSymmetric(Corpus):
    """Release files → rows."""

    INFO = INFO
    FILES = (*((split, folder + file) for split, folder, file in _NAMES), *((split, file) for split, _, file in _NAMES))

    @classmethod
    def find(cls, data_dir: Path, name: str) -> Files:
        return {split: paths[:1] for split, paths in super().find(data_dir, name).items()}

    def records(self, path: Path) -> Iterator[Record]:
        return json_lines(path)

    def groups_by_keys(self) -> bool:
        return True

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        field = "evidence_sentence" if "evidence_sentence" in record else "evidence"
        need(record, "id", "label", "claim", field)
        row |= {"id": record["id"], "claim": record["claim"], "label": record["label"]}
        source = _MADE.sub("", str(as_text(record["id"])))
        text = text_of(record, field)
        row |= {"group_id": source, "claim": unbracket(text_of(record, "claim"))}
        row["evidence"] = [{"title": "", "text": unbracket(text)}]
        row["keys"] = [("fever", source), ("claim", record["claim"]), ("evidence", text)]
        row["label"] = self.label(record["label"])


BUILDER = FeverSymmetric
