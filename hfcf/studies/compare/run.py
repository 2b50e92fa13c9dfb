"""`hfcf compare`: from a comparison recipe to its tables, and to its figure."""

from __future__ import annotations

import json
import shlex
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hfcf.core import recipe as recipes

KINDS = ("verifiers", "rationales", "relations")
_NEEDED = {"train", "methods", "verifier", "encoder", "evaluate", "seeds"}
_KEYS = _NEEDED | {
    "compare",
    "name",
    "preset",
    "data_dir",
    "split",
    "seed",
    "take",
    "system",
    "settings",
    "ways",
    "baseline",
    "evaluate_take",
    "low_resource",
    "probes",
    "notes",
}


def compare(
    recipe: str | Path, out: str | Path, *, changes: Sequence[str] = (), results: str | Path = "results", full: bool = False
) -> dict[str, Any]:
    """Run a comparison recipe; run again it goes on where it stopped, and what is finished is only read.

    `compare: verifiers` trains a verifier for each method and seed and scores it on each corpus. Started twice with the same
    arguments, two processes share the work. Written to `out`: `table.md`, `table.csv`, `figure.svg`, `figure.png`.

    With `low_resource` each verifier is trained on each of some small samples of the training rows; see
    `hfcf.studies.compare.low_resource`. With `probes` the table says how much the claims give away; see
    `hfcf.studies.compare.probes`.

    `compare: rationales` scores explainers; see `hfcf.studies.compare.rationales`. `compare: relations` trains relation
    classifiers; see `hfcf.studies.compare.relations`.

    Args:
        recipe: a file, or the name of a recipe that ships with the library.
        out: the folder.
        changes: "key=value" strings, as `--set` takes them.
        results: the folder of the finished cells: `<results>/<name of the recipe>/*.json`.
        full: all training and evaluation rows, whatever `take` and `evaluate_take` say; of
            relations, all cells, whatever `run` says.

    Returns:
        `table`, the file, and `missing`, how many cells are not there yet (another process has them).

    Raises:
        RecipeError: an unknown key, or one that is missing.
    """
    path = recipes.find(str(recipe))
    content = recipes.read(path, changes)
    if content.get("compare") not in KINDS:
        raise recipes.RecipeError(f"{path.name}: compare: choose one of {', '.join(KINDS)}")
    if content["compare"] == "rationales":
        from hfcf.studies.compare.rationales import rationale_table

        rationale_table(content, Path(out), full=full)
        return {"table": str(Path(out) / "rationales.md"), "missing": 0}
    content.setdefault("name", path.stem)
    given = ["hfcf", "compare", str(recipe), "--out", str(out), *(part for one in changes for part in ("--set", one))]
    command = shlex.join([*given, *(["--full"] if full else [])])
    if content["compare"] == "relations":
        return _relations(content, Path(out), Path(results), full, command)
    recipes.check(content, _KEYS, path.name)
    if absent := sorted(_NEEDED - set(content)):
        raise recipes.RecipeError(f"{path.name}: the key {absent[0]!r} is missing")
    chosen = _low_resource if content.get("low_resource") else _verifiers
    return chosen(content, Path(out), Path(results), full, command)


def _verifiers(recipe: Mapping[str, Any], out: Path, results: Path, full: bool, command: str) -> dict[str, Any]:
    from hfcf.studies.compare.figure import save
    from hfcf.studies.compare.intrinsic import intrinsic_rows
    from hfcf.studies.compare.layout import lay_out
    from hfcf.studies.compare.probe_tables import probes_section
    from hfcf.studies.compare.probes import probe
    from hfcf.studies.compare.stats import differences
    from hfcf.studies.compare.table import long_csv, markdown
    from hfcf.studies.compare.verifiers import fill, open_comparison, read

    comparison = open_comparison(recipe, results, full=full)
    work = out / "work"
    fill(comparison, work)
    intrinsic = intrinsic_rows(comparison, work)  # takes its time: another process may finish cells meanwhile
    probed = probe(comparison, work) if recipe.get("probes") else []
    cells = read(comparison)
    layout = lay_out(
        cells,
        baseline=recipe.get("baseline", comparison.arms[0].name),
        methods=[arm.name for arm in comparison.arms],
        seeds=comparison.seeds,
        corpora={one.name: one.setting for one in comparison.sets},
        alone=[one.name for one in comparison.sets if not one.averaged],
    )
    found = differences(layout)
    out.mkdir(parents=True, exist_ok=True)
    text = markdown(layout, found, intrinsic=intrinsic, title=comparison.name)
    if probed:
        text += probes_section(comparison, layout, probed)
    (out / "table.md").write_text(text + _made(recipe, comparison, cells, command), encoding="utf-8")
    (out / "table.csv").write_text(long_csv(layout), encoding="utf-8")
    if cells:
        save(layout, found, out)
    return {"table": str(out / "table.md"), "missing": len(layout.missing())}


def _low_resource(recipe: Mapping[str, Any], out: Path, results: Path, full: bool, command: str) -> dict[str, Any]:
    from hfcf.studies.compare.figure import store
    from hfcf.studies.compare.low_resource import differences_by_size, lay_out_samples, open_samples, rows_of_csv
    from hfcf.studies.compare.low_resource_figure import figure
    from hfcf.studies.compare.low_resource_table import CSV_COLUMNS, markdown
    from hfcf.studies.compare.table import csv_of
    from hfcf.studies.compare.verifiers import fill, open_comparison, read

    if recipe.get("probes"):
        raise recipes.RecipeError("low_resource: bias probes are of all rows, not of samples: leave one of the two out")
    comparison = open_comparison(recipe, results, full=full)
    parts = open_samples(comparison, recipe["low_resource"])
    for part in parts:
        fill(part, out / "work")
    layout = lay_out_samples(parts, recipe.get("baseline", comparison.arms[0].name))
    of_all = read(comparison)  # those that the recipe without `low_resource` left
    found = differences_by_size(layout)
    out.mkdir(parents=True, exist_ok=True)
    text = markdown(layout, found, of_all, title=comparison.name)
    (out / "table.md").write_text(text + _made(recipe, comparison, [*layout.cells.values()], command), encoding="utf-8")
    (out / "table.csv").write_text(csv_of(rows_of_csv(layout, of_all), CSV_COLUMNS), encoding="utf-8")
    if layout.cells:
        store(lambda: figure(layout, of_all), out)
    return {"table": str(out / "table.md"), "missing": len(layout.missing())}


def _relations(recipe: Mapping[str, Any], out: Path, results: Path, full: bool, command: str) -> dict[str, Any]:
    from hfcf.studies.compare.figure import save, store
    from hfcf.studies.compare.relation_figure import figure
    from hfcf.studies.compare.relation_layout import MICRO, report
    from hfcf.studies.compare.relation_table import CSV_COLUMNS, markdown
    from hfcf.studies.compare.relations import fill, open_relations, read
    from hfcf.studies.compare.stats import differences
    from hfcf.studies.compare.table import csv_of

    comparison = open_relations(recipe, results, full=full)
    fill(comparison, out / "work")
    told = report(comparison, read(comparison), recipe.get("report", "test"))
    found = differences(told.layout, scorer=MICRO)
    out.mkdir(parents=True, exist_ok=True)
    (out / "table.md").write_text(markdown(comparison, told, found, recipe, command), encoding="utf-8")
    (out / "table.csv").write_text(csv_of(told.cells, CSV_COLUMNS), encoding="utf-8")
    if recipe.get("curves"):
        store(lambda: figure(told.layout, recipe["curves"]), out)
    elif told.layout.cells:
        save(told.layout, found, out, "micro_f1")
    return {"table": str(out / "table.md"), "missing": len(told.missing)}


def _made(recipe: Mapping[str, Any], comparison: Any, cells: Sequence[Mapping[str, Any]], command: str) -> str:
    """The last section of the table: what it was made of."""
    hp = recipe["verifier"]
    if recipe.get("low_resource"):
        rows = f"class-balanced samples of {len(comparison.originals):,} rows of {recipe['train']['corpus']}; it sees no other row."
    else:
        rows = f"{len(comparison.originals):,} rows of {recipe['train']['corpus']}" + (
            f" (of {len(comparison.rows):,}; its system was fitted on all)." if comparison.take is not None else "."
        )
    lines = [
        f"Command: `{command}`.",
        f"Every method starts from the same {rows}",
        f"Verifier: {json.dumps(hp, ensure_ascii=False)}.",
    ]
    if cells:
        seconds = [cell["cpu_seconds"] for cell in cells]
        lines.append(
            "A cell is one training and one evaluation: "
            f"{statistics.median(seconds):.0f} CPU seconds in the median, {max(seconds):.0f} at most."
        )
        dropped = max(cell["counterfactuals_dropped"] for cell in cells)
        lines.append(f"Counterfactuals left out because an evaluation row has their claim or evidence: {dropped} at most.")
    return "\n## How it was made\n\n" + "\n".join(f"- {line}" for line in [*lines, *recipe.get("notes", [])]) + "\n"
