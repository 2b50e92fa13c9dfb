"""`hfcf.counterfactuals`: counterfactuals of one claim, sentence or question that is given as plain strings.

It is not a system itself: it chooses a system by the task.
"""

from __future__ import annotations

import sys
from typing import Any

from datasets import Dataset

from hfcf.core.expand import expand, rejected
from hfcf.core.system import System
from hfcf.corpora.custom.columns import LayoutError
from hfcf.corpora.custom.export import to_dataset
from hfcf.corpora.custom.load import from_dataset, read_one
from hfcf.corpora.formats.answers import places
from hfcf.corpora.formats.tokens import TAG, untagged
from hfcf.systems import system_class
from hfcf.tasks.verification import LABELS, REFUTES

_FIELDS = {
    "verification": ("claim", "evidence", "label"),
    "relation": ("sentence", "head", "tail", "relation"),
    "qa": ("question", "context", "answer"),
}
_OPTIONAL = ("head", "tail")  # which may be tags in the sentence


def counterfactuals(
    *,
    claim: str | None = None,
    evidence: Any = None,
    label: Any = None,
    sentence: str | None = None,
    head: str | None = None,
    tail: str | None = None,
    relation: str | None = None,
    question: str | None = None,
    context: str | None = None,
    answer: str | None = None,
    system: System | str | None = None,
    preset: str = "offline",
    among: Any = None,
) -> list[dict[str, Any]]:
    """Make counterfactuals of one claim, one sentence with a relation, or one question.

    Which systems need more than one row:

    - CrossAug, the default for a supported claim, and the `llm` system need only one row.
    - RACE is the default for a refuted claim. It draws the values for edited evidence from all rows, `among`, or common values
      without them.
    - CCG, the default of sentences, and MICE, AutoCAD and CoCo learn from all rows: they need `among`.
    - A question needs a `system` with a collection of passages: RGF.

    Args:
        claim: the claim's text.
        evidence: one or several pieces, in any form that `hfcf.from_dataset` reads.
        label: the claim's label, by any name of it.
        sentence: the sentence's text. It may mark the entities by `<e1>…</e1>` and `<e2>…</e2>`.
        head: the words of the first entity, if the sentence does not mark them.
        tail: the words of the second entity, if the sentence does not mark them.
        relation: the relation of the entities.
        question: the question's text.
        context: the passage that has the answer.
        answer: the answer, as the passage has it.
        system: a system, or its name, which is then made with `preset`.
        preset: of a system that is named: "hub", "llm", "paper" or "offline", small models from the package registry; not every
            system has all four.
        among: other rows of yours, from which the system learns; as `hfcf.from_dataset` reads or makes them.

    Returns:
        A dict for each counterfactual: the given arguments, as the counterfactual has them, and `change`. Without counterfactuals,
        stderr gets a line with the reasons.

    Raises:
        ValueError: arguments of several tasks, or too few. A word that does not occur exactly once in the sentence. A system
            that needs more than one row.

    >>> counterfactuals(claim="Rome is in Italy.", evidence="Rome is the capital of Italy.")
    Traceback (most recent call last):
    ValueError: label= is missing: give claim=, evidence=, label=
    """
    arguments = {
        "claim": claim, "evidence": evidence, "label": label, "sentence": sentence, "head": head, "tail": tail,
        "relation": relation, "question": question, "context": context, "answer": answer,
    }  # fmt: skip
    arguments = {name: value for name, value in arguments.items() if value is not None}
    task = _find_task(set(arguments))
    source = [_tag_entities(arguments) if task == "relation" else arguments]
    try:
        row = read_one(source, task)
    except LayoutError as error:
        if task != "verification":
            raise
        names = f"{', '.join(LABELS)}, or a usual name of one, such as 'true' or 'entailment'"
        raise ValueError(f"label must be {names}, got {label!r}") from error
    system = _choose_system(task, row, system, preset)
    if among is not None:
        system = system.fit(from_dataset(among, task, on_error="reject"))
    elif system.trainings():
        raise ValueError(
            f"{system.name} learns from a whole set and can't work on one row alone: give among=, rows of the same kind, "
            'or system="llm", preset="paper"'
        )
    ds = system(row)
    new = expand(ds)
    if not len(new):
        reasons = dict.fromkeys(row["reason"] for row in rejected(ds, system=system.name) if row["level"] == "row")
        more = "" if among is not None else "; other rows, among=, may help" if system.before_fit else ""
        print(f"hfcf.counterfactuals: {system.name} made none: {'; '.join(reasons)}{more}", file=sys.stderr)
    rows = to_dataset(new, like=source)
    if task == "relation" and "head" in arguments:
        rows = [_untag_entities(row) for row in rows]
    return [{**row, "change": change} for row, change in zip(rows, new["change"], strict=True)]


def _find_task(names: set[str]) -> str:
    tasks = [task for task, fields in _FIELDS.items() if names & set(fields)]
    if len(tasks) != 1:
        forms = " or ".join(", ".join(f"{name}=" for name in fields) for fields in _FIELDS.values())
        raise ValueError(f"give the arguments of one kind of row: {forms}")
    optional = _OPTIONAL if len(names & set(_OPTIONAL)) != 1 else ()
    if missing := [name for name in _FIELDS[tasks[0]] if name not in names and name not in optional]:
        raise ValueError(f"{missing[0]}= is missing: give {', '.join(f'{name}=' for name in _FIELDS[tasks[0]])}")
    return tasks[0]


def _choose_system(task: str, row: Dataset, system: System | str | None, preset: str) -> System:
    if isinstance(system, System):
        return system
    if system is None:
        if task == "qa":
            raise ValueError("a question needs a system with a collection of passages: system=hfcf.RGF.preset(…, passages=FILE)")
        system = "ccg" if task == "relation" else "race" if row[0]["label"] == REFUTES else "crossaug"
    # No indicator learns from this row, so all other rows may teach the same indicator.
    alone = {"folds": 1} if system == "ccg" else {}
    return system_class(system).preset(preset, **alone)


def _tag_entities(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the sentence with tags around the words of head and tail; it must have each of them once."""
    text, spans = arguments["sentence"], []
    if "head" not in arguments:
        return {"sentence": text, "relation": arguments["relation"]}
    if TAG.search(text):
        raise ValueError("the sentence has tags of entities: leave head= and tail= out")
    for name, sign in (("head", "e1"), ("tail", "e2")):
        at = places(text, arguments[name])
        if len(at) != 1:
            mark = f"<{sign}>{arguments[name]}</{sign}>"
            raise ValueError(
                f"{name}={arguments[name]!r} must be in the sentence once, got {len(at)} times: mark both entities, as in {mark}"
            )
        spans.append((at[0], at[0] + len(arguments[name]), sign))
    (_, first_end, _), (second_start, _, _) = sorted(spans)
    if second_start < first_end:
        raise ValueError(
            f"head={arguments['head']!r} and tail={arguments['tail']!r} share words: give entities that do not overlap"
        )
    for start, end, sign in sorted(spans, reverse=True):
        text = f"{text[:start]}<{sign}>{text[start:end]}</{sign}>{text[end:]}"
    return {"sentence": text, "relation": arguments["relation"]}


def _untag_entities(row: dict[str, Any]) -> dict[str, Any]:
    text, head, tail = untagged(row["sentence"])
    return {"sentence": text, "head": text[slice(*head)], "tail": text[slice(*tail)], "relation": row["relation"]}
