"""The table of the ablation in structure_tasks.py, from its finished cells alone: docs/generate.py writes it without the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from hfcf.metrics.shared.bootstrap import repeated_interval
from hfcf.studies.compare.results import Cells

VERSION = "2"
"""Raise it when the same rows and settings give other numbers: it is part of every cell; the table reads cells of this version."""
RESULTS = Path(__file__).parents[1] / "results" / "structure_tasks.jsonl"
COLUMNS = (
    "shown", "model", "passes", "seeds", "rows", "accuracy", "95 %", "one step", "more steps", "training rows (lowest)",
    "best rule on what is shown", "model where the rule errs", "task 2 less this",
)  # fmt: skip
Cell = Mapping[str, Any]


class Place(NamedTuple):
    """A line of trained models."""

    method: str
    model: str
    epochs: float


def lines(cells: Cells, full: str = "task 2") -> list[list[str]]:
    """List a line of `COLUMNS` for each arm with a seed that has all folds, then one for each shortcut of Task 1.

    Args:
        cells: of the benchmark.
        full: the arm that all arms are compared with.
    """
    every = [cell for cell in cells.every() if cell.get("versions") == {"structure_tasks": VERSION}]
    folds = {cell["fold"]: cell for cell in every if cell["kind"] == "rows"}
    rules = {cell["method"]: cell for cell in every if cell["kind"] == "rule"}
    runs: dict[Place, dict[int, dict[int, Cell]]] = {}
    for cell in every:
        if cell["kind"] == "run":
            place = Place(cell["method"], cell["model"], cell["epochs"])
            runs.setdefault(place, {}).setdefault(cell["seed"], {})[cell["fold"]] = cell
    whole = {place: {seed: part for seed, part in seeds.items() if set(part) == set(folds)} for place, seeds in runs.items()}
    groups, steps = ([value for fold in sorted(folds) for value in folds[fold][name]] for name in ("groups", "steps"))
    right = {place: {seed: _right(part) for seed, part in seeds.items()} for place, seeds in whole.items() if seeds}
    table = []
    for place, seeds in right.items():
        best = right.get(place._replace(method=full), {})
        both = sorted(set(best) & set(seeds))
        gains = [[one - other for one, other in zip(best[seed], seeds[seed], strict=True)] for seed in both]
        accuracy, low, high = repeated_interval(list(seeds.values()), groups)
        learned = [cell["train_accuracy"] for part in whole[place].values() for cell in part.values()]
        rule = rules[place.method]
        errs = [not right for right in rule["right"]]
        table.append([
            place.method, place.model, f"{place.epochs:g}", str(len(seeds)), str(len(groups)), f"{accuracy:.3f}", _to(low, high),
            *(_mean_where(seeds.values(), [(number > 1) == more for number in steps]) for more in (False, True)),
            f"{mean(learned):.3f} ({min(learned):.3f})", f"{1 - mean(errs):.3f} ({rule['rule']})",
            f"{_mean_where(seeds.values(), errs)} of {sum(errs)} rows" if any(errs) else "",
            "" if place.method == full or not both else _difference(*repeated_interval(gains, groups)),
        ])  # fmt: skip
    for cell in every:
        if cell["kind"] == "shortcut":
            numbers = [str(cell["rows"]), f"{cell['accuracy']:.3f}", _to(cell["low"], cell["high"])]
            table.append([cell["method"], "no model", "", "", *numbers, *[""] * 6])
    return table


def notes(cells: Cells) -> str:
    """Say on what machines, and with which versions, the cells of `lines` were made."""
    runs = [cell for cell in cells.every() if cell.get("kind") == "run" and cell["versions"] == {"structure_tasks": VERSION}]
    made = Counter(f"{cell['device']}, torch {cell['torch']}, transformers {cell['transformers']}" for cell in runs)
    return "; ".join(f"{number} trainings on {name}" for name, number in sorted(made.items()))


def _right(part: Mapping[int, Cell]) -> list[float]:
    """Return 1 where the answer to a row is right, else 0, fold after fold."""
    pairs = (zip(part[fold]["gold"], part[fold]["predicted"], strict=True) for fold in sorted(part))
    return [float(gold == predicted) for each in pairs for gold, predicted in each]


def _mean_where(seeds: Iterable[Sequence[float]], chosen: Sequence[bool]) -> str:
    values = [value for seed in seeds for value, use in zip(seed, chosen, strict=True) if use]
    return f"{mean(values):.3f}" if values else ""


def _to(low: float, high: float) -> str:
    return f"{low:.3f}–{high:.3f}"


def _difference(value: float, low: float, high: float) -> str:
    return f"{value:+.3f} ({low:+.3f} to {high:+.3f})".replace("-", "−")
