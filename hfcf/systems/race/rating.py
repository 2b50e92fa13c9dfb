"""RACE's human evaluation (section 5.3): new claims, judged by the evidence of their source."""

from __future__ import annotations

from hfcf.core.rating import Display, Protocol, Question, Row, Unit
from hfcf.tasks.verification import REFUTES, SUPPORTS

_LIKERT = {"1": "not at all", "2": "hardly", "3": "in part", "4": "mostly", "5": "fully"}  # the paper words only its ends

PROTOCOLS = (
    Protocol(
        name="race",
        title="Rewritten claims",
        guide=(
            "Each line has a claim, evidence, and whether the evidence supports or refutes the claim. Beside them is a new claim, "
            "meant to have the new label by the same evidence. Judge the new claim by the evidence shown, not by what you know."
        ),
        paper="Zhu et al. 2023, RACE, section 5.3, Manual Evaluation, and figure 2",
        unit="claim",
        shows=("claim", "label", "evidence", "new_claim", "new_label"),
        questions=(
            Question(
                "flip", "Does the new label hold: does the evidence, as shown, support (or refute) the new claim?", _LIKERT,
                "Evidence: “Oslo is the capital of Norway.” New claim: “Bergen is the capital of Norway.” New label: REFUTES. → 5: "
                "the evidence plainly refutes it.",
            ),
            Question(
                "fluency", "Is the new claim grammatical, and does it mean something?", _LIKERT,
                "“The film film was directed in by a Swede.” → 2: it can be understood, but is hardly grammatical.",
            ),
            Question(
                "diversity", "Is the new claim worded differently from the claim, beyond a word or two?", _LIKERT,
                "Claim: “Oslo is the capital of Norway.” New claim: “Oslo is not the capital of Norway.” → 1: only “not” was "
                "added.",
            ),
            Question(
                "similarity", "Is the new claim about the same things as the claim, and close to it in meaning?", _LIKERT,
                "Claim: “Oslo is the capital of Norway.” New claim: “Bergen is Norway's capital city.” → 5: the same statement "
                "about another town.",
            ),
            Question(
                "multi_hop", "Does it take several pieces of the evidence to verify the new claim, and is it about them?", _LIKERT,
                "Evidence: 1. “The novel was written by Ann Lee.” 2. “Ann Lee was born in Cork.” New claim: “The novel's author "
                "was born in Dublin.” → 5: piece 1 names the author, piece 2 the town.",
            ),
        ),
        rows=30,
        strata=(SUPPORTS, REFUTES),
    ),
)  # fmt: skip


def _claim(row: Row, source: Row | None, side: str) -> Display:
    assert source is not None
    pieces = _pieces(source)
    if _pieces(row) != pieces:
        raise ValueError("its evidence was edited: claims are judged by their source's evidence")
    if row["claim"] == source["claim"]:
        raise ValueError("its claim is its source's")
    texts = {
        "claim": source["claim"], "label": source["label"],
        "evidence": "\n".join(f"{i}. {piece}" for i, piece in enumerate(pieces, 1)),
        "new_claim": row["claim"], "new_label": row["label"],
    }  # fmt: skip
    return Display(texts, source["label"])


def _pieces(row: Row) -> list[str]:
    return [f"[{piece['title']}] {piece['text']}" if piece["title"] else piece["text"] for piece in row["evidence"]]


# Edits give a claim's source text, but not its label, so the source row is needed.
UNITS = {"claim": Unit(("id", "claim", "evidence", "label"), _claim, sourced=True)}
