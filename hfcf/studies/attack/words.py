"""The words of a row that an attack may replace, and their substitutes: WordNet's synonyms, or a masked language model's words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from hfcf.core.edits import Edit
from hfcf.core.model import Model
from hfcf.core.task import Row, Task
from hfcf.engines.masked import MaskFiller
from hfcf.engines.wordnet import wordnet
from hfcf.systems.baselines.masked_lm import MaskedLM, fitting_fills, maskable
from hfcf.systems.baselines.synonym import exchangeable, fitting_synonyms

SUBSTITUTES = 10
"""Substitutes that are tried for a word, the likeliest first."""

Word = tuple[tuple[int, int], list[str]]
"""A word's span in its text, and its substitutes, best first."""


class Place(NamedTuple):
    """A word that may be replaced; its offsets are those of the task's edits."""

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
    """Find the words of texts that have synonyms; rare and technical words have few, and a synonym may be of another sense."""
    return [[(match.span(), fitting_synonyms(text, match)) for match in exchangeable(text)] for text in texts]


def fills(texts: Sequence[str], preset: str) -> list[list[Word]]:
    """Find the words of texts for which a masked language model knows others, each masked alone; antonyms are left out."""
    settings = MaskedLM.preset(preset)
    spans = [maskable(text) for text in texts]
    requests = [[text, [list(span)]] for text, own in zip(texts, spans, strict=True) for span in own]
    engine = MaskFiller(model=Model.of(settings.model), top=4 * SUBSTITUTES, max_length=settings.rewrite_masked_lm.max_length)
    answers, net = iter(engine.run(requests)), wordnet()

    def others(text: str, span: tuple[int, int]) -> list[str]:
        word = text[slice(*span)]
        return [fill for fill, _ in fitting_fills(text, span, next(answers)[0]) if not net.are_antonyms(word, fill)]

    return [[(span, others(text, span)) for span in own] for text, own in zip(texts, spans, strict=True)]


SOURCES: Mapping[str, Callable[[Sequence[str], str], list[list[Word]]]] = {"synonym": synonyms, "masked_lm": fills}
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
