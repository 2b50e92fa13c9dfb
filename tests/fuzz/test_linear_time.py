"""No text makes a regular expression, or another function over texts, run for longer than its length says."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import patterns
import pytest

from hfcf.core import edits
from hfcf.corpora.formats import answers as answer_places
from hfcf.corpora.formats.feverous_pages import plain
from hfcf.corpora.formats.tokens import tokenise
from hfcf.corpora.formats.wikipedia import split_sentences
from hfcf.engines.label_preserving import why_preserving
from hfcf.metrics.copy_rate import copy_rate
from hfcf.systems.crossaug import spaced_like
from hfcf.systems.race.edit import EditEvidence
from hfcf.systems.race.replace import edits_of
from hfcf.tasks.rewriting import SentenceRewriting
from hfcf.text.entities import EntityTable
from hfcf.text.enumerations import in_one_list
from hfcf.text.phrase_match import find_places, mentions
from hfcf.text.questions import read_references
from hfcf.training.cloze import wh_question

BOUND = 0.5
"""Seconds of processor time for 20,000 characters, where what is linear takes milliseconds; what is quadratic takes seconds."""

# Files whose patterns are put together from texts: functions below. The gold answers of one corpus are patterns themselves.
PUT_TOGETHER = {
    "hfcf.core.edits", "hfcf.corpora.formats.answers", "hfcf.systems.race.edit", "hfcf.systems.race.explain",
    "hfcf.systems.race.replace", "hfcf.text.phrase_match", "hfcf.text.enumerations", "hfcf.text.questions",
    "hfcf.training.cloze", "hfcf.corpora.curated_trec", "hfcf.metrics.scores.em_f1", "hfcf.core.redact",
}  # fmt: skip


CUT = {"hfcf.corpora.formats.feverous_pages: _LINK"}
"""Patterns that are linear only on the texts that they are given: `plain` cuts each line behind its last link."""


def seconds(run: Callable[[], Any]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def slow_uses(pairs: bool) -> dict[str, tuple[float, str]]:
    slow = {}
    for use in patterns.uses()[0]:
        for text in patterns.texts(use.pattern, pairs) if use.where not in CUT else ():
            if (took := seconds(lambda use=use, text=text: use.run(text))) > BOUND:
                slow[f"{use.where} {use.calls}"] = (round(took, 2), f"{text[:30]}…{text[-10:]}")
                break
    return slow


def test_every_pattern_is_known() -> None:
    listed, others = patterns.uses()
    assert len(listed) > 150
    assert {other.partition(":")[0] for other in others} == PUT_TOGETHER


def test_every_pattern_is_linear() -> None:
    assert slow_uses(pairs=False) == {}


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_pattern_is_linear_on_pairs_of_its_characters() -> None:
    assert slow_uses(pairs=True) == {}


UNITS = (
    "a ",
    "A ",
    "a",
    " ",
    "\n",
    "(",
    "((",
    "[[",
    '"',
    "' ",
    " .",
    " . ",
    "0",
    "0 ",
    "1,",
    "and ",
    "& ",
    "a, ",
    "Aa Bb ",
    "; ",
    "尼",
)
TEXTS = [(unit * 20_000)[:20_000] for unit in UNITS]
# Two texts of other words at their ends and in the middle.
OTHERS = [f"x {text[:9_990]} y {text[:9_990]} z" for text in TEXTS]


def entity_edits(text: str) -> Any:
    row = {"evidence": [{"title": "", "text": text}]}
    return edits_of(row, {"A": "B", "a": "b", "0": "1", "Aa": "Cc"}, ["Aa Bb Aa"])


def rewritten(text: str) -> Any:
    tokens = [*text[:5000].split(), "x", "y"]
    row = {"tokens": tokens, "head": {"start": len(tokens) - 2, "end": len(tokens) - 1}, "label": "a"}
    row["tail"] = {"start": len(tokens) - 1, "end": len(tokens)}
    return SentenceRewriting().rewritten(row, " ".join(["b", *tokens[:-2], "c", "x", "y"]), "b", "test")


FUNCTIONS: dict[str, Callable[[str], Any]] = {
    "edits.words": edits.words,
    "mentions": lambda text: mentions(text, text[:100]),
    "find_places": lambda text: find_places(text[:100], text),
    "places": lambda text: answer_places.places(text, text[:100]),
    "read_references": lambda text: read_references(text[:2000].replace(" ", " ; "), text[:2000]),
    "in_one_list": lambda text: in_one_list(f"x {text} y", "x", "y") or in_one_list(text, "a", "b"),
    "edits_of": entity_edits,
    "spaced_like": lambda text: spaced_like(f"a{text}b", "Rome."),
    "split_sentences": split_sentences,
    "tokenise": tokenise,
    "links": lambda text: plain(text + "\n]]"),
    "wh_question": lambda text: wh_question(text, 15_000, 15_010, "who"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_linear(name: str) -> None:
    took = {text[:10]: seconds(lambda text=text: FUNCTIONS[name](text)) for text in TEXTS}
    assert {text: round(one, 2) for text, one in took.items() if one > BOUND} == {}


COMPARISONS: dict[str, Callable[[str, str], Any]] = {
    "diff": edits.diff,
    "why_preserving": why_preserving,
    "copy_rate": lambda one, other: copy_rate(one, [other]),
    "rewritten": lambda one, other: rewritten(one),
}


@pytest.mark.parametrize("name", COMPARISONS)
def test_a_comparison_takes_no_minutes(name: str) -> None:
    """They stop at a number of steps, which takes longer than a pattern may: about a second on a slow machine."""
    pairs = list(zip(TEXTS, OTHERS, strict=True))
    took = {text[:10]: seconds(lambda text=text, other=other: COMPARISONS[name](text, other)) for text, other in pairs}
    assert {text: round(one, 2) for text, one in took.items() if one > 10 * BOUND} == {}


def test_a_text_of_capitals_has_no_mention_inside_a_name() -> None:
    text = "A " * 9_000
    assert seconds(lambda: edits_of({"evidence": [{"title": "", "text": text}]}, {"A": "B"}, [])) < BOUND
    assert [
        e["start"]
        for e in edits_of({"evidence": [{"title": "", "text": "Neil Young, Young Americans, McDo Young"}]}, {"Young": "B"}, [])
    ] == []
    assert len(edits_of({"evidence": [{"title": "", "text": "the Young; iPhone, Young"}]}, {"Young": "B"}, [])) == 2


@pytest.mark.parametrize(("kind", "form", "number"), [("GPE", "A", 9_000), ("GPE", "G{}", 3_500), ("PERSON", "P{}", 3_500)])
def test_thousands_of_entities_in_a_row_are_edited_in_a_second(
    kind: str, form: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = EntityTable(
        {"GPE": {"": [f"O{i}" for i in range(200)] if "{" in form else ["B"]}}
    )  # short: 20,000 characters are the limit
    monkeypatch.setattr("hfcf.systems.race.edit._entity_table", lambda *_: table)
    words = [form.format(i) for i in range(number)]
    text, entities, at = " ".join(words), list[Any](), 0
    for word in words:
        place = {"field": "evidence", "piece": 0, "start": at, "end": at + len(word), "text": word, "type": kind}
        entities.append(place)
        at += len(word) + 1
    evidence = [{"title": "T", "text": text}, {"title": "U", "text": "Zora Neale wrote."}]
    entities.append({"field": "evidence", "piece": 1, "start": 0, "end": 10, "text": "Zora Neale", "type": "PERSON"})
    spans = [{"field": "evidence", "piece": i, "start": 0, "end": end, "score": 1.0} for i, end in enumerate((len(text), 10))]
    row = {"id": "1", "claim": "A claim.", "evidence": evidence, "label": "SUPPORTS", "entities": entities, "rationales": spans}
    done: list[Any] = []
    assert seconds(lambda: done.append(EditEvidence().with_fitted("x").row(row))) < 4 * BOUND
    assert len(done[0]["edited_entities"]) == number + 1


def test_a_diff_of_repeated_words_is_one_change_of_the_middle() -> None:
    before, after = "so " + "a " * 3_000 + "end", "so b " + "a " * 2_999 + "c end"
    parts = edits.diff(before, after)
    assert [kind for kind, _ in parts] == ["same", "out", "in", "same"]
    assert (parts[0][1], parts[-1][1]) == ("so", " end")
    assert "".join(text for kind, text in parts if kind != "in") == before
    assert "".join(text for kind, text in parts if kind != "out") == after
    assert edits.replace_text(before, edits.find_edits("claim", -1, before, after)) == after


@pytest.mark.parametrize(
    ("old", "new"), [("a a", "a a"), ("a a", "a"), ("a", "a a"), ("", "a"), ("a", ""), ("a b", "c d"), ("", "")]
)
def test_a_comparison_that_stops_early_is_whole(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edits, "MOST_WORK", -1)
    parts = edits.diff(old, new)
    assert "".join(text for kind, text in parts if kind != "in") == old
    assert "".join(text for kind, text in parts if kind != "out") == new
    assert all(text for _, text in parts)
