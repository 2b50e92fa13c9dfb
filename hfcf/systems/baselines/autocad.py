"""AutoCAD for relation extraction (Wen et al. 2022), as a baseline of CCG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Annotated, Any, ClassVar

import torch
from datasets import Dataset, IterableDataset, List
from pydantic import Field

from hfcf.core import schema
from hfcf.core.artifacts import save_artifact
from hfcf.core.candidates import Candidate, reject, scored, settle
from hfcf.core.model import Model
from hfcf.core.settings import NonNegative, Positive, check_search
from hfcf.core.stage import Reject, Stage
from hfcf.core.system import System
from hfcf.engines.continuation import Continuation
from hfcf.engines.generator import load_tokenizer, two_sided
from hfcf.engines.likelihood import Likelihood
from hfcf.systems._shared.judge import JudgeCandidates
from hfcf.systems.baselines._shared.relation_editing import (
    CONSISTENT,
    DEFAULTS,
    GRADIENT_TERMS,
    OFFLINE_EDITOR,
    ProposeRelations,
    editor_terms,
    learn_terms,
)
from hfcf.systems.ccg.editor import EDITOR, EditorTraining, keep_readable, prompt_text, target_text
from hfcf.systems.ccg.indicator import COLUMNS
from hfcf.systems.ccg.terms import term
from hfcf.tasks.relation import CANDIDATES, TASK, candidate, token_edits
from hfcf.training.generator import train_texts
from hfcf.training.model_cache import check_full_tuning, ensure_steps, train_once
from hfcf.training.trainer import Hyperparameters, Loss

_MIN_PROBABILITY = 1e-6
"""The lowest probability that a token's not being written counts with: the gradient stays finite."""


@dataclass(frozen=True, kw_only=True)
class FillTerms(Stage):
    """Replace causal terms by the editor's first term for each new relation.

    Input columns: `tokens`, `head`, `tail`, `label`, `causal_terms`, `new_relations`. Output column: `candidates`, one for each
    new relation; a candidate for which the editor wrote no other term is rejected.

    Args:
        editor: the model that writes terms; None trains it on the rows.
        editor_training: how the editor is trained.
        min_steps: of its training, see `IdentifyCausalTerms`.
        alpha: the weight of unlikelihood.
        negatives: of a row, under how many other relations its term is unlikely.
        num_beams: beams of the search.
        num_candidates: hypotheses that are read, until a hypothesis is another term than the row's own.
        closed: instead of the search, take the relation's terms in the training rows that the editor finds likeliest.
        max_new_tokens: of a hypothesis.

    >>> FillTerms(num_beams=2).name
    'fill_terms'
    """

    VERSION: ClassVar[str] = "3"
    inputs: ClassVar = {**TASK.columns, "label": schema.TEXT, "causal_terms": List(schema.INT), "new_relations": List(schema.TEXT)}
    outputs: ClassVar = {"candidates": CANDIDATES}
    produced_by: ClassVar = {"causal_terms": "autocad.identify_causal_terms", "new_relations": "autocad.propose_relations"}

    engines: ClassVar = (Continuation, Likelihood)

    editor: Model | None = None
    editor_training: EditorTraining = EDITOR
    min_steps: NonNegative = 0
    alpha: Annotated[float, Field(ge=0)] = 1.0
    negatives: NonNegative = 1
    num_beams: Positive = 5
    num_candidates: Positive = 2
    closed: bool = False
    max_new_tokens: Positive = 24

    def check(self) -> None:
        check_full_tuning("editor_training", self.editor_training)
        check_search(self.num_beams, num_candidates=self.num_candidates)

    @property
    def fit_inputs(self) -> tuple[str, ...]:
        return (*COLUMNS, "causal_terms") if self.editor is None or self.closed else ()

    def learn(self, ds: Dataset | IterableDataset) -> str:
        def train(rows: list[dict[str, Any]]) -> str:
            # Every row is repeated for each wrong relation.
            hp = ensure_steps(replace(self.editor_training, seed=self.seed), self.min_steps, len(rows) * (1 + self.negatives))
            return train_contrastive_editor(rows, hp, alpha=self.alpha, negatives=self.negatives, max_target=self.max_new_tokens)

        return save_artifact(learn_terms(ds, train if self.editor is None else None))

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        requests = [(row, relation) for row in rows if row["causal_terms"] for relation in row["new_relations"]]
        candidates = iter(self._candidates(requests))
        of_rows = [[next(candidates) for _ in row["new_relations"] if row["causal_terms"]] for row in rows]
        return [settle(group, "there is no causal term or no new relation") for group in of_rows]

    def _candidates(self, requests: Sequence[tuple[Mapping[str, Any], str]]) -> list[Candidate]:
        if not requests:
            return []
        results = []
        written_terms = editor_terms(self, requests)
        for (row, relation), written in zip(requests, written_terms, strict=True):
            others = [(text, score) for text, score in written if text.lower() != term(row).lower()]
            if not others:
                results.append(reject(candidate(row, relation, []), self.name, "the editor wrote no other term"))
                continue
            text, score = others[0]
            edited = token_edits(row["tokens"], row["causal_terms"], text)
            results.append(candidate(row, relation, edited, [scored("editor", score)]))
        return results


class AutoCAD(System):
    """Replace the words with the highest gradients by an editor's, which has learned what does not go with a relation.

    It is "AutoCAD: Automatically Generating Counterfactuals for Mitigating Shortcut Learning" (Findings of EMNLP 2022) as CCG
    compares with it (sections 1, 4.4, A.2). Every other relation is tried, and all editors are the same model. A candidate
    stays if the base model gives it the new relation. From the released code are the rationale
    (`hfcf.systems.ccg.gradients.highest`: 30 % of the words, none below 0.3 of the highest) and the objective (`unlikelihood`).

    The base model is the R-BERT that CCG trains as its indicator on the same rows; the editor is also trained on them.

    Readings and deviations:

    - Rationales are the words between the entities, by the gradient of the base model's own prediction.
    - The editor reads CCG's template, and writes one term for all of them, where AutoCAD's T5 fills each span.
    - Unlikelihood is of a row's term under one other relation, drawn for it. AutoCAD takes every other label; its tasks have two
      or three, SemEval has eighteen.
    - Terms come from a beam search, where AutoCAD samples one term.

    Args:
        consistency: filter by the base model; False keeps every candidate.
        verifier: another R-BERT that filters instead.

    Its stages define its other settings.

    >>> [stage.name for stage in AutoCAD.preset("offline").stages]
    ['identify_causal_terms', 'propose_relations', 'fill_terms', 'check_relation', 'judge_candidates']
    """

    task = "relation"
    chain = (GRADIENT_TERMS, ProposeRelations, FillTerms, CONSISTENT, JudgeCandidates)
    defaults: ClassVar = DEFAULTS
    presets: ClassVar = {"paper": {}, "offline": {**OFFLINE_EDITOR, "num_beams": 4}}
    citation = """@inproceedings{wen-etal-2022-autocad,
  title = {{A}uto{CAD}: Automatically Generating Counterfactuals for Mitigating Shortcut Learning},
  author = {Wen, Jiaxin and Zhu, Yeshuang and Zhang, Jinchao and Zhou, Jie and Huang, Minlie},
  booktitle = {Findings of EMNLP},
  year = {2022}
}"""


def train_contrastive_editor(
    rows: Sequence[Mapping[str, Any]], hp: Hyperparameters, *, alpha: float = 1.0, negatives: int = 1, max_target: int = 24
) -> str:
    """Train AutoCAD's editor, once; return its digest.

    Its terms become likely under a row's relation, and unlikely under `negatives` other relations, which are drawn for each
    row.
    """
    labels = sorted({row["label"] for row in rows})
    requests = [(row, row["label"]) for row in rows]
    for row in rows:
        others = [label for label in labels if label != row["label"]]
        drawn = Random(f"{hp.seed}:wrong relations:{row['id']}").sample(others, min(negatives, len(others)))
        requests += [(row, relation) for relation in drawn]
    wrong = [int(relation != row["label"]) for row, relation in requests]
    pairs: dict[str, list[Any]] = {
        "source": [prompt_text(row, relation, hp.model) for row, relation in requests],
        # The second entity, which follows a term in the paper's template, is right under every relation.
        "target": [
            term(row) if no else target_text(row, term(row), hp.model) for (row, _), no in zip(requests, wrong, strict=True)
        ],
        "wrong": wrong,
    }
    texts = keep_readable(pairs, hp, max_target)

    def train(out: Path) -> None:
        loss = unlikelihood(alpha, shifted=not two_sided(hp.model), end=load_tokenizer(hp.model).eos_token_id)
        train_texts(Dataset.from_dict(texts), hp, out, max_target=max_target, prompt="{}", checkpoints=False, loss=loss)

    return train_once("contrastive editor 1", {**texts, "alpha": alpha, "max_target": max_target}, hp, train)


def unlikelihood(alpha: float, *, shifted: bool, end: int | None) -> Loss:
    """Make the loss: the mean cross-entropy of right rows' tokens, and `alpha` times the mean −log(1 − p) of wrong rows' tokens.

    This is the objective of Wen et al. 2022 (AutoCAD), after Welleck et al. 2020. A wrong row's end of text does not count, since
    to end is not wrong. The column `wrong`, 0 or 1, marks them.

    Args:
        alpha: the weight of unlikelihood; 1 in AutoCAD's released settings.
        shifted: the network is decoder-only: its output at a token predicts the next token.
        end: the token at which a text ends.
    """

    def tokens(batch: Mapping[str, Any]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the labels, and mark the tokens of right and of wrong rows that count."""
        labels = batch["labels"][:, 1:] if shifted else batch["labels"]
        wrong, counted, ended = batch["wrong"].bool()[:, None], labels >= 0, labels == (-1 if end is None else end)
        return labels, counted & ~wrong, counted & wrong & ~ended

    def of(output: Any, batch: Mapping[str, Any]) -> torch.Tensor:
        labels, right, wrong = tokens(batch)
        logits = output.logits.float()[:, :-1] if shifted else output.logits.float()
        log_probs = logits.log_softmax(-1).gather(-1, labels.clamp(min=0)[..., None]).squeeze(-1)
        unlikely = -(1 - log_probs.exp()).clamp(min=_MIN_PROBABILITY).log()
        return _mean(-log_probs, right) + alpha * _mean(unlikely, wrong)

    return Loss(of=of, columns=("wrong",))


def _mean(values: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
    return (values * counted).sum() / counted.sum().clamp(min=1)
