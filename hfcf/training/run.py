"""`hfcf train`: from a training recipe to a stored model with its scores and its card."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from datasets import Dataset, concatenate_datasets

from hfcf import recipe as recipes
from hfcf.engines.classifier import Classifier
from hfcf.engines.model import Model
from hfcf.groups import group_safe_split, regroup
from hfcf.hub.model_card import model_card
from hfcf.training.data import apart, load_rows, without_repeats
from hfcf.training.loop import Hyperparameters

_HYPER = {field.name for field in fields(Hyperparameters)}
_KEYS = {"train", "name", "data", "exclude", "held_out", "nei", "evaluate", "baselines", "preset", "data_dir", "split", *_HYPER}


def train(
    recipe: Mapping[str, Any], out: Path, *, where: str = "the recipe", limit: int | None = None, command: str = ""
) -> dict[str, Any]:
    """Run a training recipe.

    Args:
        recipe: `train` ("verifier" or "generator"), `data` (arguments of `hfcf.load`, one mapping for each corpus), and optionally
            `exclude` (corpora of which nothing may be trained on), `held_out` (share of the groups), `nei` (the corpora to add
            NEI rows for), `evaluate` (more corpora to score on), `baselines` (also train the claim-only verifier), `split` (in
            the place of that of every corpus in `data`), and the fields of `Hyperparameters`.
        out: where the model goes.
        where: what to call the recipe in errors.
        limit: train on the first rows alone, to try a recipe out.
        command: that trains it again, for the card.

    Returns:
        What `scores.json` in `out` holds: rows, seconds, and scores per corpus.
    """
    recipes.check(recipe, _KEYS, where)
    if recipe.get("train") not in ("verifier", "generator"):
        raise recipes.RecipeError(f"{where}: train: must be verifier or generator")
    hp = Hyperparameters(**{**{k: v for k, v in recipe.items() if k in _HYPER}, "model": Model.of(recipe["model"])})
    split = {"split": recipe["split"]} if recipe.get("split") else {}
    rows = load_rows([{**_source(source, recipe), **split} for source in recipe["data"]], training=True)
    dropped = 0
    if recipe.get("exclude"):
        rows, dropped = without_repeats(rows, load_rows([_source(source, recipe) for source in recipe["exclude"]]))
    split = group_safe_split(rows, recipe.get("held_out", 0.0), seed=hp.seed, groups=regroup(rows))
    training, held = split["train"], split["validation"]
    if limit is not None:
        training = training.select(range(min(limit, len(training))))
    report: dict[str, Any] = {"rows": {"train": len(training), "held_out": len(held), "dropped as repeats": dropped}}
    run = _verifier if recipe["train"] == "verifier" else _generator
    out.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    report["scores"] = run(recipe, hp, training, held, out)
    report["seconds"] = round(time.perf_counter() - start)
    (out / "README.md").write_text(model_card(recipe, hp, report, command), encoding="utf-8")
    (out / "scores.json").write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    return report


def trained(hp: Hyperparameters, out: Path) -> Model:
    """The reference to a model that `train` stored in `out`."""
    return Model(str(out)) if hp.tune == "full" else Model(hp.model.name, hp.model.revision, adapter=str(out))


def _source(source: Mapping[str, Any], recipe: Mapping[str, Any]) -> dict[str, Any]:
    """A corpus of the recipe; its folder is relative to the recipe's `data_dir`."""
    folder = Path(recipe.get("data_dir") or ".")
    key = "data_files" if "data_files" in source else "data_dir"
    given = source.get(key, ".")
    if isinstance(given, list):
        return {**source, key: [str(folder / path) for path in given]}
    return {**source, key: str(folder / given)}


def _verifier(recipe: Mapping[str, Any], hp: Hyperparameters, training: Dataset, held: Dataset, out: Path) -> dict[str, Any]:
    from hfcf.training.verifier import evaluate_verifier, train_verifier

    training, held = (_with_nei(rows, recipe.get("nei", []), hp.seed) for rows in (training, held))
    train_verifier(training, hp, out)
    engines = {"verifier": (Classifier(model=trained(hp, out), max_length=hp.max_length), False)}
    if recipe.get("baselines"):
        train_verifier(training, hp, out / "claim-only", claim_only=True)
        engines["claim only"] = (Classifier(model=trained(hp, out / "claim-only"), max_length=hp.max_length), True)
    sets = {f"held out: {corpus}": _of(held, corpus) for corpus in sorted(set(held["corpus"]))}
    for source in recipe.get("evaluate", []):
        title = source.get("name", source["corpus"])
        sets[title] = apart(load_rows([_source({k: v for k, v in source.items() if k != "name"}, recipe)]), training)
    return {
        name: {
            f"{ways}-way": {
                who: evaluate_verifier(rows, engine, ways=ways, claim_only=hidden) for who, (engine, hidden) in engines.items()
            }
            for ways in (2, 3)
        }
        for name, rows in sets.items()
    }


def _with_nei(rows: Dataset, corpora: Sequence[str], seed: int) -> Dataset:
    """`rows` with NEI rows for the corpora that have none of their own."""
    from hfcf.training.nei import add_nei

    parts = [_of(rows, corpus) for corpus in dict.fromkeys(rows["corpus"])]
    return (
        concatenate_datasets([add_nei(part, seed=seed) if part[0]["corpus"] in corpora else part for part in parts])
        if parts
        else rows
    )


def _of(rows: Dataset, corpus: str) -> Dataset:
    return rows.select([i for i, name in enumerate(rows["corpus"]) if name == corpus])


def _generator(recipe: Mapping[str, Any], hp: Hyperparameters, training: Dataset, held: Dataset, out: Path) -> dict[str, Any]:
    from hfcf.training.generator import evaluate_generator, train_generator

    train_generator(training, hp, out)
    return {"held out": evaluate_generator(held, trained(hp, out), max_length=hp.max_length)}
