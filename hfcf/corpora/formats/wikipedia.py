"""Normalise names of Wikipedia pages as FEVER's files spell them."""

from __future__ import annotations

import unicodedata

from hfcf.text.normalise import unbracket


def nfc(page: str) -> str:
    """Normalise a page name: evidence, pages and file names spell some accents differently."""
    return unicodedata.normalize("NFC", page)


def page_title(page: str) -> str:
    """Convert a page name to a title.

    >>> page_title("Savages_-LRB-2012_film-RRB-"), page_title("Star_Trek-COLON-_Discovery")
    ('Savages (2012 film)', 'Star Trek: Discovery')
    """
    return unbracket(page.replace("-COLON-", ":").replace("_", " "))
