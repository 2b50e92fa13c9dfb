"""Train and ask readers in a comparison, both readers of a passage and open-domain readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datasets import Dataset

from hfcf.core.model import Model
from hfcf.core.model_checks import read_length
from hfcf.core.trainer import Evaluation, load_scorer
from hfcf.engines.open_reader import stored_open_reader
from hfcf.engines.reader import Reader, first_texts
from hfcf.tasks.qa import TASK
from hfcf.training.answer_details import span_details, spread
from hfcf.training.open_domain import OpenHyperparameters
from hfcf.training.open_reader import evaluate_open_reader, train_open_reader
from hfcf.training.reader import train_reader
from hfcf.training.trainer import Hyperparameters


@dataclass(frozen=True)
class ReaderTrainer:
    """Trains and asks readers for a comparison; see `hfcf.core.trainer.Trainer`.

    An open-domain model (`hfcf.training.open_reader`) gets only the question and ignores a row's context. `OpenHyperparameters`
    start the training of such a model, and the files in its folder mark it.
    """

    changes: tuple[str, ...] = ()
    ways: int | None = None
    open_domain: bool = True
    """Whether its models can be open-domain models."""

    def train(
        self, rows: Dataset, hp: Hyperparameters, out: Path, *, labels: Sequence[str] = (), dev: Dataset | None = None,
    ) -> int | None:  # fmt: skip
        """Train a reader; an interrupted training continues. No epoch is chosen: it is the last."""
        if isinstance(hp, OpenHyperparameters):
            train_open_reader(rows, hp, out)
        else:
            train_reader(rows, hp, out)
        return None

    def predict(self, rows: Dataset, model: Model, *, max_length: int | None = None, labels: Sequence[str] = ()) -> list[str]:
        """Return the likeliest answer to each row, "" where the reader finds none."""
        max_length = read_length(model, max_length)
        if (open_reader := stored_open_reader(model, max_length)) is not None:
            return first_texts(open_reader.run(rows["question"][:]))
        return _answers(rows, self._read(rows, model, max_length))

    def evaluate(self, rows: Dataset, model: Model, *, max_length: int | None = None, ways: int | None = None) -> Evaluation:
        """Score a reader on rows by exact match and F1; rows without a context are left out.

        Where some rows have no answer, as in SQuAD 2.0, a reader that finds none likelier than its span gives none (""). Where
        all rows have one, it always answers.

        An open-domain model answers every row: see `hfcf.training.open_reader.evaluate_open_reader`.
        """
        if ways is not None:
            raise ValueError("ways is for verifiers; answers to questions have no labels: leave it out")
        if model.labels or model.inputs:
            raise ValueError(
                "labels and inputs are for classifiers; a reader has no classes, and reads question and context: leave them out"
            )
        max_length = read_length(model, max_length)
        if (open_reader := stored_open_reader(model, max_length)) is not None:
            return evaluate_open_reader(rows, open_reader)
        scorer = load_scorer(TASK.scorer)
        gold: list[Any] = scorer.gold(rows)
        left_out = {i: "it has no context to read" for i, context in enumerate(rows["context"]) if not context}
        kept = [i for i in range(len(rows)) if i not in left_out]
        if not kept:
            return Evaluation({"rows": 0, "skipped": len(rows)}, gold, [None] * len(rows), left_out, max_length=max_length)
        found = self._read(rows.select(kept), model, max_length)
        answers = _answers(rows, found)
        answer_of = dict(zip(kept, answers, strict=True))
        scores = {"rows": len(kept), **scorer.scores([gold[i] for i in kept], answers)}
        scores |= {"skipped": len(left_out)} if left_out else {}
        details = spread([span_details(answer) for answer in found], kept, len(rows))
        predicted = [answer_of.get(i) for i in range(len(rows))]
        return Evaluation(scores, gold, predicted, left_out, max_length=max_length, details=details)

    def _read(self, rows: Dataset, model: Model, max_length: int) -> list[list[dict[str, Any]]]:
        """Return the likeliest answer to each row in a list, which is empty where the reader finds none."""
        requests = [[row["question"], row["context"] or "", row["title"] or ""] for row in rows.select_columns(list(TASK.columns))]
        return Reader(model=model, max_length=max_length, n_best=1).run(requests)


def _answers(rows: Dataset, found: Sequence[Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return the first answer to each row; "" where no answer is likelier, if rows of the set have none."""
    if all(answers["text"] for answers in rows["answers"]):
        return first_texts(found)
    given = [answers and answers[0]["probability"] >= (answers[0]["no_answer"] or 0.0) for answers in found]
    return [text if kept else "" for text, kept in zip(first_texts(found), given, strict=True)]


TRAINER = ReaderTrainer()
