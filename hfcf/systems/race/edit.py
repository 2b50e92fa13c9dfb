"""Editing the evidence of SUPPORTS rows: entities are replaced or swapped, everywhere at once (RACE, section 3.2)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import accumulate, islice
from random import Random
from typing import Any, ClassVar

from datasets import Dataset, IterableDataset

from hfcf.core import edits, schema
from hfcf.core.artifacts import read_artifact, save_artifact
from hfcf.core.stage import Reject, Stage, StageError
from hfcf.engines.entity_types import place_kind
from hfcf.engines.wordnet import wordnet
from hfcf.systems._shared.plausible import Draw, divide_names, is_near, plausible_shape
from hfcf.systems.race.follow import ONE, edits_of, excludes
from hfcf.tasks.verification import SUPPORTS, TASK
from hfcf.text.entities import IN_DATASET, IN_INSTANCE, Collector, EntityTable, cased, is_month, value_shape
from hfcf.text.evidence import evidence_texts, say_cut, why_misplaced
from hfcf.text.lifetimes import find_years
from hfcf.text.negation import denies, negation_of
from hfcf.text.phrase_match import mentions
from hfcf.text.quantities import convert


@dataclass(frozen=True, kw_only=True)
class EditEvidence(Stage):
    """Write one counterfactual version E′ of a SUPPORTS row's evidence; REFUTES rows keep theirs.

    Input columns: `claim`, `evidence`, `label`, `entities`, `rationales`. Output columns: `causal_entities`, `edits` (of texts and
    titles), `edited_evidence` and `edited_entities`. `causal_entities` are T: the entities that overlap a token rationale.
    `edited_evidence` is E′; the evidence itself for REFUTES. `edited_entities` are T′, with offsets into E′; T for REFUTES.

    Rules, for causal entities only:

    - *in-dataset*: a GPE, DATE or NUM is replaced by a random other value of its type and shape in the dataset's table
      (`hfcf.text.entities.value_shape`). The row does not hold that value yet. Different values get different substitutes.
    - *in-instance*: PERSONs change places with PERSONs and ORGs with ORGs, in one random cycle, when there are two or more in
      different pieces. Deviation: the paper swaps "PERSON/ORG". A name in the title that all pieces share is not swapped, since
      this would only rename the page's subject.
    - *in proportion*: both sides of a converted quantity ("5 km (3.1 mi)") change. The paper has no such rule.
    - *consistent*: a change is made at every mention in every piece and title, also outside the rationales. Mentions are whole
      words, the longest first, so that "Washington Post" keeps "Washington". A possessive ending stays. A PERSON's shorter names
      (first or last name, or without the middle name) follow the full name.
    - *plausible*, on request (the paper draws by type alone): a place is replaced by a place of its kind, and births stay before
      deaths. Only names of the same kind change places, and an acronym follows its name. Kinds are the kinds of English WordNet; an
      unknown place is replaced by another unknown place where the dataset has such a place. Where the dataset has no other value of
      a form, a common value is drawn, such as another city. See `hfcf.systems._shared.plausible`.
    - *near*, on request (the paper has no such rule): a year changes by at most 50 years, a number at most ten times. A number or
      a year in a title stays, as does a place in the title that all pieces share. With another year, "2014 World Championship" is
      another subject. The years of a row stay in order, and parts and wholes ("27 of the 60") as they are. A place stays if
      WordNet does not list it, if it is named with the place around it ("Florence, Italy"), or if it may be a team ("plays for
      Chelsea"). So do "one", "first" and a value that is part of a name ("League 2", "University of Ohio").

    - *not denied*: an entity that a negation covers stays, in the claim or in the evidence, since another value there refutes
      nothing ("not in Canada" for "not in Germany"). The paper has no such rule.

    A row is rejected if it has no causal entity, or if its entities or rationales are not at their offsets. A SUPPORTS row is also
    rejected if no causal entity has a substitute.

    It learns the table of substitutes from the column `entities` of all rows.

    Args:
        edit: whether evidence is edited at all; without it every row keeps its evidence, and none is rejected: the paper's ablation
            −EDIT (section 5.2).
        plausible: draw plausible substitutes only.
        near: draw near substitutes only.
        claimed: edit only one date, number or place that the claim names too. It is causal if possible. Where there is no such
            value to edit, edit the names that claim and rationales have in common, and then all causal entities. The paper edits
            all; small verifiers miss the flip of the label, or find none where the claim does not speak of what changed.

    >>> EditEvidence()({"id": "1"})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    hfcf.core.stage.StageError: edit_evidence learns from the whole set (entities) and is not fitted: ...
    """

    VERSION = "8"

    inputs: ClassVar = {**TASK.columns, "label": schema.TEXT, "entities": schema.ENTITIES, "rationales": schema.RATIONALES}
    outputs: ClassVar = {
        "causal_entities": schema.ENTITIES, "edits": schema.EDITS,
        "edited_evidence": schema.EVIDENCE, "edited_entities": schema.ENTITIES,
    }  # fmt: skip
    optional: ClassVar = {"unread": schema.INT}
    produced_by: ClassVar = {"entities": "race.tag_entities", "rationales": "race.explain"}

    edit: bool = True
    plausible: bool = False
    near: bool = False
    claimed: bool = False

    @property
    def fit_inputs(self) -> tuple[str, ...]:
        return ("entities",) if self.edit else ()

    def learn(self, ds: Dataset | IterableDataset) -> str:
        collector = Collector(shape_of=plausible_shape, votes=True) if self.plausible else Collector()
        for row in ds.select_columns(["entities"]):
            collector.add(entity for entity in row["entities"] or () if entity["field"] != "claim")
        table = collector.table()
        return save_artifact({"entities": table.values, **({"tags": table.tags} if self.plausible else {})})

    def check_available(self) -> None:
        """Raise if WordNet, which knows kinds of places and what excludes what, is needed and not installed."""
        if self.edit and (self.plausible or self.near or self.claimed):
            wordnet()

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        here = [entity for entity in row["entities"] if entity["field"] != "claim"]
        if why := why_misplaced(row, here, "an entity") or why_misplaced(row, row["rationales"], "a rationale"):
            raise Reject(why)
        causal = [entity for entity in here if any(edits.overlap(entity, span) for span in row["rationales"])]
        if self.claimed and not causal:
            causal = [entity for entity in here if mentions(row["claim"], entity["text"])]
        if self.edit and not causal:
            cut = say_cut(row.get("unread"))
            raise Reject(f"no entity of the types ORG, PERSON, DATE, GPE or NUM is in the token rationales{cut}")
        if not self.edit or row["label"] != SUPPORTS:
            return {"causal_entities": causal, "edits": [], "edited_evidence": row["evidence"], "edited_entities": causal}
        texts = {(field, piece): text for field, piece, text in evidence_texts(row)}
        free = [entity for entity in here if not _is_denied(entity, row["claim"], texts)]
        editable = [entity for entity in causal if entity in free]
        if not editable:
            raise Reject("a negation covers every causal entity: another value there refutes nothing", causal_entities=causal)
        choices = _one_by_one(row["claim"], editable, free, self.random(row["id"])) if self.claimed else [editable]
        names = [entity["text"] for entity in here]
        edited_by = (edits_of(row, self._changes(row, here, chosen), names) for chosen in choices)
        changed = _choose(row, edited_by) if self.claimed else next(edited_by)
        if not changed:
            reason = (
                "no causal entity can be edited: there is no other value of its form that the row allows, and no second person or "
                "organisation in another piece to swap with"
            )
            raise Reject(reason, causal_entities=causal)
        edited = TASK.apply_edits({"claim": "", "evidence": row["evidence"]}, changed)["evidence"]
        if why := TASK.validate({"evidence": edited}):  # a long piece with many longer names
            raise Reject(f"the edited evidence can't be worked on: {why}", causal_entities=causal)
        places = {place: (made, *_ends(made)) for place, made in edits.by_place(changed).items()}
        entities = [_moved(entity, edited, *places.get((entity["field"], entity["piece"]), ((), (), (0,)))) for entity in causal]
        return {"causal_entities": causal, "edits": changed, "edited_evidence": edited, "edited_entities": entities}

    def _changes(self, row: Mapping[str, Any], here: Sequence[Any], causal: Sequence[Any]) -> dict[str, str]:
        """Choose a substitute for every surface form of the causal entities: {before: after}."""
        rng, table = self.random(row["id"]), _entity_table(self.fitted or "", self.plausible)
        changes: dict[str, str] = {}
        texts = [row["claim"], *(text for _, _, text in evidence_texts(row))]
        draw = Draw(row, table, rng, self.near) if self.plausible else None
        subject, titles = _subject(row), {piece["title"] or "" for piece in row["evidence"]}
        parts = {number for text in texts for pair in _PART_OF.findall(text) for number in pair} if self.near else ()
        for type_ in IN_DATASET:
            for value in dict.fromkeys(entity["text"] for entity in causal if entity["type"] == type_):
                if self.near and (value in parts or _is_fixed(value, type_, titles, subject) or _binds(value, type_, texts)):
                    continue
                fits = partial(is_near, value, type_) if self.near else None
                if (new := draw(value, type_) if draw else table.substitute(value, type_, texts, rng, fits)) is not None:
                    changes[value] = new
                    texts.append(new)
                    # "two parts" and "Two men" are the same number; "May" and "may" are not the same month.
                    if type_ != "GPE" and not is_month(value):
                        other = value[0].swapcase() + value[1:]
                        changes.setdefault(other, cased(new, like=other))
        for type_ in IN_INSTANCE:
            people = type_ == "PERSON"
            names = _groups([entity["text"] for entity in here if entity["type"] == type_], people, self.plausible)
            fixed = {name for name in names if any(mentions(subject, variant) for variant in names[name])}
            causal_texts = {entity["text"] for entity in causal if entity["type"] == type_}
            chosen = [name for name in names if name not in fixed and not causal_texts.isdisjoint(names[name])]
            pieces_of: dict[str, set[int]] = {}
            for entity in here:
                if entity["type"] == type_:
                    pieces_of.setdefault(entity["text"], set()).add(entity["piece"])
            pieces = {name: set[int]().union(*(pieces_of[variant] for variant in names[name])) for name in chosen}
            for sort in divide_names(chosen, type_, table) if self.plausible else [chosen]:
                for old, new in _cycle(sort, pieces, rng):
                    for short in (*names[old], *([last] if people and (last := _last(old)) else ())):
                        changes.setdefault(short, _shorter(new, short, old) if people else new)
        return convert(changes, texts, [entity["text"] for entity in here])


def _choose(row: Mapping[str, Any], choices: Iterable[list[edits.Edit]]) -> list[edits.Edit]:
    """Choose the first edits that exclude the claim, else the first that change anything; else none."""
    first: list[edits.Edit] = []
    for changed in choices:
        if changed and excludes({**row, "edits": changed, "edited_evidence": TASK.apply_edits(row, changed)["evidence"]}):
            return changed
        first = first or changed
    return first


def _one_by_one(claim: str, causal: Sequence[Any], here: Sequence[Any], rng: Random) -> Iterator[Sequence[Any]]:
    """Yield what may be edited, the best first: one value that the claim names, then the names in it, then what is causal.

    The order is random, causal values first. Dates of one year are one value.
    """
    for entities in (causal, here):
        values = list(
            dict.fromkeys((e["text"], e["type"]) for e in entities if e["type"] in IN_DATASET and mentions(claim, e["text"]))
        )
        rng.shuffle(values)
        for value, type_ in values:
            years = set(find_years(value)) if type_ == "DATE" else set[int]()
            yield [e for e in here if e["text"] == value or (e["type"] == "DATE" and not years.isdisjoint(find_years(e["text"])))]
    yield [e for e in causal if e["type"] in IN_INSTANCE and mentions(claim, e["text"])]
    yield causal


@lru_cache(maxsize=4)
def _entity_table(sha: str, plausible: bool) -> EntityTable:
    content = read_artifact(sha, "run race = race.fit(ds) again")
    if ("tags" in content) != plausible:
        raise StageError(f"the entity table was fitted with plausible={not plausible}: run race = race.fit(ds) again")
    return EntityTable(content["entities"], content.get("tags"), plausible_shape if plausible else value_shape)


_PART_OF = re.compile(r"(?<![\d.,])(\d[\d,.]{0,20}) of (?:the |its |their )?(\d[\d,.]{0,20})")


_TEAM = r"(?:for|with|against|joined|beat|defeated)"
"""A word before the name of a team, which taggers take for its place."""


def _is_fixed(value: str, type_: str, titles: Iterable[str], subject: str) -> bool:
    """Whether a place is in the title that all pieces share, or a number or a year of a date in any."""
    if type_ == "GPE":
        return mentions(subject, value)
    return any(mentions(title, text) for title in titles for text in (value, *map(str, find_years(value))))


def _binds(value: str, type_: str, texts: Iterable[str]) -> bool:
    """Whether other words would have to change too: "one", "Florence, Italy", "the Congo", "plays for Chelsea", "League 2"."""
    if type_ == "GPE" and not (place_kind(value) and value[0].isupper() and not value.isupper()):
        return True
    word = re.escape(value)
    within = rf"{word}, [A-Z]|[A-Z]\w+, {word}|[A-Z]\w+ of {word}|[Tt]he {word}|{_TEAM} {word}" if type_ == "GPE" else ""
    numbered = rf"[A-Z]\w+ {word}\b" if type_ == "NUM" else ""
    pattern = re.compile(rf"\b(?:{within or numbered})") if within or numbered else None
    return value.casefold() in ONE or (pattern is not None and any(pattern.search(text) for text in texts))


def _is_denied(entity: Mapping[str, Any], claim: str, texts: Mapping[tuple[str, int], str]) -> bool:
    """Whether evidence with another value in the place of an entity would not refute the claim, because of a negation."""
    text = texts[entity["field"], entity["piece"]]
    return negation_of(text, entity["start"], entity["end"]) is not None or denies(claim, entity["text"])


def _subject(row: Mapping[str, Any]) -> str:
    """Return the title that all pieces of evidence share, or ""."""
    titles = {piece["title"] or "" for piece in row["evidence"]}
    return titles.pop() if len(titles) == 1 else ""


def _groups(mentions: Sequence[str], people: bool, acronyms: bool = False) -> dict[str, list[str]]:
    """Group names with their shorter forms: {fullest name: [every form]}; a form of two names goes to the first."""
    groups: dict[str, list[str]] = {}
    # Shorter forms of people have a word of the full name, shorter forms of organisations its initials.
    by_word: dict[str, list[str]] = {}
    by_initials: dict[str, str] = {}
    for name in sorted(dict.fromkeys(mentions), key=lambda name: -len(name.split())):
        words = name.split()
        candidates = by_word.get(words[0], []) if words else list(groups)
        full = next((other for other in candidates if people and _in_order(words, other.split())), None)
        if full is None and acronyms and not people:
            full = by_initials.get(name)
        if full is None:
            by_initials.setdefault(_initials(name), name)
            for word in dict.fromkeys(words):
                by_word.setdefault(word, []).append(name)
        groups.setdefault(full or name, []).append(name)
    return groups


def _initials(name: str) -> str:
    """Return the initials of a name of several words, without lower-case initials."""
    words = name.split()
    return "".join(word[0] for word in words if word[0].isupper()) if len(words) > 1 else ""


def _in_order(words: Sequence[str], longer: Sequence[str]) -> bool:
    rest = iter(longer)
    return all(word in rest for word in words)


def _cycle(names: Sequence[str], pieces: Mapping[str, set[int]], rng: Random) -> list[tuple[str, str]]:
    """Draw a cycle through all names; [] when there is only one, or all are in the same piece."""
    order = sorted(names)
    if len(order) < 2 or len(set().union(*(pieces[name] for name in order))) < 2:
        return []
    rng.shuffle(order)
    return list(zip(order, [*order[1:], order[0]], strict=True))


def _shorter(new: str, short: str, full: str) -> str:
    """Shorten the name `new` as `short` shortens the name `full`."""
    if len(short.split()) > 1 or len(full.split()) == 1:
        return new
    return (_last(new) or new) if short in (_last(full), full.split()[-1]) else new.split()[0]


_SUFFIX = re.compile(r"(?:[IVX]+|[JS]r\.?)$")


def _last(name: str) -> str | None:
    """Return the family name of a full name: its last word that is not a numeral or "Jr."."""
    words = name.split()
    while words and _SUFFIX.match(words[-1]):
        words.pop()
    return words[-1] if len(words) > 1 and words[-1][0].isupper() else None


def _ends(changed: Sequence[Mapping[str, Any]]) -> tuple[list[int], list[int]]:
    """Return where each edit of a text ends, and by how much the text has grown before each and after the last."""
    growths = (len(edit["after"]) - len(edit["before"]) for edit in changed)
    return [edit["end"] for edit in changed], list(accumulate(growths, initial=0))


def _moved(
    entity: Mapping[str, Any],
    evidence: Sequence[Mapping[str, Any]],
    changed: Sequence[Mapping[str, Any]],
    ends: Sequence[int],
    growth: Sequence[int],
) -> dict[str, Any]:
    """Move an entity of a text, whose sorted edits are `changed`, to its place in the edited evidence, with its text there."""
    first = bisect_right(ends, entity["start"])
    start, end = entity["start"] + growth[first], entity["end"] + growth[first]
    for edit in islice(changed, first, None):
        if edit["start"] >= entity["end"]:
            break
        if not (entity["start"] <= edit["start"] and edit["end"] <= entity["end"]):
            # "New York" was tagged inside "New York City": the new text of the longer name is there now.
            begin = edit["start"] + start - entity["start"]
            return {**entity, "start": begin, "end": begin + len(edit["after"]), "text": edit["after"]}
        end += len(edit["after"]) - len(edit["before"])
    text = evidence[entity["piece"]]["title" if entity["field"] == "evidence.title" else "text"][start:end]
    return {**entity, "start": start, "end": end, "text": text}
