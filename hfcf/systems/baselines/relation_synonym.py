"""Synonym replacement in sentences of relations: a share of the words outside the entities, and the relation stays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hfcf.core import schema
from hfcf.core.candidates import settle
from hfcf.core.model import Model
from hfcf.core.stage import Reject, Stage
from hfcf.core.system import System
from hfcf.engines.relation import RelationClassifier
from hfcf.systems.baselines.synonym import check, synonym_edits
from hfcf.tasks import sentence
from hfcf.tasks.check_relations import CheckRelations
from hfcf.tasks.relations import CANDIDATES


@dataclass(frozen=True, kw_only=True)
class RewriteRelationSynonym(Stage):
    """A candidate with synonyms in the place of some words outside the entities, for every relation, "Other" too, which it keeps.

    Input columns: `tokens`, `head`, `tail`, `label`. Output column: `candidates`, one. A row in which no word can be replaced is
    rejected. Which words can, and by what, `synonym_edits` says; a synonym may have several words.

    Args:
        share: the share of all the sentence's words, its entities' counted too, to replace; one word where it rounds to none.

    >>> row = {"id": "37", "tokens": "The eggs were moved into old buckets .".split(), "head": {"start": 1, "end": 2},
    ...        "tail": {"start": 6, "end": 7}, "label": "Entity-Destination(e1,e2)"}
    >>> RewriteRelationSynonym().row(row)["candidates"][0]["text"]
    'The eggs were propelled into former buckets .'
    """

    inputs: ClassVar = {name: schema.TASKS["relation"][name] for name in ("tokens", "head", "tail", "label")}
    outputs: ClassVar = {"candidates": CANDIDATES}

    share: float = 0.3

    def __post_init__(self) -> None:
        check(self.share)

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        text, rng = sentence.text(row), self.random(row["id"])
        made = synonym_edits(text, rng, share=self.share, protected=sentence.protected(row))
        answer = settle(
            sentence.reworded(row, made, self.name), "no word outside the entities has a synonym that may take its place"
        )
        if isinstance(answer, Reject):
            raise answer
        return answer


@dataclass(frozen=True, kw_only=True)
class RelationSynonym(System):
    """Replace words around the entities by WordNet synonyms, a baseline of CCG that keeps relations.

    Stages, in order: `rewrite_relation_synonym`, `check_relations`. CCG (appendix A.2; after Zhang, Zhao and LeCun 2015) takes a
    random 30 % of a sentence's words, synonyms from WordNet, and makes one new sentence of each. It says no more.

    Deviations: 30 % of all words is how many are replaced, but function words, modal verbs, negations, numbers and names are not
    among them, nor are the entities, so a short sentence may have fewer; a synonym takes its word's inflection and must go with
    the article before it. The reasons stand at `synonym_edits`.

    Args:
        share: see `RewriteRelationSynonym`.
        verifier: see `CheckRelations`; the baseline itself checks nothing.
        max_length: see `CheckRelations`.

    >>> [stage.name for stage in RelationSynonym(share=0.1).stages]
    ['rewrite_relation_synonym', 'check_relations']
    """

    task: ClassVar[str] = "relation"
    chain: ClassVar[tuple[str, ...]] = ("rewrite_relation_synonym", "check_relations")
    flips: ClassVar[bool] = False
    engines: ClassVar = (RelationClassifier,)

    share: float = 0.3
    verifier: Model | None = None
    max_length: int = 128

    def __post_init__(self) -> None:
        check(self.share)
        self._as_models("verifier")

    @property
    def name(self) -> str:
        return "relation_synonym"

    @property
    def rewrite_relation_synonym(self) -> RewriteRelationSynonym:
        return RewriteRelationSynonym(**self._common(), share=self.share)

    @property
    def check_relations(self) -> CheckRelations:
        return CheckRelations(**self._common(), system=self.name, verifier=self.verifier, max_length=self.max_length)
