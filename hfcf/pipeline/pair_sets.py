"""The pairs that `hfcf evaluate --pairs` and `hfcf coverage` read: of a run, of the Hub, or of a file of one's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from datasets import Dataset, concatenate_datasets

from hfcf.core.columns import with_label_names
from hfcf.core.pairs import pair
from hfcf.corpora.custom.cells import as_known, name_cell
from hfcf.corpora.custom.columns import LayoutError
from hfcf.corpora.custom.load import ReadRows, read_tables
from hfcf.corpora.custom.source import FILE_OPTIONS, describe_file
from hfcf.corpora.custom.tables import FORMATS, own_columns
from hfcf.hub.run_folder import load_result

SOURCE_ID = "source_id"
"""The column of a file of pairs that names each counterfactual's original; also the key of `--set` that names another column."""
OPTIONS = (SOURCE_ID, *FILE_OPTIONS)
"""What commands take by `--set` for a file of pairs."""


def read_pairs(source: str, loading: Mapping[str, Any] | None = None) -> Dataset:
    """Read a paired set: each counterfactual with its original in the column `source`.

    Args:
        source: the folder of a run, the name of a published run on the Hub, or a file. A file has originals and counterfactuals in
            any columns that `hfcf.from_dataset` reads, and the column `source_id`: the id of the original, empty for originals.
        loading: for a file the arguments of `hfcf.from_dataset`, and `source_id`, the name of that column.

    Raises:
        ValueError: there are no such pairs, a row can't be read, or an original is missing.
    """
    loading = dict(loading or {})
    if not Path(source).expanduser().is_file():
        if any(source.endswith(ending) for ending in FORMATS):
            raise ValueError(f"there is no file {source}: give the folder of a run, a published run, or a file of pairs")
        if loading:
            raise ValueError(f"--set {next(iter(loading))}: {source} is a run, whose columns are known: leave it out")
        return _pairs_of_run(source)
    column = str(loading.pop(SOURCE_ID, SOURCE_ID))
    try:
        # A column of ids is one, also if counterfactuals have none.
        name, table, layout = describe_file(source, (), loading, own_ids=True)
    except LayoutError as error:
        raise ValueError(error.in_recipe("the command")) from error
    if column not in table.column_names:
        raise ValueError(
            f"{source} has no column {column!r}, which names the original of each counterfactual by its id and is empty for "
            f"originals; it has {', '.join(own_columns(table))}. Name yours by --set {SOURCE_ID}=COLUMN"
        )
    rows = read_tables({"train": table}, ReadRows(layout, name, "train", True))["train"]
    assert isinstance(rows, Dataset)
    for i, status in enumerate(rows["status"]):
        if status and status["accepted"] is False:
            raise ValueError(f"{source}: row {i + 1} can't be read: {status['reason']}. Mend it, or take its pair out")
    ids = set(rows["id"])
    names = [as_known((name_cell(value) or "").strip(), ids) for value in table[column]]
    rows = rows.remove_columns("status").add_column(SOURCE_ID, names)
    made, originals = ([i for i, name in enumerate(names) if bool(name) is has] for has in (True, False))
    if not made:
        raise ValueError(f"{source}: no row names its original in the column {column!r}")
    return pair(rows.select(made), rows.select(originals).remove_columns(SOURCE_ID))


def judges_of(source: str) -> list[str]:
    """Name the models that had to confirm the counterfactuals of a run, as its card does; [] for a file."""
    if Path(source).expanduser().is_file():
        return []
    models = load_result(source).run["models"]
    return [model for setting, model in models.items() if re.fullmatch(r"verifier|judges\[\d+\]|readers\[\d+\]", setting)]


def _pairs_of_run(source: str) -> Dataset:
    result = load_result(source)
    if not result.dataset:
        raise ValueError(f"{source} has no counterfactuals: its run accepted none")
    made, every = (
        concatenate_datasets([with_label_names(rows) for rows in sets.values()]) for sets in (result.dataset, result.augmented)
    )
    return pair(made, every)
