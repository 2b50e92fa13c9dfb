"""MICE for relation extraction (Ross, Marasović and Peters 2021), as a baseline of CCG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from datasets import Dataset, IterableDataset, List

from hfcf.core import schema
from hfcf.core.candidates import Candidate, reject, settle
from hfcf.core.chain import StageOf
from hfcf.core.model import Model
from hfcf.core.stage import Reject, Stage, StageError
from hfcf.core.system import System
from hfcf.engines.classifier import choose
from hfcf.engines.continuation import Continuation
from hfcf.engines.likelihood import Likelihood
from hfcf.engines.relation import RelationClassifier
from hfcf.systems.baselines._shared import relations
from hfcf.systems.ccg.editor import check_search, train_editor
from hfcf.systems.ccg.gradients import WordGradients, highest
from hfcf.systems.ccg.identify import IdentifyCausalTerms
from hfcf.systems.ccg.indicator import ask_indicators, check_folds, fit_indicator
from hfcf.systems.ccg.system import CLASSIFIER, EDITOR, OFFLINE
from hfcf.tasks.relation import CANDIDATES, TASK, candidate, requests, token_edits
from hfcf.training.loop import Hyperparameters
from hfcf.training.store import ensure_steps, parse_trainings


@dataclass
class _Search:
    """The search for an edit of a row that makes the base model predict a relation."""

    row: Mapping[str, Any]
    relation: str
    masks: Sequence[Sequence[int]]
    """Growing sets of words to take out."""
    terms: Sequence[tuple[str, float]]
    best: Candidate | None = None
    probability: float = -1.0
    flipped: bool = False

    def candidates_at(self, level: int) -> list[Candidate]:
        """Make the candidates with a level's words taken out."""
        if self.flipped or level >= len(self.masks):
            return []
        tokens, mask = self.row["tokens"], self.masks[level]
        results = []
        for text, score in self.terms:
            edited = token_edits(tokens, mask, text)
            one = candidate(self.row, self.relation, edited, [{"name": "editor", "value": score}])
            results += [one] if one["text"].lower() != " ".join(tokens).lower() else []
        return results

    def judge(self, one: Candidate, answer: Mapping[str, float] | None) -> None:
        """Keep the likeliest that flips of the first level that has one, else the likeliest of all."""
        probability = (answer or {}).get(self.relation, -1.0)
        flips = answer is not None and choose(answer, sorted(answer)) == self.relation
        if self.best is None or (flips, probability) > (self.flipped, self.probability):
            self.best, self.probability, self.flipped = one, probability, flips


@dataclass(frozen=True, kw_only=True)
class EditMinimally(Stage):
    """Replace the smallest share of the words of the highest gradient that makes the base model predict each new relation.

    Input columns: `tokens`, `head`, `tail`, `label`, `new_relations`. Output column: `candidates`, one for each new relation: for
    the smallest share that flips the term with the highest probability; where none flips, the likeliest of all, which the
    consistency filter then rejects. Gradients are those of the model's own prediction, as in MICE.

    Args:
        indicator: the base model.
        cross_fitted: the sha256 of a file that gives each row a base model which was not trained on it
            (`hfcf.systems.ccg.indicator.cross_fit`); rows that it does not know have `indicator`.
        editor: the model that writes terms; None: the one that was fitted.
        share: the largest share of the words between the entities that is taken out.
        levels: how many shares are tried, in equal steps up to that one; those that come to as many words are one.
        words: "between" the entities or all the "context".
        num_beams: beams of the editor's search.
        num_candidates: its hypotheses, all of which are tried.
        closed: instead of the search, try the relation's terms in the training rows that the editor finds likeliest.
        max_new_tokens: of a hypothesis.
        max_length: pieces of a sentence that the base model reads.
        fitted: the sha256 of the fitted file that names the editor; `fit(ds)` sets it.

    >>> EditMinimally().masks([0.1, 0.9, 0.4, 0.2, 1.0], [1, 2, 3])
    [[1], [1, 2]]
    """

    VERSION: ClassVar[str] = "3"
    inputs: ClassVar = {**TASK.columns, "label": schema.TEXT, "new_relations": List(schema.TEXT)}
    outputs: ClassVar = {"candidates": CANDIDATES}
    produced_by: ClassVar = {"new_relations": "mice.propose_relations"}

    indicator: Model | None = None
    cross_fitted: str | None = None
    editor: Model | None = None
    share: float = 0.55
    levels: int = 4
    words: str = "between"
    num_beams: int = 15
    num_candidates: int = 15
    closed: bool = False
    max_new_tokens: int = 24
    max_length: int = 128
    fitted: str | None = None

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1 or self.levels < 1:
            raise ValueError(f"share={self.share}, levels={self.levels}: share lies in (0, 1], and levels is at least 1")
        check_search(self.num_candidates, self.num_beams)

    def check_fitted(self) -> None:
        if self.indicator is None and self.cross_fitted is None:
            raise StageError(f"{self.name} has no indicator: mice(ds) trains one on the rows of ds; or give it an R-BERT")
        if self.editor is None or self.closed:
            relations.require_fitted(self, self.fitted)

    def masks(self, weights: Sequence[float], allowed: Sequence[int]) -> list[list[int]]:
        """List the sets of words that are taken out, growing."""
        shares = [self.share * level / self.levels for level in range(1, self.levels + 1)]
        results = [tuple(highest(weights, allowed, share=share, floor=0.0)) for share in shares]
        return [list(mask) for mask in dict.fromkeys(results)]

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        def weigh(indicator: Model, part: list[Any]) -> list[Any]:
            return WordGradients(indicator=indicator, max_length=self.max_length).run([[*one, None] for one in part])

        maskable = IdentifyCausalTerms(words=self.words).maskable
        weights = ask_indicators(self, [row["id"] for row in rows], requests(rows), weigh, None)
        targets = [(i, relation) for i, row in enumerate(rows) if weights[i] for relation in row["new_relations"]]
        terms = relations.write_terms(self, [(rows[i], relation) for i, relation in targets])
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
            return RelationClassifier(model=indicator, max_length=self.max_length).run(part)

        for level in range(self.levels):
            tried = [(search, one) for search in searches for one in search.candidates_at(level)]
            edited = [TASK.apply_edits(search.row, one["edits"]) for search, one in tried]
            answers = ask_indicators(self, [search.row["id"] for search, _ in tried], requests(edited), judge, None)
            for (search, one), answer in zip(tried, answers, strict=True):
                search.judge(one, answer)

    def _candidate(self, search: _Search) -> Candidate:
        return search.best or reject(candidate(search.row, search.relation, []), self.name, "the editor wrote no other term")


@dataclass(frozen=True, kw_only=True)
class MICE(System):
    """Replace the words of the highest gradient by an editor's, as few as make the base model say another relation.

    It is "Explaining NLP Models via Minimal Contrastive Editing (MiCE)" (Findings of ACL 2021) as CCG compares with it (sections 1,
    4.4, A.2): every other relation is tried, all editors are the same model, and candidates stay to which the base model gives the
    new relation. The base model is the R-BERT that CCG trains as its indicator on these rows; the editor is trained on them, too.

    Readings and deviations, where neither paper says how MICE works with entities that stay and with CCG's editor:

    - The editor reads CCG's template, which has entities and relation but not the sentence. So it is asked once for a row and a
      relation, not once for each share; and it is trained on the words that AutoCAD's rule takes (30 %), as a share drawn anew for
      each example, MICE's way, would change nothing but the answers' lengths. Its term takes the place of the first removed word.
    - Words are masked between the entities alone, as in CCG; shares are of these. Gradients are aggregated as in AutoCAD.
    - Of MICE's two searches we take the linear one, up to 55 % of the words in four steps: between two entities stand so few words
      that four steps come to two or three different edits, and the binary one presumes that what flips at a share flips at each
      larger one. One round of editing, of MICE's three.
    - Terms come of a beam search (MICE samples 15; beams give the same rows each time).

    Args:
        indicator: the base model, an R-BERT; None trains one on the rows.
        classifier: how that one is trained.
        folds: see `hfcf.systems.ccg.system.CCG`: with 2, no row's candidates are chosen or kept by a base model that has seen it.
        cross_fitted: the sha256 of the file that says which base model a row has; `fit_models` sets it.
        editor: a trained editor; None trains one on the rows.
        editor_training: how that one is trained.
        least_steps: see `hfcf.systems.ccg.system.CCG`.
        consistency: filter by the base model; False keeps every candidate.
        verifier: another R-BERT that filters in its place.
        max_length: pieces of a sentence that the models read.

    Its other settings are those of the stages of the same name.

    >>> [stage.name for stage in MICE.preset("offline").stages]
    ['identify_causal_terms', 'propose_relations', 'edit_minimally', 'check_relation', 'judge_candidates']
    """

    task: ClassVar[str] = "relation"
    chain: ClassVar[tuple[str, ...]] = (
        "identify_causal_terms",
        "propose_relations",
        "edit_minimally",
        "check_relation",
        "judge_candidates",
    )
    presets: ClassVar = {
        "paper": {},
        "offline": {
            **relations.OFFLINE_BASE,
            "editor_training": OFFLINE["editor_training"],
            "closed": OFFLINE["closed"],
            **dict.fromkeys(("num_beams", "num_candidates"), 4),
        },
    }
    trainings: ClassVar = {"classifier": "indicator", "editor_training": "editor"}
    trained_by: ClassVar = {"indicator": "train_relation", "verifier": "train_relation"}
    engines: ClassVar = (WordGradients, Continuation, Likelihood, RelationClassifier)
    citation: ClassVar[str] = """@inproceedings{ross-etal-2021-explaining,
  title = {Explaining {NLP} Models via Minimal Contrastive Editing ({M}i{CE})},
  author = {Ross, Alexis and Marasovi{\\'c}, Ana and Peters, Matthew},
  booktitle = {Findings of ACL-IJCNLP},
  year = {2021}
}"""

    indicator: Model | None = None
    classifier: Hyperparameters = CLASSIFIER
    folds: int = 1
    cross_fitted: str | None = None
    editor: Model | None = None
    editor_training: Hyperparameters = EDITOR
    least_steps: int = 0
    share: float = 0.55
    levels: int = 4
    words: str = "between"
    num_beams: int = 15
    num_candidates: int = 15
    closed: bool = False
    max_new_tokens: int = 24
    consistency: bool = True
    verifier: Model | None = None
    max_length: int = 128

    def __post_init__(self) -> None:
        self._as_models("indicator", "editor", "verifier")
        check_folds(self)
        parse_trainings(self)

    identify_causal_terms = relations.GRADIENT_TERMS
    propose_relations = StageOf(relations.ProposeRelations)
    edit_minimally = StageOf(EditMinimally)
    check_relation = relations.CONSISTENT
    judge_candidates = relations.JUDGE

    @property
    def fit_after(self) -> tuple[str, ...]:
        return ("identify_causal_terms",)

    def fit_models(self, ds: Dataset | IterableDataset) -> Self:
        """Return MICE with a base model: its own, else one that is trained on `ds`, or one for each of its folds."""
        return replace(self, **fit_indicator(self, ds))

    def fit_resources(self, ds: Dataset | IterableDataset) -> str:
        def train(rows: list[dict[str, Any]]) -> str:
            hp = ensure_steps(self.editor_training, self.least_steps, len(rows))
            return train_editor(rows, hp, max_target=self.max_new_tokens)

        return relations.fit_editor(self, ds, train)
