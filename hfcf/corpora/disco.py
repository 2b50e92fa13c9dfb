"""DISCO: SNLI pairs, and premises in which GPT-3 rewrote a phrase so that the label changes.

- Split: train, without an official size: data to augment training with. `e2n.jsonl` has 5,698 lines, two rows each.
- Files: `data/augment/<direction>.jsonl`, where e2n is entailment to neutral, n2c neutral to contradiction and so on; the
  repository has these two. `data_dir` may be the repository or `data/augment`. The premise is the evidence, the hypothesis the
  claim.
- Two rows for each line: the original (premise, hypothesis, label) and the counterfactual (new_premise, hypothesis, new_label).
  An original with several accepted generations appears once for each, under its guid. A generation that the teacher filter did
  not accept (`accept` false) is left out and counted; the original stays.
- Group: the original. A guid is the original's, with the number of the generation after it: 0, _0, _1 ….
- Extra columns: `guid`, and `kind`, original or counterfactual.

One row: claim "a group of children some in wheel chairs", evidence "A group of young children smile for the camera pull each
other through a small village as they are photographed.", label NOT ENOUGH INFO, kind counterfactual, group
"c6a3fda4-0ee1-11ed-8dd2-0242ac110003".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from hfcf.core.schema import TEXT
from hfcf.corpora.base import BadRow, Corpus, CorpusInfo, Record, as_text, json_lines, need, split_records
from hfcf.tasks.verification import NOT_ENOUGH_INFO, REFUTES, SUPPORTS
from hfcf.text.check import kind

_DIRECTIONS = ("e2n", "e2c", "n2e", "n2c", "c2e", "c2n")
_FIELDS = {"original": ("premise", "label"), "counterfactual": ("new_premise", "new_label")}
_SOURCE = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?=_?[0-9]+$)")


class Disco(Corpus):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="disco",
        title="DISCO: phrasal counterfactuals of SNLI distilled from a language model",
        paper="Chen et al. (2022), DISCO: Distilling Phrasal Counterfactuals with Large Language Models",
        citation="""@misc{chen2022disco,
  title = {DISCO: Distilling Phrasal Counterfactuals with Large Language Models},
  author = {Zeming Chen and Qiyue Gao and Kyle Richardson and Antoine Bosselut and Ashish Sabharwal},
  eprint = {2212.10534},
  archivePrefix = {arXiv},
  year = {2022}
}""",
        licence="mit",  # the repository's; SNLI's text is CC BY-SA 4.0
        labels={"entailment": SUPPORTS, "contradiction": REFUTES, "neutral": NOT_ENOUGH_INFO},
        release="github.com/eric11eca/disco",
        layout="`data/augment/*.jsonl`",
        notes="generations of one original are one group",
    )
    FILES = tuple(("train", f"{folder}{direction}.jsonl") for folder in ("data/augment/", "") for direction in _DIRECTIONS)
    EXTRA: ClassVar = {"guid": TEXT, "kind": TEXT}

    def records(self, path: Path) -> Iterator[Record]:
        return split_records(json_lines(path), lambda record: ({**record, "kind": name} for name in _FIELDS))

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        row["kind"] = record["kind"]
        need(record, "guid", "premise", "hypothesis", "label", "new_premise", "new_label", "accept")
        guid = str(as_text(record["guid"]))
        source = _SOURCE.match(guid)
        row |= {"id": f"{guid}-{record['kind']}", "guid": guid, "group_id": source[0] if source else guid}
        premise, label = _FIELDS[record["kind"]]
        row |= {"claim": record["hypothesis"], "label": record[label]}
        row["evidence"] = [{"title": "", "text": record[premise]}]
        if not isinstance(record["accept"], bool):
            raise BadRow(f"'accept' is {kind(record['accept'])}, not true or false")
        if record["kind"] == "counterfactual" and not record["accept"]:
            self.leave_out(row, "generations that the teacher filter did not accept were left out")
            return
        row["label"] = self.label(record[label])


BUILDER = Disco
