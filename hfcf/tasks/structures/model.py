"""An argument structure: steps from premises to a conclusion, with the claim as the root (CheckWhy, section 2.2).

`problems` checks its legality (Appendix C), `repair` mends common slips, and `stale` finds what an edit leaves open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

CLAIM = "claim"
"""The name of the root in every structure, whatever a notation calls it."""


class StructureError(ValueError):
    """A text is not an argument structure; the message has the position and the cure.

    Args:
        message: what is wrong and what to write instead.
        line: the line of the text, from 1.
        column: the character in the line, from 1.

    >>> str(StructureError("a name is missing", 2, 5))
    'line 2, column 5: a name is missing'
    """

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(f"line {line}, column {column}: {message}")
        self.message, self.line, self.column = message, line, column

    @classmethod
    def at(cls, message: str, text: str, offset: int) -> StructureError:
        """Make the error for an offset into a text."""
        before = text[:offset]
        return cls(message, before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors travel between processes, and `args` holds the whole message alone.
        return type(self), (self.message, self.line, self.column)


class Step(NamedTuple):
    """One reasoning step: a conclusion and the names of its premises."""

    premises: tuple[str, ...]
    conclusion: str


@dataclass(frozen=True, eq=False)
class Structure:
    """The argument structure of a claim.

    A serial link is a step with one premise, and a combined link is a step with several. A divergent link is several steps with the
    same single premise. Duplicate steps, and duplicate premises in a step, are removed; the order is the order in which they were
    written. Two structures are equal if they have the same steps, whatever their order, sentences and labels.

    Args:
        steps: the steps by name; the root is `CLAIM`.
        texts: the sentence of each declared name: evidence, used or not, and the claim.
        label: the label in the notation; None if there is none.

    Raises:
        ValueError: a step has no premise.

    >>> structure = Structure((Step(("s1", "s2"), "s3"), Step(("s3",), "claim")))
    >>> structure.leaves(), structure.intermediates(), structure.depth()
    (['s1', 's2'], ['s3'], 2)
    >>> structure == Structure((Step(("s3",), "claim"), Step(("s2", "s1"), "s3")))
    True
    """

    steps: tuple[Step, ...]
    texts: Mapping[str, str] = field(default_factory=dict)
    label: str | None = None

    def __post_init__(self) -> None:
        steps: dict[tuple[frozenset[str], str], Step] = {}
        for premises, conclusion in self.steps:
            if not premises:
                raise ValueError(f"the step to {conclusion} has no premise: give it one, or leave it out")
            steps.setdefault((frozenset(premises), conclusion), Step(tuple(dict.fromkeys(premises)), conclusion))
        object.__setattr__(self, "steps", tuple(steps.values()))

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Structure) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> frozenset[tuple[frozenset[str], str]]:
        return frozenset((frozenset(step.premises), step.conclusion) for step in self.steps)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Structure:
        """Read the columns `claim`, `evidence`, `evidence_info`, `structure` and `label` of a row."""
        pieces, infos = row.get("evidence") or [], row.get("evidence_info") or []
        if len(pieces) != len(infos):
            raise ValueError(
                f"there are {len(pieces)} pieces of evidence and {len(infos)} entries in evidence_info: they go together"
            )
        texts = {info["id"]: piece["text"] for info, piece in zip(infos, pieces, strict=True) if info and piece}
        return replace(cls.from_columns(row["structure"]), texts={**texts, CLAIM: row["claim"]}, label=row.get("label"))

    @classmethod
    def from_columns(cls, steps: Iterable[Mapping[str, Any]] | None) -> Structure:
        """Read the column `structure` alone: a structure without sentences."""
        read = []
        for i, step in enumerate(steps or ()):
            if not step or step["conclusion"] is None or step["premises"] is None or None in step["premises"]:
                raise ValueError(f"step {i} of the structure has a null: give it premises and a conclusion")
            read.append(Step(tuple(step["premises"]), step["conclusion"]))
        return cls(tuple(read))

    def to_columns(self) -> list[dict[str, Any]]:
        """Write the column `structure`."""
        return [{"premises": list(step.premises), "conclusion": step.conclusion} for step in self.steps]

    def edges(self) -> list[tuple[str, str]]:
        """List the (premise, conclusion) pairs: a combined link of n premises counts as n edges."""
        return list(dict.fromkeys((premise, step.conclusion) for step in self.steps for premise in step.premises))

    def nodes(self) -> list[str]:
        """List the names in steps, in the order of their first use."""
        return list(dict.fromkeys(name for step in self.steps for name in (*step.premises, step.conclusion)))

    def leaves(self) -> list[str]:
        """List the premises that no step concludes."""
        concluded = {step.conclusion for step in self.steps}
        return [name for name in self.nodes() if name not in concluded]

    def intermediates(self) -> list[str]:
        """List the conclusions other than the claim."""
        return [name for name in dict.fromkeys(step.conclusion for step in self.steps) if name != CLAIM]

    def merged(self) -> Structure:
        """Return the structure with one step for each conclusion, from all its premises.

        CheckWhy does not distinguish convergent premises from linked premises (section 2.2), and counts a conclusion as one step
        (Appendix B): `E1 → E3, E2 → E3` is `(E1, E2) → E3`.
        """
        premises: dict[str, list[str]] = {}
        for step in self.steps:
            premises.setdefault(step.conclusion, []).extend(step.premises)
        return replace(self, steps=tuple(Step(tuple(names), conclusion) for conclusion, names in premises.items()))

    def parents(self, name: str) -> list[str]:
        """List the conclusions that are drawn from a name."""
        return [conclusion for premise, conclusion in self.edges() if premise == name]

    def circle(self) -> list[str]:
        """Return the names of a circle of several steps, with its first name again at the end; [] if there is none."""
        try:
            TopologicalSorter(self._premises()).prepare()
        except CycleError as error:
            names = error.args[1][1:]
            start = names.index(next(name for name in self.nodes() if name in names))
            return [*names[start:], *names[:start], names[start]]
        return []

    def depth(self) -> int:
        """Count the steps of the longest chain."""
        if circle := self.circle():
            raise ValueError(f"the steps run in a circle: {' → '.join(circle)}")
        premises, depths = self._premises(), dict[str, int]()
        for name in TopologicalSorter(premises).static_order():
            depths[name] = 1 + max((depths[premise] for premise in premises.get(name, ())), default=-1)
        return max(depths.values(), default=0)

    def _premises(self) -> dict[str, list[str]]:
        """List the premises of each conclusion, without the conclusion itself."""
        premises: dict[str, list[str]] = {}
        for premise, conclusion in self.edges():
            if premise != conclusion:
                premises.setdefault(conclusion, []).append(premise)
        return premises

    def rename(self, names: Mapping[str, str]) -> Structure:
        """Return the structure with new names; names that are not given stay."""
        steps = (Step(tuple(names.get(name, name) for name in step.premises), names.get(step.conclusion, step.conclusion))
                 for step in self.steps)  # fmt: skip
        return replace(self, steps=tuple(steps), texts={names.get(name, name): text for name, text in self.texts.items()})


def links(steps: Iterable[Step]) -> list[tuple[list[str], list[str]]]:
    """Group steps as notations write them: (premises, conclusions), where one premise may have several conclusions."""
    grouped: dict[object, tuple[list[str], list[str]]] = {}
    for i, (premises, conclusion) in enumerate(steps):
        key: object = premises[0] if len(premises) == 1 else i
        grouped.setdefault(key, (list(premises), []))[1].append(conclusion)
    return list(grouped.values())


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

    Two slips are repaired: a premise that is its own conclusion, and a missing link to the claim. The link is added if exactly one
    name leads to nothing. Other faults stay; `problems` lists them.
    """
    repairs, steps = list[str](), list[Step]()
    for premises, conclusion in structure.steps:
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
