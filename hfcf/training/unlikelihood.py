"""Likelihood of what is right, unlikelihood of what is wrong: the loss of AutoCAD's editor, and how that is trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch
from datasets import Dataset

from hfcf.engines.generator import load_tokenizer, two_sided
from hfcf.systems.ccg.editor import answer, prompt, readable
from hfcf.systems.ccg.terms import term
from hfcf.training.generator import train_texts
from hfcf.training.loop import Hyperparameters, Loss
from hfcf.training.once import train_once

_LEAST = 1e-6
"""The least probability of anything else that is reckoned with: the gradient stays finite."""


def unlikelihood(alpha: float, *, shifted: bool, end: int | None) -> Loss:
    """Cross-entropy of the tokens of right rows, and `alpha` times −log(1 − p) of those of wrong rows, each a mean over tokens.

    This is the objective of Wen et al. 2022 (AutoCAD), after Welleck et al. 2020. A wrong row's end of text does not count, since
    to end is not wrong. Rows say by a column `wrong`, 0 or 1, what they are.

    Args:
        alpha: the weight of unlikelihood; 1 in AutoCAD's released settings.
        shifted: the network is decoder-only: what it says at a token is about the next one.
        end: the token at which a text ends.

    >>> unlikelihood(1.0, shifted=True, end=0).columns
    ('wrong',)
    """

    def of(output: Any, batch: Mapping[str, Any]) -> torch.Tensor:
        logits, labels = output.logits.float(), batch["labels"]
        if shifted:
            logits, labels = logits[:, :-1], labels[:, 1:]
        said = logits.log_softmax(-1).gather(-1, labels.clamp(min=0)[..., None]).squeeze(-1)
        wrong = batch["wrong"].bool()[:, None]
        counted = labels >= 0
        ended = labels == (-1 if end is None else end)
        unlikely = -(1 - said.exp()).clamp(min=_LEAST).log()
        return _mean(-said, counted & ~wrong) + alpha * _mean(unlikely, counted & wrong & ~ended)

    return Loss(of=of, columns=("wrong",))


def _mean(values: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
    """The mean of those that count; 0 of none."""
    return (values * counted).sum() / counted.sum().clamp(min=1)


def train_contrastive_editor(
    rows: Sequence[Mapping[str, Any]], hp: Hyperparameters, *, alpha: float = 1.0, negatives: int = 1, max_target: int = 24
) -> str:
    """Train AutoCAD's editor, once: its terms are likely under a row's relation, unlikely under another; returns its digest.

    Args:
        rows: with `id`, `tokens`, `head`, `tail`, `label` and `causal_terms`.
        hp: how.
        alpha: see `unlikelihood`.
        negatives: under how many other relations, drawn for each row.
        max_target: tokens of an answer.

    Raises:
        ValueError: no pair is short enough.
    """
    relations = sorted({row["label"] for row in rows})
    asked = [(row, row["label"]) for row in rows]
    for row in rows:
        others = [relation for relation in relations if relation != row["label"]]
        drawn = Random(f"{hp.seed}:wrong relations:{row['id']}").sample(others, min(negatives, len(others)))
        asked += [(row, relation) for relation in drawn]
    wrong = [int(relation != row["label"]) for row, relation in asked]
    pairs: dict[str, list[Any]] = {
        "source": [prompt(row, relation, hp.model) for row, relation in asked],
        # The second entity, which follows a term in the paper's template, is right under every relation.
        "target": [term(row) if false else answer(row, term(row), hp.model) for (row, _), false in zip(asked, wrong, strict=True)],
        "wrong": wrong,
    }
    made = readable(pairs, hp, max_target)

    def train(out: Path) -> None:
        loss = unlikelihood(alpha, shifted=not two_sided(hp.model), end=load_tokenizer(hp.model).eos_token_id)
        train_texts(Dataset.from_dict(made), hp, out, max_target=max_target, prompt="{}", checkpoints=False, loss=loss)

    return train_once("contrastive editor 1", {**made, "alpha": alpha, "max_target": max_target}, hp, train)
