"""FM2 (Fool Me Twice): claims that players of a game wrote to be hard to guess, with their evidence sentences.

- Files: `dataset/{train,dev,test}.jsonl`; `data_dir` may be the repository or its folder `dataset`.
- Evidence: one piece for each item of `gold_evidence`, titled with the row's Wikipedia page. `retrieved_evidence` is not read.
  (The authors' baseline joins the gold texts and reads no title.)
- Group: `wikipedia_page`. The official splits never share a page, and claims of one page share sentences.
- Extra columns: `category`, the page's topic in the game, and `sections`, parallel to `evidence`: each sentence's section.

One row: claim "Filming for the movie Gandhi in India was delayed due to political unrest.", evidence [title "Gandhi (film)", text
"Then prime minister Indira Gandhi declared a state of emergency in India and shooting would be impossible."], label SUPPORTS,
sections ["Production"].
"""

from __future__ import annotations

from typing import Any, ClassVar

from datasets import List

from hfcf.core.schema import TEXT
from hfcf.corpora.base import Corpus, CorpusInfo, Fields, split_files
from hfcf.tasks.verification import REFUTES, SUPPORTS

_ROW = Fields(id=Any, text=str, label=str, gold_evidence=[{"text": str, "section_header": str}], wikipedia_page=str, category=str)


class FM2(Corpus):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="fm2",
        title="FM2: Fool Me Twice, entailment from Wikipedia gamification",
        paper="Eisenschlos et al. (NAACL 2021), Fool Me Twice: Entailment from Wikipedia Gamification",
        citation="""@inproceedings{eisenschlos-etal-2021-fm2,
  title = {Fool Me Twice: Entailment from Wikipedia Gamification},
  author = {Eisenschlos, Julian Martin and Dhingra, Bhuwan and Bulian, Jannis and B{\\"o}rschinger, Benjamin and
    Boyd-Graber, Jordan},
  booktitle = {Proceedings of NAACL-HLT 2021},
  year = {2021}
}""",
        licence="apache-2.0",  # the repository's; it names none for the data (Wikipedia text)
        hub_id="tasksource/fool-me-twice",  # a copy
        splits={"train": 10_419, "validation": 1_169, "test": 1_380},
        labels={SUPPORTS: SUPPORTS, REFUTES: REFUTES},
        release="github.com/google-research/fool-me-twice",
        layout="`dataset/{train,dev,test}.jsonl`",
        notes="the group is the page",
    )
    FILES = split_files("dataset/{}.jsonl", "{}.jsonl")
    EXTRA: ClassVar = {"category": TEXT, "sections": List(TEXT)}

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        _ROW.check(record)
        row |= {"id": record["id"], "claim": record["text"], "label": record["label"]}
        page, pieces = record["wikipedia_page"], record["gold_evidence"]
        row |= {"group_id": page, "category": record["category"]}
        row["evidence"] = [{"title": page, "text": piece["text"]} for piece in pieces]
        row["sections"] = [piece["section_header"] for piece in pieces]
        row["label"] = self.label(record["label"])


BUILDER = FM2
