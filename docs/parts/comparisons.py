"""What is stored of comparisons: their cells, and the differences that take minutes to compute."""

from __future__ import annotations

import json
import re
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from hfcf.studies.compare.age import age_notes
from hfcf.studies.compare.frame import Grid, Training
from hfcf.studies.compare.pair_page import pair_grid
from hfcf.studies.compare.results import digest
from hfcf.studies.compare.stats import Difference, differences
from hfcf.studies.compare.stored import Stored, read_stored
from hfcf.studies.compare.tables import difference_text, points
from parts.paths import RESULTS

DATES = RESULTS / "dates.json"
DIFFERENCES = RESULTS / "differences.json"
"""Differences by comparison, with a hash of the cells that they are of."""


OWN_TABLES = ("compare_checkwhy",)
"""Comparisons whose page is written from tables of their own."""


def compared() -> list[str]:
    """List the comparisons that have stored cells."""
    return sorted(path.stem for path in RESULTS.glob("compare_*.jsonl") if path.stem not in OWN_TABLES)


@cache
def stored(name: str) -> Stored:
    """Read a comparison's newest cells."""
    return read_stored(name, RESULTS)


def cells_note(name: str) -> str:
    """Say which versions of the code made the newest stored cells of a comparison, of the methods that its recipe has today."""
    cells, of = stored(name).cells, f"`results/{name}.jsonl`"
    notes = age_notes(cells)
    return "\n".join(f"{note} ({of})" for note in notes) or f"All {len(cells)} cells of {of} are of today's versions of the code."


# --- dates


def compute_dates() -> str:
    """Return `dates.json`: until when the cells were stored that do not say it themselves, and how many these are.

    New cells without a date get today's.
    """
    kept = _read(DATES)
    found = {}
    for name in compared():
        lines = map(json.loads, (RESULTS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines())
        undated = sum("cell" in line and "date" not in line for line in lines)
        old = kept.get(name, {})
        found[name] = old if old.get("undated") == undated else {"undated": undated, "until": date.today().isoformat()}
    return json.dumps(found, indent=1) + "\n"


def stored_on(name: str) -> str:
    """Say when the shown cells of a comparison were stored."""
    cells, until = stored(name).cells, _read(DATES).get(name, {}).get("until")
    dates = {str(cell.get("date", until)) for cell in cells}
    return " to ".join(dict.fromkeys((min(dates), max(dates))))


# --- differences


def key(grid: Grid) -> str:
    """Return a hash of all that differences depend on."""
    cells = [[*map(str, place), digest([cell["gold"], cell["predicted"]])] for place, cell in grid.cells.items()]
    return digest(
        [cells, grid.baseline, dict(grid.corpora), sorted(grid.alone), {name: digest(of) for name, of in grid.sources.items()}]
    )


def grids(name: str) -> dict[str, Grid]:
    """Return the grid of a comparison, and under "pairs" that of its paired sets, if it has any."""
    grid = stored(name).grid
    paired = pair_grid(grid, grid.sources)
    return {"": grid, **({"pairs": paired} if paired.cells else {})}


def compute_differences() -> str:
    """Return `differences.json` with what is missing or of other cells computed anew."""
    kept, found = _read(DIFFERENCES), {}
    for name in compared():
        for part, grid in grids(name).items():
            title, hashed = f"{name}.{part}".rstrip("."), key(grid)
            old = kept.get(title, {})
            found[title] = old if old.get("cells") == hashed else {"cells": hashed, "differences": _lines(differences(grid))}
    return _dump(found)


def _lines(found: list[Difference]) -> list[list[Any]]:
    return [
        [[*d[:4]], [[*s] if isinstance(s, Training) else s for s in d.seeds], *(round(n, 5) for n in d[5:10]), d[10]] for d in found
    ]


def _dump(found: dict[str, Any]) -> str:
    """Return JSON with a line for each difference."""
    parts = []
    for name, content in found.items():
        lines = ",\n  ".join(json.dumps(line, ensure_ascii=False) for line in content["differences"])
        parts.append(f' {json.dumps(name)}: {{"cells": "{content["cells"]}", "differences": [\n  {lines}\n ]}}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def differences_of(name: str, part: str = "") -> list[Difference]:
    """Return the stored differences of a comparison."""
    content = _read(DIFFERENCES).get(f"{name}.{part}".rstrip("."), {"differences": []})
    found = []
    for (method, metric, setting, corpus), seeds, *numbers in content["differences"]:
        trainings = tuple(Training(*seed) if isinstance(seed, list) else seed for seed in seeds)
        found.append(Difference(method, metric, setting, corpus, trainings, *numbers))
    return found


def _read(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


# --- figures


def slug(name: str) -> str:
    """Return a name as keys have it: letters and digits, in lower case, with `_` between them.

    >>> slug("w/ (c, E′, REF)"), slug("Symmetric v0.1")
    ('w_c_e_ref', 'symmetric_v0_1')
    """
    return re.sub(r"[\W_]+", "_", name.lower()).strip("_")


def _place(difference: Difference) -> str:
    return slug(difference.corpus or f"average {difference.setting or ''}")


@cache
def figures(name: str) -> dict[str, str]:
    """Return the figures of a comparison by METHOD.CORPUS.FIELD; on small samples METHOD.CORPUS.SIZE.FIELD.

    Fields: each metric and `deviation`; `gain`, `gain_interval` and `gain_text` of the first metric, and with `METRIC_` before
    them of the others. `METHOD.CORPUS.added` and `METHOD.added` count the counterfactuals that were trained on.
    """
    part = stored(name)
    metrics, found = part.grid.scorer.metrics, dict[str, str]()
    for size, grid in part.grid.by_size().items():
        inside = f".{size}" if size else ""
        for metric in metrics:
            values = grid.values(metric)
            for (method, corpus), own in values.groupby(["method", "corpus"])["value"]:
                place = f"{slug(str(method))}.{slug(str(corpus))}{inside}"
                found[f"{place}.{metric}"] = points(own.mean())
                if metric == grid.scorer.compared[0]:
                    found[f"{place}.deviation"] = points(own.std()) if len(own) > 1 else "–"
    for paired in (False, True):
        for difference in differences_of(name, "pairs" if paired else ""):
            first = not paired and difference.metric == part.grid.scorer.compared[0]
            place = f"{slug(difference.method)}.{_place(difference)}" + (f".{difference.size}" if difference.size else "")
            found |= {
                f"{place}.{'' if first else f'{slug(difference.metric)}_'}{field}": text
                for field, text in _gain(difference).items()
            }
    for cell in part.cells:
        if "size" not in cell:
            method, corpus = slug(cell["method"]), slug(cell["corpus"])
            found |= dict.fromkeys([f"{method}.added", f"{method}.{corpus}.added"], f"{cell['counterfactuals']:,}")
    about = {"seeds": len(part.grid.seeds), "cells": len(part.cells), "corpora": len(part.grid.corpora)}
    return found | {name: f"{number:,}" for name, number in about.items()}


def _gain(difference: Difference) -> dict[str, str]:
    text = difference_text(difference)
    value, _, interval = text.partition(" ")
    return {"gain": value, "gain_interval": interval.removesuffix(r"\*"), "gain_text": text}


@cache
def paper_figures(name: str) -> dict[str, str]:
    """Return the paper's own scores that a recipe states, by METHOD.COLUMN."""
    paper = getattr(stored(name).recipe, "paper", None)
    scores = (paper and paper.scores) or {}
    return {f"{slug(method)}.{slug(column)}": text for method, own in scores.items() for column, text in own.items()}
