"""The card of a published counterfactual set, written from the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from huggingface_hub import DatasetCardData

from hfcf.core.recipe import command as command_line
from hfcf.core.recipe import resolve_folder
from hfcf.core.task import get_task
from hfcf.hub.check_card import SIZES
from hfcf.hub.citation import citation
from hfcf.hub.metrics_table import metrics_table
from hfcf.hub.render import render
from hfcf.systems import system_class, systems

OWN = ("jsonl", "csv", "parquet", "relations")
"""Corpora that are a user's own rows: of these nothing tells the language."""
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
    files: Any = None,
) -> str:
    """Front matter that the Hub reads, and what a reader must know.

    Args:
        name: the recipe's.
        command: that makes the set again.
        corpus: `title`, `licence`, `hub_id`, `language`, `paper`, `citation` of the source; `republish`, when it is False, is said.
        configs: from `hfcf.hub.folder.configs`.
        empty: configurations that have no rows, which `load_dataset` can't read.
        run: what `run.json` holds.
        examples: rows of the default configuration, with the source's text as `before`.
        files: what the recipe reads the rows from, its `data_files` or `data_dir`; of a user's own rows the card names them.
    """
    own, task = run["corpus"] in OWN, get_task(run["task"])
    made_by, flips = _system(run["system"])
    if needs := _needed(files) if own else []:
        # The user's recipe is not in the repository; the one that is has all that was set.
        command = command_line("run", {}, name, limit=run.get("limit"))
    front = DatasetCardData(
        pretty_name=name,
        license=corpus["licence"] or "unknown",
        language=None if own else [corpus.get("language") or "en"],
        task_categories=list(task.hub.categories),
        task_ids=list(task.hub.ids),
        tags=["counterfactual", "data-augmentation", task.hub.tag, "hfcf", f"hfcf-{run['system']}"],
        size_categories=[_size(run["counterfactuals"])],
        # A corpus that the Hub does not have is named by what it is called here.
        source_datasets=[corpus["hub_id"] or f"extended|other-{run['corpus']}"],
        **republish_key(corpus.get("republish", True)),
        configs=list(configs),
    )
    return render(
        "dataset_card.md.jinja", front=front.to_yaml() + "\n", name=name, command=command, corpus=corpus, run=run, empty=empty,
        examples=examples, columns=list(task.features), not_republished=NOT_REPUBLISHED,
        own=own, made_by=made_by, flips=flips, needs=needs,
        splits=[file["split"] for config in configs if config["config_name"] == "default" for file in config["data_files"]],
        metrics=metrics_table(run.get("metrics") or {}, run.get("models") or {}), citation=citation(),
    )  # fmt: skip


def _system(name: str) -> tuple[str, bool]:
    """What a system's class is called, and whether its counterfactuals should have another label than their source.

    >>> _system("crossaug"), _system("eda"), _system("mine")
    (('CrossAug', True), ('EDA', False), ('mine', True))
    """
    if name not in systems():
        return name, True
    system = system_class(name)
    return system.__name__, system.flips


def _needed(files: Any) -> list[str]:
    """The names of what a recipe reads, without what ships with this library.

    >>> _needed({"train": ["mine/a.csv", "mine/b.csv"]}), _needed("recipes:demo"), _needed(None)
    (['a.csv', 'b.csv'], [], [])
    """
    if isinstance(files, str | PathLike):
        path = Path(files)
        return [] if resolve_folder(str(files)) else [path.name or str(path)]
    return [name for one in (files.values() if isinstance(files, Mapping) else files or ()) for name in _needed(one)]


def republish_key(allowed: bool) -> dict[str, Any]:
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
    return next((label for digits, label in enumerate(SIZES, start=3) if rows < 10**digits), SIZES[-1])
