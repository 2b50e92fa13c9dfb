"""A row's texts as segments: what reports, diffs, metrics and people read of a row of any task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple


class Mark(NamedTuple):
    """A marked span of a segment, such as an entity: characters `start` to `end`, end-exclusive."""

    start: int
    end: int
    name: str
    """Its role: "head", "answer"."""
    sign: str = ""
    """What follows the closing bracket in plain text: "₁"."""


class Segment(NamedTuple):
    """One text of a row.

    All segments of one `block` are read as one text: a piece of evidence and its title.
    """

    field: str
    """The `field` of an edit of this segment."""
    piece: int
    """The `piece` of an edit of this segment: -1 if the field is not a list."""
    text: str
    block: str
    """What a person calls the text: "claim", "evidence 0"."""
    marks: tuple[Mark, ...] = ()

    @property
    def is_title(self) -> bool:
        """Whether it is the title of the segment that follows."""
        return self.field.endswith(".title")


def blocks(segments: Iterable[Segment]) -> dict[str, list[Segment]]:
    """Group segments by what a person reads as one text, in reading order."""
    groups: dict[str, list[Segment]] = {}
    for segment in segments:
        groups.setdefault(segment.block, []).append(segment)
    return groups


def plain(segments: Sequence[Segment]) -> str:
    """Write the segments of a block as one text, its title and its marks in brackets."""
    parts = (f"[{segment.text}]" if segment.is_title and segment.text else _marked(segment) for segment in segments)
    return " ".join(part for part in parts if part)


def _marked(segment: Segment) -> str:
    inserts: dict[int, list[str]] = {}
    for mark in segment.marks:
        inserts.setdefault(mark.end, []).append(f"]{mark.sign}")
    for mark in segment.marks:
        inserts.setdefault(mark.start, []).append("[")
    text = segment.text
    for place in sorted(inserts, reverse=True):
        text = text[:place] + "".join(inserts[place]) + text[place:]
    return text


def changed_texts(before: Iterable[Segment], after: Iterable[Segment]) -> tuple[str, str]:
    """Join the texts that differ between a source and its counterfactual, in reading order.

    Several texts are joined by spaces. A block whose title and text changed gives "title: text", as models read evidence
    (`hfcf.text.evidence.join`); a block where only the title changed gives the title.
    """
    old, new = blocks(before), blocks(after)
    if {name: len(parts) for name, parts in old.items()} != {name: len(parts) for name, parts in new.items()}:
        raise ValueError("the two rows have different texts")
    sides: tuple[list[str], list[str]] = [], []
    for name in old:
        differ = [(was.text, now.text) for was, now in zip(old[name], new[name], strict=True) if was.text != now.text]
        for texts, side in zip(sides, zip(*differ, strict=True), strict=False):
            texts.append(": ".join(filter(None, side)))
    return " ".join(filter(None, sides[0])), " ".join(filter(None, sides[1]))


def pair(row: Mapping[str, object], before: Iterable[Segment], after: Iterable[Segment]) -> dict[str, object]:
    """Pair the texts of a counterfactual with the texts of its source.

    Args:
        row: the counterfactual, with `id`, `change` and its outcome in `label`.
        before: the source's segments.
        after: the counterfactual's.

    Returns:
        `id`, `change` and `label`. `texts` has the blocks that changed, and `context` has the blocks that did not change, each as
        `{where, before, after}`. `before` and `after` have the changed texts, joined.

    >>> row = {"id": "1", "change": "claim", "label": "REFUTES"}
    >>> pair(row, [Segment("claim", -1, "a", "claim")], [Segment("claim", -1, "b", "claim")])["texts"]
    [{'where': 'claim', 'before': 'a', 'after': 'b'}]
    """
    old, new = ({name: plain(parts) for name, parts in blocks(side).items()} for side in (before, after))
    texts = [{"where": name, "before": old.get(name, ""), "after": new.get(name, "")} for name in dict.fromkeys([*old, *new])]
    changed = [text for text in texts if text["before"] != text["after"]]
    return {
        **{key: row.get(key) for key in ("id", "change", "label")},
        "texts": changed,
        "context": [text for text in texts if text["before"] == text["after"]],
        "before": " ".join(text["before"] for text in changed),
        "after": " ".join(text["after"] for text in changed),
    }
