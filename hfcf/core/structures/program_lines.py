"""The lines of a program text as language models write it: inside a fence or not, indented or not, and never too deep to parse."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Sequence

from hfcf.core.structures.linking import FORMS
from hfcf.core.structures.model import StructureError

MAX_LENGTH = 200_000
"""Characters of the longest program: that of a row with two hundred pieces of evidence has about 40,000."""
MAX_NESTING = 8
"""Brackets inside brackets: a linking function with a list has two."""
_HEADER = re.compile(r"\s*def\s+build_tree_proof\s*\(\s*\)\s*(?:->\s*\w+\s*)?:[ \t]*(.*)", re.ASCII)
_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})\s*+(\w*)\s*")
_BRACKET = re.compile(r"\"(?:[^\"\\]|\\.)*\"?|'(?:[^'\\]|\\.)*'?|#.*|(?P<open>[(\[{])|(?P<close>[)\]}])")
NO_TEXT = re.compile("[\0\ud800-\udfff]")


def program_lines(text: str) -> tuple[list[str], list[int]]:
    """Split a text into the lines of its program, without indentation, and say by how much each was indented.

    Lines outside the fence and the function's header are left empty, so that line numbers stay.
    """
    if len(text) > MAX_LENGTH:
        raise StructureError(f"the text has {len(text)} characters, more than {MAX_LENGTH}: this is no program of links")
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
    _refuse_nesting(program, shifts)
    return program, shifts


def _fenced(lines: Sequence[str]) -> tuple[int, int]:
    """Return the first and the end of the lines inside a markdown fence; either of its ends may be missing, or both."""
    fences = [(i, match[1]) for i, line in enumerate(lines) if (match := _FENCE.fullmatch(line))]
    if len(fences) > 2:
        raise StructureError("there are several fenced blocks: keep one", fences[2][0] + 1)
    if len(fences) == 2:
        return fences[0][0] + 1, fences[1][0]
    if not fences:
        return 0, len(lines)
    [(place, language)] = fences
    # A fence with a language, or after nothing, begins what was cut off; another ends what the prompt began.
    return (place + 1, len(lines)) if language or not "".join(lines[:place]).strip() else (0, place)


def _refuse_nesting(lines: Sequence[str], shifts: Sequence[int]) -> None:
    """Refuse brackets nested so deeply that the parser's stack might not hold them; those in quotes and comments do not count."""
    depth = 0
    for i, line in enumerate(lines):
        for match in _BRACKET.finditer(line):
            depth = max(0, depth + (match["open"] is not None) - (match["close"] is not None))
            if depth > MAX_NESTING:
                raise StructureError(
                    f"brackets are nested more than {MAX_NESTING} deep: {FORMS}", i + 1, match.start() + 1 + shifts[i]
                )


def parse_lines(lines: Sequence[str]) -> ast.Module:
    """Parse a program's lines."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of escapes that Python does not know
            return ast.parse("\n".join(lines))
    except (ValueError, RecursionError, MemoryError):
        raise SyntaxError("this is too deep or too long for a program of links") from None
