"""MICE for relation extraction (Ross, Marasović and Peters 2021), as a baseline of CCG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Annotated, Any, ClassVar, Literal

from datasets import Dataset, IterableDataset, List
from pydantic import Field

from hfcf.core import schema
from hfcf.core.artifacts import save_artifact
from hfcf.core.candidates import Candidate, reject, scored, settle
from hfcf.core.decisions import best
from hfcf.core.model import Model
from hfcf.core.settings import NonNegative, Positive, check_search
from hfcf.core.stage import Reject, Stage
from hfcf.core.system import System
from hfcf.engines.classifier import choose
from hfcf.engines.continuation import Continuation
from hfcf.engines.likelihood import Likelihood
from hfcf.engines.relation_classifier import RelationClassifier
from hfcf.systems._shared.judge import JudgeCandidates
from hfcf.systems.baselines._shared.relation_editing import (
    CONSISTENT,
    DEFAULTS,
    GRADIENT_TERMS,
    OFFLINE_EDITOR,
    ProposeRelations,
    editor_terms,
    learn_terms,
    read_fitted,
)
from hfcf.systems.ccg.editor import EDITOR, EditorTraining, train_editor
from hfcf.systems.ccg.gradients import WordGradients, highest
from hfcf.systems.ccg.identify import IdentifyCausalTerms
from hfcf.systems.ccg.indicator import CLASSIFIER, COLUMNS, IndicatorModel, IndicatorTraining, ask_indicators, learn_indicators
from hfcf.tasks.relation import CANDIDATES, TASK, candidate, requests, token_edits
from hfcf.training.model_cache import check_full_tuning, ensure_steps


@dataclass
class _Search:
    """The search for an edit of a row that makes the base model predict a relation."""

    row: Mapping[str, Any]
    relation: str
    masks: Sequence[Sequence[int]]
    """Growing sets of words to take out."""
    terms: Sequence[tuple[str, float]]
    judged: list[tuple[bool, float, Candidate]] = field(default_factory=list)
    """Whether each candidate so far flips, with the relation's probability."""

    @property
    def flipped(self) -> bool:
        """Whether a candidate flips; no further level is then tried."""
        return any(flips for flips, *_ in self.judged)

    @property
    def best(self) -> Candidate | None:
        """The likeliest candidate that flips, of the first level that has such a candidate; else the likeliest of all."""
        left = [entry for entry in self.judged if entry[0] == self.flipped]
        return best(left, itemgetter(1), lambda entry: entry[2]["text"])[2] if left else None

    def candidates_at(self, level: int) -> list[Candidate]:
        """Make the candidates with a level's words taken out."""
        if self.flipped or level >= len(self.masks):
            return []
        tokens, mask = self.row["tokens"], self.masks[level]
        results = []
        for text, score in self.terms:
            edited = token_edits(tokens, mask, text)
            new = candidate(self.row, self.relation, edited, [scored("editor", score)])
            results += [new] if new["text"].lower() != " ".join(tokens).lower() else []
        return results

    def judge(self, new: Candidate, answer: Mapping[str, float] | None) -> None:
        """Keep what the base model predicts for a candidate."""
        flips = answer is not None and choose(answer, sorted(answer)) == self.relation
        self.judged.append((flips, (answer or {}).get(self.relation, -1.0), new))


@dataclass(frozen=True, kw_only=True)
class EditMinimally(Stage):
    """Replace as few words of the highest gradient as make the base model predict each new relation.

    Input columns: `tokens`, `head`, `tail`, `label`, `new_relations`. Output column: `candidates`, one for each new relation:
    for the smallest share that flips, the term with the highest probability. Where no term flips, it is the likeliest term of
    all, which the consistency filter then rejects. Gradients are taken for the model's own prediction, as in MICE.

    Args:
        indicator: the base model, an R-BERT; None trains it on the rows.
        classifier: how the base model is trained.
        folds: of the base model, see `IdentifyCausalTerms`: with 2, no row's candidates are chosen by a model that has seen it.
        editor: the model that writes terms; None trains it on the rows.
        editor_training: how the editor is trained.
        min_steps: of each training, see `IdentifyCausalTerms`.
        share: the largest share of the words between the entities that is taken out.
        levels: how many shares are tried, in equal steps up to `share`. Shares that come to equally many words are tried once.
        words: "between" the entities or all the "context".
        num_beams: beams of the editor's search.
        num_candidates: its hypotheses; all are tried.
        closed: instead of the search, try the relation's terms in the training rows that the editor finds likeliest.
        max_new_tokens: of a hypothesis.
        max_length: tokens of a sentence that the base model reads.

    >>> EditMinimally().masks([0.1, 0.9, 0.4, 0.2, 1.0], [1, 2, 3])
    [[1], [1, 2]]
    """

    VERSION: ClassVar[str] = "3"
    inputs: ClassVar = {**TASK.columns, "label": schema.TEXT, "new_relations": List(schema.TEXT)}
    outputs: ClassVar = {"candidates": CANDIDATES}
    produced_by: ClassVar = {"causal_terms": "mice.identify_causal_terms", "new_relations": "mice.propose_relations"}

    engines: ClassVar = (WordGradients, Continuation, Likelihood, RelationClassifier)

    indicator: IndicatorModel | None = None
    classifier: IndicatorTraining = CLASSIFIER
    folds: Positive = 1
    editor: Model | None = None
    editor_training: EditorTraining = EDITOR
    min_steps: NonNegative = 0
    share: Annotated[float, Field(gt=0, le=1)] = 0.55
    levels: Positive = 4
    words: Literal["between", "context"] = "between"
    num_beams: Positive = 15
    num_candidates: Positive = 15
    closed: bool = False
    max_new_tokens: Positive = 24
    max_length: Positive = 128

    def check(self) -> None:
        check_full_tuning("classifier", self.classifier)
        check_full_tuning("editor_training", self.editor_training)
        check_search(self.num_beams, num_candidates=self.num_candidates)

    @property
    def fit_inputs(self) -> tuple[str, ...]:
        if self.editor is None or self.closed:
            return (*COLUMNS, "causal_terms")
        return COLUMNS if self.indicator is None else ()

    def learn(self, ds: Dataset | IterableDataset) -> str:
        def train(rows: list[dict[str, Any]]) -> str:
            hp = ensure_steps(replace(self.editor_training, seed=self.seed), self.min_steps, len(rows))
            return train_editor(rows, hp, max_target=self.max_new_tokens)

        base = terms = None
        if self.indicator is None:
            hp = replace(self.classifier, seed=self.seed)
            base = learn_indicators(self.name, ds, hp, self.folds, self.min_steps)
        if self.editor is None or self.closed:
            terms = learn_terms(ds, train if self.editor is None else None)
        return save_artifact({"base": base, **(terms or {})})

    @property
    def _base(self) -> str | None:
        """The fitted file of the base model."""
        return read_fitted(self.fitted)["base"] if self.fitted else None

    def masks(self, weights: Sequence[float], allowed: Sequence[int]) -> list[list[int]]:
        """List the sets of words that are taken out, growing."""
        shares = [self.share * level / self.levels for level in range(1, self.levels + 1)]
        results = [tuple(highest(weights, allowed, share=share, floor=0.0)) for share in shares]
        return [list(mask) for mask in dict.fromkeys(results)]

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        def weigh(indicator: Model, part: list[Any]) -> list[Any]:
            return WordGradients(indicator=indicator, max_length=self.max_length).run([[*request, None] for request in part])

        maskable = IdentifyCausalTerms(words=self.words).maskable
        weights = ask_indicators(self.indicator, self._base, [row["id"] for row in rows], requests(rows), weigh, None)
        targets = [(i, relation) for i, row in enumerate(rows) if weights[i] for relation in row["new_relations"]]
        terms = editor_terms(self, [(rows[i], relation) for i, relation in targets])
        masks = {i: self.masks(weights[i], maskable(rows[i])) for i in dict(targets)}
        searches: list[list[_Search]] = [[] for _ in rows]
        for (i, relation), written in zip(targets, terms, strict=True):
            searches[i].append(_Search(rows[i], relation, masks[i], written))
        self._search([search for group in searches for search in group])
        nothing = "there is no new relation that could be tried"
        return [settle([self._candidate(search) for search in group], nothing) for group in searches]

    def _search(self, searches: Sequence[_Search]) -> None:
        """Search level after level, for all rows together that have no edit that flips."""

        def judge(indicator: Model, part: list[Any]) -> list[Any]:
            engine = RelationClassifier(model=indicator, max_length=self.max_length)
            return engine.run(part)

        for level in range(self.levels):
            tried = [(search, new) for search in searches for new in search.candidates_at(level)]
            edited = [TASK.apply_edits(search.row, new["edits"]) for search, new in tried]
            ids = [search.row["id"] for search, _ in tried]
            answers = ask_indicators(self.indicator, self._base, ids, requests(edited), judge, None)
            for (search, new), answer in zip(tried, answers, strict=True):
                search.judge(new, answer)

    def _candidate(self, search: _Search) -> Candidate:
        return search.best or reject(candidate(search.row, search.relation, []), self.name, "the editor wrote no other term")


class MICE(System):
    """Replace the words with the highest gradients by an editor's, as few as make the base model predict another relation.

    It is "Explaining NLP Models via Minimal Contrastive Editing (MiCE)" (Findings of ACL 2021) as CCG compares with it
    (sections 1, 4.4, A.2). Every other relation is tried, and all editors are the same model. A candidate stays if the base
    model gives it the new relation. The base model is the R-BERT that CCG trains as its indicator on these rows; the editor is
    also trained on them.

    Readings and deviations, as neither paper describes how MICE works with entities that stay and with CCG's editor:

    - The editor reads CCG's template, which has entities and relation but not the sentence. So it writes once for a row and a
      relation, not once for each share, and is trained on the words of AutoCAD's rule (30 %). Its term replaces the first removed
      word.
    - Words are masked between the entities alone, as in CCG; shares refer to these words. Gradients are aggregated as in
      AutoCAD.
    - The search is MICE's linear search, up to 55 % of the words in four steps, with one round of editing instead of three. Its
      binary search presumes that what flips at a share flips at each larger share.
    - Terms come from a beam search (MICE samples 15; beams give the same rows each time).

    Args:
        consistency: filter by the base model; False keeps every candidate.
        verifier: another R-BERT that filters instead.

    Its stages define its other settings.

    >>> [stage.name for stage in MICE.preset("offline").stages]
    ['identify_causal_terms', 'propose_relations', 'edit_minimally', 'check_relation', 'judge_candidates']
    """

    task = "relation"
    chain = (GRADIENT_TERMS, ProposeRelations, EditMinimally, CONSISTENT, JudgeCandidates)
    defaults: ClassVar = DEFAULTS
    presets: ClassVar = {"paper": {}, "offline": {**OFFLINE_EDITOR, "num_beams": 4, "num_candidates": 4}}
    citation = """@inproceedings{ross-etal-2021-explaining,
  title = {Explaining {NLP} Models via Minimal Contrastive Editing ({M}i{CE})},
  author = {Ross, Alexis and Marasovi{\\'c}, Ana and Peters, Matthew},
  booktitle = {Findings of ACL-IJCNLP},
  year = {2021}
}"""
