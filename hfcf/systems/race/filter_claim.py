"""The claim that stays closest to the source's, in meaning and in entities (RACE, section 3.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Annotated, Any, ClassVar

from datasets import Dataset, IterableDataset
from pydantic import Field

from hfcf.core import schema
from hfcf.core.artifacts import save_artifact
from hfcf.core.candidates import accept, reject, scored, settle, undecided
from hfcf.core.decisions import best, exceeds
from hfcf.core.model import Model
from hfcf.core.settings import NeedsWeights, Share
from hfcf.core.stage import Reject, Stage
from hfcf.engines.ner import Ner
from hfcf.engines.perplexity import Perplexity, perplexity_ratios
from hfcf.metrics.copy_rate import copy_rate
from hfcf.metrics.minimality import kept_words
from hfcf.metrics.shared.moverscore import MoverScore, fit_idf
from hfcf.systems._shared.judge import counterfactuals
from hfcf.systems.race.follow import follows
from hfcf.tasks.verification import CANDIDATES, COUNTERFACTUALS, TASK
from hfcf.text.entities import overlap
from hfcf.text.evidence import evidence_texts
from hfcf.text.normalise import normalise

SEMANTIC, ENTITY = "semantic fidelity", "entity fidelity"
PERPLEXITY, COPIED, KEPT = "perplexity ratio", "copy rate", "words shared"


@dataclass(frozen=True, kw_only=True)
class FilterClaim(Stage):
    """Accept the claim with the highest sum of semantic and entity fidelity; write the row's counterfactuals and decide it.

    The claim's text decides between equal sums (`hfcf.core.decisions`).

    Input columns: the task's, `entities`, `candidates`. Output columns: `candidates`, and `counterfactuals` with (c′, E, y′)
    and, for a SUPPORTS row, (c, E′, REFUTES). The row is accepted when it has a counterfactual.

    - *Semantic fidelity* is the MoverScore of c and c′; its IDF weights are learned from the claims of the whole set.
    - *Entity fidelity* is the share of c's entities (of the five types, compared by letters and digits) that c′ names. It is 0
      when c has none. The paper's "overlap rate of entities" does not name the set that it is over.
    - *Fluency*, on request, is a floor: the claim's perplexity by `fluency_model`, divided by that of the source's claim; see
      `hfcf.engines.perplexity`. Deviation: the paper has no such floor. The evidence is not read before the claim, since after it
      the most fluent claim is a copy of it.
    - The *copy rate*, on request, is the claim's longest run of words that one piece of E or E′ also has, divided by its words.

    Args:
        encoder: MoverScore's model.
        ner: the tagger, the same as `tag_entities` uses.
        fluency_model: a decoder-only language model; None, as in the paper, ignores fluency.
        max_perplexity_ratio: with a `fluency_model`, reject claims of a greater perplexity, over that of the source's claim. A
            claim that is too long for the model to score stays. So does a claim that follows the edits of E′: it reads as its
            source does.
        max_copied: reject claims of a greater copy rate, 0–1; None, as in the paper, rejects none.
        min_kept: reject claims that share fewer words with the source's, as a share (0–1) of the longer claim. Such claims are
            about something else, or about more. None, as in the paper, rejects none.

    >>> list(FilterClaim(encoder=Model("distilbert-base-uncased")).outputs)
    ['candidates', 'counterfactuals']
    """

    VERSION: ClassVar[str] = "2"

    inputs: ClassVar = {**TASK.features, "entities": schema.ENTITIES, "edits": schema.EDITS, "candidates": CANDIDATES}
    outputs: ClassVar = {"candidates": CANDIDATES, "counterfactuals": COUNTERFACTUALS}
    produced_by: ClassVar = {"entities": "race.tag_entities", "edits": "race.edit_evidence", "candidates": "race.check_claim"}

    engines: ClassVar = (MoverScore, Ner, Perplexity)

    encoder: Annotated[Model, NeedsWeights("MoverScore compares its embeddings of words, which an endpoint does not give")] = Model(
        "distilbert-base-uncased"
    )
    ner: Ner = field(default_factory=Ner)
    fluency_model: (
        Annotated[Model, NeedsWeights("the perplexity of claims is measured, which an endpoint does not give")] | None
    ) = None
    max_perplexity_ratio: Annotated[float, Field(gt=0)] = 1.2
    max_copied: Share | None = None
    min_kept: Share | None = None

    @property
    def fit_inputs(self) -> tuple[str, ...]:
        return ("claim", "entities")

    def learn(self, ds: Dataset | IterableDataset) -> str:
        # Rows without entities were rejected: they teach nothing.
        rows = ds.select_columns(["claim", "entities"])
        return save_artifact(fit_idf((row["claim"] for row in rows if row["entities"] is not None), self.encoder))

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        open_ = [(row, candidate) for row in rows for candidate in row["candidates"] if undecided(candidate)]
        claims = [candidate["claim"] for _, candidate in open_]
        movers = MoverScore(model=self.encoder, idf=self.fitted)
        semantic = iter(movers.run([[row["claim"], candidate["claim"]] for row, candidate in open_]))
        tagged = iter(self.ner.run(claims))
        ratios = iter(
            self._ratios([None if follows(candidate) else (row["claim"], candidate["claim"]) for row, candidate in open_])
        )
        results: list[dict[str, Any] | Reject] = []
        for row in rows:
            names = {normalise(e["text"]) for e in row["entities"] if e["field"] == "claim"}
            candidates, texts = [], self._texts(row)
            for candidate in row["candidates"]:
                if undecided(candidate):
                    new = {normalise(candidate["claim"][start:end]) for start, end, _ in next(tagged)}
                    scores = {SEMANTIC: next(semantic), ENTITY: overlap(names, new) or 0.0}
                    quality = self._quality(row["claim"], candidate["claim"], texts, next(ratios))
                    candidate = self._score(candidate, {**scores, **quality})
                candidates.append(candidate)
            results.append(self._decide(row, candidates))
        return results

    def _ratios(self, pairs: Sequence[tuple[str, str] | None]) -> list[float | None]:
        """Divide the perplexity of each new claim by its source's; None where it is not asked for, or too long to tell."""
        if self.fluency_model is None:
            return [None] * len(pairs)
        measured = [pair for pair in pairs if pair is not None]
        ratios = iter(perplexity_ratios(self.fluency_model, measured))
        return [None if pair is None else next(ratios) for pair in pairs]

    def _texts(self, row: Mapping[str, Any]) -> list[str]:
        """List the texts that a row's claims may copy, if that is asked for."""
        if self.max_copied is None or not any(map(undecided, row["candidates"])):
            return []
        edited = TASK.apply_edits(row, row["edits"] or [])["evidence"]
        return [text for pieces in (row["evidence"], edited) for _, _, text in evidence_texts({"evidence": pieces})]

    def _quality(self, source: str, claim: str, texts: Sequence[str], ratio: float | None) -> dict[str, float]:
        """Score a claim's fluency, how far it is copied, and what it keeps, where they are asked for."""
        scores = dict[str, float]()
        if ratio is not None:
            scores[PERPLEXITY] = ratio
        if self.max_copied is not None:
            scores[COPIED] = copy_rate(claim, texts) or 0.0
        if self.min_kept is not None:
            scores[KEPT] = min(kept_words(source, claim) or 0.0, kept_words(claim, source) or 0.0)
        return scores

    def _score(self, claim: dict[str, Any], scores: Mapping[str, float]) -> dict[str, Any]:
        """Add the scores to a claim, and reject it where it reads oddly or is copied."""
        claim = {**claim, "scores": [*claim["scores"], *(scored(name, value) for name, value in scores.items())]}
        limits = (PERPLEXITY, self.max_perplexity_ratio, 1), (COPIED, self.max_copied, 1), (KEPT, self.min_kept, -1)
        for name, limit, sign in limits:
            if limit is not None and name in scores and exceeds(sign * scores[name], sign * limit):
                bound = f"{limit} at {'most' if sign > 0 else 'least'}"
                return reject(claim, self.name, f"{_FAULTS[name]}: {name} {scores[name]:.2f}, {bound}")
        return claim

    def _decide(self, row: dict[str, Any], candidates: list[dict[str, Any]]) -> dict[str, Any] | Reject:
        left = [candidate for candidate in candidates if undecided(candidate)]
        nearest = best(left, _fidelity, itemgetter("claim")) if left else None
        judged = [
            accept(candidate, self.name) if candidate is nearest
            else reject(candidate, self.name, "another claim of the row is closer to the source's") if undecided(candidate)
            else candidate
            for candidate in candidates
        ]  # fmt: skip
        accepted = [candidate for candidate in judged if candidate["status"]["accepted"]]
        results = counterfactuals(row, sorted(accepted, key=lambda candidate: candidate["change"]), "race")
        answer = settle(judged, "there is no candidate to choose from", counterfactuals=results)
        if isinstance(answer, Reject):
            return answer
        return {**answer, "status": {"accepted": True, "stage": self.name, "reason": None}}


_FAULTS = {
    PERPLEXITY: "reads less well than the source's claim", COPIED: "is a piece of the evidence", KEPT: "speaks of something else",
}  # fmt: skip


def _fidelity(candidate: Mapping[str, Any]) -> float:
    scores = {score["name"]: score["value"] for score in candidate["scores"]}
    return float(scores[SEMANTIC] + scores[ENTITY])
