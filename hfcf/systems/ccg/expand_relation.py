"""Find other relations that the two entities of a row may have, by the RelationNet of a training set (CCG, section 3.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from datasets import Dataset, IterableDataset, List

from hfcf.core import schema
from hfcf.core.artifacts import save_artifact
from hfcf.core.settings import Share
from hfcf.core.stage import Reject, Stage
from hfcf.engines.wordnet import wordnet
from hfcf.systems.ccg.indicator import COLUMNS, training_rows
from hfcf.systems.ccg.relationnet import RelationNet, Triple, relation_net
from hfcf.systems.ccg.terms import head_word
from hfcf.tasks.relation import OTHER, TASK

RANDOM = "random"


def triple(row: Mapping[str, Any]) -> Triple:
    """Return a relation row's head words and its label."""
    return Triple(head_word(row["tokens"], row["head"]), head_word(row["tokens"], row["tail"]), row["label"])


def fit_relation_net(rows: Iterable[Mapping[str, Any]]) -> RelationNet:
    """Collect the RelationNet of training rows; rows of the label "Other" do not count."""
    return RelationNet.collect(triple(row) for row in rows if row["label"] != OTHER)


@dataclass(frozen=True, kw_only=True)
class ExpandRelation(Stage):
    """Find other relations that a row's entities may have, by their hypernyms (section 3.3, Algorithm 1).

    Input columns: `tokens`, `head`, `tail`, `label`. Output column: `new_relations`, all of them, ranked; `EditRelation` applies
    the paper's K.

    The two head words' hypernyms are looked up in the training set's RelationNet, which it learns, nearest first;
    `RelationNet.expand_all` has the rules. Rows of the label "Other" are rejected. So are rows with a head word without a noun in
    WordNet, and rows whose words have no other relation within the threshold.

    Args:
        ratio: H, the share of the way up to the root (section 5.8).
        order: which relation comes first: "lca", "pooled" or "random". "lca" is the paper's, from the bottom up. "pooled" is the
            ablation w/o LCA (section 5.4), which the paper does not describe. "pooled" here ranks the relations of all hops up to
            the threshold by their count alone. "random" is the ablation w/o WBR: all other relations of the training set in random
            order, also for words that WordNet doesn't have.

    >>> row = {"id": "1", "tokens": "eggs in buckets".split(), "label": "in", "status": None, "new_relations": None}
    >>> row |= {"head": {"start": 0, "end": 1, "type": None}, "tail": {"start": 2, "end": 3, "type": None}}
    >>> rows = Dataset.from_list([row, {**row, "id": "2", "label": "made of"}])
    >>> ExpandRelation().fit(rows)(row)["new_relations"]
    ['made of']
    """

    VERSION: ClassVar[str] = "2"
    inputs: ClassVar = {**TASK.columns, "label": schema.TEXT}
    outputs: ClassVar = {"new_relations": List(schema.TEXT)}

    ratio: Share = 0.8
    order: Literal["lca", "pooled", "random"] = "lca"

    def check_available(self) -> None:
        """Raise if WordNet, which RelationNet needs, is not installed."""
        wordnet()

    @property
    def fit_inputs(self) -> tuple[str, ...]:
        return COLUMNS

    def learn(self, ds: Dataset | IterableDataset) -> str:
        return save_artifact({"relation_net": fit_relation_net(training_rows(ds)).content})

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        net, requests = relation_net(self.fitted or ""), [triple(row) for row in rows]
        if self.order == RANDOM:
            relations_of_rows = [self._shuffled(net, row) for row in rows]
        else:
            relations_of_rows = net.expand_all(requests, self.ratio, self.order)
        results: list[dict[str, Any] | Reject] = []
        for row, words, relations in zip(rows, requests, relations_of_rows, strict=True):
            reason = self._trouble(row, words, relations)
            results.append(Reject(reason) if reason else {"new_relations": relations})
        return results

    def _trouble(self, row: Mapping[str, Any], words: Triple, relations: list[str]) -> str | None:
        if row["label"] == OTHER:
            return f"the relation is {OTHER}"
        if relations:
            return None
        if self.order == RANDOM:
            return "the training set has no other relation"
        for name, word in (("head", words.head), ("tail", words.tail)):
            if wordnet().noun(word) is None:
                return f"WordNet knows no noun {word or row['tokens'][row[name]['end'] - 1]!r}, the {name} entity's head word"
        return f"no other relation of {words.head!r} and {words.tail!r} is known within the threshold {self.ratio}"

    def _shuffled(self, net: RelationNet, row: Mapping[str, Any]) -> list[str]:
        others = [relation for relation in net.relations if relation != row["label"]]
        return self.random(row["id"]).sample(others, len(others))
