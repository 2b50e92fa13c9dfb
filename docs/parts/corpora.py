"""Tables of corpora and of public models."""

from __future__ import annotations

from collections.abc import Iterable

from hfcf.core.public_models import PublicModel, public_models
from hfcf.core.task import get_task
from hfcf.corpora import builder_class
from hfcf.corpora import names as corpus_names
from hfcf.corpora.base import CorpusInfo
from parts.markdown import code, table

UNCHECKED = ("not checked against the real files", "unchecked")
"""How the notes say that nobody had the files, and the word for it that the page explains."""


def corpora_table(task: str) -> str:
    """Return a Markdown table of this library's corpora of a task; corpora that share their front matter share a line."""
    groups: dict[int, tuple[list[str], CorpusInfo]] = {}
    for name in corpus_names():
        builder = builder_class(name)
        if builder.INFO.task == task and builder.INFO.paper and builder.__module__.startswith("hfcf."):
            groups.setdefault(id(builder.INFO), ([], builder.INFO))[0].append(name)
    rows = [(anchors(names), info.release, info.layout, info.notes.replace(*UNCHECKED)) for names, info in groups.values()]
    return table(("name", "where the release is", "what `data_dir` holds", "notes"), rows)


def own_files_table() -> str:
    """List the names by which a user's own files are read, with the task and its fields."""
    names: dict[str, list[str]] = {}
    for name in corpus_names():
        builder = builder_class(name)
        if not builder.INFO.paper and builder.__module__.startswith("hfcf."):
            names.setdefault(builder.INFO.task, []).append(name)
    rows = [(anchors(found), task, code(get_task(task).columns)) for task, found in sorted(names.items())]
    return table(("name", "task", "columns, besides `label`"), rows)


def anchors(names: Iterable[str]) -> str:
    """Write corpora with the anchors that errors of a missing release point to."""
    return ", ".join(f'<a id="{name}"></a>`{name}`' for name in names)


def checkpoints_table() -> str:
    """List the public models of the presets `hub`."""
    header = ("checkpoint, commit", "what for", "licence", "parameters", "download", "reads", "classes in order")
    rows = [
        (
            f"`{one.name}` {commit(one)}",
            one.purpose,
            one.licence,
            f"{one.parameters / 1e6:,.0f} M",
            f"{one.download_bytes / 1e9:.2f} GB",
            f"{one.inputs}; {f'{one.max_length:,} tokens' if one.max_length else 'length not found'}".replace("<", "&lt;"),
            ", ".join(one.labels) or "none",
        )
        for one in public_models()
    ]
    return table(header, rows)


def commit(model: PublicModel) -> str:
    """Link the pinned commit of a model."""
    if not model.revision:
        return "no commit found: pin it yourself"
    return f"[`{model.revision[:7]}`](https://huggingface.co/{model.name}/tree/{model.revision})"
