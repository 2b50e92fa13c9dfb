"""The words of a row that an attack may replace, and their substitutes: synonyms of WordNet, by their sense or by the context."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from hfcf.core.decisions import reaches
from hfcf.core.edits import Edit
from hfcf.core.task import Row, Task
from hfcf.engines.masked import MaskFiller
from hfcf.engines.wordnet import PARTS, wordnet
from hfcf.systems.baselines.masked_lm import MaskedLM
from hfcf.systems.baselines.synonym import exchangeable, fitting_synonyms

SUBSTITUTES = 10
"""Substitutes that are tried for a word, from the first."""
EXPECTED = 0.0002
"""The least probability of a synonym that a masked language model expects, of a vocabulary of some 30,000 words."""
FILLS = 1000
"""Words of that model that are looked at."""

Word = tuple[tuple[int, int], list[str]]
"""A word's span in its text, and its substitutes, best first."""


class Place(NamedTuple):
    """A word that may be replaced; its offsets are the offsets of the task's edits."""

    field: str
    piece: int
    start: int
    end: int
    word: str
    substitutes: tuple[str, ...]

    def edit(self, after: str) -> Edit:
        """Make the edit that puts another text in the word's place."""
        at = {"field": self.field, "piece": self.piece, "start": self.start, "end": self.end}
        return {**at, "before": self.word, "after": after}


def synonyms(texts: Sequence[str], preset: str) -> list[list[Word]]:
    """Find the words of texts that have synonyms in their commonest sense, as the part of speech that has the most senses."""
    return [[(match.span(), _synonyms(text, match)) for match in exchangeable(text)] for text in texts]


def expected(texts: Sequence[str], preset: str) -> list[list[Word]]:
    """Find the words of texts for which a masked language model expects one of these synonyms.

    What else such a model expects has mostly another meaning, and the row would have another label.
    """
    settings = MaskedLM.preset(preset)
    found = [[(span, forms) for span, forms in own if forms] for own in synonyms(texts, preset)]
    requests = [[text, [list(span)]] for text, own in zip(texts, found, strict=True) for span, _ in own]
    engine = MaskFiller(model=settings.model, top=FILLS, max_length=settings.rewrite_masked_lm.max_length)
    fills = ({fill.lower() for fill, p in answer[0] if reaches(p, EXPECTED)} for answer in engine.run(requests))
    return [
        [(span, [form for form in forms if form.lower() in some]) for (span, forms), some in zip(own, fills, strict=False)]
        for own in found
    ]


def _synonyms(text: str, match: re.Match[str]) -> list[str]:
    net, word = wordnet(), match[0]
    part, senses = max(((part, net.phrase_senses(word, part)) for part in PARTS), key=lambda one: len(one[1]))
    return [form for form in fitting_synonyms(text, match) if {*senses[:1]} & {*net.phrase_senses(form, part)}]


SOURCES: Mapping[str, Callable[[Sequence[str], str], list[list[Word]]]] = {"synonym": synonyms, "masked_lm": expected}
"""Where substitutes come from, by name; the second argument is a preset, which names the masked language model."""


def find_places(task: Task, rows: Sequence[Row], fields: Sequence[str], by: str, preset: str) -> list[list[Place]]:
    """List the words of each row's fields that may be replaced, in reading order: none is part of an entity or an answer."""
    segments = [[segment for segment in task.segments(row) if segment.field in fields] for row in rows]
    found = iter(SOURCES[by]([segment.text for own in segments for segment in own], preset))
    results = []
    for row, own in zip(rows, segments, strict=True):
        places = []
        for segment in own:
            for (start, end), words in next(found):
                inside = any(mark.start < end and start < mark.end for mark in segment.marks)
                first, last = (task.length(segment.field, segment.text[:edge]) for edge in (start, end))
                place = Place(segment.field, segment.piece, first, last, segment.text[start:end], tuple(words[:SUBSTITUTES]))
                if words and not inside and apply(task, row, {place: place.word}) is not None:
                    places.append(place)
        results.append(places)
    return results


def apply(task: Task, row: Row, words: Mapping[Place, str]) -> dict[str, Any] | None:
    """Return a row with words replaced; None if its task refuses the edits, or what they make of the row."""
    try:
        new = {**row, **task.apply_edits(row, edits_of(words))}
    except ValueError:  # a part of a token, or of an entity
        return None
    return None if task.validate({name: new[name] for name in (*task.columns, "label") if name in new}) else new


def edits_of(words: Mapping[Place, str]) -> list[Edit]:
    """Return replaced words as a row's edits, in order."""
    return [place.edit(after) for place, after in sorted(words.items())]
