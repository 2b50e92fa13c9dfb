"""Describe a corpus as CheckWhy's Table 1 does (Si et al. 2024, section 4.1): rows, pieces, distractors, words, steps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from datasets import Dataset, concatenate_datasets

from hfcf import corpora
from hfcf.core import recipe
from hfcf.core.mapping import first_rows
from hfcf.core.task import task_of
from hfcf.corpora.custom.source import FILE_OPTIONS
from hfcf.pipeline.evaluate import place_and_split, read_source
from hfcf.tasks.structures import TASK as STRUCTURES
from hfcf.tasks.structures.model import Structure
from hfcf.tasks.task_inputs import distractors


def read_corpus(source: str, *, changes: Iterable[str] = (), limit: int | None = None) -> Dataset:
    """Read the rows of a corpus: of "NAME=FOLDER" all splits, of "NAME=FOLDER:SPLIT" or a file's path these alone.

    Rows that can't be read are kept, with the reason in `status`.
    """
    name, _, folder = source.partition("=")
    known = name in corpora.names()
    options = recipe.file_keys(list(changes), corpora.builder_class(name).OPTIONS if known else FILE_OPTIONS)
    shipped = folder.startswith("recipes:") and place_and_split(folder)[1] is None
    if not known or not (shipped or Path(folder).is_dir()):
        return read_source(source, limit, options, command="hfcf describe")[2]
    loaded = corpora.load(name, data_dir=folder, on_error="reject", **options)
    rows = loaded if isinstance(loaded, Dataset) else concatenate_datasets(list(loaded.values()))
    return first_rows(rows, limit)


def describe(rows: Dataset) -> dict[str, Any]:
    """Count what a corpus has.

    Args:
        rows: of any task; rows that `status` rejects are counted by their reason, and by nothing else.

    Returns:
        `task`, `rows`, `rejected` (by reason), `splits` and `labels` (rows of each), and `means`. These are, by field, the words
        of a text and the texts of a row that has any; of argument structures also the steps (one for each conclusion) and the
        distractors of a row that has a structure.

    >>> from datasets import Features
    >>> row = {**STRUCTURES.empty_row, "id": "1", "claim": "Ice melts.", "label": "SUPPORTS", "group_id": "1", "corpus": "mine",
    ...        "split": "train", "evidence": [{"title": "", "text": "It is hot."}],
    ...        "evidence_info": [{"id": "s1", "useful": True, "leaf": True}],
    ...        "structure": [{"premises": ["s1"], "conclusion": "claim"}]}
    >>> describe(Dataset.from_list([row], features=Features(STRUCTURES.features)))["means"]
    {'words per claim': 2.0, 'words per evidence': 3.0, 'claims': 1.0, 'evidence': 1.0, 'steps': 1.0, 'distractors': 0.0}
    """
    task = task_of(rows.features)
    statuses = rows["status"] if "status" in rows.features else [None] * len(rows)
    rejected = Counter(str(status["reason"]) for status in statuses if status and status["accepted"] is False)
    rows = rows.select([i for i, status in enumerate(statuses) if not status or status["accepted"] is not False])
    numbers: dict[str, list[int]] = {}
    for row in rows:
        texts = Counter[str]()
        for segment in task.segments(row):
            if segment.field not in ("label", "structure") and segment.text.strip():
                name = segment.field if segment.is_title else re.sub(r" \d+$", "", segment.block)
                numbers.setdefault(f"words per {name}", []).append(len(segment.text.split()))
                texts[name] += 1
        for field, n in texts.items():
            plural = field if field == "evidence" or field.endswith("s") else f"{field}s"
            numbers.setdefault(plural, []).append(n)
        if task.name == STRUCTURES.name and row["structure"]:
            numbers.setdefault("steps", []).append(len(Structure.from_row(row).merged().steps))
            numbers.setdefault("distractors", []).append(len(distractors(row) or ()))
    return {
        "task": task.name, "rows": len(rows), "rejected": dict(rejected.most_common()), "splits": dict(Counter(rows["split"])),
        "labels": dict(Counter(rows["label"]).most_common()) if "label" in rows.features else {},
        "means": {name: round(fmean(counted), 2) for name, counted in numbers.items()},
    }  # fmt: skip


def to_page(described: Mapping[str, Any]) -> str:
    """Write statistics as a table of Markdown."""
    lines = [("rows", described["rows"]), *described["splits"].items(), *described["labels"].items()]
    lines += [(f"mean {name}", f"{mean:.2f}") for name, mean in described["means"].items()]
    lines += [(f"rows that can't be read: {why}", rows) for why, rows in described["rejected"].items()]
    return "\n".join([f"| {described['task']} | |", "|---|---|", *(f"| {name} | {value} |" for name, value in lines)])
