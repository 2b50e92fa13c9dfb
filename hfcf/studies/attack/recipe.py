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
        """Return the given arguments of `build_attack`."""
        return {"model": self.model, **self.model_dump(exclude_none=True, exclude={"model"})}


class AttackRecipe(Recipe):
    """A recipe of `hfcf attack candidates`: the rows to alter, and the system that finds their causal terms."""

    name: Text | None = None
    corpus: str
    """One of `hfcf list corpora`."""
    data_dir: Text | None = None
    """The folder of the corpus's release."""
    data_files: Files | None = None
    split: Text | None = None
    """The rows to alter; "test" by default."""
    indicator_split: Text | None = None
    """The rows that train the indicator; "train" by default."""
    attack: Attack
    settings: dict[str, Any] | None = None
    """Of CCG, instead of its preset's."""
    preset: str = "paper"
    seed: int = 13


def parse_attack(content: Mapping[str, Any], where: str = "the recipe") -> tuple[AttackRecipe, CCG]:
    """Parse a recipe, and build the CCG whose first stage finds the causal terms."""
    recipe = recipes.parse(AttackRecipe, content, where)
    system = make_system("ccg", preset=recipe.preset, seed=recipe.seed, settings=recipe.settings, where=f"{where}: settings")
    assert isinstance(system, CCG)
    return recipe, system
