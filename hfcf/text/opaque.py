"""Parts of a text that are no prose: addresses, markup, placeholders, handles and paths. No edit may touch them."""

from __future__ import annotations

import re

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


def opaque_spans(text: str) -> list[tuple[int, int]]:
    """Find what is no prose, as places of the text.

    >>> text = "Write to ann@example.org, see https://a.b/c or <b>here</b>."
    >>> [text[start:end] for start, end in opaque_spans(text)]
    ['ann@example.org', 'https://a.b/c', '<b>', '</b>']
    """
    return [match.span() for match in _OPAQUE.finditer(text)]


def why_lost(text: str, rewritten: str) -> str | None:
    """Return which part of a text that is no prose a rewritten text has lost; None if it has all of them.

    >>> why_lost("See https://a.b/c.", "Look at https://a.b/d.")
    'has lost "https://a.b/c."'
    """
    parts = [text[start:end] for start, end in opaque_spans(text)]
    return next((f'has lost "{part}"' for part in parts if part not in rewritten), None)
