"""Masked-word replacement: a share of a text's words by what a masked language model says there, and the label stays."""

from __future__ import annotations

import random
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hfcf.core import edits
from hfcf.core.candidates import settle
from hfcf.core.chain import StageOf
from hfcf.core.model import Model
from hfcf.core.stage import Reject, Stage
from hfcf.core.system import System
from hfcf.core.task import TaskColumns
from hfcf.engines import masked
from hfcf.engines.classifier import Classifier
from hfcf.engines.relation import RelationClassifier
from hfcf.engines.wordnet import WordNet, wordnet
from hfcf.systems.baselines._shared.words import UNCHANGED, article, check_share, goes_with, replaceable, words_to_edit
from hfcf.tasks import DEFAULT
from hfcf.tasks.judge import JudgeCandidates
from hfcf.tasks.rewriting import candidate_columns, draws, edit_columns, rewriting_of

BERT = Model("bert-base-uncased")


def maskable(claim: str) -> list[tuple[int, int]]:
    """List the words of a claim that may be masked.

    Numbers, negations, modal verbs and function words stay, and so does every word with a capital. Inside the claim that is a
    name, and another name makes another claim; its first word always has one, and in the corpora of fact verification that is
    most often a name too.

    >>> claim = "The Beatles never played in 3 old halls."
    >>> [claim[start:end] for start, end in maskable(claim)]
    ['played', 'old', 'halls']
    """
    return [match.span() for match in replaceable(claim) if match[0].islower()]


def masked_spans(claim: str, rng: random.Random, *, share: float = 0.3, protected: Container[int] = ()) -> list[tuple[int, int]]:
    """Draw the words to mask, sorted.

    Args:
        claim: the claim.
        rng: where the draw comes from.
        share: of all its words; at least one, and no more than `maskable` gives.
        protected: characters of words that stay.

    >>> masked_spans("Rome is old.", random.Random(1))
    [(8, 11)]
    """
    places = [span for span in maskable(claim) if span[0] not in protected]
    return sorted(rng.sample(places, min(words_to_edit(claim, share), len(places))))


def filled_edits(
    claim: str, spans: Sequence[tuple[int, int]], fills: Sequence[Sequence[Sequence[Any]]], rng: random.Random, *, top: int = 10
) -> list[edits.Edit]:
    """Replace each span of a claim by a drawn fill; a span stays where none is left to draw.

    Never drawn are the word itself, function words, modal verbs, negations, numbers in words, after "a" or "an" what does not go
    with it, and names: what the model writes with a capital, and, since an uncased one writes none, what WordNet writes with one
    in every sense ("canada", "december") or does not know. A name that is a common word too ("turkey", "march") can be drawn.

    Args:
        claim: the claim.
        spans: words of it.
        fills: of each span, `[word, probability]`, best first.
        rng: where the draws come from.
        top: draw from the first so many, in proportion to their probability.

    >>> filled_edits("Rome is old.", [(8, 11)], [[["old", 0.5], ["big", 0.3], ["new", 0.0]]], random.Random(1))[0]["after"]
    'big'
    """
    net, results = wordnet(), []
    for (start, end), ranked in zip(spans, fills, strict=True):
        word = claim[start:end]
        before = article(claim, start)
        fitting = [(fill, p) for fill, p in ranked if fill != word and goes_with(fill, before) and _may_be_drawn(net, fill)][:top]
        if not sum(p for _, p in fitting):
            continue
        new = rng.choices([fill for fill, _ in fitting], [p for _, p in fitting])[0]
        results.append({"field": "claim", "piece": -1, "start": start, "end": end, "before": word, "after": new})
    return results


def _may_be_drawn(net: WordNet, fill: str) -> bool:
    return fill.islower() and fill not in UNCHANGED and net.is_common(fill)


@dataclass(frozen=True, kw_only=True)
class RewriteMaskedLm(Stage):
    """Replace some words of a claim or a sentence by a masked language model's, for every label, which stays.

    Input columns: the task's text and `label`. Output column: `candidates`, one. The model reads the whole text, a sentence's
    entities among its words. All chosen words (`masked_spans`) are masked at once, and each place gets a draw of its own
    (`filled_edits`), so two of them need not go together. A row is rejected in which no word may be masked, or for whose masks
    the model knows no other word. WordNet is read, to recognise names (`filled_edits`).

    Args:
        model: a masked language model.
        task: of the rows.
        share: the share of all the text's words to mask; one word where it rounds to none.
        top: how many fills to draw from, of the first four times as many that the model gives.
        max_length: tokens of a text that the model reads; of a longer one, those around a mask.

    >>> RewriteMaskedLm().name
    'rewrite_masked_lm'
    """

    VERSION: ClassVar[str] = "2"
    inputs: ClassVar[Any] = TaskColumns(edit_columns)
    outputs: ClassVar[Any] = TaskColumns(candidate_columns)

    model: Model = BERT
    task: str = DEFAULT
    share: float = 0.3
    top: int = 10
    max_length: int = 128

    def __post_init__(self) -> None:
        check_share(self.share)
        if self.top < 1:
            raise ValueError(f"top is at least 1 and was {self.top}")

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        rewriting = rewriting_of(self.task)
        generators = [draws(self, rewriting, row["id"]) for row in rows]
        texts = [rewriting.text(row) for row in rows]
        places = [
            masked_spans(text, rng, share=self.share, protected=rewriting.protected(row))
            for row, text, rng in zip(rows, texts, generators, strict=True)
        ]
        engine = masked.MaskedLM(model=self.model, top=4 * self.top, max_length=self.max_length)
        requests = [[text, [list(span) for span in spans]] for text, spans in zip(texts, places, strict=True) if spans]
        answers = iter(engine.run(requests))
        results: list[dict[str, Any] | Reject] = []
        for row, text, spans, rng in zip(rows, texts, places, generators, strict=True):
            if not spans:
                results.append(settle([], f"no word {rewriting.editable} may be masked"))
                continue
            edited = rewriting.edited(row, filled_edits(text, spans, next(answers), rng, top=self.top), self.name)
            results.append(settle(edited, "the model knows no other word for what was masked"))
        return results


@dataclass(frozen=True, kw_only=True)
class MaskedLM(System):
    """Replace words of a claim, or words around a sentence's entities, by a masked language model's: a baseline that keeps labels.

    It is "BERT-MLM" among CCG's baselines (appendix A.2: 30 % of a sentence's words, chosen at random, BERT-base, one new text for
    each), after the augmentation of Jiao et al. (2020, "TinyBERT: Distilling BERT for Natural Language Understanding", Findings of
    EMNLP). CCG says no more of it. Our choice: function words, words that a label depends on, and entities stay (`maskable`), and
    fills are drawn from the first ten in proportion to their probability. Where Jiao et al. mask one word after another and look
    words of several pieces up in GloVe, all masks are filled at once, each with one word.

    A masked model fills in likely words, not words of the same meaning, so the label is often wrong, most often with the tiny
    model of the offline preset. With a verifier, candidates that it judges otherwise are rejected.

    Args:
        task: of the rows; called with rows, the system takes it from them.
        verifier: see `JudgeCandidates`; the baseline itself checks nothing.
        max_length: see `JudgeCandidates`.

    Its other settings are those of `RewriteMaskedLm`.

    >>> MaskedLM.preset("offline").model.name
    'hfcf:mlm'
    """

    name: ClassVar[str] = "masked_lm"
    chain: ClassVar[tuple[str, ...]] = ("rewrite_masked_lm", "judge_candidates")
    presets: ClassVar = {"paper": {}, "offline": {"model": Model("hfcf:mlm")}}
    by_task: ClassVar = {"relation": {"max_length": 128}}
    flips: ClassVar[bool] = False
    engines: ClassVar = (masked.MaskedLM, Classifier, RelationClassifier)

    model: Model = BERT
    task: str = DEFAULT
    share: float = 0.3
    top: int = 10
    verifier: Model | None = None
    max_length: int = 130

    def __post_init__(self) -> None:
        self._as_models("model", "verifier")
        _ = self.rewrite_masked_lm  # checks the other settings

    rewrite_masked_lm = StageOf(RewriteMaskedLm, max_length=128)  # of the text alone; `max_length` is the verifier's
    judge_candidates = StageOf(JudgeCandidates)
