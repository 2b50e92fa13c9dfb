"""Normalise names of Wikipedia pages as FEVER's files spell them, and split the text of pages into sentences."""

from __future__ import annotations

import re
import unicodedata

from hfcf.text.normalise import unbracket


def nfc(page: str) -> str:
    """Normalise a page name: evidence, pages and file names encode some accents differently."""
    return unicodedata.normalize("NFC", page)


def page_title(page: str) -> str:
    """Convert a page name to a title."""
    return unbracket(page.replace("-COLON-", ":").replace("_", " "))


_END = re.compile(r"""(?<![.!?])[.!?]++["'”’)\]]*+(?=\s++["'“‘(\[]*+[^\W_a-z])""")
# Words before a full stop that does not end a sentence. It never does after single letters and letters with inner stops.
_ABBREVIATIONS = re.compile(
    "adm|approx|assoc|aug|bros|ca|capt|cf|co|col|corp|dec|dept|dr|eds?|est|etc|feb|fig|fr|ft|gen|gov|hon|inc|jan|jr|ltd?|maj|mrs?|ms|"
    "mt|nos?|nov|oct|op|orig|pp|pres|prof|pt|rev|sen|sept|sgt|sr|ste?|subsp|var|vols?|vs"
)
# An abbreviation that may also end a sentence does so before these words.
_STARTERS = re.compile(r"\s+(?:A|An|As|At|For|From|He|Her|His|In|It|Its|On|She|The|Their|There|They|This|When)\b")
_TITLES = re.compile("adm|capt|col|dr|fr|ft|gen|gov|hon|maj|mrs?|ms|mt|nos?|pres|prof|rev|sen|sgt|ste?|vols?|vs")


def split_sentences(text: str) -> list[str]:
    """Split a text at ., ! or ? before a word that starts like a sentence, except after initials and abbreviations.

    CoreNLP has a similar rule with a longer list of abbreviations, so on some pages the counts differ.
    """
    sentences, start = [], 0
    for end in _END.finditer(text):
        word = text[start : end.start()].rpartition(" ")[2].lstrip("(\"'[“‘")
        if end[0].startswith(".") and _abbreviated(word, text, end.end()):
            continue
        sentences.append(text[start : end.end()].strip())
        start = end.end()
    return [*sentences, last] if (last := text[start:].strip()) else sentences


def _abbreviated(word: str, text: str, end: int) -> bool:
    if re.fullmatch("[A-Z]", word) or _TITLES.fullmatch(word.casefold()):
        return True
    abbreviation = re.fullmatch(r"(?:\w\.)+\w", word) or _ABBREVIATIONS.fullmatch(word.casefold())
    return bool(abbreviation) and not _STARTERS.match(text, end)
