"""The cells of a comparison in the order of the tables, and all their numbers as one long table."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

from pandas import DataFrame

from hfcf.core.trainer import Scorer
from hfcf.studies.compare.recipe import SETTINGS
from hfcf.studies.compare.results import NESTED
from hfcf.training.scorers import VERDICTS

Cell = Mapping[str, Any]
"""The results of one method × seed × corpus, as `hfcf.studies.compare.results.Cells` has them."""

_ABOUT = ("recipe", "method", "corpus", "setting", "seed", "size", "sample", "ids")  # the columns that identify a cell


class SampleTraining(NamedTuple):
    """One training of a method on a small sample: the size of the sample, its number, and the seed."""

    size: int
    sample: int
    seed: int

    def __str__(self) -> str:
        return f"{self.size:,} rows, sample {self.sample}, seed {self.seed}"


Seed = Any
"""What identifies the trainings of a method, in order: the seed, or a `SampleTraining` on a small sample."""


def long_table(cells: Iterable[Cell]) -> DataFrame:
    """Return a row for each number of each cell; `table.csv` is this table."""
    lines = [
        [*(cell.get(column) for column in _ABOUT), metric, value]
        for cell in (
            ({**cell, **cell["seed"]._asdict()} if isinstance(cell.get("seed"), SampleTraining) else cell) for cell in cells
        )
        for metric, value in cell.items()
        if metric not in _ABOUT and isinstance(value, int | float) and not isinstance(value, bool)
    ]
    return DataFrame(lines, columns=[*_ABOUT, "metric", "value"], dtype=object)


@dataclass(frozen=True)
class Grid:
    """Which methods, seeds and corpora a table has, and the cells with answers.

    `corpora` holds the setting of each corpus, settings in the order of `SETTINGS`; `cells` is keyed by method, seed and corpus.
    `alone` are the corpora that count in no average; `scorer` rates the answers. `empty` are methods and corpora without a
    counterfactual, where nothing is trained; `missing` are requested cells that are not there.
    """

    methods: tuple[str, ...]
    seeds: tuple[Seed, ...]
    corpora: Mapping[str, str]
    baseline: str
    cells: Mapping[tuple[str, Seed, str], Cell]
    alone: frozenset[str] = frozenset()
    scorer: Scorer = VERDICTS
    empty: frozenset[tuple[str, str]] = frozenset()
    missing: tuple[tuple[str, Seed, str], ...] = ()

    @property
    def compared(self) -> list[str]:
        """The methods that are compared with the baseline."""
        return [method for method in self.methods if method != self.baseline]

    def of(self, method: str, corpus: str) -> dict[Seed, Cell]:
        """Return a method's cells on a corpus, by seed."""
        return {seed: self.cells[method, seed, corpus] for seed in self.seeds if (method, seed, corpus) in self.cells}

    def about(self, corpus: str) -> list[Cell]:
        """Return all cells of a corpus."""
        return [cell for (_, _, name), cell in self.cells.items() if name == corpus]

    def sources(self, corpus: str) -> list[Hashable] | None:
        """Return what the rows of a paired set were made of: rows of one source are not independent. None: rows are."""
        cells = self.about(corpus)
        return cells[0].get("sources") if cells else None

    def independent(self, corpus: str) -> int:
        """Count the independent rows of a corpus: its sources, else its rows."""
        sources = self.sources(corpus)
        return len(self.about(corpus)[0]["gold"]) if sources is None else len(set(sources))

    @cached_property
    def long(self) -> DataFrame:
        """All numbers of the cells, one a row."""
        return long_table(self.cells.values())

    def values(self, metric: str) -> DataFrame:
        """Return the rows of a metric, the values as floats."""
        return self.long[self.long["metric"] == metric].astype({"value": float})

    def by_size(self) -> dict[int | None, Grid]:
        """Return a grid for each size of the small samples, ascending; without samples the grid itself under None."""
        parts: dict[int | None, Grid] = {}
        for size in sorted({seed.size for seed in self.seeds if isinstance(seed, SampleTraining)}):
            seeds = tuple(seed for seed in self.seeds if seed.size == size)
            parts[size] = replace(self, seeds=seeds, cells={key: cell for key, cell in self.cells.items() if key[1] in seeds})
        return parts or {None: self}


def make_grid(
    cells: Iterable[Cell], baseline: str, methods: Sequence[str] | None = None, seeds: Sequence[Seed] | None = None,
    corpora: Mapping[str, str] | None = None, scorer: Scorer = VERDICTS, missing: Iterable[tuple[str, Seed, str]] = (),
) -> Grid:  # fmt: skip
    """Check cells against each other and order them; methods, seeds and corpora that are given may lack cells."""
    cells = _in_same_letters(list(cells), scorer)
    first: dict[str, Cell] = {}
    for cell in cells:
        first.setdefault(cell["corpus"], cell)
    methods = tuple(dict.fromkeys([baseline, *(cell["method"] for cell in cells)] if methods is None else methods))
    seeds = sorted({cell["seed"] for cell in cells}) if seeds is None else seeds
    corpora = {corpus: cell["setting"] for corpus, cell in first.items()} if corpora is None else corpora
    if baseline not in methods:
        raise ValueError(f"the baseline {baseline!r} is not one of the methods {', '.join(methods)}")
    if unknown := set(corpora.values()) - set(SETTINGS):
        raise ValueError(f"{', '.join(sorted(unknown))}: unknown setting; the settings are {', '.join(SETTINGS)}")
    placed: dict[tuple[str, Seed, str], Cell] = {}
    for cell in cells:
        key = (cell["method"], cell["seed"], cell["corpus"])
        if key in placed:
            raise ValueError(f"{_name(cell)} comes twice")
        if cell["method"] not in methods or cell["seed"] not in seeds or corpora.get(cell["corpus"]) != cell["setting"]:
            raise ValueError(f"{_name(cell)} ({cell['setting']}) is not in the table")
        if not cell.get("empty"):
            _check(cell, first[cell["corpus"]])
        placed[key] = cell
    by_setting = dict(sorted(corpora.items(), key=lambda item: SETTINGS.index(item[1])))
    order = [key for key in product(methods, seeds, by_setting) if key in placed]
    scored = {key: placed[key] for key in order if not placed[key].get("empty")}
    empty = frozenset((method, corpus) for method, seed, corpus in order if (method, seed, corpus) not in scored)
    alone = frozenset(corpus for corpus, cell in first.items() if not cell.get("averaged", True))
    return Grid(methods, tuple(seeds), by_setting, baseline, scored, alone, scorer, empty, tuple(missing))


def _in_same_letters(cells: Sequence[Cell], scorer: Scorer) -> list[Cell]:
    """Write the answers to each set in the same letters: those of a cell depend on the labels of all sets that it was made with."""
    found: dict[str, list[Mapping[str, str]]] = {}
    for cell in cells:
        if cell.get("letters"):
            found.setdefault(cell["corpus"], []).append(cell["letters"])
    common = {
        corpus: scorer.letters({label for each in letters for label in each}) or {}
        for corpus, letters in found.items() if any(each != letters[0] for each in letters)
    }  # fmt: skip
    return [
        _rewritten(cell, common[cell["corpus"]]) if cell["corpus"] in common and cell.get("letters") else cell for cell in cells
    ]


def _rewritten(cell: Cell, letters: Mapping[str, str]) -> Cell:
    """Return a cell with its answers, and those to its originals, in other letters."""
    table = str.maketrans({old: letters[label] for label, old in cell["letters"].items()})
    texts = {name: cell[name].translate(table) for name in ("gold", "predicted")}
    nested = {
        name: _rewritten(cell[name], letters)
        for name in NESTED
        if isinstance(cell.get(name), Mapping) and cell[name].get("letters")
    }
    return {**cell, **texts, **nested, "letters": letters}


def _name(cell: Cell) -> str:
    return f"the cell {cell['method']} × {cell['seed']} × {cell['corpus']}"


def _check(cell: Cell, first: Cell) -> None:
    gold, predicted = cell["gold"], cell["predicted"]
    if not gold:
        raise ValueError(f"{_name(cell)} has no rows")
    if len(gold) != len(predicted):
        raise ValueError(f"{_name(cell)} contradicts itself: it has {len(predicted)} answers to {len(gold)} rows")
    if cell["ids"] != first["ids"] or gold != first.get("gold", gold):
        raise ValueError(f"{_name(cell)} has other rows (ids {cell['ids']}) than {_name(first)} (ids {first['ids']})")
