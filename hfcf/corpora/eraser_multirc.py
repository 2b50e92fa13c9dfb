"""ERASER's MultiRC: whether an answer to a question about a paragraph is right, with the deciding sentences as human rationales.

- Questions: of MultiRC (Khashabi et al., NAACL 2018). Claim: "question || answer", as in the files.
- Files: see `hfcf.corpora.formats.eraser`, as for the option `context` and the extra column `rationales`.
- Group: the paragraph (`docid`). It is not a title: the pieces have none.

One row: claim "Name few objects said to be in or on Allan 's desk || Eraser", evidence [title "", text "Allan sat down at his
desk and pulled the chair in close ."] and the paragraph's other sentences, label REFUTES.
"""

from __future__ import annotations

from hfcf.corpora.base import CorpusInfo
from hfcf.corpora.formats.eraser import CITATION, Eraser
from hfcf.tasks.verification import REFUTES, SUPPORTS


class EraserMultirc(Eraser):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="eraser_multirc",
        title="ERASER MultiRC: answers to questions about a paragraph, with human rationales",
        paper="DeYoung et al. (ACL 2020), ERASER: A Benchmark to Evaluate Rationalized NLP Models",
        citation=CITATION,
        licence="other",  # by the Hub's card
        hub_id="eraser_multi_rc",  # with other fields: passage, query_and_answer, label, evidences
        splits={"train": 24_029, "validation": 3_214, "test": 4_848},
        labels={"True": SUPPORTS, "False": REFUTES},
        release="eraserbenchmark.com",
        layout="`{train,val,test}.jsonl` and `docs/`",
        notes="human `rationales`; `context=n` sentences around them",
    )

    def title(self, docid: str) -> str:
        return ""


BUILDER = EraserMultirc
