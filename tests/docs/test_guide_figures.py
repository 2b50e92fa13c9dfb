"""A guide page states no result by hand: its figures are in generated parts or between `<!-- n: KEY -->` and `<!-- /n -->`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import PAGES, name_of, prose

GUIDE = ("README.md", "index.md", "start/", "tutorials/", "how-to/", "systems/", "explain/")
TO_REWRITE = {
    "README.md", "tutorials/claims.md", "tutorials/relations.md", "tutorials/texts.md", "how-to/contrast_set.md",
    "how-to/passages.md", "how-to/rate_pairs.md", "how-to/scale.md", "how-to/with_an_llm.md",
}  # fmt: skip
"""Pages of the old form: take out each that is rewritten, and delete this list when it is empty."""
ALLOWED: dict[str, str] = {
    r"95 ?% (confidence )?intervals?": "the level of an interval is a setting of the statistics",
}
"""Patterns that are no results, and why."""

N = r"(?:[−+-]?\d[\d,.]*\d|\d)"
WORD = r"(?:two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|fifty|a hundred)"
FIGURES = re.compile(
    "|".join(
        [
            rf"{N}(?:–{N})? ?%",
            rf"± ?{N}",
            rf"\[{N}, ?{N}\]",
            rf"\b(?:{N}|{WORD}) times (?:as|faster|slower|less|more|cheaper|smaller|larger|the)\b",
            rf"\b{N} of (?:the |its |these )?(?:{N}|{WORD})\b",
            rf"\b{WORD} of (?:the |its |these )?(?:{N}|fifty|a hundred)\b",
            rf"\b{N} points?\b",
            rf"\b{N} (?:CPU )?(?:seconds|minutes|milliseconds|ms|s) (?:a|an|per|for each) \w+",
            rf"\b{N} (?:rows|pairs|tokens|claims|texts) (?:a|per) (?:second|minute|hour)\b",
        ]
    )
)
guide = [page for page in PAGES if name_of(page).startswith(GUIDE)]


def figures(text: str) -> Iterator[str]:
    """Iterate over what looks like a result in a page without its fenced blocks."""
    for outside in (
        r"<!-- generated: \w+ -->.*?<!-- end -->",
        r"<!-- n: .*?<!-- /n -->",
        r"<!--.*?-->",
        r"`[^`\n]+`",
        r"\]\([^)\s]+\)",
    ):
        text = re.sub(outside, "·", text, flags=re.DOTALL)
    for allowed in ALLOWED:
        text = re.sub(allowed, "·", text)
    yield from (found[0] for found in FIGURES.finditer(" ".join(text.split())))


@pytest.mark.parametrize("page", guide, ids=map(name_of, guide))
def test_a_guide_page_states_no_result_by_hand(page: Path) -> None:
    if name_of(page) in TO_REWRITE:
        pytest.skip("not rewritten yet")
    assert list(figures(prose(page))) == [], "write <!-- n: KEY -->VALUE<!-- /n -->, or link to a page of docs/results"


def test_the_pages_to_rewrite_exist() -> None:
    assert {name_of(page) for page in PAGES} >= TO_REWRITE, "take out what is merged into another page"


@pytest.mark.parametrize(
    "text",
    [
        "labels are right in 90 % of pairs", "93% of them", "66.0 ± 1.2", "0.4 [−0.1, +0.9]", "3.4 times as fast",
        "six times as fast",
        "45 of 50 pairs", "nine of the fifty pairs", "it gains 2.6 points", "1.2 CPU seconds a row", "0.5 s a claim",
        "7 rows a second",
        "79–96 %",
    ],
)  # fmt: skip
def test_a_result_is_found(text: str) -> None:
    assert list(figures(text))


@pytest.mark.parametrize(
    "text",
    [
        "`top_p` is 0.9", "the `90 %` quantile", "<!-- n: rated.race.label -->90 %<!-- /n -->", "10 beams and 32 tokens",
        "<!-- generated: x -->\n| 66.0 ± 1.2 |\n<!-- end -->",
        "[the page](x.md#66-%)", "the 95 % interval", "one of two models", "1 of CCG's stages",
    ],
)  # fmt: skip
def test_what_is_no_result_is_left_alone(text: str) -> None:
    assert not list(figures(text))


def test_each_exception_is_needed() -> None:
    every = "\n".join(prose(page) for page in guide)
    assert all(re.search(allowed, every) for allowed in ALLOWED)
