"""What the pages name exists: links, files, names of the library and their arguments, commands, targets of make."""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

from pages import PAGES, ROOT, anchors, blocks, code, commands, each_page, prose, shell, text_of
from typer.main import get_command

from hfcf.cli import app
from hfcf.core import recipe

FOLDERS = ("hfcf", "docs", "tests", "recipes", "benchmarks", "dataset_scripts", "results", "offline")


@each_page
def test_every_link_has_its_target(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"\w+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = page if not path else (page.parent / path).resolve()
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


@each_page
def test_every_python_block_runs_or_says_why_not(page: Path) -> None:
    before = re.findall(r"(.*)\n```python\n", f"\n{text_of(page)}")
    unmarked = [line for line in before if not re.fullmatch(r"<!-- (runs|file: \S+|not run: \S.*) -->", line)]
    assert not unmarked, "write <!-- runs -->, <!-- file: NAME --> or <!-- not run: REASON --> before the block"


@each_page
def test_lists_are_lists_on_the_site(page: Path) -> None:
    """Python-Markdown, unlike code hosts, needs an empty line before a list and four spaces before a list in a list."""
    for paragraph in re.split(r"\n\s*\n", re.sub(r"<!--.*?-->", "", prose(page), flags=re.DOTALL)):
        items = re.findall(r"^ *(?:[-*+]|\d+\.) .*", paragraph, re.MULTILINE)
        assert not items or paragraph.lstrip("\n").startswith(items[0]), f"an empty line is missing before: {items[0]}"
        assert not (indented := re.findall(r"^ {1,3}(?:[-*+]|\d+\.) .*", paragraph, re.MULTILINE)), f"needs four spaces: {indented}"


@each_page
def test_files_and_adapters_that_are_named_exist(page: Path) -> None:
    for one in code(prose(page)):
        path = one.split()[0].split(":")[0]
        # What lies in results/ may still have to be made.
        if path.partition("/")[0] in FOLDERS and "/" in path and not re.search(r"[<>*{}…]|^results/", path):
            assert (ROOT / path).exists(), one
        if found := re.fullmatch(r"hfcf:(\w+)", one):
            assert (ROOT / "hfcf" / "adapters" / found[1]).is_dir(), one


@each_page
def test_names_of_the_library_in_the_text_exist(page: Path) -> None:
    for one in code(prose(page)):
        if found := re.match(r"hfcf(\.\w+)+", one):
            resolve(found[0])


@each_page
def test_python_compiles_and_its_names_and_arguments_exist(page: Path) -> None:
    for block in blocks(page):
        if block.language != "python":
            continue
        tree = ast.parse(block.text.replace("…", "..."))
        known = imported(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and (name := dotted(node, known)):
                resolve(name)
            if isinstance(node, ast.Call) and (name := dotted(node.func, known)):
                takes = inspect.signature(resolve(name)).parameters
                if not any(one.kind is one.VAR_KEYWORD for one in takes.values()):
                    assert {one.arg for one in node.keywords if one.arg} <= {*takes}, ast.unparse(node)


@each_page
def test_commands_are_understood(page: Path) -> None:
    # A user's own recipe is one that `hfcf new` writes on some page.
    own = {block.file for block in blocks(page)} | {words[2] for one in PAGES for words in commands(one) if words[0] == "new"}
    for words in commands(page):
        if words == ["--version"]:
            continue
        command, rest = get_command(app), list(words)
        while hasattr(command, "commands"):
            name = rest.pop(0) if set(rest[:1]) & set(command.commands) else getattr(command, "default", None)
            assert name, words
            command = command.commands[name]
        context = command.make_context(command.name, rest)
        if name := context.params.get("recipe"):
            assert name in own or (ROOT / name).is_file() or name in recipe.names(), words


@each_page
def test_make_knows_its_targets(page: Path) -> None:
    made = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    named = "\n".join([shell(page), *code(prose(page))])
    assert set(re.findall(r"^make ([a-z]+)", named, re.MULTILINE)) <= set(made)


def resolve(name: str) -> Any:
    """What a dotted name stands for."""
    first, *rest = name.split(".")
    found, at = import_module(first), first
    for part in rest:
        at += f".{part}"
        found = getattr(found, part) if hasattr(found, part) else import_module(at)
    return found


def imported(tree: ast.Module) -> dict[str, str]:
    """The names that a block imports of the library, and what they stand for; each is there."""
    found = {"hfcf": "hfcf"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "hfcf":
            found |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    for name in found.values():
        resolve(name)
    return found


def dotted(node: ast.expr, known: dict[str, str]) -> str | None:
    """The full name of an expression that begins with one of the known names."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Attribute) and (before := dotted(node.value, known)):
        return f"{before}.{node.attr}"
    return None
