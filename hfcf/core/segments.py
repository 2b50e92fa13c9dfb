"""A row's texts as segments, and beside those of its source as marked spans: what people read of a row of any task.

`Task.segments(row)` lists the texts, `compare_texts` finds their spans, and `write_text`, `hfcf.report.markup` writes them as
HTML and for the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

from hfcf.core.edits import diff


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


class DiffSpan(NamedTuple):
    """A stretch of a text: what it is beside the text of the source, and the mark that it lies in."""

    kind: str
    """same, out (of the source alone) or in (of the new text alone)."""
    text: str
    """With the white space before it."""
    mark: str = ""
    """The name of its mark."""
    sign: str = ""
    """The sign of its mark."""


def find_spans(
    before: str, after: str, old: Sequence[Mark] = (), new: Sequence[Mark] = (), *, side: str = "after"
) -> list[DiffSpan]:
    """Cut two texts into what stays, goes and comes, and at the edges of their marks; what stays has the marks of one side.

    >>> [tuple(span[:2]) for span in find_spans("a red box", "a blue box")]
    [('same', 'a'), ('out', ' red'), ('in', ' blue'), ('same', ' box')]
    """
    if before == after and not (new if side == "after" else old):
        return [DiffSpan("same", after)] if after else []
    spans: list[DiffSpan] = []
    i = j = 0
    for kind, text in [("same", after)] if before == after else diff(before, after):
        start, marks = (i, old) if kind == "out" or (kind, side) == ("same", "before") else (j, new)
        edges = {start, start + len(text)} | {edge for mark in marks for edge in mark[:2] if start < edge < start + len(text)}
        for left, right in pairwise(sorted(edges)):
            mark = next((mark for mark in marks if mark.start <= left and right <= mark.end), Mark(0, 0, ""))
            spans.append(DiffSpan(kind, text[left - start : right - start], mark.name, mark.sign))
        i += len(text) * (kind != "in")
        j += len(text) * (kind != "out")
    return spans


def bracket(spans: Iterable[DiffSpan]) -> Iterator[tuple[DiffSpan, str]]:
    """Yield each span with its text, in brackets and followed by its sign where it is marked."""
    for (mark, sign), group in groupby(spans, key=itemgetter(2, 3)):
        marked = list(group)
        for n, span in enumerate(marked):
            stripped = span.text.lstrip()
            opening = f"{span.text[: len(span.text) - len(stripped)]}[" if mark and n == 0 else ""
            yield span, f"{opening}{stripped if opening else span.text}" + (f"]{sign}" if mark and n == len(marked) - 1 else "")


def write_text(segments: Sequence[Segment]) -> str:
    """Write the segments of a block as one text, its title and its marks in brackets."""
    texts = ("".join(text for _, text in bracket(find_spans(part.text, part.text, (), part.marks))) for part in segments)
    return " ".join(f"[{text}]" if part.is_title else text for part, text in zip(segments, texts, strict=True) if text)


class Block(NamedTuple):
    """What a person reads as one text, beside the text of the source."""

    name: str
    """As "claim" or "evidence 0"."""
    old: Sequence[Segment]
    """The source's."""
    new: Sequence[Segment]

    def spans(self, side: str = "after") -> tuple[list[DiffSpan], list[DiffSpan]]:
        """Return what stays, goes and comes, of the title and of the text; what stays has the marks of one side."""
        sides = [{part.field: part for part in parts} for parts in (self.old, self.new)]
        found: tuple[list[DiffSpan], list[DiffSpan]] = [], []
        for field in dict.fromkeys([*sides[0], *sides[1]]):
            was, now = (parts.get(field) or Segment(field, -1, "", self.name) for parts in sides)
            found[not now.is_title].extend(find_spans(was.text, now.text, was.marks, now.marks, side=side))
        return found

    @property
    def before(self) -> str:
        """The source's text, its title and its marks in brackets."""
        return write_text(self.old)

    @property
    def after(self) -> str:
        """The new text in the same form."""
        return write_text(self.new)

    @property
    def changed(self) -> bool:
        """Whether the texts differ."""
        old, new = ({part.field: part.text for part in parts if part.text} for parts in (self.old, self.new))
        return old != new

    @property
    def is_alike(self) -> bool:
        """Whether enough of the text is left for its changes to be shown inside it."""
        _, spans = self.spans()
        sizes = {kind: sum(len(span.text) for span in spans if span.kind == kind) for kind in ("same", "out", "in")}
        return not self.changed or sizes["same"] >= ALIKE * (sizes["same"] + max(sizes["out"], sizes["in"]))


ALIKE = 0.3
"""The share of a text that must be left for its changes to be shown inside it."""


def compare_texts(before: Iterable[Segment], after: Iterable[Segment]) -> list[Block]:
    """Compare the texts of a row with those of its source, block by block, in reading order."""
    old, new = blocks(before), blocks(after)
    return [Block(name, old.get(name, []), new.get(name, [])) for name in dict.fromkeys([*old, *new])]


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
    texts = [{"where": block.name, "before": block.before, "after": block.after} for block in compare_texts(before, after)]
    changed = [text for text in texts if text["before"] != text["after"]]
    return {
        **{key: row.get(key) for key in ("id", "change", "label")},
        "texts": changed,
        "context": [text for text in texts if text["before"] == text["after"]],
        "before": " ".join(text["before"] for text in changed),
        "after": " ".join(text["after"] for text in changed),
    }
