"""Check whether texts can be worked on, and say why not."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import Any

MAX_CHARACTERS = 20_000
"""The maximum number of characters of a claim or piece of evidence. A row with a longer text is rejected, not truncated."""

CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters that no text should have (tabs and line ends are allowed), and bidirectional overrides. An override makes the
shown text differ from the stored text."""
SURROGATE = re.compile("[\ud800-\udfff]|\\\\ud[89a-f][0-9a-f]{2}", re.IGNORECASE)


def kind(value: Any) -> str:
    """Say what a value is, in words."""
    names = {
        str: "text",
        dict: "an object",
        list: "a list",
        bool: "true or false",
        int: "a number",
        float: "a number",
        type(None): "null",
    }
    return names.get(type(value), type(value).__name__)


def shorten(reason: str, limit: int = 1_000) -> str:
    """Shorten a reason that quotes a long value: remove its middle."""
    half = limit // 2
    return reason if len(reason) <= limit else f"{reason[:half]}…{reason[1 + half - limit :]}"


def text_problem(value: Any, what: str, *, letters: bool = True, limit: int = MAX_CHARACTERS) -> str | None:
    """Say why a text can't be worked on, or None when it can."""
    # Nearly every text is printable; what does not print, such as half of a surrogate pair, is checked below.
    sound = isinstance(value, str) and len(value) <= limit and value.isprintable() and "\\" not in value
    if sound and (any(map(str.isalpha, value)) if letters else value.strip()):
        return None
    if value is None:
        return f"{what} is null"
    if not isinstance(value, str):
        return f"{what} is {kind(value)}, not text"
    if not value.strip():
        return f"{what} is empty"
    if len(value) > limit:
        return f"{what} has {len(value):,} characters; the limit is {limit:,}"
    if match := SURROGATE.search(value):
        return f"{what} holds half of a surrogate pair at position {match.start()}: the file's encoding is broken"
    if match := CONTROL.search(value):
        return f"{what} holds the control character U+{ord(match[0]):04X} at position {match.start()}"
    if letters and not any(character.isalpha() for character in value):
        return f"{what} has no letters"
    return None


def script(text: str) -> str:
    """Return the script of most letters of a text: the first word of the letters' Unicode names."""
    if text.isascii():  # nearly every text, and names of characters take long to look up
        return "LATIN" if any(map(str.isalpha, text)) else "NONE"
    counts = Counter(unicodedata.name(character, "UNKNOWN").split()[0] for character in text if character.isalpha())
    return max(counts, key=lambda name: (counts[name], name)) if counts else "NONE"


# --- parts that are no prose

_OPAQUE = re.compile(
    r"""
    (?:https?|ftp|file)://[^\s<>"]+ | \bwww\.[^\s<>"]+                # addresses of pages
  | \b[\w.+-]+@[\w-]+(?:\.[\w-]+)+                                    # mail addresses
  | (?<![\w.])[@\#][A-Za-z_]\w*(?:\.\w+)*                              # handles and hashtags
  | </?[A-Za-z][^<>]{0,400}> | <!--.{0,400}?--> | &\#?\w{1,31};        # HTML
  | \{\{?[^{}\n]{1,80}\}\}? | \$\{?[A-Za-z_]\w*\}? | %\(\w+\)[a-z] | %[sd]\b | \[\[[^\[\]\n]{1,80}\]\]   # placeholders
  | (?<!\w)(?:~|\.{1,2})?(?:/[\w.@+-]+){2,}/? | \b[A-Za-z]:\\[\w.\\-]+   # paths
  | \b[\w-]+\.(?:com|org|net|edu|gov|io|py|txt|csv|json|html?|pdf|md|jpe?g|png|zip|exe)\b   # hosts and files
    """,
    re.VERBOSE,
)
_SIGN = re.compile(r"[@\#<&{$%\[/\\]|\.\S")
"""What each part that is no prose has; nearly every text has none of it, which is seen in a fraction of the time."""


def opaque_spans(text: str) -> list[tuple[int, int]]:
    """Find what is no prose, as places of the text.

    >>> text = "Write to ann@example.org, see https://a.b/c or <b>here</b>."
    >>> [text[start:end] for start, end in opaque_spans(text)]
    ['ann@example.org', 'https://a.b/c', '<b>', '</b>']
    """
    return [match.span() for match in _OPAQUE.finditer(text)] if _SIGN.search(text) else []


def why_lost(text: str, rewritten: str) -> str | None:
    """Return which part of a text that is no prose a rewritten text has lost; None if it has all of them.

    >>> why_lost("See https://a.b/c.", "Look at https://a.b/d.")
    'has lost "https://a.b/c."'
    """
    parts = [text[start:end] for start, end in opaque_spans(text)]
    return next((f'has lost "{part}"' for part in parts if part not in rewritten), None)
