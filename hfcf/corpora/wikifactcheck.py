"""WikiFactCheck-English: sentences of Wikipedia with a citation, and their manually written refuted versions.

- Files: `wfc_train.tsv` and `wfc_dev.tsv`: tab-separated with CSV's quotes, and pandas' unnamed index column. (The repository's
  `wikifactcheck-en_*.jsonl` have another form and are not read.)
- Evidence: the `context`, untitled. **It is the text around the citation in the Wikipedia article, not the cited document**, which
  this release does not have. It neither proves nor disproves the claim. Use the rows for methods that read pairs of claims, such as
  training a generator of negative claims. Do not use them for training or evaluating a verifier.
- Two rows for each line: the claim, with the line's `id`, and its refuted version, with "-refuted" after it. If both texts are
  the same, the refuted row is left out and counted. Group: the line's `id`.
- Extra column: `url`, the cited document.

One row: claim "It is a chorale cantata performed on Trinity Sunday 8 June 1727 in Munich.", evidence "(Praised be the Lord, my
God), is a church cantata by Johann Sebastian Bach.", label REFUTES, id "106471-refuted", group "106471".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from hfcf.core.schema import TEXT
from hfcf.corpora.base import Corpus, CorpusInfo, Fields, Record, as_text, csv_rows, split_records
from hfcf.tasks.verification import REFUTES, SUPPORTS

_ROW = Fields(id=str, claim=str, refuted=str, context=str, url=str)


class WikiFactCheck(Corpus):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="wikifactcheck",
        title="WikiFactCheck-English: claims from Wikipedia and their refuted versions",
        paper="Sathe et al. (LREC 2020), Automated Fact-Checking of Claims from Wikipedia",
        citation="""@inproceedings{wikifactchkeng:2020:LREC,
  title = {Automated Fact-Checking of Claims from Wikipedia},
  author = {Sathe, Aalok and Ather, Salar and Le, Tuan Manh and Perry, Nathan and Park, Joonsuk},
  booktitle = {Proceedings of LREC 2020},
  pages = {6874--6882},
  year = {2020}
}""",
        licence="unknown",  # not stated (Wikipedia text)
        splits={"validation": 9_740},  # the size of train is not confirmed
        labels={"claim": SUPPORTS, "refuted": REFUTES},  # columns here
        release="github.com/wikifactcheck-english/wikifactcheck-english",
        layout="`wfc_{train,dev}.tsv`",
        notes="two rows a line; the text is the article around the citation, not the evidence",
    )
    FILES = (("train", "wfc_train.tsv"), ("validation", "wfc_dev.tsv"))
    EXTRA: ClassVar = {"url": TEXT}

    def records(self, path: Path) -> Iterator[Record]:
        records = csv_rows(path, delimiter="\t")
        return split_records(records, lambda record: ({**record, "column": column} for column in self.INFO.labels))

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        _ROW.check(record)
        column = record["column"]
        if column == "refuted" and record["refuted"].strip() == record["claim"].strip():
            self.leave_out(row, "refuted claims that are the claim itself were left out")
            return
        name = str(as_text(record["id"]))
        row |= {"id": name if column == "claim" else f"{name}-{column}", "group_id": name}
        row |= {"claim": record[column], "label": self.label(column)}
        row["evidence"] = [{"title": "", "text": record["context"]}]
        row["url"] = as_text(record["url"])


BUILDER = WikiFactCheck
