"""The floors of the house: a module imports from its own floor and those below it, and no imports run in a circle.

Imports inside functions and under TYPE_CHECKING count as well; a public name of `hfcf/__init__.py` counts as its module.
"""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path

import hfcf

PACKAGE = Path(hfcf.__file__).parent
FLOORS = (
    "text", "core", "engines", "tasks", "corpora", "prompts", "metrics", "training", "systems", "hub", "report", "pipeline",
    "studies", "app", "cli",
)  # fmt: skip
MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}


def imports(module: str) -> Iterator[str]:
    """The modules of the package that a module imports, wherever the statement stands."""
    package = module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            above = package.rsplit(".", node.level - 1)[0] if node.level else ""
            source = ".".join(filter(None, (above, node.module)))
            for alias in node.names:
                name = f"{source}.{alias.name}"
                public = hfcf._public().get(alias.name, source) if source == "hfcf" else source
                if (target := name if name in MODULES else public) in MODULES:
                    yield target


def floor(module: str) -> int:
    path = MODULES[module].relative_to(PACKAGE)
    room = path.parts[0] if len(path.parts) > 1 else "cli"  # what `hfcf` itself holds is for the command line and for users
    assert room in FLOORS, f"{module}: `{room}` is no floor; add it to FLOORS in its place"
    return FLOORS.index(room)


ARROWS = {module: {*imports(module)} - {module} for module in MODULES if module != "hfcf"}


def test_no_module_imports_from_a_higher_floor() -> None:
    up = {f"{module} -> {target}" for module, targets in ARROWS.items() for target in targets if floor(target) > floor(module)}
    assert up == set()


def test_no_imports_run_in_a_circle() -> None:
    try:
        graphlib.TopologicalSorter(ARROWS).prepare()
    except graphlib.CycleError as error:
        raise AssertionError(" -> ".join(reversed(error.args[1]))) from None


def test_the_imports_are_read() -> None:
    assert "hfcf.core.schema" in ARROWS["hfcf.corpora.base.builder"]
    assert sum(map(len, ARROWS.values())) > 500
