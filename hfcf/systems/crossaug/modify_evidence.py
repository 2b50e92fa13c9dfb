"""The change of a claim, made in the evidence (CrossAug, section 2.2, second stage)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from operator import itemgetter
from typing import Any, ClassVar

from hfcf.core import schema
from hfcf.core.edits import overlap
from hfcf.core.settings import Positive
from hfcf.core.stage import Stage
from hfcf.text.evidence import evidence_texts
from hfcf.text.negation import negation_of
from hfcf.text.quantities import convert, find_conversions
from hfcf.text.words import Word, split

MODIFIED = "modified"
_GOES_ON = re.compile(r"\w [A-Z]")


def changed_span(claim: str, negative: str) -> tuple[str, str, int, int]:
    """Find the texts between the beginning and the ending that two claims share, and the number of words in each.

    A span that touches its neighbour in only one of the claims includes that word: an extra or missing space would reveal the
    label.
    """
    first, second = split(claim), split(negative)
    head = _equal_words(first, second)
    tail = min(_equal_words(first[::-1], second[::-1]), min(len(first), len(second)) - head)
    if len(first) > head + tail < len(second):
        while head and _gap(first, head) != _gap(second, head):
            head -= 1
        while tail and _gap(first, len(first) - tail) != _gap(second, len(second) - tail):
            tail -= 1
    before, after = first[head : len(first) - tail], second[head : len(second) - tail]
    return _text_of(claim, before), _text_of(negative, after), len(before), len(after)


def _equal_words(first: Sequence[Word], second: Sequence[Word]) -> int:
    """Count the equal words at the beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0].key == pair[1].key, zip(first, second, strict=False)))


def _text_of(text: str, words: Sequence[Word]) -> str:
    return text[words[0].start : words[-1].end] if words else ""


def _gap(words: Sequence[Word], i: int) -> bool:
    """Say whether there is a space before word i."""
    return words[i - 1].end < words[i].start


def occurrences(text: str, words: str) -> list[tuple[int, int]]:
    """Find `words` in `text` as whole words of the same case; places do not overlap."""
    pattern, tokens = [word.key for word in split(words)], split(text)
    places, i, n = [], 0, len(pattern)
    while pattern and i + n <= len(tokens):
        if [word.key for word in tokens[i : i + n]] == pattern:
            places.append((tokens[i].start, tokens[i + n - 1].end))
            i += n
        else:
            i += 1
    return places


@dataclass(frozen=True, kw_only=True)
class ModifyEvidence(Stage):
    """Make the change from c to c′ in the evidence, if it is a few words there (section 2.2, second stage).

    Input columns: `claim`, `negative_claim`, `evidence`. Output columns: `edits` of the evidence, empty if it is unchanged, and
    `modification`: "modified", or why not. A row with unchanged evidence is not rejected: (c′, e, REFUTES) is kept.

    The change is the only span between the beginning and the ending that c and c′ share. It is made where c's words occur in the
    evidence, in texts and titles; case counts. c′'s words are put there as c′ has them.

    Both sides of a quantity in two units ("330 metres (1,083 ft)") change in proportion, which the released code does not do.

    Deviations: words that a negation of the evidence covers stay, since another value there refutes nothing. The released code
    joins tokens with spaces again; here the text around the edit stays as it was, and a span takes along a word that it touches in
    one claim only. Words are split by a rule of ours that agrees with its tokenizer except in rare abbreviations.

    Args:
        max_span: τ, the words (and punctuation marks) that either side of the change may have.
        replace_all: also edit evidence in which c's words occur several times, at each place. No place may be part of a longer name
            ("Ottoman" of "Ottoman Empire"). The released code does not.

    >>> row = {"claim": "It has 30 men.", "negative_claim": "It has 9 men.", "evidence": [{"title": "", "text": "Of 30 men…"}]}
    >>> ModifyEvidence().row(row)["edits"][0]["after"]
    '9'
    """

    VERSION: ClassVar[str] = "5"
    inputs: ClassVar = {"claim": schema.TEXT, "negative_claim": schema.TEXT, "evidence": schema.EVIDENCE}
    outputs: ClassVar = {"edits": schema.EDITS, "modification": schema.TEXT}
    produced_by: ClassVar = {"negative_claim": "crossaug.generate_negative_claim"}

    max_span: Positive = 3
    replace_all: bool = False

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        before, after, out, in_ = _changed_quantity(row["claim"], row["negative_claim"]) or changed_span(
            row["claim"], row["negative_claim"]
        )
        if not out or not in_:
            return _stays("words are only added" if in_ else "words are only left out" if out else "the words are the same")
        if max(out, in_) > self.max_span:
            return _stays(f"more than {self.max_span} words change")
        texts = evidence_texts(row)
        changes = convert({before: after}, [text for _, _, text in texts])
        if changes[before] != after:
            return _stays("the evidence has the number in two units, and the claim changes its unit")
        results = _places(texts, before)
        if not results:
            return _stays("the words are not in the evidence")
        if any(negation_of(*place[2:]) for place in results):
            return _stays("the evidence denies the words")
        if len(results) > 1 and not self.replace_all:
            return _stays("the words are in the evidence several times")
        if len(results) > 1 and before[0].isupper() and any(_GOES_ON.match(text, end - 1) for _, _, text, _, end in results):
            return _stays("the words are in the evidence several times, once in a longer name")
        made = [_edit(place, after) for place in results]
        for old, new in changes.items():  # the other side of a quantity in two units
            others = [_edit(place, new) for place in _places(texts, old) if new != old]
            made += [other for other in others if not any(overlap(other, edit) for edit in made)]
        return {"edits": sorted(made, key=itemgetter("field", "piece", "start")), "modification": MODIFIED}


def _changed_quantity(claim: str, negative: str) -> tuple[str, str, int, int] | None:
    """Return what `changed_span` returns for one side, if a quantity in two units is all that changes: one change, not four words.

    >>> _changed_quantity("It is 330 m (1,083 ft) tall.", "It is 290 m (952 ft) tall.")
    ('330 m', '290 m', 2, 2)
    """
    pairs = [(old, new) for old, new in zip(find_conversions(claim), find_conversions(negative), strict=False) if old != new]
    if len(pairs) != 1:
        return None
    ((old, new),) = pairs
    followed = claim.replace(old.quantity, new.quantity, 1).replace(f"({old.other}", f"({new.other}", 1)
    alone = followed == negative and old.number != new.number
    return (old.quantity, new.quantity, len(split(old.quantity)), len(split(new.quantity))) if alone else None


def _places(texts: Iterable[tuple[str, int, str]], words: str) -> list[tuple[str, int, str, int, int]]:
    """Find words in the evidence: field, piece, text, start and end of each place."""
    return [(field, piece, text, start, end) for field, piece, text in texts for start, end in occurrences(text, words)]


def _edit(place: tuple[str, int, str, int, int], after: str) -> dict[str, Any]:
    field, piece, text, start, end = place
    return {"field": field, "piece": piece, "start": start, "end": end, "before": text[start:end], "after": after}


def _stays(reason: str) -> dict[str, Any]:
    return {"edits": [], "modification": reason}
