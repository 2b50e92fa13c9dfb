"""Random structures and random, mutated and hostile program texts, all by seed."""

from __future__ import annotations

import string
from collections.abc import Iterator
from random import Random

from hfcf.tasks.structures.model import CLAIM, Step, Structure
from hfcf.tasks.structures.program import to_program

WORDS = ("ice", "melts", "the lamp", "is on", '"so"', "a\\b", "naïve", "雪", "(x)", "# no", "; ->", "it's", "\t", "“q”")
PIECES = (
    "(", ")", "[", "]", ",", "=", '"', "'", "\\", "#", "\n", "    ", "Claim", "claim", "Sentence1", "FACT", 'FACT("a")', "print",
    'print("SUPPORTS")', "def build_tree_proof():", "one_to_one_linking", "multiple_to_one_linking(", "one_to_multiple_linking(",
    "import os", "__import__('os').system('x')", "lambda: 0", "f'{1}'", "b''", "1", "None", "...", "*", "**x", "@", "```python",
    "```", "\x00", "\ud800", "é", "雪", "\u2028", "\x0c", "\r", "exec", ";", "if True:", "while 1: pass", "x = 1", "'''",
)  # fmt: skip


def random_structure(rng: Random) -> Structure:
    """A legal structure with serial, combined, divergent and convergent links."""
    names = [f"Sentence{i}" for i in range(1, rng.randint(2, 9))]
    order = [*names, CLAIM]
    steps = []
    for i, name in enumerate(names):
        for conclusion in rng.sample(order[i + 1 :], min(len(order) - i - 1, rng.choice((1, 1, 1, 2, 3)))):
            others = rng.sample(names[:i], min(i, rng.choice((0, 0, 1, 2))))
            steps.append(Step((name, *others), conclusion))
    rng.shuffle(steps)
    texts = {name: " ".join(rng.choices(WORDS, k=rng.randint(1, 6))) + " ." for name in order}
    return Structure(tuple(steps), texts, rng.choice((None, "SUPPORTS", "REFUTES", "NOT ENOUGH INFO")))


def program(rng: Random) -> str:
    structure = random_structure(rng)
    return to_program(structure, declare=rng.random() < 0.7, function=rng.random() < 0.5)


def mutated(rng: Random, text: str) -> str:
    """The text with a few characters or pieces of code put in, left out, doubled or cut off."""
    for _ in range(rng.randint(1, 4)):
        i, j = sorted(rng.choices(range(len(text) + 1), k=2))
        j = min(j, i + rng.randint(0, 12))
        match rng.randrange(5):
            case 0:
                text = text[:i] + rng.choice(PIECES) + text[i:]
            case 1:
                text = text[:i] + text[j:]
            case 2:
                text = text[:j] + text[i:j] + text[j:]
            case 3:
                text = text[:i] + rng.choice(string.printable) + text[i + 1 :]
            case 4:
                lines = text.split("\n")
                rng.shuffle(lines)
                text = "\n".join(lines)
    return text


def noise(rng: Random) -> str:
    return "".join(rng.choices(PIECES, k=rng.randint(0, 30)))


def hostile() -> Iterator[str]:
    """Texts that are too long, too deep or too odd for a parser."""
    yield from ("(" * 5_000, "[" * 100_000, "x = " + "[" * 300 + "]" * 300, "f" + "()" * 60_000, "a" + ".b" * 90_000)
    yield from ("-" * 150_000 + "1", "not " * 40_000 + "a", "lambda:" * 20_000 + "1", "1" * 10_000, "a=" * 60_000 + "1")
    yield from ("a if b else " * 15_000 + "c", "x" * 2_000_000, "one_to_one_linking(a, Claim)\n" * 6_000, '"' + '\\"' * 90_000)
    yield from ("'" * 99_999, "\\" * 150_000, "\x00", "a\ud800b", 'X = FACT("\\ud800")', 'X = FACT("\\x00")', "{" * 9, "@" * 1_000)
    yield from (
        "`" * 1_000,
        "#" * 150_000 + "\n(",
        "print(" * 8 + ")" * 8,
        "if 1:\n" * 500,
        "\t\x0c  (",
        "\ufeffx",
        "x: int",
        "del x",
    )
