"""Cells of a comparison of relation classifiers as its tables and its bootstrap read them: of test rows, or of development rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hfcf.studies.compare.bootstrap import Array, Scorer
from hfcf.studies.compare.layout import Cell, Layout, lay_out
from hfcf.studies.compare.relation_columns import NONE
from hfcf.studies.compare.relations import RelationComparison, Wanted

# Of the scored rows, where a cell also has them of the development rows.
_SCORED = ("micro_f1", "macro_f1", "accuracy", "gold", "predicted", "correct", "rows", "ids")


@dataclass(frozen=True)
class Report:
    """What is told of a comparison.

    Args:
        rows: "test" or "dev".
        cells: in the order of the table, those of methods that made nothing among them.
        layout: those with scores.
        wanted: what is to be computed of the columns that are told of.
    """

    rows: str
    cells: list[Cell]
    layout: Layout
    wanted: tuple[Wanted, ...]

    @cached_property
    def empty(self) -> set[tuple[str, str]]:
        """Method and column where no counterfactual was made."""
        return {(cell["method"], cell["corpus"]) for cell in self.cells if cell.get("empty")}

    @cached_property
    def missing(self) -> list[Wanted]:
        """What is wanted and not there."""
        there = {(cell["method"], cell["corpus"], cell["seed"]) for cell in self.cells}
        return [one for one in self.wanted if one not in there]

    def state(self, method: str, column: str) -> str:
        """What stands where there is no score: "–" nothing was made, "·" nobody asked for it, "…" it is to come."""
        if (method, column) in self.empty:
            return "–"
        return "…" if any(one[:2] == (method, column) for one in self.wanted) else "·"


def report(comparison: RelationComparison, cells: Iterable[Cell], rows: str = "test") -> Report:
    """Check the cells against each other and put them in order.

    Args:
        comparison: whose they are.
        cells: from `hfcf.studies.compare.relations.read`.
        rows: "test"; or "dev": nothing then says what the test rows' scores are, so that settings can be chosen without them.
            Columns that share a classifier share its development rows: the first of them stands for all.
    """
    columns = {one.name: one.setting for one in comparison.columns}
    if rows == "dev":
        first = {comparison.together(one)[0].name for one in comparison.columns}
        columns = {name: setting for name, setting in columns.items() if name in first}
        cells = [_of_dev(cell) for cell in cells]
    cells = [cell for cell in cells if cell["corpus"] in columns]
    layout = lay_out(
        [cell for cell in cells if not cell.get("empty")], baseline=comparison.baseline,
        methods=[arm.name for arm in comparison.arms], seeds=comparison.seeds, corpora=columns,
        alone=columns,  # samples that share their test rows are no independent corpora: there is no average over them
    )  # fmt: skip
    return Report(rows, cells, layout, tuple(one for one in comparison.wanted if one[1] in columns))


def _of_dev(cell: Cell) -> dict[str, Any]:
    """A cell with the development rows in the place of the test rows.

    >>> _of_dev({"seed": 13, "micro_f1": 0.5, "dev": {"micro_f1": 0.6}})
    {'seed': 13, 'micro_f1': 0.6}
    """
    return {key: value for key, value in cell.items() if key not in (*_SCORED, "dev", "seen")} | cell.get("dev", {})


def _micro_f1(counts: Array, gold: NDArray[np.uint8], predicted: NDArray[np.uint8]) -> Array:
    """`hfcf.metrics.scores.relation.micro_f1` of samples, given as counts of kinds of rows, × models.

    >>> gold, predicted = np.frombuffer(b"aab-", np.uint8), np.frombuffer(b"ac--", np.uint8)[None]
    >>> _micro_f1(np.ones((1, 4)), gold, predicted).round(4).tolist()
    [[[0.4]]]
    """
    none = ord(NONE)
    related, said = (gold != none).astype(float), (predicted != none).astype(float)
    right = (predicted == gold) * related
    return np.stack([2 * (counts @ right.T) / np.maximum((counts @ related)[:, None] + counts @ said.T, 1)])


MICRO = Scorer(("micro_f1",), _micro_f1)
