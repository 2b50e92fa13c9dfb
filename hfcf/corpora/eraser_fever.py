"""ERASER's FEVER: claims, the Wikipedia pages that decide them, and the deciding sentences as human rationales.

- Splits: ERASER split FEVER (Thorne et al., NAACL 2018) again, so its validation rows are not FEVER's.
- Files: see `hfcf.corpora.formats.eraser`, as for the option `context` and the extra column `rationales`.
- Group: rows that share a claim or a page, because they share evidence.
- The text stays tokenised as released, but brackets written -LRB-, -RSB- … are brackets again.

One row: claim "Steve Wozniak designed homes.", evidence [title "Steve Wozniak", text "He primarily designed the 1977 Apple II ,
known as one of the first highly successful mass-produced microcomputers , …"] and the page's other sentences, label REFUTES.
"""

from __future__ import annotations

from hfcf.corpora.base import CorpusInfo
from hfcf.corpora.formats.eraser import CITATION, Eraser
from hfcf.corpora.formats.wikipedia import page_title
from hfcf.tasks.verification import REFUTES, SUPPORTS


class EraserFever(Eraser):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="eraser_fever",
        title="ERASER FEVER: fact verification with human rationales",
        paper="DeYoung et al. (ACL 2020), ERASER: A Benchmark to Evaluate Rationalized NLP Models",
        citation=CITATION,
        licence="cc-by-sa-3.0",  # Wikipedia text
        splits={"train": 97_957, "validation": 6_122, "test": 6_111},
        labels={SUPPORTS: SUPPORTS, REFUTES: REFUTES},
        release="eraserbenchmark.com",
        layout="`{train,val,test}.jsonl` and `docs/`",
        notes="human `rationales`; `context=n` sentences around them",
    )

    def title(self, docid: str) -> str:
        return page_title(docid)


BUILDER = EraserFever
