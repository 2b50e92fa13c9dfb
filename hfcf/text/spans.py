"""Where a text stands in a longer one, as whole words."""

from __future__ import annotations

import re


def find_places(text: str, passage: str, *, case: bool = False) -> list[tuple[int, int]]:
    """Find every place of a text in a passage, as whole words; white space between words may be of any kind and length."""
    words = r"\s+".join(map(re.escape, text.split()))
    pattern = rf"(?<!\w){words}(?!\w)"
    return [place.span() for place in re.finditer(pattern, passage, 0 if case else re.IGNORECASE)] if words else []
