"""What is stored of a comparison, read without its rows: the recipe has the table, `results/` the cells."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from hfcf.core.task import Task, get_task
from hfcf.core.trainer import load_scorer
from hfcf.corpora import builder_class
from hfcf.studies.compare.age import age, versions_of
from hfcf.studies.compare.frame import Cell, Grid, Training, make_grid
from hfcf.studies.compare.recipe import ColumnComparison, RationaleComparison, SetComparison
from hfcf.studies.compare.results import Cells
from hfcf.studies.compare.run import read_comparison
from hfcf.studies.compare.stats import Difference, differences
from hfcf.studies.compare.structure_recipe import StructureComparison
from hfcf.systems import system_class

PAIRED = "sources"
"""The part of a cell with the answers to the originals of a paired set."""


@dataclass(frozen=True)
class Stored:
    """The newest stored cells of a comparison.

    Args:
        recipe: what the table has, of the preset that made the cells.
        task: of its rows.
        grid: cells with scores. Rows of a paired set whose originals have the same true and predicted answers count as one source.
        empty: cells of methods that made no counterfactual.
        intrinsic: rows of the table of intrinsic scores.
    """

    recipe: SetComparison | ColumnComparison
    task: Task
    grid: Grid
    empty: tuple[Cell, ...] = ()
    intrinsic: tuple[Mapping[str, Any], ...] = ()

    @property
    def cells(self) -> list[Cell]:
        """All shown cells."""
        return [*self.grid.cells.values(), *self.empty]

    @cached_property
    def differences(self) -> list[Difference]:
        """What each method gains over the baseline."""
        return differences(self.grid)


def read_stored(name: str | Path, results: Path, changes: Sequence[str] = ("preset=offline",)) -> Stored:
    """Read the stored cells of a comparison recipe.

    A corpus whose rows changed is shown with the rows that have the most cells; of equally many cells, with the newest rows.
    Methods and seeds without a cell are left out.

    Args:
        name: of the recipe, or its file.
        results: the folder of the cells.
        changes: "key=value" strings, as `hfcf compare --set` takes them.
    """
    recipe = read_comparison(name, changes)
    if isinstance(recipe, RationaleComparison | StructureComparison):
        raise TypeError(f"{recipe.name}: {recipe.compare} has no cells of one label a row; read its tables in the folder of --out")
    task = get_task(builder_class(_train(recipe)["corpus"]).INFO.task)
    settings = _settings(recipe)
    systems = {method: part and (part.system or recipe.system) for method, part in recipe.methods.items()}
    versions = {method: versions_of(system_class(system) if system else None) for method, system in systems.items()}
    places: dict[str, dict[str, dict[tuple[Any, ...], dict[str, Any]]]] = defaultdict(dict)
    intrinsic: dict[str, list[Mapping[str, Any]]] = {}
    file = (recipe.cells if isinstance(recipe, ColumnComparison) else None) or recipe.name
    for cell in Cells(results / f"{file}.jsonl").every():
        method = cell.get("method")
        if cell.get("table") == "intrinsic":
            intrinsic[str(method)] = cell["rows"]
        if method not in versions or cell.get("corpus") not in settings:
            continue
        seed = Training(cell["size"], cell["sample"], cell["seed"]) if "size" in cell else cell["seed"]
        about = {"seed": seed, "setting": settings[cell["corpus"]], "age": age(cell.get("versions"), versions[method])}
        of_rows = places[cell["corpus"]].setdefault(cell["ids"], {})
        of_rows[method, seed] = {**cell, **about, "recipe": recipe.name, "rows": len(cell.get("gold") or ())}
    newest = [cell for of_rows in places.values() for cell in max(reversed(of_rows.values()), key=len).values()]
    scored = [cell for cell in newest if not cell.get("empty")]
    methods = [method for method in recipe.methods if any(cell["method"] == method for cell in newest)]
    seeds = sorted({cell["seed"] for cell in scored})
    corpora = {corpus: setting for corpus, setting in settings.items() if corpus in places}
    # Columns that share their test rows are not independent corpora, so they have no average.
    alone: Iterable[str] = (
        corpora
        if isinstance(recipe, ColumnComparison)
        else [each.name or each.corpus for each in recipe.evaluate if not each.averaged]
    )
    baseline = recipe.baseline or next(iter(recipe.methods))
    grid = make_grid(scored, baseline, methods, seeds, corpora, alone, load_scorer(task.scorer))
    # The rows as they are stored lack the method's name.
    rows = [{**row, "Method": f"{method}{row['Method']}"} for method in recipe.methods for row in intrinsic.get(method, [])]
    empty = tuple(cell for cell in newest if cell.get("empty"))
    return Stored(recipe, task, replace(grid, sources=_sources(grid)), empty, tuple(rows))


def _train(recipe: SetComparison | ColumnComparison) -> dict[str, Any]:
    return recipe.source(recipe.columns[0], "train") if isinstance(recipe, ColumnComparison) else recipe.train


def _settings(recipe: SetComparison | ColumnComparison) -> dict[str, str]:
    """Return the setting of each corpus or column, in the order of the recipe."""
    if isinstance(recipe, ColumnComparison):
        return {column.name: column.setting or recipe.defaults.setting for column in recipe.columns}
    return {each.name or each.corpus: each.setting for each in recipe.evaluate}


def _sources(grid: Grid) -> dict[str, list[str]]:
    """Group the rows of paired sets: by the true answers to their originals, and by what every model answers to the originals."""
    found = {}
    for corpus in grid.corpora:
        originals = [cell[PAIRED] for cell in grid.about(corpus) if PAIRED in cell]
        if originals:
            answers = [originals[0]["gold"], *(each["predicted"] for each in originals)]
            found[corpus] = [json.dumps(row, ensure_ascii=False) for row in zip(*answers, strict=True)]
    return found
