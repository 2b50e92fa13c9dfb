"""The shortcut audit of a corpus of argument structures: how far labels can be guessed without an argument."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hfcf import corpora
from hfcf.core import recipe
from hfcf.core.task import task_of
from hfcf.metrics.scores.shortcuts import shortcuts
from hfcf.pipeline.evaluate import read_rows
from hfcf.tasks.structures import TASK
from hfcf.tasks.verification import LABELS, NOT_ENOUGH_INFO


def audit(
    source: str, *, changes: Sequence[str] = (), derive: int | None = None, limit: int | None = None
) -> dict[str, list[dict[str, Any]]]:
    """Run `hfcf.metrics.scores.shortcuts.shortcuts` on a corpus, for two labels, and for three where the corpus has them.

    Args:
        source: "NAME=FOLDER" or "NAME=FILE", with ":SPLIT" where it is not "validation". A corpus that has more labels in other
            files is read from these files.
        changes: "key=value" each: options of the corpus, and `columns` and `labels` of a file.
        derive: make rows of three labels with so many distractors (`hfcf.training.derived_labels.derive_labels`).
        limit: only the first rows, before rows are derived.

    Returns:
        The lines of `shortcuts`, by a title of the labels that are told apart.

    Raises:
        ValueError: the rows have no argument structures, or only one label.
    """
    from hfcf.training.derived_labels import derive_labels

    name = source.partition("=")[0]
    options = corpora.builder_class(name).OPTIONS if name in corpora.names() else ()
    rows = read_rows(source, limit, recipe.file_keys(changes, options), len(LABELS))
    if (task := task_of(rows.features).name) != TASK.name:
        raise ValueError(f"{source}: these are {task} rows, which have no argument structures")
    if derive is not None:
        rows = derive_labels(rows, distractors=derive)
    used = [label for label in LABELS if label in set(rows["label"])]
    if len(used) < 2:
        raise ValueError(
            f"{source}: all rows are {', '.join(used) or 'without a label'}: there is nothing to guess; trees that only support "
            "become rows of three labels by --derive 2"
        )
    ways: list[tuple[str, ...]] = [LABELS[:2]] if {*LABELS[:2]} <= {*used} else []
    if NOT_ENOUGH_INFO in used:
        ways.append(LABELS)
    return {", ".join(labels): shortcuts(rows, labels) for labels in ways}


def to_page(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Write the audit as tables of Markdown."""
    parts = []
    for title, lines in tables.items():
        table = ["| guessed by | rows | accuracy | 95 % interval |", "|---|---|---|---|"]
        table += [
            f"| {line['shortcut']} | {line['rows']} | {line['accuracy']:.3f} | {line['low']:.3f}–{line['high']:.3f} |"
            for line in lines
        ]
        parts.append(f"**{title}**\n\n" + "\n".join(table))
    return "\n\n".join(parts)
