"""CoCo for relation extraction (Zhang et al. 2023), as a baseline of CCG: words on dependency paths, replaced by another row's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
from hfcf.systems._shared.judge import JudgeCandidates
from hfcf.systems.baselines._shared.relation_editing import (
    CONSISTENT,
    DEFAULTS,
    OFFLINE_BASE,
    ProposeRelations,
    labelled_rows,
    read_fitted,
)
from hfcf.systems.ccg.indicator import COLUMNS
from hfcf.tasks.relation import CANDIDATES, OTHER, TASK, candidate, context, overlap, spans

Edges = set[tuple[int, int]]
Span = tuple[int, int]

_EMPTY = ("det", "punct", "aux", "auxpass", "mark", "expl", "cc", "preconj", "cop", "predet")
"""Dependencies of words that are neither a predicate nor an argument."""
_SUBJECT = ("nsubj", "nsubjpass", "csubj", "csubjpass")
_RELATIVE = ("WDT", "WP", "WP$", "WRB")
_BY = "by"
STANZA = Parser()


@dataclass(frozen=True, kw_only=True)
class FindPaths(Stage):
    """Find the words on the shortest paths between a row's entities in its graphs. One is syntactic, one semantic.

    Input columns: `tokens`, `head`, `tail`, `label`; `syntactic_terms` and `semantic_terms`, which a corpus may have. Output
    columns: `causal_terms`, the words on a path, sorted; and `term_places`. A place has the Penn tag of a term, its dependency
    and the graphs whose path it is on: "VBN acl both". Rows of the label "Other", rows whose entities overlap, and rows that have
    no word on a path are rejected.

    CCG's release of SemEval has the paths that its authors' parsers found (`hfcf.load("ccg_semeval", …)` from the .json); they are
    taken as they are. Else the syntactic graph is the dependency tree, and the semantic graph a substitute (`semantic_edges`).

    Args:
        parser: the dependency parser.

    >>> row = {"id": "1", "tokens": "shoes made from leather".split(), "label": "x", "status": None}
    >>> row |= {"head": {"start": 0, "end": 1, "type": None}, "tail": {"start": 3, "end": 4, "type": None}}
    >>> row |= dict.fromkeys(["causal_terms", "term_places"])
    >>> FindPaths(parser=Parser(backend="spacy", model=Model("offline:spacy")))(row)["term_places"]
    ['VBN acl both', 'IN prep both']
    """

    VERSION: ClassVar[str] = "2"
    inputs: ClassVar = {**TASK.columns, "label": schema.TEXT}
    optional: ClassVar = {"syntactic_terms": List(schema.INT), "semantic_terms": List(schema.INT)}
    outputs: ClassVar = {"causal_terms": List(schema.INT), "term_places": List(schema.TEXT)}

    parser: Parser = STANZA

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        reasons = ["the relation is Other" if row["label"] == OTHER else overlap(row) for row in rows]
        parses = iter(self.parser.run([row["tokens"] for row, reason in zip(rows, reasons, strict=True) if not reason]))
        return [Reject(reason) if reason else _mark_paths(row, next(parses)) for row, reason in zip(rows, reasons, strict=True)]


@dataclass(frozen=True, kw_only=True)
class SubstituteTerms(Stage):
    """Replace a row's causal terms by the corresponding words of an instance of each new relation.

    Input columns: `tokens`, `head`, `tail`, `label`, `causal_terms`, `term_places`, `new_relations`. Output column: `candidates`,
    one for each new relation. An instance corresponds if its paths have as many words, each, in the order of the sentence, with the
    same tag, dependency and graphs. The instance with the most frequent words is taken, then the first by its words. Where no
    instance corresponds, or all have the row's own words, the candidate is rejected.

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
        words = [row["tokens"][i] for i in row["causal_terms"]]
        corresponding = [instance for instance in instances if instance["places"] == row["term_places"]]
        fitting = [instance for instance in corresponding if " ".join(instance["words"]).lower() != " ".join(words).lower()]
        if not fitting:
            reason = "no instance of the new relation has other words in the same places of its graphs"
            return reject(candidate(row, relation, []), self.name, reason)
        best = min(fitting, key=lambda instance: (-instance["count"], instance["words"]))
        edited = [
            {"field": "tokens", "piece": -1, "start": i, "end": i + 1, "before": old, "after": new}
            for i, old, new in zip(row["causal_terms"], words, best["words"], strict=True)
            if old != new
        ]
        return candidate(row, relation, edited)


class CoCo(System):
    """Replace the words between two entities in dependency graphs by the corresponding words of another relation.

    It is "Towards Model Robustness: Generating Contextual Counterfactuals for Entities in Relation Extraction" (WWW 2023) as
    CCG compares with it (sections 1, 4.4, A.2). Words on the shortest dependency path are causal, and every other relation is
    tried. A candidate stays if the base model, CCG's indicator for the same rows, gives it the new relation. No text is
    generated.

    Readings, as CoCo's code is not released:

    - Its abstract names centrality and the shortest path. We take the path, as CCG describes CoCo; `mixed_terms` of CCG's release
      are not read.
    - "Topologically similar" means as many words on the paths, each with the same tag, dependency and graphs, as in CCG's Table 5.
    - Without a parser of semantic dependencies, predicates and arguments are derived from the dependency parse. In spaCy's trees a
      preposition is on the path; in Universal Dependencies, Stanza's, it is on that of the semantic graph alone.

    Args:
        consistency: filter by the base model; False keeps every candidate.
        verifier: another R-BERT that filters instead.

    Its stages define its other settings.

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


def _mark_paths(row: Mapping[str, Any], parse: Mapping[str, Any]) -> dict[str, Any] | Reject:
    words = set(context(row))
    graphs = {"syntactic": syntactic_edges(parse), "semantic": semantic_edges(parse, row["tokens"])}
    paths = {}
    for name, edges in graphs.items():
        terms_of_corpus = row.get(f"{name}_terms")
        group = shortest_path(edges, *spans(row)) if terms_of_corpus is None else terms_of_corpus
        paths[name] = sorted(words & set(group or []))
    terms = sorted({*paths["syntactic"], *paths["semantic"]})
    if not terms:
        return Reject("no word is on a path between the entities")
    both = {i: [name for name in graphs if i in paths[name]] for i in terms}
    places = [f"{parse['tags'][i]} {parse['deps'][i]} {both[i][0] if len(both[i]) == 1 else 'both'}" for i in terms]
    return {"causal_terms": terms, "term_places": places}


def syntactic_edges(parse: Mapping[str, Any]) -> Edges:
    """List the edges of a dependency tree, an answer of `hfcf.engines.parser.Parser`."""
    return {_edge(i, head) for i, head in enumerate(parse["heads"]) if head >= 0}


def semantic_edges(parse: Mapping[str, Any], tokens: Sequence[str]) -> Edges:
    """Derive the edges of a predicate–argument graph from a dependency parse: our substitute for a semantic parser's.

    As in the graphs of semantic dependency parsers (DM), determiners, auxiliaries, conjunctions and relative pronouns have no
    edges. A form of "be" has none unless it joins two nouns; its subject is joined with what is said of it. A preposition is a
    predicate, joined with its governor and its object, but "by" of a passive is not. A verb without a subject gets that of the verb
    that governs it or is coordinated with it. Names of dependencies may be ClearNLP's or Universal Dependencies'.

    By spaCy's parses, 81 % of 651 sentences of CCG's SemEval (the 10 % sample) have the path that the release has by a semantic
    parser.
    """
    heads, deps = list(parse["heads"]), [dep.split(":")[0] for dep in parse["deps"]]
    tags, lemmas = parse["tags"], parse["lemmas"]
    subjects = {heads[i]: i for i, dep in reversed(list(enumerate(deps))) if dep in _SUBJECT and tags[i] not in _RELATIVE}
    _share_subjects(heads, deps, tags, subjects)
    # What replaces a word in the graph: for "be" its subject or, in a relative clause, the noun; for a passive's "by" its verb.
    replaced_by: dict[int, int] = {}
    equations = {heads[i] for i, dep in enumerate(deps) if dep == "attr" and tags[i].startswith("NN")}
    for i, (head, dep) in enumerate(zip(heads, deps, strict=True)):
        if lemmas[i] == "be" and dep not in ("aux", "auxpass", "cop") and i not in equations:
            replaced_by[i] = subjects.get(i, head if dep == "relcl" else -1)
        elif dep == "agent" or (dep in ("prep", "case") and tokens[i].lower() == _BY and _passive(i, heads, deps, tags)):
            replaced_by[i] = head
    cased = {heads[i]: i for i, dep in enumerate(deps) if dep == "case" and tags[i] in ("IN", "TO") and i not in replaced_by}
    edges: Edges = set()

    def join(i: int, j: int) -> None:
        for _ in heads:  # what replaces a word may itself be replaced
            i, j = replaced_by.get(i, i), replaced_by.get(j, j)
        if i >= 0 and j >= 0 and i != j:
            edges.add(_edge(i, j))

    for i, (head, dep) in enumerate(zip(heads, deps, strict=True)):
        if head < 0 or dep in _EMPTY or tags[i] in (*_RELATIVE, "POS"):
            continue
        if dep == "case":
            join(i, head)
        elif i in cased:
            join(head, cased[i])
        elif dep in _SUBJECT and head in cased:
            join(i, cased[head])  # Universal Dependencies' head of "standards are under discussion" is the last word
        else:
            join(i, head)
    for verb, subject in subjects.items():
        if deps[subject] not in _EMPTY and heads[subject] != verb:
            join(verb, subject)
    return edges


def _share_subjects(heads: Sequence[int], deps: Sequence[str], tags: Sequence[str], subjects: dict[int, int]) -> None:
    """Give verbs without a subject that of the verb that governs them, or its object where it has an object ("told him to go")."""
    objects = {heads[i]: i for i, dep in enumerate(deps) if dep in ("dobj", "obj")}
    for i, dep in enumerate(deps):
        if i in subjects or not tags[i].startswith("VB") or dep not in ("xcomp", "conj"):
            continue
        candidates = {**subjects, **objects} if dep == "xcomp" else subjects
        if heads[i] in candidates:
            subjects[i] = candidates[heads[i]]


def _passive(i: int, heads: Sequence[int], deps: Sequence[str], tags: Sequence[str]) -> bool:
    """Say whether a "by" depends on a past participle, directly or through its noun."""
    above = heads[i] if deps[i] == "prep" else heads[heads[i]] if heads[i] >= 0 else -1
    return above >= 0 and tags[above] == "VBN"


def shortest_path(edges: Iterable[tuple[int, int]], head: Span, tail: Span) -> list[int] | None:
    """Find the words on a shortest path between the entities, sorted, without the entities'; None if there is none.

    A path starts and ends at any word of an entity. The first path in the order of the sentence counts if several are equally
    short.
    """
    near: dict[int, list[int]] = {}
    for i, j in sorted(edges):
        near.setdefault(i, []).append(j)
        near.setdefault(j, []).append(i)
    goal, entities = set(range(*tail)), {*range(*head), *range(*tail)}
    before: dict[int, int] = dict.fromkeys(range(*head), -1)
    reached = list(before)
    while reached:
        following: list[int] = []
        for place in reached:
            for other in sorted(near.get(place, [])):
                if other not in before:
                    before[other] = place
                    following.append(other)
        if results := sorted(goal & set(following)):
            words, place = [], before[results[0]]
            while place >= 0:
                words.append(place)
                place = before[place]
            return sorted(set(words) - entities)
        reached = following
    return None


def _edge(i: int, j: int) -> tuple[int, int]:
    return min(i, j), max(i, j)
