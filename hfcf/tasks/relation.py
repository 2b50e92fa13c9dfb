"""Relation extraction: a sentence in tokens, two entities in it, and the relation between them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from datasets import List

from hfcf.core.candidates import Candidate
from hfcf.core.edits import Edit, by_place, refuse_rest
from hfcf.core.form import Entry
from hfcf.core.model import Model
from hfcf.core.schema import SPAN, TEXT, TOKENS, why_unread
from hfcf.core.segments import Mark, Segment, write_text
from hfcf.core.task import HubNames, Row, Task, find_problem
from hfcf.engines.markers import ENTITIES, parse_markers, reads_types
from hfcf.text.check import text_problem
from hfcf.text.normalise import normalise

OTHER = "Other"
"""SemEval's label of a sentence that has none of its relations: such a row gets no counterfactual, and no counterfactual gets
it."""

_NO_RELATION = {"norelation", "na", "other"}
"""Names of that label in other corpora, and of classes of models."""
Span = tuple[int, int]

_FORM_TAG = re.compile(r"\[(/?)(head|tail)\]", re.IGNORECASE)
_DIRECTED = re.compile(r"(?=.*\(e[12],e[12]\)\Z)(.+)-(.+)\((e[12]),e[12]\)")


def relation_of(name: str) -> str:
    """Return a relation's name; "Other" for the names that mean no relation, which systems do not change."""
    return OTHER if normalise(name) in _NO_RELATION else name


@dataclass(frozen=True, kw_only=True, eq=False)
class Relation(Task):
    """Rows of `tokens`, the positions of `head` and `tail`, and `label`.

    An edit's offsets are token indices; its `before` and `after` are tokens joined by spaces. Entities move along and are never
    edited.

    >>> row = {"tokens": "eggs moved into buckets".split(), "head": {"start": 0, "end": 1}, "tail": {"start": 3, "end": 4}}
    >>> TASK.apply_edits(row, [{"field": "tokens", "piece": -1, "start": 1, "end": 3, "before": "moved into", "after": "from"}])
    {'tokens': ['eggs', 'from', 'buckets'], 'head': {'start': 0, 'end': 1}, 'tail': {'start': 2, 'end': 3}}
    """

    def validate(self, row: Row) -> str | None:
        if "tokens" not in row:
            return None
        tokens = row["tokens"]
        if not tokens:
            return "there are no tokens"
        for i, token in enumerate(tokens):
            if why := text_problem(token, f"token {i}", letters=False):
                return why
            if token.split() != [token]:
                return f"token {i}, {token!r}, holds white space"
        if why := text_problem(" ".join(tokens), "the sentence"):
            return why
        for name in ("head", "tail"):
            if name not in row:
                continue
            span = row[name]
            if span is None or span["start"] is None or span["end"] is None:
                return f"the {name} has no place"
            if not 0 <= span["start"] < span["end"]:
                return f"the {name} is at {span['start']}–{span['end']}, which is not a span"
            if span["end"] > len(tokens):
                return f"the {name} is at {span['start']}–{span['end']}, outside the {len(tokens)} tokens"
        if "label" in row and (row["label"] is None or not row["label"].strip()):
            return "there is no label"
        return None

    def segments(self, row: Row) -> list[Segment]:
        tokens = [str(token) for token in row.get("tokens") or []]
        starts = token_starts(tokens)
        marks = []
        for name, sign in (("head", "₁"), ("tail", "₂")):
            start, end = ((row.get(name) or {}).get(edge) for edge in ("start", "end"))
            if start is not None and end is not None and 0 <= start < end <= len(tokens):
                marks.append(Mark(starts[start], starts[end] - 1, name, sign))
        return [Segment("tokens", -1, " ".join(tokens), "sentence", tuple(marks))]

    def named_texts(self, row: Row) -> list[tuple[str, Any]]:
        return [(f"token {i}", token) for i, token in enumerate(row["tokens"])]

    def length(self, field: str, text: str) -> int:
        return len(text.split())

    def apply_edits(self, row: Row, edits: Iterable[Row]) -> dict[str, Any]:
        places = by_place(edits)
        columns = _edited(row, places.pop(("tokens", -1), []))
        refuse_rest(places)
        return columns

    def identity(self, row: Row) -> list[tuple[str, str]]:
        return [("sentence", " ".join(row["tokens"] or []))]

    def as_text(self, row: Row) -> str:
        return parse_markers("entity-markers").render(row["tokens"], *spans(row))

    def prompt(self, row: Row) -> str:
        head, tail = entities(row)
        lines = [
            f"Sentence: {' '.join(row['tokens'])}",
            f"First entity: {head}",
            f"Second entity: {tail}",
            self.question,
            "Answer:",
        ]
        return "\n".join(lines)

    def phrase(self, row: Row) -> dict[str, Any]:
        """Return the words from one entity to the other, both included.

        >>> row = {"tokens": "See fire after smoke .".split(), "head": {"start": 3, "end": 4}, "tail": {"start": 1, "end": 2}}
        >>> TASK.phrase(row)
        {'tokens': ['fire', 'after', 'smoke'], 'head': {'start': 2, 'end': 3}, 'tail': {'start': 0, 'end': 1}}
        """
        places = spans(row)
        first, last = min(start for start, _ in places), max(end for _, end in places)
        moved = {name: {**row[name], "start": row[name]["start"] - first, "end": row[name]["end"] - first} for name in ENTITIES}
        return {"tokens": row["tokens"][first:last], **moved}

    def read_form(self, texts: Mapping[str, str]) -> dict[str, Any]:
        return {"text": _FORM_TAG.sub(_as_tag, texts["sentence"].strip()), "label": texts["label"].strip()}

    def fill_form(self, row: Row) -> dict[str, str]:
        starts, text = token_starts(row["tokens"]), " ".join(row["tokens"])
        places = [(starts[start], starts[end] - 1) for start, end in spans(row)]
        if row.get("text") and row.get("offsets"):  # as it was written
            text = row["text"]
            places = [(row["offsets"][start]["start"], row["offsets"][end - 1]["end"]) for start, end in spans(row)]
        for (start, end), name in sorted(zip(places, ENTITIES, strict=True), reverse=True):
            text = f"{text[:start]}[{name}]{text[start:end]}[/{name}]{text[end:]}"
        return {"sentence": text, "label": row["label"]}

    def places(self, row: Row, value: Any) -> list[tuple[str, int, int, int]]:
        """List the words at indices of `tokens`, or the spans that other columns have."""
        starts = token_starts(row["tokens"])
        if isinstance(value, list) and value and all(type(i) is int and 0 <= i < len(row["tokens"]) for i in value):
            return [("tokens", -1, starts[i], starts[i + 1] - 1) for i in sorted(value)]
        return super().places(row, value)

    def check_model(self, model: Model, max_length: int | None) -> None:
        from hfcf.engines.classifier_spec import check_classifier

        check_classifier(model, None)

    def judge(self, rows: Sequence[Row], model: Model, max_length: int) -> list[dict[str, float] | None]:
        from hfcf.engines.relation_classifier import RelationClassifier

        return list(RelationClassifier(model=model, max_length=max_length).run(requests(rows, model)))


TASK = Relation(
    name="relation",
    columns={"tokens": TOKENS, "head": SPAN, "tail": SPAN},
    signature=("tokens",),
    change_names={"relation": "the sentence"},
    empty_row={"tokens": [], "head": None, "tail": None, "label": None},
    related=True,
    question="Which relation do the two entities have?",
    shared="a sentence",
    candidate={"text": TEXT, "label": TEXT},
    recipe="train_relation",
    trainer="hfcf.training.relation:TRAINER",
    scorer="hfcf.training.scorers:RELATIONS",
    verdict_prompt="hfcf.prompts.verdicts:RELATIONS",
    rewriting="hfcf.tasks.rewriting:SentenceRewriting",
    hub=HubNames(categories=("text-classification",), ids=("multi-class-classification",), tag="relation-extraction"),
    form=(
        Entry(name="sentence", title="Sentence", lines=3, hint="Mark both entities: [head]eggs[/head] in a [tail]box[/tail]."),
        Entry(name="label", title="Relation", hint="Between the head and the tail, such as Content-Container(e1,e2)."),
    ),
    demo="demo_relations",
)
CANDIDATES = List(TASK.candidate_features)
COUNTERFACTUALS = List(dict(TASK.counterfactual))


def _as_tag(match: re.Match[str]) -> str:
    return f"<{match[1]}e{1 + ENTITIES.index(match[2].lower())}>"


def _edited(row: Row, edits: Sequence[Row]) -> dict[str, Any]:
    tokens, last = list(row["tokens"]), len(row["tokens"])
    spans = {name: dict(row[name]) for name in ("head", "tail")}
    for edit in sorted(edits, key=lambda edit: (edit["start"], edit["end"]), reverse=True):
        start, end = edit["start"], edit["end"]
        if not 0 <= start <= end <= last:
            raise ValueError(f"the edit at {start}–{end} overlaps another edit, or lies outside the sentence")
        if (there := " ".join(tokens[start:end])) != edit["before"]:
            raise ValueError(f"the text at {start} is {there!r}, not {edit['before']!r}")
        after = edit["after"].split()
        tokens[start:end], last = after, start
        for name, span in spans.items():
            # An insertion at an entity's edge stays outside it.
            if start < row[name]["end"] and row[name]["start"] < end:
                raise ValueError(f"the edit at {start}–{end} touches the {name}")
            if end <= row[name]["start"]:
                shift = len(after) - (end - start)
                span["start"], span["end"] = span["start"] + shift, span["end"] + shift
    return {"tokens": tokens, **spans}


def token_edits(tokens: Sequence[str], removed: Iterable[int], term: str) -> list[Edit]:
    """Make the edits that remove tokens from a sentence and put a term where the first of them was."""
    runs: list[Edit] = []
    for i in sorted(set(removed)):
        if runs and runs[-1]["end"] == i:
            runs[-1]["end"] = i + 1
        else:
            runs.append({"field": "tokens", "piece": -1, "start": i, "end": i + 1})
    return [
        {**edit, "before": " ".join(tokens[edit["start"] : edit["end"]]), "after": "" if n else term} for n, edit in enumerate(runs)
    ]


def token_starts(tokens: Iterable[str]) -> list[int]:
    """List where each token starts in the text that joins them by spaces, and where a further token would start."""
    return list(accumulate((len(token) + 1 for token in tokens), initial=0))


def marked(row: Row) -> str:
    """Write a row's sentence with its entities in brackets: "[eggs]₂ in [buckets]₁"."""
    return write_text(TASK.segments(row))


def roles(label: str, forward: bool = True) -> str:
    """Write a relation in words for a model: for a directed label, the first role is the head's or, if reversed, the tail's."""
    match = _DIRECTED.fullmatch(label)
    if match is None:
        return label.lower()
    role, other, first = match.groups()
    return (f"{role}-{other}" if (first == "e1") == forward else f"{other}-{role}").lower()


def state_roles(label: str, head: str, tail: str) -> str:
    """Write a relation of two entities as a statement, which small models read better than the names of relations.

    >>> state_roles("Content-Container(e2,e1)", "box", "eggs")
    'box is the container and eggs is the content'
    """
    first, between, second = roles(label).partition("-")
    if not between or _DIRECTED.fullmatch(label) is None:
        return f"{head} and {tail}: {label}"
    return f"{head} is the {first} and {tail} is the {second}"


def spans(row: Row) -> tuple[Span, Span]:
    """Return where head and tail are, end-exclusive."""
    head, tail = ((row[name]["start"], row[name]["end"]) for name in ("head", "tail"))
    return head, tail


def entities(row: Row) -> tuple[str, str]:
    """Return the words of head and tail."""
    head, tail = (" ".join(row["tokens"][start:end]) for start, end in spans(row))
    return head, tail


def head_first(row: Row) -> bool:
    """Say whether the head precedes the tail, as in all of SemEval."""
    head, tail = spans(row)
    return head <= tail


def learnable(ds: Iterable[Row]) -> list[Row]:
    """Select the rows to learn from: rows that are sound and were not rejected when they were loaded."""
    return [row for row in ds if not find_problem(row) and why_unread(row.get("status")) is None]


def requests(rows: Iterable[Row], model: Model | None = None) -> list[list[Any]]:
    """Turn rows into requests to a relation classifier: tokens and places of entities, with types where the model reads them."""
    if model is None or not reads_types(model):
        return [[row["tokens"], *map(list, spans(row))] for row in rows]
    return [[row["tokens"], *([row[name][key] for key in ("start", "end", "type")] for name in ENTITIES)] for row in rows]


def written_requests(rows: Iterable[Row], model: Model) -> list[list[Any]]:
    """Return `requests` for a model that reads sentences as they were written: where a space stands is the last part of each.

    Rows whose columns `text` and `offsets` do not say so have a space after each token.
    """
    return [[*request, spaces] if (spaces := _spaces(row)) else request for row in rows for request in requests([row], model)]


def _spaces(row: Row) -> list[bool] | None:
    """Say after which tokens the text has white space; None if the row has no text of its tokens."""
    text, places = row.get("text"), [(place["start"], place["end"]) for place in row.get("offsets") or ()]
    if not text or [text[start:end] for start, end in places] != row["tokens"]:
        return None
    return [end < start for (_, end), (start, _) in pairwise([*places, (len(text), 0)])]


def between(row: Row) -> range:
    """Return the indices between the two entities, whichever comes first."""
    (_, start), (end, _) = sorted(spans(row))
    return range(start, max(start, end))


def context(row: Row) -> list[int]:
    """Return all indices outside the two entities."""
    inside = {i for start, end in spans(row) for i in range(start, end)}
    return [i for i in range(len(row["tokens"])) if i not in inside]


def overlap(row: Row) -> str | None:
    """Say what is wrong with entities that share a word; return None if nothing is wrong."""
    first, second = sorted(spans(row), key=lambda span: (span[0], -span[1]))
    if second[1] <= first[1]:
        return "one entity lies inside the other"
    return "the entities overlap" if second[0] < first[1] else None


def trouble(row: Row) -> str | None:
    """Say why a row's entities leave nothing to edit, or return None."""
    return overlap(row) or (None if between(row) else "there is no word between the entities")


def candidate(row: Row, label: str, edited: Sequence[Edit], scores: Sequence[Row] = ()) -> Candidate:
    """Make a candidate for a row's counterfactual from edits of `tokens`, without a verdict."""
    text = " ".join(TASK.apply_edits(row, edited)["tokens"])
    fields = {"text": text, "label": label, "change": "relation", "edits": list(edited), "scores": list(scores)}
    return {**fields, "status": None}
