"""Read the JSON that a language model wrote, and check it against the schema of its prompt."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from hfcf.engines.classifier import ROUND

EXTRA = (
    'a language model needs an extra. In a checkout of hfcf: pip install ".[llm]" for a model behind an endpoint, ".[chat]" for '
    "a model in this process"
)
ALTERNATIVES = 5
"""The number of alternatives requested for each token: TGI gives no more by default; other servers give 20."""
_LONGEST = 300  # characters of a reason
Schema = str
"""A JSON schema, as JSON text."""
Token = Sequence[Any]
"""A token of an answer: `[text, log-probability, [[text, log-probability] of each alternative]]`."""


class InvalidAnswer(ValueError):
    """A model's text is not the answer that was requested; the message says why."""


@lru_cache(maxsize=64)
def schema_validator(schema: Schema) -> Any:
    """Make the `jsonschema` validator of a schema; 3.0 is no integer, because answers number places in lists."""
    try:
        from jsonschema import Draft202012Validator
        from jsonschema.validators import extend
    except ImportError as error:
        raise ImportError(EXTRA) from error
    Draft202012Validator.check_schema(json.loads(schema))
    types = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, number: type(number) is int)
    return extend(Draft202012Validator, type_checker=types)(json.loads(schema))


def object_schema(properties: Mapping[str, Any]) -> Schema:
    """Return the JSON schema of an object that has exactly these fields, all of them required."""
    fields = dict(properties)
    return json.dumps({"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False})


def parse_answer(text: str, schema: Schema) -> Any:
    """Parse the first JSON object of a text, after the model's thoughts if it wrote any, and check it.

    Raises:
        InvalidAnswer: the text has no such object; the message is the reason, in words that the next request can quote.

    >>> parse_answer('Here it is: {"claim": "Rome is old."}', object_schema({"claim": {"type": "string"}}))
    {'claim': 'Rome is old.'}
    """
    text = text.rpartition("</think>")[2]  # a server's template may have written "<think>" itself
    start = -1 if text.lstrip().startswith("<think>") else text.find("{")
    if start < 0:
        raise InvalidAnswer("is no JSON object" if text.strip() else "is empty")
    value = _first_object(text, start)
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InvalidAnswer("holds half of a surrogate pair, which is no text") from error
    for fault in schema_validator(schema).iter_errors(value):
        raise InvalidAnswer(f"does not fit the schema: {fault.json_path}: {fault.message}"[:_LONGEST])
    return value


def _first_object(text: str, start: int) -> Any:
    """Return the first JSON object from a brace on; a brace before it may belong to a sentence: "the set {A, B}"."""
    while True:
        try:
            return json.JSONDecoder().raw_decode(text, start)[0]
        except (ValueError, RecursionError) as error:
            end = text.find("}", start) + 1
            if '"' in text[start : end or None] or (start := text.find("{", end)) < 0 or not end:
                raise InvalidAnswer("holds JSON that is broken or breaks off") from error


def token_probabilities(tokens: Sequence[Token], label: str, labels: Sequence[str]) -> dict[str, float] | None:
    """Compute the probability of each label from the tokens of the answer `{"label": …}`; None if the tokens do not spell it.

    The answer's own label has the product of the probabilities of its tokens, up to the token after which no other label is
    possible. At each of these tokens, an alternative token leads to the labels that continue with it; several labels share its
    probability. Tokens that lead to no label are left out, and the rest adds up to 1. An alternative that the server does not list
    counts 0.
    """
    written = {name: json.dumps(name, ensure_ascii=False)[1:] for name in labels}  # with the quotation mark that ends it
    text = "".join(token[0] for token in tokens)
    key = text.rfind('"label"')
    start = text.find('"', key + len('"label"')) + 1 if key >= 0 else 0
    if not start or not text.startswith(written[label], start):
        return None
    shares, reached, place = dict.fromkeys(labels, 0.0), 1.0, 0
    for token, value, alternatives in tokens:
        before, opening = text[start:place], token[: max(0, start - place)]
        place += len(token)
        if place <= start:
            continue
        if not any(ending.startswith(before) for name, ending in written.items() if name != label):
            break  # what follows only ends the label
        for other, other_value in alternatives:
            if other != token and len(other) > len(opening) and other.startswith(opening):
                reading = before + other[len(opening) :]
                leads = [name for name in labels if written[name].startswith(reading) or reading.startswith(written[name])]
                for name in leads:
                    shares[name] += reached * math.exp(other_value) / len(leads)
        reached *= math.exp(value)
    shares[label] += reached
    total = sum(shares.values())
    return {name: round(share / total, ROUND) for name, share in shares.items()} if total else None
