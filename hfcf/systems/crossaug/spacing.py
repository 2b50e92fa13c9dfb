"""The spaces of tokenised text, which generators learn and evidence may have."""

from __future__ import annotations

import re


def spaced_like(text: str, source: str) -> str:
    """Remove the spaces of tokenised text, which generators learn, unless `source` also has them."""
    for wide, narrow in _TOKENISED:  # from where spaces begin: a pattern tried at each of many spaces takes quadratic time
        if not wide.search(source):
            text = wide.sub(narrow, text)
    return text


_TOKENISED = (
    (re.compile(r"(?:(?<!\s)|(?<=[.,;:!?%]\s))\s+([.,;:!?%](?:\s|$))"), r"\1"),
    (re.compile(r"(?<!\s)\s+(['’](?:s|re|ve|ll|d|m)\b|n['’]t\b)"), r"\1"),
    (re.compile(r"([(\[])\s+"), r"\1"),
    (re.compile(r"(?<!\s)\s+([)\]])"), r"\1"),
    (re.compile(r"(``|“)\s+|(?<!\s)\s+(''|”)"), '"'),
)
