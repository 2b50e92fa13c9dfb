"""Find the words of a sentence that its relation depends on (CCG, section 3.2)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from datasets import Dataset, IterableDataset, List

from hfcf.core import schema
from hfcf.core.model import Model
from hfcf.core.settings import NeedsWeights, NonNegative, Positive
from hfcf.core.stage import Reject, Stage
from hfcf.engines.intervention import Intervention
from hfcf.engines.masked import MaskFiller
from hfcf.engines.parser import Constituents
from hfcf.systems.ccg.gradients import WordGradients, highest
from hfcf.systems.ccg.indicator import (
    CLASSIFIER,
    COLUMNS,
    UNJUDGED,
    IndicatorModel,
    IndicatorTraining,
    ask_indicators,
    learn_indicators,
)
from hfcf.tasks.relation import OTHER, TASK, between, context, overlap, requests, spans, trouble
from hfcf.training.model_cache import check_full_tuning

STANZA = Constituents()
WORDS = {"between": between, "context": context}
_BRACKET = re.compile("-[LR][RSC]B-")  # as the Penn Treebank spells brackets
_NOTHING = Reject("no word changes the indicator's prediction")

Tree = Sequence[Any]
"""`[label, child, …]`, leaves `[tag, place]` (`hfcf.engines.parser.Constituents`)."""


@dataclass(frozen=True, kw_only=True)
class IdentifyCausalTerms(Stage):
    """Find the words whose replacement changes what the indicator predicts. The indicator is a relation classifier, and the words
    bring their phrases.

    Input columns: `tokens`, `head`, `tail`, `label`. Output columns: `preliminary_terms`, the words that flip the prediction, and
    `causal_terms`, with what the parser adds: sorted places in `tokens`, never an entity's.

    Each word is masked on its own and filled with the masked language model's likeliest words. If one of the filled sentences gets
    another prediction, the word is a preliminary term. Rows of the label "Other" are rejected, and rows whose entities overlap or
    have no word between them. Sentences longer than the indicator reads, and sentences in which no word changes its prediction,
    are also rejected.

    Deviations from the released code, or choices where paper and code differ:

    - The filled sentence's prediction is compared with the unchanged sentence's, as in formula (1). The code compares it with the
      gold label, so nearly every word is causal in a sentence that the indicator gets wrong.
    - Words between the entities are masked, as in the code; the paper's text has every word (`words="context"`). Like the code we
      parse from the first entity to the last, for "context" the whole sentence. The parser adds only words that could be masked.
    - Fills are whole words, where the code takes pieces of any kind: the paper wants each intervention to be "rational". For the
      same reason a token without a letter or digit is not masked.

    Args:
        masked: the masked language model; not asked with `method="gradient"`.
        indicator: the R-BERT whose prediction must flip; None trains it on the rows, as the paper does.
        classifier: how the indicator is trained.
        folds: train this many indicators, so that none judges a row that it was trained on. Each learns from the rows outside one
            fold. The paper has one indicator. An indicator that learnt a few rows by heart recognises them by their entities. For
            example, of 34 rows of SemEval's 2-shot sample none flipped with one indicator, and 22 with two folds.
        min_steps: the fewest steps of a training, however few its rows; otherwise the indicator would give every sentence the same
            relation. The paper has none.
        top: N, how many fills of each word are tried (section 4.5).
        words: which words are masked: "between" the entities, or all the "context".
        parser: adds the words of a term's phrase; None is the ablation w/o Parser. The paper's is CoreNLP.
        method: "intervention", or "gradient" for the ablation w/o MII. "gradient" takes the words of the highest gradient, as many
            as AutoCAD takes, with the indicator's own prediction for the label. "editor" asks no indicator: all words that may be
            masked are causal terms, of which a language model as `EditRelation.editor` picks its own.
        max_length: tokens that masked language model and indicator read.
        patience: how many fills of a word without a flip end its search; None tries them all. See
            `hfcf.engines.intervention.Intervention`.
        unflipped: keep rows in which no word flips: `preliminary_terms` is then empty, and all words that may be masked are causal
            terms. For phrases (`EditRelation`), which replace the whole predicate; a weak indicator often sees the entities alone.

    >>> IdentifyCausalTerms(parser=None).name
    'identify_causal_terms'
    """

    inputs: ClassVar = {**TASK.columns, "label": schema.TEXT}
    outputs: ClassVar = {"causal_terms": List(schema.INT), "preliminary_terms": List(schema.INT)}

    engines: ClassVar = (MaskFiller, Intervention, WordGradients, Constituents)

    masked: (
        Annotated[Model, NeedsWeights("it fills each masked word with its likeliest words, which an endpoint does not list")] | None
    ) = Model("bert-base-uncased")
    indicator: IndicatorModel | None = None
    classifier: IndicatorTraining = CLASSIFIER
    folds: Positive = 1
    min_steps: NonNegative = 0
    top: Positive = 100
    words: Literal["between", "context"] = "between"
    parser: Constituents | None = STANZA
    method: Literal["intervention", "gradient", "editor"] = "intervention"
    max_length: Positive = 128
    patience: Positive | None = None
    unflipped: bool = False

    def check(self) -> None:
        check_full_tuning("classifier", self.classifier)
        if self.masked is None and self.method == "intervention":
            raise ValueError("masked: interventions need a masked language model")

    @property
    def fit_inputs(self) -> tuple[str, ...]:
        return COLUMNS if self.indicator is None and self.method != "editor" else ()

    def read_models(self) -> dict[str, Model]:
        unread = set() if self.method == "intervention" else {"masked"}
        return {name: model for name, model in super().read_models().items() if name not in unread}

    def learn(self, ds: Dataset | IterableDataset) -> str:
        return learn_indicators(self.name, ds, replace(self.classifier, seed=self.seed), self.folds, self.min_steps)

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        reasons = [self._trouble(row) for row in rows]
        sound = [row for row, reason in zip(rows, reasons, strict=True) if not reason]
        preliminary = self._preliminary(sound)
        if self.unflipped:
            preliminary = [[] if terms is _NOTHING else terms for terms in preliminary]
        flipping = [(row, terms) for row, terms in zip(sound, preliminary, strict=True) if not isinstance(terms, Reject)]
        answers, corrected = iter(preliminary), iter(self._correct(flipping))
        results: list[dict[str, Any] | Reject] = []
        for reason in reasons:
            terms = Reject(reason) if reason else next(answers)
            if isinstance(terms, Reject):
                results.append(terms)
            else:
                results.append({"causal_terms": next(corrected), "preliminary_terms": terms})
        return results

    def maskable(self, row: dict[str, Any]) -> list[int]:
        """List the places of the words that may be masked."""
        return [i for i in WORDS[self.words](row) if _is_word(row["tokens"][i])]

    def _trouble(self, row: dict[str, Any]) -> str | None:
        """Say why there is nothing to mask."""
        if row["label"] == OTHER:
            return "the relation is Other"
        problem = trouble(row) if self.words == "between" else overlap(row)
        return problem or (None if self.maskable(row) else "there is no word that could be masked")

    def _preliminary(self, rows: Sequence[dict[str, Any]]) -> list[list[int] | Reject]:
        if self.method == "editor":
            return [[] for _ in rows]
        too_long = Reject(f"the sentence is longer than the {self.max_length} pieces that the indicator reads")

        def ask(indicator: Model, part: list[Any]) -> list[list[int] | Reject]:
            return [too_long if terms is None else terms or _NOTHING for terms in self._flipping(part, indicator)]

        return ask_indicators(self.indicator, self.fitted, [row["id"] for row in rows], rows, ask, Reject(UNJUDGED))

    def _flipping(self, rows: Sequence[dict[str, Any]], indicator: Model) -> list[list[int] | None]:
        """List for each row the words that its indicator's prediction depends on; None where it can't read the sentence."""
        sentences = requests(rows)
        if self.method == "gradient":
            gradients = WordGradients(indicator=indicator, max_length=self.max_length)
            weights = gradients.run([[*sentence, None] for sentence in sentences])
            return [group and highest(group, self.maskable(row)) for group, row in zip(weights, rows, strict=True)]
        engine = Intervention(indicator=indicator, max_length=self.max_length, patience=self.patience)
        return engine.run([[*sentence, fills] for sentence, fills in zip(sentences, self._fills(rows), strict=True)])

    def _fills(self, rows: Sequence[dict[str, Any]]) -> list[list[list[Any]]]:
        """List for each row its words that may be masked, with their fills; each word is masked alone."""
        assert self.masked is not None
        places = [(row["tokens"], word) for row in rows for word in self.maskable(row)]
        engine = MaskFiller(model=self.masked, top=self.top, max_length=self.max_length)
        answers = iter(engine.run([[" ".join(tokens), [_span(tokens, word)]] for tokens, word in places]))
        return [[[word, [fill for fill, _ in next(answers)[0]]] for word in self.maskable(row)] for row in rows]

    def _correct(self, flipping: Sequence[tuple[dict[str, Any], list[int]]]) -> list[list[int]]:
        if self.parser is None or self.method == "editor":
            return [terms or self.maskable(row) for row, terms in flipping]
        parts = [_part(row) if self.words == "between" else (0, len(row["tokens"])) for row, _ in flipping]
        trees = self.parser.run([row["tokens"][start:end] for (row, _), (start, end) in zip(flipping, parts, strict=True)])
        return [
            correct_terms(shift_tree(tree, start), terms, self.maskable(row)) if terms else self.maskable(row)
            for tree, (start, _), (row, terms) in zip(trees, parts, flipping, strict=True)
        ]


def _is_word(token: str) -> bool:
    return any(character.isalnum() for character in token) and not _BRACKET.fullmatch(token)


def _span(tokens: Sequence[str], word: int) -> list[int]:
    """Return the characters of a token in the tokens joined by spaces."""
    start = sum(len(token) + 1 for token in tokens[:word])
    return [start, start + len(tokens[word])]


def _part(row: dict[str, Any]) -> tuple[int, int]:
    """Return the first entity's start and the last entity's end."""
    places = [place for span in spans(row) for place in span]
    return min(places), max(places)


def correct_terms(tree: Tree, terms: Collection[int], allowed: Collection[int]) -> list[int]:
    """Return the places of the terms and of what the phrases around them add, sorted.

    The verbs (VB*) and prepositions (IN, not TO, as in the paper) in the nearest verb phrase above a term are also causal. Where
    there is no verb phrase, it is the prepositions in the nearest prepositional phrase. Added words add no further words, and must
    be among `allowed`.

    Deviation: the authors' code finds a phrase's words again by their text, and so adds the wrong one of a word that occurs twice.
    """
    above = {leaf[1]: path for leaf, path in _leaves(tree, ())}
    results = set(terms)
    for term in terms:
        path = above.get(term, ())
        phrase = next((node for node in reversed(path) if _is(node, "VP")), None)
        tags: tuple[str, ...] = ("VB", "IN")
        if phrase is None:
            phrase, tags = next((node for node in reversed(path) if _is(node, "PP")), None), ("IN",)
        if phrase is not None:
            results |= {place for (tag, place), _ in _leaves(phrase, ()) if tag.startswith(tags) and place in allowed}
    return sorted(results)


def shift_tree(tree: Tree, by: int) -> list[Any]:
    """Turn the places in the tree of a part of a sentence into places in the sentence."""
    if _is_leaf(tree):
        return [tree[0], tree[1] + by]
    return [tree[0], *(shift_tree(child, by) for child in tree[1:])]


def _leaves(tree: Tree, path: tuple[Tree, ...]) -> Iterator[tuple[Tree, tuple[Tree, ...]]]:
    """Yield every leaf with the constituents above it, from the top."""
    if _is_leaf(tree):
        yield tree, path
        return
    for child in tree[1:]:
        yield from _leaves(child, (*path, tree))


def _is_leaf(tree: Tree) -> bool:
    return len(tree) == 2 and isinstance(tree[1], int)


def _is(tree: Tree, label: str) -> bool:
    """Say whether a constituent has this label, with or without a function ("VP-TPC")."""
    return str(tree[0]).split("-")[0] == label
