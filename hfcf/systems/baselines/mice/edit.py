"""The search for an edit that makes the base model say another relation with as few words as it takes: MICE's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from datasets import List

from hfcf.core import schema
from hfcf.core.candidates import Candidate, reject, settle
from hfcf.core.model import Model
from hfcf.core.stage import Reject, Stage, StageError
from hfcf.engines.classifier import choose
from hfcf.engines.continuation import Continuation
from hfcf.engines.relation import RelationClassifier
from hfcf.systems.baselines._shared.relations import choose_editor, require_fitted, write_terms
from hfcf.systems.ccg.gradients import WordGradients, highest
from hfcf.systems.ccg.identify import IdentifyCausalTerms
from hfcf.tasks.relation import CANDIDATES, TASK, candidate, requests, token_edits


@dataclass
class _Search:
    """The search for an edit of a row that makes the base model say a relation."""

    row: Mapping[str, Any]
    relation: str
    masks: Sequence[Sequence[int]]
    """Growing sets of words to take out."""
    terms: Sequence[tuple[str, float]]
    best: Candidate | None = None
    probability: float = -1.0
    flipped: bool = False

    def candidates_at(self, level: int) -> list[Candidate]:
        """The candidates with a level's words taken out."""
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
    """For each new relation, the smallest share of the words of the highest gradient whose replacement makes the base model say it.

    Input columns: `tokens`, `head`, `tail`, `label`, `new_relations`. Output column: `candidates`, one for each new relation: of
    the least words that must go the term with the highest probability; where none flips, the likeliest of all, which the
    consistency filter then rejects. Gradients are those of the model's own prediction, as in MICE.

    Args:
        indicator: the base model.
        editor: the model that writes terms; None: the one that was fitted.
        share: the largest share of the words between the entities that is taken out.
        levels: how many shares are tried, in equal steps up to that one; those that come to as many words are one.
        words: "between" the entities or all the "context".
        num_beams: beams of the editor's search.
        num_candidates: its hypotheses, all of which are tried.
        max_new_tokens: of a hypothesis.
        max_length: pieces of a sentence that the base model reads.
        fitted: the sha256 of the fitted file that names the editor; `fit(ds)` sets it.

    >>> EditMinimally().masks([0.1, 0.9, 0.4, 0.2, 1.0], [1, 2, 3])
    [[1], [1, 2]]
    """

    VERSION: ClassVar[str] = "2"
    inputs: ClassVar = {
        **TASK.columns, "label": schema.TEXT,
        "new_relations": List(schema.TEXT),
    }  # fmt: skip
    outputs: ClassVar = {"candidates": CANDIDATES}
    produced_by: ClassVar = {"new_relations": "mice.propose_relations"}

    indicator: Model | None = None
    editor: Model | None = None
    share: float = 0.55
    levels: int = 4
    words: str = "between"
    num_beams: int = 15
    num_candidates: int = 15
    max_new_tokens: int = 24
    max_length: int = 128
    fitted: str | None = None

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1 or self.levels < 1:
            raise ValueError(f"share={self.share}, levels={self.levels}: share lies in (0, 1], and levels is at least 1")
        if not 1 <= self.num_candidates <= self.num_beams:
            raise ValueError(f"num_candidates={self.num_candidates}: it is at least 1, and num_beams={self.num_beams} at most")

    def check_fitted(self) -> None:
        if self.indicator is None:
            raise StageError(f"{self.name} has no indicator: mice(ds) trains one on the rows of ds; or give it an R-BERT")
        if self.editor is None:
            require_fitted(self, self.fitted)

    def masks(self, weights: Sequence[float], allowed: Sequence[int]) -> list[list[int]]:
        """The sets of words that are taken out, growing."""
        shares = [self.share * level / self.levels for level in range(1, self.levels + 1)]
        results = [tuple(highest(weights, allowed, share=share, floor=0.0)) for share in shares]
        return [list(mask) for mask in dict.fromkeys(results)]

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        assert self.indicator is not None
        engine = WordGradients(indicator=self.indicator, max_length=self.max_length)
        maskable = IdentifyCausalTerms(words=self.words).maskable
        weights = engine.run([[*request, None] for request in requests(rows)])
        asked = [(i, relation) for i, row in enumerate(rows) if weights[i] for relation in row["new_relations"]]
        written = iter(self._written([(rows[i], relation) for i, relation in asked]))
        masks = {i: self.masks(weights[i], maskable(rows[i])) for i in dict(asked)}
        searches: dict[int, list[_Search]] = {i: [] for i in range(len(rows))}
        for i, relation in asked:
            searches[i].append(_Search(rows[i], relation, masks[i], next(written)))
        self._search([search for group in searches.values() for search in group])
        return [
            settle([self._candidate(search) for search in searches[i]], "there is no new relation that could be tried")
            for i in range(len(rows))
        ]

    def _written(self, asked: Sequence[tuple[Mapping[str, Any], str]]) -> list[list[tuple[str, float]]]:
        model = choose_editor(self, self.editor, self.fitted)
        engine = Continuation(
            model=model, num_beams=self.num_beams, num_return_sequences=self.num_candidates, max_new_tokens=self.max_new_tokens
        )
        return write_terms(engine, asked)

    def _search(self, searches: Sequence[_Search]) -> None:
        """Level after level, all rows' together, of those alone that have no edit that flips."""
        assert self.indicator is not None
        engine = RelationClassifier(model=self.indicator, max_length=self.max_length)
        for level in range(self.levels):
            tried = [(search, one) for search in searches for one in search.candidates_at(level)]
            edited = [TASK.apply_edits(search.row, one["edits"]) for search, one in tried]
            answers = engine.run(requests(edited))
            for (search, one), answer in zip(tried, answers, strict=True):
                search.judge(one, answer)

    def _candidate(self, search: _Search) -> Candidate:
        if search.best is None:
            return reject(candidate(search.row, search.relation, []), self.name, "the editor wrote no other term")
        return search.best
