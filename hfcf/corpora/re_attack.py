"""RE-Attack: SemEval-2010 Task 8's test sentences, altered to mislead relation classifiers.

- Paper: Miao, Li and Qian, "Generating Commonsense Counterfactuals for Stable Relation Extraction", EMNLP 2023: causal terms
  replaced so that the label flips, or entities replaced so that it stays; picked by GPT-2's perplexity, then by hand.
- Licence: none is named by the release; SemEval's sentences are CC BY 3.0.
- Splits: test 2,391 rows. Train and validation are those of `ccg_semeval`.
- Labels: SemEval's 18 that name a relation and its direction, as ours; Other does not occur.
- Hub id: none.
- Files: `re-attack/re-attack.tsv`, as `ccg_semeval`'s: relation, a tab, and the tokens with `<e1>`, `</e1>`, `<e2>`, `</e2>` among
  them; `data_dir` may be that folder or the one above, and `data_files={"test": path}` names it under any name.
- Id: a hash of the label, the tokens and the entities; the release has none. A second row that is equal gets "-2".
- Group: the row, because nothing tells which sentence it was made from.
- Extra columns: `text`, the tokens joined by spaces, and `offsets`.

One row, made up: tokens "The eggs were put into buckets .", head "eggs", tail "buckets", label "Entity-Destination(e1,e2)".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from hfcf.corpora import ccg_semeval, semeval
from hfcf.corpora.base import Corpus, CorpusInfo
from hfcf.corpora.ccg_semeval import content_id, fill_tagged, tabbed
from hfcf.corpora.formats.read import Record
from hfcf.corpora.formats.tokens import EXTRA

INFO = CorpusInfo(
    name="re_attack",
    title="RE-Attack: an adversarial test set for relation extraction",
    paper=ccg_semeval.INFO.paper,
    citation=ccg_semeval.INFO.citation,
    licence="unknown",
    splits={"test": 2_391},
    labels={label: label for label in semeval.DIRECTED},
    task="relation",
    release="github.com/NLPWM-WHU/CCG",
    layout="`re-attack/re-attack.tsv`",
    notes="an adversarial test split; 18 labels, no Other",
)


class REAttack(Corpus):
    """Release files → rows."""

    INFO = INFO
    FILES = (("test", "re-attack/re-attack.tsv"), ("test", "re-attack.tsv"))
    ONE_FORM = True
    EXTRA: ClassVar = EXTRA

    def start(self, files: Sequence[Path]) -> None:
        self._seen: Counter[str] = Counter()

    def records(self, path: Path) -> Iterator[Record]:
        return tabbed(path)

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        fill_tagged(row, record)
        row["id"] = content_id(row, self._seen)
        row["label"] = self.label(row["label"])


BUILDER = REAttack
