"""Read a program text: its lines as language models write them, its syntax tree, and the links. No part of it is executed."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Mapping, Sequence
from keyword import iskeyword
from typing import Any, NoReturn

from hfcf.tasks.structures.model import CLAIM, Step, Structure, StructureError

CLAIM_NAME = "Claim"
"""The root's name in programs."""
LINKING = {"one_to_one_linking": (False, False), "one_to_multiple_linking": (False, True), "multiple_to_one_linking": (True, False)}
"""The linking functions, and whether each of their two arguments is a list."""
RESERVED = ("FACT", "print", *LINKING)
"""Names that no sentence can have."""
FORMS = f'write Name = FACT("…"), one of the functions {", ".join(LINKING)}, or print("SUPPORTS")'
"""The parts that a program may have, for messages."""
VERDICTS = {
    **dict.fromkeys(("SUPPORTS", "SUPPORTED", "SUPPORT"), "SUPPORTS"),
    **dict.fromkeys(("REFUTES", "REFUTED", "REFUTE"), "REFUTES"),
    **dict.fromkeys(("NOT ENOUGH INFO", "NOT ENOUGH INFORMATION", "NEI"), "NOT ENOUGH INFO"),
}
"""The words that `print` may write, in capitals, and the label that each means."""
MAX_LENGTH = 200_000
"""Characters of the longest program: the program of a row with two hundred pieces of evidence has about 40,000."""
_HEADER = re.compile(r"\s*def\s+build_tree_proof\s*\(\s*\)\s*(?:->\s*\w+\s*)?:[ \t]*(.*)", re.ASCII)
_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})\s*+(\w*)\s*")
_QUOTED = r"\"(?:[^\"\\\n]|\\.)*+\"?|'(?:[^'\\\n]|\\.)*+'?|#.*"
_PRINTED = re.compile(rf"\bprint\s*\(\s*[\"']?\s*\{{?(?P<word>[A-Za-z][A-Za-z_ ]{{0,40}})\}}?\s*[\"']?\s*\)|{_QUOTED}")
_STATEMENT = re.compile(rf"{_QUOTED}|(?P<end>;)")
NO_TEXT = re.compile("[\0\ud800-\udfff]")


class ProgramReader:
    """Read one program; with a list of `slips`, repair the slips whose meaning is certain, and add their names to it."""

    def __init__(self, text: str, texts: Mapping[str, str] | None, slips: list[str] | None = None) -> None:
        self.texts, self.slips, self.closed = dict(texts or {}), slips, texts is not None
        self.steps: list[tuple[Step, ast.expr]] = []
        self.written: set[tuple[frozenset[str], str]] = set()
        self.label: str | None = None
        self.lines, self.shifts = program_lines(text)

    def read(self) -> Structure:
        for node in self.parse().body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self.declare(name, value, node)
                case ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=args, keywords=[])):
                    self.print_label(args, node)
                case ast.Expr(value=ast.Call(func=ast.Name(id=name), args=args, keywords=[]) as call) if name in LINKING:
                    self.link(name, args, call)
                case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                    pass  # a docstring, an empty body
                case ast.Expr(value=ast.Call(func=ast.Name(id=name))):
                    self.refuse(f"{name} can't be called like this: {FORMS}", node)
                case _:
                    self.refuse(f"a statement of the kind {type(node).__name__} is not allowed: {FORMS}", node)
        for step, place in self.steps:
            for name in (*step.premises, step.conclusion):
                if self.closed and name not in self.texts and name != CLAIM:
                    self.refuse(f'{name} is not declared: write {name} = FACT("…") as well, or use a name that is', place)
        return Structure(tuple(step for step, _ in self.steps), self.texts, self.label)

    def parse(self) -> ast.Module:
        try:
            return parse_lines(self.lines)
        except SyntaxError as error:
            if (tree := self.without_end()) is not None:
                return tree
            line = min(error.lineno or 1, len(self.lines))
            column = min(error.offset or 1, len(self.lines[line - 1]) + 1)  # Python sometimes counts bytes
            raise StructureError(f"{error.msg}: {FORMS}", line, column + self.shifts[line - 1]) from None

    def without_end(self) -> ast.Module | None:
        """Parse all statements except the last, which may be cut off; None if this fails, or if slips are not repaired.

        Statements end at line ends, and at a `;` outside quotes: models of this library write a program on one line.
        """
        if self.slips is None:
            return None
        last = max((i for i, line in enumerate(self.lines) if line), default=0)
        ends = [match.start() for match in _STATEMENT.finditer(self.lines[last]) if match["end"]]
        for kept, what in (*(([self.lines[last][: ends[-1]]], "statement") for _ in ends[-1:]), ([], "line")):
            try:
                tree = parse_lines([*self.lines[:last], *kept])
            except SyntaxError:
                continue
            if tree.body:
                self.slips.append(f"line {last + 1}: left out a {what} that is cut off")
                return tree
        return None

    def refuse(self, message: str, node: Any) -> NoReturn:
        column = len(self.lines[node.lineno - 1].encode()[: node.col_offset].decode()) + 1
        raise StructureError(message, node.lineno, column + self.shifts[node.lineno - 1])

    def slip(self, message: str, repaired: str, node: Any) -> None:
        if self.slips is None:
            self.refuse(message, node)
        self.slips.append(f"line {node.lineno}: {repaired}")

    def declare(self, name: str, value: ast.expr, node: ast.Assign) -> None:
        match value:
            case ast.Call(func=ast.Name(id="FACT"), args=[ast.Constant(value=str(text))], keywords=[]):
                name = self.name(name, node)
            case _:
                self.refuse(f'{name} is not a sentence: write {name} = FACT("…") with its text in quotes', value)
        if self.texts.get(name, text) != text:
            self.refuse(f"{name} has another sentence already: give one of the two another name", node)
        if not text.strip() or NO_TEXT.search(text):
            self.refuse(f"the sentence of {name} is empty, or holds a character that no text has: write its text", value)
        self.texts[name] = text

    def print_label(self, args: list[ast.expr], node: ast.Expr) -> None:
        match args:
            case [ast.Constant(value=str(word))] if label := read_verdict(word):
                if self.label not in (None, label):
                    self.refuse(f"the label is printed twice, {self.label} and {label}: keep one", node)
                self.label = label
            case _:
                self.refuse('this prints no label: write print("SUPPORTS"), print("REFUTES") or print("NOT ENOUGH INFO")', node)

    def link(self, function: str, args: list[ast.expr], call: ast.Call) -> None:
        if len(args) != 2:
            self.refuse(f"{function} has {len(args)} arguments: give it two, premise and conclusion", call)
        premises, conclusions = (self.names(arg) for arg in args)
        if len(premises) > 1 and len(conclusions) > 1:
            self.refuse("several premises lead to several conclusions: write a multiple_to_one_linking for each conclusion", call)
        lists = (isinstance(args[0], ast.List), isinstance(args[1], ast.List))
        if fitting(premises, conclusions) != function or lists != LINKING[function]:
            cure = write_link(premises, conclusions)
            self.slip(f"{function} does not fit these names: write {cure}", f"read {function} as {cure}", call)
        for conclusion in conclusions:
            key = (frozenset(premises), conclusion)
            if key in self.written and self.slips is not None:
                self.slips.append(f"line {call.lineno}: left out a link that is written before, to {conclusion}")
            self.written.add(key)
            self.steps.append((Step(tuple(premises), conclusion), call))

    def names(self, arg: ast.expr) -> list[str]:
        names = []
        for node in arg.elts if isinstance(arg, ast.List) else [arg]:
            match node:
                case ast.Name(id=name):
                    names.append(self.name(name, node))
                case ast.Constant(value=str(name)) if name.isidentifier():
                    self.slip(f"a name has no quotes: write {name}", f"read a name in quotes, {name}", node)
                    names.append(self.name(name, node))
                case _:
                    self.refuse("this is neither a name nor a list of names: write Sentence1 or [Sentence1, Sentence2]", node)
        if not names:
            self.refuse("this list is empty: write names in it, as [Sentence1, Sentence2]", arg)
        if len(set(names)) < len(names):
            self.slip("this list has a name twice: write it once", "left out a name that is twice in a list", arg)
        return list(dict.fromkeys(names))

    def name(self, name: str, node: Any) -> str:
        """Return a name as the structure has it: `CLAIM` for the root, and the declared form of a name in different capitals."""
        if name == CLAIM_NAME:
            return CLAIM
        if name.casefold() == CLAIM:
            self.slip(f"the root is {CLAIM_NAME}, not {name}: write {CLAIM_NAME}", f"read {name} as {CLAIM_NAME}", node)
            return CLAIM
        if name in RESERVED:
            self.refuse(f"{name} is a function, not a sentence: write a name such as Sentence1", node)
        known = [] if name in self.texts else [declared for declared in self.texts if declared.casefold() == name.casefold()]
        if len(known) == 1 and not isinstance(node, ast.Assign):
            self.slip(f"{name} is not declared, but {known[0]} is: write {known[0]}", f"read {name} as {known[0]}", node)
            return known[0]
        return name


def printed_label(text: str) -> str | None:
    """Return the label that a text prints, even if the rest is wrong; None if it prints no label, or several.

    Braces and missing quotes do not count, as in `print("{SUPPORTS}")`: the paper's prompts have them. A text that is only a label
    counts as that label. The content of a sentence in quotes is not read.

    >>> printed_label('one_to_one_linking(Sentence99, Claim); print("{SUPPORTS}")')
    'SUPPORTS'
    """
    if len(text) <= 80 and (alone := read_verdict(text.strip(" \t\n`\"'{}."))):
        return alone
    printed = {label for match in _PRINTED.finditer(text[:MAX_LENGTH]) if match["word"] and (label := read_verdict(match["word"]))}
    return printed.pop() if len(printed) == 1 else None


def read_verdict(word: str) -> str | None:
    """Return the label that a word means, in any capitals; None if the word is not a label."""
    return VERDICTS.get(" ".join(word.upper().replace("_", " ").split()))


def program_lines(text: str) -> tuple[list[str], list[int]]:
    """Split a text into the lines of its program, without indentation, and return how far each line was indented.

    Lines outside the fence and the header of the function become empty, so that line numbers stay.
    """
    if len(text) > MAX_LENGTH:
        raise StructureError(f"the text must have at most {MAX_LENGTH} characters to be a program of links, got {len(text)}")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if (at := NO_TEXT.search(text)) is not None:
        raise StructureError.at("here is a character that no text has (NUL, or half of a pair): take it out", text, at.start())
    lines = text.split("\n")
    start, stop = _fenced(lines)
    headers, program, shifts = 0, list[str](), list[int]()
    for i, line in enumerate(lines):
        kept = line if start <= i < stop else ""
        if (match := _HEADER.fullmatch(kept)) is not None:
            headers, kept = headers + 1, " " * match.start(1) + match[1]
        if headers > 1:
            raise StructureError("build_tree_proof is defined twice: keep one", i + 1)
        program.append(kept.lstrip())
        shifts.append(len(kept) - len(program[-1]))
    return program, shifts


def _fenced(lines: Sequence[str]) -> tuple[int, int]:
    """Return the first and the end of the lines inside a markdown fence; either end of the fence may be missing, or both."""
    fences = [(i, match[1]) for i, line in enumerate(lines) if (match := _FENCE.fullmatch(line))]
    if len(fences) > 2:
        raise StructureError("there are several fenced blocks: keep one", fences[2][0] + 1)
    if len(fences) == 2:
        return fences[0][0] + 1, fences[1][0]
    if not fences:
        return 0, len(lines)
    [(place, language)] = fences
    # A fence with a language, or after nothing, begins what was cut off; a second fence ends what the prompt began.
    return (place + 1, len(lines)) if language or not "".join(lines[:place]).strip() else (0, place)


def parse_lines(lines: Sequence[str]) -> ast.Module:
    """Parse a program's lines."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of escapes that Python does not know
            return ast.parse("\n".join(lines))
    except (ValueError, RecursionError, MemoryError):
        raise SyntaxError("this is too deep or too long for a program of links") from None


def write_link(premises: Sequence[str], conclusions: Sequence[str]) -> str:
    """Write the link from premises to conclusions; at least one side must have a single name."""
    return f"{fitting(premises, conclusions)}({_side(premises)}, {_side(conclusions)})"


def fitting(premises: Sequence[str], conclusions: Sequence[str]) -> str:
    """Return the linking function for the numbers of premises and conclusions."""
    return next(name for name, lists in LINKING.items() if lists == (len(premises) > 1, len(conclusions) > 1))


def _side(names: Sequence[str]) -> str:
    written = [identifier(name) for name in names]
    return written[0] if len(written) == 1 else f"[{', '.join(written)}]"


def identifier(name: str) -> str:
    """Write a name as programs have it."""
    if name == CLAIM:
        return CLAIM_NAME
    if not name.isidentifier() or iskeyword(name) or name.casefold() == CLAIM or name in RESERVED:
        raise StructureError(f"{name!r} can't be a name in a program: rename it by Structure.rename, for example to 'Sentence1'")
    return name
