"""The input formats of plain relation classifiers: a sentence with markers around its two entities, or masks for them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hfcf.core.model import Model

FORMS: Mapping[str, str] = {
    "entity-markers": "[E1] {head} [/E1]; [E2] {tail} [/E2]",
    "semeval": "<e1>{head}</e1>; <e2>{tail}</e2>",
    "typed-markers": "[E1:{head_type}] {head} [/E1:{head_type}]; [E2:{tail_type}] {tail} [/E2:{tail_type}]",
    "typed-punctuation": "@ * {head_type} * {head} @; # ^ {tail_type} ^ {tail} #",
    "tacred-masks": "SUBJ-{head_type}; OBJ-{tail_type}",
}
"""Named formats: what replaces the first argument; what replaces the second argument. The punctuation comes from Zhou and Chen
2022, "An Improved Baseline for Sentence-level Relation Extraction" (AACL); the masks from Zhang et al. 2017, TACRED (EMNLP)."""
ENTITIES = ("head", "tail")
_FIELD = re.compile(r"\{(\w*)\}")


@dataclass(frozen=True)
class Markers:
    """What replaces head and tail in a sentence; `parse_markers` makes it from a name or a text."""

    name: str
    head: str
    tail: str

    @property
    def typed(self) -> bool:
        """Whether the entities' types are written."""
        return "_type}" in self.name

    def render(self, tokens: Sequence[str], head: Sequence[Any], tail: Sequence[Any], spaces: Sequence[bool] | None = None) -> str:
        """Write a sentence with its two entities marked or masked; of nested entities, the outer entity has the outer markers.

        `spaces` says after which tokens a space stands; by default after all.
        """
        words, masks, gaps = list(tokens), dict[int, str](), list(spaces or [True] * len(tokens))
        spans = sorted(zip(ENTITIES, (head, tail), strict=True), key=lambda entity: entity[1][1] - entity[1][0])
        for name, (start, end, *types) in spans:
            if not 0 <= start < end <= len(tokens):
                raise ValueError(f"the entity {start}–{end} is empty or outside of its sentence of {len(tokens)} words")
            part = getattr(self, name)
            if f"{{{name}_type}}" in part:
                if not (types and types[0]):
                    raise ValueError(f"inputs={self.name!r} writes the {name}'s type, and a row has none")
                part = part.replace(f"{{{name}_type}}", types[0])
            before, field, after = part.partition(f"{{{name}}}")
            if field:
                words[start] = before + words[start]
                words[end - 1] += after
            else:
                masks[start] = " ".join([part, *(masks.pop(i) for i in range(start, end) if i in masks)])
                words[start:end] = [masks[start], *[""] * (end - start - 1)]
                gaps[start] = gaps[end - 1]
        return "".join(word + " " * gap for word, gap in zip(words, gaps, strict=True) if word).strip()

    def markers(self, types: Sequence[str | None]) -> list[str]:
        """List the markers of a sentence whose head and tail have these types, as words of their own."""
        texts: list[str] = []
        for name, kind in zip(ENTITIES, types, strict=True):
            texts += getattr(self, name).replace(f"{{{name}_type}}", kind or "").replace(f"{{{name}}}", " ").split()
        return list(dict.fromkeys(texts))


@lru_cache(maxsize=64)
def parse_markers(name: str) -> Markers:
    """Make the markers of a setting `inputs`."""
    text = FORMS.get(name, name)
    parts = [part.strip() for part in text.split(";")]
    fields = [{match[1] for match in _FIELD.finditer(part)} for part in parts]
    allowed = [{entity, f"{entity}_type"} for entity in ENTITIES]
    if len(parts) != 2 or not all(has and has <= may for has, may in zip(fields, allowed, strict=True)):
        raise ValueError(
            f"inputs={name!r} is not an input format of a relation classifier. Give one of {', '.join(FORMS)}, or a text such as "
            f"{FORMS['entity-markers']!r}: what replaces the head; what replaces the tail"
        )
    return Markers(text, *parts)


def reads_types(model: Model) -> bool:
    """Return whether a relation classifier reads the types of the entities."""
    return model.inputs is not None and parse_markers(model.inputs).typed
