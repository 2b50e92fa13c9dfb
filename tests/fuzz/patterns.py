"""Every regular expression of the package, how it is called, and texts on which a bad one takes minutes."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import hfcf

SOURCE = Path(hfcf.__file__).parent
CALLS = {"search", "match", "fullmatch", "findall", "finditer", "sub", "subn", "split"}
LENGTH = 20_000


@dataclass(frozen=True)
class Use:
    """A pattern and the calls by which its file, or others, use it."""

    where: str
    pattern: re.Pattern[Any]
    calls: tuple[str, ...]

    def run(self, text: str) -> None:
        given: Any = text.encode() if isinstance(self.pattern.pattern, bytes) else text
        for call in self.calls:
            if call == "finditer":
                for _ in self.pattern.finditer(given):
                    pass
            elif call in ("sub", "subn"):
                self.pattern.sub(given[:0], given)
            else:
                getattr(self.pattern, call)(given)


@lru_cache(maxsize=1)
def uses() -> tuple[list[Use], list[str]]:
    """List the patterns, and the places of those that are put together when they are used."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}
    called: dict[str, set[str]] = {}
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in CALLS:
                owner = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
                called.setdefault(owner, set()).add(node.attr)
    listed: list[Use] = []
    others: list[str] = []
    for path, tree in trees.items():
        name = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
        module = importlib.import_module(name)
        at_top = {id(node) for top in tree.body if isinstance(top, ast.Assign | ast.AnnAssign) for node in ast.walk(top)}
        listed += [
            Use(f"{name}: {key}", pattern, tuple(sorted(called.get(key) or {"finditer"})))
            for key, value in vars(module).items()
            if not key.startswith("__")
            for pattern in _patterns(value)
        ]
        for node in ast.walk(tree):
            if id(node) in at_top or not _is_re_call(node):
                continue
            assert isinstance(node, ast.Call)
            assert isinstance(node.func, ast.Attribute)
            where = f"{name}:{node.lineno}"
            try:
                text = eval(compile(ast.Expression(node.args[0]), where, "eval"), vars(module) | {"re": re})
                flags = [keyword.value for keyword in node.keywords if keyword.arg == "flags"] + node.args[_FLAGS[node.func.attr] :]
                flag = eval(compile(ast.Expression(flags[0]), where, "eval"), {"re": re}) if flags else 0
            except NameError:
                others.append(f"{name}: {ast.unparse(node.args[0])}")
                continue
            call = _CALLED.get(name, "finditer") if node.func.attr == "compile" else node.func.attr
            listed.append(Use(where, re.compile(text, flag), (call,)))
    return listed, others


_CALLED = {"hfcf.core.recipe": "match"}
"""How a file's patterns are called by a package that it gives them to."""
_FLAGS = {"compile": 1, "search": 2, "match": 2, "fullmatch": 2, "findall": 2, "finditer": 2, "split": 3, "sub": 4, "subn": 4}


def _is_re_call(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _FLAGS
        and getattr(node.func.value, "id", "") == "re"
    )


def _patterns(value: Any) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _patterns(one)
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _patterns(one)


COMMON = ("a", " ", "\n", "0", ".", "'", '"', "(", "[[", "<", "a ", "A ", "a a A ", "0,", " \n", "``", "a-", "e\u0301", "-", "尼")
MORE = (
    "A", "\t", ",", ")", "[", "]", "{", "_", "\\", "ß", "a.", "1 0 ", "a\n", "()", "((", "''", "' ", "a'", "é", "born ", "<a", "</",
    "->", "#", "|", ";", ": ", "&lt;", "1994 ", "(1994 – ", "@", "a@", "+",
)  # fmt: skip


def texts(pattern: re.Pattern[Any], pairs: bool = False) -> list[str]:
    """Make texts of 20,000 characters: repeated common pieces, and pieces that the pattern itself is made of.

    Args:
        pattern: whose characters are used.
        pairs: also put every two of its characters together, and more of them after its beginnings.
    """
    source = pattern.pattern.decode("latin-1") if isinstance(pattern.pattern, bytes) else pattern.pattern
    parsed = re._parser.parse(source, pattern.flags & ~(re.UNICODE | re.LOCALE))  # type: ignore[attr-defined]
    letters = list(dict.fromkeys(_letters(parsed)))
    # The whole pattern, and its beginnings before what it repeats: what almost matches is what makes a search go back.
    whole = _example(parsed)
    starts = list(dict.fromkeys(whole[:i] for i in range(1, min(len(whole), 24) + 1)))
    units = [*COMMON, *(MORE if pairs else ()), *letters, whole, whole[:-1], whole[: len(whole) // 2]]
    made = [(unit * (LENGTH // len(unit) + 1))[:LENGTH] for unit in dict.fromkeys(units) if unit]
    few = letters if pairs else letters[:4]
    made += [start + letter * LENGTH + "\x01" for start in (starts if pairs else starts[1::3]) for letter in few]
    if pairs:
        made += [(one + other) * (LENGTH // 2) for one in letters for other in letters if one != other]
        made += [one * (LENGTH // 2) + other * (LENGTH // 2) for one in letters for other in letters if one != other]
    return made


_CATEGORY = {"CATEGORY_DIGIT": "0", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "a"}
_NOT = {"CATEGORY_NOT_DIGIT": "a", "CATEGORY_NOT_SPACE": "a", "CATEGORY_NOT_WORD": "."}


def _letters(parsed: Any) -> Iterator[str]:
    """Yield a character for each leaf of a parsed pattern."""
    for kind, value in parsed:
        name = str(kind)
        if name == "LITERAL":
            yield chr(value)
        elif name == "NOT_LITERAL":
            yield "a" if value != ord("a") else "b"
        elif name == "ANY":
            yield "a"
        elif name == "IN":
            yield from _members(value)[:4]
        else:
            for part in _parts(value):
                yield from _letters(part)


def _members(value: Sequence[Any]) -> list[str]:
    kinds = [str(kind) for kind, _ in value]
    if "NEGATE" in kinds:
        excluded = re.compile("[" + "".join(_class(one) for one in value) + "]")
        return [one for one in "a. 0,(\n" if excluded.match(one)][:2]
    members = []
    for kind, one in value:
        if str(kind) == "LITERAL":
            members.append(chr(one))
        elif str(kind) == "RANGE":
            members.append(chr(one[0]))
        else:
            members.append({**_CATEGORY, **_NOT}[str(one)])
    return members


def _class(item: Any) -> str:
    kind, value = item
    if str(kind) == "NEGATE":
        return "^"
    if str(kind) == "LITERAL":
        return re.escape(chr(value))
    if str(kind) == "RANGE":
        return f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
    letter = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}[str(value).removeprefix("CATEGORY_").removeprefix("NOT_")]
    return "\\" + (letter.upper() if "NOT" in str(value) else letter)


def _parts(value: Any) -> Iterator[Any]:
    """Yield the parsed patterns inside an operation's value."""
    if hasattr(value, "data"):
        yield value
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _parts(one)


def _example(parsed: Any) -> str:
    """Return a text that the pattern matches, or almost: looks around and references are left out."""
    made = ""
    for kind, value in parsed:
        name = str(kind)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            made += _example(value[2]) * max(1, value[0])
        elif name == "BRANCH":
            made += _example(value[1][0])
        elif name in ("SUBPATTERN", "ATOMIC_GROUP"):
            made += _example(next(_parts(value)))
        elif name in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            made += next(_letters([(kind, value)]), "")
    return made
