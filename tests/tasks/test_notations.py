"""The model, arrows, proofs, legality, repair, what is stale; EntailmentBank's trees through all of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import programs
import pytest

import hfcf
from hfcf.checkwhy import (
    CLAIM,
    Step,
    Structure,
    StructureError,
    parse_arrows,
    parse_program,
    parse_proof,
    problems,
    repair,
    stale,
    to_arrows,
    to_program,
    to_proof,
)  # fmt: skip

TABLE_10 = "(E1, E2) → E3 → E4 → E6 (E5, E6) → Claim"
PROOF = "sent1 & sent2 -> int1: ice is cold; it melts; int1 & sent3 -> int2: so -> water; int1 & int2 -> hypothesis; "


def test_the_model() -> None:
    structure = parse_arrows("(a, b) → c (a, b) → c (b, a, b) → c c → (d, Claim) (d, e) → Claim".replace("(b, a, b)", "(b, a)"))
    assert structure.steps == (Step(("a", "b"), "c"), Step(("c",), "d"), Step(("c",), CLAIM), Step(("d", "e"), CLAIM))
    assert structure.edges() == [("a", "c"), ("b", "c"), ("c", "d"), ("c", CLAIM), ("d", CLAIM), ("e", CLAIM)]
    assert (structure.leaves(), structure.intermediates()) == (["a", "b", "e"], ["c", "d"])
    assert (structure.depth(), structure.parents("c"), structure.nodes()[0]) == (3, ["d", CLAIM], "a")
    assert Structure((Step(("a", "a"), "b"),)).steps == (Step(("a",), "b"),)
    assert structure == parse_arrows("(e, d) → Claim c → Claim c → d (b, a) → c")
    assert hash(structure) == hash(parse_arrows(to_arrows(structure)))
    assert structure != parse_arrows("(e, d) → Claim")
    assert structure != "c"
    assert Structure(()).depth() == 0
    with pytest.raises(ValueError, match="a → b → a"):
        parse_arrows("a → b → a").depth()
    with pytest.raises(ValueError, match="step to b"):
        Structure((Step((), "b"),))


def test_the_arrows_of_table_10_come_back_as_they_are() -> None:
    for text in (TABLE_10, "G2 → (G1, G3) → G5 (G4, G5) → Claim", "E1 → Claim", ""):
        assert to_arrows(parse_arrows(text)) == text
    assert parse_arrows(" ( E1,E2 )->E3\n->Claim; e-1→E3") == parse_arrows("(E1, E2) → E3 → Claim e-1 → E3")


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("→ Claim", 1, "no premise"),
        ("E1 →", 5, "no conclusion"),
        ("E1 → → E2", 6, "no conclusion"),
        ("E1 → ; E2", 6, "no conclusion"),
        ("E1 → E2; → E3", 10, "no premise"),
        ("E1 → E2 E3", 9, "leads to nothing"),
        ("(E1, E2) → (E3, E4)", 12, "one arrow from it to each"),
        ("(E1, E1) → E2", 1, "repeated"),
        ("(E1,) → E2", 1, "empty"),
        ("(E1, (E2)) → E3", 1, "neither"),
        ("E1, E2 → E3", 3, "neither"),
        ("E1 \n→ )", 3, "neither"),
        ("a" * 200_000, 1, "characters"),
    ],
)
def test_arrows_that_are_none(text: str, column: int, reason: str) -> None:
    with pytest.raises(StructureError, match=reason) as error:
        parse_arrows(text)
    assert (error.value.line, error.value.column) == (text.count("\n") + 1, column)


def test_a_proof() -> None:
    proof = parse_proof(PROOF)
    assert to_arrows(proof) == "(sent1, sent2) → int1 (int1, sent3) → int2 (int1, int2) → Claim"
    assert proof.texts == {"int1": "ice is cold; it melts", "int2": "so -> water"}
    assert to_proof(proof) == PROOF
    assert parse_proof(PROOF, {"sent1": "a", "sent2": "b", "sent3": "c"}).texts["sent3"] == "c"
    assert parse_proof("").steps == parse_proof(" \n").steps == ()
    assert parse_proof("s1->hypothesis").edges() == [("s1", CLAIM)]


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("sent1 & -> hypothesis;", (1, 1), "not a step"),
        ("sent1 -> hypothesis;\n nonsense;", (1, 20), "not a step"),
        ("sent1 -> int1: a; sent1 -> int1: b;", (1, 19), "another sentence"),
        ("sent9 -> hypothesis;", (1, 1), "no sentence sent9"),
        ("x" * 300_000, (1, 1), "characters"),
    ],
)
def test_proofs_that_are_none(text: str, place: tuple[int, int], reason: str) -> None:
    with pytest.raises(StructureError, match=reason) as error:
        parse_proof(text, {"sent1": "a"})
    assert (error.value.line, error.value.column) == place


def test_noise_is_read_or_refused_with_its_place() -> None:
    rng = Random("noise")
    pieces = (
        "E1",
        "E2",
        "Claim",
        "→",
        "->",
        "(",
        ")",
        ",",
        ";",
        ":",
        "&",
        " ",
        "\n",
        "hypothesis",
        "int1",
        "\x00",
        "\ud800",
        "é",
        "-",
        ">",
    )
    read = 0
    for _ in range(2_000):
        text = "".join(rng.choices(pieces, k=rng.randint(1, 14)))
        for parse, write in ((parse_arrows, to_arrows), (parse_proof, to_proof)):
            try:
                structure = parse(text)
            except StructureError as error:
                lines = text.split("\n")
                placed = 1 <= error.line <= len(lines) and 1 <= error.column <= len(lines[error.line - 1]) + 1
            else:
                placed, read = parse(write(structure)) == structure, read + 1
            assert placed, text
    assert read > 20
    for text in (
        "a->b;" * 20_000,
        "(" * 50_000,
        "a -> Claim " * 8_000,
        ";" * 90_000,
        "a & " * 20_000,
        "a: b -> " * 10_000,
        " " * 90_000,
    ):
        for parse in (parse_arrows, parse_proof):
            try:
                problems(parse(text))
            except StructureError:
                continue
            assert set(text) <= set("a->b; Claim"), text[:20]


def test_what_a_notation_cannot_write() -> None:
    for name in ("a b", "(a", "Claim", "a→b", "", ";"):
        with pytest.raises(StructureError, match=r"Structure\.rename"):
            to_arrows(Structure((Step((name,), CLAIM),)))
    for name in ("a b", "hypothesis", "a&b", "a;", ""):
        with pytest.raises(StructureError, match=r"Structure\.rename"):
            to_proof(Structure((Step((name,), CLAIM),)))
    with pytest.raises(StructureError, match="holds a step of a proof"):
        to_proof(Structure((Step(("a",), "b"),), {"b": "x; c -> d"}))


LEGAL = [TABLE_10, "a → Claim", "a → (b, c) → Claim", "a → Claim b → Claim", "(a, b) → Claim c → a"]
ILLEGAL = {
    "": ["there is no step"],
    "a → b": ["nothing leads to the claim", "b leads to nothing: link it to the claim or to a conclusion"],
    "a → Claim → b": [
        "the claim is a premise: it is the root, and nothing follows from it",
        "b leads to nothing: link it to the claim or to a conclusion",
    ],
    "a → b → a b → Claim": ["the steps run in a circle: a → b → a"],
    "a → a → Claim": ["a is a premise of itself"],
    "a → Claim b → c → b": [
        "the steps run in a circle: b → c → b",
        "b is not connected with the claim",
        "c is not connected with the claim",
    ],
    "a → Claim b → c": ["b is not connected with the claim", "c leads to nothing: link it to the claim or to a conclusion"],
}  # fmt: skip


@pytest.mark.parametrize("text", LEGAL)
def test_legal_structures(text: str) -> None:
    assert problems(parse_arrows(text)) == []


@pytest.mark.parametrize("text", ILLEGAL)
def test_illegal_structures(text: str) -> None:
    assert problems(parse_arrows(text)) == ILLEGAL[text]


def test_what_must_be_used_and_what_must_have_a_sentence() -> None:
    structure = parse_arrows("a → Claim")
    assert problems(structure, ["a", "b"]) == ["b is useful and not used"]
    assert problems(Structure(structure.steps, {CLAIM: "c", "x": "d"})) == ["a has no sentence"]
    assert problems(Structure(structure.steps, {"a": "d"})) == []


def test_random_structures_are_legal_and_come_back_in_every_notation() -> None:
    rng = Random("notations")
    for _ in range(300):
        structure = programs.random_structure(rng)
        assert problems(structure) == []
        assert parse_arrows(to_arrows(structure)) == structure
        bare = Structure(structure.steps, {name: f"text of {name}" for name in structure.intermediates()})
        assert (parse_proof(to_proof(bare)), parse_proof(to_proof(bare)).texts) == (bare, bare.texts)
        assert Structure.from_columns(structure.to_columns()) == structure


def test_repairs_are_named() -> None:
    fixed, repairs = repair(parse_arrows("(S1, S2) → S3 S3 → S3 S3 → S4"))
    assert to_arrows(fixed) == "(S1, S2) → S3 → S4 → Claim"
    assert repairs == ["took S3 out of its own premises", "linked S4 to the claim: nothing else led to it"]
    assert repair(fixed) == (fixed, [])


@pytest.mark.parametrize("text", ["a → b c → d", "a → b → a", "x → claims", ""])
def test_doubtful_structures_stay(text: str) -> None:
    structure = parse_arrows(text)
    fixed, repairs = repair(structure)
    assert (fixed == structure) == (repairs == [])
    assert bool(repairs) == (text == "x → claims")


def test_what_hangs_on_an_edited_name() -> None:
    structure = parse_arrows("(E1, E2) → E3 → (E4, E5) (E4, E6) → Claim E5 → Claim")
    assert stale(structure, ["E1"]) == ["E3", "E4", "E5", CLAIM]
    assert stale(structure, ["E6"]) == [CLAIM]
    assert stale(structure, ["E3", "E1"]) == ["E3", "E4", "E5", CLAIM]
    assert stale(structure, [CLAIM, "E9"]) == stale(structure, []) == []
    assert stale(parse_arrows("a → b → a"), ["a"]) == ["a", "b"]


def through_every_notation(proof: str, texts: dict[str, str]) -> Structure:
    """A proof parsed, written and parsed again, as a proof, a program and in arrows: equal each time."""
    structure = parse_proof(proof, texts)
    assert to_proof(structure) == proof
    assert parse_arrows(to_arrows(structure)) == structure
    read = parse_program(to_program(structure))
    assert (read, dict(read.texts)) == (structure, dict(structure.texts))
    again = parse_proof(to_proof(read), texts)
    assert (again, dict(again.texts)) == (structure, dict(structure.texts))
    return structure


TREES: list[tuple[dict[str, str], str, list[str]]] = [
    ({"sent1": "a", "sent2": "b"}, "sent1 & sent2 -> hypothesis; ", []),
    ({"sent1": "a", "sent2": "b; c"}, "sent1 -> int1: so d; e; int1 & sent2 -> hypothesis; ", []),
    ({"sent1": "a", "sent2": "b"}, "sent1 -> hypothesis; ", ["sent2 is useful and not used"]),
    ({"sent1": "a"}, "", ["there is no step"]),
]


@pytest.mark.parametrize(("texts", "proof", "why"), TREES)
def test_trees_of_entailment_bank_made_up(texts: dict[str, str], proof: str, why: list[str]) -> None:
    structure = through_every_notation(proof, {**texts, CLAIM: "c"})
    assert problems(structure, texts) == why


@pytest.mark.parametrize(("task", "legal"), [("task_1", 187), ("task_2", 187), ("task_3", 0)])
def test_trees_of_entailment_bank(task: str, legal: int, data: Path) -> None:
    """The 187 development proofs of each task; those of task 3 are empty in the release, which has its gold in tasks 1 and 2."""
    counts: dict[str, int] = {}
    lines = (data / "entailment_bank" / "dataset" / task / "dev.jsonl").read_text(encoding="utf-8").splitlines()
    for line in lines:
        row: dict[str, Any] = json.loads(line)
        context = dict(re.findall(r"(sent\d+): (.*?)(?= sent\d+: |$)", row["context"]))
        structure = through_every_notation(row["proof"], {**context, CLAIM: row["hypothesis"]})
        used = context if task == "task_1" else set(structure.leaves())
        for why in problems(structure, used) or ["legal"]:
            counts[why] = counts.get(why, 0) + 1
    assert len(lines) == 187
    assert counts == ({"legal": 187} if legal else {"there is no step": 187}), counts


def test_the_public_module() -> None:
    assert hfcf.checkwhy.parse_program is parse_program
    assert all(getattr(hfcf.checkwhy, name) is not None for name in hfcf.checkwhy.__all__)
