"""Rate labels and argument structures of trained models, together and by steps and distractors; see `hfcf.core.trainer.Scorer`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from datasets import Dataset
from numpy.typing import NDArray

from hfcf.metrics.scores.structures import DISTRACTORS, PRESETS, STEPS, SentenceEncoder, compare, group_of
from hfcf.tasks.structures.model import Step, Structure
from hfcf.tasks.task_inputs import distractors
from hfcf.text.evidence import join
from hfcf.training.scorers import VERDICTS

Array = NDArray[np.float64]
StoredAnswer = Mapping[str, Any] | str | None
"""As `to_answer` makes it; a label alone where no structure was asked for; None where a model gave nothing that can be read."""
NOTHING = "-"
"""The letter of no label."""


def to_answer(structure: Structure | None, label: str | None, **more: Any) -> dict[str, Any]:
    """Write a structure and a label as comparisons store answers; None where nothing could be read."""
    steps, texts = (None, {}) if structure is None else (structure.to_columns(), dict(structure.texts))
    return {"label": label, "structure": steps, "texts": texts, **more}


def read_answer(answer: StoredAnswer) -> tuple[str | None, Structure | None]:
    """Return the label and the structure of an answer; None for what it lacks."""
    if answer is None or isinstance(answer, str):
        return answer, None
    if answer["structure"] is None:
        return answer["label"], None
    steps = tuple(Step(tuple(step["premises"]), step["conclusion"]) for step in answer["structure"])
    return answer["label"], Structure(steps, answer["texts"], answer["label"])


@dataclass(frozen=True)
class StructureScorer:
    """Rate labels by accuracy and macro-F1, and structures as CheckWhy does; `hfcf.metrics.scores.structures` has the definitions.

    Structures are scored on the rows that have a structure: NOT ENOUGH INFO has none. There a prediction counts as empty if it has
    no structure, or a structure that could not be read. `empty` is the share of such predictions. Where all answers are labels
    alone (Tasks 1 and 2), the scores of structures are nan.

    Deviation: the paper's similarity is by DeBERTa-large, `PRESETS["paper"]`. The default is the offline encoder, because every
    machine has it and a stored cell does not tell which encoder scored it. The note names it.

    Args:
        encoder: tells how similar two sentences are.

    >>> gold = to_answer(Structure((Step(("s1",), "claim"),), {"s1": "Ice melts."}), "SUPPORTS", distractors=8)
    >>> scores = STRUCTURES.scores([gold, gold], [gold, to_answer(None, "REFUTES")])
    >>> [scores[name] for name in ("accuracy", "macro_f1", "ss", "es", "leaves_all", "empty")]
    [0.5, 0.6667, 0.5, 0.5, 0.5, 0.5]
    """

    metrics: ClassVar[Mapping[str, str]] = {
        "accuracy": "Accuracy", "macro_f1": "Macro-F1", "ss": "Structure similarity", "es": "Exact match similarity",
        "leaves_f1": "Leaves, F1", "leaves_all": "Leaves, all correct", "steps_f1": "Steps, F1", "steps_all": "Steps, all correct",
        "intermediates_f1": "Intermediates, F1", "intermediates_all": "Intermediates, all correct",
        "empty": "Predictions without a structure",
    }  # fmt: skip
    compared: ClassVar[tuple[str, ...]] = ("accuracy", "macro_f1", "ss", "es")

    encoder: SentenceEncoder = PRESETS["offline"]

    @property
    def note(self) -> str:
        return (
            "Scores of structures are over rows that have one; a prediction without a structure counts as an empty one. "
            f"Structure similarity is by {self.encoder.model.name}; the paper's is by {PRESETS['paper'].model.name}."
        )

    def gold(self, rows: Dataset) -> list[dict[str, Any]]:
        """Return the label and the structure of each row; a piece's sentence is "title: text", as models read it."""
        answers = []
        for row in rows:
            pieces = [{"title": "", "text": join([piece])[0]} for piece in row["evidence"] or []]
            irrelevant = distractors(row)
            number = None if irrelevant is None else len(irrelevant)
            answers.append(to_answer(Structure.from_row({**row, "evidence": pieces}), row["label"], distractors=number))
        return answers

    def letters(self, labels: Any) -> None:
        return None

    def scores(self, gold: Sequence[Mapping[str, Any]], predicted: Sequence[StoredAnswer]) -> dict[str, float]:
        return self._mean(gold, predicted, self.rows_of(gold, predicted), range(len(gold)))

    def table(
        self, gold: Sequence[Mapping[str, Any]], predicted: Sequence[StoredAnswer],
        rows: Sequence[dict[str, float] | None] | None = None,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """Score all rows, then the rows with each number of steps (Table 6) and of distractors (Table 5).

        `rows` are the scores of the structures, where `rows_of` computed them already.

        Steps are the conclusions of the gold structure. Rows without a structure are only under "all" and their distractors; rows
        that do not say which pieces are distractors are in no such group. Each group has `group`, `rows`, `with_structure` and the
        metrics; macro-F1 is nan where all rows of a group have one label.
        """
        rows = self.rows_of(gold, predicted) if rows is None else rows
        return [
            {"group": name, "rows": len(places), "with_structure": sum(bool(gold[i]["structure"]) for i in places),
             **self._mean(gold, predicted, rows, places), **_no_macro_f1({gold[i]["label"] for i in places})}
            for name, places in self.groups(gold).items() if places
        ]  # fmt: skip

    def groups(self, gold: Sequence[Mapping[str, Any]]) -> dict[str, list[int]]:
        """List the places of all rows, then of the rows with each number of steps and of distractors, as `table` has them."""
        by_steps = [group_of(len(_conclusions(answer)), STEPS) if answer["structure"] else None for answer in gold]
        by_distractors = [
            None if answer["distractors"] is None else group_of(answer["distractors"], DISTRACTORS) for answer in gold
        ]
        groups = {"all": list(range(len(gold)))}
        groups |= {f"{name} step{'s' * (name != '1')}": _places(by_steps, name) for name in STEPS}
        groups |= {f"{name} distractors": _places(by_distractors, name) for name in DISTRACTORS}
        return groups

    def strata(self, gold: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
        """Return the number of steps of each row as a group of Table 6, "0" of a row without a structure."""
        return {"steps": [group_of(len(_conclusions(answer)) if answer["structure"] else 0, STEPS) for answer in gold]}

    def right(self, gold: Sequence[Mapping[str, Any]], predicted: Sequence[StoredAnswer]) -> list[bool]:
        return [true["label"] == read_answer(answer)[0] for true, answer in zip(gold, predicted, strict=True)]

    def resample(self, counts: Array, gold: NDArray[Any], predicted: NDArray[Any]) -> Array:
        letters = np.array([_letter(answer) for answer in gold])
        labels = VERDICTS.resample(counts, letters, np.array([[_letter(answer) for answer in each] for each in predicted]))
        # Chunks of one bootstrap ask of the same answers again.
        rows = _stored_rows(self, _text(gold), tuple(map(_text, predicted)))
        structured = np.array([bool(answer["structure"]) for answer in gold], dtype=float)
        number = np.maximum(counts @ structured, 1)[:, None]
        return np.concatenate([labels, np.stack([counts @ each.T / number for each in rows])])

    def rows_of(self, gold: Sequence[Mapping[str, Any]], predicted: Sequence[StoredAnswer]) -> list[dict[str, float] | None]:
        """Score each row's structure; None for a row that has none, and for all if no structure was asked for."""
        labels_alone = not predicted or any(not isinstance(answer, str) for answer in predicted)
        which = [i for i, answer in enumerate(gold) if labels_alone and answer["structure"]]
        structures = [read_answer(predicted[i])[1] for i in which]
        scores = compare([read_answer(gold[i])[1] or Structure(()) for i in which], structures, self.encoder)
        rows: list[dict[str, float] | None] = [None] * len(gold)
        for i, structure, row in zip(which, structures, scores, strict=True):
            rows[i] = {**row, "empty": float(structure is None or not structure.steps)}
        return rows

    def _mean(
        self, gold: Sequence[Mapping[str, Any]], predicted: Sequence[StoredAnswer], rows: Sequence[dict[str, float] | None],
        places: Sequence[int],
    ) -> dict[str, float]:  # fmt: skip
        labels = [(gold[i]["label"], read_answer(predicted[i])[0] or NOTHING) for i in places]
        verdicts = VERDICTS.scores([true for true, _ in labels], [answer for _, answer in labels])
        scored = [row for i in places if (row := rows[i]) is not None]
        names = [name for name in self.metrics if name not in verdicts]
        return verdicts | {name: round(float(np.mean([row[name] for row in scored])), 4) if scored else np.nan for name in names}


def _conclusions(answer: Mapping[str, Any]) -> set[str]:
    """Return the conclusions of an answer's structure, each of which is one reasoning step."""
    return {step["conclusion"] for step in answer["structure"]}


def _no_macro_f1(labels: set[str]) -> dict[str, float]:
    """Hide the macro-F1 of rows of one label, which would be the F1 of that label alone."""
    return {} if len(labels) > 1 else {"macro_f1": np.nan}


def _places(groups: Sequence[str | None], name: str) -> list[int]:
    return [i for i, group in enumerate(groups) if group == name]


def _letter(answer: StoredAnswer) -> str:
    return (read_answer(answer)[0] or NOTHING)[0]


def _text(answers: Any) -> str:
    return json.dumps(list(answers), ensure_ascii=False)


@lru_cache(maxsize=4)
def _stored_rows(scorer: StructureScorer, gold: str, predicted: tuple[str, ...]) -> Array:
    """Return `ss` and `es` of each row, scores × models × rows; 0 for a row without a structure, nan where none was asked for."""
    answers = json.loads(gold)
    numbers = []
    for each in predicted:
        rows = scorer.rows_of(answers, json.loads(each))
        nothing = 0.0 if any(rows) else np.nan
        numbers.append([[row[name] if row else nothing for row in rows] for name in ("ss", "es")])
    return np.array(numbers).swapaxes(0, 1)


STRUCTURES = StructureScorer()
