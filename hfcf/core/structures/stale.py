"""Which conclusions of a structure are open after an edit of its premises."""

from __future__ import annotations

from collections.abc import Iterable

from hfcf.core.structures.model import Structure


def stale(structure: Structure, edited: Iterable[str]) -> list[str]:
    """List the conclusions that hang on an edited name, directly or through others, in the structure's order.

    An edited conclusion is one of them if it hangs on another edited name: whether it follows is open all the same.
    """
    parents: dict[str, list[str]] = {}
    for premise, conclusion in structure.edges():
        parents.setdefault(premise, []).append(conclusion)
    hanging, open_names = set[str](), list(edited)
    while open_names:
        for conclusion in parents.get(open_names.pop(), ()):
            if conclusion not in hanging:
                hanging.add(conclusion)
                open_names.append(conclusion)
    return [name for name in structure.nodes() if name in hanging]
