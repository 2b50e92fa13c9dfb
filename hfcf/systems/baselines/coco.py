"""CoCo for relation extraction (Zhang et al. 2023), as a baseline of CCG."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from datasets import Dataset, IterableDataset, List

from hfcf.core import schema
from hfcf.core.artifacts import save_artifact
from hfcf.core.candidates import Candidate, reject, settle
from hfcf.core.model import Model
from hfcf.core.stage import Reject, Stage
from hfcf.core.system import System
from hfcf.engines.parser import Parser
from hfcf.systems.baselines._shared.dependency_paths import FindPaths
from hfcf.systems.baselines._shared.relation_editing import (
    CONSISTENT,
    DEFAULTS,
    OFFLINE_BASE,
    ProposeRelations,
    labelled_rows,
    read_fitted,
)
from hfcf.systems.ccg.indicator import COLUMNS
from hfcf.tasks.judge import JudgeCandidates
from hfcf.tasks.relation import CANDIDATES, TASK, candidate


@dataclass(frozen=True, kw_only=True)
class SubstituteTerms(Stage):
    """Replace a row's causal terms, for each new relation, by the corresponding words of an instance that has it.

    Input columns: `tokens`, `head`, `tail`, `label`, `causal_terms`, `term_places`, `new_relations`. Output column: `candidates`,
    one for each new relation. An instance corresponds if its paths have as many words, each, in the order of the sentence, with the
    same tag, dependency and graphs. Of several the one with the most frequent words is taken, then the first by its words. Where
    none corresponds, or all have the row's own words, the candidate is rejected.

    It learns the instances of each relation.

    >>> row = {"id": "1", "tokens": "shoes made from leather".split(), "label": "x", "status": None, "candidates": None}
    >>> row |= {"head": {"start": 0, "end": 1, "type": None}, "tail": {"start": 3, "end": 4, "type": None}}
    >>> row |= {"causal_terms": [1, 2], "term_places": ["VBN acl both", "IN prep both"], "new_relations": ["of"]}
    >>> other = {**row, "id": "2", "tokens": "ship sunk by pirates".split(), "label": "of"}
    >>> SubstituteTerms().fit(Dataset.from_list([row, other]))(row)["candidates"][0]["text"]
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

    @property
    def fit_inputs(self) -> tuple[str, ...]:
        return (*COLUMNS, "causal_terms", "term_places")

    def learn(self, ds: Dataset | IterableDataset) -> str:
        counts = Counter(
            (row["label"], tuple(row["tokens"][i] for i in row["causal_terms"]), tuple(row["term_places"]))
            for row in labelled_rows(ds, "causal_terms", "term_places")
            if row["causal_terms"]
        )
        instances: dict[str, list[dict[str, Any]]] = {}
        for (relation, words, places), count in sorted(counts.items()):
            instances.setdefault(relation, []).append({"words": list(words), "places": list(places), "count": count})
        return save_artifact({"instances": instances})

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        instances = read_fitted(self.fitted or "")["instances"]
        results: list[dict[str, Any] | Reject] = []
        for row in rows:
            candidates = [self._candidate(row, relation, instances.get(relation, [])) for relation in row["new_relations"]]
            results.append(settle(candidates, "no relation"))
        return results

    def _candidate(self, row: Mapping[str, Any], relation: str, instances: Sequence[Mapping[str, Any]]) -> Candidate:
        own = [row["tokens"][i] for i in row["causal_terms"]]
        corresponding = [instance for instance in instances if instance["places"] == row["term_places"]]
        fitting = [instance for instance in corresponding if " ".join(instance["words"]).lower() != " ".join(own).lower()]
        if not fitting:
            reason = "no instance of the new relation has other words in the same places of its graphs"
            return reject(candidate(row, relation, []), self.name, reason)
        best = min(fitting, key=lambda instance: (-instance["count"], instance["words"]))
        edited = [
            {"field": "tokens", "piece": -1, "start": i, "end": i + 1, "before": old, "after": new}
            for i, old, new in zip(row["causal_terms"], own, best["words"], strict=True)
            if old != new
        ]
        return candidate(row, relation, edited)


class CoCo(System):
    """Replace the words between two entities in dependency graphs by the corresponding ones of an instance of another relation.

    It is "Towards Model Robustness: Generating Contextual Counterfactuals for Entities in Relation Extraction" (WWW 2023) as CCG
    compares with it (sections 1, 4.4, A.2): words on the shortest dependency path are causal, every other relation is tried, and
    candidates stay to which the base model, CCG's indicator for the same rows, gives the new relation. No text is generated.

    Readings, as CoCo's code is not released:

    - Its abstract names centrality and the shortest path. We take the path, as CCG describes CoCo; the words that CCG's release has
      from both graphs together (`mixed_terms`, the entities' neighbours) are not read.
    - "Topologically similar" means as many words on the paths, each with the same tag, dependency and graphs. CCG's Table 5 shows
      such substitutions, word by word. With parts of speech alone twice as many would pass the filter, such as "the results are
      consists of the logbook".
    - Without a parser of semantic dependencies, predicates and arguments are derived from the dependency parse. In spaCy's trees a
      preposition is on the path; in Universal Dependencies, Stanza's, it is on that of the semantic graph alone.

    Args:
        consistency: filter by the base model; False keeps every candidate.
        verifier: another R-BERT that filters instead.

    Its other settings are those of its stages.

    >>> [stage.name for stage in CoCo.preset("offline").stages]
    ['find_paths', 'propose_relations', 'substitute_terms', 'check_relation', 'judge_candidates']
    """

    task = "relation"
    chain = (FindPaths, ProposeRelations, SubstituteTerms, CONSISTENT, JudgeCandidates)
    defaults: ClassVar = DEFAULTS
    presets: ClassVar = {
        "paper": {},
        "offline": {"parser": Parser(backend="spacy", model=Model("offline:spacy")), **OFFLINE_BASE},
    }
    citation = """@inproceedings{zhang-etal-2023-towards,
  title = {Towards Model Robustness: Generating Contextual Counterfactuals for Entities in Relation Extraction},
  author = {Zhang, Mi and Qian, Tieyun and Zhang, Ting and Miao, Xin},
  booktitle = {Proceedings of the ACM Web Conference},
  year = {2023}
}"""
