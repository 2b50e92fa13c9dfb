"""Normalise names of Wikipedia pages as FEVER's files spell them."""

from __future__ import annotations

import unicodedata

from hfcf.text.normalise import unbracket


def nfc(page: str) -> str:
    """Normalise a page name: evidence, pages and file names spell some accents differently."""
    return unicodedata.normalize("NFC", page)


def page_title(page: str) -> str:
    """Convert a page name to a title."""
    return unbracket(page.replace("-COLON-", ":").replace("_", " "))
