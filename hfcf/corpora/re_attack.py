"""RE-Attack: SemEval-2010 Task 8's test sentences, altered to mislead relation classifiers.

- CCG's authors replaced causal terms so that the label flips, or entities so that it stays; they chose by GPT-2's perplexity, then
  by hand. Test is the only split; use train and validation of `ccg_semeval`. No row is labelled Other.
- Files: `re-attack/re-attack.tsv`, in the form of `ccg_semeval`: relation, a tab, and the tokens with `<e1>`, `</e1>`, `<e2>`,
  `</e2>` among them. `data_dir` may be that folder or the folder above it, and `data_files={"test": path}` gives it any name.
- Id: a hash of the label, the tokens and the entities; the release has no ids. A second equal row gets "-2".
- Group: the row, because the release does not say from which sentence it was made.
- Extra columns: `text`, the tokens joined by spaces, and `offsets`.

One row, made up: tokens "The eggs were put into buckets .", head "eggs", tail "buckets", label "Entity-Destination(e1,e2)".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from hfcf.corpora import ccg_semeval, semeval
from hfcf.corpora.base import Corpus, CorpusInfo, Record
from hfcf.corpora.ccg_semeval import content_id, fill_tagged, tabbed
from hfcf.corpora.formats.tokens import EXTRA


class REAttack(Corpus):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="re_attack",
        title="RE-Attack: an adversarial test set for relation extraction",
        paper=ccg_semeval.CCGSemEval.INFO.paper,
        citation=ccg_semeval.CCGSemEval.INFO.citation,
        licence="unknown",  # the release names none; SemEval's sentences are CC BY 3.0
        splits={"test": 2_391},
        labels={label: label for label in semeval.DIRECTED},
        task="relation",
        release="github.com/NLPWM-WHU/CCG",
        layout="`re-attack/re-attack.tsv`",
        notes="an adversarial test split; 18 labels, no Other",
    )
    FILES = (("test", "re-attack/re-attack.tsv"), ("test", "re-attack.tsv"))
    ONE_FORM = True
    EXTRA: ClassVar = EXTRA

    def start(self, files: Sequence[Path]) -> None:
        self._ids: Counter[str] = Counter()

    def records(self, path: Path) -> Iterator[Record]:
        return tabbed(path)

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        fill_tagged(row, record)
        row["id"] = content_id(row, self._ids)
        row["label"] = self.label(row["label"])


BUILDER = REAttack
