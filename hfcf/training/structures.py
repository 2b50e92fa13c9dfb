"""Models for CheckWhy's four tasks: how they are trained, asked and scored."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from datasets import Dataset
from torch import nn

from hfcf.core.model import Model
from hfcf.core.model_checks import read_length
from hfcf.core.pretrained import read_tokenizer, read_weights
from hfcf.core.settings import NonNegative, check_numbers
from hfcf.core.trainer import Evaluation, used_labels
from hfcf.engines.generator import ProgramWriter, two_sided
from hfcf.engines.graph_verifier import GraphVerifier, collate, encode_graph
from hfcf.engines.networks import load_network
from hfcf.metrics.scores.structures import encoder_of
from hfcf.tasks.task_inputs import WRITTEN, View, answer_text, evidence_text, program_text, views
from hfcf.tasks.verification import LABELS
from hfcf.tasks.verification import TASK as VERIFICATION
from hfcf.training.answer_details import spread
from hfcf.training.generator import train_texts
from hfcf.training.structure_answers import KINDS, Purpose, StructureAnswer, ask, ask_in_turn, classes_of, count_cut, graph, purpose
from hfcf.training.structure_scorer import StructureScorer, to_answer
from hfcf.training.trainer import Hyperparameters, LengthSampler, Loss, fit
from hfcf.training.verifier import train_verifier

log = logging.getLogger(__name__)


def train_structures(
    rows: Dataset, hp: Hyperparameters, out: Path, *, task: int = 3, kind: str = "seq2seq", labels: Sequence[str] = LABELS[:2]
) -> Counter[str]:
    """Train a model for one of CheckWhy's tasks and store it, or its adapter, in `out`; an interrupted run continues.

    The paper's settings (Appendix A): classifiers and graph verifiers from BERT-base, batches of 8, 5e-6. CodeT5-base and CodeT5+
    0.7B: batches of 4, 1e-5, 512 tokens in and 400 out. It does not say for how many epochs.

    Args:
        rows: rows of argument structures.
        hp: how. `max_length` is of the text that a model reads; of a graph verifier, of a node.
        out: a folder. `structures.json` in it says what the model is for.
        task: 1 to 4, see `hfcf.tasks.task_inputs.VIEWS`.
        kind: "classifier" of a claim and a text (BERT), "graph" (Transformer-XH-like), or "seq2seq", which writes programs (CodeT5;
            a decoder-only model will do as well).
        labels: the classes; NOT ENOUGH INFO is of Task 1 alone.

    Returns:
        How many rows are not trained on, for each reason.

    Raises:
        ValueError: the kind does not do the task, or no row is left to train on. Also if a class has no row and the answer is
            the class alone (Tasks 1 and 2).
    """
    if kind not in KINDS or (kind != "seq2seq" and task in WRITTEN):
        raise ValueError(f"kind={kind!r} with task {task}: a classifier or graph does tasks 1 and 2, a seq2seq all four")
    shown, left_out = _to_train_on(rows, task, labels)
    if not shown:
        why = "; ".join(f"{number} rows: {reason}" for reason, number in left_out.items())
        raise ValueError(f"there is nothing to train on for task {task}: {why or 'there are no rows'}")
    for reason, number in left_out.items():
        log.warning("%d of %d rows are not trained on: %s", number, len(rows), reason)
    answers = [view.label for view in shown]
    if absent := [label for label in labels if label not in answers]:
        if task not in WRITTEN:
            raise ValueError(_absent(absent[0], f"task {task} is to tell {', '.join(labels)} apart"))
        log.warning("no row to train on is %s: the model learns structures, and never this label", absent[0])
    if kind == "classifier":
        evidence = [[{"title": "", "text": evidence_text(view)}] for view in shown]
        columns = {"claim": [view.claim for view in shown], "evidence": evidence, "label": answers}
        train_verifier(Dataset.from_dict(columns), hp, out, labels=labels)
    elif kind == "graph":
        train_graph_verifier([graph(view) for view in shown], answers, hp, out, labels=labels)
    else:
        pairs = {"source": [program_text(view) for view in shown], "target": [answer_text(view) for view in shown]}
        train_texts(Dataset.from_dict(pairs), hp, out, max_target=ProgramWriter.max_new_tokens, prompt=ProgramWriter.prompt)
    Purpose(task, kind, hp.max_length, labels=tuple(labels)).save(out)
    return left_out


def check_classes(labels: Sequence[str], ways: int | None, where: str) -> None:
    """Raise where rows shall be scored on three labels and none is NOT ENOUGH INFO; where there are no rows, nothing is scored."""
    if ways == len(LABELS) and len(labels) and LABELS[-1] not in labels:
        raise ValueError(_absent(LABELS[-1], f"{where}: ways is {ways}"))


def _absent(label: str, why: str) -> str:
    return f"{why}, and no row is {label}: give rows of this label (checkwhy has them with classes: 3), or fewer labels by ways"


def _to_train_on(rows: Dataset, task: int, labels: Sequence[str]) -> tuple[list[View], Counter[str]]:
    _, shown, reasons = views(rows, task, labels=labels)
    left_out = Counter(reasons.values())
    kept = [view for view in shown if task not in WRITTEN or view.target is not None]
    if len(kept) < len(shown):
        left_out["the row has no structure to learn from"] = len(shown) - len(kept)
    return kept, left_out


def train_graph_verifier(
    requests: Sequence[Any], answers: Sequence[str], hp: Hyperparameters, out: Path, *, labels: Sequence[str]
) -> None:
    """Train a graph verifier and store it in `out`, whole: `Model(str(out))` names it.

    No checkpoints are written: an interrupted training starts again.

    Args:
        requests: `[claim, texts, edges]`, as `hfcf.engines.graph_verifier.GraphClassifier` takes them.
        answers: the label of each.
        hp: how; `max_length` is of a node, and `tune` must be "full". A model with an adapter starts from its encoder.
        out: a folder.
        labels: the classes, in the order of the outputs.

    Raises:
        ValueError: `tune`, a label that `labels` lacks, or nothing to train on.
    """
    from transformers import AutoModel, AutoModelForSequenceClassification, set_seed

    if hp.tune != "full":
        raise ValueError(f"tune={hp.tune!r}: a graph verifier is trained and stored whole: tune=full")
    if not requests:
        raise ValueError("there is nothing to train on: no row is left")
    if unknown := sorted(set(answers) - set(labels)):
        raise ValueError(f"labels must have every label of the rows, got {', '.join(labels)} without {unknown[0]!r}: add it")
    set_seed(hp.seed)  # the new weights too
    tokenizer = read_tokenizer(hp.model)
    if hp.model.adapter:
        encoder = load_network(AutoModelForSequenceClassification, hp.model, torch.float32).base_model
    else:
        encoder = read_weights(AutoModel, hp.model, dtype=torch.float32)
    network = GraphVerifier(encoder, labels)
    network.train()
    classes = {label: i for i, label in enumerate(labels)}
    encoded = [encode_graph(tokenizer, request, hp.max_length) for request in requests]

    def batch(items: Sequence[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
        graphs = collate(tokenizer, [encoded[item["place"]] for item in items], torch.device("cpu"))
        return {**graphs, "labels": torch.tensor([item["labels"] for item in items])}

    rows = Dataset.from_dict({"place": list(range(len(encoded))), "labels": [classes[label] for label in answers]})
    order = LengthSampler([len(item) for item in encoded], hp.batch_size, hp.seed)
    fit(
        network, tokenizer, rows, hp, collator=batch, task_type="", head=(), out=out,
        loss=Loss(of=_loss, columns=("place", "labels"), order=order), checkpoints=False, data=requests,
    )  # fmt: skip


def _loss(output: Any, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
    return nn.functional.cross_entropy(output.logits.float(), batch["labels"])


@dataclass(frozen=True)
class StructureTrainer:
    """Trains, asks and scores models of argument structures; see `hfcf.core.trainer.Trainer`.

    Args:
        task: 1 to 4; None: what the model was trained for. Training without it is for Task 3 if it is a seq2seq, else for Task 1.
        kind: of a training; None: "seq2seq" for an encoder-decoder, else "classifier".
        reader: a second model, trained for Task 2, which reads what the first model writes and gives the label (Table 7).
        repaired: read programs with common slips repaired.
        shots: worked examples for a language model.
        distractors: show at most so many distractors of each row, as in Table 5, over the same rows for every number; None: all.
        encoder: of the structure similarity that `evaluate` scores by, see `hfcf.metrics.scores.structures.encoder_of`.
    """

    changes: tuple[str, ...] = ("claim", "evidence", "both")
    ways: int | None = 2
    """NOT ENOUGH INFO is of Task 1 alone."""
    task: int | None = None
    kind: str | None = None
    reader: Model | None = None
    repaired: bool = False
    shots: int = 3
    distractors: NonNegative | None = None
    encoder: str = "offline"

    def __post_init__(self) -> None:
        check_numbers(self)
        encoder_of(self.encoder)

    @property
    def scorer(self) -> StructureScorer:
        """Rates its answers, by its encoder."""
        return StructureScorer(encoder_of(self.encoder))

    def train(
        self, rows: Dataset, hp: Hyperparameters, out: Path, *, labels: Sequence[str], dev: Dataset | None = None,
    ) -> int | None:  # fmt: skip
        """Train a model; no epoch is chosen: it is the last."""
        kind = self.kind or ("seq2seq" if two_sided(hp.model) else "classifier")
        train_structures(rows, hp, out, task=self.task or (3 if kind == "seq2seq" else 1), kind=kind, labels=labels)
        return None

    def answers(
        self, rows: Dataset, model: Model, *, max_length: int | None, labels: Sequence[str] | None
    ) -> StructureAnswers:  # fmt: skip
        """Predict the rows that the model's task takes; without `labels`, with the model's labels that rows have."""
        trained = purpose(model, self.task)
        if labels is None:
            classes = classes_of(model, trained) or LABELS
            labels = [label for label in used_labels(VERIFICATION, rows["label"]) if label in classes]
            labels = labels if trained.task == 1 else LABELS[:2]
        if trained.max_length not in (None, max_length) and max_length is not None:
            log.warning("%s was trained to read %d tokens, and reads %d", model.name, trained.max_length, max_length)
        max_length = read_length(model, max_length or trained.max_length)
        places, shown, left_out = views(rows, trained.task, labels=labels, seed=trained.seed, distractors_shown=self.distractors)
        settings: dict[str, Any] = {"max_length": max_length, "labels": labels, "shots": self.shots}
        answers = ask(shown, model, trained.kind, repaired=self.repaired, **settings)
        if self.reader is not None:
            if trained.task not in WRITTEN:
                raise ValueError(f"reader: the first model must write structures, as in tasks 3 and 4; this is task {trained.task}")
            second = purpose(self.reader, 2)
            answers = ask_in_turn(list(zip(shown, answers, strict=True)), model=self.reader, kind=second.kind, **settings)
        return StructureAnswers(trained, max_length, tuple(labels), places, shown, answers, left_out)

    def predict(self, rows: Dataset, model: Model, *, max_length: int | None = None, labels: Sequence[str]) -> list[Any]:
        """Return the answer to each row: a label, or in Tasks 3 and 4 `hfcf.training.structure_scorer.to_answer`.

        It is None where the model gives no label, or its task does not take the row.
        """
        results = self.answers(rows, model, max_length=max_length, labels=labels)
        for reason, number in Counter(results.left_out.values()).items():
            log.warning("%d of %d rows are left out: %s", number, len(rows), reason)
        return results.stored(len(rows))

    def ways_of(self, model: Model, ways: int | None) -> int | None:
        """Return on how many labels to score a model: so many as are given, or its own; None where nothing says how many it has.

        Only Task 1 has three labels: the given number is returned for Tasks 2 to 4.

        Raises:
            ValueError: the model has fewer labels.
        """
        trained = purpose(model, self.task)
        classes = classes_of(model, trained)
        if trained.task != 1 or classes is None:
            return ways
        if ways is not None and ways > len(classes):
            raise ValueError(
                f"ways must be at most {len(classes)}, got {ways}: {model.name} answers {' or '.join(classes)} alone. Leave ways "
                f"out, or train a model with ways={ways}"
            )
        return len(classes) if ways is None else ways

    def evaluate(self, rows: Dataset, model: Model, *, max_length: int | None = None, ways: int | None = None) -> Evaluation:
        """Score a model on rows; see `hfcf.training.structure_scorer.StructureScorer` for the scores.

        Args:
            rows: of argument structures.
            model: what `train_structures` stored, or "llm:NAME" with `task` set.
            max_length: see `train_structures`; by default that of the training.
            ways: 3 scores Task 1 on all labels, 2 without NOT ENOUGH INFO; by default on the labels of the model that rows have.

        Returns:
            The scores `task`, `rows`, `left out`, `unreadable`, and the scores of the scorer. The name of each group, by reasoning
            steps (Table 6) and distractors (Table 5), has the same scores of its rows. `left out` counts rows that the task does
            not take, or that have another label. `unreadable` counts answers of which a part could not be read: their structures
            count as empty, and their labels are read by themselves. `strict_accuracy` counts the label of an answer only if all of
            it could be read. The paper does not say which of the two it reports.
        """
        if ways not in (None, 2, 3):
            raise ValueError(f"ways must be 2 or 3, got {ways}")
        self.ways_of(model, ways)
        task = purpose(model, self.task).task
        labels = None if ways is None else LABELS[: ways if task == 1 else 2]
        check_classes(rows["label"], ways if task == 1 else None, "the rows to score on")
        results = self.answers(rows, model, max_length=max_length, labels=labels)
        scorer = self.scorer
        true = scorer.gold(rows.select(results.places))
        hidden = [label for label in classes_of(model, results.trained) or () if task == 1 and label not in results.labels]
        notes = [f"the model's class {label} is not an answer here: the rows are scored without it" for label in hidden]
        if (most := self.distractors) is not None:
            if fewer := sum(answer["distractors"] < most for answer in true):
                notes += [f"{fewer} of {len(true)} rows have fewer than {most} distractors, and show all of theirs"]
            true = [{**answer, "distractors": min(most, answer["distractors"])} for answer in true]
        structures = dict(zip(results.places, true, strict=True))
        gold = [structures.get(i, label) for i, label in enumerate(rows["label"])]
        predicted = results.stored(len(rows))
        result = Evaluation(
            {"task": task, "rows": len(results.shown), "left out": len(results.left_out)}, gold, predicted, results.left_out,
            results.labels, max_length=results.max_length,
            cut=count_cut(results.shown, model, results.trained.kind, results.max_length), notes=notes,
            details=spread(list(map(_details, results.shown, results.answers)), results.places, len(rows)),
        )  # fmt: skip
        if not results.shown:
            return result
        every, *groups = scorer.table(true, [predicted[i] for i in results.places])
        if single := [line["group"] for line in (every, *groups) if math.isnan(line["macro_f1"])]:
            notes = [*notes, f"there is no macro-F1 of groups whose rows have one label: {', '.join(single)}"]
        parts = {line.pop("group"): {"task": task, **_numbers(line)} for line in groups}
        scores = {
            **result.scores,
            "unreadable": sum(answer.fault is not None for answer in results.answers),
            "strict_accuracy": _strict_accuracy(results),
            **_numbers({**every, "group": None}),
            **parts,
        }
        return replace(result, scores=scores, notes=notes)


class StructureAnswers(NamedTuple):
    """What a model answered to the rows that its task takes; `left_out` says why it does not take a row, by the row's place."""

    trained: Purpose
    max_length: int
    labels: tuple[str, ...]
    places: list[int]
    shown: list[View]
    answers: list[StructureAnswer]
    left_out: dict[int, str]

    def stored(self, rows: int) -> list[Any]:
        """Return the answer to each of all rows as comparisons store it; None where the task does not take the row."""
        by_place = dict(zip(self.places, map(_stored, self.shown, self.answers), strict=True))
        return [by_place.get(i) for i in range(rows)]


def _stored(view: View, answer: StructureAnswer) -> Any:
    if view.task not in WRITTEN:
        return answer.label
    return to_answer(None if answer.fault and not answer.structure.steps else answer.structure, answer.label)


def _details(view: View, answer: StructureAnswer) -> dict[str, Any]:
    """Return what a file of predictions says of an answer; `hfcf score structures` reads a program by its `names` of evidence."""
    if view.task in WRITTEN:
        details: dict[str, Any] = {"prediction": answer.text, "label": answer.label, "names": dict(view.ids)}
    else:
        details = {} if answer.text is None else {"written": answer.text}
    more = {"probabilities": answer.probabilities, "fault": answer.fault}
    return details | {name: value for name, value in more.items() if value is not None}


def _strict_accuracy(results: StructureAnswers) -> float:
    """Return the share of the right labels whose answers could be read as a whole."""
    pairs = zip(results.shown, results.answers, strict=True)
    return round(sum(answer.fault is None and answer.label == view.label for view, answer in pairs) / len(results.shown), 4)


def _numbers(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scores of a group that have a value; in Tasks 1 and 2 the scores of structures have none."""
    return {name: value for name, value in line.items() if isinstance(value, int | float) and not math.isnan(value)}


TRAINER = StructureTrainer()
