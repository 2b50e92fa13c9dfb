"""The tables of docs/corpora.md, written from the corpora's front matter."""

from __future__ import annotations

from collections.abc import Iterator

from hfcf.corpora import builder_class, names
from hfcf.corpora.base.info import CorpusInfo


def docs_tables() -> dict[str, str]:
    """Return a Markdown table of this library's corpora for each task, by the name of its marker in docs/corpora.md.

    >>> docs_tables()["corpora verification"].splitlines()[0]
    '| name | where the release is | what `data_dir` holds | notes |'
    """
    tables: dict[str, list[str]] = {}
    for corpora, info in _by_info():
        head = ["| name | where the release is | what `data_dir` holds | notes |", "|---|---|---|---|"]
        cells = (", ".join(f"`{name}`" for name in corpora), info.release, info.layout, info.notes)
        tables.setdefault(f"corpora {info.task}", head).append(f"| {' | '.join(cells)} |")
    return {marker: "\n".join(lines) for marker, lines in tables.items()}


def _by_info() -> Iterator[tuple[list[str], CorpusInfo]]:
    # One line for corpora that share their front matter; a user's own files come last.
    groups: dict[int, tuple[list[str], CorpusInfo]] = {}
    for name in names():
        builder = builder_class(name)
        if builder.__module__.startswith("hfcf."):
            groups.setdefault(id(builder.INFO), ([], builder.INFO))[0].append(name)
    yield from sorted(groups.values(), key=lambda group: not group[1].paper)
