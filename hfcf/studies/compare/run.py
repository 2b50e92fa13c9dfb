"""`hfcf compare`: from a comparison recipe to its tables, and to its figure."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hfcf.core import recipe as recipes
from hfcf.core.redact import short_path
from hfcf.hub.previous_run import check_result, write_record
from hfcf.studies.compare import column_page, figure, page
from hfcf.studies.compare.comparison import Comparison, on_samples, open_comparison
from hfcf.studies.compare.frame import Cell, long_table
from hfcf.studies.compare.intrinsic import intrinsic_rows
from hfcf.studies.compare.pair_page import pairs_section
from hfcf.studies.compare.probes import probe, probes_section
from hfcf.studies.compare.rationales import rationale_table
from hfcf.studies.compare.recipe import AnyComparison, ColumnComparison, RationaleComparison, SetComparison, parse_comparison
from hfcf.studies.compare.runner import arrange, fill, older_cells, read
from hfcf.studies.compare.stats import differences
from hfcf.studies.compare.structure_page import compare_structures
from hfcf.studies.compare.structure_recipe import StructureComparison

log = logging.getLogger(__name__)

TABLES = ("table.md", "table.csv", "rationales.md", "figure.svg", "figure.png")


def compare(
    recipe: str | Path, out: str | Path, *, changes: Sequence[str] = (), results: str | Path = "results", full: bool = False,
    overwrite: bool = False, stored: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Run a comparison recipe; a second run continues where the first stopped, and reads finished cells.

    `compare: verifiers` trains a model for each method and seed on the same rows and scores it on each evaluation set. `compare:
    relations` does it by columns, each with training, development and test rows of its own. `compare: models` is either, of rows
    of any task. If two processes start with the same arguments, they share the work. Written to `out`: `table.md`, `table.csv`,
    `figure.svg`, `figure.png`.

    With `low_resource` each model is trained on each of some small samples of the training rows. With `probes` the table says how
    much the claims give away; see `hfcf.studies.compare.probes`.

    `compare: rationales` scores explainers; see `hfcf.studies.compare.rationales`. `compare: structures` makes CheckWhy's tables;
    see `hfcf.studies.compare.structures`.

    Args:
        recipe: a file, or the name of a recipe that ships with the library.
        out: the folder.
        changes: "key=value" strings, as `--set` takes them.
        results: the folder of the finished cells: `<results>/<name of the recipe>.jsonl`.
        full: all training and evaluation rows, whatever `take` and `evaluate_take` say; by columns, all cells, whatever `run` says.
        stored: compute nothing: write the tables from finished cells. Where a cell is missing, the last cell of other versions of
            the code is shown, marked †. The page says which; intrinsic scores and probes are left out. Else such cells are
            computed again, with a warning.
        overwrite: replace the tables of another comparison, or other tables, that the folder holds. Finished cells stay.

    Returns:
        `table`, the file, and `missing`, how many cells are not there yet (another process has them).

    Raises:
        RecipeError: a key is unknown or missing, or a value is not allowed.
        ExistingResultError: the folder holds the tables of another comparison, and `overwrite` is not set; a ValueError.
    """
    parsed, folder = read_comparison(recipe, changes), Path(out)
    options = [part for change in changes for part in ("--set", recipes.without_folders(change))]
    options += ["--full"] * full + ["--stored"] * stored
    command = shlex.join(["hfcf", "compare", short_path(str(recipe)), "--out", short_path(str(out)), *options])
    # With other methods, rows or seeds it is the same comparison: all finished cells are kept.
    content = parsed.model_dump(exclude_unset=True)
    check_result(folder, content, command, overwrite=overwrite, files=TABLES, keys=("compare", "name", "preset"))
    folder.mkdir(parents=True, exist_ok=True)
    write_record(folder, content, command)
    if isinstance(parsed, RationaleComparison):
        rationale_table(parsed, folder, full=full)
        return {"table": str(folder / "rationales.md"), "missing": 0}
    if isinstance(parsed, StructureComparison):
        return compare_structures(parsed, folder, Path(results), command, full=full, stored=stored)
    if isinstance(parsed, SetComparison) and parsed.low_resource and parsed.probes:
        raise recipes.RecipeError("low_resource: bias probes are of all rows, not of samples: leave one of the two out")
    comparison = open_comparison(parsed, Path(results), full=full)
    write: Any = _write_columns if isinstance(parsed, ColumnComparison) else _write_sets
    text, cells, missing = write(parsed, comparison, folder, command, stored)
    (folder / "table.md").write_text(text, encoding="utf-8")
    (folder / "table.csv").write_text(long_table(cells).to_csv(index=False, lineterminator="\n"), encoding="utf-8")
    return {"table": str(folder / "table.md"), "missing": missing}


def read_comparison(recipe: str | Path, changes: Sequence[str] = ()) -> AnyComparison:
    """Read a comparison recipe with the changes applied; see `compare` for the arguments."""
    path = recipes.find(str(recipe))
    content = recipes.read(path, changes)
    content.setdefault("name", path.stem)
    return parse_comparison(content, path.name)


def _fill(comparison: Comparison, out: Path) -> None:
    """Compute missing cells; warn of cells that are stored in other versions."""
    if again := [cell for place, cell in older_cells(comparison).items() if place in set(comparison.requested)]:
        log.warning(
            "%d requested cells are stored in other or unknown versions of the code, and are computed again; the stored ones stay "
            "in %s, and --stored prints them as they are", len(again), comparison.cells.file,
        )  # fmt: skip
    fill(comparison, out / "work")


def _write_sets(
    recipe: SetComparison, comparison: Comparison, out: Path, command: str, stored: bool
) -> tuple[str, list[Cell], int]:
    """Compute missing cells and draw the figure; return the page, the cells, and how many are missing."""
    filled = on_samples(comparison, recipe) if recipe.low_resource else comparison
    if not stored:
        _fill(filled, out)
    # They take their time: another process may finish cells meanwhile.
    intrinsic, probed = [], []
    if not (recipe.low_resource or stored):
        intrinsic = intrinsic_rows(comparison, recipe.encoder, recipe.language_model, out / "work") if recipe.encoder else []
        probed = probe(comparison, out / "work") if recipe.probes else []
    grid = arrange(filled, read(filled, older=stored))
    cells, tested = list(grid.cells.values()), differences(grid)
    # On samples also the cells that the recipe without `low_resource` left.
    all_rows = read(comparison, older=stored) if recipe.low_resource else []
    text = page.markdown(grid, tested, intrinsic, comparison.name, comparison.repeats, comparison.seen_table, all_rows)
    if not recipe.low_resource:
        text += pairs_section(comparison, grid)
    text += probes_section(comparison, grid, probed) if probed else ""
    text += page.provenance(recipe, comparison, cells, command)
    if cells and recipe.low_resource:
        figure.store(lambda: figure.figure_of_sizes(grid, all_rows), out)
    elif cells:
        figure.save(grid, tested, out)
    sized = [{**cell, "size": cell["train_rows"] - cell["counterfactuals"]} for cell in all_rows]
    return text, [*cells, *sized], len(grid.missing())


def _write_columns(
    recipe: ColumnComparison, comparison: Comparison, out: Path, command: str, stored: bool
) -> tuple[str, Sequence[Cell], int]:
    """Do as `_write_sets`."""
    if not stored:
        _fill(comparison, out)
    report = column_page.make_report(comparison, read(comparison, older=stored), recipe.report)
    grid, curves = report.grid, recipe.curves
    tested = differences(grid)
    text = column_page.markdown(comparison, report, tested, recipe, command)
    if curves:
        figure.store(lambda: figure.figure_of_curves(grid, curves), out)
    elif grid.cells:
        figure.save(grid, tested, out)
    return text, report.cells, len(report.missing)
