"""A task: everything that the library knows about one kind of row. The modules of `hfcf/tasks/` implement it.

Stages, metrics, reports, cards and comparisons use a `Task` and know no task by name, so that a new task is one new file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import resolve_name
from typing import Any

from datasets import Features

from hfcf.core import schema
from hfcf.core.edits import reverse
from hfcf.core.form import Entry
from hfcf.core.model import Model, is_prompted
from hfcf.core.plugins import discover_modules
from hfcf.core.schema import COMMON, EDITS, PROVENANCE, SCORES, STATUS
from hfcf.core.segments import Segment, blocks, changed_texts, pair

Row = Mapping[str, Any]
_SPAN = frozenset(("field", "piece", "start", "end"))


@dataclass(frozen=True, kw_only=True)
class HubNames:
    """The names of a task on the Hub: the card's `task_categories` and `task_ids`, and our tag."""

    categories: tuple[str, ...]
    ids: tuple[str, ...] = ()
    tag: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """Describe one kind of row; the base class of every task.

    Args:
        name: in recipes, `run.json` and cards.
        columns: its own columns, without `id`, `label` and `schema.COMMON`.
        signature: the columns by which its rows are recognised.
        pieces: the column with the list of pieces that the first text refers to (a claim's evidence); empty: its rows have no
            pieces.
        extends: the task whose columns its rows also have: systems of that task work on its rows.
        empty_row: a row before a corpus fills it, own columns and `label`.
        labels: the labels of all its rows, in the order of a classifier's outputs; None where each corpus has its own.
        labelled: whether its rows have a `label`; without a label, a counterfactual has a different `outcome`.
        related: whether the label names how two marked parts of a text are related: the words that it rests on are edits of a
            relation.
        question: what a prompt asks about a row (`prompt`); its labels follow where they are closed.
        outcome_name: the name of the `outcome` in cards.
        change_names: the name in cards of a kind of change, where its own name is not clear.
        shared: what rows share, besides a group, that must be on the same side of a split; a text for cards: "a claim or …".
        candidate: the columns that a candidate of it has besides edits, scores and verdict.
        recipe: the recipe that trains the model that judges its rows: "train_verifier".
        trainer: "module:attribute" of how its models are trained and asked, resolved when it is first used.
        scorer: "module:attribute" of how its models are scored, resolved when it is first used.
        verdict_prompt: "module:attribute" of the prompt that asks a language model for a row's label
            (`hfcf.prompts.verdicts.VerdictPrompt`); empty: no language model can be asked.
        rewriting: "module:attribute" of what baselines may rewrite in its rows (`hfcf.tasks.rewriting.Rewriting`); empty: nothing.
        answer_columns: columns of some corpora that list further right answers; an original keeps them in pairs.
        passages: the kinds of `identity` of which two rows may have different parts; see `hfcf.core.passages`.
        hub: the task's names on the Hub.
        form: the entries of a form for one row; empty: a person can't enter a row.
        demo: the recipe that ships and runs on rows of it.
    """

    name: str
    columns: Mapping[str, Any]
    signature: tuple[str, ...]
    pieces: str = ""
    extends: str = ""
    empty_row: Mapping[str, Any]
    labels: tuple[str, ...] | None = None
    labelled: bool = True
    related: bool = False
    question: str = "Which label does it have?"
    outcome_name: str = "label"
    change_names: Mapping[str, str] = field(default_factory=dict)
    shared: str = "a text"
    candidate: Mapping[str, Any]
    recipe: str = ""
    trainer: str = ""
    scorer: str = ""
    verdict_prompt: str = ""
    rewriting: str = ""
    answer_columns: tuple[str, ...] = ()
    passages: tuple[str, ...] = ()
    hub: HubNames = field(default=HubNames(categories=("text-classification",), tag="counterfactual"))
    form: tuple[Entry, ...] = ()
    demo: str = ""

    # --- what a task implements

    def validate(self, row: Row) -> str | None:
        """Return why a row can't be worked on, or None; columns that the row lacks are ignored."""
        raise NotImplementedError

    def segments(self, row: Row) -> list[Segment]:
        """List the row's texts in reading order; the text that identifies it comes first (the claim, the sentence, the
        question)."""
        raise NotImplementedError

    def named_texts(self, row: Row) -> list[tuple[str, Any]]:
        """List (name, value) of everything in a row that must be text, named as in messages: "the claim", "token 3"."""
        raise NotImplementedError

    def apply_edits(self, row: Row, edits: Iterable[Row]) -> dict[str, Any]:
        """Return the row's own columns after edits.

        Raises:
            ValueError: an edit does not fit the row.
        """
        raise NotImplementedError

    def identity(self, row: Row) -> list[tuple[str, str]]:
        """List (kind, text): two rows repeat each other if they share a normalised text of the same kind."""
        raise NotImplementedError

    def judge(self, rows: Sequence[Row], model: Model, max_length: int) -> list[dict[str, float] | None]:
        """Ask a model for the label of each row.

        Returns:
            {label: probability} of each row, None where the model can't read it.
        """
        raise NotImplementedError

    # --- what a task may implement

    def check_model(self, model: Model, max_length: int | None) -> None:
        """Raise `ValueError` for a model that can't judge the task's rows, from its configuration alone; by default nothing is
        checked.

        Args:
            model: a model whose configuration can be read.
            max_length: the number of tokens that it is given, if it is known.
        """

    def complete(self, source: Row, row: Row) -> dict[str, Any]:
        """Make a counterfactual of this task from a counterfactual of the task that it extends."""
        raise NotImplementedError

    def as_text(self, row: Row) -> str:
        """Return a row as one text for a sentence encoder."""
        return " ".join(segment.text for segment in self.segments(row) if segment.text)

    def prompt(self, row: Row) -> str:
        """Ask for the label of a row, in words, for preference pairs; the answer follows after a space.

        Raises:
            NotImplementedError: a task without labels has no `prompt` of its own.
        """
        if not self.labelled:
            raise NotImplementedError(f"{self.name} rows have no labels to ask for: the task must say what it asks, by prompt(row)")
        texts = {name: ": ".join(part.text for part in parts if part.text) for name, parts in blocks(self.segments(row)).items()}
        choice = f" {', '.join(self.labels)}?" if self.labels else ""
        lines = [f"{name[:1].upper()}{name[1:]}: {text}" for name, text in texts.items()]
        return "\n".join([*lines, self.question + choice, "Answer:"])

    def right_answers(self, row: Row) -> list[str]:
        """List the right answers to `prompt`; the first is the answer that is written."""
        return [] if (outcome := self.outcome(row)) is None else [outcome]

    def triplet(self, source: Row, row: Row, alike: Callable[[], Row | None]) -> tuple[str, str, str]:
        """Return anchor, positive and negative, texts of a source and its counterfactual, which has a different `outcome`.

        By default they are the source, another original of its label, and the counterfactual.

        Args:
            source: the original.
            row: the counterfactual.
            alike: draws another original of the source's label; returns None if there is no such original.

        Raises:
            ValueError: the two give no sound triplet; the message says why.
            NotImplementedError: a task without labels has no `triplet` of its own.
        """
        if not self.labelled:
            raise NotImplementedError(f"{self.name} rows have no labels to compare: the task must say what is near, by triplet(…)")
        if (other := alike()) is None:
            raise ValueError(f"no other original has the label {source['label']}")
        return self.as_text(source), self.as_text(other), self.as_text(row)

    def phrase(self, row: Row) -> dict[str, Any]:
        """Return a row's own columns with only the words that say its label; by default no task knows them."""
        raise NotImplementedError(f"nothing says which words of {self.name} rows their label rests on")

    def read_form(self, texts: Mapping[str, str]) -> dict[str, Any]:
        """Return the record that the entries of `form` hold, for `hfcf.from_dataset`; every task with a form implements this."""
        raise NotImplementedError

    def fill_form(self, row: Row) -> dict[str, str]:
        """Return the entries of `form` that give a row; every task with a form implements this."""
        raise NotImplementedError

    def places(self, row: Row, value: Any) -> list[tuple[str, int, int, int]]:
        """List (field, piece, start, end), in characters, of the words of a row's texts that a stage's column names; [] if there
        are none.

        If a span holds a different text from the row's, it belongs to an edited row: then nothing is listed.
        """
        spans = value if isinstance(value, list) and all(isinstance(one, Mapping) and set(one) >= _SPAN for one in value) else []
        texts = {(segment.field, segment.piece): segment.text for segment in self.segments(row)} if spans else {}
        places = [(one["field"], one["piece"], one["start"], one["end"]) for one in spans]
        stands = [texts.get(place[:2], "")[place[2] : place[3]] for place in places]
        sound = all(text and one.get("text") in (None, text) for text, one in zip(stands, spans, strict=True))
        return places if sound else []

    # --- what follows

    @property
    def system_task(self) -> str:
        """The task name under which systems process its rows: the task that it extends, else its own name."""
        return self.extends or self.name

    @property
    def features(self) -> Features:
        """Canonical columns of a row."""
        label = {"label": schema.TEXT} if self.labelled else {}
        return Features({"id": schema.TEXT, **self.columns, **label, **COMMON})

    @property
    def counterfactual(self) -> Features:
        """Columns of one counterfactual: the task's own, then provenance."""
        return Features({**self.features, **PROVENANCE})

    @property
    def candidate_features(self) -> dict[str, Any]:
        """A candidate counterfactual: the fields that it changes are in `edits`, its verdict in `status`."""
        return {**self.candidate, "change": schema.TEXT, "edits": EDITS, "scores": SCORES, "status": STATUS}

    def verdicts(
        self, rows: Sequence[Row], model: Model, max_length: int, sources: Sequence[Row] | None = None
    ) -> list[dict[str, float] | str | None]:
        """Ask a model, local or "llm:NAME", for the label of each row.

        `sources` are the rows that the rows were made from. A language model compares relations with theirs
        (`hfcf.prompts.verdicts.RelationVerdicts`).

        Returns:
            The same as `judge`; a text with the reason if a language model gives no answer.
        """
        if not is_prompted(model):
            return list(self.judge(rows, model, max_length))
        return list(self._verdict_prompt(model).ask(rows, model, sources))

    def input_tokens(self, rows: Sequence[Row], model: Model, max_length: int) -> list[int]:
        """Count the tokens of each row's input of a local model that reads the first `max_length`; [] if the task never cuts it."""
        return []

    def verdict_state(self, *models: Model | None) -> dict[str, Any]:
        """Return the state of a stage that uses `verdicts`: a changed prompt changes the labels."""
        remote = [model for model in models if model is not None and is_prompted(model)]
        folders = dict.fromkeys(model.prompts for model in remote)
        contents = [self._verdict_prompt(remote[0]).contents(folder) for folder in folders]
        return {"verdict_prompt": contents[0] if len(contents) == 1 else contents} if remote else {}

    def check_verdicts(self, model: Model, labels: Iterable[str]) -> None:
        """Raise `ValueError` for a language model that does not have all of these labels; a local model passes."""
        if is_prompted(model):
            self._verdict_prompt(model).check(model, labels)

    def _verdict_prompt(self, model: Model) -> Any:
        if not self.verdict_prompt:
            raise ValueError(f"{model.name}: no language model behind an endpoint judges {self.name} rows: name a local model")
        return resolve_name(self.verdict_prompt)

    def revert_edits(self, row: Row, edits: Iterable[Row]) -> dict[str, Any]:
        """Return the source's own columns, from an edited row and its edits.

        Raises:
            ValueError: the edits do not fit the row.
        """
        return self.apply_edits(row, reverse(edits, self.length))

    def length(self, field: str, text: str) -> int:
        """Measure a text in the units of a field's edits; by default code points."""
        return len(text)

    def counterfactual_row(self, row: Row, candidate: Row) -> dict[str, Any]:
        """Return the task's columns and the label of the counterfactual that a candidate makes from a row."""
        texts = self.apply_edits(row, candidate["edits"])
        others = {name: candidate[name] for name in self.candidate if name in self.features and name not in texts}
        return {**texts, **others}

    def why_kept(self, row: Row, candidate: Row) -> str | None:
        """Return why a candidate must keep the row's label although it claims another; by default nothing shows it."""
        return None

    def candidate_edits(self, row: Row, candidate: Row) -> Sequence[Row]:
        """Return the edits that make a candidate from a row; by default the candidate's own `edits`."""
        return candidate["edits"] or []

    def outcome(self, row: Row) -> str | None:
        """Describe what a counterfactual changes; by default its label."""
        return row.get("label")

    def class_names(self, present: Iterable[str | None]) -> list[str]:
        """List the classes of published labels: all labels of the task or, where labels are open, the labels that are present."""
        return sorted(label for label in set(present) if label is not None) if self.labels is None else list(self.labels)

    def changed(self, row: Row) -> tuple[str, str]:
        """Return what a counterfactual changed, before and after; see `hfcf.core.segments.changed_texts`.

        Raises:
            ValueError: the row's edits do not fit its texts.
        """
        source = {**row, **self.revert_edits(row, row["edits"])}
        return changed_texts(self.segments(source), self.segments(row))

    def pair(self, row: Row) -> dict[str, Any]:
        """Pair a counterfactual with its source, rebuilt from the edits; see `hfcf.core.segments.pair`.

        Raises:
            ValueError: the row's edits do not fit its texts.
        """
        source = {**row, **self.revert_edits(row, row["edits"])}
        outcome = {"label": row["label"] if self.labelled else self.outcome(row)}
        return pair({**row, **outcome}, self.segments(source), self.segments(row))


@lru_cache(maxsize=1)
def tasks() -> dict[str, Task]:
    """List every task by name: the tasks of this library, then the tasks of other packages (entry points `hfcf.tasks`)."""
    modules = map(import_module, discover_modules("hfcf.tasks").values())
    ours = [module.TASK for module in modules if hasattr(module, "TASK")]
    others = [point.load() for point in sorted(entry_points(group="hfcf.tasks"))]
    return {task.name: task for task in [*others, *ours]}


def get_task(name: str) -> Task:
    """Return a task by name.

    Raises:
        ValueError: there is no task of that name; the message lists the names.

    >>> get_task("relation").signature
    ('tokens',)
    """
    if name not in tasks():
        raise ValueError(f"there is no task {name!r}; there are {', '.join(sorted(tasks()))}")
    return tasks()[name]


def task_of(columns: Iterable[str]) -> Task:
    """Return the task whose rows have these columns.

    Args:
        columns: names; a dataset's `features` will do.

    Raises:
        ValueError: the rows fit no task; the message has the columns that distinguish tasks.

    >>> task_of(["id", "tokens", "head", "tail", "label"]).name, task_of(["claim", "evidence"]).name
    ('relation', 'verification')
    """
    present = set(columns)
    candidates = [task for _, task in sorted(tasks().items())]
    fitting = [task for task in candidates if present.issuperset(task.signature)]
    if not fitting:
        signs = " nor ".join(f"{', '.join(map(repr, task.signature))} ({task.name})" for task in candidates)
        names = ", ".join(sorted(present)) or "none"
        raise ValueError(
            f"the rows fit no task: there is neither a column {signs}; the columns here are {names}. "
            "Make rows of them by hfcf.from_dataset(ds, columns={…}) or, in a recipe, by the keys columns and labels"
        )
    # Rows of sentences in tokens may also have their text: the task that has more of the columns knows more of the row.
    return max(fitting, key=lambda task: (len(present.intersection(task.columns)), len(task.signature)))


@lru_cache(maxsize=256)
def nearest_task(columns: frozenset[str]) -> Task | None:
    """Return the task that declares the most of these columns; None if no task declares any.

    A stage declares only the columns that it reads: a claim alone belongs to the task that has claims. In a tie, the task with the
    fewest columns wins.
    """
    shared = {task: len(columns.intersection(task.columns)) for _, task in sorted(tasks().items())}
    best = max(shared, key=lambda task: (shared[task], -len(task.columns)))
    return best if shared[best] else None


def find_problem(row: Row) -> str | None:
    """Say why a row can't be worked on (its task's canonical columns only), or None when it can.

    >>> find_problem({"claim": "Rome is old.", "evidence": [], "label": "SUPPORTS"})
    'there is no evidence'
    """
    task = nearest_task(frozenset(row))
    return None if task is None else task.validate(row)


class TaskColumns:
    """Declare a stage's `inputs` or `outputs` where they depend on its setting `task`.

    Args:
        columns: gives the columns (column → feature) of a task.
    """

    def __init__(self, columns: Callable[[Task], Mapping[str, Any]]) -> None:
        self.columns = columns

    def __get__(self, stage: Any, owner: type) -> Any:
        return self if stage is None else self.columns(get_task(stage.task))


def apply_edits(row: Row, edits: Iterable[Row]) -> dict[str, Any]:
    """Return the columns of a row of any task after edits; see `Task.apply_edits`.

    >>> edit = {"field": "claim", "piece": -1, "start": 0, "end": 4, "before": "Rome", "after": "Oslo"}
    >>> apply_edits({"claim": "Rome is old.", "evidence": []}, [edit])
    {'claim': 'Oslo is old.', 'evidence': []}
    """
    return task_of(row).apply_edits(row, edits)


def revert_edits(row: Row, edits: Iterable[Row]) -> dict[str, Any]:
    """Return the source's columns, from an edited row of any task and its edits; see `Task.revert_edits`.

    >>> from hfcf.core.edits import rewrite
    >>> revert_edits({"claim": "a new one", "evidence": []}, rewrite("claim", "an old one", "a new one"))["claim"]
    'an old one'
    """
    return task_of(row).revert_edits(row, edits)
