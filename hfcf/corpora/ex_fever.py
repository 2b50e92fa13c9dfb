"""EX-FEVER: two- and three-hop claims over linked Wikipedia pages, with a written explanation.

- Splits: the repository has only test; all splits together have 61,265 rows.
- Files: `data/{train,dev,test}.csv`; `data_dir` may be the repository or its folder `data`. `mini_test.csv` has 1,000 rows of
  `test.csv` that the authors sent to a language model. It is read when it is named: data_files="mini_test.csv" (split test).
- Evidence: the sentences of `explanation`, untitled, because the release names the golden pages without their text.
  **Explanations were written for the label and often state it** ("…, not Canadian, …"; "No information shows that …"). A verifier
  that reads them is not comparable with a verifier that reads Wikipedia. Some texts have "?" for a character that the release lost,
  or no-break spaces; both stay.
- Id: the file's name and the row's number in it; the release has none.
- Group: rows with the same golden pages, claim or explanation, the variants of one claim.
- Extra column: `pages`, the golden pages' titles.

One row: claim "Nicholas Jerry Jonas released a debut single that caught the attention of an American record label.", evidence
"Nicholas Jerry Jonas released a debut single that caught the attention of Columbia Records.", "Columbia Records is an American
record label.", label SUPPORTS, pages ["Nick Jonas", "Columbia Records"], id "mini_test-3".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from datasets import List

from hfcf.core.schema import TEXT
from hfcf.corpora.base import BadRow, Corpus, CorpusInfo, Fields, Record, as_text, csv_rows, split_files
from hfcf.corpora.formats.wikipedia import split_sentences
from hfcf.tasks.verification import NOT_ENOUGH_INFO, REFUTES, SUPPORTS

_PAGES = Fields(**{"golden entity": [str]})
_ROW = Fields(id=str, claim=str, explanation=str, label=str, **{"golden entity": str})


class ExFever(Corpus):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="ex_fever",
        title="EX-FEVER: multi-hop explainable fact verification",
        paper="Ma et al. (2023), EX-FEVER: A Dataset for Multi-hop Explainable Fact Verification",
        citation="""@article{ma2023exfever,
  title = {{EX-FEVER}: A Dataset for Multi-hop Explainable Fact Verification},
  author = {Ma, Huanhuan and Xu, Weizhi and Wei, Yifan and Chen, Liuji and Wang, Liang and Liu, Qiang and Wu, Shu},
  journal = {CoRR},
  volume = {abs/2310.09754},
  year = {2023}
}""",
        licence="mit",  # the repository's
        splits={"test": 6_099},
        labels={"SUPPORT": SUPPORTS, "REFUTE": REFUTES, NOT_ENOUGH_INFO: NOT_ENOUGH_INFO},
        release="github.com/dependentsign/EX-FEVER",
        layout="`data/{train,dev,test}.csv`",
        notes="the explanation serves as the evidence, and often reveals the label",
    )
    FILES = split_files("data/{}.csv", "{}.csv")
    GROUPS_BY_KEYS = True
    EXTRA: ClassVar = {"pages": List(TEXT)}

    @classmethod
    def split_of(cls, path: Path) -> str | None:
        return "test" if path.name == "mini_test.csv" else super().split_of(path)

    def records(self, path: Path) -> Iterator[Record]:
        for i, record in enumerate(csv_rows(path), 1):
            if not record.unreadable:
                record.value["id"] = f"{path.stem}-{i}"
            yield record

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        _ROW.check(record)
        claim, explanation = record["claim"].strip(), record["explanation"].strip()
        row |= {"id": record["id"], "claim": claim, "label": record["label"]}
        # A line end also ends a sentence; a line with only a full stop is not a sentence.
        sentences = [text for line in explanation.split("\n") for text in split_sentences(line)]
        sentences = [text for text in sentences if any(character.isalnum() for character in text)]
        row["evidence"] = [{"title": "", "text": text} for text in sentences]
        pages = _pages(record["golden entity"])
        row["pages"] = [as_text(page.replace("_", " ")) for page in pages]
        row["keys"] = [("claim", claim), ("explanation", explanation), *([("pages", tuple(sorted(pages)))] if pages else [])]
        row["label"] = self.label(record["label"])


def _pages(cell: str) -> list[str]:
    """Return the names in a cell that is a Python list."""
    try:
        return list(_PAGES.check({"golden entity": ast.literal_eval(cell)})["golden entity"])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise BadRow(f"'golden entity' is not a list of page names: {cell[:200]!r}") from None


BUILDER = ExFever
