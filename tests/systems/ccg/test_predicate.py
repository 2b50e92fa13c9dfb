"""The place of a phrase between two entities, and what another phrase there breaks."""

from __future__ import annotations

from typing import Any

import pytest
from offline_models import installed
from tiny_relation import row

from hfcf.core.model import Model
from hfcf.engines.parser import Parser
from hfcf.systems.ccg.predicate import Gap, find_gap, why_broken
from hfcf.tasks.relation import TASK, spans, token_edits

pytestmark = pytest.mark.skipif(not installed("spacy"), reason="the offline spaCy pipeline is not installed")

PARSER = Parser(backend="spacy", model=Model("offline:spacy"))


def gap_of(text: str) -> tuple[dict[str, Any], Any, Gap | str]:
    source = row(text)
    (parse,) = PARSER.run([source["tokens"]])
    return source, parse, find_gap(source, parse)


@pytest.mark.parametrize(
    ("text", "words", "kind", "past", "plural"),
    [
        ("The [ice] was contained in an insulating {box} .", "was contained in", "finite", True, False),
        ("Those [aliens] travel to the deep {space} in seconds .", "travel to", "finite", False, True),
        # What the first entity's phrase has of its own stays, and the number is that of the subject.
        ("The [opinions] of our friend have fallen into old {groups} .", "have fallen into", "finite", False, True),
        ("They repaired the [damage] that was caused by the {storm} .", "that was caused by", "relative", True, False),
        ("The [facade] of the {building} is of stone .", "of", "reduced", True, None),
        ("She moved the [files] into his {folder} .", "into", "reduced", True, None),
    ],
)
def test_the_whole_predicate_gives_way_and_no_article_does(
    text: str, words: str, kind: str, past: bool, plural: bool | None
) -> None:
    source, _, gap = gap_of(text)
    assert isinstance(gap, Gap)
    assert " ".join(source["tokens"][gap.start : gap.end]) == words
    assert (gap.kind, gap.past, gap.plural) == (kind, past, plural)


def test_a_noun_without_an_article_is_told() -> None:
    bare, determined = (gap_of(text)[2] for text in ("The [gas] leaked into {water} .", "The [gas] leaked into the {water} ."))
    assert isinstance(bare, Gap)
    assert isinstance(determined, Gap)
    assert (bare.bare, determined.bare) == (True, False)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("In this [work] the {authors} explain it .", "no word is between the noun phrases"),
        ("The [servant] who carves removes the fat with a {spoon} .", "several clauses"),
        ("The [factory] 's output of {firearms} increased .", "belongs to a noun between the entities"),
        ("The [man] slept ; the {dog} barked .", "two sentences"),
    ],
)
def test_where_no_phrase_can_stand_the_reason_is_told(text: str, reason: str) -> None:
    gap = gap_of(text)[2]
    assert isinstance(gap, str)
    assert reason in gap


@pytest.mark.parametrize(
    ("text", "phrase", "trouble"),
    [
        ("The [ice] was contained in an old {box} .", "came from", None),
        ("The [ice] was contained in an old {box} .", "coming from", "another number of finite verbs"),
        ("The [facade] of the {building} is of stone .", "removed from", None),
        ("The [facade] of the {building} is of stone .", "was removed from", "another number of finite verbs"),
    ],
)
def test_a_phrase_keeps_the_clauses_of_its_sentence(text: str, phrase: str, trouble: str | None) -> None:
    source, before, gap = gap_of(text)
    assert isinstance(gap, Gap)
    edited = TASK.apply_edits(source, token_edits(source["tokens"], range(gap.start, gap.end), phrase))
    (after,) = PARSER.run([edited["tokens"]])
    told = why_broken(before, after, gap, len(phrase.split()), sorted(spans(edited))[1][1])
    assert (told is None) if trouble is None else (trouble in (told or ""))
