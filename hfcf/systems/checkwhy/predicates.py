"""Drop pairs whose cause or effect is no sentence (CheckWhy, section 3.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hfcf.core.schema import TEXT
from hfcf.core.stage import Reject, Stage
from hfcf.engines.parser import Parser
from hfcf.text.check import text_problem
from hfcf.text.words import split

PAIR = {"cause": TEXT, "effect": TEXT}
FINITE = ("MD", "VBD", "VBP", "VBZ")


@dataclass(frozen=True, kw_only=True)
class CheckPredicates(Stage):
    """Reject a row whose cause or effect has no predicate.

    Input columns: `cause`, `effect`. Output columns: none but `status`.

    The paper keeps 7,403 of WikiWhy's 9,406 pairs (79 %), those without "the absence of a predicate component", and does not say
    what it takes for one. Here it is a verb or modal of any form. Of 1,500 pairs, with spaCy's small model, 81 % have one in both;
    72 % have a finite verb. (The cause of the paper's own example of a prompt, "Virtue of compassion …", has none.)

    Deviation: the paper's tagger is Stanza, the default; the other presets have spaCy, which installs without a download.

    Args:
        parser: the tagger.
        finite: count finite verbs only: "rising costs" is then no predicate, "costs rose" is.

    >>> CheckPredicates().row_problem({"cause": "Ill health", "effect": "He retired"}, {"cause": ["JJ", "NN"], "effect": ["VBD"]})
    'the cause has no predicate'
    """

    inputs: ClassVar = PAIR
    outputs: ClassVar[Mapping[str, Any]] = {}

    engines: ClassVar = (Parser,)

    parser: Parser = field(default_factory=Parser)
    finite: bool = False

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        readable = [row for row in rows if text_reason(row) is None]
        texts = list(dict.fromkeys(row[side] for row in readable for side in PAIR))
        tags = {
            text: parse["tags"]
            for text, parse in zip(texts, self.parser.run([[word.key for word in split(text)] for text in texts]), strict=True)
        }
        results: list[dict[str, Any] | Reject] = []
        for row in rows:
            why = text_reason(row) or self.row_problem(row, {side: tags[row[side]] for side in PAIR})
            results.append(Reject(why) if why else {})
        return results

    def row_problem(self, row: Mapping[str, Any], tags: Mapping[str, Sequence[str]]) -> str | None:
        """Say which side of a row has no predicate, or None.

        Args:
            row: `cause` and `effect`.
            tags: Penn tags of each.
        """
        for side in PAIR:
            if not any(tag in FINITE if self.finite else tag.startswith(("VB", "MD")) for tag in tags[side]):
                return f"the {side} has no {'finite verb' if self.finite else 'predicate'}"
        return None


def text_reason(row: Mapping[str, Any]) -> str | None:
    """Say why a pair can't be worked on, or None.

    >>> text_reason({"cause": "It rained.", "effect": " "})
    'the effect is empty'
    """
    return next((why for side in PAIR if (why := text_problem(row[side], f"the {side}"))), None)
