"""`hfcf train`: from a training recipe to a stored model with its scores and its card."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from datasets import Dataset, concatenate_datasets

from hfcf.core import recipe as recipes
from hfcf.core.model import Model
from hfcf.core.schema import LABELS
from hfcf.core.splits import group_safe_split, regroup
from hfcf.engines.classifier import Classifier
from hfcf.hub.existing_card import check_overwrite
from hfcf.hub.model_card import model_card
from hfcf.training.data import apart, load_rows, without_repeats
from hfcf.training.loop import Hyperparameters, trained
from hfcf.training.rationale_losses import Weights
from hfcf.training.verifier import two_way

_HYPER = {field.name for field in fields(Hyperparameters)}
_KINDS = ("verifier", "generator", "rewriter", "explainer", "masked_lm", "relation")
_KEYS = {
    "train", "verifier", "explainer", "name", "data", "dev", "exclude", "held_out", "nei", "evaluate", "baselines", "prefixed",
    "ways", "pairs", "judge", "wordnet", "mask", "preset", "data_dir", "split", *_HYPER,
}  # fmt: skip


def train(
    recipe: Mapping[str, Any], out: Path, *, where: str = "the recipe", limit: int | None = None, command: str = ""
) -> dict[str, Any]:
    """Run a training recipe.

    Args:
        recipe: `train` ("verifier", "generator", "rewriter", "explainer", "masked_lm" or "relation"), `data` (arguments of
            `hfcf.load`, one mapping for each corpus), and optionally `exclude` (corpora of which nothing may be trained on),
            `held_out` (share of the groups), `nei` (the corpora to add NEI rows for), `evaluate` (more corpora to score on),
            `baselines` (also train the claim-only verifier), `prefixed` (train the generator of RACE's ablation −EDIT), `ways` (3,
            or 2: a verifier without NOT ENOUGH INFO), `split` (in the place of that of every corpus in `data`), and the fields of
            `Hyperparameters`. An explainer has `verifier`, what it explains, in the place of `model`, and in `explainer` fields of
            `Weights`. A rewriter has `pairs` ("negative" or "paraphrase") and `judge`, `{model, max_length}` of a verifier: see
            `hfcf.training.claim_pairs`. A masked language model has `mask`, the share of the words to be masked, and with
            `wordnet: true` reads WordNet's glosses too. A relation classifier has `dev`, the rows (arguments of `hfcf.load`) that
            choose its epoch.
        out: where the model goes.
        where: what to call the recipe in errors.
        limit: train on the first rows alone, to try a recipe out.
        command: that trains it again, for the card.

    Returns:
        What `scores.json` in `out` holds: rows, seconds, and scores per corpus.

    Raises:
        RecipeError: see `checked`; or there is nothing to train on.
        ValueError: the folder has a README that is not this library's.
    """
    hp = checked(recipe, where)
    check_overwrite(out)
    split = {"split": recipe["split"]} if recipe.get("split") else {}
    folder = recipe.get("data_dir")
    rows = load_rows([{**recipes.located(source, folder), **split} for source in recipe["data"]], training=True)
    dropped = 0
    if recipe.get("exclude"):
        rows, dropped = without_repeats(rows, load_rows([recipes.located(source, folder) for source in recipe["exclude"]]))
    if recipe.get("ways") == 2:
        rows = two_way(rows)
    split = group_safe_split(rows, recipe.get("held_out", 0.0), seed=hp.seed, groups=regroup(rows))
    training, held = split["train"], split["validation"]
    if limit is not None:
        training = training.select(range(min(limit, len(training))))
    report: dict[str, Any] = {"rows": {"train": len(training), "held_out": len(held), "dropped as repeats": dropped}}
    run = {
        "verifier": _verifier, "generator": _generator, "rewriter": _rewriter, "explainer": _explainer, "masked_lm": _masked_lm,
        "relation": _relation,
    }[recipe["train"]]  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    (out / "scores.json").unlink(missing_ok=True)  # written last: a folder without it is not finished
    start = time.perf_counter()
    report["scores"] = run(recipe, hp, training, held, out)
    report["seconds"] = round(time.perf_counter() - start)
    (out / "README.md").write_text(model_card(recipe, hp, report, command), encoding="utf-8")
    (out / "scores.json").write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    return report


def checked(recipe: Mapping[str, Any], where: str = "the recipe") -> Hyperparameters:
    """The settings of a training recipe, whose keys are checked.

    Raises:
        RecipeError: an unknown key, one that is missing, or a value that can't be.
    """
    recipes.check(recipe, _KEYS, where)
    if recipe.get("train") not in _KINDS:
        raise recipes.RecipeError(f"{where}: train: must be one of {', '.join(_KINDS)}")
    if (recipe["train"] == "rewriter") != (recipe.get("pairs") in ("negative", "paraphrase")):
        raise recipes.RecipeError(f"{where}: pairs: negative or paraphrase, with train: rewriter")
    if recipe.get("pairs") == "paraphrase" and not recipe.get("judge"):
        raise recipes.RecipeError(f"{where}: judge: must name the verifier that tells paraphrases from other claims")
    if (judge := recipe.get("judge")) is not None:
        if isinstance(judge, Mapping):
            recipes.check(judge, ("model", "max_length"), f"{where}: judge")
        if not isinstance(judge, Mapping) or not judge.get("model"):
            raise recipes.RecipeError(f"{where}: judge: must name a model: {{model: FOLDER, max_length: 130}}")
    recipes.check(recipe.get("explainer") or (), [field.name for field in fields(Weights)], f"{where}: explainer")
    if recipe.get("ways", 3) not in (2, 3) or (recipe.get("ways") == 2 and recipe.get("nei")):
        raise recipes.RecipeError(f"{where}: ways: 3, or 2 without nei: a two-way verifier knows no NOT ENOUGH INFO")
    start_from = "verifier" if recipe["train"] == "explainer" else "model"
    if start_from not in recipe:
        raise recipes.RecipeError(f"{where}: {start_from}: must name a model for train: {recipe['train']}")
    return Hyperparameters(**{**{k: v for k, v in recipe.items() if k in _HYPER}, "model": Model.of(recipe[start_from])})


def _verifier(recipe: Mapping[str, Any], hp: Hyperparameters, training: Dataset, held: Dataset, out: Path) -> dict[str, Any]:
    from hfcf.training.verifier import evaluate_verifier, train_verifier

    training, held = (_with_nei(rows, recipe.get("nei", []), hp.seed) for rows in (training, held))
    ways = recipe.get("ways", 3)
    train_verifier(training, hp, out, labels=LABELS[:ways])
    engines = {"verifier": (Classifier(model=trained(hp, out), max_length=hp.max_length), False)}
    if recipe.get("baselines"):
        train_verifier(training, hp, out / "claim-only", labels=LABELS[:ways], claim_only=True)
        engines["claim only"] = (Classifier(model=trained(hp, out / "claim-only"), max_length=hp.max_length), True)
    sets = {f"held out: {corpus}": _of(held, corpus) for corpus in sorted(set(held["corpus"]))}
    sets |= _named(recipe, training, lambda rows: rows)
    return {
        name: {
            f"{asked}-way": {
                who: evaluate_verifier(rows, engine, ways=asked, claim_only=hidden) for who, (engine, hidden) in engines.items()
            }
            for asked in range(2, ways + 1)
        }
        for name, rows in sets.items()
    }


def _named(recipe: Mapping[str, Any], training: Dataset, of: Callable[[Dataset], Dataset]) -> dict[str, Dataset]:
    """The recipe's `evaluate`, without what overlaps with the rows that were trained on."""
    found = {}
    for source in recipe.get("evaluate", []):
        options = recipes.located({key: value for key, value in source.items() if key != "name"}, recipe.get("data_dir"))
        found[source.get("name", source["corpus"])] = of(apart(load_rows([options]), training))
    return found


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

    prefixed = bool(recipe.get("prefixed"))
    train_generator(training, hp, out, prefixed=prefixed)
    return {"held out": evaluate_generator(held, trained(hp, out), max_length=hp.max_length, prefixed=prefixed)}


def _rewriter(recipe: Mapping[str, Any], hp: Hyperparameters, training: Dataset, held: Dataset, out: Path) -> dict[str, Any]:
    from hfcf.training.claim_pairs import claim_pairs
    from hfcf.training.generator import train_texts
    from hfcf.training.rewriter import evaluate_rewriter

    judge = recipe.get("judge")
    engine = Classifier(model=Model.of(judge["model"]), max_length=judge.get("max_length", 130)) if judge else None
    kept_by = engine if recipe["pairs"] == "paraphrase" else None  # of a negative pair the corpus says that it is one
    pairs, apart_ = (claim_pairs(rows, recipe["pairs"], kept_by) for rows in (training, held))
    if not len(pairs):
        told = {"negative": "one supported and one refuted", "paraphrase": "both supported, that the judge takes for equal"}
        raise recipes.RecipeError(
            f"there is nothing to train on: no two claims, {told[recipe['pairs']]}, have the same evidence in one group of the "
            f"{len(training)} rows; rows of one case need a group_id in common"
        )
    train_texts(pairs, hp, out)
    found = {f"held out: {corpus}": _of(apart_, corpus) for corpus in sorted(set(apart_["corpus"]))}
    found |= _named(recipe, training, lambda rows: claim_pairs(rows, recipe["pairs"], kept_by))
    scores = {name: evaluate_rewriter(its, trained(hp, out), max_length=hp.max_length, judge=engine) for name, its in found.items()}
    return {"trained on": {"pairs": len(pairs)}, **scores}


def _explainer(recipe: Mapping[str, Any], hp: Hyperparameters, training: Dataset, held: Dataset, out: Path) -> dict[str, Any]:
    from hfcf.training.explainer import train_explainer
    from hfcf.training.explainer_scores import evaluate_explainer

    train_explainer(training, hp, out, Weights(**recipe.get("explainer") or {}))
    return {f"held out: {corpus}": evaluate_explainer(_of(held, corpus), hp, out) for corpus in sorted(set(held["corpus"]))}


def _masked_lm(recipe: Mapping[str, Any], hp: Hyperparameters, training: Dataset, held: Dataset, out: Path) -> dict[str, Any]:
    from hfcf.training.masked_lm import cloze, evaluate_masked_lm, train_masked_lm
    from hfcf.training.text import collect

    excluded = [load_rows([recipes.located(source, recipe.get("data_dir"))]) for source in recipe.get("exclude", [])]
    share = recipe.get("held_out", 0.0)
    texts, sets, dropped = collect(training, held, excluded, wordnet=bool(recipe.get("wordnet")), held_out=share, seed=hp.seed)
    train_masked_lm(texts, hp, out, share=recipe.get("mask", 0.15))
    scores: dict[str, Any] = {"sentences": {"train": len(texts), "dropped because an excluded set holds them": dropped}}
    models = {"as shipped": hp.model, "trained": trained(hp, out)}
    for name, its in sets.items():
        scores[f"held out: {name}"] = {
            who: evaluate_masked_lm(its, model, max_length=hp.max_length, seed=hp.seed) for who, model in models.items()
        }
    return {**scores, "cloze": cloze(models, max_length=hp.max_length)}


def _relation(recipe: Mapping[str, Any], hp: Hyperparameters, training: Dataset, held: Dataset, out: Path) -> dict[str, Any]:
    from hfcf.engines.relation import RelationClassifier
    from hfcf.training.relation import evaluate_relation, train_relation

    dev = [{**recipe["dev"], "name": "dev, which chose the epoch"}] if recipe.get("dev") else []
    chosen_on = _named({**recipe, "evaluate": dev}, training, lambda rows: rows)
    train_relation(training, hp, out, dev=next(iter(chosen_on.values()), None))
    engine = RelationClassifier(model=trained(hp, out), max_length=hp.max_length)
    sets = {f"held out: {corpus}": _of(held, corpus) for corpus in sorted(set(held["corpus"]))}
    sets |= _named(recipe, training, lambda rows: rows)
    return {name: evaluate_relation(rows, engine) for name, rows in {**chosen_on, **sets}.items()}
