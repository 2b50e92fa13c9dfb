"""The dry run of `hfcf train`: what a training recipe would do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hfcf.core.model_checks import check_weights
from hfcf.pipeline import recipes
from hfcf.pipeline.train import divide_rows
from hfcf.training.steps import count_steps


def plan(recipe: Mapping[str, Any], *, where: str = "the recipe", limit: int | None = None) -> dict[str, Any]:
    """Check a training recipe, load its rows, and count its steps; nothing is trained or written.

    Args:
        recipe: of `hfcf train`.
        where: its name, for errors.
        limit: train on the first rows only.

    Returns:
        `rows` (to train on, held out), `steps`, `batch_size`, `micro_batch_size`, `gradient_checkpointing` and `passes` over the
        rows. Steps are exact with `max_steps`. With `epochs` they are the steps of the rows themselves, and `exact` is False. Some
        trainings make several inputs of a row, such as windows and pairs, or leave rows out.

    Raises:
        RecipeError: the recipe does not fit.
        ValueError: the model's weights or the rows can't be read.
    """
    parsed = recipes.parse_train(recipe, where)
    hp = parsed.hyperparameters()
    check_weights(hp.model, f"{where}: {parsed.start}")
    training, held_out, _ = divide_rows(parsed)
    limit = parsed.limit if limit is None else limit
    rows = len(training) if limit is None else min(limit, len(training))
    steps = count_steps(hp, rows)
    return {
        "rows": {"train": rows, "held_out": len(held_out)}, "steps": steps, "exact": hp.max_steps is not None,
        "passes": round(steps * hp.batch_size / max(rows, 1), 2), "batch_size": hp.batch_size,
        "micro_batch_size": hp.micro_batch_size or hp.batch_size, "gradient_checkpointing": hp.gradient_checkpointing,
    }  # fmt: skip
