"""SemEval-2010 Task 8: sentences with two marked nominals and the relation between them.

- Files: `TRAIN_FILE.TXT` and `TEST_FILE_FULL.TXT`, or the release's folders with them. A row has four lines: the id and the quoted
  sentence with its tags, the relation, a comment, a blank line. Lines end in LF or CRLF. `TEST_FILE.TXT` has no relations and is
  not read.
- Head is e1 and tail e2, which comes after it; the label has the direction.
- Tokens: by our rules (`hfcf.corpora.formats.tokens`). A token ends at an entity's boundary, also where the release has no space
  before a tag ("doves<e2>moles</e2>"). Group: the row.
- Extra columns: `text`, the sentence without tags and outer quotes, `offsets`, the position of each token in it (code points), and
  `comment`, the annotators' comment.

One row: text "The child was carefully wrapped and bound into the cradle by means of a cord.", head "child", tail "cradle", label
"Other".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from hfcf.core.schema import TEXT
from hfcf.corpora.base import BadRow, Corpus, CorpusInfo, Record, as_text, split_files, text_lines
from hfcf.corpora.formats.tokens import EXTRA, of_text, untagged
from hfcf.tasks.relation import OTHER

_RELATIONS = (
    "Cause-Effect", "Component-Whole", "Content-Container", "Entity-Destination", "Entity-Origin", "Instrument-Agency",
    "Member-Collection", "Message-Topic", "Product-Producer",
)  # fmt: skip
DIRECTED = tuple(f"{relation}({arguments})" for relation in _RELATIONS for arguments in ("e1,e2", "e2,e1"))
"""The 18 labels that name a relation and its direction."""

_FIRST = re.compile(r"(\d+)\t(.*)")
_FOLDERS = ("", "SemEval2010_task8_training/", "SemEval2010_task8_testing_keys/")


class SemEval(Corpus):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="semeval",
        title="SemEval-2010 Task 8: semantic relations between pairs of nominals",
        paper="Hendrickx et al. (SemEval 2010), SemEval-2010 Task 8: Multi-Way Classification of Semantic Relations Between "
        "Pairs of Nominals",
        citation="""@inproceedings{hendrickx-etal-2010-semeval,
  title = {{SemEval}-2010 Task 8: Multi-Way Classification of Semantic Relations Between Pairs of Nominals},
  author = {Hendrickx, Iris and Kim, Su Nam and Kozareva, Zornitsa and Nakov, Preslav and {\\'O} S{\\'e}aghdha, Diarmuid and
    Pad{\\'o}, Sebastian and Pennacchiotti, Marco and Romano, Lorenza and Szpakowicz, Stan},
  booktitle = {Proceedings of the 5th International Workshop on Semantic Evaluation},
  year = {2010}
}""",
        licence="cc-by-3.0",
        hub_id="SemEvalWorkshop/sem_eval_2010_task_8",
        splits={"train": 8_000, "test": 2_717},
        labels={label: label for label in (*DIRECTED, OTHER)},
        task="relation",
        release="SemEval-2010 Task 8",
        layout="`TRAIN_FILE.TXT`, `TEST_FILE_FULL.TXT`, or the release's folders of them",
        notes="tokens by our rules; 19 labels",
    )
    FILES = split_files(*(f"{folder}{{}}.TXT" for folder in _FOLDERS), names=(("train", "TRAIN_FILE"), ("test", "TEST_FILE_FULL")))
    ONE_FORM = True
    EXTRA: ClassVar = {**EXTRA, "comment": TEXT}

    def records(self, path: Path) -> Iterator[Record]:
        """Yield the blocks of a file: each starts with a line that has an id, and ends before a blank line or the next block."""
        block: Record | None = None
        for line in text_lines(path):
            text = line.value.get("line", "")
            if block and (line.unreadable or not text.strip() or _FIRST.match(text)):
                yield block
                block = None
            if line.unreadable:
                yield line
            elif text.strip():
                block = block or Record("line", line.number, {"lines": []})
                block.value["lines"].append(text)
        if block:
            yield block

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        lines = record["lines"]
        first = _FIRST.fullmatch(lines[0])
        if not first:
            raise BadRow(f"the block starts with {lines[0][:60]!r}, not with an id, a tab and the sentence")
        row |= {"id": first[1], "text": as_text(first[2])}
        if len(lines) != 3 or not lines[2].startswith("Comment:"):
            raise BadRow(
                f"the block has {len(lines)} lines. A row is a sentence, a relation and a line 'Comment:' before a blank line "
                "(TEST_FILE.TXT has no relations: use TEST_FILE_FULL.TXT)"
            )
        row |= {"label": lines[1].strip(), "comment": as_text(lines[2].removeprefix("Comment:").strip())}
        row |= of_text(*untagged(_unquoted(first[2].strip()), ordered=True))
        row["label"] = self.label(row["label"])


def _unquoted(sentence: str) -> str:
    return sentence[1:-1] if len(sentence) > 1 and sentence[0] == sentence[-1] == '"' else sentence


BUILDER = SemEval
