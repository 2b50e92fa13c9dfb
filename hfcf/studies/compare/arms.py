"""The methods of a comparison, and what each adds to the training rows."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from datasets import Dataset, concatenate_datasets

from hfcf.core import expand as augment
from hfcf.core import recipe as recipes
from hfcf.core.model import Model
from hfcf.core.schema import TASKS, opposite
from hfcf.core.stage import Stage
from hfcf.core.system import System
from hfcf.engines.base import Engine
from hfcf.engines.classifier import Classifier
from hfcf.pipeline.run import make_system
from hfcf.studies.compare.cells import digest
from hfcf.training.data import drop_overlap
from hfcf.training.debias import Debias

CANONICAL = list(TASKS["verification"])
_WRITERS = re.compile("generate_claim$|rewrite_")  # the stages that write claims
CHANGES = ("claim", "evidence", "both")


@dataclass(frozen=True)
class Arm:
    """One method.

    Args:
        name: in the tables.
        system: what makes the counterfactuals; None: none are added.
        changes: which of them are trained on: those of the claim, (c′, E, y′), of the evidence, (c, E′, y′), and of both.
        copies: train on a copy of a training row of the same label in the place of each: a control for what more rows, and their
            balance of labels, do without the counterfactuals' text.
        debias: how the verifier is trained, if not by plain cross-entropy.
    """

    name: str
    system: System | None
    changes: tuple[str, ...] = ("claim",)
    copies: bool = False
    debias: Debias | None = None

    @property
    def plain(self) -> bool:
        """Whether it is training on the rows as they are."""
        return self.system is None and self.debias is None

    def definition(self) -> dict[str, Any]:
        """Everything that its counterfactuals depend on, besides the rows."""
        debias: dict[str, Any] = {"debias": self.debias.settings()} if self.debias else {}
        if self.system is None:
            return debias
        stages = {stage.name: [stage.VERSION, _settings(stage)] for stage in self.system.stages}
        engines = {engine.__name__: engine.VERSION for engine in self.system.engines}
        dtype = str(Classifier(model=Model("any"), max_length=1).dtype())  # what "auto" is on this machine
        known: dict[str, Any] = {**debias, **({"copies": True} if self.copies else {})}
        known |= {"stages": stages, "engines": engines, "dtype": dtype}
        if self.system.task != "verification":
            # Its stages say nothing of what it trains before them. (That of verification is what stored cells are known by.)
            its = {field.name: getattr(self.system, field.name) for field in fields(self.system)}
            return {"system seed": self.system.seed, **known, "version": self.system.VERSION, "settings": _plain(its)}
        return {"system seed": self.system.seed, "changes": list(self.changes), **known}


def arms(recipe: Mapping[str, Any], task: str | None = None) -> list[Arm]:
    """The recipe's methods, in order.

    Each is a mapping of `system`, if it is not the recipe's own, `settings` of it, over those that the recipe gives its own,
    `changes`, `copies` and `debias` (see `hfcf.training.debias.Debias`); null adds nothing.

    Raises:
        RecipeError: an unknown key or setting.
    """
    found = []
    for name, given in recipe["methods"].items():
        if given is None:
            found.append(Arm(name, None))
            continue
        recipes.check(given, ("system", "settings", "changes", "copies", "debias"), f"methods: {name}")
        debias = Debias.of(given["debias"], f"methods: {name}: debias") if given.get("debias") else None
        system = given.get("system", recipe.get("system"))
        if system is None:
            if debias is None or set(given) > {"debias"}:
                raise recipes.RecipeError(f"methods: {name}: the key 'system' is missing")
            found.append(Arm(name, None, debias=debias))
            continue
        changes = tuple(given.get("changes", ("claim",)))
        recipes.check(changes, CHANGES, f"methods: {name}: changes")
        common = recipe.get("settings") if system == recipe.get("system") else None
        settings = {**(common or {}), **(given.get("settings") or {})}
        built = make_system(system, preset=recipe["preset"], seed=recipe.get("seed", 13), settings=settings, task=task)
        found.append(Arm(name, built, changes, bool(given.get("copies")), debias))
    return found


def made(arm: Arm, ds: Dataset, take: int | None) -> Dataset:
    """The arm's system over the training rows: their columns, those of its stages, and `counterfactuals`.

    It is fitted on all of `ds` and run on the first `take` rows. Methods that share stages share their model calls.
    """
    if arm.system is None:
        raise ValueError(f"{arm.name} makes no counterfactuals")
    return arm.system(ds, limit=take)


def training_rows(arm: Arm, originals: Dataset, rows: Dataset | None, evaluation: Dataset) -> tuple[Dataset, int]:
    """What the arm's verifier is trained on, and how many counterfactuals were left out because an evaluation row repeats them.

    Args:
        arm: the method.
        originals: the training rows of every arm.
        rows: from `made`; None for an arm without counterfactuals.
        evaluation: all rows that are evaluated on.
    """
    if rows is None:
        return originals, 0
    made_ = augment.expand(rows)
    chosen = made_.select([i for i, change in enumerate(made_["change"]) if change in arm.changes]).select_columns(CANONICAL)
    kept, dropped = drop_overlap(chosen, evaluation)
    if arm.copies:
        kept = copies(originals, kept["label"])
    return concatenate_datasets([originals, kept.cast(originals.features)]), dropped


def copies(originals: Dataset, labels: Iterable[str]) -> Dataset:
    """For each label a row that has it, each row in turn, in the order of a hash of their ids."""
    ids, own = originals["id"], originals["label"]
    order = sorted(range(len(originals)), key=lambda i: digest(ids[i]))
    in_turn = {label: itertools.cycle([i for i in order if own[i] == label]) for label in set(own)}
    return originals.select([next(in_turn[label]) for label in labels])


def claims(rows: Dataset) -> list[dict[str, Any]]:
    """The accepted counterfactuals (c′, E, y′), each with its source's claim as `source_claim`."""
    sources = dict(zip(rows["id"], rows["claim"], strict=True))
    return [
        {**{column: row[column] for column in CANONICAL}, "source_claim": sources[row["source_id"]]}
        for row in augment.expand(rows)
        if row["change"] == "claim"
    ]


def candidates(rows: Dataset) -> list[dict[str, Any]]:
    """As `claims`, of all generated claims: what there is before the post-check and the filter (−FILTER of the paper's Table 4).

    What the generator's own stage rejected, a claim that was cut off or that names no causal entity, is not among them.
    """
    found = []
    for row in rows.select_columns([*CANONICAL, "candidates"]):
        for i, one in enumerate(_generated(row["candidates"] or [])):
            found.append(
                {
                    **{column: row[column] for column in CANONICAL},
                    "id": f"{row['id']}:{i}", "claim": one["claim"], "label": one["label"] or opposite(row["label"]),
                    "source_claim": row["claim"],
                }
            )  # fmt: skip
    return found


def _settings(stage: Stage) -> dict[str, Any]:
    """A stage's settings, with the weights in the place of their names; what it was fitted on are the rows, which are known."""
    # Its state holds what is no field too: the prompt of a language model.
    values = {name: value for name, value in stage.__getstate__().items() if name not in ("VERSION", "strict", "fitted")}
    return {
        name: value.key() if isinstance(value, Model) else value.settings() if isinstance(value, Engine) else value
        for name, value in values.items()
    }


def _plain(value: Any) -> Any:
    """A setting of a system with weights in the place of their names, those inside other settings too."""
    if isinstance(value, Model):
        return value.key()
    if isinstance(value, Engine):
        return value.settings()
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(its) for name, its in value.items() if name not in ("strict", "fitted")}
    return [_plain(its) for its in value] if isinstance(value, list | tuple) else value


def _generated(found: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [one for one in found if one["change"] == "claim" and not (one["status"] and _WRITERS.match(one["status"]["stage"]))]
