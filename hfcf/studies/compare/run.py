"""`hfcf compare`: from a comparison recipe to its tables, and to its figure."""

from __future__ import annotations

import json
import shlex
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hfcf.core import recipe as recipes
from hfcf.studies.compare import column_page, figure, set_page
from hfcf.studies.compare.intrinsic import intrinsic_rows
from hfcf.studies.compare.layout import Cell
from hfcf.studies.compare.probe_tables import probes_section
from hfcf.studies.compare.probes import probe
from hfcf.studies.compare.rationales import rationale_table
from hfcf.studies.compare.recipe import ColumnComparison, RationaleComparison, SetComparison, parse_comparison
from hfcf.studies.compare.runner import Comparison, arrange, fill, on_samples, open_comparison, read
from hfcf.studies.compare.stats import differences, differences_by_size
from hfcf.studies.compare.tables import bullets, csv_text


def compare(
    recipe: str | Path, out: str | Path, *, changes: Sequence[str] = (), results: str | Path = "results", full: bool = False
) -> dict[str, Any]:
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

    Returns:
        `table`, the file, and `missing`, how many cells are not there yet (another process has them).

    Raises:
        RecipeError: an unknown key, one that is missing, or a value that can't be.
    """
    path = recipes.find(str(recipe))
    content = recipes.read(path, changes)
    content.setdefault("name", path.stem)
    parsed = parse_comparison(content, path.name)
    if isinstance(parsed, RationaleComparison):
        rationale_table(parsed, Path(out), full=full)
        return {"table": str(Path(out) / "rationales.md"), "missing": 0}
    given = ["hfcf", "compare", str(recipe), "--out", str(out), *(part for one in changes for part in ("--set", one))]
    command = shlex.join([*given, *(["--full"] if full else [])])
    if isinstance(parsed, ColumnComparison):
        return _by_columns(parsed, Path(out), Path(results), full, command)
    return (_on_samples if parsed.low_resource else _on_sets)(parsed, Path(out), Path(results), full, command)


def _on_sets(recipe: SetComparison, out: Path, results: Path, full: bool, command: str) -> dict[str, Any]:
    comparison = open_comparison(recipe, results, full=full)
    fill(comparison, out / "work")
    # They take their time: another process may finish cells meanwhile.
    intrinsic = intrinsic_rows(comparison, recipe.encoder, out / "work") if recipe.encoder else []
    probed = probe(comparison, out / "work") if recipe.probes else []
    cells = read(comparison)
    layout = arrange(comparison, cells)
    tested = differences(layout)
    text = set_page.markdown(layout, tested, intrinsic, comparison.name, comparison.repeats)
    text += probes_section(comparison, layout, probed) if probed else ""
    text += _provenance(recipe, comparison, cells, command)
    if cells:
        figure.save(layout, tested, out)
    return _write(out, text, layout.cells.values(), set_page.csv_columns(layout), len(layout.missing()))


def _on_samples(recipe: SetComparison, out: Path, results: Path, full: bool, command: str) -> dict[str, Any]:
    if recipe.probes:
        raise recipes.RecipeError("low_resource: bias probes are of all rows, not of samples: leave one of the two out")
    comparison = open_comparison(recipe, results, full=full)
    samples = on_samples(comparison, recipe)
    fill(samples, out / "work")
    layout = arrange(samples, read(samples))
    all_rows = read(comparison)  # those that the recipe without `low_resource` left
    text = set_page.markdown_of_samples(layout, differences_by_size(layout), all_rows, comparison.name, comparison.repeats)
    text += _provenance(recipe, comparison, list(layout.cells.values()), command)
    lines = [{**cell, **key[1]._asdict()} for key, cell in layout.cells.items()]
    lines += [{**cell, "size": cell["train_rows"] - cell["counterfactuals"]} for cell in all_rows]
    if layout.cells:
        figure.store(lambda: figure.figure_of_sizes(layout, all_rows), out)
    return _write(out, text, lines, set_page.csv_columns(layout, samples=True), len(layout.missing()))


def _by_columns(recipe: ColumnComparison, out: Path, results: Path, full: bool, command: str) -> dict[str, Any]:
    comparison = open_comparison(recipe, results, full=full)
    fill(comparison, out / "work")
    report = column_page.make_report(comparison, read(comparison), recipe.report)
    layout, curves = report.layout, recipe.curves
    tested = differences(layout)
    text = column_page.markdown(comparison, report, tested, recipe, command)
    if curves:
        figure.store(lambda: figure.figure_of_curves(layout, curves), out)
    elif layout.cells:
        figure.save(layout, tested, out)
    return _write(out, text, report.cells, column_page.csv_columns(layout), len(report.missing))


def _write(out: Path, text: str, cells: Any, columns: Sequence[str], missing: int) -> dict[str, Any]:
    out.mkdir(parents=True, exist_ok=True)
    (out / "table.md").write_text(text, encoding="utf-8")
    (out / "table.csv").write_text(csv_text(cells, columns), encoding="utf-8")
    return {"table": str(out / "table.md"), "missing": missing}


def _provenance(recipe: SetComparison, comparison: Comparison, cells: Sequence[Cell], command: str) -> str:
    """The last section of the table: what it was made of."""
    sample, corpus = comparison.samples[0], recipe.train["corpus"]
    if recipe.low_resource:
        rows = f"class-balanced samples of {len(sample.train):,} rows of {corpus}; it sees no other row."
    else:
        rows = f"{len(sample.train):,} rows of {corpus}" + (
            f" (of {len(sample.rows):,}; its system was fitted on all)." if sample.take is not None else "."
        )
    lines = [
        f"Command: `{command}`.",
        f"Every method starts from the same {rows}",
        f"{recipe.key.capitalize()}: {json.dumps(recipe.training, ensure_ascii=False)}.",
    ]
    if cells:
        seconds = [cell["cpu_seconds"] for cell in cells]
        lines.append(
            "A cell is one training and one evaluation: "
            f"{statistics.median(seconds):.0f} CPU seconds in the median, {max(seconds):.0f} at most."
        )
        dropped = max(cell["counterfactuals_dropped"] for cell in cells)
        lines.append(
            f"Counterfactuals left out because an evaluation row has their {' or '.join(comparison.repeats)}: {dropped} at most."
        )
    return f"\n## How it was made\n\n{bullets([*lines, *recipe.notes])}\n"
