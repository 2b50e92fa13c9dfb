"""CoCo for relation extraction (Zhang et al. 2023), as a baseline of CCG."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from datasets import Dataset, IterableDataset, List

from hfcf.core import schema
from hfcf.core.candidates import Candidate, reject, settle
from hfcf.core.chain import StageOf
from hfcf.core.model import Model
from hfcf.core.stage import Reject, Stage
from hfcf.core.store import save_artifact
from hfcf.core.system import System
from hfcf.engines.parser import Parser
from hfcf.engines.relation import RelationClassifier
from hfcf.systems.baselines._shared import relations
from hfcf.systems.baselines.coco.paths import STANZA, FindPaths
from hfcf.systems.ccg.indicator import check_folds, fit_indicator
from hfcf.systems.ccg.system import CLASSIFIER
from hfcf.tasks.relation import CANDIDATES, TASK, candidate
from hfcf.training.loop import Hyperparameters
from hfcf.training.store import parse_trainings


@dataclass(frozen=True, kw_only=True)
class SubstituteTerms(Stage):
    """Replace a row's causal terms, for each new relation, by the corresponding words of an instance that has it.

    Input columns: `tokens`, `head`, `tail`, `label`, `causal_terms`, `term_places`, `new_relations`. Output column: `candidates`,
    one for each new relation. An instance corresponds that has as many words on its paths, and in the order of the sentence each of
    the same tag, with the same dependency and in the same graphs; of several the one with the most frequent words, then the first
    by its words. Where none corresponds, or all have the row's own words, the candidate is rejected.

    Args:
        fitted: the sha256 of the fitted file with the instances of each relation; `fit(ds)` sets it.

    >>> from hfcf.core.store import save_artifact
    >>> instances = {"of": [{"words": ["sunk", "by"], "places": ["VBN acl both", "IN prep both"], "count": 1}]}
    >>> row = {"id": "1", "tokens": "shoes made from leather".split(), "label": "x", "status": None, "candidates": None}
    >>> row |= {"head": {"start": 0, "end": 1, "type": None}, "tail": {"start": 3, "end": 4, "type": None}}
    >>> row |= {"causal_terms": [1, 2], "term_places": ["VBN acl both", "IN prep both"], "new_relations": ["of"]}
    >>> SubstituteTerms(fitted=save_artifact({"instances": instances}))(row)["candidates"][0]["text"]
    'shoes sunk by leather'
    """

    inputs: ClassVar = {
        **TASK.columns, "label": schema.TEXT,
        "causal_terms": List(schema.INT), "term_places": List(schema.TEXT), "new_relations": List(schema.TEXT),
    }  # fmt: skip
    outputs: ClassVar = {"candidates": CANDIDATES}
    produced_by: ClassVar = {
        "causal_terms": "coco.find_paths", "term_places": "coco.find_paths", "new_relations": "coco.propose_relations",
    }  # fmt: skip

    fitted: str | None = None

    def check_fitted(self) -> None:
        relations.require_fitted(self, self.fitted)

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        instances = relations.read_fitted(self.fitted or "")["instances"]
        results: list[dict[str, Any] | Reject] = []
        for row in rows:
            candidates = [self._candidate(row, relation, instances.get(relation, [])) for relation in row["new_relations"]]
            results.append(settle(candidates, "no relation"))
        return results

    def _candidate(self, row: Mapping[str, Any], relation: str, instances: Sequence[Mapping[str, Any]]) -> Candidate:
        own = [row["tokens"][i] for i in row["causal_terms"]]
        corresponding = [one for one in instances if one["places"] == row["term_places"]]
        fitting = [one for one in corresponding if " ".join(one["words"]).lower() != " ".join(own).lower()]
        if not fitting:
            reason = "no instance of the new relation has other words in the same places of its graphs"
            return reject(candidate(row, relation, []), self.name, reason)
        best = min(fitting, key=lambda one: (-one["count"], one["words"]))
        edited = [
            {"field": "tokens", "piece": -1, "start": i, "end": i + 1, "before": old, "after": new}
            for i, old, new in zip(row["causal_terms"], own, best["words"], strict=True)
            if old != new
        ]
        return candidate(row, relation, edited)


@dataclass(frozen=True, kw_only=True)
class CoCo(System):
    """Replace the words between two entities in dependency graphs by the corresponding ones of an instance of another relation.

    It is "Towards Model Robustness: Generating Contextual Counterfactuals for Entities in Relation Extraction" (WWW 2023) as CCG
    compares with it (sections 1, 4.4, A.2): words on the shortest dependency path are causal, every other relation is tried, and
    candidates stay to which the base model, CCG's indicator for the same rows, gives the new relation. No text is generated.

    Readings, as no code of CoCo's was at hand:

    - Its abstract names two topological properties, centrality and the shortest path. We take the path, as CCG describes CoCo;
      the words that CCG's release has from both graphs together (`mixed_terms`, the entities' neighbours) are not read.
    - "Topologically similar" is: as many words on the paths, each of the same tag, with the same dependency and in the same of the
      two graphs (`SubstituteTerms`). CCG's Table 5 shows such substitutions, word by word. Were parts of speech enough, as many
      again would pass the filter, of the kind "the results are consists of the logbook".
    - Without a parser of semantic dependencies, predicates and arguments are derived from the dependency parse
      (`hfcf.systems.baselines.coco.paths.semantic`). In spaCy's trees a preposition is on the path; in Universal Dependencies,
      Stanza's, it is on that of the semantic graph alone.

    Args:
        parser: the dependency parser.
        indicator: the base model, an R-BERT; None trains one on the rows.
        classifier: how that one is trained.
        folds: see `hfcf.systems.ccg.system.CCG`: with 2, no row's candidates are kept by a base model that has seen it.
        cross_fitted: the sha256 of the file that says which base model a row has; `fit_models` sets it.
        least_steps: see `hfcf.systems.ccg.system.CCG`.
        consistency: filter by the base model; False keeps every candidate.
        verifier: another R-BERT that filters in its place.
        max_length: pieces of a sentence that the base model reads.

    >>> [stage.name for stage in CoCo.preset("offline").stages]
    ['find_paths', 'propose_relations', 'substitute_terms', 'check_relation', 'judge_candidates']
    """

    task: ClassVar[str] = "relation"
    chain: ClassVar[tuple[str, ...]] = ("find_paths", "propose_relations", "substitute_terms", "check_relation", "judge_candidates")
    presets: ClassVar = {
        "paper": {},
        "offline": {
            "parser": Parser(backend="spacy", model=Model("offline:spacy")),
            **relations.OFFLINE_BASE,
        },
    }
    trainings: ClassVar = {"classifier": "indicator"}
    trained_by: ClassVar = {"indicator": "train_relation", "verifier": "train_relation"}
    engines: ClassVar = (Parser, RelationClassifier)
    citation: ClassVar[str] = """@inproceedings{zhang-etal-2023-towards,
  title = {Towards Model Robustness: Generating Contextual Counterfactuals for Entities in Relation Extraction},
  author = {Zhang, Mi and Qian, Tieyun and Zhang, Ting and Miao, Xin},
  booktitle = {Proceedings of the ACM Web Conference},
  year = {2023}
}"""

    parser: Parser = STANZA
    indicator: Model | None = None
    classifier: Hyperparameters = CLASSIFIER
    folds: int = 1
    cross_fitted: str | None = None
    least_steps: int = 0
    consistency: bool = True
    verifier: Model | None = None
    max_length: int = 128

    def __post_init__(self) -> None:
        self._as_models("indicator", "verifier")
        check_folds(self)
        parse_trainings(self)
        self._as_engine("parser", Parser)

    find_paths = StageOf(FindPaths)
    propose_relations = StageOf(relations.ProposeRelations)
    substitute_terms = StageOf(SubstituteTerms)
    check_relation = relations.CONSISTENT
    judge_candidates = relations.JUDGE

    @property
    def fit_after(self) -> tuple[str, ...]:
        return ("find_paths",)

    def fit_models(self, ds: Dataset | IterableDataset) -> Self:
        """Return CoCo with a base model, if it filters by one: its own, else one that is trained on `ds`, or one for each fold."""
        return replace(self, **fit_indicator(self, ds)) if self.consistency and self.verifier is None else self

    def fit_resources(self, ds: Dataset | IterableDataset) -> str:
        """Write the relations of the rows and the instances of each: words on the paths, their places and count."""
        rows = relations.trainable_rows(ds, self, causal_terms="find_paths", term_places="find_paths")
        counts = Counter(
            (row["label"], tuple(row["tokens"][i] for i in row["causal_terms"]), tuple(row["term_places"]))
            for row in rows
            if row["causal_terms"]
        )
        instances: dict[str, list[dict[str, Any]]] = {}
        for (relation, words, places), count in sorted(counts.items()):
            instances.setdefault(relation, []).append({"words": list(words), "places": list(places), "count": count})
        return save_artifact({"relations": sorted({row["label"] for row in rows}), "instances": instances})
