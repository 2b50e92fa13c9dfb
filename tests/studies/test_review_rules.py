"""The review page's rules are those of the library: both give the same answers for many structures and programs.

Skipped where there is no Node.js to run the page's script in.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from itertools import pairwise
from typing import Any

import pytest

from hfcf.report.page import read_template
from hfcf.studies.review.forms import PACKAGE
from hfcf.studies.review.version import ROLES, Piece, Version
from hfcf.tasks.structures.legality import problems
from hfcf.tasks.structures.model import CLAIM, Step, Structure, StructureError
from hfcf.tasks.structures.program import parse_program, to_program

NAMES = [f"s{i}" for i in range(1, 7)]
MAIN = """
const cases = JSON.parse(require("fs").readFileSync(0, "utf8"));
const functions = { problems, parseProgram, writeProgram, versionProblems };
console.log(JSON.stringify(cases.map(([name, ...args]) => functions[name](...args))));
"""


def answers(cases: list[list[Any]]) -> list[Any]:
    """What functions of the page's script answer: a case is a name and arguments."""
    node = shutil.which("node")
    if not node:
        pytest.skip("there is no Node.js (Debian: nodejs)")
    script = read_template("review_rules.js", PACKAGE) + MAIN
    done = subprocess.run([node, "-e", script], input=json.dumps(cases), capture_output=True, text=True, check=True)
    return list(json.loads(done.stdout))


def structure(rng: random.Random) -> Structure:
    """Any steps: legal ones, circles, islands, premises of themselves, the claim as a premise."""
    nodes = [*NAMES[: rng.randint(1, 6)], CLAIM]
    steps = []
    for _ in range(rng.randint(0, 5)):
        premises = rng.sample(nodes[:-1] if rng.random() < 0.9 else nodes, rng.randint(1, min(3, len(nodes) - 1)))
        steps.append(Step(tuple(premises), rng.choice(nodes)))
    if rng.random() < 0.7:  # forwards only, as legal ones run
        steps = [Step(premises, rng.choice([name for name in nodes if all(name > one for one in premises)] + [CLAIM]))
                 for premises, _ in steps if CLAIM not in premises]  # fmt: skip
    return Structure(tuple(steps))


def plain(messages: list[str]) -> list[str]:
    """Messages without the names of a circle: there may be several circles, and either side may name another one."""
    return [message.partition(":")[0] if message.startswith("the steps run in a circle") else message for message in messages]


def test_both_find_the_same_problems() -> None:
    rng = random.Random(13)
    made = [(structure(rng), rng.sample(NAMES, rng.randint(0, 6))) for _ in range(3_000)]
    ours = [problems(one, useful) for one, useful in made]
    theirs = answers([["problems", one.to_columns(), useful] for one, useful in made])
    assert [plain(messages) for messages in theirs] == [plain(messages) for messages in ours]
    assert sum(not messages for messages in ours) > 50
    kinds = (
        "no step",
        "premise of itself",
        "the claim is a premise",
        "nothing leads",
        "circle",
        "to nothing",
        "not connected",
        "useful",
    )
    assert all(sum(kind in " ".join(messages) for messages in ours) > 20 for kind in kinds)
    for (one, _), messages in zip(made, theirs, strict=True):
        for circle in (message.partition(": ")[2].split(" → ") for message in messages if "circle" in message):
            assert circle[0] == circle[-1] != circle[1]
            assert set(pairwise(circle)) <= set(one.edges())


def test_a_version_is_legal_for_both_or_for_none() -> None:
    rng = random.Random(14)
    row = {"label": "SUPPORTS", "structure": [{}], "evidence_info": [], "evidence": []}
    versions = []
    for _ in range(2_000):
        one = structure(rng)
        names = one.nodes() if rng.random() < 0.7 else rng.choices(NAMES, k=3)
        concluded = {step.conclusion for step in one.steps}
        roles = [("intermediate" if name in concluded else "leaf") if rng.random() < 0.9 else rng.choice(ROLES) for name in names]
        texts = [
            rng.choice(["A text.", "A text.", "A text.", "1994", " ", "…", "a\x07b"]) if rng.random() < 0.1 else "A text."
            for _ in names
        ]
        pieces = tuple(Piece(*piece) for piece in zip(names, roles, texts, strict=True) if piece[0] != CLAIM)
        named = {piece.name: piece.text for piece in pieces}
        versions.append(
            Version("A claim.", pieces, Structure(one.steps, {**dict.fromkeys(one.nodes(), "A text."), **named, CLAIM: "c"}))
        )
    row["structure"] = [{"premises": [], "conclusion": CLAIM}]
    ours = [version.problems(row) for version in versions]
    theirs = answers([
        ["versionProblems", {"claim": one.claim, "steps": one.structure.to_columns(),
                             "evidence": [{"id": name, "role": role, "text": text} for name, role, text in one.pieces]}, True]
        for one in versions
    ])  # fmt: skip
    assert [not messages for messages in ours] == [not messages for messages in theirs]
    assert 50 < sum(not messages for messages in ours) < 1_950
    # Of texts the library names the first that is unsound alone, by its number.
    of_texts = re.compile(r".* (is empty|has no letters|holds \w+ control character.*)$")
    both = [[[one for one in plain(messages) if not of_texts.match(one) and one != "there is no evidence"] for messages in side]
            for side in (ours, theirs)]  # fmt: skip
    assert both[0] == both[1]


def test_programs_are_read_and_written_alike() -> None:
    rng = random.Random(15)
    made = [one for _ in range(1_000) if (one := structure(rng)).steps]
    texts = [to_program(one, declare=False, label=False, function=False) for one in made]
    assert answers([["writeProgram", one.to_columns()] for one in made]) == texts
    read = answers([["parseProgram", text, NAMES] for text in texts])
    assert [one["errors"] for one in read] == [[]] * len(texts)
    assert [one["steps"] for one in read] == [parse_program(text).to_columns() for text in texts]


def test_what_the_page_reads_the_library_reads() -> None:
    rng = random.Random(16)
    texts = []
    for _ in range(3_000):
        text = to_program(structure(rng), declare=False, label=False, function=False) or "one_to_one_linking(s1, Claim)"
        for _ in range(rng.randint(1, 2)):
            tokens = re.findall(r"\w+|\W", text)
            tokens[rng.randrange(len(tokens))] = rng.choice([*NAMES, *NAMES, "Claim", "claim", "s9", *"[](),# \n'=x", "", " # why"])
            text = "".join(tokens)
        texts.append(text)
    accepted = 0
    for text, read in zip(texts, answers([["parseProgram", text, NAMES] for text in texts]), strict=True):
        try:
            ours = parse_program(text, {**dict.fromkeys(NAMES, "A text."), CLAIM: "c"}).to_columns()
        except StructureError:
            ours = None
        if not read["errors"]:
            accepted += 1
            assert read["steps"] == ours, text
    assert accepted > 300


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("one_to_one_linking(s1 Claim)", "line 1: write one_to_one_linking"),
        ("\nimport os", "line 2: write"),
        ("one_to_one_linking(s9, Claim)", "s9 is no name: write one of s1, .*, Claim"),
        ("one_to_one_linking(s1, claim)", "claim is no name"),
        ("one_to_one_linking([s1, s2], Claim)", r"write multiple_to_one_linking\(\[s1, s2\], Claim\)"),
        ("multiple_to_one_linking([s1, s1], Claim)", "twice"),
        ("multiple_to_one_linking([s1, s2], [s3, s4])", "several premises lead to several"),
    ],
)
def test_an_error_names_its_line_and_the_cure(text: str, message: str) -> None:
    [read] = answers([["parseProgram", text, NAMES]])
    [error] = read["errors"]
    assert re.search(message, error)
