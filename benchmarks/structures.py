"""How fast are 1,000 predicted argument structures compared with gold ones, beside a plain loop over pairs of edges?

Structures are random trees of sentences as long as CheckWhy's (20 words), seeded. A prediction keeps most edges of its gold
structure, draws some anew, and takes some premises from distractors: about half of its edges are right, as in the paper's Task 3.
Both sides have the same vectors of the same encoder, one thread, and seconds of the processor, round by round. The encoder's time
is its own: texts to vectors. The rest begins with vectors and ends with the structure similarity of each pair.

The plain loop takes each pair of edges alone: cosines, the nearest of each token, the means, F1; then the best matching. It is
written as BERTScore is defined, for unit vectors, and for these in NumPy, whose calls cost less. It gets the vectors of each
different edge for nothing. "Products alone" multiplies the matrices of vectors as Matching does, one product for all predictions of
a gold structure, and nothing else: no way to write this in float32 can take less, so loop ÷ products is the most that can be had.
"One prediction" has 1,000 different gold structures, "five predictions" 200 of them, as when methods or samples are compared.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch
from common import Clock, patched, read_options, show
from scipy.optimize import linear_sum_assignment
from threadpoolctl import threadpool_limits

Edges = tuple[str, ...]
Pair = tuple[Edges, Edges]


def make_pairs(number: int, each: int, seed: int = 0) -> list[Pair]:
    """Return the edges of gold structures, each with those of `each` predictions."""
    rng = random.Random(seed)
    # Real words, so that a sentence has as many tokens as one of a corpus.
    vocabulary = [word for line in (__doc__ or "").split("\n") for word in line.split() if word.isalpha()]
    pairs: list[Pair] = []
    for _ in range(number // each):
        sentences = [" ".join(rng.choices(vocabulary, k=rng.randint(14, 26))) + "." for _ in range(14)]
        useful, distractors, claim = sentences[:5], sentences[5:13], sentences[13]
        gold = make_edges([*useful, claim], rng)
        pairs += [(gold, change_edges(gold, distractors, [*useful, claim], rng)) for _ in range(each)]
    return pairs


def make_edges(nodes: Sequence[str], rng: random.Random) -> Edges:
    """Link each sentence to a later one, the last being the claim."""
    edges = [(node, rng.choice(nodes[i + 1 : i + 3])) for i, node in enumerate(nodes[:-1])]
    return tuple(f"{premise} → {conclusion}" for premise, conclusion in edges)


def change_edges(gold: Edges, distractors: Sequence[str], nodes: Sequence[str], rng: random.Random) -> Edges:
    """Keep six in ten edges, drop one, give one another conclusion, and one or two a distractor as premise."""
    edges: dict[str, None] = {}
    for edge in gold:
        premise, conclusion = edge.split(" → ")
        way = rng.random()
        if way < 0.6:
            edges[edge] = None
        elif way < 0.75:
            edges[f"{rng.choice(distractors)} → {conclusion}"] = None
        elif way < 0.9:
            edges[f"{premise} → {rng.choice(nodes)}"] = None
    return tuple(edges) or gold[:1]


def loop(pairs: Sequence[Pair], similarity: Callable[[str, str], float]) -> list[float]:
    """Compute the structure similarity of each pair by a plain loop."""
    scores = []
    for gold, predicted in pairs:
        table = np.array([[similarity(true, edge) for edge in predicted] for true in gold])
        total = table[linear_sum_assignment(table, maximize=True)].sum()
        precision, recall = total / len(predicted), total / len(gold)
        scores.append(2 * precision * recall / (precision + recall))
    return scores


def by_definition(vectors: dict[str, torch.Tensor]) -> Callable[[str, str], float]:
    """Write BERTScore as it is defined, from any vectors."""

    def similarity(true: str, edge: str) -> float:
        left, right = (torch.nn.functional.normalize(vectors[text], dim=-1) for text in (true, edge))
        cosines = left @ right.T
        recall = cosines.max(dim=1).values[1:-1].mean()  # the first and the last token are special
        precision = cosines.max(dim=0).values[1:-1].mean()
        return float(2 * precision * recall / (precision + recall))

    return similarity


def of_unit_vectors(vectors: dict[str, torch.Tensor]) -> Callable[[str, str], float]:
    """Write it for vectors that were normalised before."""

    def similarity(true: str, edge: str) -> float:
        cosines = vectors[true] @ vectors[edge].T
        recall, precision = cosines.amax(dim=1)[1:-1].mean(), cosines.amax(dim=0)[1:-1].mean()
        return float(2 * precision * recall / (precision + recall))

    return similarity


def in_numpy(vectors: dict[str, torch.Tensor]) -> Callable[[str, str], float]:
    """Write that in NumPy, whose calls cost less."""
    arrays = {text: tensor.numpy() for text, tensor in vectors.items()}

    def similarity(true: str, edge: str) -> float:
        cosines = arrays[true] @ arrays[edge].T
        recall, precision = cosines.max(axis=1)[1:-1].mean(), cosines.max(axis=0)[1:-1].mean()
        return float(2 * precision * recall / (precision + recall))

    return similarity


def products(pairs: Sequence[Pair], vectors: dict[str, torch.Tensor]) -> list[float]:
    """Multiply the vectors of all tokens of a gold structure with those of its predictions."""
    for gold, group in groupby(pairs, lambda pair: pair[0]):
        edges = dict.fromkeys(edge for _, predicted in group for edge in predicted)
        left, right = (torch.cat([vectors[edge] for edge in side]) for side in (gold, edges))
        left @ right.T
    return []


LOOPS = {"definition": by_definition, "unit vectors": of_unit_vectors, "NumPy": in_numpy}


def ours(pairs: Sequence[Pair]) -> list[float]:
    from hfcf.core.model import Model
    from hfcf.metrics.shared.matching import Matching

    totals = Matching(model=Model("offline:minilm", dtype="float32")).run(pairs)
    return [2 * total / (len(gold) + len(predicted)) for total, (gold, predicted) in zip(totals, pairs, strict=True)]


class Encoder:
    """Run `Matching` with a clock around its encoder, which is asked in the first round alone; then its vectors are given back."""

    def __init__(self) -> None:
        self.clock, self.encoded = Clock(time.process_time), 0
        self.vectors: dict[tuple[int, ...], torch.Tensor] = {}
        self.ids: dict[str, tuple[int, ...]] = {}

    def places(self) -> list[Any]:
        from hfcf.metrics.shared import matching

        plain_encode, plain_embed = matching.Matching.encode, matching._embed

        def encode(engine: Any, loaded: Any, requests: Any) -> Any:
            items = plain_encode(engine, loaded, requests)
            for request, item in zip(requests, items, strict=True):
                for texts, sentences in zip(request, item.extra, strict=True):
                    self.ids |= {text: tuple(sentence.ids) for text, sentence in zip(texts, sentences, strict=True)}
            return items

        def embed(loaded: Any, sentences: Any) -> None:
            if tuple(sentences[0].ids) in self.vectors:
                for sentence in sentences:
                    sentence.vectors = self.vectors[tuple(sentence.ids)]
                return
            plain_embed(loaded, sentences)
            self.encoded += len(sentences)
            self.vectors |= {tuple(sentence.ids): sentence.vectors for sentence in sentences}

        return [(matching, "_embed", self.clock.timed(embed)), (matching.Matching, "encode", self.clock.timed(encode))]


def time_call(score: Callable[..., list[float]], *arguments: Any) -> tuple[float, list[float]]:
    start = time.process_time()
    scores = score(*arguments)
    return time.process_time() - start, scores


def main() -> None:
    """Score the same pairs by all and print seconds, ratios, how often an edge was encoded and the largest difference."""
    options = read_options(__doc__ or "")
    torch.set_num_threads(1)
    threadpool_limits(1)
    os.environ |= {"HFCF_REQUEST_CACHE": "off", "HFCF_DEVICE": "cpu"}
    number, rounds = (100, 1) if options.quick else (1000, 3)
    figures: dict[str, Any] = {"pairs": number, "rounds": rounds}
    table = []
    ours([(("a b",), ("a c",))])  # loads the encoder
    for title, each in (("one prediction", 1), ("five predictions", 5)):
        pairs = make_pairs(number, each)
        encoder = Encoder()
        rest: list[float] = []
        multiplied: list[float] = []
        loops: dict[str, list[float]] = {name: [] for name in LOOPS}
        differences = []
        for i in range(rounds + 1):
            encoder.clock.seconds = 0.0
            with patched(*encoder.places()):
                took, scores = time_call(ours, pairs)
            if not i:
                encoding, vectors = encoder.clock.seconds, {text: encoder.vectors[ids] for text, ids in encoder.ids.items()}
                continue
            rest.append(took - encoder.clock.seconds)
            multiplied.append(time_call(products, pairs, vectors)[0])
            for name, make in LOOPS.items():
                took, expected = time_call(loop, pairs, make(vectors))
                loops[name].append(took)
                differences += [abs(score - right) for score, right in zip(scores, expected, strict=True)]
        entry: dict[str, Any] = {
            "edges": len(vectors), "encoded": encoder.encoded, "tokens": statistics.mean(map(len, vectors.values())),
            "edge_pairs": sum(len(gold) * len(predicted) for gold, predicted in pairs), "encoder_seconds": encoding,
            "hfcf_seconds": statistics.median(rest), "products_seconds": statistics.median(multiplied),
        }  # fmt: skip
        row = [title, *entry.values()]
        for name, times in loops.items():
            entry[f"{name}_seconds"] = statistics.median(times)
            entry[f"{name}_over_hfcf"] = statistics.median(a / b for a, b in zip(times, rest, strict=True))
            entry[f"{name}_over_products"] = statistics.median(a / b for a, b in zip(times, multiplied, strict=True))
            row += [entry[f"{name}_seconds"], entry[f"{name}_over_hfcf"], entry[f"{name}_over_products"]]
        entry["largest_difference"] = max(differences)
        figures[title] = entry
        table.append([*row, f"{max(differences):.1e}"])
    columns = ["pairs", "edges", "encoded", "tokens each", "pairs of edges", "encoder s", "hfcf s", "products alone s"]
    columns += [text for name in LOOPS for text in (f"loop ({name}) s", "÷ hfcf", "÷ products")]
    what = f"Structure similarity of {number} pairs, {rounds} rounds, one thread, seconds of the processor"
    show(what, [*columns, "scores differ by"], table, options.json, figures)


if __name__ == "__main__":
    main()
