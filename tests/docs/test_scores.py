"""Every name of a score that a system writes is in the table of the columns page."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

from parts.meanings import SCORES

import hfcf

PACKAGE = Path(hfcf.__file__).parent
FILES = [*sorted((PACKAGE / "systems").rglob("*.py")), PACKAGE / "tasks" / "ensemble.py"]


def names(path: Path) -> Iterator[str]:
    """The names of scores in a module: of `scored(NAME, …)`, of {"name": NAME, "value": …}, and of constants that name some."""
    module = import_module("hfcf." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts))
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "scored":
            yield from text(node.args[0], module)
        elif isinstance(node, ast.Dict):
            keys = {key.value: value for key, value in zip(node.keys, node.values, strict=True) if isinstance(key, ast.Constant)}
            if set(keys) == {"name", "value"}:
                yield from text(keys["name"], module)


def text(node: ast.expr, module: ModuleType) -> Iterator[str]:
    if isinstance(node, ast.Constant):
        yield str(node.value)
    elif isinstance(node, ast.Name) and isinstance(known := getattr(module, node.id, None), str):
        yield known
    elif isinstance(node, ast.JoinedStr):
        first = node.values[0]
        if isinstance(first, ast.Constant):
            yield str(first.value)
        elif isinstance(first, ast.FormattedValue) and isinstance(first.value, ast.Name):
            yield from text(first.value, module)


def test_the_table_has_every_score_that_a_system_writes() -> None:
    listed = [name for cell, *_ in SCORES for name in re.findall(r"`([^`]+)`", cell)]
    known = {re.split(r"[A-Z]{2,}| N:", name)[0].strip() for name in listed}
    from hfcf.systems.race import filter_claim
    from hfcf.systems.rgf import answer_candidates as rgf

    written = {name for path in FILES for name in names(path)}
    written |= {filter_claim.SEMANTIC, filter_claim.ENTITY, filter_claim.PERPLEXITY, filter_claim.COPIED, filter_claim.KEPT}
    written |= {rgf.RANK, rgf.RETRIEVAL, rgf.READER, rgf.ANSWER, rgf.QUESTION, rgf.AGREE, rgf.DISTANCE}
    assert len(written) > 15
    missing = {name for name in written if not any(name.startswith(one.rstrip(":")) for one in known)}
    assert not missing
