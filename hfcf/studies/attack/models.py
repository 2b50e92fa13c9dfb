"""`hfcf.attack`: how often small changes of rows mislead a model that gives the rows their labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datasets import Dataset, Features
from datasets.utils import tqdm

from hfcf.core import schema
from hfcf.core.candidates import scored
from hfcf.core.edits import plain_words, word_distance
from hfcf.core.expand import expand
from hfcf.core.model import Model
from hfcf.core.model_checks import can_configure, check_weights, longest_input
from hfcf.core.names import did_you_mean
from hfcf.core.pairs import check_source
from hfcf.core.system import System
from hfcf.core.task import Row, Task, task_of
from hfcf.corpora.custom.rows import RowSet, read_rows
from hfcf.studies.attack.search import Answer, Found, Search, Target, search_all
from hfcf.studies.attack.words import SOURCES, find_places
from hfcf.systems import system_class, systems
from hfcf.tasks.ensemble import no_label

SUCCEEDED, FAILED, SKIPPED = ("succeeded", "failed", "skipped")
WRONG = "the model was wrong before"
"""Why most rows are skipped: only what a model gets right can be attacked."""
LONGEST = 512
"""Tokens that are read of a row, where the model reads as many."""
_TOGETHER = 128  # rows whose searches ask together, and are in memory

_TEXTS = ("id", "group_id", "split", "label", "predicted", "outcome", "reason", "misled")
_COUNTS = ("queries", "words", "changed")
RESULTS = Features({**dict.fromkeys(_TEXTS, schema.TEXT), **dict.fromkeys(_COUNTS, schema.INT)})
"""A row for each source: `predicted` is the model's label of it, `misled` of the changed row; `changed` of its `words` are new."""


@dataclass(frozen=True)
class Attacked:
    """The result of `attack`.

    Args:
        rows: the rows that mislead the model, in the columns of the task's counterfactuals, with their edits.
        results: one for each source: see `RESULTS`.
        summary: numbers over `results`: see `summarise`.
    """

    rows: Dataset
    results: Dataset
    summary: dict[str, Any]


def attack(
    rows: Dataset,
    model: Model | str,
    *,
    by: str | System | RowSet = "synonym",
    preset: str = "paper",
    fields: Sequence[str] | None = None,
    max_queries: int = 200,
    max_changed: float = 0.3,
    max_length: int | None = None,
) -> Attacked:
    """Attack a model with changes of rows that it gets right, and count how often it is misled.

    Args:
        rows: of a task with labels: claims, sentences with entities, texts.
        model: what is attacked, and only asked for labels: a Hub id, a folder or a `Model` with the meaning of its classes; or
            "llm:NAME".
        by: "synonym" and "masked_lm" replace as few words as they can by synonyms of WordNet. "masked_lm" takes only synonyms that
            a masked language model expects at the place. The name of another system, or a `System`, makes candidates: the model is
            misled where it misses the label of a candidate. So does a set that is made, `hfcf.expand(ds)` or the folder of a run.
        preset: of the system that `by` names, and of the masked language model.
        fields: the texts whose words may change, such as ["claim", "evidence"]; by default the text that tells rows apart.
        max_queries: of each row, with the one about the row itself.
        max_changed: the share of the words of these texts that may change; at least one word.
        max_length: tokens of a row that the model reads; by default all that it can, at most 512.

    Returns:
        The rows that mislead the model, a result for each source, and a summary. A row keeps its label when its words are
        replaced. No model checks whether the row still has it: a synonym may be of another sense.

    Raises:
        ValueError: the task has no labels, two rows have one id, an argument is out of its range, or the model does not fit.

    Source: the greedy search by importance follows Ren et al. 2019 (PWWS) and Jin et al. 2020 (TextFooler). The importance
    is TextFooler's. Terms are TextAttack's (Morris et al. 2020).

    >>> row = {"id": "1", "claim": "Rome is a big town.", "evidence": [{"title": "", "text": "Rome is big."}], "label": "SUPPORTS"}
    >>> model = Model("offline:minilm", adapter="hfcf:verifier")
    >>> attack(Dataset.from_list([row]), model).summary["rows"]
    1
    """
    task = task_of(rows.features)
    _check(task, max_queries, max_changed)
    sources = _read(rows, task)
    searched = _fields(task, sources, fields)
    by = _system(by, preset, task)
    target = _target(task, Model.of(model), sources, max_length)
    answers = _ask(target, sources)
    skipped = {i: why for i, row in enumerate(sources) if (why := _why_skip(target, row, answers.get(i)))}
    left = [i for i in range(len(sources)) if i not in skipped]
    _check_classes(sources, answers)
    made = None if by in SOURCES else _candidates(task, rows, left, by)
    found: dict[int, Found] = {}
    for start in tqdm(range(0, len(left), _TOGETHER), desc="attack"):
        chunk = left[start : start + _TOGETHER]
        searches = [Search(target, sources[i], max_queries) for i in chunk]
        if made is None:
            places = find_places(task, [sources[i] for i in chunk], searched, str(by), preset)
            most = [max(1, int(max_changed * _length(task, sources[i], searched) + 0.5)) for i in chunk]
            asking = [search.words(own, answers[i], n) for search, own, i, n in zip(searches, places, chunk, most, strict=True)]
        else:
            asking = [search.candidates(made.get(sources[i]["id"], [])) for search, i in zip(searches, chunk, strict=True)]
        found |= zip(chunk, search_all(asking, target.ask), strict=True)
    new = {i: _misled(target, sources[i], answers[i], one) for i, one in sorted(found.items()) if one.row is not None}
    ends = {i: {"outcome": SKIPPED, "reason": why} for i, why in skipped.items()}
    ends |= {i: _end(target, sources[i], one) for i, one in found.items()}
    results = [{**_result(target, row, answers.get(i)), **ends[i]} for i, row in enumerate(sources)]
    return Attacked(_dataset(list(new.values()), task.counterfactual), _dataset(results, RESULTS), summarise(results))


def summarise(results: Iterable[Row]) -> dict[str, Any]:
    """Count over the results of an attack, in the terms of TextAttack.

    Returns:
        `rows`; `skipped`, {reason: rows}; `asked`, the rows with a label that the model has, and an answer. `accuracy` and
        `accuracy_under_attack` on them; `attacked`, the rows that it got right; `failed`, {reason: rows}. `succeeded`,
        `success_rate` and its 95 % interval of Wilson (null where nothing was attacked). `queries`, the mean of the attacked rows;
        `words_changed`, the mean share in the rows that misled it.
    """
    from scipy.stats import binomtest

    every = list(results)
    attacked = [row for row in every if row["outcome"] != SKIPPED]
    succeeded = [row for row in attacked if row["outcome"] == SUCCEEDED]
    reasons = {outcome: Counter(row["reason"] for row in every if row["outcome"] == outcome) for outcome in (SKIPPED, FAILED)}
    asked = sum(row["outcome"] != SKIPPED or row["reason"] == WRONG for row in every)
    n, k = len(attacked), len(succeeded)
    interval = binomtest(k, n).proportion_ci(method="wilson") if n else ()
    return {
        "rows": len(every), "skipped": dict(reasons[SKIPPED].most_common()), "asked": asked,
        "accuracy": _share(n, asked), "accuracy_under_attack": _share(n - k, asked), "attacked": n, "succeeded": k,
        "success_rate": _share(k, n), "interval": [round(float(edge), 4) for edge in interval],
        "failed": dict(reasons[FAILED].most_common()), "queries": _share(sum(row["queries"] for row in attacked), n),
        "words_changed": _share(sum(row["changed"] / row["words"] for row in succeeded), k),
    }  # fmt: skip


def _share(part: float, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _check(task: Task, max_queries: int, max_changed: float) -> None:
    if not task.labelled:
        raise ValueError(f"{task.name} rows have no labels about which a model could be misled: give rows of another task")
    if max_queries < 2:
        raise ValueError(f"max_queries must be at least 2, got {max_queries}")
    if not 0 < max_changed <= 1:
        raise ValueError(f"max_changed must be above 0 and at most 1, got {max_changed}")


def _read(rows: Dataset, task: Task) -> list[dict[str, Any]]:
    if absent := next((name for name in ("id", *task.columns, "label") if name not in rows.features), None):
        raise ValueError(f"the rows have no column {absent!r}: hfcf.from_dataset(ds, columns={{…}}) makes such rows of yours")
    sources = list(read_rows(rows))
    row_id, n = Counter(row["id"] for row in sources).most_common(1)[0] if sources else ("", 0)
    if n > 1:
        raise ValueError(f"the id {row_id!r} appears {n} times: give each row its own")
    return sources


def _fields(task: Task, sources: Sequence[Row], given: Sequence[str] | None) -> list[str]:
    known = list(dict.fromkeys(segment.field for row in sources for segment in task.segments(row)))
    for name in given or ():
        if name not in known:
            raise ValueError(f"fields: {task.name} rows have no text {name!r}; they have {', '.join(known)}")
    return list(given or known[:1])


def _system(by: str | System | RowSet, preset: str, task: Task) -> str | System | RowSet:
    if isinstance(by, System):
        _check_works_on(type(by), task)
    if not isinstance(by, str) or by in SOURCES or Path(by).exists():
        return by
    if by not in systems():
        if "/" in by or "\\" in by:
            raise ValueError(f"by={by!r}: there is no such folder: give the folder that hfcf run wrote")
        choices = f"{', '.join(SOURCES)}, one of hfcf list systems, or the folder of a run"
        raise ValueError(f"by={by!r}{did_you_mean(by, [*SOURCES, *systems()])}; choose {choices}")
    cls = system_class(by)
    _check_works_on(cls, task)
    return cls.preset(preset, **({"task": task.name} if "task" in cls.schema else {}))


def _check_works_on(cls: type[System], task: Task) -> None:
    if task.name not in cls.works_on():
        fitting = ", ".join([*SOURCES, *(name for name in systems() if task.name in system_class(name).works_on())])
        raise ValueError(f"by: {cls.name} works on {' and '.join(cls.works_on())} rows; for {task.name} rows give one of {fitting}")


def _target(task: Task, model: Model, sources: Sequence[Row], max_length: int | None) -> Target:
    check_weights(model, "model")
    task.check_verdicts(model, sorted({row["label"] for row in sources if row["label"]}))
    max_length = max_length or min(longest_input(model) or LONGEST, LONGEST)
    if can_configure(model):
        task.check_model(model, max_length)
    return Target(task, model, max_length)


def _ask(target: Target, sources: Sequence[Row]) -> dict[int, Answer]:
    """Ask about the rows that can be read."""
    readable = [i for i, row in enumerate(sources) if _problem(target.task, row) is None]
    return dict(zip(readable, target.ask([sources[i] for i in readable]), strict=True))


def _problem(task: Task, row: Row) -> str | None:
    """Say why a model can't be asked about a row."""
    status = row.get("status") or {}
    if status.get("stage") == schema.LOAD:
        return str(status["reason"])
    return task.validate({name: row[name] for name in (*task.columns, "label")})


def _why_skip(target: Target, row: Row, answer: Answer) -> str | None:
    if why := _problem(target.task, row):
        return why
    if not isinstance(answer, Mapping):
        return no_label(answer, "the model")
    if row["label"] is None:
        return "the row has no label"
    if row["label"] not in answer:
        return f"the model has no class {row['label']}"
    return None if target.label(answer) == row["label"] else WRONG


def _check_classes(sources: Sequence[Row], answers: Mapping[int, Answer]) -> None:
    """Raise `ValueError` where the model has no class for any row that it answered."""
    given = [(sources[i]["label"], answer) for i, answer in answers.items() if isinstance(answer, Mapping) and sources[i]["label"]]
    if given and not any(label in answer for label, answer in given):
        classes, labels = sorted(given[0][1]), sorted({label for label, _ in given})
        raise ValueError(
            f"none of the model's classes {', '.join(classes)} is a label of these rows, which are {', '.join(labels)}: say what "
            "its classes mean by the model's labels (--labels)"
        )


def _candidates(task: Task, rows: Dataset, left: Sequence[int], by: Any) -> dict[str, list[Row]]:
    """Return the counterfactuals of each source that is left, by its id."""
    made = expand(by.fit(rows)(rows.select(left))) if isinstance(by, System) else by
    candidates: dict[str, list[Row]] = {}
    places = {row_id: i for i, row_id in enumerate(rows["id"])}
    for row in read_rows(made):
        if "source_id" not in row:
            raise ValueError("by: the set has no column 'source_id': give counterfactuals, as hfcf.expand and hfcf run make them")
        if (source := places.get(row["source_id"])) is not None:
            check_source(task, rows[source], row, "by: ")
        candidates.setdefault(row["source_id"], []).append(row)
    if candidates and not candidates.keys() & set(rows["id"]):
        raise ValueError(
            f"by: no row of the set has its source_id among the rows: the first source is {next(iter(candidates))!r}, and the "
            f"first row is {rows[0]['id']!r}. Read the rows as the run read them, or give them a column id. The corpora csv, jsonl "
            "and parquet number the rows of a file. hfcf.from_dataset and corpus: {path: …} hash them."
        )
    return candidates


def _length(task: Task, row: Row, fields: Collection[str]) -> int:
    return sum(len(plain_words(segment.text)) for segment in task.segments(row) if segment.field in fields)


def _result(target: Target, row: Row, answer: Answer) -> dict[str, Any]:
    own = {name: row.get(name) for name in ("id", "group_id", "split", "label")}
    return {**dict.fromkeys(RESULTS), **own, "predicted": target.label(answer)}


def _end(target: Target, row: Row, found: Found) -> dict[str, Any]:
    if found.row is None:
        return {"outcome": FAILED, "reason": found.reason, "queries": found.queries}
    words, changed = _changes(target.task, row, found.row)
    counts = {"queries": found.queries, "words": words, "changed": changed}
    return {"outcome": SUCCEEDED, "misled": target.label(found.answer), **counts}


def _changes(task: Task, row: Row, new: Row) -> tuple[int, int]:
    """Count the words of the texts that changed, all pieces of a field together, and the words that changed."""
    before, after = ({(part.field, part.piece): part.text for part in task.segments(side)} for side in (row, new))
    changed = {key: word_distance(before.get(key, ""), after.get(key, "")) for key in {**before, **after}}
    fields = {field for (field, _), n in changed.items() if n}
    return max(1, _length(task, row, fields)), sum(changed.values())


def _misled(target: Target, row: Row, answer: Answer, found: Found) -> dict[str, Any]:
    """Return the row that misleads the model, with its provenance."""
    task, new = target.task, found.row or {}
    scores = [
        scored(f"{name}: {target.label(given)}", max(given.values()))
        for name, given in (("model", found.answer), ("model before", answer))
        if isinstance(given, Mapping)
    ]
    scores.append({"name": "queries", "value": float(found.queries)})
    if not found.edits:  # a counterfactual
        return {**{name: new.get(name) for name in task.counterfactual}, "scores": [*(new.get("scores") or []), *scores]}
    places = {(part.field, part.piece): part.block.partition(" ")[0] for part in task.segments(row)}
    blocks = {places[edit["field"], edit["piece"]] for edit in found.edits}
    change = blocks.pop() if len(blocks) == 1 else "both"
    own = {"id": f"{row['id']}:attack:{change}", "source_id": row["id"], "system": "attack", "change": change}
    group = {"group_id": row.get("group_id") or row["id"]}
    return {**{name: new.get(name) for name in task.features}, **group, **own, "edits": list(found.edits), "scores": scores}


def _dataset(rows: Sequence[Row], features: Features) -> Dataset:
    return Dataset.from_list([dict(row) for row in rows], features=features) if rows else schema.no_rows(features)
