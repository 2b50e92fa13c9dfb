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
from hfcf.training.answer_details import no_answer_details, span_details, spread
from hfcf.training.open_domain import OpenHyperparameters
from hfcf.training.open_reader import evaluate_open_reader, train_open_reader
from hfcf.training.reader import train_reader, usable
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

    def usable(self, rows: Dataset, hp: Hyperparameters) -> Dataset:
        """Return the rows that a training learns from."""
        return rows if isinstance(hp, OpenHyperparameters) else usable(rows, hp.model)

    def predict(self, rows: Dataset, model: Model, *, max_length: int | None = None, labels: Sequence[str] = ()) -> list[str]:
        """Return the likeliest answer to each row, "" where the reader finds none."""
        max_length = read_length(model, max_length)
        if (open_reader := stored_open_reader(model, max_length)) is not None:
            return first_texts(open_reader.run(rows["question"][:]))
        return first_texts(_without_abstentions(rows, self._read(rows, model, max_length)))

    def evaluate(self, rows: Dataset, model: Model, *, max_length: int | None = None, ways: int | None = None) -> Evaluation:
        """Score a reader on rows by exact match and F1; rows without a context are left out.

        Where some rows have no answer, as in SQuAD 2.0, a reader that finds none likelier than its span gives none (""), and a
        note counts these rows. Where all rows have one, it always answers.

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
        asked = rows.select(kept)
        found = self._read(asked, model, max_length)
        given = _without_abstentions(rows, found)
        answers = first_texts(given)
        answer_of = dict(zip(kept, answers, strict=True))
        scores = {"rows": len(kept), **scorer.scores([gold[i] for i in kept], answers)}
        scores |= {"skipped": len(left_out)} if left_out else {}
        of_each = [span_details(shown) if shown else no_answer_details(every) for shown, every in zip(given, found, strict=True)]
        predicted = [answer_of.get(i) for i in range(len(rows))]
        cut, notes = Reader(model=model, max_length=max_length).count_cut(_requests(asked)), []
        if cut:
            notes.append("a question is cut at half of the tokens of an input; a passage is read in windows, and never cut")
        if unanswered := sum(not gold[i] for i in kept):
            notes.append(f"{unanswered} of the {len(kept)} rows have no answer: giving none is right there, and possible anywhere")
        return Evaluation(
            scores, gold, predicted, left_out, cut=cut, max_length=max_length, notes=notes, details=spread(of_each, kept, len(rows))
        )

    def _read(self, rows: Dataset, model: Model, max_length: int) -> list[list[dict[str, Any]]]:
        """Return the likeliest answer to each row in a list, which is empty where the reader finds none."""
        return Reader(model=model, max_length=max_length, n_best=1).run(_requests(rows))


def _requests(rows: Dataset) -> list[list[str]]:
    return [[row["question"], row["context"] or "", row["title"] or ""] for row in rows.select_columns(list(TASK.columns))]


def _without_abstentions(rows: Dataset, found: Sequence[Sequence[Mapping[str, Any]]]) -> list[Sequence[Mapping[str, Any]]]:
    """Return the answers to each row; if rows of the set have none, no answers where giving none is likelier."""
    if all(answers["text"] for answers in rows["answers"]):
        return list(found)
    return [answers if answers and answers[0]["probability"] >= (answers[0]["no_answer"] or 0.0) else [] for answers in found]


TRAINER = ReaderTrainer()
