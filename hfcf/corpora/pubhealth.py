"""PubHealth: claims about public health with journalists' explanations.

- Rows labelled mixture or unproven, and rows without a label, are left out and counted, as RACE keeps true and false only.
- Files: `{train,dev,test}.tsv` in data_dir or in its folder PUBHEALTH/, tab-separated and quoted as CSV; missing values are empty
  or "nan". The release is said to have a few broken rows (too few fields, a stray label). They raise an error that names the line,
  and on_error="reject" keeps them as rejected rows. This loader was written from descriptions of the files.
- Evidence: the explanation, split into its sentences by `sentences.py` (as in RACE, which does not name its splitter); no titles.
- Group: rows that share a claim or the whole explanation.

One row (made up): claim "Cold water cures the flu.", evidence [title "", text "No study found an effect of cold water on the
flu."], label REFUTES.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hfcf.corpora.base import Corpus, CorpusInfo, Fields, Record, csv_rows, split_files
from hfcf.corpora.formats.wikipedia import split_sentences
from hfcf.tasks.verification import REFUTES, SUPPORTS

_LEFT_OUT = {label: f"rows labelled {label} were left out" for label in ("mixture", "unproven")}
_LEFT_OUT |= dict.fromkeys(("", "nan"), "rows without a label were left out")
_ROW = Fields(claim_id=str, claim=str, explanation=str, label=str)


class PubHealth(Corpus):
    """Release files → rows."""

    ID = "claim_id"
    INFO = CorpusInfo(
        name="pubhealth",
        title="PubHealth: explainable fact checking of public health claims",
        paper="Kotonya and Toni (EMNLP 2020), Explainable Automated Fact-Checking for Public Health Claims",
        citation="""@inproceedings{kotonya-toni-2020-explainable,
  title = {Explainable Automated Fact-Checking for Public Health Claims},
  author = {Kotonya, Neema and Toni, Francesca},
  booktitle = {Proceedings of EMNLP 2020},
  year = {2020}
}""",
        licence="mit",
        hub_id="ImperialCollegeLondon/health_fact",
        splits={"train": 9_832, "validation": 1_225, "test": 1_235},
        labels={"true": SUPPORTS, "false": REFUTES},
        release="github.com/neemakot/Health-Fact-Checking",
        layout="`PUBHEALTH/{train,dev,test}.tsv`",
        notes='true and false only; not checked against the real files, which may need `on_error="reject"`',
    )
    FILES = split_files("{}.tsv", "PUBHEALTH/{}.tsv")
    ONE_FORM = True
    GROUPS_BY_KEYS = True

    def records(self, path: Path) -> Iterator[Record]:
        return csv_rows(path, delimiter="\t")

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        _ROW.check(record)
        row |= {"id": record["claim_id"], "claim": record["claim"].strip(), "label": record["label"].strip()}
        if row["label"] in _LEFT_OUT:
            self.leave_out(row, _LEFT_OUT[row["label"]])
            return
        explanation = record["explanation"].strip()
        explanation = "" if explanation == "nan" else explanation
        row["keys"] = [("claim", row["claim"]), ("explanation", explanation)]
        row["evidence"] = [{"title": "", "text": sentence} for sentence in split_sentences(explanation)]
        row["label"] = self.label(row["label"])


BUILDER = PubHealth
