"""Words that a generator's tokenizer can't write, put back into what it wrote about a text that has them."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from typing import Any

from hfcf.core.model import Model
from hfcf.engines.generator import load_tokenizer

_WORD = re.compile(r"\w+")


def lossy_words(text: str, tokenizer: Any) -> dict[str, str]:
    """Map what a tokenizer makes of words of a text to these words, where letters are lost."""
    # A letter and its mark may be two characters, of which the mark belongs to no word.
    words = set(_WORD.findall(unicodedata.normalize("NFC", text)))
    written = {word: _write(word, tokenizer) for word in sorted(words) if not word.isascii()}
    counts = Counter(written.values())
    return {form: word for word, form in written.items() if form and form not in words and counts[form] == 1}


def restore_words(texts: list[str], source: str, model: Model) -> list[str]:
    """Put words of the source back into texts that a generator wrote without the letters that its vocabulary lacks."""
    if source.isascii():
        return texts
    words = lossy_words(source, _tokenizer(model))
    return [_WORD.sub(lambda match: words.get(match[0], match[0]), text) for text in texts]


def _write(word: str, tokenizer: Any) -> str:
    ids = tokenizer(word, add_special_tokens=False)["input_ids"]
    return "".join(tokenizer.decode(ids, skip_special_tokens=True).split())


@lru_cache(maxsize=4)
def _tokenizer(model: Model) -> Any:
    return load_tokenizer(model)
