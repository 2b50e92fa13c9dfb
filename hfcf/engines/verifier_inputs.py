"""What verifiers read: claim and evidence in one of two orders, or a text with both."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

CLAIM_FIRST, EVIDENCE_FIRST = ORDERS = ("claim-evidence", "evidence-claim")
"""Two texts in an order, between which the tokenizer puts its own separators."""
_FIELD = re.compile(r"\{(\w*)\}")


@dataclass(frozen=True)
class InputFormat:
    """How a verifier reads a row; `parse_inputs` makes it from its name."""

    name: str = CLAIM_FIRST
    claim_first: bool = True
    around: tuple[str, str, str] | None = None
    """Of a text: what comes before the first field, between the two, and after the second."""


OURS = InputFormat()
"""The format of this library's own verifiers."""


@lru_cache(maxsize=64)
def parse_inputs(name: str) -> InputFormat:
    """Make the format of a setting `inputs`.

    Raises:
        ValueError: it is neither of `ORDERS`, nor a text with {claim} and {evidence}, each once.
    """
    if name in ORDERS:
        return InputFormat(name, claim_first=name == CLAIM_FIRST)
    fields = list(_FIELD.finditer(name))
    if sorted(field[1] for field in fields) != ["claim", "evidence"]:
        choices = f"{', '.join(ORDERS)} or a text with {{claim}} and {{evidence}}, such as '{{claim}} [SEP] {{evidence}}'"
        raise ValueError(f"inputs must be {choices}, got {name!r}")
    first, second = fields
    around = (name[: first.start()], name[first.end() : second.start()], name[second.end() :])
    return InputFormat(name, claim_first=first[1] == "claim", around=around)


def encode_pairs(
    tokenizer: Any, requests: Sequence[Sequence[str]], max_length: int, inputs: InputFormat = OURS, **kwargs: Any
) -> Any:
    """Tokenise `[claim, evidence]` pairs. Evidence is cut at `max_length`; a claim is cut only if it fills half of it.

    The tokenizer's own "only_second" fails on a claim that leaves no room, and "longest_first" would cut long claims while
    evidence could still be cut.
    """
    claims = cut_firsts(tokenizer, [request[0] for request in requests], max_length // 2)
    evidence = [request[1] for request in requests]
    if inputs.around is not None:
        return tokenizer([text for text, _, _ in _render(tokenizer, inputs, claims, evidence, max_length)], **kwargs)
    first, second = (claims, evidence) if inputs.claim_first else (evidence, claims)
    cut = "only_second" if inputs.claim_first else "only_first"
    return tokenizer(first, second, truncation=cut, max_length=max_length, **kwargs)


def cut_pairs(
    tokenizer: Any, requests: Sequence[Sequence[Any]], max_length: int, inputs: InputFormat = OURS, *, lengths: Sequence[int] = ()
) -> list[bool]:
    """Return for each `[claim, evidence]` pair whether `encode_pairs` cuts it; `lengths` of its results save time."""
    if lengths:  # a claim is cut at half of the length, so shorter inputs are whole
        long = [i for i, length in enumerate(lengths) if length > max_length // 2]
        cut = dict(zip(long, cut_pairs(tokenizer, [requests[i] for i in long], max_length, inputs), strict=True))
        return [cut.get(i, False) for i in range(len(requests))]
    if not requests:
        return []
    claims = [request[0] for request in requests]
    kept = cut_firsts(tokenizer, claims, max_length // 2)
    lengths = count_tokens(tokenizer, requests, inputs)
    return [length > max_length or claim != short for length, claim, short in zip(lengths, claims, kept, strict=True)]


def count_tokens(tokenizer: Any, requests: Sequence[Sequence[Any]], inputs: InputFormat = OURS) -> list[int]:
    """Count the tokens of `[claim, evidence]` pairs that are not cut."""
    claims, evidence = ([request[i] for request in requests] for i in (0, 1))
    if inputs.around is None:
        whole = tokenizer(*((claims, evidence) if inputs.claim_first else (evidence, claims)), verbose=False)["input_ids"]
    else:
        texts = [_fill_text(inputs, *pair)[0] for pair in zip(claims, evidence, strict=True)]
        whole = tokenizer(texts, verbose=False)["input_ids"]
    return [len(ids) for ids in whole]


def cut_firsts(tokenizer: Any, texts: Sequence[str], tokens: int) -> list[str]:
    """Cut the first texts of pairs that have more than some tokens."""
    heads = tokenizer(list(texts), add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    return [text[: head[tokens - 1][1]] if len(head) > tokens else text for text, head in zip(texts, heads, strict=True)]


def encode_spans(
    tokenizer: Any, requests: Sequence[Any], max_length: int, inputs: InputFormat = OURS
) -> list[tuple[dict[str, list[int]], list[Any]]]:
    """Tokenise `[claim, evidence]` pairs: the model's inputs, and each token's characters in the evidence (None outside)."""
    if inputs.around is not None:
        return _template_spans(tokenizer, requests, max_length, inputs)
    encoded = encode_pairs(tokenizer, requests, max_length, inputs, return_offsets_mapping=True)
    evidence = 1 if inputs.claim_first else 0
    tokens = [zip(encoded["offset_mapping"][i], encoded.sequence_ids(i), strict=True) for i in range(len(requests))]
    spans = [[span if part == evidence and span[0] < span[1] else None for span, part in row] for row in tokens]
    return list(zip(model_inputs(tokenizer, encoded), spans, strict=True))


def model_inputs(tokenizer: Any, encoded: Any) -> list[dict[str, list[int]]]:
    """Return the network's input for each encoded text; `hfcf.engines.base.pad` makes the attention mask."""
    names = [name for name in tokenizer.model_input_names if name != "attention_mask"]
    return [{name: encoded[name][i] for name in names} for i in range(len(encoded["input_ids"]))]


def _template_spans(tokenizer: Any, requests: Sequence[Any], max_length: int, inputs: InputFormat) -> list[Any]:
    claims = cut_firsts(tokenizer, [request[0] for request in requests], max_length // 2)
    rendered = _render(tokenizer, inputs, claims, [request[1] for request in requests], max_length)
    encoded = tokenizer([text for text, _, _ in rendered], return_offsets_mapping=True)
    spans = [
        [_inside(span, start, end) for span in offsets]
        for (_, start, end), offsets in zip(rendered, encoded["offset_mapping"], strict=True)
    ]
    return list(zip(model_inputs(tokenizer, encoded), spans, strict=True))


def _inside(span: Sequence[int], start: int, end: int) -> tuple[int, int] | None:
    # A byte-level piece may begin with the space before the evidence.
    first, last = max(span[0], start), min(span[1], end)
    return (first - start, last - start) if first < last else None


def _render(
    tokenizer: Any, inputs: InputFormat, claims: Sequence[str], evidence: Sequence[str], max_length: int
) -> list[tuple[str, int, int]]:
    """Fill the template; return each text, and where its evidence starts and ends, cut so that all fits."""
    kept, cut = list(evidence), list(range(len(claims)))
    results: list[tuple[str, int, int]] = [("", 0, 0)] * len(claims)
    while cut:
        for i in cut:
            results[i] = _fill_text(inputs, claims[i], kept[i])
        encoded = tokenizer([results[i][0] for i in cut], return_offsets_mapping=True, verbose=False)["offset_mapping"]
        longer = []
        for i, offsets in zip(cut, encoded, strict=True):
            _, start, end = results[i]
            tokens = [span for span in offsets if _inside(span, start, end)]
            # Cut pieces may be tokenised otherwise: look again.
            if (excess := len(offsets) - max_length) > 0 and tokens:
                kept[i] = kept[i][: max(0, tokens[-min(excess, len(tokens))][0] - start)]
                longer.append(i)
        cut = longer
    return results


def _fill_text(inputs: InputFormat, claim: str, evidence: str) -> tuple[str, int, int]:
    """Fill the template; return the text, and where the evidence starts and ends in it."""
    before, between, after = inputs.around or ("", "", "")
    first, second = (claim, evidence) if inputs.claim_first else (evidence, claim)
    start = len(before) + (len(first) + len(between) if inputs.claim_first else 0)
    return before + first + between + second + after, start, start + len(evidence)
