"""ERASER's MultiRC: is an answer to a question about a paragraph right, with the deciding sentences as human rationales.

- Paper: DeYoung et al., "ERASER: A Benchmark to Evaluate Rationalized NLP Models", ACL 2020; questions of MultiRC
  (Khashabi et al., NAACL 2018).
- Licence: "other", by the Hub's card.
- Splits: train 24,029, validation 3,214, test 4,848 rows.
- Labels: True → SUPPORTS, False → REFUTES.
- Hub id: eraser_multi_rc (other fields: passage, query_and_answer, label, evidences).
- Files: `{train,val,test}.jsonl` and the folder `docs` beside them; `eraser.py` says how they are read.
- Option `context`: only sentences at most so many from an annotated one; by default the paragraphs are whole.
- Claim: "question || answer", as in the files.
- Group: the paragraph (`docid`). It is no title: the pieces have none.
- Extra column: `rationales`, human.

One row: claim "Name few objects said to be in or on Allan 's desk || Eraser", evidence [title "", text "Allan sat down at his
desk and pulled the chair in close ."] and the paragraph's other sentences, label REFUTES.
"""

from __future__ import annotations

from hfcf.corpora.base import CorpusInfo
from hfcf.corpora.formats.eraser import CITATION, Eraser
from hfcf.tasks.verification import REFUTES, SUPPORTS

INFO = CorpusInfo(
    name="eraser_multirc",
    title="ERASER MultiRC: answers to questions about a paragraph, with human rationales",
    paper="DeYoung et al. (ACL 2020), ERASER: A Benchmark to Evaluate Rationalized NLP Models",
    citation=CITATION,
    licence="other",
    hub_id="eraser_multi_rc",
    splits={"train": 24_029, "validation": 3_214, "test": 4_848},
    labels={"True": SUPPORTS, "False": REFUTES},
    release="eraserbenchmark.com",
    layout="`{train,val,test}.jsonl` and `docs/`",
    notes="human `rationales`; `context=n` sentences around them",
)


class EraserMultirc(Eraser):
    """Release files → rows."""

    INFO = INFO

    def title(self, docid: str) -> str:
        return ""


BUILDER = EraserMultirc
