"""The criteria by which people filter edited rows (CheckWhy, section 3.3, Appendix C and figure 11)."""

from __future__ import annotations

from hfcf.studies.human.protocol import Protocol, Question
from hfcf.tasks.verification import NOT_ENOUGH_INFO

YES_NO = {"1": "true", "0": "false"}
DECISION, OF_STRUCTURE = "acceptability", "validity"
"""The question that keeps a row or drops it, and the question that a row without a structure does not have."""

FILTER = Protocol(
    name="checkwhy_filter",
    title="Review of arguments",
    guide=(
        "Each row has a claim with its label, pieces of evidence, and the steps by which they lead to the claim. "
        "Correct the claim, the evidence and the steps where they need it. Then answer the questions about the corrected row."
    ),
    paper="Si et al. 2024, CheckWhy, section 3.3 and Appendix C",
    unit="argument",
    shows=("claim", "argument"),
    questions=(
        Question(
            "fluency", "Are the claim and the evidence fluent, without errors of grammar?", YES_NO,
            "“The floor are wet.” → 0.", level="nominal",
        ),
        Question(
            "faithfulness", f"Does the evidence give the claim its label? With {NOT_ENOUGH_INFO} it decides nothing.", YES_NO,
            "SUPPORTS, “The floor is wet.”, and the evidence says that the floor is dry → 0.", level="nominal",
        ),
        Question(
            "validity", "Does each step follow, and do the steps lead from the cause to the effect?", YES_NO,
            "“It rained.” leads to “The roof leaks.” → 0: rain makes no hole.", level="nominal",
        ),
        Question(
            "acceptability", "Should the row be kept?", YES_NO, "A slip that you can correct: correct it → 1. No sense in it → 0.",
            level="nominal",
        ),
    ),
    rows=50,
)  # fmt: skip
"""As a protocol of `hfcf.studies.human`. The wording is ours. A review shows every row, as the paper's does; `rows` is for a sample
of several methods' rows, rated without edits by `hfcf.studies.human.export`."""
