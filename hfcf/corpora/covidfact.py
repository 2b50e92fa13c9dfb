"""COVID-Fact: claims of a COVID-19 forum with evidence sentences, and automatic counter-claims.

- Split: full, one undivided file ("the full dataset" of the release). The authors' train, dev and test (folder RTE-covidfact, in
  another form) are parts of it, so it is not a training split.
- A refuted claim was made from the supported one before it, by replacing its salient words, and has the same evidence.
- Evidence: one piece for each sentence, untitled. Id: covidfact-<line>, because the release has none.
- Group: rows that share `gold_source` (a claim and its counter-claims do) or the whole evidence.
- Extra columns: `gold_source`, the page of the evidence, and `flair`, the forum's category.

One row: claim "Measuring chs-cov-2 neutralizing antibody activity using pseudotyped and chimeric viruses", evidence "While each
surrogate virus exhibited subtle differences in …", "Here, we describe a collection of approaches …", label REFUTES, flair
"Academic Report", id "covidfact-2", group "covidfact-1".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from hfcf.core.schema import TEXT
from hfcf.corpora.base import Corpus, CorpusInfo, Fields, Record, as_text, json_lines
from hfcf.tasks.verification import REFUTES, SUPPORTS

_ROW = Fields(claim=str, label=str, evidence=[str], gold_source=str, flair=str)


class CovidFact(Corpus):
    """The release file → rows."""

    INFO = CorpusInfo(
        name="covidfact",
        title="COVID-Fact: real-world claims on the COVID-19 pandemic",
        paper="Saakyan et al. (ACL 2021), COVID-Fact: Fact Extraction and Verification of Real-World Claims on COVID-19 Pandemic",
        citation="""@inproceedings{saakyan-etal-2021-covid,
  title = {{COVID}-Fact: Fact Extraction and Verification of Real-World Claims on {COVID}-19 Pandemic},
  author = {Saakyan, Arkadiy and Chakrabarty, Tuhin and Muresan, Smaranda},
  booktitle = {Proceedings of ACL-IJCNLP 2021},
  pages = {2116--2129},
  year = {2021}
}""",
        licence="unknown",  # not stated
        splits={"full": 4_086},
        labels={"SUPPORTED": SUPPORTS, "REFUTED": REFUTES},
        release="github.com/asaakyan/covidfact",
        layout="`COVIDFACT_dataset.jsonl`",
        notes="one split, `full`",
    )
    FILES = (("full", "COVIDFACT_dataset.jsonl"),)
    GROUPS_BY_KEYS = True
    EXTRA: ClassVar = {"gold_source": TEXT, "flair": TEXT}

    def records(self, path: Path) -> Iterator[Record]:
        for record in json_lines(path):
            if not record.unreadable:
                record.value["id"] = f"covidfact-{record.number}"
            yield record

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        row["id"] = record["id"]
        _ROW.check(record)
        row |= {"claim": record["claim"], "label": record["label"]}
        row["evidence"] = [{"title": "", "text": text} for text in record["evidence"]]
        row |= {name: as_text(record[name]) for name in ("gold_source", "flair")}
        row["keys"] = [("evidence", json.dumps(record["evidence"]))]
        if source := record["gold_source"].strip():
            row["keys"].append(("source", source))
        row["label"] = self.label(record["label"])


BUILDER = CovidFact
