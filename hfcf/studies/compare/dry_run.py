"""`hfcf compare --dry-run`: which cells there are to compute, what is missing for it, and about how long it takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hfcf.core.model import Model
from hfcf.core.recipe import locate
from hfcf.core.settings import models_in
from hfcf.studies.compare.comparison import Comparison, on_samples, open_comparison
from hfcf.studies.compare.methods import build_methods
from hfcf.studies.compare.recipe import AnyComparison, RationaleComparison, SetComparison
from hfcf.studies.compare.run import read_comparison
from hfcf.studies.compare.runner import missing_trainings, seconds_left
from hfcf.studies.compare.samples import PARTS
from hfcf.studies.compare.structure_recipe import StructureComparison
from hfcf.studies.compare.structures import open_study, plan


def dry_run(
    recipe: str | Path, *, changes: Sequence[str] = (), results: str | Path = "results", full: bool = False
) -> dict[str, Any]:  # fmt: skip
    """Say what a comparison would compute, without training a model or writing anything."""
    parsed = read_comparison(recipe, changes)
    absent = list(dict.fromkeys(_absent(parsed)))
    if absent or isinstance(parsed, RationaleComparison):
        return {"name": parsed.name, "absent": absent}
    if isinstance(parsed, StructureComparison):
        return {"name": parsed.name, "absent": [], **plan(open_study(parsed, Path(results), full=full))}
    comparison = open_comparison(parsed, Path(results), full=full)
    if isinstance(parsed, SetComparison) and parsed.low_resource:
        comparison = on_samples(comparison, parsed)
    return {"name": parsed.name, "absent": [], **_plan(comparison)}


def _plan(comparison: Comparison) -> dict[str, Any]:
    finished, to_compute = Counter[str](), Counter[str]()
    for place in comparison.requested:
        (finished if comparison.finished(place) else to_compute)[place[0]] += 1
    trainings = missing_trainings(comparison)
    sets = {test_set.name: len(test_set.rows) for test_set in comparison.sets}
    return {
        "rows": {"train": sorted({len(sample.train) for sample in comparison.samples}), "sets": sets},
        "methods": {
            method.name: {"finished": finished[method.name], "to_compute": to_compute[method.name]} for method in comparison.methods
        },
        "trainings": len(trainings),
        "seconds": seconds_left(comparison, trainings),
    }


def _absent(recipe: AnyComparison) -> Iterator[str]:
    """Name the folders and files of a recipe that do not exist."""
    for source in _sources(recipe):
        located = locate(source, recipe.data_dir)
        yield from _missing_paths(located.get("data_files") or located.get("data_dir"))
    for model in _models(recipe):
        for path in (model.name, model.adapter):
            # A name on the Hub is NAMESPACE/NAME; what is written as a path is a path.
            if path and (path.startswith((".", "/", "~")) or path.count("/") > 1) and not Path(path).expanduser().exists():
                yield f"the model {path}"


def _missing_paths(files: Any) -> Iterator[str]:
    if isinstance(files, Mapping):
        files = list(files.values())
    if isinstance(files, list):
        for part in files:
            yield from _missing_paths(part)
    elif files and "*" not in str(files) and not Path(files).expanduser().exists():
        yield str(files)


def _sources(recipe: AnyComparison) -> Iterator[Mapping[str, Any]]:
    if isinstance(recipe, RationaleComparison):
        yield from recipe.corpora
    elif isinstance(recipe, StructureComparison):
        yield from (recipe.train, recipe.test)
    elif isinstance(recipe, SetComparison):
        yield recipe.train
        for evaluation in recipe.evaluate:
            yield evaluation.source
        for method in recipe.methods.values():
            yield from (method.more or ()) if method else ()
    else:
        yield from (recipe.source(column, part) for column in recipe.columns for part in PARTS)


def _models(recipe: AnyComparison) -> Iterator[Model]:
    if isinstance(recipe, RationaleComparison):
        yield from (recipe.verifier, recipe.explainer)
        return
    if isinstance(recipe, StructureComparison):
        yield from (model.model for model in recipe.models.values() if model.model)
        return
    if model := recipe.training.get("model"):
        yield Model.of(model)
    for method in build_methods(recipe):
        if method.system:
            yield from (model for _, model in models_in(method.system.values))
