"""Check the legality of an argument structure (CheckWhy, Appendix C), repair common slips, and find what an edit leaves open."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hfcf.tasks.structures.model import CLAIM, Step, Structure


def problems(structure: Structure, useful: Iterable[str] | None = None) -> list[str]:
    """List what makes a structure illegal; the list is empty if it is connected, acyclic and ends in the claim.

    The paper names connectedness and the end in the claim, and leaves the remaining rules to "etc.". Two rules follow from its
    section 2.2 and its linking functions: every useful piece is used, and each step has the right number of names. A conclusion may
    be drawn in several steps (convergent arguments, as in Table 16). The step to the claim may have any place in the text.

    Args:
        structure: any structure.
        useful: names of evidence that must be used; None: this is not checked.

    >>> problems(Structure((Step(("s1",), "s2"),)), ["s1", "s3"])
    ['nothing leads to the claim', 's2 leads to nothing: link it to the claim or to a conclusion', 's3 is useful and not used']
    """
    if not structure.steps:
        return ["there is no step"]
    edges, nodes = structure.edges(), structure.nodes()
    messages = [f"{premise} is a premise of itself" for premise, conclusion in edges if premise == conclusion]
    if CLAIM in {premise for premise, _ in edges}:
        messages.append("the claim is a premise: it is the root, and nothing follows from it")
    if CLAIM not in {conclusion for _, conclusion in edges}:
        messages.append("nothing leads to the claim")
    if circle := structure.circle():
        messages.append(f"the steps run in a circle: {' → '.join(circle)}")
    premises = {premise for premise, _ in edges}
    to_claim = _reachable(((conclusion, premise) for premise, conclusion in edges), [CLAIM])
    for name in nodes:
        if name == CLAIM or name in to_claim:
            continue
        if name not in premises:
            messages.append(f"{name} leads to nothing: link it to the claim or to a conclusion")
        elif CLAIM in nodes:
            messages.append(f"{name} is not connected with the claim")
    if structure.texts:
        messages += [f"{name} has no sentence" for name in nodes if name not in structure.texts and name != CLAIM]
    used = set(nodes)
    return messages + [f"{name} is useful and not used" for name in useful or () if name not in used]


def repair(structure: Structure) -> tuple[Structure, list[str]]:
    """Repair the slips whose meaning is certain, and describe each repair.

    Three slips are repaired: a declared name in different capitals, a premise that is its own conclusion, and a missing link to the
    claim. The link is added if exactly one name leads to nothing. Other faults stay; `problems` lists them.
    """
    repairs: list[str] = []
    known: dict[str, set[str]] = {}
    for name in (*structure.texts, CLAIM):
        known.setdefault(name.casefold(), set()).add(name)
    renamed = {}
    for name in structure.nodes():
        meant = known.get(name.casefold(), set())
        if name not in meant and len(meant) == 1:
            [renamed[name]] = meant
    repairs += [f"read {old} as {new}" for old, new in renamed.items()]
    steps = []
    for premises, conclusion in structure.rename(renamed).steps:
        others = tuple(name for name in premises if name != conclusion)
        if others != premises:
            repairs.append(f"took {conclusion} out of its own premises")
        steps += [Step(others, conclusion)] if others else []
    fixed = replace(structure, steps=tuple(steps))
    leading = {premise for premise, _ in fixed.edges()}
    ends = [name for name in fixed.nodes() if name not in leading]
    if CLAIM not in fixed.nodes() and len(ends) == 1:
        repairs.append(f"linked {ends[0]} to the claim: nothing else led to it")
        fixed = replace(fixed, steps=(*fixed.steps, Step((ends[0],), CLAIM)))
    return fixed, repairs


def stale(structure: Structure, edited: Iterable[str]) -> list[str]:
    """List the conclusions that depend directly or indirectly on an edited name, in the structure's order.

    An edited conclusion is in the list if it depends on another edited name, because whether it follows is still open.
    """
    open_names = _reachable(structure.edges(), edited)
    return [name for name in structure.nodes() if name in open_names]


def _reachable(edges: Iterable[tuple[str, str]], starts: Iterable[str]) -> set[str]:
    """Return the names at the end of a chain of edges from the starts."""
    following: dict[str, list[str]] = {}
    for start, end in edges:
        following.setdefault(start, []).append(end)
    reached, open_names = set[str](), list(starts)
    while open_names:
        for name in following.get(open_names.pop(), ()):
            if name not in reached:
                reached.add(name)
                open_names.append(name)
    return reached
