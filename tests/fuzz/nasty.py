"""Nasty texts, and hypothesis's strategies of rows that hold them among words that models know."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from hfcf.tasks.verification import LABELS

ZWJ = "👩\u200d🚀"
TREEBANK = ("-LRB-", "-RRB-", "``", "''", "'s", "n't", "-LSB-", "--", "...", "&amp;")
NUMBERS = (
    "1994", "1,000,000", "3.5%", "$5", "٣٤", "३४", "十二", "Ⅻ", "²²²²", "½", "NaN", "inf", "-0", "1e999", "9" * 500, "0x1F",
    "5 km (3.1 mi)",
)  # fmt: skip
MARKS = (
    "[MASK]",
    "</s>",
    "<s>",
    "[SEP]",
    "[CLS]",
    "<pad>",
    "<e1>",
    "</e2>",
    "$",
    "#",
    "{claim}",
    "{}",
    "%s",
    "<extra_id_0>",
    "|||",
    "__proto__",
)
SCRIPTS = (
    "הנילוס", "النيل", "尼罗河流经埃及", "ナイル川", "나일강", "Нил", "นครปฐม", "हिन्दी", "Ａｆｒｉｃａ", "ﬁve", "Straße",
    "İstanbul",
    "Zu\u0308rich", "e\u0301douard", "a" + "\u0301" * 50, ZWJ, "🇪🇬", "👍🏽", "𝒩𝒾𝓁𝑒", "ǅ", "ŉ",
)  # fmt: skip
CONTROLS = (
    "a\x00b",
    "a\x07b",
    "a\x1b[31mb",
    "a\u202eb",
    "a\u2066b",
    "a\ud800b",
    "\\ud800",
    "a\u2028b",
    "a\x85b",
    "a\ufeffb",
    "a\u200bb",
    "a\rb",
    "a\r\nb",
)
EMPTY = ("", " ", "\t\n", "\u200b", "\u00a0", "\ufeff", ".", "?!", "’", '"', "“”", "—", "…", "\u0301")
MARKUP = (
    "<script>alert(1)</script>",
    "<b>Rome</b>",
    "=1+1",
    "@SUM(A1)",
    "a,b;c\td",
    "'",
    '""',
    '{"a": 1}',
    "[1, 2]",
    "a\\",
    "C:\\x",
    "../..",
    "null",
    "None",
)
LONG = (
    "a " * 4_000,
    "A " * 4_000,
    "a" * 19_999,
    "(" * 9_000,
    "Rome is old. " * 1_000,
    "Rome, " * 2_000,
    "x" * 100_000,
    "尼" * 9_000,
    " " * 15_000 + "a",
)
NASTY = (*TREEBANK, *NUMBERS, *MARKS, *SCRIPTS, *CONTROLS, *EMPTY, *MARKUP, *LONG)
"""The corpus: empty texts, white space, half surrogate pairs, controls, other directions and scripts, marks of models, 100 kB."""

GOOD = (
    "The Nile flows through Egypt and reached 6,650 kilometres in 1950 .",
    "Ada Lovelace wrote notes with Charles Babbage in London .", "The film was directed by Jane Smith in 1994 , not in 2006 .",
    "Rome is older than Paris , and the Nile Post prints news .",
    "The eggs were moved from the basket into two large buckets .", "Trent Cotchin is the captain of Richmond Football Club .",
)  # fmt: skip
GOOD_ROWS: dict[str, dict[str, Any]] = {
    "verification": {
        "claim": GOOD[0], "label": "SUPPORTS",
        "evidence": [{"title": "Nile", "text": GOOD[0]}, {"title": "", "text": GOOD[1]}],
    },
    "relation": {
        "tokens": GOOD[4].split(), "head": {"start": 1, "end": 2, "type": ""}, "tail": {"start": 10, "end": 11, "type": ""},
        "label": "Entity-Origin(e1,e2)",
    },
    "qa": {
        "title": "", "context": GOOD[5], "question": "Who is the captain of Richmond Football Club?",
        "answers": {"text": ["Trent Cotchin"], "answer_start": [0]},
    },
    "classification": {"text": GOOD[2], "label": "positive"},
}  # fmt: skip
_WORDS = sorted({word for sentence in GOOD for word in sentence.split()})
_ODD = [word for word in (*TREEBANK, *NUMBERS, *MARKS, *SCRIPTS) if word == word.strip() and word]


def mostly(times: int, common: Any, *rare: Any) -> Any:
    """Draw the first so many times as often as each of the others (`one_of` counts equal ones as one)."""
    return st.sampled_from([common] * times + list(rare)).flatmap(lambda one: one)


words = mostly(4, st.sampled_from(_WORDS), st.sampled_from(_ODD))
sentences = st.lists(words, min_size=1, max_size=12).map(" ".join)
readable = mostly(2, sentences, st.sampled_from(GOOD))
texts = mostly(30, readable, st.text(max_size=40), st.sampled_from(NASTY))
"""Most can be worked on: a row has several, and one that can't be decides all of it."""
names = mostly(12, st.just(""), readable, st.sampled_from(NASTY))


def numbered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give rows ids, which may be nasty, too, but for those that Arrow can't hold."""
    for i, row in enumerate(rows):
        name = f"{row.pop('name')[:50].encode('utf-8', 'replace').decode()}{i}"
        row |= {"id": name, "group_id": name, "corpus": "made", "split": "train"}
    return rows


def storable(value: Any) -> Any:
    """The value with a mark in the place of what no file can hold: half surrogate pairs."""
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def rows(one: Any, size: int) -> Any:
    """Draw so many rows, and number them."""
    return st.lists(one, min_size=size, max_size=size).map(numbered)


pieces = st.fixed_dictionaries({"title": names, "text": texts})
evidence = mostly(20, st.lists(pieces, min_size=1, max_size=3), st.just([]), st.none())
LABEL = st.sampled_from([*LABELS[:2] * 8, *LABELS, None, "", "partly"])
claims = st.fixed_dictionaries({"name": names, "claim": texts, "evidence": evidence, "label": LABEL})


@st.composite
def _relations(draw: Any) -> dict[str, Any]:
    """Draw a sentence with two places, which are those of words in most rows."""
    odd = st.one_of(st.lists(st.one_of(words, texts), max_size=8), st.lists(st.none(), max_size=2), st.none())
    tokens = draw(mostly(20, readable.map(str.split), odd))
    size, spans = len(tokens or ()), []
    for first, end in ((0, size // 2), (size // 2, size)):
        start, length = draw(st.integers(first, max(first, end - 1))), draw(st.sampled_from([1, 1, 1, 1, 2]))
        span = {
            "start": start,
            "end": min(start + length, max(end, start + 1)),
            "type": draw(st.sampled_from([None, "", "PER", "[MASK]"])),
        }
        edge = st.one_of(st.integers(-3, 30), st.none())
        spans.append(
            draw(mostly(20, st.just(span), st.none(), st.fixed_dictionaries({"start": edge, "end": edge, "type": st.none()})))
        )
    if draw(st.booleans()):
        spans.reverse()
    known = ("Cause-Effect(e1,e2)", "Entity-Origin(e1,e2)", "Product-Producer(e2,e1)") * 5
    label = draw(st.sampled_from([*known, "Other", None, "", "(e1,e2)", "-", "NaN"]))
    return {"name": draw(names), "tokens": tokens, "head": spans[0], "tail": spans[1], "label": label}


relations = _relations()


@st.composite
def _questions(draw: Any) -> dict[str, Any]:
    """Draw a question whose answers are words of its context in most rows."""
    context = draw(mostly(12, texts, st.just(""), st.none()))
    there = (context or "").split()
    found = [draw(st.sampled_from(there)) for _ in range(draw(st.integers(0, 2)))] if there else []
    found += draw(mostly(4, st.just([]), st.lists(texts, max_size=2)))
    starts = [(context or "").find(one) for one in found]
    if not draw(st.integers(0, 9)):
        starts = draw(st.lists(st.integers(-2, 50), max_size=3))
    elif -1 in starts:
        starts = draw(st.sampled_from([[], starts]))
    answers = draw(mostly(20, st.just({"text": found, "answer_start": starts}), st.none()))
    return {"name": draw(names), "title": draw(names), "context": context, "question": draw(texts), "answers": answers}


questions = _questions()
SENTIMENT = st.sampled_from([*["positive", "negative"] * 8, None, "", " ", "-"])
single_texts = st.fixed_dictionaries({"name": names, "text": texts, "label": SENTIMENT})
side = mostly(20, texts, st.none())
pairs = st.fixed_dictionaries(
    {
        "name": names, "claim": st.just(""), "evidence": st.just([]), "label": st.none(), "evidence_info": st.just([]),
        "structure": st.just([]), "cause": side, "effect": side, "explanation": st.lists(texts, max_size=2),
    }
)  # fmt: skip
OF_TASK = {"verification": claims, "relation": relations, "qa": questions, "structures": pairs, "classification": single_texts}


def run_examples(number: int) -> Any:
    """Settings of a run of so many examples, the same at each run."""
    health = list(HealthCheck)
    return settings(max_examples=number, derandomize=True, deadline=None, database=None, suppress_health_check=health)
