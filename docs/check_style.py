"""Check the English of the pages, docstrings and messages: `python docs/check_style.py [--counts] [--accept] [FILE …]`.

The rules are those of Vale in `docs/style/hfcf/`; `vale docs hfcf` applies them as well. Code, generated parts, quotes in double
quotation marks, examples and what is between `<!-- vale off -->` and `<!-- vale on -->` are left out. `docs/style/allowed.json` has
the findings that a file may still have; their number can only fall, and a file that is not named there has none.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent
RULES = ROOT / "docs" / "style" / "hfcf"
ALLOWED = ROOT / "docs" / "style" / "allowed.json"
PAGES, RESULTS = "docs", "docs/results"
"""The keys in `ALLOWED` for the pages of the guide, and for those of results, which are generated for the most part."""
PAIRS = ("rated_pairs",)
"""Pages that quote rows of corpora."""
SPEAKING = {
    *("print", "print_exception", "echo", "say", "_say", "warn", "warning", "info", "error", "debug", "exception", "critical"),
    *("Option", "Argument", "Typer", "Reject", "NeedsWeights", "rule", "abort", "fail"),
}
"""Functions whose strings a person reads."""

_ABBREVIATIONS = r"(?<!\bal)(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\bFig)(?<!\bcf)(?<!\bSt)(?<!\b[A-Z])(?<!\bno)"
_SENTENCE = re.compile(rf"{_ABBREVIATIONS}[.!?][)\]]?\s+(?=[\"'(\[`*]*[A-Z0-9])")
_HIDDEN = re.compile(
    r"<!-- vale off -->.*?(?:<!-- vale on -->|\Z)|<!-- generated: \w+ -->.*?<!-- end -->|^ *(```+|~~~+).*?^ *\1 *$|<!--.*?-->",
    re.DOTALL | re.MULTILINE,
)
_QUOTED = re.compile(r"\"[^\"\n]*\"|“[^”]*”")
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)


@dataclass(frozen=True)
class Rule:
    """A rule of Vale: what it finds, in which part of a text, and what it says."""

    name: str
    found: re.Pattern[str]
    message: str
    by_sentence: bool
    most: int | None = None
    """How often the pattern may occur; None if never."""
    swaps: tuple[tuple[re.Pattern[str], str], ...] = ()

    def apply(self, text: str) -> Iterator[str]:
        """Iterate over the messages about a paragraph."""
        for part in sentences(text) if self.by_sentence else [text]:
            hits = [*self.found.finditer(part)]
            if self.most is not None:
                if len(hits) > self.most:
                    yield f"{self.message} {part[:80]} … ({len(hits)} words)"
                continue
            for hit in hits:
                swap = [to for pattern, to in self.swaps if pattern.match(part, hit.start())][:1]
                context = part[max(0, hit.start() - 40) : hit.end() + 20]
                yield f"{self.message % (*swap, hit[0])} … {context} …"


def read_rule(path: Path) -> Rule:
    """Read a rule of the kinds existence, substitution and occurrence."""
    rule: Mapping[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    flags = re.IGNORECASE if rule.get("ignorecase") else 0
    tokens = [rule["token"]] if rule["extends"] == "occurrence" else [*rule.get("tokens", ()), *rule.get("swap", ())]
    edge = "" if rule.get("nonword") or rule["extends"] == "occurrence" else r"\b"
    found = re.compile(edge + "(?:" + "|".join(tokens) + ")" + edge, flags)
    swaps = tuple((re.compile(token, flags), to) for token, to in rule.get("swap", {}).items())
    return Rule(path.stem, found, rule["message"], rule.get("scope") == "sentence", rule.get("max"), swaps)


def read_rules() -> list[Rule]:
    """Read all rules."""
    return [read_rule(path) for path in sorted(RULES.glob("*.yml"))]


def sentences(text: str) -> list[str]:
    """Divide a paragraph into sentences."""
    return [sentence for part in _SENTENCE.split(text) if (sentence := part.strip(" *_()"))]


# --- what is read


def plain(markdown: str) -> str:
    """Return Markdown of one paragraph as text: code and quotes become a word each, links their text."""
    text = _CODE.sub("Xx", markdown)
    text = re.sub(r"!?\[([^][]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"<[^<>\n]+>", "", text)
    return " ".join(_QUOTED.sub("Xx", text).replace("**", "").split())


def of_page(page: str) -> Iterator[tuple[int, str]]:
    """Iterate over the paragraphs, headings, list items and table cells of a page, each with its line."""
    shown = _HIDDEN.sub(lambda hidden: "\n" * hidden[0].count("\n"), page)
    yield from paragraphs(shown)


def paragraphs(markdown: str, first: int = 1) -> Iterator[tuple[int, str]]:
    lines: list[str] = []
    start = first
    for number, line in enumerate([*markdown.split("\n"), ""], first):
        bare = re.sub(r"^[ >]*", "", line)
        begins = re.match(r"([-*+]|\d+\.|#+) |\||$", bare)
        if begins and lines:
            yield start, plain(" ".join(lines))
            lines = []
        if bare.startswith("|"):
            yield from (
                (number, plain(part)) for cell in bare.strip("| ").split("|") for part in cell.split("; ") if re.search(r"\w", part)
            )
        elif bare:
            start = start if lines else number
            lines.append(re.sub(r"^([-*+]|\d+\.|#+) ", "", bare))


def of_code(source: str) -> Iterator[tuple[int, str]]:
    """Iterate over the paragraphs of docstrings, and over the texts of errors, prints and options."""
    tree = ast.parse(source)
    told: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body
        elif isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and name_of(node.func) in SPEAKING):
            yield from messages(node, told)
            continue
        else:
            continue
        for statement in body:  # docstrings, and the strings below attributes
            if (
                isinstance(statement, ast.Expr)
                and isinstance(statement.value, ast.Constant)
                and isinstance(statement.value.value, str)
            ):
                yield from of_docstring(statement.value.value, statement.lineno)


def of_docstring(text: str, first: int) -> Iterator[tuple[int, str]]:
    """Iterate over the paragraphs and entries of a docstring, without its examples."""
    text = re.sub(r"^( *)>>> .*(?:\n(?!\s*$).*)*", lambda doctest: "\n" * doctest[0].count("\n"), text, flags=re.MULTILINE)
    # An entry of Args, Returns or Raises is a paragraph; so is the line of the heading.
    text = re.sub(r"^( +)(\*{0,2}\w+): (?=\S)", r"\1- ", text, flags=re.MULTILINE)
    text = re.sub(r"^( *)(Args|Returns|Raises|Yields):$", "", text, flags=re.MULTILINE)
    yield from paragraphs(text, first)


def messages(node: ast.AST, told: set[int]) -> Iterator[tuple[int, str]]:
    """Iterate over the texts below a node that no other node has told."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant | ast.JoinedStr) and id(part) not in told:
            told.update(map(id, ast.walk(part)))
            values = part.values if isinstance(part, ast.JoinedStr) else [part]
            text = "".join(str(value.value) if isinstance(value, ast.Constant) else "Xx" for value in values)
            if isinstance(getattr(part, "value", ""), str) and " " in text:
                yield from paragraphs(text, part.lineno)


def name_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


# --- findings


def files() -> list[Path]:
    """List the pages and the files of the library."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "offline" / "README.md", *(ROOT / "docs").rglob("*.md")]
    return sorted([*pages, *(ROOT / "hfcf").rglob("*.py")])


def findings(path: Path, rules: Sequence[Rule]) -> list[tuple[int, str, str]]:
    """Return the line, the rule and the message of each finding in a file."""
    text = path.read_text(encoding="utf-8")
    parts = of_code(text) if path.suffix == ".py" else of_page(text)
    return sorted((line, rule.name, message) for line, part in parts for rule in rules for message in rule.apply(part))


def key(path: Path) -> str:
    """Return the name of a file in `ALLOWED`."""
    name = path.relative_to(ROOT).as_posix()
    return name if path.suffix == ".py" else RESULTS if name.startswith(RESULTS) else PAGES


def read_allowed() -> dict[str, int]:
    """Read how many findings each file may have; pages together may have those of `PAGES`."""
    folders: dict[str, dict[str, int]] = json.loads(ALLOWED.read_text(encoding="utf-8"))
    return {f"{folder}/{name}".strip("/"): most for folder, names in folders.items() for name, most in names.items()}


def write_allowed(allowed: Mapping[str, int]) -> None:
    """Write how many findings each file may have, a folder a line."""
    folders: dict[str, dict[str, int]] = {}
    for path, most in sorted(allowed.items()):
        if most:
            folder, _, name = path.rpartition("/")
            folders.setdefault(folder, {})[name] = most
    lines = [f"{json.dumps(folder)}: {json.dumps(names, separators=(',', ':'))}" for folder, names in folders.items()]
    ALLOWED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Print the findings of files that have more than they may; `--counts` prints numbers, `--accept` lowers what is allowed."""
    rules = read_rules()
    named = [Path(argument).resolve() for argument in arguments if not argument.startswith("--")]
    found = {path: findings(path, rules) for path in named or files()}
    counts = Counter(dict.fromkeys(map(key, found), 0))
    for path, of_file in found.items():
        counts[key(path)] += len(of_file)
    if "--counts" in arguments:
        print_counts(found)
        return 0
    allowed = read_allowed() if ALLOWED.is_file() else counts
    if "--accept" in arguments:
        write_allowed({name: min(count, allowed.get(name, 0)) for name, count in counts.items()})
    over = {name for name, count in counts.items() if count > allowed.get(name, 0)}
    for path, of_file in found.items():
        for line, rule, message in of_file if named or key(path) in over else ():
            print(f"{path.relative_to(ROOT)}:{line}: {rule}: {message}")
    for name in sorted(over):
        print(f"{name}: {counts[name]} findings, {allowed.get(name, 0)} allowed")
    return int(bool(over))


def print_counts(found: Mapping[Path, Iterable[tuple[int, str, str]]]) -> None:
    """Print how often each rule finds something in pages and in code."""
    counts = Counter((rule, path.suffix) for path, of_file in found.items() for _, rule, _ in of_file)
    for rule in sorted({name for name, _ in counts}):
        print(f"{rule:10} pages {counts[rule, '.md']:5}   code {counts[rule, '.py']:5}")
    pages, code = (sum(count for (_, suffix), count in counts.items() if suffix == kind) for kind in (".md", ".py"))
    print(f"{'all':10} pages {pages:5}   code {code:5}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
