"""Decide on a row from what people say of it: whether it is kept, and in which version."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from hfcf.studies.human.agreement import majority
from hfcf.studies.review.criteria import DECISION
from hfcf.studies.review.version import Version

Answers = Mapping[str, int | None]
Choice = TypeVar("Choice")


class Review(NamedTuple):
    """What one person says of a row."""

    version: Version
    answers: Answers


class Decision(NamedTuple):
    """What comes of a row: the version to keep, or None with the reason; `open` if more people must say."""

    version: Version | None
    reason: str | None = None
    open: bool = False


Reviews = dict[str, list[Review | None]]
"""{row id: what each person says of it, None where the answers are not complete}."""


def decide(reviews: Sequence[Review], people: int = 3) -> Decision:
    """Decide whether a row is kept, and in which version.

    Two people who agree in every answer and every text decide. Else all decide by majority, first on acceptability. Then people
    who accept the row decide on the claim and on the evidence, and people with this evidence on the structure. Where no version
    has a majority, the last person's counts: this person resolves disagreements.

    The paper's people vote on claims and evidence, and one person edits a structure, since that takes long. Here a structure is
    voted on like the rest. The vote is among the versions that have the chosen evidence, so that its names are the names of the
    row.
    """
    if len(reviews) < min(people, 2):
        return Decision(None, f"{len(reviews)} of {min(people, 2)} people reviewed it", open=True)
    if len(reviews) == 2 and (differences := differ(*reviews)):
        return Decision(None, f"they differ in {', '.join(differences)}", open=True)
    if not _choose([review.answers[DECISION] for review in reviews]):
        return Decision(None, _explain(reviews))
    versions = [review.version for review in reviews if review.answers[DECISION]]
    claim = _choose([version.claim for version in versions])
    pieces = _choose([version.pieces for version in versions])
    structure = _choose([version.structure for version in versions if version.pieces == pieces])
    return Decision(Version(claim, pieces, structure))


def differ(review: Review, other: Review) -> list[str]:
    """List the answers and the parts of the row in which two people differ."""
    parts: dict[str, Callable[[Version], object]] = {
        "the claim": lambda version: version.claim,
        "the evidence": lambda version: version.pieces,
        "the structure": lambda version: version.structure,
    }
    answers = [name for name, value in review.answers.items() if value != other.answers[name]]
    both = bool(review.answers.get(DECISION) and other.answers.get(DECISION))
    return answers + [name for name, part in parts.items() if both and part(review.version) != part(other.version)]


def _choose(versions: Sequence[Choice]) -> Choice:
    return versions[-1] if (most := majority(versions)) is None else most


def _explain(reviews: Sequence[Review]) -> str:
    """Return why people drop a row: the questions that most of them answer with no."""
    names = [name for name in reviews[0].answers if name != DECISION]
    negative = [name for name in names if majority([review.answers[name] for review in reviews]) == 0]
    return f"people drop it: {', '.join(negative)}" if negative else "people drop it"
