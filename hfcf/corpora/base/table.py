"""The tables of docs/corpora.md, written from the corpora's front matter."""

from __future__ import annotations

from hfcf.corpora import builder_class, names
from hfcf.corpora.base.info import CorpusInfo


def docs_table(task: str) -> str:
    """Return a Markdown table of this library's corpora of a task; corpora that share their front matter share a line."""
    groups: dict[int, tuple[list[str], CorpusInfo]] = {}
    for name in names():
        builder = builder_class(name)
        if builder.INFO.task == task and builder.__module__.startswith("hfcf."):
            groups.setdefault(id(builder.INFO), ([], builder.INFO))[0].append(name)
    lines = ["| name | where the release is | what `data_dir` holds | notes |", "| --- | --- | --- | --- |"]
    # A user's own files, which have no paper, come last.
    for corpora, info in sorted(groups.values(), key=lambda group: not group[1].paper):
        # Errors of a missing release point to the anchor.
        cells = (", ".join(f'<a id="{name}"></a>`{name}`' for name in corpora), info.release, info.layout, info.notes)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
