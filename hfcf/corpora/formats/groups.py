"""Name groups of rows by a text that they share."""

from __future__ import annotations

import hashlib


def text_group(kind: str, text: str) -> str:
    """Name the group of the rows that share a text of some kind."""
    return f"{kind}-{hashlib.sha256(text.encode(errors='backslashreplace')).hexdigest()[:12]}"
