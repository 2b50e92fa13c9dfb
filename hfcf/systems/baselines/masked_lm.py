"""Masked-word replacement: a masked language model replaces a share of a text's words, under the label of the source."""

from __future__ import annotations

import random
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hfcf.core import edits
from hfcf.core.bound_stage import BoundStage
from hfcf.core.candidates import settle
from hfcf.core.model import Model
from hfcf.core.public_models import MASKED, pinned
from hfcf.core.settings import Positive, Share
from hfcf.core.stage import Reject, Stage
from hfcf.core.system import System
from hfcf.core.task import TaskColumns
from hfcf.engines import masked
from hfcf.engines.wordnet import WordNet, wordnet
from hfcf.systems._shared.judge import JudgeCandidates
from hfcf.systems.baselines._shared.word_edits import UNCHANGED, article, goes_with, replaceable, words_to_edit
from hfcf.tasks import DEFAULT
from hfcf.tasks.rewriting import candidate_columns, edit_columns, rewriting_of, rng_for

BERT = Model("bert-base-uncased")


def maskable(claim: str) -> list[tuple[int, int]]:
    """List the words of a claim that may be masked: the words of `replaceable` without a capital, which names have.

    The first word always has a capital, and in the corpora of fact verification it is most often a name.
    """
    return [match.span() for match in replaceable(claim) if match[0].islower()]


def masked_spans(claim: str, rng: random.Random, *, share: float = 0.3, protected: Container[int] = ()) -> list[tuple[int, int]]:
    """Draw the words to mask, sorted: a share of all the claim's words, at least one; words at `protected` characters stay."""
    places = [span for span in maskable(claim) if span[0] not in protected]
    return sorted(rng.sample(places, min(words_to_edit(claim, share), len(places))))


def filled_edits(
    claim: str, spans: Sequence[tuple[int, int]], fills: Sequence[Sequence[Sequence[Any]]], rng: random.Random, *, top: int = 10
) -> list[edits.Edit]:
    """Replace each span of a claim by one of its first `top` fills, drawn by probability; a span stays where none is left.

    The word itself, the words of `UNCHANGED`, and words that do not go with the article before them are never drawn. Nor are
    names. A name is what the model writes with a capital. Since an uncased model writes no capitals, a name is also what
    WordNet has with a capital alone ("canada") or not at all.

    Args:
        fills: of each span, `[word, probability]`, best first.
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
    """Replace some words by a masked language model's, unchecked. The text keeps its label.

    Input columns: the task's text and `label`. Output column: `candidates`, one candidate. All chosen words are masked at once,
    and each place gets a draw of its own, so two of them need not go together. A row is rejected in which no word may be
    masked, or for whose masks the model predicts no other word. WordNet tells names from other words.

    Args:
        model: a masked language model.
        task: the task of the rows.
        share: the share of all the text's words to mask; one word where it rounds to none.
        top: how many fills to draw from, of the first four times as many that the model gives.
        max_length: tokens of a text that the model reads; from a longer text, the tokens around a mask.

    >>> RewriteMaskedLm().name
    'rewrite_masked_lm'
    """

    VERSION: ClassVar[str] = "2"
    inputs: ClassVar[Any] = TaskColumns(edit_columns)
    outputs: ClassVar[Any] = TaskColumns(candidate_columns)

    model: Model = BERT
    task: str = DEFAULT
    share: Share = 0.3
    top: Positive = 10
    max_length: Positive = 128
    engines: ClassVar = (masked.MaskFiller,)

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        rewriting = rewriting_of(self.task)
        generators = [rng_for(self, self.task, row["id"]) for row in rows]
        texts = [rewriting.text(row) for row in rows]
        places = [
            masked_spans(text, rng, share=self.share, protected=rewriting.protected(row))
            for row, text, rng in zip(rows, texts, generators, strict=True)
        ]
        engine = masked.MaskFiller(model=self.model, top=4 * self.top, max_length=self.max_length)
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


class MaskedLM(System):
    """Replace words by a masked language model's, and keep the label.

    It is "BERT-MLM" among CCG's baselines (appendix A.2: 30 % of a sentence's words, chosen at random, BERT-base, one new text
    for each). It follows the augmentation of Jiao et al. (2020, "TinyBERT: Distilling BERT for Natural Language Understanding",
    Findings of EMNLP). CCG gives no more detail.

    Deviations: function words, words that a label depends on, and entities stay, and fills are drawn from the first ten by
    probability. Where Jiao et al. mask one word after another, all masks are filled at once, each with one word.

    A masked model fills in likely words, not words of the same meaning, so the label is often wrong. With a verifier, candidates
    that it judges otherwise are rejected.

    Args:
        task: the task of the rows; called with rows, the system takes it from them.
        verifier: see `JudgeCandidates`; the baseline itself checks nothing.

    Its stages define its other settings; `max_length` is the verifier's, the masked language model reads 128 tokens.

    >>> MaskedLM.preset("offline").model.name
    'hfcf:mlm'
    """

    name = "masked_lm"
    chain = (BoundStage(RewriteMaskedLm, fixed={"max_length": 128}), JudgeCandidates)
    presets: ClassVar = {"paper": {}, "hub": {"model": pinned(MASKED)}, "offline": {"model": Model("hfcf:mlm")}}
    by_task: ClassVar = {"relation": {"max_length": 128}}
    flips = False
