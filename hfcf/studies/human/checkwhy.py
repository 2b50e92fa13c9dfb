"""CheckWhy's human evaluation (section 5.1): argument structures."""

from __future__ import annotations

from hfcf.core.rating import SIDES, Display, Protocol, Question, Row, Unit

_YES_NO = {"1": "yes", "0": "no"}
_ARGUMENT = (
    "An argument leads from pieces of evidence (E1, E2 …) over steps to the claim: “E1 + E2 → E3” says that E1 and E2 together "
    "give E3."
)
_CHECKWHY = "Si et al. 2024, CheckWhy, section 5.1, Human Evaluation Criteria, and table 4"

PROTOCOLS = (
    Protocol(
        name="checkwhy_validity",
        title="Arguments",
        guide=f"Each line has a claim and an argument for or against it. {_ARGUMENT}",
        paper=_CHECKWHY,
        unit="argument",
        shows=("claim", "argument"),
        questions=(
            Question(
                "validity", "Is the argument logically coherent: does each step follow, and do the steps lead to the claim?",
                _YES_NO,
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
        paper=_CHECKWHY,
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


_COLUMNS = ("id", "claim", "evidence", "structure")
UNITS = {
    "argument": Unit(_COLUMNS, _one_argument),
    # With two methods, raters would recognise the reference: it stands on two lines.
    "argument_pair": Unit(_COLUMNS, _arguments, sourced=True, single=True),
}
