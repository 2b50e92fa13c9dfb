"""Ask a language model behind an endpoint, `Model("llm:NAME")`, instead of CCG's indicator and editor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hfcf import prompts
from hfcf.core.model import Model
from hfcf.core.stage import Reject
from hfcf.engines.remote.llm_backend import ask, ask_texts, failure
from hfcf.tasks.relation import entities, roles
from hfcf.tasks.sentence import places, plain, split

TERMS_PROMPT, EDITOR_PROMPT = "causal_terms", "relation_terms"
"""The prompts of this module, for the state of the stages that ask them."""
SHOWN = 30
"""Known terms that the editor is shown, the commonest first."""

Row = Mapping[str, Any]


def name_terms(model: Model, rows: Sequence[Row], allowed: Sequence[Sequence[int]], *, seed: int) -> list[list[int] | Reject]:
    """Ask which of the allowed words each row's relation depends on: sorted places in `tokens`, or why there are none."""
    messages = []
    for row, words in zip(rows, allowed, strict=True):
        values = {"words": plain([row["tokens"][i] for i in words]), "relation": roles(row["label"]), **_texts(row)}
        messages.append(prompts.messages(TERMS_PROMPT, shots=2, sentence=" ".join(plain(row["tokens"])), **values))
    fields = {"terms": {"type": "array", "items": {"type": "string"}, "minItems": 1}}
    answers = ask(model, fields, messages, max_tokens=128, seed=seed)
    return [_places(answer, row, words) for answer, row, words in zip(answers, rows, allowed, strict=True)]


def _places(answer: Mapping[str, Any], row: Row, allowed: Sequence[int]) -> list[int] | Reject:
    if why := failure(answer):
        return Reject(why)
    tokens, may = plain(row["tokens"]), set(allowed)
    open_ = [token if i in may else "\0" for i, token in enumerate(tokens)]
    terms = [split(term, tokens) for term in answer["answer"]["terms"]]
    named = {start + i for term in terms for start in places(open_, term) for i in range(len(term))}
    return sorted(named) or Reject("the language model names no word that could be masked")


def write_terms(
    model: Model, requests: Sequence[tuple[tuple[Row, str], Sequence[str]]], *, number: int, max_new_tokens: int, closed: bool,
    seed: int,
) -> list[Any]:  # fmt: skip
    """Answer as the editor's engine does; instead of a list an answer may be `{"error": why}`.

    Args:
        model: "llm:NAME".
        requests: a row with `causal_terms`, the relation to write, and the known terms that are shown.
        number: of terms to a request.
        max_new_tokens: of a term.
        closed: whether only the known terms may be chosen.
        seed: of the first attempt.
    """
    messages = [
        prompts.messages(
            EDITOR_PROMPT, shots=2, sentence=_blanked(row), relation=roles(relation), known=list(terms[:SHOWN]), number=number,
            closed=closed, **_texts(row),
        )
        for (row, relation), terms in requests
    ]  # fmt: skip
    return ask_texts(model, "terms", messages, number=number, max_tokens=32 + max_new_tokens * number, seed=seed)


def _texts(row: Row) -> dict[str, str]:
    head, tail = entities({**row, "tokens": plain(row["tokens"])})
    return {"head": head, "tail": tail}


def _blanked(row: Row) -> str:
    """Write a row's sentence with a blank for its first causal term and without the others, as they are edited."""
    first, *others = row["causal_terms"]
    words = ("[BLANK]" if i == first else token for i, token in enumerate(plain(row["tokens"])) if i not in others)
    return " ".join(words)
