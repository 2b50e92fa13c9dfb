"""Tables of corpora and of public models."""

from __future__ import annotations

from hfcf.core.public_models import public_models
from hfcf.corpora import builder_class
from hfcf.corpora import names as corpus_names
from hfcf.corpora.base import CorpusInfo
from parts.markdown import table


def corpora_table(task: str) -> str:
    """Return a Markdown table of this library's corpora of a task; corpora that share their front matter share a line."""
    groups: dict[int, tuple[list[str], CorpusInfo]] = {}
    for name in corpus_names():
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


def checkpoints_table() -> str:
    """List the public models of the presets `hub`, with the pages where their facts stand."""
    header = ("checkpoint, commit", "what for", "licence", "parameters", "download", "reads", "classes in order", "pages")
    rows = [
        (
            f"`{one.name}` `{one.revision[:7]}`" if one.revision else f"`{one.name}`, no commit found: pin it yourself",
            one.purpose,
            one.licence,
            f"{one.parameters / 1e6:,.0f} M",
            f"{one.download_bytes / 1e9:.2f} GB",
            f"{one.inputs}; {f'{one.max_length:,} tokens' if one.max_length else 'length not found'}".replace("<", "&lt;"),
            ", ".join(one.labels) or "none",
            "; ".join(f"[{what}]({address})" for what, address in one.pages),
        )
        for one in public_models()
    ]
    return table(header, rows)
