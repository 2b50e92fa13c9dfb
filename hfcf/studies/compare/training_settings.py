"""How the models of a comparison are trained, as recipes say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, WithJsonSchema, model_validator

from hfcf.core import recipe as recipes
from hfcf.core.recipe import ModelReference, Recipe, RecipeError
from hfcf.training.open_domain import OpenDomain
from hfcf.training.steps import one_length
from hfcf.training.trainer import Hyperparameters

Source: TypeAlias = dict[str, Any]
"""Arguments of `hfcf.load` with `corpus`; each corpus has options of its own."""


@recipes.takes(Hyperparameters, without=["model", "seed"])
class TrainingSettings(Recipe):
    """How the compared models are trained: `Hyperparameters`, without the seed, which is the comparison's."""

    model: ModelReference | None = None
    """What to start from."""
    # A schema within another schema, such as the schema of these settings, can't refer to a definition.
    open_domain: Annotated[OpenDomain | None, WithJsonSchema({"type": ["object", "null"]})] = None
    """For readers: the collection that they answer from, whatever context a row has."""

    @model_validator(mode="before")
    @classmethod
    def _check_length(cls, content: Any) -> Any:
        return one_length(content)


def hyperparameters(settings: Mapping[str, Any], where: str, data_dir: str | None = None) -> Hyperparameters:
    """Return how a recipe trains its models."""
    parsed = recipes.parse(TrainingSettings, settings, where)
    if parsed.model is None:
        raise RecipeError(f"{where}: the key 'model' is missing")
    hp = Hyperparameters(**{name: getattr(parsed, name) for name in parsed.model_fields_set - {"open_domain"}})
    return hp if parsed.open_domain is None else parsed.open_domain.hyperparameters(hp, data_dir, f"{where}: open_domain")


def _check_training(settings: dict[str, Any]) -> dict[str, Any]:
    recipes.parse(TrainingSettings, settings, "")
    return settings  # as the recipe has them: tables print them so


TrainingKey = Annotated[dict[str, Any], AfterValidator(_check_training), WithJsonSchema(TrainingSettings.model_json_schema())]
