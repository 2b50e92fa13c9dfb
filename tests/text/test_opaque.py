"""What is no prose: no baseline edits it."""

from __future__ import annotations

import random

import pytest
from offline_models import installed

import hfcf
from hfcf.core import offline
from hfcf.systems.baselines._shared.word_edits import eda, replaceable
from hfcf.text.check import opaque_spans, why_lost

PARTS = [
    "https://www.example.org/great/books?page=3", "www.example.org", "laver.smith@good-house.com", "@good_people", "#happy_days",
    "<b>", "</div>", '<a href="good.html">', "&amp;", "{particular_date}", "{{name}}", "${HOME}", "%(count)s", "[[Good page]]",
    "/usr/share/good", "C:\\good\\file", "good-news.com", "notes.txt",
]  # fmt: skip
needs_wordnet = pytest.mark.skipif(not installed("wordnet"), reason=f"WordNet is not installed: {offline.INSTALL}")


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_is_no_prose(part: str) -> None:
    text = f"The quick fox likes {part} in good weather"
    assert [text[start:end] for start, end in opaque_spans(text)] == [part]
    assert {match[0] for match in replaceable(text)} == {"quick", "fox", "likes", "good", "weather"}
    assert why_lost(text, text.replace("fox", "dog")) is None
    assert part in (why_lost(text, "The quick fox likes it") or "")


@pytest.mark.parametrize(
    "text", ["He won 3/4 of 50% and left.", "It cost $5 (and more).", "A < B and C > D.", "e.g. this; or that"]
)
def test_prose(text: str) -> None:
    assert opaque_spans(text) == []


@needs_wordnet
@pytest.mark.parametrize("part", PARTS)
def test_eda_and_synonyms_keep_it(part: str) -> None:
    text = f"The quick fox likes {part} in good weather"
    for seed in range(5):
        assert all(part in new for new in eda(text, random.Random(seed), alpha=0.5))
    assert all(part in new for new in hfcf.augment(text, system="synonym", n=3))


@pytest.mark.parametrize("text", [float("nan"), None, 3])
def test_a_text_that_is_none(text: object) -> None:
    with pytest.raises(ValueError, match="text 1 "):
        hfcf.augment(["A text.", text])  # type: ignore[list-item]
