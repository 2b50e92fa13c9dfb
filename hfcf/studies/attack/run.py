"""Run `hfcf attack`: write candidates to a spreadsheet, and the choices in it to a dataset repository."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml
from datasets import ClassLabel, Dataset, Features, concatenate_datasets

from hfcf import corpora
from hfcf.core import recipe as recipes
from hfcf.core.lock import hold_folder
from hfcf.core.mapping import map_stage
from hfcf.core.prepare import prepare
from hfcf.core.recipe import Files, ModelReference, Recipe, Text
from hfcf.core.redact import redact_values
from hfcf.core.settings import Positive, Seed
from hfcf.core.system import check_limit
from hfcf.core.task import get_task
from hfcf.hub.dataset_card import NOT_REPUBLISHED, republish_key
from hfcf.hub.folder import configs, remove_others, write_parquet
from hfcf.hub.previous_run import check_overwrite
from hfcf.hub.render import render
from hfcf.hub.source import read_restriction
from hfcf.pipeline.run import make_system
from hfcf.studies.attack.choices import choose_first, export_choices, import_choices, marked_lines
from hfcf.systems.ccg.attack import CANDIDATES, KINDS, build_attack, report
from hfcf.systems.ccg.system import CCG


class Attack(Recipe):
    """Arguments of `hfcf.build_attack`."""

    model: ModelReference
    """The language model that says how perplexing a sentence is."""
    candidates: Positive | None = None
    per_row: Positive | None = None
    max_length: Positive | None = None

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
    """The settings of CCG, instead of its preset's."""
    preset: str = "paper"
    seed: Seed = 13


def parse_attack(content: Mapping[str, Any], where: str = "the recipe") -> tuple[AttackRecipe, CCG]:
    """Parse a recipe, and build the CCG whose first stage finds the causal terms."""
    recipe = recipes.parse(AttackRecipe, content, where)
    system = make_system("ccg", preset=recipe.preset, seed=recipe.seed, settings=recipe.settings, where=f"{where}: settings")
    assert isinstance(system, CCG)
    return recipe, system


SHEET, STORE, NOTES = "candidates.csv", "candidates.parquet", "attack.json"


def make_candidates(recipe: str | Path, out: Path, *, changes: Sequence[str] = (), limit: int | None = None) -> dict[str, Any]:
    """Find causal terms and write the candidates: a spreadsheet, the same as Parquet, and notes.

    The indicator that finds causal terms is trained on `indicator_split`, unless `settings` name an indicator. All rows of the
    split lend their entities; only altered rows lend their causal terms.
    """
    check_limit(limit)
    with hold_folder(out, recipes.command("attack candidates", recipe, out, changes, limit)):
        return _make_candidates(recipe, out, changes, limit)


def _make_candidates(recipe: str | Path, out: Path, changes: Sequence[str], limit: int | None) -> dict[str, Any]:
    path = recipes.find(str(recipe))
    content = recipes.read(path, changes)
    parsed, ccg = parse_attack(content, path.name)
    check_overwrite(out)
    if (out / SHEET).exists() and (marks := marked_lines(out / SHEET)):
        raise ValueError(f"{out / SHEET} holds {marks} choices, which would be lost: give another --out, or move the file")
    files = {key: value for key in ("data_dir", "data_files") if (value := getattr(parsed, key)) is not None}
    corpus = corpora.load(parsed.corpus, split=parsed.split or "test", **files)
    stage, clock = ccg.identify_causal_terms, time.perf_counter()
    seconds = {}
    if ccg.indicator is None:
        # Whatever the preset, one indicator on all rows: it judges rows of another split, so no cross-fitting is needed.
        training = corpora.load(parsed.corpus, split=parsed.indicator_split or "train", **files)
        stage = ccg.replace(folds=1).identify_causal_terms.fit(training)
        seconds["indicator"] = round(time.perf_counter() - clock, 1)
    clock = time.perf_counter()
    corpus = prepare(corpus, stage)
    limit = len(corpus) if limit is None else min(limit, len(corpus))
    rows = map_stage(corpus.select(range(limit)), stage, {})
    rest = corpus.select(range(limit, len(corpus)))
    seconds["causal terms"], clock = round(time.perf_counter() - clock, 1), time.perf_counter()
    donors = concatenate_datasets([rows, rest.cast(Features(rows.features))]) if len(rest) else rows
    candidates = build_attack(rows, donors=donors, seed=ccg.seed, **parsed.attack.arguments())
    seconds["candidates"] = round(time.perf_counter() - clock, 1)
    notes = {
        "report": report(rows, candidates, donors), "seconds": seconds, "recipe": _published(content),
        "restricted": read_restriction(content),
        "command": recipes.command("attack candidates", recipe, out, changes, limit if limit < len(corpus) else None),
    }  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    candidates.to_parquet(str(out / STORE))
    (out / NOTES).write_text(json.dumps(notes, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    export_choices(candidates, out / SHEET)
    return notes


def _published(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recipe without the paths of this machine; a corpus that is a folder stays a folder."""
    shown: dict[str, Any] = redact_values(content)
    return {**shown, "corpus": f"./{shown['corpus']}"} if shown["corpus"] != content["corpus"] == str(content["corpus"]) else shown


def make_attack(out: Path, *, automatic: bool = False, max_perplexity_ratio: float = 1.5) -> dict[str, Any]:
    """Write the chosen candidates as a dataset repository that `load_dataset(out)` reads."""
    for name in (STORE, NOTES, SHEET):
        if not (out / name).exists():
            raise FileNotFoundError(f"there is no {out / name}: make candidates first, hfcf attack candidates RECIPE --out {out}")
    with hold_folder(out, recipes.command("attack choose", out, out)):
        return _make_attack(out, automatic, max_perplexity_ratio)


def _make_attack(out: Path, automatic: bool, max_perplexity_ratio: float) -> dict[str, Any]:
    check_overwrite(out)
    # The cache of `datasets` may hold an older file of that name.
    candidates = Dataset(pq.read_table(out / STORE)).cast(CANDIDATES)
    notes = json.loads((out / NOTES).read_text(encoding="utf-8"))
    ratio = max_perplexity_ratio if automatic else None
    rows = import_choices(candidates, out / SHEET) if ratio is None else choose_first(candidates, max_perplexity_ratio=ratio)
    if not len(rows):
        cure = "raise --ratio" if automatic else f"mark sentences in {out / SHEET}, or choose with --automatic"
        raise ValueError(f"no candidate is chosen: {cure}")
    info = replace(corpora.builder_class(notes["recipe"]["corpus"]).INFO, **notes.get("restricted", {}))
    task = get_task(info.task)
    names = sorted({*info.labels.values(), *rows["label"]})
    file = write_parquet(rows.cast_column("label", ClassLabel(names=names)), out / "data", "test")
    counts = {"rows": len(rows), **{kind: list(rows["kind"]).count(kind) for kind in KINDS}}
    front = {
        "license": info.licence or "unknown", "language": ["en"], "task_categories": list(task.hub.categories),
        "task_ids": list(task.hub.ids), "tags": ["adversarial", task.hub.tag, "hfcf", "hfcf-attack"],
        "pretty_name": f"{info.title}, attacked",
        **republish_key(info.republish),
        "configs": configs(out, {"default": {"test": file}}),
    }  # fmt: skip
    card = render(
        "attack_card.md.jinja", package="hfcf.studies", front=yaml.safe_dump(front, sort_keys=False, allow_unicode=True),
        corpus=info, notes=notes, counts=counts, ratio=ratio, citation=CCG.citation,
        not_republished=NOT_REPUBLISHED,
    )  # fmt: skip
    (out / "README.md").write_text(card, encoding="utf-8")
    remove_others(out / "data", [file])
    return counts
