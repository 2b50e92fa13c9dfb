"""`hfcf compare`: from a comparison recipe to its tables and its figure; and what there is to compute."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hfcf.core import recipe as recipes
from hfcf.core.model import Model
from hfcf.core.redact import short_path
from hfcf.core.settings import models_in
from hfcf.hub.previous_run import check_result, write_record
from hfcf.hub.source import list_names
from hfcf.studies.compare import figure
from hfcf.studies.compare.comparison import fill, missing_trainings, open_comparison, seconds_left
from hfcf.studies.compare.intrinsic import intrinsic_rows
from hfcf.studies.compare.methods import build_methods
from hfcf.studies.compare.page import write_page
from hfcf.studies.compare.rationales import rationale_table
from hfcf.studies.compare.recipe import AnyComparison, RationaleComparison, SetComparison, read_comparison
from hfcf.studies.compare.samples import PARTS
from hfcf.studies.compare.stats import differences

TABLES = ("table.md", "table.csv", "rationales.md", "figure.svg", "figure.png")


def compare(
    recipe: str | Path, out: str | Path, *, changes: Sequence[str] = (), results: str | Path = "results", full: bool = False,
    overwrite: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Run a comparison recipe; a second run continues where the first stopped, and reads finished cells.

    `compare: models` trains a model for each method and seed on the same rows and scores it on each evaluation set; with `columns`,
    each column has training, development and test rows of its own. The rows are of any task. If two processes start with the same
    arguments, they share the work. Written to `out`: `table.md`, `table.csv`, `figure.svg`, `figure.png`.

    With `low_resource` each model is trained on each of some small samples of the training rows. `compare: rationales` scores
    explainers; see `hfcf.studies.compare.rationales`.

    Args:
        recipe: a file, or the name of a recipe that ships with the library.
        out: the folder.
        changes: "key=value" strings, as `--set` takes them.
        results: the folder of the finished cells: `<results>/<name of the recipe>.jsonl`. Cells that another version of the code
            made are not read.
        full: all training and evaluation rows, whatever `take` and `evaluate_take` say; by columns, all cells, whatever `run` says.
        overwrite: replace the tables of another comparison, or other tables, that the folder holds. Finished cells stay.

    Returns:
        `table`, the file, and `missing`, how many cells are not there yet (another process has them).

    Raises:
        RecipeError: a key is unknown or missing, or a value is not allowed.
        ExistingResultError: the folder holds the tables of another comparison, and `overwrite` is not set; a ValueError.
    """
    parsed, folder = read_comparison(recipe, changes), Path(out)
    options = [part for change in changes for part in ("--set", recipes.without_folders(change))] + ["--full"] * full
    command = shlex.join(["hfcf", "compare", short_path(str(recipe)), "--out", short_path(str(out)), *options])
    # With other methods, rows or seeds it is the same comparison: all finished cells are kept.
    content = parsed.model_dump(exclude_unset=True)
    check_result(folder, content, command, overwrite=overwrite, files=TABLES, keys=("compare", "name", "preset"))
    folder.mkdir(parents=True, exist_ok=True)
    write_record(folder, content, command)
    if isinstance(parsed, RationaleComparison):
        rationale_table(parsed, folder, full=full)
        return {"table": str(folder / "rationales.md"), "missing": 0}
    comparison = open_comparison(parsed, Path(results), full=full)
    fill(comparison, folder / "work")
    intrinsic = []
    if isinstance(parsed, SetComparison) and parsed.encoder and not parsed.low_resource:
        # They take their time: another process may finish cells meanwhile.
        intrinsic = intrinsic_rows(comparison, parsed.encoder, parsed.language_model, folder / "work")
    grid = comparison.grid()
    found = differences(grid)
    text = write_page(parsed, grid, found, command, intrinsic, comparison.seen_table)
    (folder / "table.md").write_text(text, encoding="utf-8")
    (folder / "table.csv").write_text(grid.long.to_csv(index=False, lineterminator="\n"), encoding="utf-8")
    figure.save(grid, found, folder, getattr(parsed, "curves", None) or {})
    return {"table": str(folder / "table.md"), "missing": len(grid.missing)}


# --- dry run


def dry_run(
    recipe: str | Path, *, changes: Sequence[str] = (), results: str | Path = "results", full: bool = False
) -> dict[str, Any]:  # fmt: skip
    """Say what a comparison would compute, without training a model or writing anything."""
    parsed = read_comparison(recipe, changes)
    absent = list(dict.fromkeys(_absent(parsed)))
    if absent or isinstance(parsed, RationaleComparison):
        return {"name": parsed.name, "absent": absent}
    comparison = open_comparison(parsed, Path(results), full=full)
    trainings = missing_trainings(comparison)
    to_compute = Counter(place[0] for training in trainings for place in training)
    requested = Counter(place[0] for place in comparison.requested)
    return {
        "name": parsed.name,
        "absent": [],
        "rows": {
            "train": sorted({len(sample.train) for sample in comparison.samples}),
            "sets": {test_set.name: len(test_set.rows) for test_set in comparison.sets},
        },
        "methods": {
            method.name: {"finished": requested[method.name] - to_compute[method.name], "to_compute": to_compute[method.name]}
            for method in comparison.methods
        },
        "trainings": len(trainings),
        "seconds": seconds_left(comparison, trainings),
    }


def _absent(recipe: AnyComparison) -> Iterator[str]:
    """Name the folders and files of a recipe that do not exist."""
    for source in _sources(recipe):
        located = recipes.locate(source, recipe.data_dir)
        corpus = located.get("corpus")
        files = corpus.get("data_files") if isinstance(corpus, Mapping) else None
        names = list_names(files or located.get("data_files") or located.get("data_dir"))
        yield from (name for name in names if "*" not in name and "://" not in name and not Path(name).expanduser().exists())
    for model in _models(recipe):
        for path in (model.name, model.adapter):
            # A name on the Hub is NAMESPACE/NAME; what is written as a path is a path.
            if path and (path.startswith((".", "/", "~")) or path.count("/") > 1) and not Path(path).expanduser().exists():
                yield f"the model {path}"


def _sources(recipe: AnyComparison) -> Iterator[Mapping[str, Any]]:
    if isinstance(recipe, RationaleComparison):
        yield from recipe.corpora
        return
    for method in recipe.methods.values():
        yield from (method.more or ()) if method else ()
    if isinstance(recipe, SetComparison):
        yield from (recipe.train, *(evaluation.source for evaluation in recipe.evaluate))
    else:
        yield from (recipe.source(column, part) for column in recipe.columns if not column.optional for part in PARTS)


def _models(recipe: AnyComparison) -> Iterator[Model]:
    if isinstance(recipe, RationaleComparison):
        yield from (recipe.verifier, recipe.explainer)
        return
    parts = [recipe, *(method for method in recipe.methods.values() if method), *getattr(recipe, "columns", ())]
    yield from (Model.of(part.model["model"]) for part in parts if "model" in part.model)
    for method in build_methods(recipe):
        if method.system:
            yield from (model for _, model in models_in(method.system.values))
