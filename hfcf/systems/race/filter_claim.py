"""The claim that stays closest to the source's, in meaning and in entities (RACE, section 3.4), or the most fluent one."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Annotated, Any, ClassVar

from datasets import Dataset, IterableDataset
from pydantic import Field

from hfcf.core import schema
from hfcf.core.artifacts import save_artifact
from hfcf.core.candidates import accept, reject, settle, undecided
from hfcf.core.model import Model
from hfcf.core.settings import GoesWith, NeedsWeights
from hfcf.core.stage import Reject, Stage
from hfcf.engines.ner import Ner
from hfcf.engines.perplexity import Perplexity
from hfcf.metrics.shared.moverscore import MoverScore, fit_idf
from hfcf.tasks.judge import counterfactuals
from hfcf.tasks.verification import CANDIDATES, COUNTERFACTUALS, TASK
from hfcf.text.entities import overlap
from hfcf.text.evidence import join
from hfcf.text.normalise import normalise

AHEAD = "\nIn short:"
"""What a language model reads between the evidence and the claim that it scores."""
SEMANTIC, ENTITY, PERPLEXITY = "semantic fidelity", "entity fidelity", "perplexity"


@dataclass(frozen=True, kw_only=True)
class FilterClaim(Stage):
    """Accept the claim with the highest sum of semantic and entity fidelity; write the row's counterfactuals and decide it.

    With a `fluency_model`, accept the most fluent claim instead; equal fluency is decided by the sum, equal claims by their text.

    Input columns: the task's, `entities`, `candidates`. Output columns: `candidates`, and `counterfactuals` with (c′, E, y′)
    and, for a SUPPORTS row, (c, E′, REFUTES). The row is accepted when it has a counterfactual.

    - *Semantic fidelity* is the MoverScore of c and c′; its IDF weights are learned from the claims of the whole set.
    - *Entity fidelity* is the share of c's entities (of the five types, compared by letters and digits) that c′ names, 0 when c has
      none; the paper's "overlap rate of entities" does not name the set that it is over.
    - *Fluency* is the claim's perplexity by `fluency_model` after the evidence (of a SUPPORTS row, the edited evidence), rounded to
      three digits; see `hfcf.engines.perplexity`. A claim that is too long to have one comes last.

    Args:
        encoder: MoverScore's model.
        ner: the tagger, the same as `tag_entities` uses.
        fluency_model: a decoder-only language model; None, as in the paper, ignores fluency.
        max_perplexity: reject claims of a greater perplexity; None, as in the paper, rejects none. It needs a `fluency_model`.

    >>> list(FilterClaim(encoder=Model("distilbert-base-uncased")).outputs)
    ['candidates', 'counterfactuals']
    """

    inputs: ClassVar = {**TASK.features, "entities": schema.ENTITIES, "edits": schema.EDITS, "candidates": CANDIDATES}
    outputs: ClassVar = {"candidates": CANDIDATES, "counterfactuals": COUNTERFACTUALS}
    produced_by: ClassVar = {"entities": "race.tag_entities", "edits": "race.edit_evidence", "candidates": "race.check_claim"}

    engines: ClassVar = (MoverScore, Ner, Perplexity)

    encoder: Annotated[Model, NeedsWeights("MoverScore compares its embeddings of words, which an endpoint does not give")] = Model(
        "distilbert-base-uncased"
    )
    ner: Ner = field(default_factory=Ner)
    fluency_model: (
        Annotated[Model, NeedsWeights("the claims are chosen by their perplexity, which an endpoint does not give")] | None
    ) = None
    max_perplexity: Annotated[float, Field(gt=0), GoesWith("fluency_model")] | None = None

    def check(self) -> None:
        if self.max_perplexity is not None and self.fluency_model is None:
            raise ValueError(
                f"max_perplexity={self.max_perplexity} needs a fluency_model, which measures the perplexity of claims: give one"
            )

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
        fluency = iter(self._fluency(rows))
        results: list[dict[str, Any] | Reject] = []
        for row in rows:
            names = {normalise(e["text"]) for e in row["entities"] if e["field"] == "claim"}
            candidates = []
            for candidate in row["candidates"]:
                if undecided(candidate):
                    new = {normalise(candidate["claim"][start:end]) for start, end, _ in next(tagged)}
                    scores = [{"name": SEMANTIC, "value": next(semantic)}, {"name": ENTITY, "value": overlap(names, new) or 0.0}]
                    candidate = self._score(candidate, [*scores, *next(fluency)])
                candidates.append(candidate)
            results.append(self._decide(row, candidates))
        return results

    def _score(self, claim: dict[str, Any], scores: list[dict[str, Any]]) -> dict[str, Any]:
        """Add the scores to a claim, and reject it where it is too perplexing."""
        claim = {**claim, "scores": [*claim["scores"], *scores]}
        perplexity = next((score["value"] for score in scores if score["name"] == PERPLEXITY), None)
        if perplexity is None or self.max_perplexity is None or perplexity <= self.max_perplexity:
            return claim
        return reject(
            claim, self.name, f"reads oddly after its evidence: a perplexity of {perplexity}, {self.max_perplexity} at most"
        )

    def _fluency(self, rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
        """Return the score of each undecided claim of the rows; an empty list without a language model."""
        claims = [[candidate["claim"] for candidate in row["candidates"] if undecided(candidate)] for row in rows]
        if self.fluency_model is None:
            return [[] for own in claims for _ in own]
        requests = []
        for row, own in zip(rows, claims, strict=True):
            before = join(TASK.apply_edits(row, row["edits"] or [])["evidence"])[0] + AHEAD if own else ""
            requests += [[before, f" {claim}"] for claim in own]
        answers = Perplexity(model=self.fluency_model).run(requests)
        # Further digits of a long text's score differ with its batch.
        return [[] if answer is None else [{"name": PERPLEXITY, "value": float(f"{answer:.3g}")}] for answer in answers]

    def _decide(self, row: dict[str, Any], candidates: list[dict[str, Any]]) -> dict[str, Any] | Reject:
        better = "closer to the source's" if self.fluency_model is None else "more fluent"
        best = min(
            (i for i, candidate in enumerate(candidates) if undecided(candidate)), key=lambda i: _rank(candidates[i]), default=None
        )
        judged = [
            accept(candidate, self.name) if i == best
            else reject(candidate, self.name, f"another claim of the row is {better}") if undecided(candidate)
            else candidate
            for i, candidate in enumerate(candidates)
        ]  # fmt: skip
        accepted = [candidate for candidate in judged if candidate["status"]["accepted"]]
        results = counterfactuals(row, sorted(accepted, key=lambda candidate: candidate["change"]), "race")
        answer = settle(judged, "there is no candidate to choose from", counterfactuals=results)
        if isinstance(answer, Reject):
            return answer
        return {**answer, "status": {"accepted": True, "stage": self.name, "reason": None}}


def _rank(candidate: dict[str, Any]) -> tuple[float, float, str]:
    """Return the key by which the best candidate is the smallest."""
    scores = {score["name"]: score["value"] for score in candidate["scores"]}
    return scores.get(PERPLEXITY, inf), -round(scores[SEMANTIC] + scores[ENTITY], 5), candidate["claim"]
