"""The source's claim with the edits of its evidence: RACE's writer that keeps a claim's structure, where E′ touches its words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from string import ascii_uppercase
from typing import Any

from hfcf.core.edits import Edit, replace_text
from hfcf.engines.contradiction import why_compatible
from hfcf.text.evidence import evidence_texts
from hfcf.text.lifetimes import find_years
from hfcf.text.phrase_match import WORD_END, WORD_START, mentions
from hfcf.text.words import takes_an

Row = Mapping[str, Any]
FOLLOWED = "writer: follow"
"""The name of the score by which a candidate names this writer."""
_ARTICLE = re.compile(r"\b([Aa])n?(?=\s+$)")


def follow_edits(row: Row) -> str | None:
    """Write the claim of a row (`claim`, `entities`, `edits`) with the edits of its evidence; None where they touch no word of it.

    A number that is or becomes 1 is not followed, since the noun after it would have to change; articles are put right.

    >>> edit = {"field": "evidence", "piece": 0, "start": 7, "end": 11, "before": "1859", "after": "1864"}
    >>> follow_edits({"claim": "Ann was born in 1859.", "edits": [edit], "entities": []})
    'Ann was born in 1864.'
    """
    found = _in_claim(row)
    if not found or any(ONE & {edit["before"].casefold(), edit["after"].casefold()} for edit in found):
        return None
    return replace_text(row["claim"], [_with_article(row["claim"], edit) for edit in found])


def follows(candidate: Row) -> bool:
    """Return whether a candidate's claim follows the edits of its evidence."""
    return any(score["name"] == FOLLOWED for score in candidate["scores"])


def excludes(row: Row) -> bool:
    """Whether E′ must refute the claim of a SUPPORTS row, and E the claim that follows the edits, by their words.

    E′ supports the followed claim as E supports the claim. If the two claims can't both be true, E′ refutes the claim. This holds
    for a number, a date or a place that the claim names and that E′ no longer has. E′ must have a value instead that is new to the
    row. Names that change places may leave the claim as it was ("by Ann and Bob").
    """
    evidence, edited = (
        [text for _, _, text in evidence_texts({"evidence": row[name]})] for name in ("evidence", "edited_evidence")
    )
    changes = [
        edit
        for edit in _in_claim(row)
        if not any(mentions(text, edit["before"]) for text in edited)
        and not any(mentions(text, edit["after"]) for text in (row["claim"], *evidence))
    ]
    return bool(changes) and why_compatible(row["claim"], replace_text(row["claim"], changes)) is None


def _in_claim(row: Row) -> Sequence[Edit]:
    """List the edits of the evidence as edits of the claim, at every mention of what they replace."""
    changes = {edit["before"]: edit["after"] for edit in row["edits"]}
    for before, after in list(changes.items()):  # the claim may name the year of a date alone
        old, new = find_years(before), find_years(after)
        if len(old) == len(new) == 1 and before != str(old[0]):
            changes.setdefault(str(old[0]), str(new[0]))
    names = [entity["text"] for entity in row["entities"] if entity["field"] == "claim"]
    return edits_of({"evidence": [{"title": None, "text": row["claim"]}]}, changes, protected=[*names, *changes])


def _with_article(claim: str, edit: Edit) -> Edit:
    """Include the indefinite article before a substitute in its edit."""
    if (article := _ARTICLE.search(claim[: edit["start"]])) is None:
        return edit
    right = article[1] + ("n" if takes_an(edit["after"]) else "")
    after = right + claim[article.end() : edit["start"]] + edit["after"]
    return {**edit, "start": article.start(), "before": claim[article.start() : edit["end"]], "after": after}


# --- edits of every mention: whole words, the longest first

ONE = {"1", "one", "single", "1st", "first"}
"""Numbers after which a noun is singular, or which are more than a number: "for the first time"."""
_CAPITAL = re.compile(r" [A-Z]")


def edits_of(row: Mapping[str, Any], changes: Mapping[str, str], protected: Iterable[str]) -> list[Edit]:
    """List sorted edits of every mention of the changed forms in texts and titles; longer protected mentions stay whole."""
    tagged = set(protected)
    forms = sorted({*changes, *tagged}, key=lambda text: (-len(text), text))
    pattern = re.compile(WORD_START + "(?:" + "|".join(map(re.escape, forms)) + ")" + WORD_END)
    return [
        {"field": where, "piece": piece, "start": m.start(), "end": m.end(), "before": m[0], "after": changes[m[0]]}
        for where, piece, text in evidence_texts(row)
        for m in pattern.finditer(text)
        if changes.get(m[0], m[0]) != m[0] and (m[0] in tagged or not _in_a_name(text, m.start(), m.end()))
    ]


def _in_a_name(text: str, start: int, end: int) -> bool:
    """Whether a capitalised word is on either side, inside the sentence: "Young" in "Young Americans" is not Neil Young."""
    if not text[start].isupper():
        return False
    if _CAPITAL.match(text, end):
        return True
    # A pattern that ends here would read the whole text before each mention.
    last = start - (text[start - 1 : start] == "\n") - 1
    first = last
    while first > 0 and (text[first - 1].isalnum() or text[first - 1] == "_"):
        first -= 1
    return text[last : last + 1] == " " and any(character in ascii_uppercase for character in text[first:last])
