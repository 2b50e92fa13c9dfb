"""The program text of CheckWhy (Appendix E): `FACT` declarations and linking functions, read as data and never executed."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from keyword import iskeyword
from typing import Any, NoReturn

from hfcf.tasks.structures.model import CLAIM, Step, Structure, StructureError, links, repair

CLAIM_NAME = "Claim"
"""The root's name in programs."""
LINKING = {"one_to_one_linking": (False, False), "one_to_multiple_linking": (False, True), "multiple_to_one_linking": (True, False)}
"""The linking functions, and whether each of their two arguments is a list."""
RESERVED = ("FACT", "print", *LINKING)
"""Names that no sentence can have."""
STATEMENTS = f'write Name = FACT("…"), one of the functions {", ".join(LINKING)}, or print("SUPPORTS")'
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
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*(\w*)[ \t]*$", re.MULTILINE)
_QUOTED = r"\"(?:[^\"\\\n]|\\.)*+\"?|'(?:[^'\\\n]|\\.)*+'?|#.*"
_PRINTED = re.compile(rf"\bprint\s*\(\s*[\"']?\s*\{{?(?P<word>[A-Za-z][A-Za-z_ ]{{0,40}})\}}?\s*[\"']?\s*\)|{_QUOTED}")
_NO_TEXT = re.compile("[\0\ud800-\udfff]")


def parse_program(text: str, texts: Mapping[str, str] | None = None) -> Structure:
    """Read a program text as a structure; no part of it is executed.

    It may declare sentences (`Sentence1 = FACT("…")`), link them by the three functions, at the top level or in the body of `def
    build_tree_proof():`, and print the label. Comments, any indentation, and one markdown fence are accepted, because language
    models write them. Text outside the fence is not read. Everything else is refused.

    Args:
        text: the program.
        texts: the sentences that it may use without declaring them, by name; `Structure.texts` of the row. If given, every other
            name must be declared; if not, any name is allowed.

    Returns:
        The structure. Its `texts` are the given and the declared sentences; its `label` is what the program prints.

    Raises:
        StructureError: the text can't be read; the message has line, column and cure.

    >>> parse_program('one_to_one_linking(Sentence1, Claim)\\nprint("SUPPORTS")').label
    'SUPPORTS'
    >>> parse_program("one_to_one_linking(Sentence1, claim)")
    Traceback (most recent call last):
    hfcf.tasks.structures.model.StructureError: line 1, column 31: the root is Claim, not claim: write Claim
    """
    return _Reader(text, texts).structure()


def repair_program(text: str, texts: Mapping[str, str] | None = None) -> tuple[Structure, list[str]]:
    """Read a program text as `parse_program` does, but repair slips whose meaning is certain; `repair` does it for the structure.

    The text's slip is a function that does not fit its numbers of premises and conclusions: the names decide. The paper's prompt
    for structures warns language models of it (Figure 13). A link that is cut off, a name in other capitals or in quotes is
    refused, as in `parse_program`: no paper mends it.

    Returns:
        The structure, and a description of each repair.

    Raises:
        StructureError: the text has a fault that is not such a slip.

    >>> structure, repairs = repair_program("one_to_one_linking([s1, s2], Claim)")
    >>> structure.edges(), repairs
    ([('s1', 'claim'), ('s2', 'claim')], ['line 1: read one_to_one_linking as multiple_to_one_linking([s1, s2], Claim)'])
    """
    repairs: list[str] = []
    structure, of_structure = repair(_Reader(text, texts, repairs).structure())
    return structure, [*repairs, *of_structure]


def to_program(
    structure: Structure, *, declare: bool = True, new: Collection[str] = (), label: bool = True, function: bool = True
) -> str:
    """Write a structure as program text; `parse_program` reads it back equal.

    A divergent link is one `one_to_multiple_linking`, at the place of its first step.

    Args:
        structure: its names must be Python names, such as "Sentence1"; see `Structure.rename`.
        declare: write a `FACT` for the claim and each sentence of `structure.texts`, except the sentences in `new`.
        new: conclusions that are declared right before the link to them, as Task 4 has the intermediates (Table 18).
        label: write a `print` of the label, if the structure has a label.
        function: write the links as the body of `build_tree_proof` (Table 16); False: at the top level (Tables 17 and 18).

    Raises:
        StructureError: a name can't be written in a program, or one of `new` has no sentence.

    >>> from hfcf.tasks.structures.model import Step
    >>> steps = (Step(("s2",), "s3"), Step(("s2",), "s4"), Step(("s1", "s3", "s4"), "claim"))
    >>> print(to_program(Structure(steps, label="SUPPORTS")))
    def build_tree_proof():
        one_to_multiple_linking(s2, [s3, s4])
        multiple_to_one_linking([s1, s3, s4], Claim)
    print("SUPPORTS")
    """
    if missing := [name for name in new if name not in structure.texts]:
        raise StructureError(f"{missing[0]} has no sentence to declare: add its sentence to Structure.texts")
    first = [name for name in (CLAIM, *structure.texts) if name in structure.texts and name not in new] if declare else []
    lines, body, declared = [_declaration(structure, name) for name in dict.fromkeys(first)], list[str](), set[str]()
    for premises, conclusions in links(structure.steps):
        for name in conclusions:
            if name in new and name not in declared:
                declared.add(name)
                body.append(_declaration(structure, name))
        body.append(_link(premises, conclusions))
    if function and body:
        lines += ["def build_tree_proof():", *(f"    {line}" for line in body)]
    else:
        lines += body
    if label and structure.label is not None:
        lines.append(f"print({_quoted(structure.label)})")
    return "\n".join(lines)


def _declaration(structure: Structure, name: str) -> str:
    return f"{_identifier(name)} = FACT({_quoted(structure.texts[name])})"


def _quoted(text: str) -> str:
    """Quote a text as a Python string in double quotes, as the paper's prompts have it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in escaped) + '"'


class _Reader:
    """Read one program; with a list of `repairs`, read a link by its names where its function does not fit them."""

    def __init__(self, text: str, texts: Mapping[str, str] | None, repairs: list[str] | None = None) -> None:
        self.texts, self.repairs, self.closed = dict(texts or {}), repairs, texts is not None
        self.steps: list[tuple[Step, ast.expr]] = []
        self.label: str | None = None
        self.lines, self.shifts = _program_lines(text)

    def structure(self) -> Structure:
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
                    self.refuse(f"{name} can't be called like this: {STATEMENTS}", node)
                case _:
                    self.refuse(f"a statement of the kind {type(node).__name__} is not allowed: {STATEMENTS}", node)
        for step, place in self.steps:
            for name in (*step.premises, step.conclusion):
                if self.closed and name not in self.texts and name != CLAIM:
                    self.refuse(f'{name} is not declared: write {name} = FACT("…") as well, or use a name that is', place)
        return Structure(tuple(step for step, _ in self.steps), self.texts, self.label)

    def parse(self) -> ast.Module:
        try:
            with warnings.catch_warnings(action="ignore"):  # of escapes that Python does not know
                return ast.parse("\n".join(self.lines))
        except SyntaxError as error:
            line = min(error.lineno or 1, len(self.lines))
            column = min(error.offset or 1, len(self.lines[line - 1]) + 1)  # Python sometimes counts bytes
            raise StructureError(f"{error.msg}: {STATEMENTS}", line, column + self.shifts[line - 1]) from None
        except (ValueError, RecursionError, MemoryError):
            raise StructureError("this is too deep or too long for a program of links") from None

    def refuse(self, message: str, node: Any) -> NoReturn:
        column = len(self.lines[node.lineno - 1].encode()[: node.col_offset].decode()) + 1
        raise StructureError(message, node.lineno, column + self.shifts[node.lineno - 1])

    def declare(self, name: str, value: ast.expr, node: ast.Assign) -> None:
        match value:
            case ast.Call(func=ast.Name(id="FACT"), args=[ast.Constant(value=str(text))], keywords=[]):
                name = self.name(name, node)
            case _:
                self.refuse(f'{name} is not a sentence: write {name} = FACT("…") with its text in quotes', value)
        if self.texts.get(name, text) != text:
            self.refuse(f"{name} has another sentence already: give one of the two another name", node)
        if not text.strip() or _NO_TEXT.search(text):
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
        if _fitting(premises, conclusions) != function or lists != LINKING[function]:
            link = _link(premises, conclusions)
            if self.repairs is None:
                self.refuse(f"{function} does not fit these names: write {link}", call)
            self.repairs.append(f"line {call.lineno}: read {function} as {link}")
        self.steps += [(Step(tuple(premises), conclusion), call) for conclusion in conclusions]

    def names(self, arg: ast.expr) -> list[str]:
        names = []
        for node in arg.elts if isinstance(arg, ast.List) else [arg]:
            match node:
                case ast.Name(id=name):
                    names.append(self.name(name, node))
                case ast.Constant(value=str(name)) if name.isidentifier():
                    self.refuse(f"a name has no quotes: write {name}", node)
                case _:
                    self.refuse("this is neither a name nor a list of names: write Sentence1 or [Sentence1, Sentence2]", node)
        if not names:
            self.refuse("this list is empty: write names in it, as [Sentence1, Sentence2]", arg)
        if len(set(names)) < len(names):
            self.refuse("this list has a name twice: write it once", arg)
        return names

    def name(self, name: str, node: Any) -> str:
        """Return a name as the structure has it: `CLAIM` for the root."""
        if name == CLAIM_NAME:
            return CLAIM
        if name.casefold() == CLAIM:
            self.refuse(f"the root is {CLAIM_NAME}, not {name}: write {CLAIM_NAME}", node)
        if name in RESERVED:
            self.refuse(f"{name} is a function, not a sentence: write a name such as Sentence1", node)
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


def _program_lines(text: str) -> tuple[list[str], list[int]]:
    """Split a text into the lines of its program, without indentation, and return how far each line was indented.

    Lines outside the fence and the header of the function become empty, so that line numbers stay.
    """
    if len(text) > MAX_LENGTH:
        raise StructureError(f"the text must have at most {MAX_LENGTH} characters to be a program of links, got {len(text)}")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if (match := _NO_TEXT.search(text)) is not None:
        raise StructureError.at("here is a character that no text has (NUL, or half of a pair): take it out", text, match.start())
    fences = list(_FENCE.finditer(text))
    if len(fences) > 2:
        raise StructureError.at("there are several fenced blocks: keep one", text, fences[2].start())
    # One fence begins what was cut off if it has a language or nothing before it, and otherwise ends what the prompt began.
    opens = len(fences) == 2 or bool(fences and (fences[0][2] or not text[: fences[0].start()].strip()))
    start = fences[0].end() if opens else 0
    stop = fences[-1].start() if len(fences) == 2 or (fences and not opens) else len(text)
    lines = ("\n" * text.count("\n", 0, start) + text[start:stop]).split("\n")
    program, shifts, defined = list[str](), list[int](), False
    for i, line in enumerate(lines):
        if (match := _HEADER.fullmatch(line)) is not None:
            if defined:
                raise StructureError("build_tree_proof is defined twice: keep one", i + 1)
            defined, line = True, " " * match.start(1) + match[1]
        program.append(line.lstrip())
        shifts.append(len(line) - len(program[-1]))
    return program, shifts


def _link(premises: Sequence[str], conclusions: Sequence[str]) -> str:
    """Write the link from premises to conclusions; at least one side must have a single name."""
    return f"{_fitting(premises, conclusions)}({_side(premises)}, {_side(conclusions)})"


def _fitting(premises: Sequence[str], conclusions: Sequence[str]) -> str:
    """Return the linking function for the numbers of premises and conclusions."""
    return next(name for name, lists in LINKING.items() if lists == (len(premises) > 1, len(conclusions) > 1))


def _side(names: Sequence[str]) -> str:
    written = [_identifier(name) for name in names]
    return written[0] if len(written) == 1 else f"[{', '.join(written)}]"


def _identifier(name: str) -> str:
    """Write a name as programs have it."""
    if name == CLAIM:
        return CLAIM_NAME
    if not name.isidentifier() or iskeyword(name) or name.casefold() == CLAIM or name in RESERVED:
        raise StructureError(f"{name!r} can't be a name in a program: rename it by Structure.rename, for example to 'Sentence1'")
    return name
