"""The program text of CheckWhy (Appendix E): `FACT` declarations and linking functions, read as data and never executed."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Mapping, Sequence
from keyword import iskeyword
from typing import Any, NoReturn

from hfcf.core.structures.legality import repair
from hfcf.core.structures.model import CLAIM, Step, Structure, StructureError, links

MAX_LENGTH = 200_000
"""Characters of the longest program: that of a row with two hundred pieces of evidence has about 40,000."""
MAX_NESTING = 8
"""Brackets inside brackets: a linking function with a list has two."""
CLAIM_NAME = "Claim"
"""The root's name in programs."""
LINKING = {"one_to_one_linking": (False, False), "one_to_multiple_linking": (False, True), "multiple_to_one_linking": (True, False)}
"""The linking functions, and whether each of their two arguments is a list."""
VERDICTS = {
    **dict.fromkeys(("SUPPORTS", "SUPPORTED", "SUPPORT"), "SUPPORTS"),
    **dict.fromkeys(("REFUTES", "REFUTED", "REFUTE"), "REFUTES"),
    **dict.fromkeys(("NOT ENOUGH INFO", "NOT ENOUGH INFORMATION", "NEI"), "NOT ENOUGH INFO"),
}
"""What `print` may say, in capitals, and the label that it means."""
_HEADER = re.compile(r"\s*def\s+build_tree_proof\s*\(\s*\)\s*(?:->\s*\w+\s*)?:[ \t]*(.*)", re.ASCII)
_FENCE = re.compile(r"\s*(?:`{3,}|~{3,}|[“”\"]{2})\s*(\w*)\s*|\s*“(python)\s*")
_FORMS = 'write Name = FACT("…"), one of the functions ' + ", ".join(LINKING) + ', or print("SUPPORTS")'


def parse_program(text: str, texts: Mapping[str, str] | None = None) -> Structure:
    """Read a program text as a structure; nothing of it is executed.

    It may declare sentences (`Sentence1 = FACT("…")`), link them by the three functions, bare or as the body of
    `def build_tree_proof():`, and print the label. Comments, one markdown fence with prose around it, and any indentation are
    accepted, as language models write them; everything else is refused.

    Args:
        text: the program.
        texts: the sentences that it may use without declaring them, by name; `Structure.texts` of the row. If given, every other
            name must be declared; if not, any name will do.

    Raises:
        StructureError: with line, column and cure.

    >>> parse_program('one_to_one_linking(Sentence1, Claim)\\nprint("SUPPORTS")').label
    'SUPPORTS'
    >>> parse_program("import os")
    Traceback (most recent call last):
    hfcf.core.structures.model.StructureError: line 1, column 1: an Import is not allowed: write Name = FACT("…"), one of the functions one_to_one_linking, one_to_multiple_linking, multiple_to_one_linking, or print("SUPPORTS")
    """  # noqa: E501
    return _Reader(text, texts).read()


def repair_program(text: str, texts: Mapping[str, str] | None = None) -> tuple[Structure, list[str]]:
    """Read a program text as `parse_program` does, but repair slips that leave no doubt; see `repair` for those of the structure.

    Repaired are names in other capitals (`claim`), a name twice in a list, and a function that does not fit its number of premises
    and conclusions.

    Returns:
        the structure, and each repair in words.

    Raises:
        StructureError: what is wrong is no such slip.

    >>> repair_program("one_to_one_linking([s1, s2], claim)")[1][1]
    'line 1: one_to_one_linking does not fit 2 premise(s) and 1 conclusion(s): write multiple_to_one_linking([s1, s2], Claim)'
    """
    slips: list[str] = []
    structure, repairs = repair(_Reader(text, texts, slips).read())
    return structure, [*slips, *repairs]


def to_program(structure: Structure, *, declare: bool = True, label: bool = True, function: bool = True) -> str:
    """Write a structure as program text; `parse_program` reads it back equal.

    A divergent link is one `one_to_multiple_linking`, at the place of its first step.

    Args:
        structure: whose names are Python names, such as "Sentence1"; see `Structure.rename`.
        declare: write a `FACT` for the claim and each sentence of `structure.texts`.
        label: write the label's `print`, where the structure has one.
        function: write the links as the body of `build_tree_proof`, as in Table 16; without, bare as in Table 17.

    Raises:
        StructureError: a name can't stand in a program.

    >>> steps = (Step(("s2",), "s3"), Step(("s2",), "s4"), Step(("s1", "s3", "s4"), "claim"))
    >>> print(to_program(Structure(steps, label="SUPPORTS")))
    def build_tree_proof():
        one_to_multiple_linking(s2, [s3, s4])
        multiple_to_one_linking([s1, s3, s4], Claim)
    print("SUPPORTS")
    """
    lines = []
    if declare:
        names = sorted(structure.texts, key=lambda name: name != CLAIM)
        lines += [f"{_identifier(name)} = FACT({_quoted(structure.texts[name])})" for name in names]
    body = [_linking(premises, conclusions) for premises, conclusions in links(structure.steps)]
    if function and body:
        lines += ["def build_tree_proof():", *(f"    {line}" for line in body)]
    else:
        lines += body
    if label and structure.label is not None:
        lines.append(f"print({_quoted(structure.label)})")
    return "\n".join(lines)


def _linking(premises: Sequence[str], conclusions: Sequence[str]) -> str:
    sides = (len(premises) > 1, len(conclusions) > 1)
    name = next(name for name, lists in LINKING.items() if lists == sides)
    return f"{name}({', '.join(_side(side) for side in (premises, conclusions))})"


def _side(names: Sequence[str]) -> str:
    written = [_identifier(name) for name in names]
    return written[0] if len(written) == 1 else f"[{', '.join(written)}]"


def _identifier(name: str) -> str:
    if name == CLAIM:
        return CLAIM_NAME
    if not name.isidentifier() or iskeyword(name) or name in (CLAIM_NAME, "FACT", "print", *LINKING):
        raise StructureError(f"{name!r} can't be a name in a program: give it another by Structure.rename, such as 'Sentence1'")
    return name


def _quoted(text: str) -> str:
    """Quote a text as a Python string in double quotes, as the paper's prompts have it."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in plain) + '"'


class _Reader:
    """Read one program; with `slips`, accept and name the slips that leave no doubt about what is meant."""

    def __init__(self, text: str, texts: Mapping[str, str] | None, slips: list[str] | None = None) -> None:
        self.texts, self.slips, self.closed = dict(texts or {}), slips, texts is not None
        self.declared: set[str] = set()
        self.steps: list[tuple[Step, ast.AST]] = []
        self.label: str | None = None
        self.lines, self.shifts = _program_lines(text)

    def read(self) -> Structure:
        for node in self.parse().body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self.declare(name, value, node)
                case ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=args, keywords=[])):
                    self.print(args, node)
                case ast.Expr(value=ast.Call(func=ast.Name(id=name), args=args, keywords=[])) if name in LINKING:
                    self.link(name, args, node)
                case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                    pass  # a docstring, an empty body
                case ast.Expr(value=ast.Call(func=ast.Name(id=name))):
                    self.refuse(f"there is no function {name}: {_FORMS}", node)
                case _:
                    self.refuse(f"an {type(node).__name__} is not allowed: {_FORMS}", node)
        for step, place in self.steps:
            for name in (*step.premises, step.conclusion):
                if self.closed and name not in self.texts and name != CLAIM:
                    self.refuse(f'the name {name} is not declared: write {name} = FACT("…") before, or use a name that is', place)
        return Structure(tuple(step for step, _ in self.steps), self.texts, self.label)

    def parse(self) -> ast.Module:
        try:
            with warnings.catch_warnings(action="ignore"):
                return ast.parse("\n".join(self.lines))
        except SyntaxError as error:
            line, offset = error.lineno or 1, error.offset or 1
            raise StructureError(f"{error.msg}: {_FORMS}", line, max(offset, 1) + self.shift(line)) from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise StructureError(f"this can't be read ({error or type(error).__name__}): {_FORMS}") from None

    def shift(self, line: int) -> int:
        return self.shifts[line - 1] if 0 < line <= len(self.shifts) else 0

    def refuse(self, message: str, node: Any) -> NoReturn:
        column = len(self.lines[node.lineno - 1].encode()[: node.col_offset].decode()) + 1
        raise StructureError(message, node.lineno, column + self.shift(node.lineno))

    def declare(self, name: str, value: ast.expr, node: ast.AST) -> None:
        match value:
            case ast.Call(func=ast.Name(id="FACT"), args=[ast.Constant(value=str(text))], keywords=[]):
                pass
            case ast.Call(
                func=ast.Name(id="FACT"), args=[], keywords=[ast.keyword(arg="fact", value=ast.Constant(value=str(text)))]
            ):
                pass
            case _:
                self.refuse(f'{name} is not declared by a sentence: write {name} = FACT("…") with its text in quotes', value)
        name = self.name(name, node)
        if name in self.texts and self.texts[name] != text:
            self.refuse(f"{name} has another sentence already: give one of the two another name", node)
        if not text.strip() or any("\ud800" <= character <= "\udfff" for character in text):
            self.refuse(f"the sentence of {name} is empty or holds half a character: write its text", node)
        self.texts[name] = text

    def print(self, args: list[ast.expr], node: ast.AST) -> None:
        match args:
            case [ast.Constant(value=str(word))] if label := VERDICTS.get(" ".join(word.upper().replace("_", " ").split())):
                if self.label not in (None, label):
                    self.refuse(f"the label is printed twice, {self.label} and {label}: keep one", node)
                self.label = label
            case _:
                self.refuse('this prints no label: write print("SUPPORTS"), print("REFUTES") or print("NOT ENOUGH INFO")', node)

    def link(self, function: str, args: list[ast.expr], node: ast.AST) -> None:
        if len(args) != 2:
            self.refuse(f"{function} has {len(args)} arguments: give it the premise and the conclusion", node)
        premises, conclusions = (self.names(arg) for arg in args)
        if len(premises) > 1 and len(conclusions) > 1:
            self.refuse("several premises lead to several conclusions: write one multiple_to_one_linking for each conclusion", node)
        fitting = next(name for name, lists in LINKING.items() if lists == (len(premises) > 1, len(conclusions) > 1))
        if fitting != function or (isinstance(args[0], ast.List), isinstance(args[1], ast.List)) != LINKING[function]:
            self.slip(f"{function} does not fit {len(premises)} premise(s) and {len(conclusions)} conclusion(s): "
                      f"write {_linking(premises, conclusions)}", node)  # fmt: skip
        self.steps += [(Step(tuple(premises), conclusion), node) for conclusion in conclusions]

    def names(self, arg: ast.expr) -> list[str]:
        elements = arg.elts if isinstance(arg, ast.List) else [arg]
        names = [self.name(one.id, one) for one in elements if isinstance(one, ast.Name)]
        if not names or len(names) < len(elements):
            self.refuse("this is neither a name nor a list of names: write Sentence1 or [Sentence1, Sentence2]", arg)
        if len(set(names)) < len(names):
            self.slip("the list has a name twice: write it once", arg)
        return list(dict.fromkeys(names))

    def name(self, name: str, node: Any) -> str:
        if name == CLAIM_NAME:
            return CLAIM
        if name.casefold() == CLAIM:
            self.slip(f"the name of the root is {CLAIM_NAME}: write it in place of {name}", node)
            return CLAIM
        if name in self.texts:
            return name
        known = [one for one in self.texts if one.casefold() == name.casefold()]
        if len(known) == 1:
            self.slip(f"the name {name} is not declared, but {known[0]} is: write {known[0]}", node)
            return known[0]
        return name

    def slip(self, message: str, node: Any) -> None:
        if self.slips is None:
            self.refuse(message, node)
        self.slips.append(f"line {node.lineno}: {message}")


def _program_lines(text: str) -> tuple[list[str], list[int]]:
    """Split a text into the lines of its program, without indentation, and say by how much each was indented.

    Lines outside the fence and the function's header are left empty, so that places stay.
    """
    if len(text) > MAX_LENGTH:
        raise StructureError(f"the text has {len(text)} characters, more than {MAX_LENGTH}: this is no program of links")
    if (at := re.search("[\0\ud800-\udfff]", text)) is not None:
        raise StructureError.at("here is a character that no text has (NUL or half a character): take it out", text, at.start())
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    fences = [i for i, line in enumerate(lines) if _FENCE.fullmatch(line)]
    if len(fences) > 2:
        raise StructureError("there are several fenced blocks: keep one", fences[2] + 1)
    if len(fences) == 2:
        start, stop = fences[0] + 1, fences[1]
    elif fences and (lines[fences[0]].strip().isalpha() or not "".join(lines[: fences[0]]).strip()):
        start, stop = fences[0] + 1, len(lines)
    else:
        start, stop = 0, (fences or [len(lines)])[0]
    header, program, shifts = False, [], []
    for i, line in enumerate(lines):
        kept = line if start <= i < stop else ""
        if (match := _HEADER.fullmatch(kept)) is not None:
            if header:
                raise StructureError("build_tree_proof is defined twice: keep one", i + 1)
            header, kept = True, " " * match.start(1) + match[1]
        program.append(kept.lstrip())
        shifts.append(len(kept) - len(program[-1]))
    _refuse_nesting(program, shifts)
    return program, shifts


def _refuse_nesting(lines: Sequence[str], shifts: Sequence[int]) -> None:
    """Refuse brackets nested so deeply that the parser's stack might not hold them; brackets in quotes count as well."""
    depth = 0
    for i, line in enumerate(lines):
        for match in re.finditer(
            r"[()\[\]{}]", re.sub(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'", lambda quoted: " " * len(quoted[0]), line)
        ):
            depth = depth + 1 if match[0] in "([{" else max(depth - 1, 0)
            if depth > MAX_NESTING:
                raise StructureError(
                    f"brackets are nested more than {MAX_NESTING} deep: {_FORMS}", i + 1, match.start() + 1 + shifts[i]
                )
