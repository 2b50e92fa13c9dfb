"""Classifiers of single texts: any sequence classifier, trained on all of it, scored by accuracy and macro-F1."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

from datasets import Dataset

from hfcf.core.model import Model, is_prompted
from hfcf.core.model_checks import read_length
from hfcf.core.task import task_of
from hfcf.core.trainer import Evaluation, without_class
from hfcf.engines.classifier import choose
from hfcf.engines.classifier_spec import text_spec
from hfcf.engines.text_classifier import TextClassifier
from hfcf.training.classifier import check_text_classes, train_texts_classifier
from hfcf.training.trainer import Hyperparameters
from hfcf.training.verifier import rate_labels


@dataclass(frozen=True)
class TextTrainer:
    """Trains and asks classifiers of the texts of a column; see `hfcf.core.trainer.Trainer`."""

    column: str = "text"
    changes: tuple[str, ...] = ()
    ways: int | None = None

    def check_start(self, hp: Hyperparameters, labels: Sequence[str]) -> None:
        """Raise `ValueError` for a classifier with other classes than the labels."""
        check_text_classes(hp, labels)

    def train(
        self, rows: Dataset, hp: Hyperparameters, out: Path, *, labels: Sequence[str], dev: Dataset | None = None,
    ) -> int | None:  # fmt: skip
        """Train a classifier; an interrupted training continues. No epoch is chosen: it is the last."""
        train_texts_classifier(rows, hp, out, labels=labels, column=self.column)
        return None

    def predict(self, rows: Dataset, model: Model, *, max_length: int | None = None, labels: Sequence[str]) -> list[str]:
        """Return the likeliest label of each row; a text longer than the model reads is cut."""
        return [choose(answer, list(answer)) for answer in self._ask(rows, model, read_length(model, max_length))[0]]

    def evaluate(self, rows: Dataset, model: Model, *, max_length: int | None = None, ways: int | None = None) -> Evaluation:
        """Score a classifier on rows, "llm:NAME" over its endpoint, with the majority baseline; a corpus has its own labels."""
        if ways is not None:
            raise ValueError("ways is for verifiers; a classifier of texts is scored on all labels: leave it out")
        gold, cut = list(rows["label"]), 0
        known = set(dict(model.labels or {}).values()) if is_prompted(model) else set(text_spec(model).names)
        _check_classes(model, known, set(gold) - {None})
        left_out = without_class(gold, known)
        kept = [i for i in range(len(gold)) if i not in left_out]
        if not kept:
            return Evaluation({"rows": 0}, gold, [None] * len(gold), left_out)
        labelled, length = rows.select(kept), read_length(model, max_length)
        answers: Sequence[dict[str, float] | str | None]
        if is_prompted(model):
            answers = task_of(rows.features).verdicts(list(labelled), model, length)
        else:
            answers, cut = self._ask(labelled, model, length)
        result = rate_labels(rows, kept, answers, left_out, cut=cut, max_length=None if is_prompted(model) else length)
        unanswered = {"unanswered": sum(result.predicted[i] is None for i in kept)} if is_prompted(model) else {}
        return replace(result, scores={**result.scores, **unanswered})

    def _ask(self, rows: Dataset, model: Model, max_length: int) -> tuple[list[dict[str, float]], int]:
        """Return the probabilities of each row's labels, and how many texts were cut for it."""
        texts = list(rows[self.column])
        answers = TextClassifier(model=model, max_length=max_length).run(texts)
        longer = [i for i, answer in enumerate(answers) if answer is None]
        cut_answers = TextClassifier(model=model, max_length=max_length, cut=True).run([texts[i] for i in longer])
        for i, answer in zip(longer, cut_answers, strict=True):
            answers[i] = answer
        _check_classes(model, set(answers[0] if answers else ()), set(rows["label"]) - {None})
        return answers, len(longer)


def _check_classes(model: Model, classes: Set[str], present: Set[str]) -> None:
    """Raise `ValueError` unless a class is a label of the rows: a classifier with names of its own would be wrong on all."""
    if classes and present and not classes & present:
        raise ValueError(
            f"{model.name}: none of its classes {', '.join(sorted(classes))} is a label of these rows, which are "
            f"{', '.join(sorted(present))}: say what its classes mean by the model's labels (--labels of hfcf evaluate)"
        )


TRAINER = TextTrainer()
