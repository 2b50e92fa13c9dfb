"""`hfcf evaluate`: the rows of corpora, what a model answers to them, and the form in which its answers are stored."""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset, DatasetDict

from hfcf import corpora
from hfcf.core import trainer
from hfcf.core.contamination import seen_rows, whole_texts_alone
from hfcf.core.mapping import first_rows
from hfcf.core.model import Model
from hfcf.core.paths import replace_file
from hfcf.core.preflight import check_disk
from hfcf.core.recipe import is_dataset
from hfcf.core.task import task_of
from hfcf.core.trainer import Evaluation
from hfcf.corpora.custom.columns import LayoutError
from hfcf.corpora.custom.source import load_file

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Scored:
    """A model's scores on a corpus.

    Args:
        title: names the rows in tables.
        rows: the rows, including the rows that are left out.
        result: what the model answered.
        seen: how many rows have a group or a text that the model was trained on.
        whole: nothing is known of the parts of the passages that the model was trained on.
    """

    title: str
    rows: Dataset
    result: Evaluation
    seen: int = 0
    whole: bool = False

    def lines(self) -> Iterator[str]:
        """Say how many rows were scored, on what labels, why rows were left out, and what else readers of the scores need."""
        result, total = self.result, len(self.rows)
        on = f", on {', '.join(result.labels)}" if 0 < len(result.labels) <= _FEW else ""
        yield f"{self.title}: {total - len(result.left_out)} of {total} rows are scored{on}"
        for why, number in Counter(result.left_out.values()).most_common():
            yield f"{self.title}: {number} of {total} rows are left out: {why}"
        if result.cut:
            yield f"{self.title}: {result.cut} rows have more than {result.max_length} tokens, and are cut"
        for note in result.notes:
            yield f"{self.title}: {note}"
        if self.seen:
            yield (
                f"{self.title}: the model was trained on the group or a text of {self.seen} of the {total} rows: its scores there "
                "are too good"
            )
        if self.whole:
            yield (
                f"{self.title}: the model's record of its training rows has whole texts alone: rows that share a part of a passage "
                "with them are not counted as seen"
            )

    def as_json(self) -> dict[str, Any]:
        """Return the scores, the scores of each class, the confusion matrix and the answer to each row."""
        result, task = self.result, task_of(self.rows.features)
        left_out = dict(Counter(result.left_out.values()).most_common())
        content: dict[str, Any] = {
            "name": self.title, "task": task.name, "rows": len(self.rows), "left_out": left_out, "cut": result.cut,
            "max_length": result.max_length, "notes": list(result.notes), "seen": self.seen, "scores": result.scores,
        }  # fmt: skip
        if task.labelled:
            kept = [i for i in range(len(self.rows)) if i not in result.left_out]
            gold, predicted = ([_label(answers[i]) for i in kept] for answers in (result.gold, result.predicted))
            content |= class_scores(gold, predicted, result.labels)
        return {**content, "predictions": list(answers_of(self.rows, result))}

    def predictions(self) -> Iterator[dict[str, Any]]:
        """Yield what the model answered to each row; see `prediction_lines`."""
        return prediction_lines(self.title, self.rows, self.result)


_FEW = 4
"""Labels that a line names."""


def _label(answer: Any) -> Any:
    """Return the label of an answer, which may have more than its label."""
    return answer["label"] if isinstance(answer, Mapping) else answer


def evaluate(
    model: Model, sources: Sequence[str], *, max_length: int | None = None, ways: int | None = None, limit: int | None = None,
    settings: Mapping[str, Any] | None = None, loading: Sequence[Mapping[str, Any]] = (), predictions: str | Path | None = None,
    overwrite: bool = False,
) -> list[Scored]:  # fmt: skip
    """Score a model on corpora of its task.

    Args:
        model: of the task of the rows.
        sources: "NAME=FOLDER" or "NAME=FILE", each with ":SPLIT" where it is not "validation". Or the path of a file of rows, or
            of a folder that holds a dataset.
        max_length: tokens of an input; by default as many as the model reads.
        ways: see `hfcf.core.trainer.evaluate`. A corpus that has so many labels in separate files is read from these files. By
            default it is read with the labels of the model.
        limit: score only the first rows of each.
        settings: of the task's trainer.
        loading: of each source `columns` and `labels` of its file, as `hfcf.from_dataset` takes them, and options of its corpus.
        predictions: a file for what the model answered to each row of all sources, in their order: JSON lines, see
            `prediction_lines`.
        overwrite: replace that file if it is there.

    Raises:
        ValueError: a corpus can't be read, no model answers its rows, or no row of it is left to score. Also if the predictions
            can't be stored at their path; the message says why.
    """
    if predictions is not None:
        check_target(Path(predictions), sources, overwrite=overwrite)
    check_layout(sources, loading)
    results: dict[str, Scored] = {}
    for source, keys in zip_longest(sources, loading):
        folder, title, rows = read_source(source, limit, keys, _ways(source, model, ways, settings or {}))
        title = f"{title} of {folder}" if title in results else title  # two folders of one corpus
        result = _evaluate(rows, model, max_length=max_length, ways=ways, settings=settings)
        if not result.scores["rows"]:
            reasons = "; ".join(f"{number} rows: {why}" for why, number in Counter(result.left_out.values()).most_common())
            raise ValueError(f"{title}: no row is left to score: {reasons or 'there are no rows'}")
        seen = sum(seen_rows(rows.select([i for i in range(len(rows)) if i not in result.left_out]), model) or ())
        results[title] = Scored(title, rows, result, seen, bool(task_of(rows.features).passages) and whole_texts_alone(model))
    if predictions is not None:
        write_lines(Path(predictions), (line for each in results.values() for line in each.predictions()))
    return list(results.values())


def check_layout(sources: Sequence[str], loading: Sequence[Mapping[str, Any]]) -> None:
    """Raise for `columns` or `labels` if every source is a corpus in its release's files, which has its own."""
    given = [key for key in ("columns", "labels") if any(key in keys for keys in loading)]
    names = [source.partition("=")[0] for source in sources if _is_release(source)]
    if given and len(names) == len(sources):
        raise ValueError(
            f"--set {given[0]}=: {', '.join(names)} is read from its release, with its own columns and labels: leave it out, or "
            "give the path of a file of rows"
        )


_ONE = r"[^:\[\]/+]+(?:\[[^\[\]]*\])?"
_SPLIT = re.compile(rf"(?<!^recipes)(?<!=recipes):({_ONE}(?:\+{_ONE})*)$")


def place_and_split(source: str) -> tuple[str, str | None]:
    """Return the place and the split of PLACE:SPLIT; a slice, and the place of a shipped corpus, have a colon of their own.

    >>> place_and_split("my/rows:test[:20]"), place_and_split("recipes:demo")
    (('my/rows', 'test[:20]'), ('recipes:demo', None))
    """
    match = _SPLIT.search(source)
    return (source, None) if match is None else (source[: match.start()], match[1])


def _is_release(source: str) -> bool:
    name, equals, where = source.partition("=")
    places = (source, where, place_and_split(where)[0])
    known = bool(equals) and name in corpora.names() and "labels" not in corpora.builder_class(name).OPTIONS
    return known and not any(place and Path(place).is_file() for place in places)


def _ways(source: str, model: Model, ways: int | None, settings: Mapping[str, Any]) -> int | None:
    """Return of how many labels the rows of a source are: as given, or the model's own where a corpus has files for each number."""
    name = source.partition("=")[0]
    if name not in corpora.names() or not (builder := corpora.builder_class(name)).WAYS:
        return ways
    of_task = trainer.with_settings(trainer.load_trainer(builder.task().trainer), settings)
    ways_of = getattr(of_task, "ways_of", None)
    return ways if ways_of is None else ways_of(model, ways)


def _evaluate(rows: Dataset, model: Model, **settings: Any) -> Evaluation:
    """Score a model on the rows that could be read; the remaining rows are left out, each with its reason."""
    statuses = list(rows["status"]) if "status" in rows.features else []
    unread = {i: str(status["reason"]) for i, status in enumerate(statuses) if status and status["accepted"] is False}
    rows = rows.remove_columns("status") if statuses else rows
    if not unread:
        return trainer.evaluate(rows, model, **settings)
    kept = [i for i in range(len(rows)) if i not in unread]
    nothing = [None] * len(rows)
    if not kept:
        return Evaluation({"rows": 0}, nothing, nothing, unread)
    result = trainer.evaluate(rows.select(kept), model, **settings)
    answers = (result.gold, result.predicted, result.details)
    gold, predicted, details = (dict(zip(kept, some, strict=True)) if len(some) else {} for some in answers)
    return replace(
        result, gold=[gold.get(i) for i in range(len(rows))], predicted=[predicted.get(i) for i in range(len(rows))],
        left_out={**unread, **{kept[i]: why for i, why in result.left_out.items()}},
        details=[details.get(i, {}) for i in range(len(rows))],
    )  # fmt: skip


def read_source(
    source: str, limit: int | None = None, loading: Mapping[str, Any] | None = None, ways: int | None = None,
    command: str = "hfcf evaluate",
) -> tuple[str, str, Dataset]:  # fmt: skip
    """Return the folder, the title and the rows of a source of a command; rows that can't be read have a `status`."""
    loading, first = loading or {}, "" if limit is None else f"first {limit}"
    name, equals, where = source.partition("=")
    place, split = (source, None) if Path(source).exists() else place_and_split(source)
    if Path(place).exists():
        title = ", ".join(filter(None, (split, first)))
        rows = first_rows(_read_path(place, split, loading, command), limit)
        return place, Path(place).name + (f" ({title})" if title else ""), rows
    if not (equals and where):
        raise ValueError(f"--corpus {source}: write NAME=FOLDER or NAME=FOLDER:SPLIT, or the path of a file of rows")
    folder, split = place_and_split(where)
    split = split or "validation"
    if is_dataset(name) and name not in corpora.names():
        given: Mapping[str, Any] = loading
    else:
        known = corpora.builder_class(name).OPTIONS
        options = {key: value for key, value in loading.items() if key in known}
        given = {"data_dir": folder, **corpora.options_of(name, ways), **options}
        if Path(folder).is_file():
            layout = {key: value for key, value in loading.items() if key in ("columns", "labels")}
            given = {"data_files": {split: folder}, "on_error": "reject", **layout, **options}
    try:
        rows = first_rows(corpora.load(name, split=split, **given), limit)
    except LayoutError as error:
        raise ValueError(error.in_recipe(command)) from error
    except ValueError as error:
        raise ValueError(str(error).replace("data_dir=", f"--corpus {name}=FOLDER")) from error
    return folder, f"{name} ({', '.join(filter(None, (split, first)))})", rows


def read_rows(
    source: str, limit: int | None = None, loading: Mapping[str, Any] | None = None, ways: int | None = None
) -> Dataset:  # fmt: skip
    """Read the rows of a source as `read_source` does, without rows that can't be read; the log counts them."""
    check_layout([source], [loading or {}])
    _, title, rows = read_source(source, limit, loading, ways)
    if "status" not in rows.features:
        return rows
    kept = [i for i, status in enumerate(rows["status"]) if not status or status["accepted"] is not False]
    if left_out := len(rows) - len(kept):
        first = next(status["reason"] for status in rows["status"] if status and status["accepted"] is False)
        log.warning("%s: %d of %d rows are left out, since they can't be read: %s", title, left_out, len(rows), first)
    return rows.select(kept).remove_columns("status")


def _read_path(path: str, split: str | None, loading: Mapping[str, Any], command: str) -> Dataset:
    """Read the rows of a file, or of a folder that holds a dataset."""
    try:
        if Path(path).is_file():
            return load_file(path, given=loading, on_error="reject")
        if not is_dataset(path):
            raise ValueError(f"--corpus {path}: the folder holds no dataset: write NAME=FOLDER, with the name of a corpus")
        rows = corpora.load(path, split=split, on_error="reject", **loading)
    except LayoutError as error:
        raise ValueError(error.in_recipe(command)) from error
    if isinstance(rows, DatasetDict) and len(rows) > 1:
        raise ValueError(f"--corpus {path}: it has the splits {', '.join(rows)}: write {path}:{next(iter(rows))}")
    return next(iter(rows.values())) if isinstance(rows, DatasetDict) else rows


def answers_of(rows: Dataset, result: Evaluation) -> Iterator[dict[str, Any]]:
    """Yield `id`, `gold` and `predicted` of each row; of a row that was left out `id`, `gold` and the reason in `left_out`."""
    for i, row_id in enumerate(rows["id"]):
        gold = result.gold[i] if len(result.gold) else None
        if i in result.left_out:
            yield {"id": row_id, "gold": gold, "left_out": result.left_out[i]}
        else:
            yield {"id": row_id, "gold": gold, "predicted": result.predicted[i]}


def prediction_lines(title: str, rows: Dataset, result: Evaluation) -> Iterator[dict[str, Any]]:
    """Yield what a file of predictions says of each row, in the order of the rows.

    Every line has `set`, `id` and `gold`, as `hfcf.core.trainer.Evaluation.gold` has it. A row that was left out has the reason in
    `left_out`. Every other row has `prediction`: the label, the answer or the program as the model wrote it. It also has what
    the model gives of the following keys. `probabilities` are by label. `score`, the logarithm of `probability`, and `passage`
    belong to an answer to a question, and the first two also to giving none. `label` and `names`, {name in the program: id of the
    evidence}, belong to a program.
    `written` is the text in which a label was found. `fault` says why there is no answer, or why it can't be read.

    Args:
        title: names the rows.
        rows: all rows.
        result: what the model answered to them.
    """
    details: Sequence[Mapping[str, Any]] = result.details or [{}] * len(rows)
    for answer, more in zip(answers_of(rows, result), details, strict=True):
        if "left_out" in answer:
            yield {"set": title, **answer}
        else:
            yield {"set": title, "id": answer["id"], "gold": answer["gold"], "prediction": answer["predicted"], **more}


def check_target(path: Path, sources: Iterable[str] = (), *, overwrite: bool = False) -> None:
    """Raise `ValueError` where predictions can't be written to a path, before a model is asked.

    Args:
        path: the file.
        sources: that the rows are read from, as `evaluate` takes them: none of them is replaced.
        overwrite: replace a file that is there.
    """
    if path.is_dir():
        raise ValueError(f"--predictions {path} is a folder: name a file in it, such as {path / 'predictions.jsonl'}")
    for source in sources:
        places = {part for text in (source, source.partition("=")[2]) for part in (text, place_and_split(text)[0]) if part}
        if any(Path(place).is_file() and path.resolve() == Path(place).resolve() for place in places):
            raise ValueError(f"--predictions {path} is the file that the rows are read from: choose another name")
    if path.exists() and not overwrite:
        raise ValueError(f"{path} exists already: choose another name, or add --overwrite (in Python overwrite=True)")
    check_disk([path.absolute().parent])


def write_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON lines to a file, which exists only when it is complete, and replaces an earlier file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(path) as part, part.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


NO_ANSWER = "no answer"
"""The name of the class of rows for which a model gave no label."""


def class_scores(gold: Sequence[str], predicted: Sequence[str | None], labels: Sequence[str] = ()) -> dict[str, Any]:
    """Compute the scores of each class.

    Args:
        gold: the true label of each row.
        predicted: the label that a model predicted; None if it gave no label, which is wrong.
        labels: classes that are listed even if no row has them.

    Returns:
        `classes`: {label: `precision`, `recall`, `f1` (0–1; 0 where nothing is predicted), `support`}, and `confusion`: {true
        label: {predicted label: rows}}.

    >>> found = class_scores(["yes", "yes", "no"], ["yes", "no", None])
    >>> found["classes"]["yes"]
    {'precision': 1.0, 'recall': 0.5, 'f1': 0.6667, 'support': 2}
    >>> found["confusion"]
    {'no': {'no answer': 1}, 'yes': {'no': 1, 'yes': 1}}
    """
    from sklearn.metrics import precision_recall_fscore_support

    answers = [NO_ANSWER if label is None else label for label in predicted]
    names = [*labels, *sorted({*gold, *answers} - {*labels, NO_ANSWER})]
    numbers = precision_recall_fscore_support(gold, answers, labels=names, zero_division=0)
    classes = {
        name: {**dict(zip(("precision", "recall", "f1"), np.round(shares, 4).tolist(), strict=True)), "support": int(support)}
        for name, *shares, support in zip(names, *numbers, strict=True)
    }
    counts = Counter(zip(gold, answers, strict=True))
    true = [name for name in names if name in set(gold)]
    confusion = {name: {other: counts[name, other] for other in (*names, NO_ANSWER) if counts[name, other]} for name in true}
    return {"classes": classes, "confusion": confusion}
