"""The page of a comparison, wholly from its stored cells and its recipe."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from hfcf.core import recipe as recipes
from hfcf.studies.compare import column_page, page, pair_page, tables
from hfcf.studies.compare.recipe import ColumnComparison
from hfcf.studies.compare.stats import LEVEL
from hfcf.studies.compare.stored import Stored
from parts import comparisons, markdown, summary
from parts.paths import ROOT
from parts.plots import picture


def write(name: str) -> str:
    """Return the page of a comparison; its tables have the marks of older cells."""
    part = comparisons.stored(name)
    sections = [
        f"# {title(name)}",
        f"<!-- generated: cells_{name} -->\n\n{comparisons.cells_note(name)}\n\n<!-- end -->",
        about(name, part),
        picture(f"gains_{name}"),
        *_curves(name, part),
        *_differences(name, part),
        *_scores(name, part),
        *_pairs(name, part),
        *_paper(part),
        *_rows(part),
        *(["## Intrinsic scores", page.intrinsic_table(part.intrinsic)] if part.intrinsic else []),
        "## How it was made",
        tables.bullets([*page.costs(part.cells, "an evaluation", ["text"]), *part.recipe.notes]),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def title(name: str) -> str:
    """Return what a recipe's second line says that it is, and its name.

    >>> title("compare_ccg_full")
    "CCG's Table 6, the conventional setting (compare_ccg_full)"
    """
    line = (ROOT / "recipes" / f"{name}.yaml").read_text(encoding="utf-8").splitlines()[1].removeprefix("# ")
    return f"{re.split(': |, as |[.] ', line, maxsplit=1)[0]} ({name})"


def comparisons_table() -> str:
    """List the comparisons with a page: what they repeat, their model, rows and seeds, when they were stored."""
    rows = []
    for name in comparisons.compared():
        part = comparisons.stored(name)
        cells = part.cells
        old = sum(bool(cell["age"]) for cell in cells)
        lines = sorted({cell["train_rows"] for cell in cells if cell["method"] == part.grid.baseline})
        rows.append(
            (
                f"[{title(name)}]({name}.md)",
                f"{len(part.grid.methods)} × {len(part.grid.corpora)}",
                "–".join(f"{n:,}" for n in dict.fromkeys((lines[0], lines[-1]))),
                str(len({getattr(seed, "seed", seed) for seed in part.grid.seeds})),
                comparisons.stored_on(name),
                f"{old} of {len(cells)}" if old else "none",
            )
        )
    header = ("comparison", "methods × sets", "rows of the baseline's training", "seeds", "stored", "cells of older code")
    return markdown.table(header, rows)


def gains() -> str:
    """Return the plots of the comparisons that the summary has."""
    names = [name for name, *_ in summary.SYSTEMS.values() if name in comparisons.compared()]
    return "\n\n".join(f"[{title(name)}]({name}.md)\n\n{picture(f'gains_{name}')}" for name in names)


def about(name: str, part: Stored) -> str:
    """Return what was compared: the cells, seeds and training, and how to repeat it."""
    grid, trained = part.grid, Counter(cell["train_rows"] for cell in part.cells if cell["method"] == part.grid.baseline)
    rows = " or ".join(f"{n:,}" for n in sorted(trained))
    seeds = list(dict.fromkeys(getattr(seed, "seed", seed) for seed in grid.seeds))
    samples = f", on {len({seed.sample for seed in grid.seeds})} samples of each size" if None not in grid.by_size() else ""
    model = part.recipe.training.get("model")
    model = f"{model['name']} with {model['adapter']}" if isinstance(model, dict) else model
    lines = [
        ["stored", comparisons.stored_on(name)],
        ["cells", f"{len(part.cells):,} of {len(grid.methods)} methods and {len(grid.corpora)} evaluation sets"],
        ["seeds", f"{', '.join(map(str, seeds))}{samples}"],
        ["rows of the baseline's training", rows],
        ["model that is trained", f"`{model}`"],
        ["preset", f"`{part.recipe.preset}`"],
        ["again", f"`{command(name, part.recipe.preset)}`"],
    ]
    missing = tables.partial(grid.missing(), len(grid.cells) + len(grid.missing()), "cells (method × seed × set)")
    return "\n\n".join([tables.table(["", ""], lines), *([missing] if missing and grid.missing() else [])])


def command(name: str, preset: str) -> str:
    """Return the command on a recipe's first line, with the preset."""
    line = recipes.find(name).read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
    return line if f"preset={preset}" in line else f"{line} --set preset={preset}"


def _differences(name: str, part: Stored) -> Iterator[str]:
    grid, found = part.grid, comparisons.differences_of(name)
    on_samples = None not in grid.by_size()
    for metric in grid.scorer.compared:
        yield f"## {grid.scorer.metrics[metric]}: difference from {grid.baseline}"
        for size, of_size in grid.by_size().items():
            if size:
                yield f"### {size:,} rows"
            yield tables.intervals(of_size, [each for each in found if each.size == size], metric)
    yield tables.bullets([*(page.legend_of_samples(grid, found, ()) if on_samples else page.legend(grid, found)), grid.scorer.note])


def _scores(name: str, part: Stored) -> Iterator[str]:
    grid, found = part.grid, comparisons.differences_of(name)
    for metric, heading in grid.scorer.metrics.items():
        yield f"## {heading} (%)"
        yield from page.by_size(grid, metric, found, ()) if None not in grid.by_size() else [page.by_corpus(grid, metric, found)]


def _curves(name: str, part: Stored) -> Iterator[str]:
    if None not in part.grid.by_size():
        yield picture(f"curves_{name}")


def _pairs(name: str, part: Stored) -> Iterator[str]:
    """Return the tables of paired sets, as RGF's Table 5 has them."""
    if (paired := comparisons.grids(name).get("pairs")) is None:
        return
    found, columns = comparisons.differences_of(name, "pairs"), {corpus: corpus for corpus in paired.corpora}
    yield "## Pairwise consistency (%)"
    spoken = (
        f"Intervals: {LEVEL:.0%}, percentiles over sources and seeds drawn again, paired. "
        "Rows whose originals have the same true and predicted answers count as one source."
    )
    yield tables.bullets([paired.scorer.note, spoken])
    for metric, heading in paired.scorer.metrics.items():
        texts = tables.score_texts(paired.values(metric), "corpus", len(paired.seeds), older=paired.older)
        yield f"### {heading} (%)"
        yield tables.pivot(texts, paired.methods, columns)
    yield f"### Consistency: difference from {paired.baseline}"
    yield tables.intervals(paired, found, pair_page.CONSISTENCY)


def _paper(part: Stored) -> Iterator[str]:
    paper = getattr(part.recipe, "paper", None)
    if paper and paper.scores:
        yield "## The paper's figures"
        yield tables.bullets([paper.about])
        yield column_page.paper_scores(paper.scores)


def _rows(part: Stored) -> Iterator[str]:
    """Return the rows that were trained on, and those that were scored."""
    grid = part.grid
    yield "## Rows"
    if isinstance(part.recipe, ColumnComparison):
        added = {(cell["method"], cell["corpus"]): f"{cell['counterfactuals']:,}" for cell in part.cells if cell["counterfactuals"]}
        first = ["*training rows*", *(_training_rows(part, corpus) for corpus in grid.corpora)]
        yield "Counterfactuals that were trained on:"
        yield tables.pivot(added, grid.compared, {corpus: corpus for corpus in grid.corpora}, first)
    else:
        yield page.training_rows(grid.by_size())
    labelled = [corpus for corpus in grid.corpora if tables.has_labels(grid, corpus)]
    header = ["Evaluation set", "Setting", "Rows scored", *(["By label"] if labelled else [])]
    lines = [
        [corpus, setting, tables.spread(grid.about(corpus), "rows"), *([_labels(part, corpus)] if labelled else [])]
        for corpus, setting in grid.corpora.items()
    ]
    yield tables.table(header, lines)


def _training_rows(part: Stored, corpus: str) -> str:
    return tables.spread(
        [cell for cell in part.cells if (cell["method"], cell["corpus"]) == (part.grid.baseline, corpus)], "train_rows"
    )


def _labels(part: Stored, corpus: str) -> str:
    """Count the true labels of a set, the commonest first."""
    first = part.grid.about(corpus)[0]
    names = {letter: label for label, letter in first["letters"].items()}
    counts = Counter(names[letter] for letter in first["gold"])
    return ", ".join(f"{n:,} {label}" for label, n in counts.most_common(4)) + (" …" if len(counts) > 4 else "")
