"""Questions as RGF writes, compares and takes them apart: answers marked in passages, words, references and predicates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

SEPARATOR = " » "
"""The separator of the parts that a model of RGF reads: question, title, passage (appendix A)."""
ANSWER = "« answer = {} »"
"""An answer in a passage (appendix A: "enclosed in the passage using character sequences ‘« answer =’ and ‘»’")."""
PREFIX = 10
"""Two predicates are equal when they begin with more than this many equal characters (section 3.5)."""
NO_REFERENCE = "none"

Span = tuple[int, int]


def mark_answer(context: str, start: int, end: int) -> str:
    """Return a passage with the answer marked."""
    return context[:start] + ANSWER.format(context[start:end]) + context[end:]


def join_parts(*parts: str) -> str:
    """Join question, title and passage by the separator; a part that is missing is left out."""
    return SEPARATOR.join(part for part in parts if part)


# --- references and predicates (QED)


def write_references(question: Sequence[Mapping[str, Any]], sentence: Sequence[Mapping[str, Any]]) -> str:
    """Write QED's referential equalities as the text that a decomposer is trained to write.

    "reference in the question = reference in the sentence", in the order of the question, with " ; " between two. A reference that
    the sentence only implies (a bridge without words of its own) has nothing after "=".

    Source: for its linearisation of explanations, RGF refers to the QED paper (Lamm et al. 2021). This function leaves out the
        selected sentence, because RGF reads only the references of the question.
    """
    pairs = sorted(zip(question, sentence, strict=True), key=lambda pair: pair[0]["start"])
    return (
        " ; ".join(f"{reference['text'].strip()} = {(stated['text'] or '').strip()}".strip() for reference, stated in pairs)
        or NO_REFERENCE
    )


def read_references(text: str, question: str) -> list[Span]:
    """Find the references of a text in the form of `write_references` in its question: sorted, disjoint code points.

    A reference that is not in the question as whole words, in any case, is left out; of two that overlap, the longer reference
    stays.
    """
    if text.strip() == NO_REFERENCE:
        return []
    phrases = {part.partition(" =")[0].strip() for part in text.split(" ; ")} - {""}
    spans: list[Span] = []
    for phrase in sorted(phrases, key=lambda phrase: (-len(phrase), phrase)):
        places = re.finditer(rf"(?<!\w){re.escape(phrase)}(?!\w)", question, re.IGNORECASE)
        free = [place.span() for place in places if all(place.end() <= start or place.start() >= end for start, end in spans)]
        spans += free[:1]
    return sorted(spans)


def predicate(question: str, references: Sequence[Span]) -> str:
    """Return a question with its references replaced by X, Y, Z, X4, X5 …, in lower case and without the question mark."""
    parts, last = [], 0
    names = (("X", "Y", "Z")[n] if n < 3 else f"X{n + 1}" for n in count())
    for (start, end), name in zip(references, names, strict=False):
        parts += [question[last:start].lower(), name]
        last = end
    return " ".join("".join([*parts, question[last:].lower()]).split()).rstrip("?!. ")


def same_predicate(old: str, new: str) -> bool:
    """Say whether two predicates are the same: equal, or equal in more than their first ten characters (section 3.5)."""
    head, new_head = old[: PREFIX + 1], new[: PREFIX + 1]
    return old == new or (head == new_head and len(head) > PREFIX)


def compare_questions(source: tuple[str, Sequence[Span]], changed: tuple[str, Sequence[Span]]) -> str:
    """Say what differs between two questions: "reference", "predicate", "both", or "question" if neither can be found.

    References are compared as sets of strings, without case; predicates by `same_predicate`. A change of predicate alone also
    requires that the question keeps all references; it may have further references (section 6.1, footnote 4). The result is
    "question" for a question without references, which nothing keeps. It is also "question" where predicate and references are the
    same.
    """
    old, new = ({question[start:end].lower() for start, end in spans} for question, spans in (source, changed))
    if not old:
        return "question"
    if same_predicate(predicate(*source), predicate(*changed)):
        return "reference" if old != new else "question"
    return "predicate" if old <= new else "both"
