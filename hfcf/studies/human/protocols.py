"""The human evaluations of the papers, as data.

All have hidden methods and an order drawn for each rater; the papers say nothing of either. Where a protocol differs from its paper
otherwise, a comment says so. Wordings and examples are ours: the papers print criteria, not their rating sheets.
"""

from __future__ import annotations

from hfcf.core.schema import REFUTES, SUPPORTS
from hfcf.studies.human.protocol import SIDES, Protocol, Question

_LIKERT = {"1": "not at all", "2": "hardly", "3": "in part", "4": "mostly", "5": "fully"}  # the paper words its ends alone
_YES_NO = {"1": "yes", "0": "no"}

RACE = Protocol(
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
            "Claim: “Oslo is the capital of Norway.” New claim: “Oslo is not the capital of Norway.” → 1: only “not” was added.",
        ),
        Question(
            "similarity", "Is the new claim about the same things as the claim, and close to it in meaning?", _LIKERT,
            "Claim: “Oslo is the capital of Norway.” New claim: “Bergen is Norway's capital city.” → 5: the same statement about"
            " another town.",
        ),
        Question(
            "multi_hop", "Does it take several pieces of the evidence to verify the new claim, and is it about them?", _LIKERT,
            "Evidence: 1. “The novel was written by Ann Lee.” 2. “Ann Lee was born in Cork.” New claim: “The novel's author was "
            "born in Dublin.” → 5: piece 1 names the author, piece 2 the town.",
        ),
    ),
    rows=30,
    strata=(SUPPORTS, REFUTES),
)  # fmt: skip

CCG_TERMS = Protocol(
    name="ccg_terms",
    title="Words that make a relation",
    guide=(
        "Each line has a sentence with two things in brackets, the first one of the relation marked ₁, and the relation that the"
        " sentence states between them. Every word outside the brackets has its number behind it."
    ),
    paper="Miao et al. 2024, CCG, section 5.5, figure 3 (left) and appendix A.3",
    unit="terms",
    shows=("sentence", "relation"),
    questions=(
        Question(
            "words",
            "Which words determine the relation: as few as possible, such that with others in their place the relation would be "
            "another? Write their numbers with spaces between them, or 0 where there are none.",
            {},
            "“The(1) [eggs]₁ were(3) slowly(4) moved(5) into(6) a(7) [bucket]₂”, ₁–₂: entity-destination → 5 6: “were” and "
            "“slowly” could be other words, and the eggs would still end up in the bucket.",
            level="nominal", kind="words",
        ),
    ),
    rows=100,
)  # fmt: skip

CCG_COMMONSENSE = Protocol(
    name="ccg_commonsense",
    title="Sentences and common sense",
    guide=(
        "Each line has a sentence with two things in brackets, the first one of the relation marked ₁, and the relation that the"
        " sentence should state between them. Sentences were written by machines: judge sense, not grammar."
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
)  # fmt: skip

_ARGUMENT = (
    "An argument leads from pieces of evidence (E1, E2 …) over steps to the claim: “E1 + E2 → E3” says that E1 and E2 together "
    "give E3."
)
_CHECKWHY = "Si et al. 2024, CheckWhy, section 5.1, Human Evaluation Criteria, and table 4"

CHECKWHY_VALIDITY = Protocol(
    name="checkwhy_validity",
    title="Arguments",
    guide=f"Each line has a claim and an argument for or against it. {_ARGUMENT}",
    paper=_CHECKWHY,
    unit="structure",
    shows=("claim", "argument"),
    questions=(
        Question(
            "validity", "Is the argument logically coherent: does each step follow, and do the steps lead to the claim?", _YES_NO,
            "E1: It rained. E2: The roof leaks. E3: The floor is wet. “E1 + E2 → E3” → 1. “E3 → E1” → 0: a wet floor does not "
            "make it rain.",
            level="nominal",
        ),
    ),
    rows=50,
)  # fmt: skip

CHECKWHY_PREFERENCE = Protocol(
    name="checkwhy_preference",
    title="Two arguments",
    guide=f"Each line has a claim and two arguments for or against it, in no particular order. {_ARGUMENT}",
    paper=_CHECKWHY,
    # The paper's raters know which one is the reference; ours do not, so that they cannot favour it.
    unit="structures",
    shows=("claim", "argument_1", "argument_2"),
    questions=(
        Question(
            "preferred", "Which argument do you prefer?",
            dict(zip(SIDES, ("argument 1", "argument 2", "no preference"), strict=True)),
            "Argument 1: “E1 → E3”, argument 2: “E1 + E2 → E3”, and without E2 the step does not follow → 2.",
            kind="sides",
        ),
    ),
    rows=50,
)  # fmt: skip

RGF = Protocol(
    name="rgf",
    title="Questions and answers",
    guide="Each line has a question, a passage, and what should be the question's answer in that passage.",
    # Section 4 tells of 100 questions and appendix B, which has the rubric and table 6, of 300. The paper's raters are its authors,
    # and how many rated each question is not told.
    paper="Paranjape et al. 2022, RGF, section 4, appendix B and table 6",
    unit="question",
    shows=("question", "context", "answer"),
    questions=(
        Question(
            "fluency", "Is the question grammatically well formed? Spelling and capitals of names don't count.", _YES_NO,
            "“who captained richmond in 1994” → 1: names without capitals are fine. “who captained the in 1994 richmond” → 0.",
            level="nominal",
        ),
        Question(
            "correctness", "Can the question be answered by the passage, and is the answer shown the right one?", _YES_NO,
            "Passage: “Jeff Hogg led the side in 1994.” Question: “who led the side in 1995” Answer: “Jeff Hogg” → 0: the "
            "passage tells of another year.",
            level="nominal",
        ),
    ),
    rows=300,
)  # fmt: skip

PROTOCOLS = {one.name: one for one in (RACE, CCG_TERMS, CCG_COMMONSENSE, CHECKWHY_VALIDITY, CHECKWHY_PREFERENCE, RGF)}
"""By name."""
