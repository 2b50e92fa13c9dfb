"""How well labels of argument structures can be guessed without an argument: shortcuts in the way the rows were made.

A model that uses a shortcut appears to reason. A gain from the structure means something only above the best shortcut that the
structure opens. `python benchmarks/structure_shortcuts.py checkwhy=FOLDER/checkwhy:train` prints a table for any corpus of
structures; `--derive 2` makes rows of three labels of trees that only support, with two distractors each.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from common import show
from datasets import Dataset

from hfcf.core.splits import regroup
from hfcf.metrics.claim_only import folds_of, guess
from hfcf.metrics.shared.bootstrap import mean_interval
from hfcf.metrics.shared.texts import content_words
from hfcf.pipeline.evaluate import read_rows
from hfcf.tasks.structures.model import CLAIM
from hfcf.tasks.task_inputs import view, view_problem
from hfcf.tasks.verification import LABELS
from hfcf.training.derived_labels import derive_labels

Row = Mapping[str, Any]
NEGATION = re.compile(r"\bnot\b|\bcannot\b|n['’]t\b", re.IGNORECASE)
"""Words that deny a sentence, as counted here."""
FOLDS = 5


def parity(texts: Iterable[str]) -> int:
    """Return 1 if texts hold an odd number of denials, else 0.

    >>> parity(["Ice is not warm.", "It can't melt.", "It is cold."])
    0
    """
    return sum(len(NEGATION.findall(text)) for text in texts) % 2


def pieces_shown(row: Row) -> int:
    """Return the number of pieces of evidence that Task 1 shows."""
    return len(view(row, 1).pieces)


def shown_parity(row: Row) -> int:
    """Return the parity of denials over the claim and all evidence that Task 1 shows."""
    return parity([row["claim"], *view(row, 1).pieces.values()])


def leaf_parity(row: Row) -> int | None:
    """Return the parity of denials over the claim and the useful leaves; None without a structure."""
    leaves = {info["id"] for info in row["evidence_info"] if info["useful"] and info["leaf"]}
    return parity([row["claim"], *_texts(row, leaves)]) if row["structure"] else None


def last_step_parity(row: Row) -> int | None:
    """Return the parity of denials over the claim and the premises that lead to it; None without a structure."""
    names = {name for step in row["structure"] or () if step["conclusion"] == CLAIM for name in step["premises"]}
    return parity([row["claim"], *_texts(row, names)]) if names else None


def nearest_parity(row: Row) -> int:
    """Return the parity of denials over the claim and the piece of Task 1 that has the largest share of words in common with it."""
    claim = {*content_words(row["claim"])}

    def nearness(text: str) -> tuple[float, str]:
        words = {*content_words(text)}
        return len(claim & words) / max(1, len(claim | words)), text

    pieces = view(row, 1).pieces.values()
    return parity([row["claim"], *([max(pieces, key=nearness)] if pieces else [])])


RULES: Mapping[str, Callable[[Row], Hashable]] = {
    "number of pieces": pieces_shown,
    "parity of denials: claim, all evidence": shown_parity,
    "parity of denials: claim, nearest sentence": nearest_parity,
    "parity of denials: claim, useful leaves": leaf_parity,
    "parity of denials: claim, last step's premises": last_step_parity,
}
"""Shortcuts that look at one number of a row; the first three read what Task 1 shows, the remaining shortcuts the structure."""


def shortcuts(rows: Dataset, labels: Sequence[str] = LABELS[:2], seed: int = 13) -> list[dict[str, Any]]:
    """Guess the label of each row by each shortcut, and compute how often the guess is right.

    A guess is learned from other rows: rows that share a group or a text are in one of five folds. The guess is the commonest label
    among the rows outside the row's fold for which the shortcut gives the same value. Logistic regression reads the words
    (`hfcf.metrics.claim_only.guess`).

    Args:
        rows: rows of argument structures.
        labels: the labels to distinguish; rows of other labels, and rows that Task 1 can't show, are left out.
        seed: the seed of the folds.

    Returns:
        For each shortcut: `shortcut`, `rows` (the number of rows for which it gives a value), `accuracy`, `low`, `high` and
        `majority`. `low` and `high` are the interval of 95 % over groups. `majority` is the share of the commonest label among the
        same rows. The first line is the majority.

    >>> rows = Dataset.from_list([])
    >>> shortcuts(rows)
    []
    """
    kept = [i for i, label in enumerate(rows["label"] if len(rows) else ()) if label in labels]
    kept = [i for i in kept if view_problem(rows[i], 1) is None]
    if not kept:
        return []
    rows = rows.select(kept)
    groups, true, every = list(map(str, regroup(rows))), list(rows["label"]), list(rows)
    claims = [row["claim"] for row in every]
    read = [" ".join([row["claim"], *view(row, 1).pieces.values()]) for row in every]
    folds = folds_of(claims, groups, FOLDS, seed)
    guesses: dict[str, Sequence[str | None]] = {
        "the commonest label": [Counter(true).most_common(1)[0][0]] * len(true),
        "words of the claim": guess(claims, true, groups, FOLDS, seed),
        "words of claim and evidence": guess(read, true, groups, FOLDS, seed),
    }
    for name, feature in RULES.items():
        guesses[name] = guess_by([feature(row) for row in every], true, folds)
    return [_line(name, guessed, true, groups) for name, guessed in guesses.items()]


def guess_by(features: Sequence[Hashable], labels: Sequence[str], folds: Sequence[int]) -> list[str | None]:
    """Guess each label as the commonest label outside its fold with the same feature, else of all; None if the feature is None.

    >>> guess_by([0, 1, 0, 1], ["a", "b", "a", "b"], [0, 0, 1, 1])
    ['a', 'b', 'a', 'b']
    """
    guesses: list[str | None] = [None] * len(labels)
    for fold in sorted(set(folds)):
        counts: dict[Hashable, Counter[str]] = {}
        for feature, label, other in zip(features, labels, folds, strict=True):
            if other != fold and feature is not None:
                counts.setdefault(feature, Counter())[label] += 1
        total = sum(counts.values(), Counter[str]())
        for i, feature in enumerate(features):
            if folds[i] == fold and feature is not None and total:
                guesses[i] = min(counts.get(feature, total).items(), key=lambda pair: (-pair[1], pair[0]))[0]
    return guesses


def _texts(row: Row, names: Iterable[str]) -> list[str]:
    """Return the sentences of some pieces."""
    wanted = {*names}
    return [piece["text"] for info, piece in zip(row["evidence_info"], row["evidence"], strict=True) if info["id"] in wanted]


def _line(name: str, guesses: Sequence[str | None], labels: Sequence[str], groups: Sequence[str]) -> dict[str, Any]:
    places = [i for i, guessed in enumerate(guesses) if guessed is not None]
    right = [float(guesses[i] == labels[i]) for i in places]
    accuracy, low, high = mean_interval(right, [groups[i] for i in places])
    most = max(Counter(labels[i] for i in places).values(), default=0) / max(1, len(places))
    numbers = {"accuracy": accuracy, "low": low, "high": high, "majority": most}
    return {"shortcut": name, "rows": len(places), **{key: round(value, 4) for key, value in numbers.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", help="NAME=FOLDER or NAME=FILE, with :SPLIT where it is not validation")
    parser.add_argument("--derive", type=int, help="distractors of the rows that are made of trees")
    options = parser.parse_args()
    rows = read_rows(options.corpus, None, {}, len(LABELS))
    rows = rows if options.derive is None else derive_labels(rows, distractors=options.derive)
    for labels in (LABELS[:2], LABELS):
        lines = [list(line.values()) for line in shortcuts(rows, labels)]
        show(", ".join(labels), ("shortcut", "rows", "accuracy", "low", "high", "majority"), lines, None, {})


if __name__ == "__main__":
    main()
