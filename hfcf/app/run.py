"""One run of the page: from the texts of a form to cards of what each stage did."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from functools import lru_cache
from typing import Any

import yaml
from datasets import Dataset, concatenate_datasets
from markupsafe import Markup

from hfcf.core import recipe as recipes
from hfcf.core import schema
from hfcf.core.errors import explain
from hfcf.core.expand import expand, rejected
from hfcf.core.form import read_pieces, write_pieces
from hfcf.core.names import check_names
from hfcf.core.preflight import check_system
from hfcf.core.prepare import prepare
from hfcf.core.redact import hide
from hfcf.core.safe_yaml import read_yaml
from hfcf.core.segments import Mark, compare_texts
from hfcf.core.stage import Stage
from hfcf.core.system import System
from hfcf.core.task import Task, find_problem, get_task, tasks
from hfcf.corpora.custom.load import read_one
from hfcf.pipeline.dry_run import describe_outcome
from hfcf.pipeline.recipes import RunRecipe
from hfcf.pipeline.run import load_rows
from hfcf.report.markup import block_html
from hfcf.report.rows import changed_blocks, list_texts, rejected_row, source_of
from hfcf.systems import system_class, systems

log = logging.getLogger(__name__)
Row = Mapping[str, Any]
CANDIDATES = 5
"""Candidates of a stage that are shown."""
SETTINGS = 6
"""Settings that are written into their entry at first."""
LEARN = "learn"
"""The step before the first stage: what a system learns from a whole set."""


@dataclass(kw_only=True)
class ShownStep:
    """A stage of a run, or what comes before the first, and what it did."""

    name: str
    state: str = "waiting"
    """waiting, running or done."""
    seconds: float = 0.0
    note: str = ""
    marks: str = ""
    """The column whose words are marked in `texts`."""
    texts: Markup = field(default_factory=Markup)
    cards: Sequence[Row] = ()
    more: int = 0
    """Candidates that are not shown."""
    rejects: bool = False


@dataclass(kw_only=True)
class ShownRun:
    """How a run stands."""

    state: str = "waiting"
    """waiting, running, failed or done."""
    steps: list[ShownStep] = field(default_factory=list)
    made: Sequence[Row] = ()
    """Cards of the counterfactuals."""
    lost: dict[str, list[Row]] = field(default_factory=dict)
    """Cards of what was rejected, by stage."""
    reason: str = ""
    """Why the row itself was rejected; "" if a counterfactual was made."""
    error: str = ""
    rows: Dataset | None = None
    """The counterfactuals, for export."""


def tasks_with_forms() -> list[Task]:
    """List the tasks whose rows a person can write, in the order of their names."""
    return [task for _, task in sorted(tasks().items()) if task.form]


def demo_recipe(task: Task) -> RunRecipe:
    """Return the recipe that ships with rows of a task."""
    return recipes.parse_recipe(RunRecipe, recipes.read_recipe(recipes.find_recipe(task.demo)), task.demo)


@lru_cache
def demo_rows(name: str) -> Dataset:
    """Load the rows that ship for a task, without rows that can't be worked on."""
    ds = load_rows(demo_recipe(get_task(name)))
    return ds.select([i for i, row in enumerate(ds) if find_problem(row) is None and not (row.get("status") or {}).get("reason")])


def example(task: Task, number: int) -> dict[str, str]:
    """Fill the entries of a form with a row that ships, and with the pieces that its recipe names as settings."""
    from hfcf.corpora.passages import from_recipe

    settings = demo_recipe(task).settings or {}
    pieces = {entry.name: settings[entry.name] for entry in task.form if entry.setting and entry.name in settings}
    written = {name: write_pieces(from_recipe(source).open()) for name, source in pieces.items()}
    return {**{entry.name: "" for entry in task.form}, **written, **task.fill_form(demo_rows(task.name)[number])}


def systems_for(task: Task) -> list[str]:
    """List the systems that work on a task, the recipe's that ships first, then by the number of their stages."""
    names = [name for name in systems() if task.name in system_class(name).works_on()]
    first = demo_recipe(task).system
    return sorted(names, key=lambda name: (name != first, -len(system_class(name).chain), name))


def presets_for(system: str, wanted: str) -> list[str]:
    """List the presets of a system, the wanted preset first."""
    return sorted(system_class(system).presets, key=lambda name: name != wanted)


def first_settings(system: str, preset: str, task: Task) -> dict[str, Any]:
    """Return what differs from the preset at first: the small search of the recipe that ships, and one model for all rows.

    A system that judges each row by a model that was not trained on it deals the rows into folds. It trains on other rows than the
    pasted one here, so that one model may judge it; with folds, none would.
    """
    cls, recipe = system_class(system), demo_recipe(task)
    entries = {entry.name for entry in task.form}
    settings = recipe.settings or {} if (recipe.system, recipe.preset) == (system, preset) else {}
    smaller = {name: value for name, value in settings.items() if name not in entries}
    return {**smaller, **({"folds": 1} if cls.trainings() and "folds" in cls.schema else {})}


def write_settings(system: str, preset: str, task: Task) -> str:
    """Write the settings that a run starts with as lines: the seed, then numbers of the preset and of `first_settings`."""
    cls = system_class(system)
    defaults = {name: setting.default for name, setting in cls.schema.items() if setting.default is not MISSING}
    values = {**defaults, **cls.presets[preset], **first_settings(system, preset, task)}
    numbers = [
        name for name, setting in cls.schema.items()
        if setting.is_number and isinstance(values.get(name), int | float) and not isinstance(values[name], bool)
    ]  # fmt: skip
    chosen = sorted(numbers, key=lambda name: (name != "seed", name not in cls.presets[preset]))[:SETTINGS]
    return "\n".join(f"{name}={values[name]}" for name in chosen)


def read_settings(lines: str) -> dict[str, Any]:
    """Read settings, a line `name=value` each.

    Raises:
        ValueError: a line has no `=`, or a value is not YAML.
    """
    settings = {}
    for line in filter(None, map(str.strip, lines.splitlines())):
        name, sign, text = line.partition("=")
        if not sign:
            raise ValueError(f"settings are lines such as num_beams=10, got {line!r}")
        try:
            settings[name.strip()] = read_yaml(text)
        except yaml.YAMLError:
            raise ValueError(f"the value of {name} can't be read: {text.strip()[:60]!r}") from None
    return settings


def owner(system: str, preset: str) -> str:
    """Name what settings on the page belong to; the page carries it beside them."""
    return f"{system} {preset}"


def settle_fields(task: Task, system: str, preset: str, lines: str, of: str) -> tuple[str, str]:
    """Return preset and settings of a run; of a system for which the page has none yet, its own, and not those of another."""
    presets = presets_for(system, preset)
    chosen = preset if preset in presets else presets[0]
    return chosen, lines if of == owner(system, preset) else write_settings(system, chosen, task)


def make_system(system: str, preset: str, task: Task, settings: Mapping[str, Any]) -> System:
    """Make the system with what was chosen.

    Raises:
        ValueError, TypeError: there is no such setting, or a value does not fit; the message is the library's.
    """
    cls = system_class(system)
    check_names(cls.__name__, settings, cls.schema)
    of_rows = {"task": task.name} if "task" in cls.schema else {}
    return cls.preset(preset, **{**of_rows, **first_settings(system, preset, task), **settings})


def describe_needs(system: str, preset: str, task: Task) -> str:
    """Say what a run needs as well as the row: models to train, or rows to learn from."""
    cls, rows = system_class(system), f"the {len(demo_rows(task.name))} rows of {task.demo} that ship with the library"
    try:
        made = make_system(system, preset, task, {})
    except (ValueError, TypeError):  # a preset that can't be made without more settings
        return ""
    if trained := [name for name, instead in cls.trainings().items() if made.values.get(instead) is None]:
        return f"It trains {', '.join(trained)} on {rows}, not on your row; the first run takes about a minute more."
    learns = any(stage.fit_inputs and stage.fitted is None for stage in made.stages)
    return f"It learns from a whole set: from {rows}, and from yours." if learns else ""


def run(task: Task, texts: Mapping[str, str], system: str, preset: str, lines: str) -> Iterator[ShownRun]:
    """Run a system on a pasted row, stage by stage; yield how the run stands before each stage and at the end.

    Args:
        task: of the row.
        texts: of the entries of its form.
        system: its name.
        preset: one of its presets.
        lines: settings; see `read_settings`.
    """
    state = ShownRun(state="running")
    try:
        yield from _run(state, task, texts, system, preset, lines)
        state.state = "done"
    except Exception as error:
        state.state, state.error = "failed", say(error)
    yield state


def _run(state: ShownRun, task: Task, texts: Mapping[str, str], system: str, preset: str, lines: str) -> Iterator[ShownRun]:
    ds = read_one([task.read_form(texts)], task.name)
    if why := find_problem(ds[0]):
        raise ValueError(why)
    pieces = {entry.name: read_pieces(texts[entry.name]) for entry in task.form if entry.setting}
    known = {name: Dataset.from_list(items) for name, items in pieces.items() if items and name in system_class(system).schema}
    made = make_system(system, preset, task, {**known, **read_settings(lines)})
    check_system(made)
    learning = any(stage.fit_inputs for stage in made.stages)
    state.steps = [ShownStep(name=name) for name in [LEARN] * learning + [stage.name for stage in made.stages]]
    if learning:
        with_rows = _only_canonical(demo_rows(task.name), task)
        if all(made.values[instead] is not None for instead in made.trainings().values()):
            with_rows = concatenate_datasets([with_rows, _only_canonical(ds, task)])
        state.steps[0].state, start = "running", time.monotonic()
        yield state
        made = made.fit(with_rows)
        state.steps[0].state, state.steps[0].seconds = "done", time.monotonic() - start
    ds = prepare(ds, made)
    for step, stage in zip(state.steps[learning:], made.stages, strict=True):
        step.state, start, before = "running", time.monotonic(), ds[0]
        yield state
        ds = stage(ds)
        step.state, step.seconds = "done", time.monotonic() - start
        _describe_step(step, task, stage, before, ds[0])
    lost, label = list(rejected(ds, system=made.name)), ds[0].get("label")
    state.rows = expand(ds)
    state.made = [counterfactual_card(task, row, label) for row in state.rows]
    for row in lost:
        if row["level"] == "candidate":
            card = candidate_card(task, row["source"], row["candidate"], row)
            state.lost.setdefault(row["stage"], []).append(card)
    state.reason = next((f"{row['stage']}: {row['reason']}" for row in lost if row["level"] == "row"), "")


def _only_canonical(ds: Dataset, task: Task) -> Dataset:
    """Return rows with the columns of their task alone."""
    return ds.select_columns(list(task.features)).cast(task.features)


def say(error: Exception) -> str:
    """Say in a sentence what went wrong; the traceback goes to the log."""
    if text := explain(error):
        return hide(text)
    log.error("a run ended with an error of the program", exc_info=error)
    return f"the program has an error ({type(error).__name__}): the log of hfcf app has the traceback"


def _describe_step(step: ShownStep, task: Task, stage: Stage, before: Row, row: Row) -> None:
    """Write into a step what its stage did."""
    step.note, status = describe_outcome(row, stage), row["status"] or {}
    if status.get("accepted") is False:
        step.rejects = status["stage"] == stage.name
        step.note = step.note if step.rejects else "not reached"
        return
    step.marks, step.texts = _mark_texts(task, stage, row)
    edits = [column for column, feature in stage.outputs.items() if feature == schema.EDITS and row[column]]
    cards = [candidate_card(task, row, {"edits": row[column], "change": None, "label": row.get("label")}) for column in edits]
    new = _new_candidates(stage, before, row)
    step.cards = cards + [candidate_card(task, row, candidate, candidate["status"]) for candidate in new[:CANDIDATES]]
    step.more = max(0, len(new) - CANDIDATES)


def _mark_texts(task: Task, stage: Stage, row: Row) -> tuple[str, Markup]:
    """Mark the words that the stage's first column of places names; return the column and the texts."""
    for column in stage.outputs:
        if not (places := task.places(row, row[column])):
            continue
        hints = [place.get("type") or "" if isinstance(place, Mapping) else "" for place in row[column]]
        segments = [
            segment._replace(marks=_join_marks(segment.text, [
                Mark(start, end, "found", hint)
                for (field, piece, start, end), hint in zip(places, hints, strict=True)
                if (field, piece) == (segment.field, segment.piece)
            ]))
            for segment in task.segments(row)
        ]  # fmt: skip
        blocks = [block for block in compare_texts(segments, segments) if any(part.marks for part in block.new)]
        return column.replace("_", " "), Markup("").join(block_html(block, marked=True) for block in blocks)
    return "", Markup("")


def _join_marks(text: str, marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """Join marks without a hint that only a space separates; of marks that overlap, keep the first."""
    joined: list[Mark] = []
    for mark in sorted(marks):
        last = joined[-1] if joined else None
        if last and not mark.sign and not last.sign and not text[last.end : mark.start].strip():
            joined[-1] = last._replace(end=max(last.end, mark.end))
        elif not last or mark.start >= last.end:
            joined.append(mark)
    return tuple(joined)


def _new_candidates(stage: Stage, before: Row, row: Row) -> list[Row]:
    """List the candidates that a stage wrote or changed, other than by a verdict or a score."""

    def content(candidate: Row) -> Row:
        return {key: value for key, value in candidate.items() if key not in ("status", "scores")}

    known = [content(candidate) for candidate in before.get("candidates") or ()]
    candidates = row["candidates"] or () if "candidates" in stage.outputs else ()
    return [candidate for candidate in candidates if content(candidate) not in known]


def candidate_card(task: Task, source: Row, candidate: Row, status: Row | None = None) -> Row:
    """Describe a candidate: what it changes, and the stage and the reason that rejected it."""
    texts = Markup("").join(block_html(block) for block in changed_blocks(source, candidate))
    why = (status["stage"], status["reason"]) if status and not status.get("accepted") else ("", "")
    change = _describe_change(task, source, rejected_row(source, candidate))
    return {**change, "texts": texts, "stage": why[0], "reason": why[1]}


def counterfactual_card(task: Task, row: Row, label: str | None) -> Row:
    """Describe a counterfactual beside its source, whose label is given."""
    source = {**source_of(row), "label": label}
    texts = Markup("").join(block_html(block) for block in compare_texts(list_texts(source), list_texts(row)))
    return {**_describe_change(task, source, row), "texts": texts, "stage": "", "reason": ""}


def _describe_change(task: Task, source: Row, row: Row) -> Row:
    change = row.get("change")
    return {
        "before": task.outcome(source),
        "after": task.outcome(row),
        "change": f"{task.change_names.get(change, change)} changed" if change else "",
        "scores": [(score["name"], f"{score['value']:.3g}") for score in row.get("scores") or () if score["value"] is not None],
    }
