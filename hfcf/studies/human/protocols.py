"""The papers' human evaluations, and how a row becomes a line of their sheets; ours, of any task, is in `pairs.py`.

All hide the methods and draw an order for each rater; the papers mention neither. A comment says where a protocol differs from its
paper otherwise. Wordings and examples are ours: the papers print criteria, not their rating sheets.
"""

from __future__ import annotations

from hfcf.studies.human.pairs import PAIR, PAIRS
from hfcf.studies.human.protocol import SIDES, YES_NO, Display, Protocol, Question, Row, Unit
from hfcf.tasks.relation import TASK, context, marked, overlap, roles
from hfcf.tasks.verification import REFUTES, SUPPORTS
from hfcf.text.check import text_problem

# --- CCG's human evaluation (section 5.5): the words that determine a relation, and whether sentences make sense.

_CCG = (
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
    return Display(_relation_texts({**source, "tokens": numbered}), extras=extras)


def _sentence(row: Row, source: Row | None, side: str) -> Display:
    if problem := TASK.validate(row):
        raise ValueError(problem)
    return Display(_relation_texts(row))


def _relation_texts(row: Row) -> dict[str, str]:
    return {"sentence": marked(row), "relation": f"₁–₂: {roles(row['label'])}"}


_RELATION = ("id", "tokens", "head", "tail", "label")
_CCG_UNITS = {
    "terms": Unit(_RELATION, _terms, sourced=True, instead="causal_terms", shared=True),
    "sentence": Unit(_RELATION, _sentence),
}


# --- RACE's human evaluation (section 5.3): new claims, judged by the evidence of their source.

_LIKERT = {"1": "not at all", "2": "hardly", "3": "in part", "4": "mostly", "5": "fully"}  # the paper words only its ends

_RACE = (
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
_RACE_UNITS = {"claim": Unit(("id", "claim", "evidence", "label"), _claim, sourced=True)}


# --- RGF's human evaluation (section 4): questions and their answers.

_RGF = (
    Protocol(
        name="rgf",
        title="Questions and answers",
        guide="Each line has a question, a passage, and what should be the question's answer in that passage.",
        # Section 4 names 100 questions; appendix B, which has the rubric and table 6, names 300. The paper's raters are its
        # authors, and it does not say how many rated each question.
        paper="Paranjape et al. 2022, RGF, section 4, appendix B and table 6",
        unit="question",
        shows=("question", "context", "answer"),
        questions=(
            Question(
                "fluency", "Is the question grammatically well formed? Spelling and capitals of names don't count.", YES_NO,
                "“who captained richmond in 1994” → 1: names without capitals are fine. “who captained the in 1994 richmond” → 0.",
                level="nominal",
            ),
            Question(
                "correctness", "Can the question be answered by the passage, and is the answer shown the right one?", YES_NO,
                "Passage: “Jeff Hogg led the side in 1994.” Question: “who led the side in 1995” Answer: “Jeff Hogg” → 0: the "
                "passage tells of another year.",
                level="nominal",
            ),
        ),
        rows=300,
    ),
)  # fmt: skip


def _question(row: Row, source: Row | None, side: str) -> Display:
    # In quotation marks, because a spreadsheet turns "12 May 2010" into a date.
    answers = " / ".join(f"“{text}”" for text in dict.fromkeys(row["answers"]["text"]))
    passage = f"[{row['title']}] {row['context']}" if row.get("title") else row["context"]
    return Display({"question": row["question"], "context": passage, "answer": answers})


_RGF_UNITS = {"question": Unit(("id", "question", "context", "answers"), _question)}


# --- CheckWhy's human evaluation (section 5.1): argument structures.

_ARGUMENT = (
    "An argument leads from pieces of evidence (E1, E2 …) over steps to the claim: “E1 + E2 → E3” says that E1 and E2 together "
    "give E3."
)
_SI = "Si et al. 2024, CheckWhy, section 5.1, Human Evaluation Criteria, and table 4"

_CHECKWHY = (
    Protocol(
        name="checkwhy_validity",
        title="Arguments",
        guide=f"Each line has a claim and an argument for or against it. {_ARGUMENT}",
        paper=_SI,
        unit="argument",
        shows=("claim", "argument"),
        questions=(
            Question(
                "validity", "Is the argument logically coherent: does each step follow, and do the steps lead to the claim?",
                YES_NO,
                "E1: It rained. E2: The roof leaks. E3: The floor is wet. “E1 + E2 → E3” → 1. “E3 → E1” → 0: a wet floor does not "
                "make it rain.",
                level="nominal",
            ),
        ),
        rows=50,
    ),
    Protocol(
        name="checkwhy_preference",
        title="Two arguments",
        guide=f"Each line has a claim and two arguments for or against it, in no particular order. {_ARGUMENT}",
        paper=_SI,
        # The paper's raters know which one is the reference; ours do not, so that they cannot favour it.
        unit="argument_pair",
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
    ),
)  # fmt: skip


def _one_argument(row: Row, source: Row | None, side: str) -> Display:
    return Display({"claim": row["claim"], "argument": _argument(row)})


def _arguments(row: Row, source: Row | None, side: str) -> Display:
    assert source is not None
    method, reference = _argument(row), _argument(source)
    first, second = (method, reference) if side == "1" else (reference, method)
    return Display({"claim": source["claim"], "argument_1": first, "argument_2": second}, extras={"side": side})


def _argument(row: Row) -> str:
    """Write the pieces of evidence with their names, and the steps between them."""
    infos = row.get("evidence_info") or [{"id": f"E{i}"} for i in range(1, len(row["evidence"]) + 1)]
    nodes = [f"{info['id']}: {piece['text']}" for info, piece in zip(infos, row["evidence"], strict=True)]
    if not row["structure"]:
        raise ValueError("there is no argument structure")
    steps = [f"{' + '.join(map(str, step['premises']))} → {step['conclusion']}" for step in row["structure"]]
    return "\n".join([*nodes, *steps])


_STRUCTURE = ("id", "claim", "evidence", "structure")
_CHECKWHY_UNITS = {
    "argument": Unit(_STRUCTURE, _one_argument),
    # With two methods, raters would recognise the reference, which is on two lines.
    "argument_pair": Unit(_STRUCTURE, _arguments, sourced=True, single=True),
}


PROTOCOLS = {protocol.name: protocol for protocol in (PAIRS, *_CCG, *_RACE, *_RGF, *_CHECKWHY)}
"""By name."""
UNITS = {"pair": PAIR, **_CCG_UNITS, **_RACE_UNITS, **_RGF_UNITS, **_CHECKWHY_UNITS}
"""Units by name; a protocol of your own shows a unit of this mapping."""


def unit_of(protocol: Protocol) -> Unit:
    """Return what a line of the protocol's sheets shows."""
    if protocol.unit not in UNITS:
        raise ValueError(f"{protocol.name}: there is no unit {protocol.unit!r}: choose one of {', '.join(UNITS)}")
    return UNITS[protocol.unit]


def show(protocol: Protocol, row: Row, source: Row | None, side: str) -> Display:
    """Return the line of a method's row."""
    try:
        display = unit_of(protocol).show(row, source, side)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        reason = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"it can't be shown: {reason}") from error
    for column in protocol.shows:
        if problem := text_problem(display.texts[column], f"the {column.replace('_', ' ')}", letters=False):
            raise ValueError(problem)
    if protocol.strata and display.label not in protocol.strata:
        raise ValueError(f"its source's label is {display.label}")
    return display
