"""Fill evidence up to a fixed number of pieces with retrieved distractors (RACE, appendix C: five for HoVer)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from datasets import Dataset, Features, List
from datasets.fingerprint import Hasher

from hfcf.core.schema import BOOL
from hfcf.core.task import find_problem
from hfcf.corpora.passages import load_passages
from hfcf.text.normalise import normalise

GOLD = List(BOOL)


def fill_evidence(ds: Dataset, collection: Sequence[Mapping[str, str]], *, pieces: int = 5, seed: int = 13) -> Dataset:
    """Add the best pieces of a collection for each claim, by BM25, until a row has `pieces`.

    Deviation: the paper uses the trained retriever of Khattab et al. 2021. BM25 needs no training, and its hits share words with
    the claim, so they are hard distractors.

    Args:
        ds: verification rows whose evidence is gold.
        collection: pieces as `{title, text}`.
        pieces: how many a row gets; a row with more keeps them all.
        seed: for the places of the distractors among the gold pieces, which keep their order. If distractors came last, a model
            would learn their place.

    Returns: The rows with their evidence, and a column `gold` that marks their original pieces; `rationales` follow their pieces.

    >>> ds = Dataset.from_list([{"claim": "Rome is old", "evidence": [{"title": "", "text": "Rome is very old."}]}])
    >>> ds = fill_evidence(ds, [{"title": "", "text": "Old Rome fell."}, {"title": "", "text": "Cats purr."}], pieces=2)
    >>> [(piece["text"], gold) for piece, gold in zip(ds[0]["evidence"], ds[0]["gold"])]
    [('Rome is very old.', True), ('Old Rome fell.', False)]
    """
    import bm25s

    index = bm25s.BM25()
    corpus = bm25s.tokenize([f"{piece['title']} {piece['text']}" for piece in collection], show_progress=False)
    index.index(corpus, show_progress=False)

    def fill_row(row: dict[str, Any]) -> dict[str, Any]:
        evidence = list(row["evidence"] or [])
        gold = [True] * len(evidence)
        if row.get("status") or find_problem({"claim": row["claim"], "evidence": evidence}):
            return {"evidence": row["evidence"], "gold": gold}  # a bad row stays as it is, for the stages to reject
        texts = {normalise(piece["text"]) for piece in evidence}
        # The missing pieces, and as many again as hits may be gold themselves.
        n = min(len(collection), 2 * pieces)
        query = bm25s.tokenize([row["claim"]], show_progress=False)
        hits = index.retrieve(query, k=n, show_progress=False)
        for hit, score in zip(hits.documents[0], hits.scores[0], strict=True):
            if len(evidence) >= pieces or score <= 0:
                break
            piece = collection[int(hit)]
            if normalise(piece["text"]) not in texts:
                texts.add(normalise(piece["text"]))
                evidence.append({"title": piece["title"], "text": piece["text"]})
                gold.append(False)
        return _mixed(row, evidence, gold, Random(f"{seed}:distractors:{row.get('id', row['claim'])}"))

    # `map` would hash the index at every call; the collection's hash represents it.
    key = Hasher.hash((ds._fingerprint, list(collection), pieces, seed, "mixed"))
    return ds.map(fill_row, features=Features({**ds.features, "gold": GOLD}), desc="distractors", new_fingerprint=key)


def _mixed(row: Mapping[str, Any], evidence: list[Any], gold: list[bool], rng: Random) -> dict[str, Any]:
    """Put the distractors, which are last, anywhere among the gold pieces, whose order stays."""
    places = sorted(rng.sample(range(len(gold)), sum(gold)))  # where the gold pieces go
    rest = iter(range(sum(gold), len(gold)))
    order = [places.index(i) if i in places else next(rest) for i in range(len(gold))]
    answer: dict[str, Any] = {"evidence": [evidence[i] for i in order], "gold": [gold[i] for i in order]}
    if row.get("rationales"):
        answer["rationales"] = [{**span, "piece": order.index(span["piece"])} for span in row["rationales"]]
    return answer


def from_recipe(ds: Dataset, settings: Mapping[str, Any] | None) -> Dataset:
    """Fill the evidence as a recipe's `distractors: {collection: FILE, pieces: 5}` says; without it, return the rows unchanged."""
    if not settings:
        return ds
    collection = [{"title": row["title"], "text": row["text"]} for row in load_passages(data_files=settings["collection"])]
    return fill_evidence(ds, collection, pieces=settings.get("pieces", 5))
