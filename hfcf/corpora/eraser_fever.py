"""ERASER's FEVER: claims, the Wikipedia pages that decide them, and the sentences that do as human rationales.

- Paper: DeYoung et al., "ERASER: A Benchmark to Evaluate Rationalized NLP Models", ACL 2020; claims of FEVER (Thorne et
  al., NAACL 2018).
- Licence: CC BY-SA 3.0 (Wikipedia text).
- Splits: train 97,957, validation 6,122, test 6,111 rows; ERASER split FEVER anew, so its
  validation rows are not FEVER's.
- Labels: SUPPORTS and REFUTES, as ours (it has no others).
- Hub id: none known.
- Files: `{train,val,test}.jsonl` and the folder `docs` beside them; `eraser.py` says how they are read.
- Option `context`: only sentences at most so many from an annotated one; by default the pages are whole.
- Group: rows that share a claim or a page belong together, for their evidence is the same.
- Extra column: `rationales`, human.

The text stays tokenised as released, but brackets written -LRB-, -RSB- … are brackets again.

One row: claim "Steve Wozniak designed homes.", evidence [title "Steve Wozniak", text "He primarily designed the 1977 Apple
II , known as one of the first highly successful mass-produced microcomputers , …"] and the page's other sentences, label
REFUTES.
"""

from __future__ import annotations

from hfcf.corpora.base import CorpusInfo
from hfcf.corpora.formats.eraser import CITATION, Eraser
from hfcf.corpora.formats.wikipedia import page_title
from hfcf.tasks.verification import REFUTES, SUPPORTS

INFO = CorpusInfo(
    name="eraser_fever",
    title="ERASER FEVER: fact verification with human rationales",
    paper="DeYoung et al. (ACL 2020), ERASER: A Benchmark to Evaluate Rationalized NLP Models",
    citation=CITATION,
    licence="cc-by-sa-3.0",
    splits={"train": 97_957, "validation": 6_122, "test": 6_111},
    labels={"SUPPORTS": SUPPORTS, "REFUTES": REFUTES},
    release="eraserbenchmark.com",
    layout="`{train,val,test}.jsonl` and `docs/`",
    notes="human `rationales`; `context=n` sentences around them",
)


class EraserFever(Eraser):
    """Release files → rows."""

    INFO = INFO

    def title(self, docid: str) -> str:
        return page_title(docid)


BUILDER = EraserFever
