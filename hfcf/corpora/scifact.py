"""SciFact: scientific claims and the sentences of abstracts that decide them.

- Labels: a claim without evidence is NOT ENOUGH INFO; copies write REFUTE for CONTRADICT.
- Files, in either of two forms:
  - the release, `claims_{train,dev,test}.jsonl` (test is blind: claims only) with `corpus.jsonl` next to them for the abstracts, in
    data_dir or in its folder data/. Corpora of the same layout (Citation-Integrity) also load; split="test" loads their labelled
    test split.
  - the RTE form with text (COVID-Fact's copy): `RTE-scifact/{train,dev}.tsv` (index, sentence1, sentence2, entailment; quoted as
    CSV). Or, line by line, `RTE-scifact/processed/{train,dev}.{raw.input0,raw.input1,label}`. It has a row for each claim and
    abstract, with SUPPORTS and REFUTES only. Its evidence is the rationale sentences as one text: one piece without a title, and no
    `rationales`.
- Option `evidence`: "abstract" (the default) gives every sentence of the abstracts that decide the claim. "rationale" gives only
  the sentences that decide it. (RACE evaluates SUPPORTS and REFUTES rows; its paper does not say which evidence it uses.) A NOT
  ENOUGH INFO row has the abstracts that its claim cites, whole.
- Group: rows that share a claim or an abstract (RTE form: a claim or the evidence text).
- Extra column: `rationales`, human: the sentences that decide the claim, of all annotated sets together.

One row (RTE form): claim "1 in 5 million in UK have abnormal PrP positivity.", evidence [title "", text "RESULTS Of the 32,441
appendix samples 16 were positive for abnormal PrP, …"], label REFUTES.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pydantic import StrictInt
from typing_extensions import TypedDict

from hfcf.core.schema import RATIONALES
from hfcf.corpora.base import (
    BadRow,
    Corpus,
    CorpusConfig,
    CorpusError,
    CorpusInfo,
    Fields,
    choice,
    split_files,
)
from hfcf.corpora.base.values import whole_pieces
from hfcf.corpora.fever import RTE_LABELS, rte_lines, rte_resources
from hfcf.corpora.formats.read import Record, csv_rows, json_lines, split_records
from hfcf.tasks.verification import NOT_ENOUGH_INFO, REFUTES, SUPPORTS

_RTE = (("train", "train"), ("validation", "dev"))
_TABLES = split_files("RTE-scifact/{}.tsv", "{}.tsv", names=_RTE)
_LINES = split_files("RTE-scifact/processed/{}.raw.input1", "processed/{}.raw.input1", "{}.raw.input1", names=_RTE)


class _Rationale(TypedDict):
    sentences: list[StrictInt]
    label: str


_CLAIM = Fields(id=Any, claim=str, evidence=dict[str, list[_Rationale]], cited_doc_ids=list[Any])
_DOCUMENT = Fields(doc_id=Any, title=str, abstract=[str])
_PAIR = Fields(index=str, sentence1=str, sentence2=str, entailment=str)


@dataclass
class SciFactConfig(CorpusConfig):
    """SciFact's own option."""

    evidence: str = choice("abstract", "rationale")


class SciFact(Corpus):
    """Release files and copies with text → rows."""

    BUILDER_CONFIG_CLASS = SciFactConfig
    INFO = CorpusInfo(
        name="scifact",
        title="SciFact: verifying scientific claims",
        paper="Wadden et al. (EMNLP 2020), Fact or Fiction: Verifying Scientific Claims",
        citation="""@inproceedings{wadden-etal-2020-fact,
  title = {Fact or Fiction: Verifying Scientific Claims},
  author = {Wadden, David and Lin, Shanchuan and Lo, Kyle and Wang, Lucy Lu and van Zuylen, Madeleine and Cohan, Arman
    and Hajishirzi, Hannaneh},
  booktitle = {Proceedings of EMNLP 2020},
  year = {2020}
}""",
        licence="cc-by-4.0",  # of the claims; abstracts ODC-By
        hub_id="allenai/scifact",
        splits={"train": 809, "validation": 300, "test": 300},
        labels={"SUPPORT": SUPPORTS, "CONTRADICT": REFUTES, "REFUTE": REFUTES, **RTE_LABELS},
        release="github.com/allenai/scifact",
        layout="`claims_{train,dev,test}.jsonl` and `corpus.jsonl`; copies of that shape; the RTE form",
        notes='`evidence="abstract"` or `"rationale"`; human `rationales`',
    )
    FILES = (*split_files("claims_{}.jsonl", "data/claims_{}.jsonl"), *_TABLES, *_LINES)
    ONE_FORM = True
    EXTRA: ClassVar = {"rationales": RATIONALES}
    OPTIONS: ClassVar = {"evidence": "abstract (default): every sentence; rationale: only the sentences that decide the claim"}
    BLIND = ("test",)
    GROUPS_BY_KEYS = True

    @classmethod
    def find_resources(cls, data_dir: Path, options: Mapping[str, Any]) -> dict[str, Path]:
        documents = [path for file in ("corpus.jsonl", "data/corpus.jsonl") if (path := data_dir / file).is_file()]
        return ({"corpus": documents[0]} if documents else {}) | rte_resources(data_dir, _LINES)

    def start(self, files: Sequence[Path]) -> None:
        self.abstracts: dict[str, dict[str, Any]] = {}
        release = [path for path in files if path.suffix == ".jsonl"]
        if not release:
            return
        for path in release:
            first = next(json_lines(path), None)
            if first is not None and {"id", "claim"} <= first.value.keys() and "evidence" not in first.value:
                raise CorpusError(f"{path}: this is SciFact's blind test split, claims without labels or evidence")
        if "corpus" not in self.config.resources:
            raise CorpusError(
                f"{release[0]}: the release names evidence by document and sentence number: put its corpus.jsonl next to it, "
                "or use the RTE form with text (RTE-scifact/train.tsv …)"
            )
        self.abstracts = _abstracts(Path(self.config.resources["corpus"]))

    def records(self, path: Path) -> Iterator[Record]:
        if path.suffix == ".jsonl":
            yield from json_lines(path)
        elif path.suffix == ".tsv":
            yield from _table(path)
        else:
            yield from rte_lines(path)

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        if "text" in record:
            row |= {"id": record["id"], "claim": record["claim"], "label": record["label"]}
            row["evidence"] = [{"title": "", "text": record["text"].strip()}]
            row["keys"] = [("claim", record["claim"]), ("evidence", record["text"].strip())]
            row["label"] = self.label(record["label"])
            return
        row |= {name: record.get(name) for name in ("id", "claim")}
        _CLAIM.check(record)
        marked, labels = _evidence(record)
        if len(labels) > 1:
            raise BadRow(f"its evidence has several labels: {', '.join(map(repr, labels))}")
        row["label"] = labels[0] if labels else NOT_ENOUGH_INFO
        documents = list(marked) if labels else [str(name) for name in record["cited_doc_ids"]]
        row["keys"] = [("claim", record["claim"].strip()), *(("document", name) for name in documents)]
        if not documents:
            raise BadRow("it has no evidence and cites no document")
        decisive: list[int] = []
        for name in documents:
            for i, sentence in enumerate(self._sentences(name, marked.get(name, set()))):
                if i in marked.get(name, ()):
                    decisive.append(len(row["evidence"]))
                elif labels and self.config.evidence == "rationale":
                    continue
                row["evidence"].append({"title": self.abstracts[name]["title"], "text": sentence})
        row["rationales"] = whole_pieces(row["evidence"], decisive)
        if labels:
            row["label"] = self.label(labels[0])

    def _sentences(self, name: str, marked: set[int]) -> list[str]:
        if name not in self.abstracts:
            raise BadRow(f"the document {name} is not in corpus.jsonl")
        sentences = self.abstracts[name]["abstract"]
        if beyond := [i for i in sorted(marked) if not 0 <= i < len(sentences)]:
            raise BadRow(f"the abstract of document {name} has {len(sentences)} sentences, none of number {beyond[0]}")
        return list(sentences)


def _evidence(record: Mapping[str, Any]) -> tuple[dict[str, set[int]], list[Any]]:
    """Return the rationale sentences of each document, and the labels."""
    marked = {name: {i for rationale in sets for i in rationale["sentences"]} for name, sets in record["evidence"].items() if sets}
    return marked, list(dict.fromkeys(rationale["label"] for sets in record["evidence"].values() for rationale in sets))


def _table(path: Path) -> Iterator[Record]:
    return split_records(csv_rows(path, delimiter="\t"), lambda line: [_pair(_PAIR.check(line), path.stem)])


def _pair(line: Mapping[str, str], split: str) -> dict[str, str]:
    return {"id": f"{split}-{line['index']}", "claim": line["sentence2"], "text": line["sentence1"], "label": line["entailment"]}


def _abstracts(path: Path) -> dict[str, dict[str, Any]]:
    documents = {}
    for record in json_lines(path):
        try:
            if record.unreadable:
                raise BadRow(record.unreadable)
            document = _DOCUMENT.check(record.value)
        except BadRow as error:
            raise CorpusError(f"{path}, {record.place}: {error}") from None
        sentences = [sentence.strip() for sentence in document["abstract"]]
        documents[str(document["doc_id"])] = {"title": document["title"].strip(), "abstract": sentences}
    return documents


BUILDER = SciFact
