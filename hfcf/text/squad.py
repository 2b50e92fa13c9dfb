"""Answers as SQuAD's scorer compares them."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalise_answer(text: str) -> str:
    """Reduce an answer to what SQuAD's scorer compares: lower case, without ASCII punctuation, articles and more than one space.

    Nothing may be left: of "A" (the blood group), of "%". No two answers of which nothing is left are the same answer.

    Source: the official script of SQuAD v1.1 (`normalize_answer`), which MRQA uses, too.

    >>> normalise_answer("The  Captain's (old) Ship!"), normalise_answer("A")
    ('captains old ship', '')
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def matches(answer: str, others: Iterable[str]) -> bool:
    """Say whether an answer is one of others, after `normalise_answer`.

    An answer that only holds another, or stands in it, is not that answer.

    >>> matches("the Beatles", ["Beatles", "The Fab Four"]), matches("John Lennon", ["Lennon"]), matches("?", ["!"])
    (True, False, False)
    """
    own = normalise_answer(answer)
    return bool(own) and own in {normalise_answer(other) for other in others}
