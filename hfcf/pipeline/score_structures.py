"""Score argument structures that any system predicted against the rows of a corpus."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset

from hfcf.core.splits import regroup
from hfcf.core.task import task_of
from hfcf.corpora.formats.read import json_lines
from hfcf.metrics.scores.structures import SCORES
from hfcf.metrics.shared.bootstrap import RESAMPLES, intervals, mean_intervals
from hfcf.tasks.structures import TASK
from hfcf.tasks.structures.model import CLAIM, StructureError
from hfcf.tasks.structures.program import parse_program, printed_label, read_verdict, repair_program
from hfcf.tasks.task_inputs import WRITTEN
from hfcf.tasks.verification import LABELS
from hfcf.text.label_names import label_of
from hfcf.training.scorers import VERDICTS
from hfcf.training.structure_scorer import NOTHING, StructureScorer, read_answer, to_answer

_NAMED = 5
"""Ids that an error names."""


def read_predictions(path: str | Path) -> dict[str, dict[str, Any]]:
    """Read JSON lines of predictions, by id: the format of `hfcf evaluate --predictions`.

    Each line has `id` and `prediction`, a program or a label, or `left_out`. `label` is the label of a program; without it, the
    label is what the program prints. `names`, {name in the program: id of the evidence}, tells what a model was shown.

    Raises:
        ValueError: a line is not such an object, an id is there twice, or the lines are of several sets. The message has the
            place.
    """
    predictions: dict[str, dict[str, Any]] = {}
    sets = set[Any]()
    for record in json_lines(Path(path)):
        where, line = f"{path}, {record.place}", record.value
        if record.unreadable:
            raise ValueError(f"{where}: {record.unreadable}")
        told = isinstance(line, dict) and ("prediction" in line or line.get("left_out") is not None)
        if not told or line.get("id") is None:
            raise ValueError(f"{where}: write an object with id and prediction, which is a program or a label")
        if not isinstance(line.get("prediction"), str | None):
            raise ValueError(f"{where}: prediction must be a text, got {type(line['prediction']).__name__}")
        if line.get("label") is not None and _verdict(str(line["label"])) is None:
            raise ValueError(f"{where}: the label must be one of {', '.join(LABELS)}, got {line['label']!r}")
        names = line.get("names")
        if names is not None and not (isinstance(names, dict) and all(isinstance(name, str) for name in names.values())):
            raise ValueError(f"{where}: names must be an object, {{name in the program: id of the evidence}}, got {names!r}")
        if len(sets := sets | {line.get("set")}) > 1:
            raise ValueError(
                f"{where}: the predictions are of several sets, {' and '.join(sorted(map(str, sets)))}: store each set in a "
                "file of its own, by hfcf evaluate with one --corpus"
            )
        if (name := str(line["id"])) in predictions:
            raise ValueError(f"{where}: the id {name!r} is there twice")
        predictions[name] = line
    return predictions


def _verdict(text: str) -> str | None:
    """Return the label that a prediction names, as programs or as other corpora and models do."""
    return read_verdict(text) or label_of(text)


def _program(line: Mapping[str, Any]) -> str | None:
    """Return the program of a prediction; None if it is a label, or nothing."""
    text: str | None = line.get("prediction")
    return None if text is None or (_verdict(text) and line.get("names") is None) else text


def score_predictions(
    rows: Dataset, predictions: Mapping[str, Mapping[str, Any]], scorer: StructureScorer, *, task: int = 3,
    repaired: bool = False, partial: bool = False, resamples: int = RESAMPLES,
) -> dict[str, Any]:  # fmt: skip
    """Score predictions on all rows, with intervals, and on the rows of each number of steps and of distractors.

    Structures name evidence as `evidence_info` does, and are compared by its sentences. A structure that can't be read counts as
    empty; its label is read by itself. Rows without a structure count for labels alone. A program with `names` names evidence by
    these names, and its `label` is the label that counts. A row whose prediction has `left_out` is not scored.

    Args:
        rows: of argument structures.
        predictions: see `read_predictions`.
        scorer: with the encoder of the structure similarity.
        task: 3: all evidence was given, and a program may name every piece; 4: the conclusions were not, and it declares its own.
        repaired: repair the commonest slips of programs.
        partial: rows without a prediction count as empty and wrong, instead of raising. They are never left out.
        resamples: of the intervals, over groups of rows.

    Returns:
        `encoder`; `rows`; `missing`, the ids of rows without a prediction; `left_out`, {reason: number of rows}. `unreadable`,
        {id: reason}; `scores`, {name: [value, low, high]}; and `groups`, lines of `StructureScorer.table` by group. Scores of
        structures are missing where no prediction has a structure, and scores of labels where none has a label.

    Raises:
        ValueError: there are no predictions, an id is of no row, a row has no prediction (unless `partial`), or all rows are left
            out. The message names the first rows.
    """
    if task not in WRITTEN:
        raise ValueError(f"task must be {' or '.join(map(str, WRITTEN))}, got {task}")
    if (kind := task_of(rows.features).name) != TASK.name:
        raise ValueError(f"these are {kind} rows, which have no argument structures")
    if not predictions:
        raise ValueError("there are no predictions: write a line for each row, with its id")
    ids = list(map(str, rows["id"]))
    if unknown := [name for name in predictions if name not in {*ids}]:
        raise ValueError(f"{len(unknown)} predictions are of no row: {_name(unknown)}")
    left_out = {name: str(line["left_out"]) for name, line in predictions.items() if line.get("left_out") is not None}
    kept = [i for i, name in enumerate(ids) if name not in left_out]
    if not kept:
        raise ValueError(f"all {len(ids)} rows are left out: {left_out[ids[0]]}")
    rows, ids = rows.select(kept), [ids[i] for i in kept]
    missing = [name for name in ids if name not in predictions]
    if missing and not partial:
        raise ValueError(
            f"{len(missing)} of {len(ids)} rows have no prediction: {_name(missing)}; with --partial they count as empty and wrong"
        )
    gold = scorer.gold(rows)
    answers, unreadable = [], dict[str, str]()
    for name, true in zip(ids, gold, strict=True):
        answer, fault = _read_answer(predictions.get(name, {}), true, task, repaired)
        answers.append(answer)
        if fault:
            unreadable[name] = fault
    structured = any(_program(line) is not None or line.get("names") is not None for line in predictions.values())
    structures = scorer.rows_of(gold, answers) if structured else [None] * len(gold)
    groups, scores, hidden = list(map(str, regroup(rows))), dict[str, Any](), set(VERDICTS.metrics)
    if any(answer["label"] is not None for answer in answers):
        scores, hidden = _label_scores(gold, answers, groups, resamples), set()
    if kept := [i for i, row in enumerate(structures) if row is not None]:
        names = [*SCORES, "empty"]
        table = [[float((structures[i] or {})[name]) for i in kept] for name in names]
        scores |= dict(zip(names, mean_intervals(table, [groups[i] for i in kept], resamples), strict=True))
    lines = scorer.table(gold, answers, structures)
    return {
        "encoder": scorer.encoder.model.name, "rows": len(ids), "missing": missing,
        "left_out": dict(Counter(left_out.values()).most_common()), "unreadable": unreadable,
        "scores": {name: [round(number, 4) for number in numbers] for name, numbers in scores.items()},
        "groups": {
            line["group"]: {name: value for name, value in line.items() if name not in hidden | {"group"} and value == value}
            for line in lines
        },
    }  # fmt: skip


def to_page(result: Mapping[str, Any]) -> str:
    """Write scores as Markdown: all rows with intervals, then the groups, and what was missing or could not be read."""
    lines = [f"| score | all {result['rows']} rows | 95 % interval |", "|---|---|---|"]
    for name, (value, low, high) in result["scores"].items():
        lines.append(f"| {name} | {value:.3f} | {low:.3f}–{high:.3f} |")
    shown = [name for name in ("accuracy", "macro_f1", "ss", "es", "leaves_f1", "steps_f1", "intermediates_f1")
             if name in result["groups"]["all"]]  # fmt: skip
    lines += ["", f"| rows | number | {' | '.join(shown)} |", "|---" * (len(shown) + 2) + "|"]
    for name, part in result["groups"].items():
        cells = [f"{part[key]:.3f}" if key in part else "–" for key in shown]
        lines.append(f"| {name} | {part['rows']} | {' | '.join(cells)} |")
    lines += ["", f"Structure similarity is by {result['encoder']}. Intervals are over groups of rows."]
    if "accuracy" in result["scores"]:
        lines.append("Macro-F1 is over the labels that rows have; rows of one label have none.")
    if result["missing"]:
        lines.append(f"{len(result['missing'])} rows have no prediction, and count as empty and wrong: {_name(result['missing'])}.")
    lines += [f"{number} rows are left out, as the predictions have it: {why}." for why, number in result["left_out"].items()]
    if result["unreadable"]:
        name, reason = next(iter(result["unreadable"].items()))
        lines.append(f"{len(result['unreadable'])} structures can't be read, and count as empty. The first, {name}: {reason}")
    return "\n".join(lines)


def _read_answer(line: Mapping[str, Any], gold: Mapping[str, Any], task: int, repaired: bool) -> tuple[dict[str, Any], str | None]:
    """Read a prediction as an answer, and say why its structure can't be read."""
    given = None if line.get("label") is None else _verdict(str(line["label"]))
    texts = dict(gold["texts"])
    if (names := line.get("names")) is not None:  # what the model was shown, whatever the task
        if unknown := next((name for name, one in names.items() if one not in texts), None):
            return to_answer(None, given), f"names says that {unknown} is {names[unknown]}, which is not an id of evidence_info"
        texts = {CLAIM: texts[CLAIM], **{name: texts[one] for name, one in names.items()}}
    elif task > WRITTEN[0]:
        conclusions = {step["conclusion"] for step in gold["structure"] or ()} - {CLAIM}
        texts = {name: text for name, text in texts.items() if name not in conclusions}
    if (program := _program(line)) is None:
        return to_answer(None, given or _verdict(line.get("prediction") or "")), None
    given = given or (None if names is not None and "label" in line else printed_label(program))
    try:
        structure = repair_program(program, texts)[0] if repaired else parse_program(program, texts)
    except StructureError as error:
        return to_answer(None, given), str(error)
    if unknown := next((name for name in structure.nodes() if name != CLAIM and name not in structure.texts), None):
        return to_answer(None, given), f"{unknown} has no sentence: it is not an id of evidence_info, and is not declared"
    return to_answer(structure, given), None


def _label_scores(
    gold: Sequence[Mapping[str, Any]], answers: Sequence[Mapping[str, Any]], groups: Sequence[str], resamples: int
) -> dict[str, tuple[float, float, float]]:
    """Return accuracy and macro-F1 with their intervals; of rows of one label, accuracy alone."""
    true, predicted = (np.array([(read_answer(each)[0] or NOTHING)[0] for each in some]) for some in (gold, answers))
    resample = lambda counts: VERDICTS.resample(counts, true, predicted[None])[:, :, 0].T  # noqa: E731
    found = intervals(resample, groups, resamples)
    many_labels = len({*true.tolist()}) > 1
    return {name: numbers for name, numbers in zip(VERDICTS.compared, found, strict=True) if many_labels or name == "accuracy"}


def _name(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return json.dumps(list(ids[:_NAMED]), ensure_ascii=False)[1:-1] + more
