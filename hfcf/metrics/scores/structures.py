"""Score argument structures against gold structures (CheckWhy, section 5.1, Appendix B): edges, leaves, steps, intermediates.

Structures are compared by their sentences, not by their names, so that evidence may be renamed between gold and prediction. Runs of
white space count as one space; nothing else is normalised: the paper's exact match "only checks whether characters are identical".
A name without a sentence counts as its own sentence; a prediction that declares no sentences at all uses the gold names. The claim
is the same node in both.

An edge is a premise and a conclusion. So a combined link of n premises counts as n edges, and so does a divergent link of n
conclusions. The paper's "a collection of edges" leaves this open. A step is a conclusion with all its premises, in however many
links they are written. Section 2.2 merges convergent and linked arguments, and by Appendix B each conclusion "represents a single
step".

The paper's Table 8 is printed with the headings of Table 4. Its pairs of columns are the pairs that Appendix B lists, in that
order:

| printed heading of Table 8 | Appendix B | F1 | AllCorrect |
|---|---|---|---|
| Automatic | Leaf Nodes | `leaves_f1` | `leaves_all` |
| Human | Steps | `steps_f1` | `steps_all` |
| Verification | Intermediates | `intermediates_f1` | `intermediates_all` |

By its text, leaves are identified best, as the first pair is; nothing else in the paper says which pair is which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from hfcf.core.decisions import reaches
from hfcf.core.model import Model
from hfcf.tasks.structures.model import CLAIM, Structure

Similarities = Mapping[tuple[tuple[str, ...], tuple[str, ...]], float]
"""Total similarity of the best matching of two lists of sentences."""
SCORES = (
    "ss_precision", "ss_recall", "ss", "es_precision", "es_recall", "es", "leaves_f1", "leaves_all", "steps_f1", "steps_all",
    "intermediates_f1", "intermediates_all",
)  # fmt: skip
"""What `compare` returns."""
STEPS: Mapping[str, tuple[int, int | None]] = {**{str(n): (n, n) for n in range(1, 6)}, "≥6": (6, None)}
"""Groups by the reasoning steps of the gold structure, one for each conclusion (Table 6)."""
DISTRACTORS: Mapping[str, tuple[int, int | None]] = {
    "0": (0, 0), "1–6": (1, 6), "7–8": (7, 8), "9–10": (9, 10), "11–12": (11, 12), "≥13": (13, None)
}  # fmt: skip
"""Groups by distractors: Table 5 has 6, 8, 10 and 12 on average."""


@dataclass(frozen=True)
class SentenceEncoder:
    """The encoder that measures how similar two sentences are, for `hfcf.metrics.shared.matching.Matching`.

    Args:
        model: the encoder.
        same: from this similarity on, a generated conclusion has the meaning of the gold conclusion. EntailmentBank requires 0.28
            of BLEURT, a TensorFlow model with another scale.
        layer: the number of layers that are computed; None: all.
    """

    model: Model
    same: float
    layer: int | None = None

    def match(self, requests: Sequence[Any]) -> list[float]:
        """Return the total similarity of the best matching of each request's two lists of sentences."""
        from hfcf.metrics.shared.matching import Matching

        return Matching(model=self.model, layer=self.layer).run(requests)


PRESETS: Mapping[str, SentenceEncoder] = {
    # The paper's encoder; 16 layers are `bert_score`'s choice for it. `same` is the offline encoder's, between the similarity of
    # unrelated sentences (0.532 of it by `bert_score`'s table, 0.17 of offline:minilm) and 1; it was not measured.
    "paper": SentenceEncoder(Model("microsoft/deberta-large"), layer=16, same=0.915),
    # 90 % of the pairs of different conclusions of a tree in EntailmentBank's development set are less similar than `same`.
    "offline": SentenceEncoder(Model("offline:minilm"), same=0.85),
}


def encoder_of(name: str) -> SentenceEncoder:
    """Return the encoder of a name: "offline", or "paper", which is DeBERTa-large.

    Raises:
        ValueError: the name is unknown.

    >>> encoder_of("paper").model.name
    'microsoft/deberta-large'
    """
    if name not in PRESETS:
        raise ValueError(f"encoder must be {' or '.join(map(repr, PRESETS))}, got {name!r}")
    return PRESETS[name]


def compare(gold: Sequence[Structure], predicted: Sequence[Structure | None], encoder: SentenceEncoder) -> list[dict[str, float]]:
    """Compare predicted structures with gold structures.

    `ss`, structure similarity, is Saha et al.'s (2021) graph BERTScore. Edges are sentences ("premise → conclusion"). Each edge of
    one side is matched with an edge of the other side so that the total similarity is largest. Precision and recall are that total
    over the edges of the prediction and of the gold structure. `es`, exact match similarity, is the same with similarities of 1 and
    0.

    `leaves`, `steps` and `intermediates` are EntailmentBank's (Dalvi et al. 2021). `leaves` is F1 over the leaf sentences. `steps`
    is F1 over the steps, one step for each conclusion; a step is right if its premises and its sentence are right. `intermediates`
    is F1 over the conclusions except the claim. `_all`, the paper's AllCorrect, is 1 if F1 is 1, else 0.
    A sentence of the gold structure is aligned with itself. A new conclusion, as in Task 4, is aligned first; see `align`. It is a
    right intermediate if its sentence is at least `encoder.same` similar to the sentence of its gold conclusion.

    Deviations: EntailmentBank counts the hypothesis among the intermediates and aligns it, and lets BLEURT decide whether a
        sentence is right. Here the claim is given, so it is not counted or aligned. CheckWhy's own "slight modifications" are not
        published.

    Args:
        gold: the true structures, with the sentences of all evidence.
        predicted: for each true structure, the predicted structure; None (nothing, or unreadable text) counts as an empty
            structure.
        encoder: see `PRESETS`.

    Returns:
        `SCORES` of each pair, 0–1. Two empty structures are equal: all scores are 1. With one empty structure all are 0, except
        where both sides have no intermediates.

    Raises:
        ValueError: a predicted name has no sentence, but the gold structure has sentences: the two could never be equal.

    >>> from hfcf.tasks.structures.arrows import parse_arrows
    >>> gold, predicted = parse_arrows("(E1, E2) → E3 → Claim"), parse_arrows("E1 → E3 → Claim")
    >>> scores = compare([gold], [predicted], PRESETS["offline"])[0]
    >>> [round(scores[name], 3) for name in ("es_precision", "es_recall", "es", "ss", "leaves_f1", "steps_f1", "intermediates_all")]
    [1.0, 0.667, 0.8, 0.8, 0.667, 0.5, 1.0]
    """
    for i, (true, other) in enumerate(zip(gold, predicted, strict=True)):
        _check_sentences(true, other, i)
    pairs = [_pair(true, other) for true, other in zip(gold, predicted, strict=True)]
    requests = {(pair.gold_edges, pair.edges) for pair in pairs if pair.open}
    requests |= {((true,), (new,)) for pair in pairs for new, true in pair.aligned.items()}
    order = sorted(requests)  # the engine compares neighbours with the same gold edges at once
    similarity = dict(zip(order, encoder.match(order), strict=True))
    return [_scores(pair, similarity, encoder.same) for pair in pairs]


def align(gold: Structure, predicted: Structure) -> dict[str, str]:
    """Align the new conclusions of a prediction with gold conclusions by the leaves below them, as EntailmentBank does.

    Args:
        gold: a structure with sentences as names, see `by_sentence`.
        predicted: a structure with sentences as names.

    Returns:
        For each conclusion that is not a sentence of the gold structure, the gold conclusion with the largest share of common
        leaves (Jaccard). The first of equal gold conclusions is taken; several conclusions may get the same gold conclusion. A
        conclusion that shares no leaf with a gold conclusion is left out.
    """
    known = {*gold.texts.values(), *gold.nodes()}
    new = [name for name in predicted.intermediates() if name not in known]
    theirs, ours = _grounds(gold) if new else {}, _grounds(predicted) if new else {}
    aligned = {}
    for name in new:
        shares = {conclusion: _jaccard(ours[name], theirs[conclusion]) for conclusion in gold.intermediates()}
        best = max(shares, key=shares.__getitem__, default=None)
        if best is not None and shares[best]:
            aligned[name] = best
    return aligned


def by_sentence(structure: Structure, texts: Mapping[str, str] | None = None) -> Structure:
    """Return a structure whose names are its sentences; the claim keeps its name, and so does a name without a sentence.

    Args:
        structure: any structure.
        texts: the sentences by name; by default the structure's own.
    """
    given = {name: " ".join(text.split()) for name, text in (structure.texts if texts is None else texts).items()}
    names = {name: text for name, text in given.items() if CLAIM not in (name, text) and text}
    renamed = Structure(structure.steps).rename(names)
    return replace(renamed, texts={names.get(name, name): text for name, text in given.items()})


def group_of(number: int, groups: Mapping[str, tuple[int, int | None]]) -> str:
    """Name the group of a number of steps or distractors."""
    return next((name for name, (low, high) in groups.items() if number >= low and (high is None or number <= high)), "0")


def _check_sentences(gold: Structure, predicted: Structure | None, place: int) -> None:
    """Raise for a predicted name without a sentence, if the gold structure has sentences."""
    if predicted is None or not gold.steps or not gold.texts.keys() - {CLAIM}:
        return
    known = predicted.texts if predicted.texts.keys() - {CLAIM} else {**gold.texts, **dict.fromkeys(gold.nodes(), "")}
    if unknown := [name for name in predicted.nodes() if name != CLAIM and name not in known]:
        raise ValueError(
            f"prediction {place}: {unknown[0]} has no sentence, so no edge of it can be right: give the sentences of the evidence, "
            "such as parse_program(text, view.texts)"
        )


class _Pair(NamedTuple):
    gold: Structure
    predicted: Structure
    gold_edges: tuple[str, ...]
    edges: tuple[str, ...]
    common: int
    """The edges that both structures have."""
    aligned: dict[str, str]

    @property
    def open(self) -> bool:
        """Whether an encoder must compare the edges: not if one side has all edges of the other side."""
        return self.common < min(len(self.gold_edges), len(self.edges))


def _pair(gold: Structure, predicted: Structure | None) -> _Pair:
    predicted = predicted or Structure(())
    texts = predicted.texts if predicted.texts.keys() - {CLAIM} else gold.texts
    claim = " ".join(gold.texts.get(CLAIM, CLAIM).split())
    true, guessed = by_sentence(gold), by_sentence(predicted, texts)
    sides = [
        tuple(dict.fromkeys(" → ".join(claim if name == CLAIM else name for name in edge) for edge in structure.edges()))
        for structure in (true, guessed)
    ]
    return _Pair(true, guessed, sides[0], sides[1], len({*sides[0]} & {*sides[1]}), align(true, guessed))


def _scores(pair: _Pair, similarity: Similarities, same: float) -> dict[str, float]:
    total = similarity[pair.gold_edges, pair.edges] if pair.open else float(pair.common)
    sizes = len(pair.edges), len(pair.gold_edges)
    values = [*_f1(total, total, *sizes), *_f1(pair.common, pair.common, *sizes)]
    for right, covered, predicted, gold in (_leaves(pair), _steps(pair), _intermediates(pair, similarity, same)):
        f1 = _f1(right, covered, predicted, gold)[2]
        values += [f1, float(f1 == 1)]
    return dict(zip(SCORES, values, strict=True))


def _leaves(pair: _Pair) -> tuple[int, int, int, int]:
    gold, predicted = pair.gold.leaves(), pair.predicted.leaves()
    common = len({*gold} & {*predicted})
    return common, common, len(predicted), len(gold)


def _steps(pair: _Pair) -> tuple[int, int, int, int]:
    sides = [
        [(frozenset(names.get(name, name) for name in premises), names.get(end, end)) for premises, end in structure.merged().steps]
        for structure, names in ((pair.gold, {}), (pair.predicted, pair.aligned))
    ]
    # Steps that alignment made equal are right once: the remaining equal steps count against precision.
    common = len({*sides[0]} & {*sides[1]})
    return common, common, len(sides[1]), len(sides[0])


def _intermediates(pair: _Pair, similarity: Similarities, same: float) -> tuple[int, int, int, int]:
    gold, predicted = pair.gold.intermediates(), pair.predicted.intermediates()
    right = {name: name for name in predicted if name in gold}
    right |= {name: aligned for name, aligned in pair.aligned.items() if reaches(similarity[(aligned,), (name,)], same)}
    return len(right), len({*right.values()}), len(predicted), len(gold)


def _f1(right: float, covered: float, predicted: int, gold: int) -> tuple[float, float, float]:
    """Return precision, recall and F1 of `right` predicted edges, which are `covered` gold edges."""
    if not predicted or not gold:
        return (float(predicted == gold),) * 3
    precision, recall = right / predicted, covered / gold
    return precision, recall, 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _grounds(structure: Structure) -> dict[str, set[str]]:
    """Return the leaves below each conclusion, in however many steps; names in a circle have all leaves that lead into the
    circle."""
    premises: dict[str, set[str]] = {}
    for premise, conclusion in structure.edges():
        premises.setdefault(conclusion, set()).add(premise)
    grounds = {}
    for name in premises:
        reached, waiting = set[str](), [name]
        while waiting:
            for premise in premises.get(waiting.pop(), set()) - reached:
                reached.add(premise)
                waiting.append(premise)
        grounds[name] = {leaf for leaf in reached if leaf not in premises}
    return grounds


def _jaccard(leaves: set[str], other: set[str]) -> float:
    return len(leaves & other) / max(1, len(leaves | other))
