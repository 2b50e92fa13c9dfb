"""`hfcf compare`: from a comparison recipe to its tables, and to its figure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from hfcf.core import recipe as recipes
from hfcf.core.redact import short_path
from hfcf.hub.existing_result import check_result, write_record
from hfcf.studies.compare import column_page, figure, set_page
from hfcf.studies.compare.grid import Cell
from hfcf.studies.compare.intrinsic import intrinsic_rows
from hfcf.studies.compare.pair_page import pairs_section
from hfcf.studies.compare.probes import probe, probes_section
from hfcf.studies.compare.rationales import rationale_table
from hfcf.studies.compare.recipe import ColumnComparison, RationaleComparison, SetComparison, parse_comparison
from hfcf.studies.compare.runner import Comparison, arrange, fill, on_samples, open_comparison, read
from hfcf.studies.compare.stats import differences, differences_by_size
from hfcf.studies.compare.tables import long_csv

TABLES = ("table.md", "table.csv", "rationales.md", "figure.svg", "figure.png")


def compare(
    recipe: str | Path, out: str | Path, *, changes: Sequence[str] = (), results: str | Path = "results", full: bool = False,
    overwrite: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Run a comparison recipe; run again it goes on where it stopped, and what is finished is only read.

    `compare: verifiers` trains a model for each method and seed on the same rows and scores it on each evaluation set; `compare:
    relations` does it by columns, each with training, development and test rows of its own; `compare: models` is either, of rows of
    any task. Started twice with the same arguments, two processes share the work. Written to `out`: `table.md`, `table.csv`,
    `figure.svg`, `figure.png`.

    With `low_resource` each model is trained on each of some small samples of the training rows. With `probes` the table says how
    much the claims give away; see `hfcf.studies.compare.probes`.

    `compare: rationales` scores explainers; see `hfcf.studies.compare.rationales`.

    Args:
        recipe: a file, or the name of a recipe that ships with the library.
        out: the folder.
        changes: "key=value" strings, as `--set` takes them.
        results: the folder of the finished cells: `<results>/<name of the recipe>.jsonl`.
        full: all training and evaluation rows, whatever `take` and `evaluate_take` say; by columns, all cells, whatever `run` says.
        overwrite: replace the tables of another comparison, or others, that the folder holds. Finished cells stay.

    Returns:
        `table`, the file, and `missing`, how many cells are not there yet (another process has them).

    Raises:
        RecipeError: an unknown key, one that is missing, or a value that can't be.
        ExistingResultError: the folder holds the tables of another comparison, and `overwrite` is not set; a ValueError.
    """
    parsed, folder = read_comparison(recipe, changes), Path(out)
    options = [part for change in changes for part in ("--set", recipes.without_folders(change))] + (["--full"] if full else [])
    command = shlex.join(["hfcf", "compare", short_path(str(recipe)), "--out", short_path(str(out)), *options])
    # With other methods, rows or seeds it is the same comparison: all finished cells are kept.
    content = parsed.model_dump(exclude_unset=True)
    check_result(folder, content, command, overwrite=overwrite, files=TABLES, keys=("compare", "name", "preset"))
    folder.mkdir(parents=True, exist_ok=True)
    write_record(folder, content, command)
    if isinstance(parsed, RationaleComparison):
        rationale_table(parsed, folder, full=full)
        return {"table": str(folder / "rationales.md"), "missing": 0}
    if isinstance(parsed, SetComparison) and parsed.low_resource and parsed.probes:
        raise recipes.RecipeError("low_resource: bias probes are of all rows, not of samples: leave one of the two out")
    comparison = open_comparison(parsed, Path(results), full=full)
    if isinstance(parsed, ColumnComparison):
        return _by_columns(parsed, comparison, folder, command)
    return (_on_samples if parsed.low_resource else _on_sets)(parsed, comparison, folder, command)


def read_comparison(recipe: str | Path, changes: Sequence[str] = ()) -> SetComparison | ColumnComparison | RationaleComparison:
    """Read a comparison recipe with the changes applied; see `compare` for the arguments."""
    path = recipes.find(str(recipe))
    content = recipes.read(path, changes)
    content.setdefault("name", path.stem)
    return parse_comparison(content, path.name)


def _on_sets(recipe: SetComparison, comparison: Comparison, out: Path, command: str) -> dict[str, Any]:
    fill(comparison, out / "work")
    # They take their time: another process may finish cells meanwhile.
    intrinsic = intrinsic_rows(comparison, recipe.encoder, recipe.language_model, out / "work") if recipe.encoder else []
    probed = probe(comparison, out / "work") if recipe.probes else []
    cells = read(comparison)
    grid = arrange(comparison, cells)
    tested = differences(grid)
    text = set_page.markdown(grid, tested, intrinsic, comparison.name, comparison.repeats, comparison.seen_table)
    text += pairs_section(comparison, grid)
    text += probes_section(comparison, grid, probed) if probed else ""
    text += set_page.provenance(recipe, comparison, cells, command)
    if cells:
        figure.save(grid, tested, out)
    return _write(out, text, grid.cells.values(), len(grid.missing()))


def _on_samples(recipe: SetComparison, comparison: Comparison, out: Path, command: str) -> dict[str, Any]:
    samples = on_samples(comparison, recipe)
    fill(samples, out / "work")
    grid = arrange(samples, read(samples))
    all_rows = read(comparison)  # those that the recipe without `low_resource` left
    tested, about = differences_by_size(grid), (comparison.name, comparison.repeats, comparison.seen_table)
    text = set_page.markdown_of_samples(grid, tested, all_rows, *about)
    text += set_page.provenance(recipe, comparison, list(grid.cells.values()), command)
    lines = [{**cell, **key[1]._asdict()} for key, cell in grid.cells.items()]
    lines += [{**cell, "size": cell["train_rows"] - cell["counterfactuals"]} for cell in all_rows]
    if grid.cells:
        figure.store(lambda: figure.figure_of_sizes(grid, all_rows), out)
    return _write(out, text, lines, len(grid.missing()))


def _by_columns(recipe: ColumnComparison, comparison: Comparison, out: Path, command: str) -> dict[str, Any]:
    fill(comparison, out / "work")
    report = column_page.make_report(comparison, read(comparison), recipe.report)
    grid, curves = report.grid, recipe.curves
    tested = differences(grid)
    text = column_page.markdown(comparison, report, tested, recipe, command)
    if curves:
        figure.store(lambda: figure.figure_of_curves(grid, curves), out)
    elif grid.cells:
        figure.save(grid, tested, out)
    return _write(out, text, report.cells, len(report.missing))


def _write(out: Path, text: str, cells: Iterable[Cell], missing: int) -> dict[str, Any]:
    out.mkdir(parents=True, exist_ok=True)
    (out / "table.md").write_text(text, encoding="utf-8")
    (out / "table.csv").write_text(long_csv(cells), encoding="utf-8")
    return {"table": str(out / "table.md"), "missing": missing}
