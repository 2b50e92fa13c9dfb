"""What a comparison of relation classifiers trains on and scores: columns of rows, and letters for their answers."""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from datasets import Dataset

from hfcf.core import recipe as recipes
from hfcf.core import schema
from hfcf.engines.classifier import choose
from hfcf.engines.relation import RelationClassifier
from hfcf.metrics.scores.relation import scores
from hfcf.studies.compare.cells import digest
from hfcf.studies.compare.layout import SETTINGS
from hfcf.studies.compare.verifiers import hyperparameters
from hfcf.tasks.relation import OTHER, requests
from hfcf.training.data import drop_overlap, load_rows
from hfcf.training.loop import Hyperparameters

NONE = "-"
"""The letter of no relation, which is also what a sentence too long for the classifier gets."""
_LETTERS = string.ascii_letters + string.digits
_READ = ["id", "tokens", "head", "tail", "label"]
"""What a classifier, and a system, makes of a row."""


@dataclass(frozen=True)
class Column:
    """A column of the table: what is trained on and how, what chooses the epoch, what is scored."""

    name: str
    setting: str
    train: Dataset
    dev: Dataset
    test: Dataset
    hp: Hyperparameters

    @cached_property
    def ids(self) -> str:
        """A hash of the scored rows."""
        return rows_digest(self.test)

    @cached_property
    def training(self) -> dict[str, Any]:
        """What a classifier of the training rows is known by, but for its seed."""
        hp = {key: value for key, value in asdict(self.hp).items() if key not in ("seed", "model")}
        return {"hp": hp, "model": self.hp.model.key(), "rows": rows_digest(self.train), "dev": rows_digest(self.dev)}

    @cached_property
    def letters(self) -> dict[str, str]:
        """A letter for each label; see `letters`."""
        return letters([*self.train["label"], *self.dev["label"], *self.test["label"]])

    @cached_property
    def seen(self) -> int:
        """How many scored rows are sentences of the training rows."""
        return drop_overlap(self.test.select_columns(["tokens"]), self.train.select_columns(["tokens"]))[1]


def rows_digest(rows: Dataset) -> str:
    """A hash of relation rows, their order included."""
    return digest(rows.select_columns(_READ).to_list())


def letters(labels: Iterable[str]) -> dict[str, str]:
    """A letter for each label, by which cells keep answers: `-` for no relation, the others in the order of the alphabet.

    Raises:
        RecipeError: more labels than letters.

    >>> letters(["PHYS", "Other", "ART"])
    {'Other': '-', 'ART': 'a', 'PHYS': 'b'}
    """
    there = sorted(set(labels) - {OTHER})
    if len(there) > len(_LETTERS):
        raise recipes.RecipeError(f"there are {len(there)} labels; a comparison has letters for {len(_LETTERS)}")
    return {OTHER: NONE, **dict(zip(there, _LETTERS, strict=False))}


def columns_of(recipe: Mapping[str, Any]) -> list[Column]:
    """The recipe's `columns`, each part over what `defaults` say of it, and its `classifier` over the recipe's.

    Raises:
        RecipeError: an unknown or missing key, rows of another task, or none.
    """
    defaults = recipe.get("defaults") or {}
    recipes.check(defaults, ("train", "dev", "test", "setting"), "defaults")
    names = [given.get("name") for given in recipe["columns"]]
    found = []
    loaded: dict[str, Dataset] = {}  # many columns share their development and test rows
    for given in recipe["columns"]:
        name = given.get("name")
        if not isinstance(name, str) or names.count(name) > 1:
            raise recipes.RecipeError(f"columns: {name!r}: give each a name of its own")
        recipes.check(given, ("name", "train", "dev", "test", "setting", "classifier"), f"columns: {name}")
        setting = given.get("setting", defaults.get("setting", SETTINGS[0]))
        if setting not in SETTINGS:
            raise recipes.RecipeError(f"columns: {name}: setting: choose one of {', '.join(SETTINGS)}")
        parts = {part: _over(defaults.get(part, {}), given.get(part, {})) for part in ("train", "dev", "test")}
        hp = hyperparameters({**recipe["classifier"], **given.get("classifier", {})}, "classifier")
        rows = {}
        for part, source in parts.items():
            if (key := digest([part == "train", source])) not in loaded:
                loaded[key] = _rows(recipe, source, name, part)
            rows[part] = loaded[key]
        found.append(Column(name, setting, **rows, hp=hp))
    return found


def _over(default: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    # Files are in the place of a folder, not beside it.
    where = {"data_dir", "data_files"}
    return {**{key: value for key, value in default.items() if key not in where or where.isdisjoint(given)}, **given}


def _rows(recipe: Mapping[str, Any], source: Mapping[str, Any], column: str, part: str) -> Dataset:
    where = f"columns: {column}: {part}"
    if "corpus" not in source:
        raise recipes.RecipeError(f"{where}: the key 'corpus' is missing")
    rows = load_rows([recipes.located(source, recipe.get("data_dir"))], training=part == "train")
    if (task := schema.task_of(rows.features)) != "relation":
        raise recipes.RecipeError(f"{where}: {source['corpus']} has {task} rows, not relations")
    if not len(rows):
        raise recipes.RecipeError(f"{where}: there are no rows")
    return rows


def ask(engine: RelationClassifier, rows: Dataset) -> list[str]:
    """What a classifier says of each row; a sentence too long for it has no relation."""
    answers = engine.run(requests(rows.select_columns(["tokens", "head", "tail"])))
    return [OTHER if answer is None else choose(answer, list(answer)) for answer in answers]


def scored_answers(rows: Dataset, said: Sequence[str], letters: Mapping[str, str]) -> dict[str, Any]:
    """The scores of answers and, a letter for each row, the answers.

    >>> rows = Dataset.from_dict({"label": ["PHYS", "ART"]})
    >>> scored_answers(rows, ["PHYS", "PHYS"], {"ART": "a", "PHYS": "b"})
    {'micro_f1': 0.5, 'macro_f1': 0.3333, 'accuracy': 0.5, 'gold': 'ba', 'predicted': 'bb', 'correct': '10'}
    """
    gold = list(rows["label"])
    return {
        **scores(gold, said), "gold": "".join(letters[label] for label in gold),
        "predicted": "".join(letters[label] for label in said),
        "correct": "".join("01"[one == other] for one, other in zip(gold, said, strict=True)),
    }  # fmt: skip
