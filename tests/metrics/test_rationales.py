from __future__ import annotations

import json
import math
import random
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from hfcf.core.model import Model
from hfcf.engines.attribution import _words
from hfcf.engines.classifier import Classifier
from hfcf.metrics.scores.rationales import (
    SCORES,
    _text,
    agreement,
    faithfulness,
    lexical_rationales,
    marked_share,
    random_rationales,
    words,
)
from hfcf.systems.race.explain import Explain
from hfcf.text.evidence import join


def span(piece: int, start: int, end: int, field: str = "evidence") -> dict[str, Any]:
    return {"field": field, "piece": piece, "start": start, "end": end, "score": 1.0}


def pieces(*texts: str, title: str = "") -> list[dict[str, Any]]:
    return [{"title": title, "text": text} for text in texts]


# Words: Rome 0–4, was 5–8, built 9–14, early. 15–21 | Dogs 0–4, bark, 5–10, too. 11–15 | It 0–2, rains. 3–9
EVIDENCE = pieces("Rome was built early.", "Dogs bark, too.", "It rains.")


def scores(predicted: Any, human: Any, evidence: Any = EVIDENCE) -> list[float]:
    found = agreement(predicted, human, evidence)
    assert tuple(found) == SCORES
    return list(found.values())


# --- words


@pytest.mark.parametrize(
    "text", ["Rome, it is.", " a  b\tc\n", "ключ\u00a0слово\u3000語", "e\u0301t\u0301e\u0301 \U0001f600x", "", " "]
)
def test_words_are_those_of_attributions(text: str) -> None:
    # A tokenizer of single characters: the attribution joins what has no space between.
    characters = [(i, i + 1) for i, character in enumerate(text) if not character.isspace()]
    attributed = [(start, end) for start, end, _ in _words([1.0] * len(characters), characters, text)]
    assert [(word.start, word.end) for word in words(pieces(text))] == attributed


def test_a_span_marks_the_words_that_it_overlaps_and_not_those_that_it_touches() -> None:
    marked = lambda *spans: [word.marked for word in words(pieces("Rome was old."), spans)]  # noqa: E731
    assert marked(span(0, 0, 4)) == [True, False, False]
    assert marked(span(0, 3, 6)) == [True, True, False]
    assert marked(span(0, 4, 5)) == [False, False, False]  # the space
    assert marked(span(0, 4, 9)) == [False, True, False]
    assert marked(span(0, 12, 13)) == [False, False, True]  # the full stop is part of its word
    assert marked(span(0, 6, 6)) == [False, False, False]
    assert marked(span(0, 0, 2), span(0, 1, 4), span(0, 0, 13)) == [True, True, True]


def test_spans_count_code_points() -> None:
    found = words(pieces("\U0001f600\U0001f600 é e\u0301 東京"), [span(0, 3, 4), span(0, 8, 9)])
    assert [(word.start, word.end, word.marked) for word in found] == [
        (0, 2, False),
        (3, 4, True),
        (5, 7, False),
        (8, 10, True),
    ]


PLACES = [(3, 0, 1), (-1, 0, 1), (0, 0, 22), (0, -1, 2), (0, 3, 2)]
OUTSIDE = [*(span(*place) for place in PLACES), span(0, 0, 1, "evidence.title"), span(0, 0, 1, "claim")]


@pytest.mark.parametrize("wrong", OUTSIDE)
def test_a_span_outside_the_evidence_is_an_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"outside.*3 pieces"):
        agreement([wrong], [span(0, 0, 4)], EVIDENCE)


# --- agreement, by hand


def test_words_and_sentences_by_hand() -> None:
    human = [span(0, 0, 21), span(1, 0, 4)]  # 5 words: Rome was built early. Dogs; 2 pieces
    predicted = [span(0, 5, 14), span(2, 3, 9)]  # 3 words: was built rains.; 2 pieces; 2 words and 1 piece in common
    # Words: 2/3, 2/5, 2 · 2 / (3 + 5). Pieces: 1/2, 1/2, 2 · 1 / (2 + 2).
    assert scores(predicted, human) == pytest.approx([0.6666667, 0.4, 0.5, 0.5, 0.5, 0.5])


def test_part_of_a_sentence_is_the_sentence() -> None:
    # Words: 1 of 1 is right, 1 of 3 found, 2 · 1 / (1 + 3). Pieces: 1 of 1.
    assert scores([span(1, 6, 7)], [span(1, 0, 15)]) == pytest.approx([1.0, 0.3333333, 0.5, 1.0, 1.0, 1.0])


def test_a_span_at_the_edges_of_words() -> None:
    # "e was b" overlaps Rome, was and built: 1 of 3 is right, 1 of 1 found, 2 · 1 / (3 + 1).
    assert scores([span(0, 3, 10)], [span(0, 5, 8)])[:3] == pytest.approx([0.3333333, 1.0, 0.5])
    # " was " overlaps was alone.
    assert scores([span(0, 4, 9)], [span(0, 5, 8)])[:3] == [1.0, 1.0, 1.0]


def test_overlapping_and_repeated_spans_count_once() -> None:
    human = [span(0, 0, 21), span(0, 5, 14), span(0, 0, 21)]
    once, twice = [span(0, 0, 8)], [span(0, 0, 6), span(0, 3, 8), span(0, 0, 8)]
    # 2 of 2 are right, 2 of 4 found, 2 · 2 / (2 + 4).
    assert scores(twice, human) == scores(once, [span(0, 0, 21)]) == pytest.approx([1.0, 0.5, 0.6666667, 1.0, 1.0, 1.0])


@pytest.mark.parametrize("nothing", [None, [], [span(0, 4, 5)], [span(0, 2, 2)]], ids=["null", "none", "a space", "empty"])
def test_nothing_marked(nothing: Any) -> None:
    assert scores(nothing, [span(0, 0, 4)]) == [0.0] * 6
    assert scores([span(0, 0, 4)], nothing) == [0.0] * 6
    assert scores(nothing, nothing) == [0.0] * 6


def test_a_title_is_part_of_its_piece_and_none_of_the_words_scored() -> None:
    evidence = pieces("It is old.", "It rains.", title="Rome")
    title = span(0, 0, 4, "evidence.title")
    # Words: It, of the human It is old. Pieces: the first of the first and second.
    assert scores([title, span(0, 0, 2)], [span(0, 0, 10)], evidence) == pytest.approx([1.0, 0.3333333, 0.5, 1.0, 1.0, 1.0])
    # A title alone: no word, but the piece.
    assert scores([title], [span(0, 0, 10)], evidence) == [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
    assert scores([title], [span(1, 0, 9)], evidence) == [0.0] * 6


def test_pieces_without_a_word() -> None:
    evidence = pieces("", "Dogs bark.", "  ")
    human = [span(0, 0, 0), span(1, 0, 10), span(2, 0, 2)]
    # Neither empty piece is marked by anyone: 1 piece of 1.
    assert scores([span(1, 0, 4), span(2, 0, 1)], human, evidence) == pytest.approx([1.0, 0.5, 0.6666667, 1.0, 1.0, 1.0])
    assert scores([], [], []) == [0.0] * 6
    assert scores(None, None, [{"title": None, "text": ""}]) == [0.0] * 6


def drawn(rng: random.Random, evidence: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for _ in range(rng.randrange(6)):
        piece = rng.randrange(len(evidence))
        field, text = rng.choice([("evidence", evidence[piece]["text"]), ("evidence.title", evidence[piece]["title"])])
        start, end = sorted(rng.choices(range(len(text) + 1), k=2))
        found.append(span(piece, start, end, field))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_scores_by_sets_and_under_any_order_of_pieces_and_spans(seed: int) -> None:
    rng = random.Random(seed)
    evidence = [
        {"title": rng.choice(["", "Old Rome"]), "text": "".join(rng.choices("ab é語., ", k=rng.randrange(40)))}
        for _ in range(rng.randrange(1, 7))
    ]
    predicted, human = drawn(rng, evidence), drawn(rng, evidence)
    expected = scores(predicted, human, evidence)

    def sets(spans: list[dict[str, Any]]) -> tuple[set[Any], set[Any]]:
        chars = {(s["field"], s["piece"], i) for s in spans for i in range(s["start"], s["end"])}
        found = {
            (field, i, m.start())
            for i, piece in enumerate(evidence)
            for field, text in (("evidence", piece["text"]), ("evidence.title", piece["title"]))
            for m in re.finditer(r"\S+", text)
            if any((field, i, c) in chars for c in range(*m.span()))
        }
        return {word for word in found if word[0] == "evidence"}, {word[1] for word in found}

    by_sets = []
    for first, other in zip(sets(predicted), sets(human), strict=True):
        p, r = len(first & other) / max(1, len(first)), len(first & other) / max(1, len(other))
        by_sets += [p, r, 2 * p * r / (p + r) if p + r else 0.0]
    assert expected == pytest.approx(by_sets)

    order = rng.sample(range(len(evidence)), len(evidence))

    def moved(side: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**s, "piece": order.index(s["piece"])} for s in rng.sample(side, len(side))]

    assert scores(moved(predicted), moved(human), [evidence[i] for i in order]) == expected
    # The two sides exchanged: precision and recall are exchanged, F1 stays.
    assert scores(human, predicted, evidence) == [expected[i] for i in (1, 0, 2, 4, 3, 5)]


def test_no_model_is_loaded_at_import() -> None:
    code = "import sys, hfcf.metrics.scores.rationales; print('torch' in sys.modules)"
    bare = subprocess.run(
        [sys.executable, "-c", "import sys, hfcf; print('torch' in sys.modules)"], capture_output=True, check=True
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == bare.stdout


# --- faithfulness


class Counter(Classifier):
    """p(SUPPORTS) = 0.1 + 0.2 for each different "key" of the evidence; the rest is REFUTES's."""

    def run(self, requests: Any) -> list[dict[str, float]]:
        asked.append(list(requests))
        found = [0.1 + 0.2 * len({word for word in text.split() if "key" in word}) for _, text in requests]
        return [{"SUPPORTS": round(p, 5), "REFUTES": round(1 - p, 5), "NOT ENOUGH INFO": 0.0} for p in found]


asked: list[list[list[str]]] = []


@pytest.fixture
def counter() -> Counter:
    asked.clear()
    return Counter(model=Model("none"), max_length=64)


def keys(*marked: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    return {"id": "1", "claim": "c", "evidence": pieces("key1 aa key2", "key3 bb", title="key4 T")}, list(marked)


def test_faithfulness_by_hand(counter: Counter) -> None:
    row, marked = keys(span(0, 0, 7), span(1, 0, 6, "evidence.title"))
    # All: 4 keys, 0.9 for SUPPORTS. Alone: key1 and key4, 0.5. Without: key2, key3 and (of the first title) key4, 0.7.
    expected = {"label": "SUPPORTS", "probability": 0.9, "sufficiency": 0.4, "comprehensiveness": 0.2}
    assert faithfulness([row], [marked], counter) == [expected]
    assert [text for _, text in asked[0]] == [
        "key4 T: key1 aa key2 key4 T: key3 bb",
        "key1 aa key4 T",
        "key4 T: key2 key3 bb",
    ]


def test_the_label_is_the_verifiers_on_all_evidence(counter: Counter) -> None:
    row = {"claim": "c", "evidence": pieces("key1 aa"), "label": "SUPPORTS"}
    # All: 0.3 for SUPPORTS, so REFUTES with 0.7. Alone: aa, 0.9. Without: key1, 0.7.
    expected = {"label": "REFUTES", "probability": 0.7, "sufficiency": -0.2, "comprehensiveness": 0.0}
    assert faithfulness([row], [[span(0, 5, 7)]], counter) == [expected]
    # A tie goes to the first name: 0.5 for each of two.
    assert faithfulness([{"claim": "c", "evidence": pieces("key1 key2")}], [None], counter)[0]["label"] == "REFUTES"


def test_everything_or_nothing(counter: Counter) -> None:
    row, everything = keys(*(span(i, 0, 6, "evidence.title") for i in (0, 1)), span(0, 0, 12), span(1, 0, 7))
    full, empty = {"label": "SUPPORTS", "probability": 0.9}, 0.8  # 0.9 − 0.1: no key in nothing
    assert faithfulness([row, row], [everything, None], counter) == [
        {**full, "sufficiency": 0.0, "comprehensiveness": empty},
        {**full, "sufficiency": empty, "comprehensiveness": 0.0},
    ]
    assert len(asked) == 1  # one run for all rows
    text = join(row["evidence"])[0]
    assert [request[1] for request in asked[0]] == [text, text, "", text, "", text]
    for evidence in ([], pieces(""), pieces(" ", "")):
        found = faithfulness([{"claim": "c", "evidence": evidence}], [None], counter)
        assert found == [{"label": "REFUTES", "probability": 0.9, "sufficiency": 0.0, "comprehensiveness": 0.0}]


def test_as_many_rationales_as_rows(counter: Counter) -> None:
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        faithfulness([keys()[0]], [], counter)


@pytest.mark.parametrize(
    ("marked", "alone", "others"),
    [
        ([span(0, 3, 4)], "is", "Rome: It old . Paris:  Snow  falls."),
        ([span(0, 0, 4, "evidence.title")], "Rome", "It  is old . Paris:  Snow  falls."),
        ([span(1, 1, 5)], "Snow", "Rome: It  is old . Paris: falls."),
        ([span(1, 0, 13)], "Snow  falls.", "Rome: It  is old . Paris"),
    ],
)
def test_how_removed_words_are_rendered(marked: Any, alone: str, others: str) -> None:
    evidence = [{"title": "Rome", "text": "It  is old ."}, {"title": "Paris", "text": " Snow  falls."}]
    marked = [
        {**s, "start": s["start"] + 1, "end": s["end"] + 1} if s["field"] == "evidence" and s["piece"] == 0 else s for s in marked
    ]
    found = words(evidence, marked)
    assert (_text(evidence, found, True).strip(), _text(evidence, found, False)) == (alone, others)


@pytest.fixture
def tiny(tiny_model: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, no_request_cache: None) -> Classifier:
    monkeypatch.setenv("HFCF_DEVICE", "cpu")
    return Classifier(model=Model(tiny_model("verifier")), max_length=128)


def test_a_models_probabilities_are_those_of_the_three_inputs(tiny: Classifier, demo: Any) -> None:
    rows = [dict(row) for row in demo.select(range(6))]
    shares = (0.3, 0.5, 0.7, 0, 1, 0.1)
    marked = [random_rationales(row, share, seed=1, titles=True) for row, share in zip(rows, shares, strict=True)]
    found = faithfulness(rows, marked, tiny)
    for row, spans, scored in zip(rows, marked, found, strict=True):
        places = words(row["evidence"], spans)
        texts = [join(row["evidence"])[0], _text(row["evidence"], places, True), _text(row["evidence"], places, False)]
        full, alone, without = (tiny.run([[row["claim"], text]])[0] for text in texts)
        assert scored["label"] == max(full, key=lambda name: full[name])
        assert scored["probability"] == pytest.approx(full[scored["label"]], abs=2e-4)
        assert scored["sufficiency"] == pytest.approx(full[scored["label"]] - alone[scored["label"]], abs=2e-4)
        assert scored["comprehensiveness"] == pytest.approx(full[scored["label"]] - without[scored["label"]], abs=2e-4)
    assert (found[3]["comprehensiveness"], found[4]["sufficiency"]) == (0.0, 0.0)
    assert any(abs(scored["sufficiency"]) > 0.01 for scored in found)


def test_what_explain_writes_is_scored(tiny: Classifier, demo: Any) -> None:
    rows = [dict(row) for row in demo.select(range(6))]
    explained = Explain(verifier=tiny.model, explainer="gradient_x_input", max_length=128).batch(rows)
    marked = [result["rationales"] for result in explained if isinstance(result, dict)]
    rows = [row for row, result in zip(rows, explained, strict=True) if isinstance(result, dict)]
    assert rows
    assert len(faithfulness(rows, marked, tiny)) == len(rows)
    for row, spans in zip(rows, marked, strict=True):
        # Every span begins and ends where a word does, but for the colon that is no part of a title.
        assert {(s["field"], s["piece"], s["start"]) for s in spans} <= {word[:3] for word in words(row["evidence"])}
        share = marked_share(spans, row["evidence"], titles=True)
        assert 0 < share < 1
        equal = random_rationales(row, share, seed=0, titles=True)
        assert marked_share(equal, row["evidence"], titles=True) == share


# --- baselines


ROW = {"id": "r1", "claim": "The Romans built “Rome” in it.", "evidence": EVIDENCE}


@pytest.mark.parametrize("share", [0, 0.1, 1 / 3, 0.5, 2 / 3, 0.9, 1])
def test_the_random_budget_is_exact(share: float) -> None:
    found = random_rationales(ROW, share, seed=3)
    marked = [word for word in words(EVIDENCE, found) if word.marked]
    # Of 9 words: 0, 0.9 → 1, 3, 4.5 → 5, 6, 8.1 → 8, 9.
    assert len(marked) == {0: 0, 0.1: 1, 1 / 3: 3, 0.5: 5, 2 / 3: 6, 0.9: 8, 1: 9}[share]
    assert sum(s["score"] for s in found) == pytest.approx(1.0 if marked else 0.0, abs=1e-4)
    assert random_rationales(ROW, len(marked) / 9, seed=3) == found
    json.dumps(found)


def test_all_words_are_one_span_a_field() -> None:
    evidence = pieces("It is old.", "", "It rains.", title="Rome")
    found = random_rationales({**ROW, "evidence": evidence}, 1.0, seed=0, titles=True)
    places = [(s["field"], s["piece"], s["start"], s["end"]) for s in found]
    assert places == [
        ("evidence.title", 0, 0, 4), ("evidence", 0, 0, 10), ("evidence.title", 1, 0, 4), ("evidence.title", 2, 0, 4),
        ("evidence", 2, 0, 9),
    ]  # fmt: skip
    assert [s["score"] for s in found] == [0.125, 0.375, 0.125, 0.125, 0.25]  # of 8 words


def test_the_draw_hangs_on_seed_and_id_alone() -> None:
    long = {**ROW, "evidence": pieces(" ".join("abcdefghijklmnopqrstuvwxyz"))}
    draws = [random_rationales({**long, "id": name}, 0.5, seed) for name in ("r1", "r2") for seed in (0, 1)]
    assert len({json.dumps(found) for found in draws}) == 4
    assert random_rationales({**long, "claim": "other", "label": None}, 0.5, 0) == draws[0]


def test_random_words_are_drawn_alike() -> None:
    evidence = pieces("a b c d", "e f")
    counts = dict.fromkeys("abcdef", 0)
    for i in range(600):
        for word in words(evidence, random_rationales({"id": str(i), "evidence": evidence}, 0.5, seed=0)):
            counts[evidence[word.piece]["text"][word.start]] += word.marked
    # Three of six words, 600 times: 300 each, give or take 5 · √(600 / 4) = 61.
    assert all(239 < count < 361 for count in counts.values())
    assert sum(counts.values()) == 1800


def lexical(claim: str, share: float, *texts: str, **kwargs: Any) -> list[str]:
    evidence = pieces(*texts, title=kwargs.pop("title", ""))
    columns = {"evidence": "text", "evidence.title": "title"}
    found = lexical_rationales({"id": "1", "claim": claim, "evidence": evidence}, share, **kwargs)
    return [evidence[s["piece"]][columns[s["field"]]][s["start"] : s["end"]] for s in found]


def test_lexical_words_by_hand() -> None:
    text = "It was in Rome, where the ROME of Romulus was built."  # 11 words
    assert lexical("“Rome” was built in it.", 2 / 11, text) == ["Rome,", "ROME"]  # the first two of three content words
    assert lexical("“Rome” was built in it.", 3 / 11, text) == ["Rome,", "ROME", "built."]
    assert lexical("“Rome” was built in it.", 4 / 11, text) == ["It", "Rome,", "ROME", "built."]  # then the first stop word
    assert lexical("“Rome” was built in it.", 1, text) == ["It was in Rome,", "ROME", "was built."]  # never more than is shared
    assert lexical("“Rome” was built in it.", 0, text) == []


def test_lexical_words_have_no_case_and_no_marks_but_their_own_letters() -> None:
    assert lexical("STRASSE, München — 1,5 .", 1, "straße münchen (1,5) 15 . — Münche") == ["straße münchen (1,5)"]
    assert lexical("?!", 1, "?! Rome") == []
    assert lexical("Rome", 1, "", "Romans") == []


def test_titles_only_if_asked() -> None:
    assert lexical("Rome is old", 1, "It is Rome.", title="Rome") == ["is Rome."]
    assert lexical("Rome is old", 1, "It is Rome.", title="Rome", titles=True) == ["Rome", "is Rome."]
    evidence = pieces("It is Rome.", title="Rome")
    title = [span(0, 0, 4, "evidence.title")]
    assert (marked_share(title, evidence), marked_share(title, evidence, titles=True)) == (0.0, 0.25)
    for seed in range(9):
        assert {s["field"] for s in random_rationales({"id": "1", "evidence": evidence}, 1.0, seed)} == {"evidence"}


@pytest.mark.parametrize("evidence", [[], pieces(""), pieces(" ", "")])
def test_evidence_without_a_word_has_no_rationale(evidence: Any) -> None:
    row = {"id": "1", "claim": "Rome is old.", "evidence": evidence}
    assert random_rationales(row, 0.5, seed=0) == lexical_rationales(row, 0.5) == []
    assert marked_share([], evidence) == 0.0


@pytest.mark.parametrize("share", [-0.1, 1.1, math.nan])
def test_a_share_is_from_0_to_1(share: float) -> None:
    with pytest.raises(ValueError, match=f"share must be between 0 and 1, got {share}"):
        random_rationales(ROW, share, seed=0)
    with pytest.raises(ValueError, match=f"share must be between 0 and 1, got {share}"):
        lexical_rationales(ROW, share)
