"""Program text: what language models write is read, everything else is refused with its place, and nothing is executed."""

from __future__ import annotations

import pickle
import sys
from collections import Counter
from random import Random
from typing import Any

import programs
import pytest

from hfcf.tasks.structures.model import CLAIM, Step, Structure, StructureError
from hfcf.tasks.structures.program import VERDICTS, parse_program, printed_label, repair_program, to_program
from hfcf.tasks.verification import LABELS

TREE = Structure((Step(("S1", "S2"), "S3"), Step(("S3",), "S4"), Step(("S3",), CLAIM), Step(("S4", "S5"), CLAIM)))
BODY = """one_to_multiple_linking(S3, [S4, Claim])
multiple_to_one_linking([S1, S2], S3)
multiple_to_one_linking([S4, S5], Claim)"""
INDENTED = BODY.replace("\n", "\n    ")

FORMS = {
    "bare": BODY,
    "indented, as after a prompt that ends with the function's first line": f"    {INDENTED}\nprint('SUPPORTS')",
    "a function": f'def build_tree_proof():\n    {INDENTED}\n\nprint("supports")',
    "a function with a docstring and comments": f'def build_tree_proof() -> None:  # x\n  """The proof."""\n    # one\n{BODY}',
    "a fence with prose around it": f"Here is the (proof:\n```python\n{BODY}\n```\nI hope [it helps.",
    "a fence that is not closed": f"```python\n{BODY}",
    "a fence that the prompt opened": f"{BODY}\n```\nThis is why (…",
    "a fence of tildes": f"~~~\n{BODY}\n~~~",
    "Windows line ends": BODY.replace("\n", "\r\n"),
    "on several lines": BODY.replace("[S4, Claim]", "[\n    S4,\n  Claim,\n]"),
    "one line": BODY.replace("\n", "; "),
    "with a declaration": f'S3 = FACT("It\'s (warm.")\n{BODY}',
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_the_forms_that_models_write(text: str) -> None:
    assert parse_program(text) == TREE


def test_declarations_and_the_label() -> None:
    text = 'Claim = FACT("c")\nS1 = FACT(\'a "b"\')\none_to_one_linking(S1, Claim)\nprint("not_enough info")'
    structure = parse_program(text, {"S1": 'a "b"', "S2": "d"})
    assert structure.texts == {"S1": 'a "b"', "S2": "d", CLAIM: "c"}
    assert structure.label == "NOT ENOUGH INFO"
    assert parse_program("").steps == parse_program("pass").steps == ()
    assert set(VERDICTS.values()) == set(LABELS)


NEVER = ("exec", "import", "open", "os.system", "subprocess.Popen", "builtins.input", "socket.connect")
REFUSED: dict[str, tuple[str, int, int, str]] = {
    "an import": ("\n  import os", 2, 3, "Import is not allowed"),
    "a call": ("S1 = FACT('a')\nos.system('x')", 2, 1, "Expr is not allowed"),
    "another function": ("# é\né = FACT('é'); link(S1, S2)", 2, 16, "link can't be called"),
    "a function of another name": ("def f():\n    one_to_one_linking(S1, Claim)", 2, 5, "expected an indented block"),
    "a computed text": ('S1 = FACT("a" + "b")', 1, 6, "in quotes"),
    "the prompt's dots": ("S1 = FACT(...)", 1, 6, "in quotes"),
    "an f-string": ('S1 = FACT(f"a")', 1, 6, "in quotes"),
    "an empty text": ('S1 = FACT(" ")', 1, 6, "is empty"),
    "half a character in a text": ('S1 = FACT("\\ud83d")', 1, 6, "no text has"),
    "two texts of a name": ('S1 = FACT("a")\nS1 = FACT("b")', 2, 1, "another sentence"),
    "a name of the row with another text": ('\nS2 = FACT("b")', 2, 1, "another sentence"),
    "an unknown name": ("one_to_one_linking(S9, Claim)", 1, 1, 'write S9 = FACT("…")'),
    "the root in small letters": ("one_to_one_linking(S2, claim)", 1, 24, "write Claim"),
    "a name in other capitals": ("one_to_one_linking(s2, Claim)", 1, 1, 'write s2 = FACT("…")'),
    "a function as a name": ("one_to_one_linking(FACT, Claim)", 1, 20, "is a function"),
    "a list of one": ("one_to_multiple_linking(S2, [Claim])", 1, 1, "write one_to_one_linking(S2, Claim)"),
    "too many premises": ("  one_to_one_linking([S2, S3], Claim)", 1, 3, "write multiple_to_one_linking([S2, S3], Claim)"),
    "a name in a list of one": ("one_to_one_linking([S2], Claim)", 1, 1, "write one_to_one_linking(S2, Claim)"),
    "many to many": ("multiple_to_one_linking([S2, S3], [S4, Claim])", 1, 1, "for each conclusion"),
    "a name twice": ("multiple_to_one_linking([S2, S2], Claim)", 1, 25, "write it once"),
    "an empty list": ("multiple_to_one_linking([], Claim)", 1, 25, "is empty"),
    "one argument": ("one_to_one_linking(S2)", 1, 1, "has 1 arguments"),
    "keywords": ("one_to_one_linking(S2, c_fact=Claim)", 1, 1, "can't be called like this"),
    "a text as an argument": ('one_to_one_linking("a b", Claim)', 1, 20, "neither a name"),
    "a name in quotes": ('one_to_one_linking("S2", Claim)', 1, 20, "write S2"),
    "another label": ('\n\nprint("MAYBE")', 3, 1, "prints no label"),
    "two labels": ('print("SUPPORTS")\nprint("REFUTES")', 2, 1, "keep one"),
    "two functions": ("def build_tree_proof():\n pass\ndef build_tree_proof():\n pass", 3, 1, "keep one"),
    "two blocks": ("```\nS1\n```\n```\nS1\n```", 4, 1, "keep one"),
    "a line that is cut off": ("one_to_one_linking(S2, Claim)\nmultiple_to_one_linking([S2,", 2, 25, "never closed"),
    "prose": ("one_to_one_linking(S2, Claim)\n    Hence the claim holds.", 2, 11, "invalid syntax"),
    "NUL": ("a\n b\x00", 2, 3, "NUL"),
    "half a pair": ("\ud800", 1, 1, "half of a pair"),
    "length": ("a" * 200_001, 1, 1, "at most 200000 characters to be a program of links, got 200001"),
}


@pytest.mark.parametrize(("text", "line", "column", "reason"), REFUSED.values(), ids=REFUSED)
def test_everything_else_is_refused_with_its_place(text: str, line: int, column: int, reason: str) -> None:
    texts = None if "é" in text else {"S2": "a", "S3": "c", "S4": "d"}
    with pytest.raises(StructureError) as error:
        parse_program(text, texts)
    assert reason in str(error.value)
    assert (error.value.line, error.value.column) == (line, column)
    assert str(error.value).startswith(f"line {line}, column {column}: ")
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


def test_a_function_that_does_not_fit_its_names_is_repaired() -> None:
    text = """one_to_one_linking([S1, S2], S3)
multiple_to_one_linking(S3, [S4])
one_to_one_linking(S4, S4)"""
    structure, repairs = repair_program(text, {f"S{i}": f"text {i}" for i in range(1, 5)})
    assert to_program(structure, declare=False, function=False) == (
        "multiple_to_one_linking([S1, S2], S3)\none_to_one_linking(S3, S4)\none_to_one_linking(S4, Claim)"
    )
    assert repairs == [
        "line 1: read one_to_one_linking as multiple_to_one_linking([S1, S2], S3)",
        "line 2: read multiple_to_one_linking as one_to_one_linking(S3, S4)",
        "took S4 out of its own premises",
        "linked S4 to the claim: nothing else led to it",
    ]


LABELLED = {
    'print("SUPPORTS")': "SUPPORTS",
    "print('refuted')": "REFUTES",
    'print("{SUPPORTS}")': "SUPPORTS",
    "print({NOT_ENOUGH_INFO})": "NOT ENOUGH INFO",
    "{REFUTES}": "REFUTES",
    'one_to_one_linking(S9, ; print("SUPPORTS")': "SUPPORTS",
    'S1 = FACT(fact="a"); print( "SUPPORTS" )': "SUPPORTS",
    'print("SUPPORTS"); print("REFUTES")': None,
    "Claim = FACT(\"He wrote print('REFUTES')\")": None,
    '# print("REFUTES")': None,
    'print("MAYBE")': None,
    "It is supported.": None,
    "": None,
}


@pytest.mark.parametrize(("text", "label"), LABELLED.items())
def test_what_a_text_prints_whatever_else_is_wrong(text: str, label: str | None) -> None:
    assert printed_label(text) == label


def test_a_sound_program_needs_no_repair_and_a_doubtful_one_gets_none() -> None:
    for text in FORMS.values():
        assert repair_program(text) == (TREE, [])
    doubtful = ("S9, Claim", "s1, Claim", '"S1", Claim', "S1, claim", "[S1, S1], Claim", "[S1, S2], [S3, Claim]")
    for text in (*(f"one_to_one_linking({names})" for names in doubtful), "one_to_one_linking(S1, Claim", "import os", "("):
        with pytest.raises(StructureError):
            repair_program(text, {"S1": "a", "S2": "b", "S3": "c"})


def test_intermediates_are_declared_beside_their_links() -> None:
    structure = Structure(TREE.steps, {"S1": "a", "S2": "b", "S3": "it's", "S4": "\n", "S5": "e", CLAIM: "c"}, "REFUTES")
    text = to_program(structure, declare=False, new=structure.intermediates(), function=False)
    assert text == (
        'S3 = FACT("it\'s")\nmultiple_to_one_linking([S1, S2], S3)\nS4 = FACT("\\n")\none_to_multiple_linking(S3, [S4, Claim])\n'
        'multiple_to_one_linking([S4, S5], Claim)\nprint("REFUTES")'
    )
    with pytest.raises(StructureError, match="S6"):
        to_program(structure, new=["S6"])
    everything = to_program(structure, new=["S3"]).split("\n")
    assert everything[0] == 'Claim = FACT("c")'
    assert sum("FACT" in line for line in everything) == 6


@pytest.mark.parametrize("name", ["a b", "1", "class", "FACT", "print", "Claim", "CLAIM", "one_to_one_linking", ""])
def test_names_that_a_program_cannot_have(name: str) -> None:
    with pytest.raises(StructureError, match=r"Structure\.rename"):
        to_program(Structure((Step((name,), CLAIM),)))
    fixed = Structure((Step((name,), CLAIM),)).rename({name: "S1"})
    assert to_program(fixed, function=False) == "one_to_one_linking(S1, Claim)"


@pytest.fixture
def watched() -> Any:
    """What a program may never do: names of audit events that parsing alone does not raise."""
    events: Counter[str] = Counter()
    active = [True]

    def hook(event: str, arguments: Any) -> None:
        # For the message of a syntax error Python's parser looks for a file of the name that stands for a text.
        if active[0] and event in NEVER and arguments[:1] != ("<unknown>",):
            events[event] += 1

    sys.addaudithook(hook)  # can't be taken away again: it sleeps afterwards
    yield events
    active[0] = False


def test_random_and_mutated_programs(watched: Counter[str]) -> None:
    """Programs that were written here come back equal; mutated and random ones are read or refused with a place, never a crash."""
    rng, outcomes = Random("programs"), Counter[str]()
    for _ in range(500):
        structure = programs.random_structure(rng)
        read = parse_program(to_program(structure))
        assert (read, dict(read.texts), read.label) == (structure, structure.texts, structure.label)
        outcomes["sound"] += 1
    texts = [programs.mutated(rng, programs.program(rng)) for _ in range(1_500)] + [programs.noise(rng) for _ in range(500)]
    for i, text in enumerate(texts):
        for read_text in (parse_program, lambda text: repair_program(text)[0])[: 1 + (i % 4 == 0)]:
            try:
                structure = read_text(text)
            except StructureError as error:
                lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
                outcomes["refused"] += 1
                outcomes["placed"] += 1 <= error.line <= len(lines) and 1 <= error.column <= len(lines[error.line - 1]) + 2
            else:
                outcomes["read"] += 1
                assert parse_program(to_program(structure)) == structure, "what was read can be written, and is what was read"
    assert outcomes["sound"] == 500
    assert outcomes["placed"] == outcomes["refused"] > 1_200
    assert outcomes["read"] > 250
    assert not watched, "nothing was executed, imported or opened"


def test_hostile_texts(watched: Counter[str]) -> None:
    for text in programs.hostile():
        printed_label(text)
        for read_text in (parse_program, repair_program):
            try:
                read_text(text)
            except StructureError:
                continue
            assert text.startswith(("`" * 1_000, "one_to_one")), text[:50]  # a fence without an end, and a long program
    assert not watched
