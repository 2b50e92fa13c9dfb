"""Answers that are edits of a text: `{"edits": [{"old": words of the text, "new": other words}]}`.

A model in this process can only name words that stand in the text, since the schema lists them; an endpoint is asked again when it
names others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from hfcf import prompts
from hfcf.core.model import Model
from hfcf.engines.llm.engine import LanguageModel
from hfcf.prompts import Limits, Values, as_hypothesis, texts_of
from hfcf.text.normalise import dedup_key
from hfcf.text.slips import why_clumsy
from hfcf.text.words import takes_an

Edits = Sequence[Mapping[str, str]]
"""`[{"old": …, "new": …}]`, as a model answers."""
LONGEST_OLD = 6
"""The most words that an edit replaces: a claim of which more is replaced is another claim."""
LONGEST_NEW = 80
"""The most characters that an edit puts in."""
NEW_WORDS = {"type": "string", "minLength": 1, "maxLength": LONGEST_NEW}
"""The JSON Schema of what an edit puts in."""
SAMPLED = 0.8
"""The temperature of the second answer and of further ones; the first is the likeliest."""
_APART = 1000
"""The distance between the seeds of two samples: each retry of a sample uses the next seed."""
_ARTICLE = re.compile(r"\b[Aa]n? $")
_DETERMINED = re.compile(r"(?:not )?(?:an?|the|this|that|his|her|its|their|no|one|two|some|many)\b(?![-–‑])", re.IGNORECASE)
_ACCENTS = "\u0300-\u036f"
"""Accents of decomposed letters."""
_WORD = re.compile(rf"[^\W_][{_ACCENTS}]*(?:\S*[^\W_][{_ACCENTS}]*)?[%$€£]?|[$€£]\S*\d")


def list_spans(text: str, words: int = LONGEST_OLD, outside: Sequence[tuple[int, int]] = ()) -> list[str]:
    """List the runs of up to `words` words of a text, each once; none touches a place of `outside`.

    >>> list_spans("Rome is old.", 2)
    ['Rome', 'Rome is', 'is', 'is old', 'old']
    """
    places = [match.span() for match in _WORD.finditer(text)]
    spans = [(start, end) for i, (start, _) in enumerate(places) for _, end in places[i : i + words]]
    free = [(start, end) for start, end in spans if not any(start < right and left < end for left, right in outside)]
    return list(dict.fromkeys(text[start:end] for start, end in free if "\n" not in text[start:end]))


def limit_edits(spans: Sequence[str], most: int = 1) -> dict[str, Any]:
    """Return the keywords of JSON Schema that hold the field `edits` to spans of a text; {} without a span."""
    properties = {"old": {"enum": list(spans)}, "new": NEW_WORDS}
    item = {"type": "object", "properties": properties, "required": ["old", "new"], "additionalProperties": False}
    return {"items": item, "minItems": 1, "maxItems": most} if spans else {}


def apply_edits(text: str, edits: Edits, outside: Sequence[tuple[int, int]] = ()) -> str:
    """Return the text with the edits, each everywhere where its words stand; an indefinite article follows the new word.

    Small models repeat an edit of a list word for word: it is made once.

    Raises:
        ValueError: the edits change nothing, or one names words that are not there, puts nothing in, or touches another; the
            message is the reason.

    >>> apply_edits("Ann is a singer.", [{"old": "is a", "new": "was a"}, {"old": "singer", "new": "actor"}])
    'Ann was an actor.'
    >>> apply_edits("Ann has a cat.", [{"old": "cat", "new": "dog"}] * 2)
    'Ann has a dog.'
    >>> apply_edits("Ann is a singer.", [{"old": "singer", "new": "not an actor"}])
    'Ann is not an actor.'
    """
    places: list[tuple[int, str, int]] = []
    for old, new in dict.fromkeys((edit["old"], " ".join(edit["new"].split())) for edit in edits):
        words = rf"(?<![^\W_]){re.escape(old)}(?![^\W_]|[{_ACCENTS}])"
        found = [match.span() for match in re.finditer(words, text)] if old else []
        free = [(start, end) for start, end in found if not any(start < right and left < end for left, right in outside)]
        if not free:
            raise ValueError(f"edits words that are not there: {old!r}")
        if not new:
            raise ValueError(f"puts nothing in the place of {old!r}")
        places += [(start, _without_context(new, text[:start], text[end:]), end) for start, end in free]
    places.sort()
    if any(left[2] > right[0] for left, right in pairwise(places)):
        raise ValueError("edits the same words twice")
    result, last, joints = "", 0, list[int]()
    for start, new, end in places:
        result += text[last:start]
        joints.append(len(result))
        result, last = result + new, end
        joints.append(len(result) + 1)  # an edit may end in an article
    result += text[last:]
    for joint in reversed(joints):
        result = _fit_article(result, joint)
    if text[:1].isupper():  # a sentence that began with a capital still does
        result = result[:1].upper() + result[1:]
    if dedup_key(result) == dedup_key(text):
        raise ValueError("changes nothing")
    return result


def _without_context(new: str, before: str, after: str) -> str:
    """Leave out words, and a mark, that the text goes on with, which small models write again.

    >>> _without_context("won the cup in May", "Ann ", " the cup in May.")
    'won'
    >>> _without_context("Warner Bros.", "It was released by ", ".")
    'Warner Bros'
    """
    words, left, right = new.split(), before.split(), after.split()
    for length in range(len(words) - 1, 0, -1):
        if right[:length] and [_bare(word) for word in words[-length:]] == [_bare(word) for word in right[:length]]:
            words = words[:-length]
            break
    for length in range(len(words) - 1, 0, -1):
        if [_bare(word) for word in words[:length]] == [_bare(word) for word in left[-length:]]:
            words = words[length:]
            break
    kept = " ".join(words)
    return kept[:-1] if kept[-1] in ".,;:!?" and after.startswith(kept[-1]) and len(kept) > 1 else kept


def _bare(word: str) -> str:
    return word.strip(".,;:!?").casefold()


def _fit_article(text: str, place: int) -> str:
    """Put the indefinite article before a place right, or leave it out before a word that has an article of its own."""
    article, rest = _ARTICLE.search(text[:place]), text[place:]
    # A capital inside a sentence is a name: "vitamin A".
    if article is None or not rest or (article[0][0] == "A" and article.start()):
        return text
    fitting = "" if _DETERMINED.match(rest) else article[0][0] + ("n " if takes_an(rest) else " ")
    return text[: article.start()] + fitting + rest


def ask_edits(
    model: Model, name: str, rows: Sequence[Values], texts: Sequence[str], *, number: int = 1, most: int = 1, **settings: Any
) -> list[Any]:
    """Ask for up to `number` different rewritings of each text by up to `most` edits; return them as a local generator does.

    Args:
        model: the language model.
        name: the prompt, whose answer has the field `edits`.
        rows: what the template says about each row.
        texts: the text of each row that is edited.
        number: how many answers are requested for a row, the likeliest first; equal ones count once.
        settings: of `hfcf.prompts.ask`.

    Returns:
        For each row `[{"text", "score": None, "finished": True, "fault"}]`, or `{"error": why}` if no answer is valid. `fault`
        says why a text is of no use (`hfcf.text.slips.why_clumsy`, `why_from_example`), or is None. An answer that changes nothing
        is left out.
    """
    limits = [limit_edits(list_spans(text), most) for text in texts]
    places = [i for i, limit in enumerate(limits) if limit]
    asked = sample(model, name, [rows[i] for i in places], [{"edits": limits[i]} for i in places], number, **settings)
    answers = dict(zip(places, asked, strict=True))
    shown = prompts.read_prompt(name, model.prompts)["examples"]
    return [_hypotheses(text, row, answers.get(i, ()), shown) for i, (text, row) in enumerate(zip(texts, rows, strict=True))]


def sample(
    model: Model, name: str, rows: Sequence[Values], limits: Sequence[Limits], number: int, **settings: Any
) -> list[list[dict[str, Any]]]:
    """Ask `number` times about each row, within its own limits; return its answers, the likeliest first, the others drawn."""
    answers: list[list[dict[str, Any]]] = [[] for _ in rows]
    for draw in range(number):
        drawn = {"temperature": SAMPLED, "seed": settings.get("seed", LanguageModel.seed) + _APART * draw} if draw else {}
        for group, answer in zip(answers, prompts.ask(model, name, rows, row_limits=limits, **{**settings, **drawn}), strict=True):
            group.append(answer)
    return answers


def why_from_example(edits: Edits, values: Values, examples: Sequence[Values]) -> str | None:
    """Say so if an edit puts in a name or number that only a worked example has: small models copy.

    >>> why_from_example([{"old": "Bo", "new": "Vienna"}], {"claim": "Ann met Bo."}, [{"claim": "Vienna is old."}])
    'repeats an example of the prompt'
    """
    names = {word for edit in edits for word in edit["new"].split() if not word[0].islower()}
    own, shown = set(texts_of(values).split()), set(texts_of(list(examples)).split())
    return "repeats an example of the prompt" if (names - own) & shown else None


def _hypotheses(text: str, values: Values, answers: Sequence[Mapping[str, Any]], examples: Sequence[Values]) -> Any:
    if not answers:
        return {"error": "there is no word that could be edited"}
    valid = [answer["answer"]["edits"] for answer in answers if "error" not in answer]
    if not valid:
        return answers[0]
    results: dict[str, dict[str, Any]] = {}
    for edits in valid:
        try:
            new = apply_edits(text, edits)
        except ValueError:
            continue  # it is no other text
        fault = why_clumsy(new, text) or why_from_example(edits, values, examples)
        results.setdefault(new, as_hypothesis(new, fault))
    return [*results.values()]
