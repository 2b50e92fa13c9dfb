"""Statistics of a corpus (CheckWhy's Table 1 and figures 3 to 5): sizes, labels, lengths, and the forms of argument structures.

Its Table 2, kinds of inference, is people's judgement of fifty structures, and can't be counted. Its tokens are of an unnamed
tokenizer; here words are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

from datasets import Dataset, concatenate_datasets

from hfcf import corpora
from hfcf.core import recipe
from hfcf.core.mapping import first_rows
from hfcf.core.splits import regroup
from hfcf.core.task import task_of
from hfcf.pipeline.evaluate import read_source
from hfcf.tasks.structures import TASK as STRUCTURES
from hfcf.tasks.structures.arrows import arrow_parts
from hfcf.tasks.structures.model import CLAIM, Structure
from hfcf.tasks.task_inputs import distractors
from hfcf.training.derived_labels import derive_labels

KINDS = ("serial", "linked", "convergent", "divergent")
"""Kinds of links (sections 2.1 and 2.2): a conclusion from one premise, from several in one step, from several steps.

The last kind is a premise of several conclusions. The paper merges linked and convergent links, as "combined"."""
FORMS = 5
"""The commonest forms that are listed; Figure 5 has as many."""


def read_corpus(source: str, *, changes: Sequence[str] = (), limit: int | None = None) -> Dataset:
    """Read the rows of a corpus: of "NAME=FOLDER" all splits, of "NAME=FOLDER:SPLIT" or a file's path these alone.

    Rows that can't be read are kept, with the reason in `status`.
    """
    name, _, folder = source.partition("=")
    known = name in corpora.names()
    own = recipe.file_keys(changes, corpora.builder_class(name).OPTIONS if known else ())
    if not known or not (folder.startswith("recipes:") or Path(folder).is_dir()):
        return read_source(source, limit, own)[2]
    loaded = corpora.load(name, data_dir=folder, on_error="reject", **own)
    rows = loaded if isinstance(loaded, Dataset) else concatenate_datasets(list(loaded.values()))
    return first_rows(rows, limit)


def describe(rows: Dataset, *, derive: int | None = None) -> dict[str, Any]:
    """Count what a corpus has.

    Args:
        rows: of any task; rows that `status` rejects are counted by their reason, and by nothing else.
        derive: make rows of three labels of trees that only support, with so many distractors, and describe these rows.

    Returns:
        `task`, `rows`, `rejected` (by reason), `groups` (of rows that share a group or a text), `splits` and `labels` (rows of
        each). `words` has by field `texts`, and the `mean`, `median` and `most` words of a text, by white space. `pieces` has by
        field that is a list the same of how many a row has, and `counts`. Rows of argument structures also have `structures`:
        `rows` with a structure, and `counts` of `steps` (one for each conclusion), `depth`, `useful` pieces, `leaves` and
        `distractors`. Each has `mean`, `median` and `most`. `types` are rows by their kinds of links (`KINDS`). `forms` are the
        commonest forms in arrows with their rows. `by_label` has means, and `circles` counts rows whose structure runs in a
        circle.

    >>> from datasets import Features
    >>> row = {**STRUCTURES.empty_row, "id": "1", "claim": "Ice melts.", "label": "SUPPORTS", "group_id": "1", "corpus": "mine",
    ...        "split": "train", "evidence": [{"title": "", "text": "It is hot."}],
    ...        "evidence_info": [{"id": "s1", "useful": True, "leaf": True}],
    ...        "structure": [{"premises": ["s1"], "conclusion": "claim"}]}
    >>> described = describe(Dataset.from_list([row], features=Features(STRUCTURES.features)))
    >>> described["words"]["claim"]["mean"], described["structures"]["types"]
    (2.0, {'serial': 1})
    """
    task = task_of(rows.features)
    statuses = list(rows["status"]) if "status" in rows.features else [None] * len(rows)
    refused = [str(status["reason"]) if status and status["accepted"] is False else None for status in statuses]
    rows = rows.select([i for i, why in enumerate(refused) if why is None])
    if derive is not None:
        rows = derive_labels(rows.select_columns(list(task.features)), distractors=derive)
    words: dict[str, list[int]] = {}
    pieces: dict[str, list[int]] = {}
    for row in rows:
        number = Counter[str]()
        for segment in task.segments(row):
            if segment.field not in ("label", "structure") and segment.text.strip():
                words.setdefault(segment.field, []).append(len(segment.text.split()))
                number[segment.field] += segment.piece >= 0
        for field, n in number.items():
            if n:
                pieces.setdefault(field, []).append(n)
    described = {
        "task": task.name, "rows": len(rows), "rejected": _commonest(why for why in refused if why is not None),
        "groups": len({*regroup(rows)}) if len(rows) else 0, "splits": dict(Counter(rows["split"])),
        "labels": _commonest(rows["label"]) if "label" in rows.features else {},
        "words": {field: {"texts": len(numbers), **_spread(numbers)} for field, numbers in words.items()},
        "pieces": {field: _histogram(numbers) for field, numbers in pieces.items()},
    }  # fmt: skip
    return described if task.name != STRUCTURES.name else {**described, "structures": _structures(rows)}


def kinds_of(structure: Structure) -> Counter[str]:
    """Count the links of a structure by `KINDS`; two conclusions of one premise are one divergent link and no serial links.

    >>> from hfcf.tasks.structures.arrows import parse_arrows
    >>> dict(kinds_of(parse_arrows("E2 → (E1, E3) → E5 E4 → E5 → Claim")))
    {'convergent': 1, 'serial': 1, 'divergent': 1}
    """
    counts, edges = Counter[str](), structure.edges()
    parents = Counter(premise for premise, _ in edges)
    for conclusion in dict.fromkeys(step.conclusion for step in structure.steps):
        steps = [step for step in structure.steps if step.conclusion == conclusion]
        if len(steps) > 1:
            counts["convergent"] += 1
        elif len(steps[0].premises) > 1:
            counts["linked"] += 1
        elif parents[steps[0].premises[0]] == 1:
            counts["serial"] += 1
    counts["divergent"] += sum(number > 1 for number in parents.values())
    return +counts


def form_of(structure: Structure) -> str:
    """Write a structure without its names, equal for structures that differ in names and order alone; it has no circle.

    A premise of several conclusions is written below each of them.
    """
    premises = {step.conclusion: step.premises for step in structure.merged().steps}

    def write(name: str) -> str:
        return f"({''.join(sorted(map(write, premises.get(name, ()))))})"

    return write(CLAIM) + f" {kinds_of(structure)['divergent']}"


def _structures(rows: Dataset) -> dict[str, Any]:
    counted: dict[str, list[int]] = {name: [] for name in ("steps", "depth", "useful", "leaves", "distractors")}
    types, forms, examples = list[str](), Counter[str](), dict[str, str]()
    labels: dict[str, dict[str, list[int]]] = {}
    circles = 0
    for row in rows:
        structure, irrelevant = Structure.from_row(row), distractors(row)
        own = {"pieces": len(row["evidence"] or [])}
        own |= {} if irrelevant is None else {"distractors": len(irrelevant)}
        if structure.steps and structure.circle():
            circles += 1
        elif structure.steps:
            own |= {"steps": len(structure.merged().steps), "depth": structure.depth(), "leaves": len(structure.leaves())}
            own |= {"useful": len({*structure.nodes()} - {CLAIM})}
            types.append(" + ".join(kind for kind in KINDS if kind in kinds_of(structure)))
            forms[form := form_of(structure)] += 1
            examples.setdefault(form, _anonymous(structure))
        for name, number in own.items():
            labels.setdefault(row["label"], {}).setdefault(name, []).append(number)
            if name in counted:
                counted[name].append(number)
    return {
        "rows": len(types) + circles, "circles": circles,
        "counts": {name: _histogram(numbers) for name, numbers in counted.items() if numbers}, "types": _commonest(types),
        "forms": [{"arrows": examples[form], "rows": number} for form, number in forms.most_common(FORMS)],
        "by_label": {
            label: {name: round(fmean(numbers), 2) for name, numbers in own.items()} for label, own in sorted(labels.items())
        },
    }  # fmt: skip


def _anonymous(structure: Structure) -> str:
    names = {name: f"E{i}" for i, name in enumerate((name for name in structure.nodes() if name != CLAIM), 1)}
    return "".join(part for part, _ in arrow_parts(structure.rename(names)))


def _commonest(values: Iterable[str]) -> dict[str, int]:
    return dict(Counter(values).most_common())


def _spread(numbers: Sequence[int]) -> dict[str, float]:
    return {"mean": round(fmean(numbers), 2), "median": float(median(numbers)), "most": max(numbers)}


def _histogram(numbers: Sequence[int]) -> dict[str, Any]:
    return {**_spread(numbers), "counts": {str(number): rows for number, rows in sorted(Counter(numbers).items())}}


def to_page(described: Mapping[str, Any]) -> str:
    """Write statistics as tables of Markdown."""
    total = described["rows"]
    parts = [
        f"{total:,} rows of the task {described['task']}, in {described['groups']:,} groups of rows that share a group or a text.",
        *(f"{rows:,} rows can't be read: {why}" for why, rows in described["rejected"].items()),
        _shares("split", described["splits"], total), _shares("label", described["labels"], total),
        _spreads("words of a text", described["words"]), _spreads("number in a row", described["pieces"]),
    ]  # fmt: skip
    if found := described.get("structures"):
        counts, with_one = found["counts"], found["rows"]
        parts += [
            f"**{with_one:,} rows have an argument structure.** Steps are its conclusions, useful pieces those that it uses.",
            *([f"{found['circles']} of the structures run in a circle, and are counted nowhere else."] if found["circles"] else []),
            _spreads("number in a row", counts),
            *(_shares(name, counts[name]["counts"], with_one) for name in ("useful", "steps") if name in counts),
            _shares("links", found["types"], with_one),
            _shares("commonest forms", {form["arrows"]: form["rows"] for form in found["forms"]}, with_one),
            _means(found["by_label"]),
        ]
    return "\n\n".join(part for part in parts if part)


def _shares(title: str, counts: Mapping[str, int], total: int) -> str:
    lines = [f"| {name} | {rows:,} | {100 * rows / total:.1f} % |" for name, rows in counts.items()]
    return "\n".join([f"| {title} | rows | share |", "|---|---|---|", *lines]) if lines else ""


def _spreads(title: str, spreads: Mapping[str, Mapping[str, Any]]) -> str:
    lines = [f"| {name} | {one['mean']:.2f} | {one['median']:g} | {one['most']} |" for name, one in spreads.items()]
    return "\n".join([f"| {title} | mean | median | most |", "|---|---|---|---|", *lines]) if lines else ""


def _means(by_label: Mapping[str, Mapping[str, float]]) -> str:
    names = list(dict.fromkeys(name for own in by_label.values() for name in own))
    cells = {label: " | ".join(f"{own[name]:.2f}" if name in own else "–" for name in names) for label, own in by_label.items()}
    lines = [f"| {label} | {text} |" for label, text in cells.items()]
    return "\n".join([f"| means by label | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|", *lines]) if lines else ""
