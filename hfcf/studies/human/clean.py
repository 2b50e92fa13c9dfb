"""Keep of a set what people found correct: how RGF's consistency sets are cleaned (Paranjape et al. 2022, section 6.1)."""

from __future__ import annotations

import json
from pathlib import Path

from hfcf.studies.human.collect import RATINGS
from hfcf.studies.human.export import KEY


def rated_correct(folder: str | Path, question: str = "correctness", *, answer: int = 1) -> set[str]:
    """List the ids of the rows of which every rater gave an answer, and all the same one.

    `hfcf rate export rgf mine=FOLDER --rows N --out RATED` writes the sheets. When they are filled,
    `hfcf rate import RATED` reads them.

    Source: RGF, section 6.1 and appendix B: incorrect triples are discarded by hand until 1,000 pairs of a category are there. The
    paper does not say how many people decide on one: here all that rated it.

    Args:
        folder: of `hfcf rate`, after its import.
        question: the column that decides.
        answer: what it must be.

    Returns:
        Row ids. Rows that were not drawn for the sheets, or that lack an answer, are not among them.

    Raises:
        FileNotFoundError: the sheets were not imported yet.
        ValueError: the protocol has no such question.

    >>> import tempfile
    >>> out = Path(tempfile.mkdtemp())
    >>> items = {"item-001": {"row": "q1"}, "item-002": {"row": "q2"}}
    >>> _ = (out / KEY).write_text(json.dumps({"items": items}))
    >>> answers = {"item-001": {"correctness": [1, 1]}, "item-002": {"correctness": [1, 0]}}
    >>> _ = (out / RATINGS).write_text(json.dumps({"answers": answers}))
    >>> rated_correct(out)
    {'q1'}
    """
    path = Path(folder)
    if not (path / RATINGS).is_file():
        raise FileNotFoundError(f"there is no {path / RATINGS}: run hfcf rate import {path} when the sheets are filled")
    items = json.loads((path / KEY).read_text(encoding="utf-8"))["items"]
    answers = json.loads((path / RATINGS).read_text(encoding="utf-8"))["answers"]
    correct = set()
    for item, given in answers.items():
        if question not in given or "row" not in items[item]:
            raise ValueError(
                f"{path}: the raters were not asked for {question!r} of single rows; they were asked for {', '.join(given)}"
            )
        if all(one == answer for one in given[question]):
            correct.add(items[item]["row"])
    return correct
