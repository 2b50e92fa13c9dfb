"""AutoCAD for relation extraction (Wen et al. 2022), as a baseline of CCG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Self

from datasets import Dataset, IterableDataset, List

from hfcf.core import schema
from hfcf.core.candidates import Candidate, reject, settle
from hfcf.core.chain import StageOf
from hfcf.core.model import Model
from hfcf.core.stage import Reject, Stage
from hfcf.core.store import save_artifact
from hfcf.core.system import System
from hfcf.engines.continuation import Continuation
from hfcf.engines.generator import load_tokenizer, two_sided
from hfcf.engines.relation import RelationClassifier
from hfcf.systems.baselines._shared.relations import (
    CONSISTENT,
    GRADIENT_TERMS,
    ProposeRelations,
    base_model,
    choose_editor,
    require_fitted,
    trainable_rows,
    write_terms,
)  # fmt: skip
from hfcf.systems.ccg.editor import answer, learned_editor, prompt, readable
from hfcf.systems.ccg.gradients import WordGradients
from hfcf.systems.ccg.system import CLASSIFIER, EDITOR, OFFLINE
from hfcf.systems.ccg.terms import term
from hfcf.tasks.relation import CANDIDATES, TASK, candidate, token_edits
from hfcf.training.generator import train_texts
from hfcf.training.loop import Hyperparameters
from hfcf.training.store import ensure_steps, parse_trainings, train_once
from hfcf.training.unlikelihood import unlikelihood


@dataclass(frozen=True, kw_only=True)
class FillTerms(Stage):
    """For each new relation, the editor's first term in the place of a row's causal terms.

    Input columns: `tokens`, `head`, `tail`, `label`, `causal_terms`, `new_relations`. Output column: `candidates`, one for each
    new relation; one for which the editor wrote no other term is rejected.

    Args:
        editor: the model that writes terms; None: the one that was fitted.
        num_beams: beams of the search.
        num_candidates: hypotheses that are read, until one is another term than the row's own.
        max_new_tokens: of a hypothesis.
        fitted: the sha256 of the fitted file that names the editor; `fit(ds)` sets it.

    >>> FillTerms(num_beams=2).name
    'fill_terms'
    """

    VERSION: ClassVar[str] = "2"
    inputs: ClassVar = {
        **TASK.columns, "label": schema.TEXT,
        "causal_terms": List(schema.INT), "new_relations": List(schema.TEXT),
    }  # fmt: skip
    outputs: ClassVar = {"candidates": CANDIDATES}
    produced_by: ClassVar = {"causal_terms": "autocad.identify_causal_terms", "new_relations": "autocad.propose_relations"}

    editor: Model | None = None
    num_beams: int = 5
    num_candidates: int = 2
    max_new_tokens: int = 24
    fitted: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.num_candidates <= self.num_beams:
            raise ValueError(f"num_candidates={self.num_candidates}: it is at least 1, and num_beams={self.num_beams} at most")

    def check_fitted(self) -> None:
        if self.editor is None:
            require_fitted(self, self.fitted)

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        requests = [(row, relation) for row in rows if row["causal_terms"] for relation in row["new_relations"]]
        made = iter(self._candidates(requests))
        return [
            settle([next(made) for _ in row["new_relations"] if row["causal_terms"]], "there is no causal term or no new relation")
            for row in rows
        ]

    def _candidates(self, requests: Sequence[tuple[Mapping[str, Any], str]]) -> list[Candidate]:
        if not requests:
            return []
        model = choose_editor(self, self.editor, self.fitted)
        engine = Continuation(
            model=model, num_beams=self.num_beams, num_return_sequences=self.num_candidates, max_new_tokens=self.max_new_tokens
        )
        results = []
        for (row, relation), written in zip(requests, write_terms(engine, requests), strict=True):
            others = [(text, score) for text, score in written if text.lower() != term(row).lower()]
            if not others:
                results.append(reject(candidate(row, relation, []), self.name, "the editor wrote no other term"))
                continue
            text, score = others[0]
            edited = token_edits(row["tokens"], row["causal_terms"], text)
            results.append(candidate(row, relation, edited, [{"name": "editor", "value": score}]))
        return results


@dataclass(frozen=True, kw_only=True)
class AutoCAD(System):
    """Replace the words of the highest gradient by the terms of an editor that has learned what does not go with a relation.

    Stages, in order: `identify_causal_terms`, `propose_relations`, `fill_terms`, `judge_candidates`. It is "AutoCAD: Automatically
    Generating Counterfactuals for Mitigating Shortcut Learning" (Findings of EMNLP 2022) as CCG compares with it (sections 1, 4.4,
    A.2): every other relation is tried, all editors are the same model, and what is kept is what the base model gives the new
    relation. From the released code are the rationale (`hfcf.systems.ccg.gradients.highest`: 30 % of the words, none below 0.3 of
    the highest) and the objective (`hfcf.training.unlikelihood.unlikelihood`).

    The base model is the R-BERT that CCG trains as its indicator on the same rows; editor and relations are learned of these, too.

    Readings and deviations:

    - Rationales are the words between the entities, by the gradient of the base model's own prediction.
    - The editor reads CCG's template, and writes one term in the place of all of them, where AutoCAD's T5 fills each span.
    - Unlikelihood is of a row's term under one other relation, drawn for it. AutoCAD takes every other label; its tasks have two
      or three, SemEval has eighteen.
    - Terms come of a beam search, where AutoCAD samples one.

    Args:
        indicator: the base model, an R-BERT; None trains one on the rows.
        classifier: how that one is trained.
        editor: a trained editor; None trains one on the rows.
        editor_training: how that one is trained.
        least_steps: see `hfcf.systems.ccg.system.CCG`.
        alpha: the weight of unlikelihood.
        negatives: of a row, under how many other relations its term is unlikely.
        words: see `IdentifyCausalTerms`.
        num_beams: see `FillTerms`.
        num_candidates: see there.
        max_new_tokens: see there.
        consistency: filter by the base model; False keeps every candidate.
        verifier: another R-BERT that filters in its place.
        max_length: pieces of a sentence that the models read.

    >>> [stage.name for stage in AutoCAD.preset("offline").stages]
    ['identify_causal_terms', 'propose_relations', 'fill_terms', 'judge_candidates']
    """

    task: ClassVar[str] = "relation"
    chain: ClassVar[tuple[str, ...]] = ("identify_causal_terms", "propose_relations", "fill_terms", "judge_candidates")
    presets: ClassVar = {
        "paper": {},
        "offline": {
            **{name: OFFLINE[name] for name in ("classifier", "editor_training", "least_steps")},
            "num_beams": 4,
        },
    }
    trainings: ClassVar = ("classifier", "editor_training")
    engines: ClassVar = (WordGradients, Continuation, RelationClassifier)
    citation: ClassVar[str] = """@inproceedings{wen-etal-2022-autocad,
  title = {{A}uto{CAD}: Automatically Generating Counterfactuals for Mitigating Shortcut Learning},
  author = {Wen, Jiaxin and Zhu, Yeshuang and Zhang, Jinchao and Zhou, Jie and Huang, Minlie},
  booktitle = {Findings of EMNLP},
  year = {2022}
}"""

    indicator: Model | None = None
    classifier: Hyperparameters = CLASSIFIER
    editor: Model | None = None
    editor_training: Hyperparameters = EDITOR
    least_steps: int = 0
    alpha: float = 1.0
    negatives: int = 1
    words: str = "between"
    num_beams: int = 5
    num_candidates: int = 2
    max_new_tokens: int = 24
    consistency: bool = True
    verifier: Model | None = None
    max_length: int = 128

    def __post_init__(self) -> None:
        self._as_models("indicator", "editor", "verifier")
        parse_trainings(self)

    identify_causal_terms = GRADIENT_TERMS
    propose_relations = StageOf(ProposeRelations)
    fill_terms = StageOf(FillTerms)
    judge_candidates = CONSISTENT

    @property
    def fit_after(self) -> tuple[str, ...]:
        return ("identify_causal_terms",)

    def fit_models(self, ds: Dataset | IterableDataset) -> Self:
        """AutoCAD with a base model: the one that it was given, else one that is trained on `ds`."""
        return replace(self, indicator=base_model(self, ds))

    def fit_resources(self, ds: Dataset | IterableDataset) -> str:
        """Write the relations of the rows, and the digest of the editor, which is trained here."""
        rows = trainable_rows(ds, self, causal_terms="identify_causal_terms")
        known = [row for row in rows if row["causal_terms"]]
        trained = None
        if known and self.editor is None:
            # Every row stands there once more for each wrong relation.
            hp = ensure_steps(self.editor_training, self.least_steps, len(known) * (1 + self.negatives))
            trained = train_contrastive_editor(
                known, hp, alpha=self.alpha, negatives=self.negatives, max_target=self.max_new_tokens
            )
        return save_artifact({"relations": sorted({row["label"] for row in rows}), **learned_editor(trained)})


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
    requests = [(row, row["label"]) for row in rows]
    for row in rows:
        others = [relation for relation in relations if relation != row["label"]]
        drawn = Random(f"{hp.seed}:wrong relations:{row['id']}").sample(others, min(negatives, len(others)))
        requests += [(row, relation) for relation in drawn]
    wrong = [int(relation != row["label"]) for row, relation in requests]
    pairs: dict[str, list[Any]] = {
        "source": [prompt(row, relation, hp.model) for row, relation in requests],
        # The second entity, which follows a term in the paper's template, is right under every relation.
        "target": [
            term(row) if false else answer(row, term(row), hp.model) for (row, _), false in zip(requests, wrong, strict=True)
        ],
        "wrong": wrong,
    }
    made = readable(pairs, hp, max_target)

    def train(out: Path) -> None:
        loss = unlikelihood(alpha, shifted=not two_sided(hp.model), end=load_tokenizer(hp.model).eos_token_id)
        train_texts(Dataset.from_dict(made), hp, out, max_target=max_target, prompt="{}", checkpoints=False, loss=loss)

    return train_once("contrastive editor 1", {**made, "alpha": alpha, "max_target": max_target}, hp, train)
