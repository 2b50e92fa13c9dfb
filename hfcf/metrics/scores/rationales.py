"""Score rationales: their agreement with human rationales, and how much the verifier's prediction depends on them; baselines.

Rationales are a row's `rationales`: `{field, piece, start, end, score}`, spans of code points in a piece's text ("evidence") or
title ("evidence.title"). Scores are not read, and spans may overlap. Words are the same as in gradient attribution: characters
without a space between. So "Rome," is one word, and its comma is part of it.

A span that lies outside the evidence is an error: the rationales belong to another row, or the evidence was edited since.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from hfcf.core.decisions import best
from hfcf.metrics.shared.texts import stop_words
from hfcf.text.evidence import join

if TYPE_CHECKING:
    from hfcf.engines.classifier import Classifier

Spans = Sequence[Mapping[str, Any]] | None
"""A row's `rationales`; null is the same as none."""
Evidence = Sequence[dict[str, Any]]
"""A row's `evidence`: `{title, text}` pieces."""

SCORES = ("token_precision", "token_recall", "token_f1", "sentence_precision", "sentence_recall", "sentence_f1")
"""What `agreement` returns."""

# A piece's columns in reading order, and what spans call them.
_FIELDS = {"title": "evidence.title", "text": "evidence"}
_WORD = re.compile(r"\S+")


class PieceWord(NamedTuple):
    """A word of the evidence: characters `start` to `end` of a field of a piece, and whether a rationale overlaps it."""

    field: str
    piece: int
    start: int
    end: int
    marked: bool


def words(evidence: Evidence, rationales: Spans = None) -> list[PieceWord]:
    """List the words of the evidence in reading order, each piece's title before its text.

    Args:
        evidence: the pieces.
        rationales: a word is marked if one of these spans has a character in common with it.

    Raises:
        ValueError: a span lies outside the evidence.
    """
    texts = {(field, i): piece[column] or "" for i, piece in enumerate(evidence) for column, field in _FIELDS.items()}
    # One byte for each character, so that many spans over long texts stay linear.
    marks = {place: bytearray(len(text)) for place, text in texts.items()}
    for span in rationales or ():
        place, start, end = (span["field"], span["piece"]), span["start"], span["end"]
        if place not in texts or not 0 <= start <= end <= len(texts[place]):
            raise ValueError(f"a rationale lies outside the evidence of {len(evidence)} pieces: {dict(span)}")
        marks[place][start:end] = b"\1" * (end - start)
    return [
        PieceWord(*place, match.start(), match.end(), 1 in marks[place][match.start() : match.end()])
        for place, text in texts.items()
        for match in _WORD.finditer(text)
    ]


def agreement(predicted: Spans, human: Spans, evidence: Evidence) -> dict[str, float]:
    """Compare one row's predicted rationales with its human rationales, by words and by pieces ("sentences").

    Only words of the texts count, because annotators of the corpora here marked no titles. A piece is marked if any of its words is
    marked, including its title's words.

    Args:
        predicted: rationales in any order; if nothing is marked, precision is 0.
        human: as `predicted`; if nothing is marked, recall is 0.
        evidence: the pieces that contain both.

    Returns:
        `SCORES`, each 0–1. F1 is the harmonic mean, 0 if both are.

    Source: DeYoung et al. (ACL 2020), ERASER, agreement of hard selections (its token F1). Deviation: words and rows instead of its
    files' tokens and documents.

    Raises:
        ValueError: a span lies outside the evidence.
    """
    ours, other = words(evidence, predicted), words(evidence, human)
    in_texts = [(a.marked, b.marked) for a, b in zip(ours, other, strict=True) if a.field == _FIELDS["text"]]
    pieces, others = ({word.piece for word in side if word.marked} for side in (ours, other))
    in_pieces = [(i in pieces, i in others) for i in range(len(evidence))]
    return dict(zip(SCORES, (*_scores(in_texts), *_scores(in_pieces)), strict=True))


def _scores(pairs: Iterable[tuple[bool, bool]]) -> tuple[float, float, float]:
    """Compute precision, recall and F1 of (predicted, human) marks."""
    pairs = list(pairs)
    both = sum(ours and other for ours, other in pairs)
    predicted, human = (sum(side) for side in zip(*pairs, strict=True)) if pairs else (0, 0)
    f1 = 2 * both / (predicted + human) if both else 0.0
    return (both / predicted if predicted else 0.0, both / human if human else 0.0, f1)


def faithfulness(rows: Sequence[Mapping[str, Any]], rationales: Sequence[Spans], engine: Classifier) -> list[dict[str, Any]]:
    """Measure how much the verifier's prediction depends on each row's rationales.

    `sufficiency` is p(label | all evidence) − p(label | the rationales' words alone): low if the words are enough.
    `comprehensiveness` is p(label | all evidence) − p(label | the other words): high if the words are needed. The label is the
    verifier's prediction on all evidence (ties: the first by name), not the row's own.

    The remaining words, including titles' words, are joined by single spaces. A piece without a word is left out, and a field that
    loses nothing stays as it is. If nothing is left, the verifier reads the claim alone. Give the verifier room for the whole
    evidence (`engine.max_length`): if evidence is cut, removing words lets later words in.

    Args:
        rows: n rows with `claim` and `evidence`.
        rationales: n rationales, one for each row.
        engine: the verifier; it answers all 3n inputs in one run, equal inputs once.

    Returns:
        n of `{"label": str, "probability": 0–1, "sufficiency": −1–1, "comprehensiveness": −1–1}`, to five decimals. A rationale of
        all words has sufficiency 0, a rationale of no word has comprehensiveness 0.

    Source: DeYoung et al. (ACL 2020), ERASER, faithfulness of one selection (no mean over thresholds). Deviation: ERASER drops
    tokens of the model's own input; words are dropped here before the verifier's tokenizer sees them.

    Raises:
        ValueError: a span lies outside the evidence, or there are not as many rationales as rows.
    """
    requests: list[list[str]] = []
    for row, spans in zip(rows, rationales, strict=True):
        text_words = words(row["evidence"], spans)
        parts = (_text(row["evidence"], text_words, marked) for marked in (True, False))
        texts = (join(row["evidence"])[0], *parts)
        requests += [[row["claim"], text] for text in texts]
    answers = engine.run(requests)
    results = []
    for i in range(0, len(answers), 3):
        full, alone, without = answers[i : i + 3]
        label = best(full, full.__getitem__, str)
        losses = {"sufficiency": full[label] - alone[label], "comprehensiveness": full[label] - without[label]}
        rounded = {name: round(loss, 5) for name, loss in losses.items()}
        results.append({"label": label, "probability": full[label], **rounded})
    return results


def _text(evidence: Evidence, text_words: Sequence[PieceWord], marked: bool) -> str:
    """Keep only the words of the verifier's evidence that are marked, or only the words that are not."""
    if all(word.marked == marked for word in text_words):
        return join(evidence)[0]
    pieces = [{column: piece[column] or "" for column in _FIELDS} for piece in evidence]
    for column, field in _FIELDS.items():
        for i, group in groupby((word for word in text_words if word.field == field), key=lambda word: word.piece):
            of_piece = list(group)
            remaining = [word for word in of_piece if word.marked == marked]
            if len(remaining) < len(of_piece):
                pieces[i][column] = " ".join(pieces[i][column][word.start : word.end] for word in remaining)
    for piece in pieces:
        if not piece["text"].strip():
            piece["title"], piece["text"] = "", piece["title"]  # a title alone announces nothing: no colon
    return join([piece for piece in pieces if piece["text"].strip()])[0]


def marked_share(rationales: Spans, evidence: Evidence, *, titles: bool = False) -> float:
    """Measure the share of the evidence's words that rationales mark: the budget for a baseline.

    Args:
        rationales: spans into `evidence`.
        evidence: the pieces.
        titles: whether titles' words count: no for `agreement`, which does not score them; yes for `faithfulness`, whose verifier
            reads them.

    Returns:
        0–1; 0 for evidence without a word.
    """
    pool = _pool(evidence, titles, rationales)
    return sum(word.marked for word in pool) / len(pool) if pool else 0.0


def random_rationales(row: Mapping[str, Any], share: float, seed: int, *, titles: bool = False) -> list[dict[str, Any]]:
    """Draw a share of the evidence's words at random, without replacement.

    Args:
        row: a row with `id` and `evidence`; equal rows get equal rationales, in any order of the dataset.
        share: the share of the words, 0–1; share × words is rounded, halves up. `marked_share` of a prediction gives as many words
            as the prediction has.
        seed: the seed of the draw.
        titles: whether titles' words can be drawn.

    Returns:
        Rationales in reading order, adjacent words joined; scores are shares of the chosen words and add up to 1.
    """
    pool = _pool(row["evidence"], titles)
    drawn = random.Random(f"{seed}:random_rationales:{row['id']}").sample(range(len(pool)), _budget(share, len(pool)))
    return _spans(pool, set(drawn))


def lexical_rationales(row: Mapping[str, Any], share: float, *, titles: bool = False) -> list[dict[str, Any]]:
    """Choose words of the evidence that the claim also has, in any case and without the marks at their edges.

    The claim's words that are not stop words (scikit-learn's English list) come first, then its stop words; within each, the first
    in reading order. A word that is not in the claim is never chosen, so there may be fewer words than the budget allows.

    Args:
        row: a row with `claim` and `evidence`.
        share: the maximum share of the words, 0–1; share × words is rounded, halves up.
        titles: whether titles' words can be chosen.

    Returns:
        Rationales in reading order, adjacent words joined; scores are shares of the chosen words and add up to 1.
    """
    pool = _pool(row["evidence"], titles)
    claim = {_bare(word) for word in row["claim"].split()} - {""}
    texts = {field: column for column, field in _FIELDS.items()}
    bare = [_bare(row["evidence"][word.piece][texts[word.field]][word.start : word.end]) for word in pool]
    shared = sorted((i for i, word in enumerate(bare) if word in claim), key=lambda i: (bare[i] in stop_words(), i))
    return _spans(pool, set(shared[: _budget(share, len(pool))]))


def _pool(evidence: Evidence, titles: bool, rationales: Spans = None) -> list[PieceWord]:
    return [word for word in words(evidence, rationales) if titles or word.field == "evidence"]


def _budget(share: float, size: int) -> int:
    if not 0 <= share <= 1:
        raise ValueError(f"share must be between 0 and 1, got {share}")
    # A share that was k / size has to give k again, whatever the division lost.
    return math.floor(round(share * size, 6) + 0.5)


def _bare(word: str) -> str:
    """Fold a word's case and strip the marks around its letters and digits."""
    inside = [i for i, character in enumerate(word) if character.isalnum()]
    return word[inside[0] : inside[-1] + 1].casefold() if inside else ""


def _spans(pool: Sequence[PieceWord], chosen: Collection[int]) -> list[dict[str, Any]]:
    """Turn chosen words into rationales, with adjacent words of a field joined, as `Explain` joins them."""
    sizes: list[int] = []
    spans: list[dict[str, Any]] = []
    for i in sorted(chosen):
        word = pool[i]
        if i - 1 in chosen and (pool[i - 1].field, pool[i - 1].piece) == (word.field, word.piece):
            spans[-1]["end"] = word.end
            sizes[-1] += 1
        else:
            spans.append({"field": word.field, "piece": word.piece, "start": word.start, "end": word.end})
            sizes.append(1)
    return [{**span, "score": round(size / len(chosen), 5)} for span, size in zip(spans, sizes, strict=True)]
