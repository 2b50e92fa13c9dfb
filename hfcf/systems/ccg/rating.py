"""CCG's human evaluation (section 5.5): the words that determine a relation, and whether sentences make sense."""

from __future__ import annotations

from hfcf.core.rating import Display, Protocol, Question, Row, Unit
from hfcf.tasks.relation import TASK, context, marked, overlap, roles

PROTOCOLS = (
    Protocol(
        name="ccg_terms",
        title="Words that make a relation",
        guide=(
            "Each line has a sentence with two things in brackets, the first one of the relation marked ₁, and the relation that "
            "the sentence states between them. Every word outside the brackets has its number behind it."
        ),
        paper="Miao et al. 2024, CCG, section 5.5, figure 3 (left) and appendix A.3",
        unit="terms",
        shows=("sentence", "relation"),
        questions=(
            Question(
                "words",
                "Which words determine the relation: as few as possible, such that with others in their place the relation would "
                "be another? Write their numbers with spaces between them, or 0 where there are none.",
                {},
                "“The(1) [eggs]₁ were(3) slowly(4) moved(5) into(6) a(7) [bucket]₂”, ₁–₂: entity-destination → 5 6: “were” and "
                "“slowly” could be other words, and the eggs would still end up in the bucket.",
                level="nominal", kind="words",
            ),
        ),
        rows=100,
    ),
    Protocol(
        name="ccg_commonsense",
        title="Sentences and common sense",
        guide=(
            "Each line has a sentence with two things in brackets, the first one of the relation marked ₁, and the relation that "
            "the sentence should state between them. Sentences were written by machines: judge sense, not grammar."
        ),
        paper="Miao et al. 2024, CCG, section 5.5, figure 3 (right) and appendix A.3",
        unit="sentence",
        shows=("sentence", "relation"),
        questions=(
            Question(
                "commonsense", "In the world as we know it, can the two things have the roles that the relation gives them?",
                {"0": "not aligned with common sense", "1": "marginally aligned", "2": "aligned"},
                "“The [eggs]₁ came from the [bucket]₂”, ₁–₂: entity-origin → 2: eggs can come out of a bucket. “The [eggs]₁ were "
                "caused by the [bucket]₂”, ₁–₂: effect-cause → 0: a bucket is no cause of eggs.",
            ),
        ),
        rows=100,
    ),
)  # fmt: skip


def _terms(row: Row, source: Row | None, side: str) -> Display:
    if "causal_terms" in row:
        source, terms = row, row["causal_terms"] or []
    else:
        assert source is not None
        TASK.apply_edits(source, row["edits"])  # raises if they do not fit the source
        terms = [i for edit in row["edits"] for i in range(edit["start"], edit["end"])]
    if problem := TASK.validate(source) or overlap(source):
        raise ValueError(problem)
    free = context(source)
    numbered = [f"{token}({i + 1})" if i in free else token for i, token in enumerate(source["tokens"])]
    extras = {"tokens": list(source["tokens"]), "free": free, "terms": sorted(terms)}
    return Display(_texts({**source, "tokens": numbered}), extras=extras)


def _sentence(row: Row, source: Row | None, side: str) -> Display:
    if problem := TASK.validate(row):
        raise ValueError(problem)
    return Display(_texts(row))


def _texts(row: Row) -> dict[str, str]:
    return {"sentence": marked(row), "relation": f"₁–₂: {roles(row['label'])}"}


_COLUMNS = ("id", "tokens", "head", "tail", "label")
UNITS = {"terms": Unit(_COLUMNS, _terms, sourced=True, instead="causal_terms", shared=True), "sentence": Unit(_COLUMNS, _sentence)}
