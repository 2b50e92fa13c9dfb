"""`hfcf train`: from a training recipe to a stored model with its scores and its card."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from datasets import Dataset

from hfcf.core.contamination import SEEN, save_seen
from hfcf.core.model_checks import check_length, check_weights
from hfcf.core.paths import hold_folder
from hfcf.core.preflight import check_disk
from hfcf.core.recipe import RecipeError
from hfcf.core.recipe import command as command_line
from hfcf.core.redact import redact, redact_values
from hfcf.core.runner import check_limit
from hfcf.core.splits import group_safe_split
from hfcf.core.task import task_of
from hfcf.hub.model_card import model_card
from hfcf.hub.previous_run import RECORD, ExistingResultError, check_result, write_record
from hfcf.pipeline import training_recipes as kinds
from hfcf.pipeline.trainings import TRAININGS, source_arguments
from hfcf.tasks.verification import LABELS, NOT_ENOUGH_INFO
from hfcf.training.calibration import check_held_out
from hfcf.training.classifier import classes_of
from hfcf.training.data import drop_overlap, load_rows
from hfcf.training.steps import count_steps, read_steps
from hfcf.training.trainer import CHECKPOINTS, WEIGHTS, remove_checkpoints
from hfcf.training.verifier import two_way

log = logging.getLogger(__name__)


def train(
    recipe: Mapping[str, Any], out: Path, *, where: str = "the recipe", limit: int | None = None, command: str = "",
    overwrite: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Run a training recipe; stopped or killed, and run again, it continues from its last checkpoint."""
    check_limit(limit)
    parsed = kinds.parse_train(recipe, where)
    check_disk([out])
    _check_model(parsed, where)
    limit = parsed.limit if limit is None else limit
    content = {**parsed.model_dump(exclude_unset=True), **({} if limit is None else {"limit": limit})}
    command = command or command_line("train", recipe, out, limit=limit)
    with hold_folder(out):
        return _train(parsed, content, out, command, limit, overwrite)


def _train(
    parsed: kinds.TrainRecipe, content: dict[str, Any], out: Path, command: str, limit: int | None, overwrite: bool
) -> dict[str, Any]:
    """Train in a folder that this process holds."""
    if check_result(out, content, command, limit=limit, overwrite=overwrite, files=WEIGHTS):
        remove_checkpoints(out)
    elif (out / CHECKPOINTS).exists() and not (out / RECORD).exists():  # the end of the training would remove it
        raise ExistingResultError(
            f"{out / CHECKPOINTS} belongs to no training that hfcf began here: give another folder, or move it"
        )
    parsed, training, held_out, dropped = _prepare(parsed, limit)
    report: dict[str, Any] = {"rows": {"train": len(training), "held_out": len(held_out), "dropped as repeats": dropped}}
    out.mkdir(parents=True, exist_ok=True)
    (out / "scores.json").unlink(missing_ok=True)  # written last: a folder without it is not finished
    write_record(out, content, command)
    save_seen(out, training, parsed.hyperparameters().model)
    start = time.perf_counter()
    try:
        scores = _train_and_score(parsed, training, held_out, out)
    except Exception:
        if not any(path for pattern in (f"{CHECKPOINTS}/*", *WEIGHTS) for path in out.glob(pattern)):  # refused before a step
            (out / RECORD).unlink()  # else the mended recipe would be another one in this folder
            (out / SEEN).unlink(missing_ok=True)
        raise
    report |= {"training": read_steps(out), "scores": scores}
    report["seconds"] = round(time.perf_counter() - start)
    card = model_card({**content, "ways": parsed.ways}, parsed.hyperparameters(), report, command)
    (out / "README.md").write_text(redact(card, content), encoding="utf-8")
    scores_text = json.dumps(redact_values(report, content), indent=1, ensure_ascii=False)
    (out / "scores.json").write_text(scores_text + "\n", encoding="utf-8")
    return report


def _train_and_score(recipe: kinds.TrainRecipe, training: Dataset, held_out: Dataset, out: Path) -> dict[str, Any]:
    kind = TRAININGS[type(recipe)]
    rows = kind.rows(recipe, training, held_out)
    scores = {**rows.counts, **kind.train(recipe, rows, out)}
    for name, part in rows.sets.items():
        scores |= kind.evaluate(recipe, name, part, out)
    return scores


def plan_training(recipe: Mapping[str, Any], *, where: str = "the recipe", limit: int | None = None) -> dict[str, Any]:
    """Check a training recipe, load its rows, and count its steps, as `hfcf train --dry-run` does; nothing is trained or written.

    Args:
        recipe: of `hfcf train`.
        where: its name, for errors.
        limit: train on the first rows only.

    Returns:
        `rows` (to train on, held out), `labels` (rows to train on of each; empty where rows have none), `steps`, `batch_size`,
        `micro_batch_size`, `gradient_checkpointing` and `passes` over the rows. Steps are exact with `max_steps`. With `epochs`
        they are the steps of the rows themselves, and `exact` is False. Some trainings make several inputs of a row, such as
        windows and pairs, or leave rows out.

    Raises:
        RecipeError: the recipe does not fit.
        ValueError: the model's weights or the rows can't be read.
    """
    parsed = kinds.parse_train(recipe, where)
    hp = parsed.hyperparameters()
    _check_model(parsed, where)
    _, training, held_out, _ = _prepare(parsed, parsed.limit if limit is None else limit)
    rows = len(training)
    steps = count_steps(hp, rows)
    return {
        "rows": {"train": rows, "held_out": len(held_out)}, "labels": _labels(training), "steps": steps,
        "exact": hp.max_steps is not None, "passes": round(steps * hp.batch_size / max(rows, 1), 2), "batch_size": hp.batch_size,
        "micro_batch_size": hp.micro_batch_size or hp.batch_size, "gradient_checkpointing": hp.gradient_checkpointing,
    }  # fmt: skip


def _check_model(recipe: kinds.TrainRecipe, where: str) -> None:
    """Raise an error for a start without weights, and for inputs that are longer than it reads."""
    hp = recipe.hyperparameters()
    check_weights(hp.model, f"{where}: {recipe.start}")
    try:
        check_length(hp.model, hp.max_length)
    except ValueError as error:
        raise RecipeError(f"{where}: {error}") from error


def _prepare(recipe: kinds.TrainRecipe, limit: int | None) -> tuple[kinds.TrainRecipe, Dataset, Dataset, int]:
    """Load the rows, and check what can be known before hours of training.

    Returns:
        The recipe with the number of labels; the rows to train on, the first `limit`; the held-out rows; the number of repeats.
    """
    training, held_out, dropped = divide_rows(recipe)
    if "label" in training.column_names:  # of all rows: the first rows may lack a label
        recipe = recipe.model_copy(update={"ways": _ways(recipe, training)})
    training = training if limit is None else training.select(range(min(limit, len(training))))
    training = TRAININGS[type(recipe)].usable(recipe, training)
    classifier = isinstance(recipe, kinds.VerifierRecipe | kinds.RelationRecipe | kinds.ModelRecipe)
    if classifier and not getattr(recipe, "nei", ()) and len(labels := _labels(training)) == 1:
        only = f"all {len(training)} rows to train on have the label {next(iter(labels))}, and a model learns to say only that"
        raise RecipeError(f"data: {only}: take others; many files are sorted by label")
    if getattr(recipe, "calibrate", False):
        check_held_out(held_out, LABELS[: recipe.ways])
    return recipe, training, held_out, dropped


def select_rows(recipe: kinds.TrainRecipe) -> tuple[Dataset, int]:
    """Load the rows of a training recipe; return the rows that may be trained on, and the number of dropped repeats."""
    sources = source_arguments(recipe.data, recipe.data_dir, split=recipe.split, half=recipe.half, ways=recipe.ways)
    rows, dropped = load_rows(sources, training=True, extra=recipe.columns()), 0
    if recipe.exclude:
        rows, dropped = drop_overlap(rows, load_rows(source_arguments(recipe.exclude, recipe.data_dir)))
    if recipe.ways is not None and not task_of(rows.features).labels:
        raise RecipeError("ways: it is for claims, and says whether a model tells NOT ENOUGH INFO: leave it out for other rows")
    kept = two_way(rows) if recipe.ways == 2 else rows
    if left_out := len(rows) - len(kept):
        log.warning("%d of %d rows are not trained on: ways is 2, and they are neither %s nor %s", left_out, len(rows), *LABELS[:2])
    return kept, dropped


def _labels(rows: Dataset) -> dict[str, int]:
    """Count the rows of each label, the commonest first."""
    return dict(Counter(rows["label"]).most_common()) if "label" in rows.column_names else {}


def _ways(recipe: kinds.TrainRecipe, rows: Dataset) -> int:
    """Return how many labels a training has: the recipe's number, else that of the rows, of what is added, and of the model."""
    if recipe.ways is not None or not isinstance(recipe, kinds.VerifierRecipe | kinds.StructuresRecipe):
        return recipe.ways or 3
    added = getattr(recipe, "nei", ()) or getattr(recipe, "derive", None)
    return 3 if added or NOT_ENOUGH_INFO in rows["label"] or NOT_ENOUGH_INFO in classes_of(recipe.model) else 2


def divide_rows(recipe: kinds.TrainRecipe) -> tuple[Dataset, Dataset, int]:
    """Load a recipe's rows; return the rows to train on, the held-out rows, and the number that an evaluation set repeats."""
    rows, dropped = select_rows(recipe)
    if not len(rows):
        repeated = f", {dropped} of exclude's left out" if dropped else ""
        raise RecipeError(f"data: there is no row to train on{repeated}: check split, skip, take and pieces, or give other files")
    # Salted: the halves of `half` are chosen with the same seed.
    split = group_safe_split(rows, recipe.held_out, seed=recipe.hyperparameters().seed, salt="held out:")
    return split["train"], split["validation"], dropped
