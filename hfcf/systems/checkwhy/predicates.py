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

    The paper keeps 79 % of WikiWhy's pairs, those without "the absence of a predicate component", and does not say what a predicate
    is. Here it is a verb or modal of any form. By spaCy, 81 % of 1,500 pairs have one in both texts, 72 % a finite one.

    Args:
        parser: the tagger; the paper's is Stanza, the default.
        finite: count finite verbs only: "rising costs" is then no predicate, "costs rose" is.

    >>> CheckPredicates().missing_predicate({"cause": ["JJ", "NN"], "effect": ["VBD"]})
    'the cause has no predicate'
    """

    inputs: ClassVar = PAIR
    outputs: ClassVar[Mapping[str, Any]] = {}

    engines: ClassVar = (Parser,)

    parser: Parser = field(default_factory=Parser)
    finite: bool = False

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        readable = [row for row in rows if _text_problem(row) is None]
        texts = list(dict.fromkeys(row[side] for row in readable for side in PAIR))
        tags = {
            text: parse["tags"]
            for text, parse in zip(texts, self.parser.run([[word.key for word in split(text)] for text in texts]), strict=True)
        }
        results: list[dict[str, Any] | Reject] = []
        for row in rows:
            why = _text_problem(row) or self.missing_predicate({side: tags[row[side]] for side in PAIR})
            results.append(Reject(why) if why else {})
        return results

    def missing_predicate(self, tags: Mapping[str, Sequence[str]]) -> str | None:
        """Say which side of a row has no predicate, by the Penn tags of both."""
        for side in PAIR:
            if not any(tag in FINITE if self.finite else tag.startswith(("VB", "MD")) for tag in tags[side]):
                return f"the {side} has no {'finite verb' if self.finite else 'predicate'}"
        return None


def _text_problem(row: Mapping[str, Any]) -> str | None:
    return next((why for side in PAIR if (why := text_problem(row[side], f"the {side}"))), None)
