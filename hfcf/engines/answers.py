"""Read the JSON that a language model wrote, and check it against the schema of its prompt.

The next request quotes the reason why an answer was rejected, so the reason is part of that request's key in the request cache. If
a reason is reworded, every second attempt that was paid for is paid for again.
"""

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

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_STRICT = {"$schema": _DRAFT, "$id": "hfcf:strict", "$dynamicAnchor": "meta", "$ref": _DRAFT, "unevaluatedProperties": False}
"""The schema of JSON schemas, which also refuses keywords that it does not define: JSON Schema itself ignores misspelt keywords."""


DEEPEST = 60
"""The maximum depth of an answer's JSON: the functions that check and store it call themselves for each level."""
_MOST_TOKENS = 10**9


class InvalidAnswer(ValueError):
    """A model's text is not the answer that was requested; the message says why."""


@lru_cache(maxsize=64)
def schema_validator(schema: str) -> Any:
    """Make the `jsonschema` validator of a schema."""
    try:
        from jsonschema import Draft202012Validator
        from jsonschema.validators import extend
    except ImportError as error:
        raise ImportError(EXTRA) from error
    value = json.loads(schema)
    for fault in Draft202012Validator(_STRICT).iter_errors(value):
        raise ValueError(f"schema{_join(fault.absolute_path)}: {fault.message}")
    # 3.0 is an integer in JSON Schema. Stored answers were judged by this rule: 3.0 does not count as an integer here.
    types = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, number: type(number) is int)
    return extend(Draft202012Validator, type_checker=types)(value)


def object_schema(properties: Mapping[str, Any]) -> str:
    """Return the JSON schema of an object that has exactly these fields, all of them required."""
    fields = dict(properties)
    return json.dumps({"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False})


def find_fault(value: Any, schema: str) -> str | None:
    """Say why a value does not fit a schema, or return None when it does."""
    errors = list(schema_validator(schema).iter_errors(value))
    return _describe(min(errors, key=lambda error: _rank(error, value))) if errors else None


def _rank(error: Any, value: Any) -> tuple[int, ...]:
    """Order errors as a reader of the answer meets them: the type of a value before its parts, the parts in their order."""
    ranks: list[int] = []
    for step in error.absolute_path:
        ranks += [3, step if isinstance(value, list) else list(value).index(step)]
        value = value[step]
    if error.validator == "additionalProperties":
        return (*ranks, 3, list(value).index(_unexpected(error)))
    return (*ranks, {"type": 0, "enum": 1}.get(error.validator, 2))


def _describe(error: Any) -> str:
    where, rule = f"the answer{_join(error.absolute_path)}", error.validator_value
    match error.validator:
        case "type" if isinstance(rule, str):
            return f"{where} is no {rule}"
        case "enum":
            return f"{where} is none of {', '.join(map(str, rule))}"
        case "required":
            return f"{where} lacks {next(name for name in rule if name not in error.instance)!r}"
        case "additionalProperties" if rule is False:
            return f"{where} has {_unexpected(error)!r}, which was not asked for"
        case "minItems":
            return f"{where} has fewer than {rule} items"
    return f"{where}: {error.message}"


def _unexpected(error: Any) -> str:
    properties = error.schema.get("properties", {})
    return next(name for name in error.instance if name not in properties)


def _join(path: Any) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def parse_answer(text: str, schema: str) -> Any:
    """Parse the first JSON object of a text, and check it."""
    text = text.rpartition("</think>")[2]  # a server's template may have written "<think>" itself
    if text.lstrip().startswith("<think>"):
        raise InvalidAnswer("is a thought without an answer")
    start = text.find("{")
    if start < 0:
        raise InvalidAnswer("is no JSON object" if text.strip() else "is empty")
    try:
        value, _ = json.JSONDecoder(parse_constant=_refuse).raw_decode(text, start)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InvalidAnswer("holds half of a surrogate pair, which is no text") from error
    except (ValueError, RecursionError) as error:
        raise InvalidAnswer("holds JSON that is broken or breaks off") from error
    if _is_deep(value):
        raise InvalidAnswer(f"is nested more than {DEEPEST} deep")
    if fault := find_fault(value, schema):
        raise InvalidAnswer(f"does not fit the schema: {fault}")
    return value


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST):
        parts = [part.values() if isinstance(part, dict) else part for part in level if isinstance(part, dict | list)]
        level = [part for several in parts for part in several]
    return bool(level)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def parse_completion(text: str) -> dict[str, Any]:
    """Read the parts of a chat completion that the request cache stores.

    The types of the `openai` client are not used here. They accept a body without choices, and some servers (not `openai`) send
    contents in parts.
    """
    try:
        data = json.loads(text)
        choice, usage = data["choices"][0], data.get("usage") or {}
        content = choice["message"].get("content")
        if isinstance(content, list):
            content = "".join(part.get("text", "") for part in content)
        finish, model = choice.get("finish_reason"), data.get("model")
        tokens = _tokens(choice.get("logprobs"))
        return {
            "text": _escape_surrogates(content or ""),
            "finish": finish and _escape_surrogates(str(finish)),
            "model": model and _escape_surrogates(str(model)),
            "usage": {kind: _count(usage.get(f"{kind}_tokens")) for kind in ("prompt", "completion")},
            **({"logprobs": tokens} if tokens else {}),
        }
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError("no chat completion") from error


def _count(tokens: Any) -> int:
    if not 0 <= (count := int(tokens or 0)) <= _MOST_TOKENS:
        raise ValueError("no number of tokens")
    return count


def _tokens(logprobs: Any) -> list[list[Any]]:
    """Read the tokens of an answer: `[text, log-probability, [[text, log-probability] of each alternative]]`.

    The list is empty if a server gives no tokens, or something else: the answer is valid all the same.
    """
    try:
        content = (logprobs or {}).get("content") or []
        return [[*_token(token), [_token(other) for other in token.get("top_logprobs") or []]] for token in content]
    except (LookupError, TypeError, ValueError, AttributeError):
        return []


def _token(entry: Any) -> list[Any]:
    text, value = entry["token"], float(entry["logprob"])
    if not isinstance(text, str) or not value <= 0.01:  # rounding may leave a little more than 0; NaN is not a number
        raise ValueError("no log-probability")
    return [_escape_surrogates(text), max(value, -1e4)]


def _escape_surrogates(text: str) -> str:
    # Half a surrogate pair can't be encoded, and SQLite refuses it.
    return text.encode("utf-8", "backslashreplace").decode()


ALTERNATIVES = 5
"""The number of alternatives requested for each token: TGI gives no more by default; other servers give 20."""


def token_probabilities(tokens: Sequence[Sequence[Any]], label: str, labels: Sequence[str]) -> dict[str, float] | None:
    """Compute the probability of each label from the tokens of the answer `{"label": …}`.

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
    for token, value, others in tokens:
        before, opening = text[start:place], token[: max(0, start - place)]
        place += len(token)
        if place <= start:
            continue
        if not any(ending.startswith(before) for name, ending in written.items() if name != label):
            break  # what follows only ends the label
        for other, other_value in others:
            if other != token and len(other) > len(opening) and other.startswith(opening):
                leads = [name for name in labels if _fits(before + other[len(opening) :], written[name])]
                for name in leads:
                    shares[name] += reached * math.exp(other_value) / len(leads)
        reached *= math.exp(value)
    shares[label] += reached
    total = sum(shares.values())
    return {name: round(share / total, ROUND) for name, share in shares.items()} if total else None


def _fits(text: str, written: str) -> bool:
    """Return whether a text begins a label, or begins with it."""
    return written.startswith(text) or text.startswith(written)
