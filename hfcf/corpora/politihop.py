"""PolitiHop: political claims with the chains of PolitiFact sentences that decide them.

- Rows: one for each evidence chain (238, 59 and 200 claims). Half-true rows are left out and counted, as RACE leaves them out.
- Files, in either of two forms:
  - the release, `data/politihop_{train,valid,test}.tsv`: tab-separated and quoted as CSV. `ruling` (the article's sentences) and
    `annotated_evidence` ({chain: sentence numbers}, some joined as "13,14") are JSON in a cell.
  - Transformer-XH's graphs, `Transformer-XH/data/politihop_{train,valid,test}_xh.json` (JSON lines). They have tokenised sentences
    as nodes, with label 1 in the chain, and are read if there is no .tsv. `data_files` names its variants, `…_xh_all.json` (every
    sentence) and `…_xh_adv.json` (named entities exchanged).
- Option `evidence`: "chain" (the default) gives the annotated sentences in the chain's order. RACE evaluates in this way: its 119
  rows are the 141 rows without the 22 half-true rows. "ruling" gives every sentence of the article that has letters or digits, or
  every such node, in the article's order. A row has one chain in the release; several chains give their union.
- Group: the claim; its rows differ in their chain only.
- Extra columns: `author` ("Speaker: …", who made the claim; the pieces have no titles) and `rationales`, human: the sentences of
  the chain.

One row: claim "“Chinese people eat human baby soup to improve health.”", evidence [title "", text "The photos with the post are
from Chinese performance artist Zhu Yu."] and two more, label REFUTES, author "Speaker: Bloggers".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Json

from hfcf.core.schema import RATIONALES, TEXT
from hfcf.corpora.base import BadRow, Corpus, CorpusConfig, CorpusInfo, Fields, choice, split_files
from hfcf.corpora.base.values import says_nothing, whole_pieces
from hfcf.corpora.formats.read import Record, csv_rows, json_lines
from hfcf.tasks.verification import REFUTES, SUPPORTS

_FOLDERS = ("Transformer-XH/data/", "data/", "")
_GRAPHS = [f"{folder}politihop_{{}}_{form}.json" for form in ("xh", "xh_all", "xh_adv") for folder in _FOLDERS]
_NAMES = (("train", "train"), ("validation", "valid"), ("test", "test"))
_GRAPH = Fields(
    qid=Any, question=str, label=str, node=[{"node_id": int, "name": str, "context": [str], "sent_num": int, "label": int}]
)
_ARTICLE = Fields(
    article_id=str, statement=str, author=str, annotated_label=str, ruling=Json[list[str]],
    annotated_evidence=Json[dict[str, list[Any]]],
)  # fmt: skip


@dataclass
class PolitiHopConfig(CorpusConfig):
    """PolitiHop's own option."""

    evidence: str = choice("chain", "ruling")


class PolitiHop(Corpus):
    """Release files and graphs → rows."""

    BUILDER_CONFIG_CLASS = PolitiHopConfig
    INFO = CorpusInfo(
        name="politihop",
        title="PolitiHop: multi-hop fact checking of political claims",
        paper="Ostrowski et al. (IJCAI 2021), Multi-Hop Fact Checking of Political Claims",
        citation="""@inproceedings{ostrowski-etal-2021-multi,
  title = {Multi-Hop Fact Checking of Political Claims},
  author = {Ostrowski, Wojciech and Arora, Arnav and Atanasova, Pepa and Augenstein, Isabelle},
  booktitle = {Proceedings of IJCAI 2021},
  year = {2021}
}""",
        licence="unknown",  # not stated; text of PolitiFact
        splits={"train": 592, "validation": 141, "test": 200},
        labels={"true": SUPPORTS, "false": REFUTES},
        release="github.com/copenlu/politihop",
        layout="`data/politihop_{train,valid,test}.tsv` or Transformer-XH's graphs",
        notes='half-true left out; `evidence="chain"` or `"ruling"`; human `rationales`',
    )
    FILES = split_files("data/politihop_{}.tsv", "politihop_{}.tsv", *_GRAPHS, names=_NAMES)
    ONE_FORM = True
    GROUPS_BY_KEYS = True
    EXTRA: ClassVar = {"author": TEXT, "rationales": RATIONALES}
    OPTIONS: ClassVar = {"evidence": "chain (default): the annotated sentences; ruling: every sentence of the article"}

    def records(self, path: Path) -> Iterator[Record]:
        return csv_rows(path, delimiter="\t") if path.suffix == ".tsv" else json_lines(path)

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        row["id"] = record.get("qid", record.get("article_id"))
        if "qid" in record:
            _GRAPH.check(record)
            row |= {"claim": record["question"], "label": record["label"]}
        else:
            record = _ARTICLE.check(record)
            row |= {"claim": record["statement"], "label": record["annotated_label"]}
        if row["label"] == "half-true":
            self.leave_out(row, "half-true rows were left out")
            return
        row["keys"] = [("claim", str(row["claim"]).strip())]
        if "qid" in record:
            row["author"], sentences, chain = _graph(record)
        else:
            row["author"], sentences, chain = record["author"], record["ruling"], _chain(record["annotated_evidence"])
            if beyond := [i for i in chain if i >= len(sentences)]:
                raise BadRow(f"the ruling has {len(sentences)} sentences, none of number {beyond[0]}")
        if not chain:
            raise BadRow("its evidence chain is empty")
        shown = chain
        if self.config.evidence == "ruling":
            shown = [i for i, sentence in enumerate(sentences) if i in chain or not says_nothing(sentence)]
        row["evidence"] = [{"title": "", "text": sentences[i]} for i in shown]
        row["rationales"] = whole_pieces(row["evidence"], [n for n, i in enumerate(shown) if i in chain])
        row["label"] = self.label(row["label"])


def _chain(chains: Mapping[str, Sequence[Any]]) -> list[int]:
    """Return the sentence numbers of every chain, once each, in order."""
    numbers = [number.strip() for chain in chains.values() for entry in chain for number in str(entry).split(",")]
    if wrong := [number for number in numbers if not number.isdecimal()]:
        raise BadRow(f"annotated_evidence has {wrong[0]!r} in the place of a sentence number")
    return list(dict.fromkeys(map(int, numbers)))


def _graph(record: dict[str, Any]) -> tuple[str, list[str], list[int]]:
    """Return the author, the nodes' sentences in the article's order, and the places of the chain among them."""
    if not record["node"]:
        raise BadRow("'node' has no nodes")
    # The files list nodes in random order; the chain's have the lowest ids, in its order.
    nodes = sorted(record["node"], key=lambda node: (node["sent_num"], node["node_id"]))
    chain = sorted((i for i, node in enumerate(nodes) if node["label"] == 1), key=lambda i: nodes[i]["node_id"])
    return nodes[0]["name"], [" ".join(node["context"]) for node in nodes], chain


BUILDER = PolitiHop
