"""Train and score verifiers: a three-way verifier checks edits and claims, and a two-way verifier judges data."""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from datasets import Dataset, concatenate_datasets

from hfcf.core.model import Model, is_prompted
from hfcf.core.model_checks import read_length
from hfcf.core.trainer import Evaluation, used_labels
from hfcf.engines.classifier import Classifier, choose
from hfcf.tasks.verification import LABELS, NOT_ENOUGH_INFO, REFUTES, SUPPORTS, TASK
from hfcf.text.label_names import label_of
from hfcf.training.answer_details import label_details, spread
from hfcf.training.classifier import check_verdicts, pairs_of, predict, train_classifier
from hfcf.training.debias import Debias, prepare
from hfcf.training.trainer import Hyperparameters

log = logging.getLogger(__name__)


def add_nei(ds: Dataset, *, seed: int = 13) -> Dataset:
    """Add NOT ENOUGH INFO rows to verification rows of a corpus that has none; `seed` decides which rows, ways and pieces.

    Half of the SUPPORTS rows and half of the REFUTES rows are perturbed, in one of two ways with equal odds. One true piece of
    evidence is removed, or the claim is paired with the evidence of another row. The perturbed rows follow the original rows.

    Source: Zhu et al. 2023, RACE, appendix B. Deviations: a row with a single true piece always gets other evidence. Without the
    piece nothing is left to read. The other row is never of the same group, whose evidence may decide the claim. Table 6 of the
    paper counts 9,086 NEI rows and 11,023 + 7,148 = 18,171 other rows. The sum is 27,257, not the 27,572 that it prints.
    """
    rng = random.Random(f"{seed}:nei")
    columns = ["id", "group_id", "label", "evidence", *(["gold"] if "gold" in ds.features else [])]
    rows = ds.select_columns(columns).to_list()
    chosen: list[int] = []
    for label in (SUPPORTS, REFUTES):
        members = [i for i, row in enumerate(rows) if row["label"] == label]
        chosen += rng.sample(members, len(members) // 2)
    changes: dict[int, dict[str, Any]] = {}
    for i in sorted(chosen):
        drop = rng.random() < 0.5 and sum(_gold(rows[i])) > 1
        if (pieces := _drop_piece(rows[i], rng) if drop else _draw_evidence(rows, i, rng)) is not None:
            evidence, gold = pieces
            changes[i] = {"evidence": evidence, "label": NOT_ENOUGH_INFO, "id": f"{rows[i]['id']}-nei"}
            changes[i] |= {"gold": gold} if "gold" in columns else {}
    if not changes:
        return ds
    by_place = list(changes.values())
    new = ds.select(list(changes)).map(lambda _, i: by_place[i], with_indices=True, features=ds.features, desc="add NEI")
    return concatenate_datasets([ds, new])


def _drop_piece(row: dict[str, Any], rng: random.Random) -> tuple[list[dict[str, Any]], list[bool]]:
    gold = _gold(row)
    drop = rng.choice([i for i, true in enumerate(gold) if true])
    return row["evidence"][:drop] + row["evidence"][drop + 1 :], gold[:drop] + gold[drop + 1 :]


def _gold(row: dict[str, Any]) -> list[bool]:
    """Mark the pieces that are gold evidence: all, without a column `gold`."""
    return row.get("gold") or [True] * len(row["evidence"])


def _draw_evidence(rows: list[dict[str, Any]], i: int, rng: random.Random) -> tuple[list[dict[str, Any]], list[bool]] | None:
    for _ in range(100):
        other = rows[rng.randrange(len(rows))]
        if other["group_id"] != rows[i]["group_id"] and other["evidence"]:
            return list(other["evidence"]), [False] * len(other["evidence"])  # none of it is true evidence of this claim
    return None  # the set holds one group only


def train_verifier(
    rows: Dataset, hp: Hyperparameters, out: Path, *, labels: Sequence[str] = LABELS, claim_only: bool = False,
    debias: Debias | None = None,
) -> None:  # fmt: skip
    """Train a verifier and store it, or its adapter, in `out`; an interrupted run continues.

    Args:
        rows: verification rows with these labels; for three, NEI rows included (`add_nei` makes some).
        labels: its classes, in the order of its outputs.
        claim_only: hide the evidence: the baseline that shows how much of a score is claim bias.
        debias: train with a loss that keeps it from learning that bias.

    Raises:
        ValueError: both `claim_only` and `debias`: without the evidence there is nothing else to learn.
    """
    if claim_only and debias:
        raise ValueError("claim_only with debias: without the evidence there is nothing else to learn than the bias")
    loss, columns = prepare(debias, rows, labels, hp, out / "bias") if debias else (None, {})
    train_classifier(rows, hp, out, labels=labels, claim_only=claim_only, loss=loss, columns=columns)


def of_labels(rows: Dataset, labels: Sequence[str], where: str = "") -> Dataset:
    """Select the rows of some labels; with `where`, log how many rows are left out there."""
    kept = rows.select([i for i, label in enumerate(rows["label"]) if label in labels])
    if where and len(kept) < len(rows):
        log.warning("%s: %d of %d rows are left out: none of %s", where, len(rows) - len(kept), len(rows), ", ".join(labels))
    return kept


def two_way(rows: Dataset) -> Dataset:
    """Select the SUPPORTS and REFUTES rows, on which RACE's paper trains and evaluates its two-way verifier."""
    return of_labels(rows, LABELS[:2])


def scores(gold: Sequence[str], predicted: Sequence[str | None]) -> dict[str, float]:
    """Compute accuracy and macro-F1, the mean of the F1 of the labels that occur in `gold`.

    Macro-F1 is that of scikit-learn with these labels: `f1_score(gold, predicted, labels=sorted(set(gold)), average="macro")`. A
    label that is only predicted reduces the recall of other labels, and is not in the mean. For rows of one label it is the F1 of
    that label; see `without_macro_f1`.
    """
    from sklearn.metrics import accuracy_score, f1_score

    predicted = ["" if label is None else label for label in predicted]  # what was not answered is wrong
    return {
        "accuracy": round(float(accuracy_score(gold, predicted)), 4),
        "macro_f1": round(float(f1_score(gold, predicted, labels=sorted(set(gold)), average="macro", zero_division=0)), 4),
    }


def without_macro_f1(results: Mapping[str, Any], gold: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Return scores without macro-F1 where all rows have one label, and a note that says so."""
    several = len(set(gold)) > 1
    kept = {name: value for name, value in results.items() if several or name != "macro_f1"}
    return kept, [] if several or not gold else [f"there is no macro-F1: all rows that are scored are {gold[0]}"]


def choose_labels(rows: Dataset, classes: Sequence[str], ways: int | None) -> tuple[tuple[str, ...], dict[int, str]]:
    """Return the labels on which to score a verifier with some classes, and why other rows are left out, by their index.

    Args:
        classes: labels that the verifier answers with.
        ways: 2 for SUPPORTS and REFUTES, 3 for all labels; None: the classes that rows have, SUPPORTS and REFUTES in any case.

    Raises:
        ValueError: `ways` is another number.
    """
    if ways not in (None, 2, 3):
        raise ValueError(f"ways must be 2 or 3, got {ways}: 2 leaves {NOT_ENOUGH_INFO} out, 3 scores all labels")
    given = list(rows["label"])
    labels = tuple(label for label in used_labels(TASK, given) if label in classes) if ways is None else LABELS[:ways]
    why = f"the model has no class {{}}, only {', '.join(classes)}" if ways is None else f"ways={ways} leaves {{}} out"
    left_out = {
        i: "the row has no label" if label is None else why.format(label) for i, label in enumerate(given) if label not in labels
    }
    return labels, left_out


def evaluate_verifier(rows: Dataset, engine: Classifier, *, ways: int | None = None, claim_only: bool = False) -> Evaluation:
    """Score a verifier on verification rows.

    Args:
        rows: verification rows.
        engine: the verifier.
        ways: 2 leaves NOT ENOUGH INFO rows out and masks that class, as RACE's evaluation does. 3 keeps all, and a label that the
            verifier lacks counts as wrong. By default the labels are the verifier's that rows have.
        claim_only: hide the evidence.

    Returns:
        With the scores `rows`, `accuracy`, `macro_f1`, and `majority`, the accuracy of always answering the commonest label.
    """
    labels, left_out = choose_labels(rows, engine.labels, ways)
    kept = [i for i in range(len(rows)) if i not in left_out]
    requests = pairs_of(rows.select(kept), claim_only=claim_only)
    answers = engine.run(requests)
    cut = engine.count_cut(requests)
    return _evaluation(rows, kept, answers, labels, left_out, engine.labels, cut=cut, max_length=engine.max_length)


def evaluate_remote(rows: Dataset, model: Model, *, ways: int | None = None) -> Evaluation:
    """Score a language model behind an endpoint as `evaluate_verifier` does; it chooses among the labels that are scored.

    The score `unanswered` counts the rows without a valid answer, which are wrong.
    """
    names = dict(model.labels or zip(LABELS, LABELS, strict=True))
    classes = [label for label in LABELS if label in map(label_of, names.values())]
    labels, left_out = choose_labels(rows, classes, ways)
    kept = [i for i in range(len(rows)) if i not in left_out]
    # A label that is not scored would leave the other labels at 0, and a tie would choose between them.
    scored_model = replace(model, labels={name: label for name, label in names.items() if label_of(label) in labels})
    answers = TASK.verdicts(list(rows.select(kept)), scored_model, 0) if kept else []
    result = _evaluation(rows, kept, answers, labels, left_out, classes)
    unanswered = sum(not isinstance(answer, Mapping) for answer in answers)
    return replace(result, scores={**result.scores, "unanswered": unanswered}) if kept else result


def _evaluation(
    rows: Dataset, kept: Sequence[int], answers: Sequence[Mapping[str, float] | str | None], labels: Sequence[str],
    left_out: Mapping[int, str], classes: Sequence[str], **more: Any,
) -> Evaluation:  # fmt: skip
    """Score answers of a verifier with some classes, and note the classes that were masked or are absent."""
    result = rate_labels(rows, kept, answers, left_out, labels, **more)
    masked, absent = ([one for one in some if one not in others] for some, others in ((classes, labels), (labels, classes)))
    true = {result.gold[i] for i in kept}
    notes = [f"{label} is not an answer here, although the model has that class: no row that is scored has it" for label in masked]
    notes += [f"the model has no class {label}: its rows count as wrong" for label in absent if label in true]
    return replace(result, notes=(*result.notes, *notes))


def rate_labels(
    rows: Dataset, kept: Sequence[int], answers: Sequence[Mapping[str, float] | str | None], left_out: Mapping[int, str],
    labels: Sequence[str] = (), **more: Any,
) -> Evaluation:  # fmt: skip
    """Score answers, {label: probability} or the reason why there is none, to the rows that were kept.

    Without `labels`, the likeliest class of each answer counts, and the labels are those that rows and answers have.
    """
    likeliest = [choose(answer, labels or list(answer)) if isinstance(answer, Mapping) else None for answer in answers]
    gold, predicted = list(rows["label"]), dict(zip(kept, likeliest, strict=True))
    true, results, notes = [gold[i] for i in kept], dict[str, Any](), list[str]()
    if kept:
        results, notes = without_macro_f1(scores(true, likeliest), true)
        results["majority"] = round(max(map(true.count, set(true))) / len(true), 4)
    labels = tuple(labels or sorted({*true, *(label for label in likeliest if label)}))
    details = spread([label_details(answer) for answer in answers], kept, len(gold))
    answered = [predicted.get(i) for i in range(len(gold))]
    return Evaluation({"rows": len(kept), **results}, gold, answered, left_out, labels, notes=notes, details=details, **more)


@dataclass(frozen=True)
class VerifierTrainer:
    """Trains and asks verifiers for a comparison; see `hfcf.core.trainer.Trainer`."""

    debiases: ClassVar[bool] = True
    changes: tuple[str, ...] = ("claim", "evidence", "both")
    ways: int | None = None

    def check_start(self, hp: Hyperparameters, labels: Sequence[str]) -> None:
        """Raise `ValueError` for a classifier with other classes than the labels."""
        check_verdicts(hp, labels)

    def train(
        self, rows: Dataset, hp: Hyperparameters, out: Path, *, labels: Sequence[str], dev: Dataset | None = None,
        debias: Debias | None = None,
    ) -> int | None:  # fmt: skip
        """Train a verifier; an interrupted training continues. No epoch is chosen: it is the last."""
        train_verifier(rows, hp, out, labels=labels, debias=debias)
        return None

    def predict(self, rows: Dataset, model: Model, *, max_length: int | None = None, labels: Sequence[str]) -> list[str]:
        """Return the likeliest of some labels for each row."""
        engine = Classifier(model=model, max_length=read_length(model, max_length))
        return [choose(answer, labels) for answer in predict(rows, engine)]

    def evaluate(self, rows: Dataset, model: Model, *, max_length: int | None = None, ways: int | None = None) -> Evaluation:
        """Score a verifier on rows, and the majority baseline; "llm:NAME" is asked over its endpoint."""
        if is_prompted(model):
            return evaluate_remote(rows, model, ways=ways)
        return evaluate_verifier(rows, Classifier(model=model, max_length=read_length(model, max_length)), ways=ways)


TRAINER = VerifierTrainer()
