"""The card of a published counterfactual set, written from the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from hfcf.hub.render import render
from hfcf.schema import TASKS

TAGS = {"verification": "fact-verification", "relation": "relation-extraction"}
TASK_IDS = {"verification": "fact-checking", "relation": "multi-class-classification"}
"""The Hub's name for each task."""
NOT_REPUBLISHED = "These rows, and counterfactuals of them, must not be republished: they are for holders of the corpus's licence"
"""What each card says of a corpus with such a licence, as its front matter does (`republish_key`)."""


def dataset_card(
    *,
    name: str,
    command: str,
    corpus: Mapping[str, Any],
    configs: Sequence[Mapping[str, Any]],
    empty: Sequence[str],
    run: Mapping[str, Any],
    examples: Sequence[Mapping[str, Any]],
) -> str:
    """Front matter that the Hub reads, and what a reader must know.

    Args:
        name: the recipe's.
        command: that makes the set again.
        corpus: `title`, `licence`, `hub_id`, `paper`, `citation` of the source; `republish`, when it is False, is said.
        configs: from `hfcf.hub.folder.configs`.
        empty: configurations that have no rows, which `load_dataset` can't read.
        run: what `run.json` holds.
        examples: rows of the default configuration, with the source's text as `before`.
    """
    rows = run["counterfactuals"]
    front: dict[str, Any] = {
        "license": corpus["licence"] or "unknown",
        "language": ["en"],
        "task_categories": ["text-classification"],
        "task_ids": [TASK_IDS[run["task"]]],
        "tags": ["counterfactual", "data-augmentation", TAGS[run["task"]], f"hfcf-{run['system']}"],
        "size_categories": [_size(rows)],
        "source_datasets": [corpus["hub_id"]] if corpus["hub_id"] else ["original"],
        "pretty_name": name,
        **republish_key(corpus.get("republish", True)),
        "configs": list(configs),
    }
    return render(
        "dataset_card.md.jinja", front=yaml.safe_dump(front, sort_keys=False, allow_unicode=True), name=name, command=command,
        corpus=corpus, run=run, empty=empty, examples=examples, columns=list(TASKS[run["task"]]),
        not_republished=NOT_REPUBLISHED,
    )  # fmt: skip


def republish_key(allowed: bool) -> dict[str, bool]:
    """The key of ours in a card's front matter by which what publishes a folder can refuse it; none where that is allowed.

    >>> republish_key(False), republish_key(True)
    ({'republish': False}, {})
    """
    return {} if allowed else {"republish": False}


def _size(rows: int) -> str:
    """The Hub's name for a number of rows.

    >>> _size(999), _size(1_000)
    ('n<1K', '1K<n<10K')
    """
    for limit, label in ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M")):
        if rows < limit:
            return label
    return "n>1M"
