"""The recipe of `hfcf attack candidates` as a type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hfcf.core import recipe as recipes
from hfcf.core.recipe import Files, ModelReference, Recipe, Text
from hfcf.pipeline.run import make_system
from hfcf.systems.ccg.system import CCG


class Attack(Recipe):
    """Arguments of `hfcf.build_attack`."""

    model: ModelReference
    """The language model that says how perplexing a sentence is."""
    candidates: int | None = None
    per_row: int | None = None
    max_length: int | None = None

    def arguments(self) -> dict[str, Any]:
        """What was said, as `build_attack` takes it."""
        return {"model": self.model, **self.model_dump(exclude_none=True, exclude={"model"})}


class AttackRecipe(Recipe):
    """A recipe of `hfcf attack candidates`: the rows to alter, and what finds their causal terms."""

    name: Text | None = None
    corpus: str
    """One of `hfcf list corpora`."""
    data_dir: Text | None = None
    """The folder of the corpus's release."""
    data_files: Files | None = None
    split: Text | None = None
    """The rows to alter; "test" unless said."""
    indicator_split: Text | None = None
    """The rows that the indicator is trained on; "train" unless said."""
    attack: Attack
    settings: dict[str, Any] | None = None
    """Of CCG, over those of its preset."""
    preset: str = "paper"
    seed: int = 13


def parse_attack(content: Mapping[str, Any], where: str = "the recipe") -> tuple[AttackRecipe, CCG]:
    """Make a recipe of its content, and the CCG whose first stage finds the causal terms.

    Raises:
        RecipeError: an unknown key, one that is missing, or a setting that can't be.
    """
    recipe = recipes.parse(AttackRecipe, content, where)
    system = make_system("ccg", preset=recipe.preset, seed=recipe.seed, settings=recipe.settings, where=f"{where}: settings")
    assert isinstance(system, CCG)
    return recipe, system
