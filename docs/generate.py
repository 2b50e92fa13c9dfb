"""Write what repeats the code or the results: `make docs`, or `python docs/generate.py [--check]`.

A part of a page between `<!-- generated: NAME -->` and `<!-- end -->` is written by `TABLES[NAME]`; a figure in a sentence is
`<!-- n: KEY -->VALUE<!-- /n -->`, with a key of `parts.figures`. `hfcf/hub/rated_pairs.json` counts what
`results/rated_pairs.jsonl` has. A test fails where one is stale.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from parts import (
    bench,
    checkwhy,
    columns,
    comparisons,
    corpora,
    extras,
    figures,
    meanings,
    metrics,
    plots,
    ratings,
    reference,
    settings,
    systems,
)
from parts.paths import ROOT

from hfcf.core.task import tasks

_BLOCK = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

TABLES: dict[str, Callable[[], str]] = {
    "checkpoints": corpora.checkpoints_table,
    "extras": extras.extras_table,
    "offline_models": settings.offline_models_table,
    "model_fields": settings.model_fields_table,
    "shared_settings": settings.shared_list,
    **{f"settings_{name}": partial(settings.settings_list, name) for name, _ in systems.systems(baselines=False)},
    "structure_ablation": checkwhy.ablation_table,
    "compare_crossaug": comparisons.crossaug_table,
    "compare_crossaug_larger": partial(comparisons.crossaug_table, comparisons.LARGER),
    "compare_crossaug_controls": comparisons.crossaug_controls_table,
    "compare_crossaug_worth": comparisons.worth_table,
    "compare_race": comparisons.race_table,
    "compare_race_controls": comparisons.race_controls_table,
    "compare_rgf": comparisons.rgf_table,
    "compare_rgf_controls": comparisons.rgf_controls_table,
    "compare_ccg": comparisons.ccg_table,
    "compare_ccg_controls": comparisons.ccg_controls_table,
    "compare_ccg_worth": comparisons.ccg_worth_table,
    "compare_reviews": comparisons.reviews_table,
    "compare_reviews_controls": comparisons.reviews_controls_table,
    "compare_reviews_worth": comparisons.reviews_worth_table,
    "systems": systems.systems_table,
    "baselines": systems.baselines_table,
    "endpoints": systems.endpoints_table,
    "columns": columns.columns_table,
    "provenance": columns.provenance_table,
    "scores": meanings.scores_table,
    "metrics": metrics.metrics_table,
    "tasks": columns.tasks_table,
    **reference.TABLES,
    "checks": bench.checks,
    "examples": bench.examples,
    "judges": bench.judges,
    "bibtex": systems.bibtex,
    "headline": ratings.headline_table,
    "rated_pairs": ratings.rated_table,
    "speed": bench.speed,
    **{f"bench_{name}": partial(bench.printed, name) for name in bench.stored() if name in bench.OWN_PAGE},
    **{f"plot_{name}": partial(plots.picture, name) for name in plots.plots()},
    "own_files": corpora.own_files_table,
    **{f"corpora_{task}": partial(corpora.corpora_table, task) for task in tasks()},
}


def files() -> dict[str, Callable[[Path], str]]:
    """Return what makes each file that is written wholly, given the file as it is; results come first."""
    return {"hfcf/hub/rated_pairs.json": lambda _: ratings.count_ratings(), **plots.files()}


def pages(root: Path = ROOT) -> list[Path]:
    """List the pages that may hold generated tables."""
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def rewrite(text: str, page: str = "") -> str:
    """Return the text of a page with its tables and figures written anew."""
    if unknown := {name for _, name, _ in _BLOCK.findall(text)} - set(TABLES):
        raise LookupError(f"{page}: nothing writes the generated part {', '.join(sorted(unknown))}: TABLES has what does")
    text = _BLOCK.sub(lambda block: f"{block[1]}\n{TABLES[block[2]]()}\n\n{block[3]}", text)
    return figures.fill(text, page)


def main(arguments: Sequence[str], root: Path = ROOT, whole: Mapping[str, Callable[[Path], str]] | None = None) -> int:
    """Write every file that is stale; with `--check` only name them."""
    stale: list[str] = []

    def write(path: Path, new: str) -> None:
        if not path.is_file() or path.read_text(encoding="utf-8") != new:
            stale.append(path.relative_to(root).as_posix())
            if "--check" not in arguments:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(new, encoding="utf-8")

    for name, make in (files() if whole is None else whole).items():
        write(root / name, make(root / name))
    for page in pages(root):
        write(page, rewrite(page.read_text(encoding="utf-8"), page.relative_to(root).as_posix()))
    print("stale:" if "--check" in arguments else "written:", ", ".join(stale) or "none")
    return int(bool(stale) and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
