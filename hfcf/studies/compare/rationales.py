"""Compare CURE's rationales with baselines: agreement with humans, and faithfulness to the verifier."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hfcf.core import recipe as recipes
from hfcf.core.model import Model
from hfcf.core.pretrained import read_tokenizer
from hfcf.core.stage import Reject
from hfcf.corpora import corpus_name
from hfcf.engines.attribution import Attribution
from hfcf.engines.classifier import Classifier
from hfcf.engines.classifier_spec import read_spec
from hfcf.engines.verifier_inputs import encode_spans
from hfcf.metrics.scores.rationales import (
    SCORES,
    agreement,
    faithfulness,
    lexical_rationales,
    marked_share,
    random_rationales,
    words,
)
from hfcf.studies.compare.grid import long_table
from hfcf.studies.compare.recipe import RationaleComparison
from hfcf.studies.compare.tables import table
from hfcf.systems.race.explain import Explain, placed
from hfcf.tasks.verification import NOT_ENOUGH_INFO
from hfcf.text.evidence import join
from hfcf.training.data import load_rows

Row = Mapping[str, Any]
TEXT = "evidence"


class Marks(NamedTuple):
    """What a method marks in a row: words as spans of texts, and pieces."""

    spans: list[dict[str, Any]]
    pieces: list[int]


def cure(rows: Sequence[Row], verifier: Model, explainer: Model, max_length: int) -> list[Marks | None]:
    """Return what CURE marks; None where it opens the gate of no word of a text."""
    stage = Explain(verifier=verifier, explainer="cure", explainer_model=explainer, max_length=max_length)
    results: list[Marks | None] = []
    for answer in stage.batch([dict(row) for row in rows]):
        marks = {} if isinstance(answer, Reject) else answer
        spans = [span for span in marks.get("rationales", ()) if span["field"] == TEXT]
        results.append(Marks(spans, [mark["piece"] for mark in marks["sentence_rationales"]]) if spans else None)
    return results


def gradient(rows: Sequence[Row], budgets: Sequence[Marks], verifier: Model, max_length: int) -> list[Marks]:
    """Mark the words with the highest gradient × input of the row's label, and the pieces with the highest mean over words."""
    joined = [join(row["evidence"]) for row in rows]
    requests = [[row["claim"], text, row["label"]] for row, (text, _) in zip(rows, joined, strict=True)]
    attributions = Attribution(model=verifier, max_length=max_length).run(requests)
    results = []
    for row, (_, parts), scored, budget in zip(rows, joined, attributions, budgets, strict=True):
        ranked: list[tuple[float, int, int, int]] = []
        by_piece: dict[int, list[float]] = {}
        for _, (field, piece, start, end), score in placed(parts, scored):
            by_piece.setdefault(piece, []).append(score)
            if field == TEXT:
                ranked.append((-score, piece, start, end))
        size = sum(word.marked for word in words(row["evidence"], budget.spans) if word.field == TEXT)
        spans = [{"field": TEXT, "piece": piece, "start": start, "end": end} for _, piece, start, end in sorted(ranked)[:size]]
        means = {piece: sum(scores) / len(scores) for piece, scores in by_piece.items()}
        results.append(Marks(spans, _best(means, len(budget.pieces))))
    return results


def lexical(rows: Sequence[Row], budgets: Sequence[Marks]) -> list[Marks]:
    """Mark words that the claim has, and the pieces with the highest share of them; there may be fewer words than allowed."""
    results = []
    for row, budget in zip(rows, budgets, strict=True):
        shared: dict[int, list[bool]] = {}
        for word in words(row["evidence"], lexical_rationales(row, 1.0)):
            if word.field == TEXT:
                shared.setdefault(word.piece, []).append(word.marked)
        shares = {piece: sum(marks) / len(marks) for piece, marks in shared.items()}
        spans = lexical_rationales(row, marked_share(budget.spans, row["evidence"]))
        results.append(Marks(spans, _best(shares, len(budget.pieces))))
    return results


def at_random(rows: Sequence[Row], budgets: Sequence[Marks], seed: int) -> list[Marks]:
    """Mark as many words and as many pieces, drawn by the row's id."""
    results = []
    for row, budget in zip(rows, budgets, strict=True):
        spans = random_rationales(row, marked_share(budget.spans, row["evidence"]), seed)
        drawn = random.Random(f"{seed}:random_pieces:{row['id']}").sample(range(len(row["evidence"])), len(budget.pieces))
        results.append(Marks(spans, sorted(drawn)))
    return results


def _best(scores: Mapping[int, float], number: int) -> list[int]:
    """List the pieces with the highest scores, in reading order; ties go to the earlier."""
    return sorted(sorted(scores, key=lambda piece: (-scores[piece], piece))[:number])


COLUMNS = (*SCORES, "sufficiency", "comprehensiveness", "marked")
BASELINE = "gradient_x_input"


def rationale_table(recipe: RationaleComparison, out: Path, *, full: bool = False) -> dict[str, Any]:
    """Score every method on every corpus and write `rationales.md`, `rationales.csv` and `rationales.json` into `out`.

    Evidence that the verifier would cut is shortened to the whole pieces before the cut, for all methods alike. The table says how
    many rows lost pieces, and how many a human rationale. Rows without a rationale left, or on which CURE marks nothing, are left
    out for all methods. The baselines mark as many words and pieces of each row as CURE does.

    With `full` all rows are scored, not the first by a hash of their ids.
    """
    verifier, explainer = recipe.verifier, recipe.explainer
    engine = Classifier(model=verifier, max_length=recipe.max_length)
    seeds = recipe.seeds if recipe.seed is None else list(range(recipe.seed, recipe.seed + len(recipe.seeds)))
    corpora: list[dict[str, Any]] = []
    for source in recipe.corpora:
        options = {key: value for key, value in source.items() if key != "name"}
        options = recipes.locate(options | ({"split": recipe.split} if recipe.split else {}), recipe.data_dir)
        picked = pick(load_rows([options], extra=("rationales",)).to_list(), None if full else recipe.rows)
        rows, cut = shorten(picked, engine)
        marked = cure(rows, verifier, explainer, engine.max_length)
        pairs = [(row, marks) for row, marks in zip(rows, marked, strict=True) if marks is not None]
        rows, budgets = [row for row, _ in pairs], [marks for _, marks in pairs]
        methods = {
            "cure": [budgets],
            BASELINE: [gradient(rows, budgets, verifier, engine.max_length)],
            "lexical": [lexical(rows, budgets)],
            "random": [at_random(rows, budgets, seed) for seed in seeds],
        }
        scores = {method: np.mean([score(rows, marks, engine) for marks in draws], axis=0) for method, draws in methods.items()}
        labels = [answer["label"] for answer in faithfulness(rows, [[] for _ in rows], engine)]
        part: dict[str, Any] = {"corpus": source.get("name") or corpus_name(source["corpus"]), "rows": len(rows), **cut}
        part["CURE marked nothing"] = len(marked) - len(rows)
        part["verifier right"] = sum(label == row["label"] for label, row in zip(labels, rows, strict=True))
        part["verifier says NOT ENOUGH INFO"] = labels.count(NOT_ENOUGH_INFO)
        part["methods"] = {method: _summary(values, scores[BASELINE]) for method, values in scores.items()}
        corpora.append(part)
    models = {"verifier": verifier.name, "adapter": verifier.adapter, "explainer": explainer.name}
    report = {**models, "max_length": engine.max_length, "seeds": seeds, "full": full, "corpora": corpora}
    out.mkdir(parents=True, exist_ok=True)
    (out / "rationales.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    (out / "rationales.md").write_text(markdown(report), encoding="utf-8")
    differences = ("token_f1_minus_gradient", "low", "high")
    lines = [
        {**part, "method": method, **values, **dict(zip(differences, values["token_f1 − gradient"], strict=True))}
        for part in corpora
        for method, values in part["methods"].items()
    ]
    (out / "rationales.csv").write_text(long_table(lines).to_csv(index=False, lineterminator="\n"), encoding="utf-8")
    return report


def pick(rows: list[dict[str, Any]], number: int | None) -> list[dict[str, Any]]:
    """Return the first rows by a hash of their ids."""
    return sorted(rows, key=lambda row: hashlib.sha256(row["id"].encode()).hexdigest())[:number]


def shorten(rows: Sequence[dict[str, Any]], engine: Classifier) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Keep the pieces of evidence that the verifier reads whole, and the rows with a human rationale in them; count losses."""
    tokenizer, inputs = read_tokenizer(engine.model), read_spec(engine.model).inputs
    shortened, lost, gold_lost = [], 0, 0
    for row in rows:
        if row["label"] == NOT_ENOUGH_INFO or not row["rationales"]:
            continue
        text, parts = join(row["evidence"])
        [(_, spans)] = encode_spans(tokenizer, [[row["claim"], text]], engine.max_length, inputs)
        read = max((span[1] for span in spans if span is not None), default=0)
        number = len(row["evidence"])
        if text[read:].strip():
            number = min(part.piece for part in parts if len(text[: part.end].rstrip()) > read)
        gold = [span for span in row["rationales"] if span["piece"] < number]
        lost += number < len(row["evidence"])
        gold_lost += len(gold) < len(row["rationales"])
        if gold:
            shortened.append({**row, "evidence": row["evidence"][:number], "rationales": gold})
    return shortened, {"cut": lost, "cut gold": gold_lost, "without gold": len(rows) - len(shortened)}


def score(rows: Sequence[dict[str, Any]], marked: Sequence[Marks], engine: Classifier) -> np.ndarray:
    """Score what a method marks: rows × `COLUMNS`."""
    values = []
    for row, marks, faithful in zip(rows, marked, faithfulness(rows, [marks.spans for marks in marked], engine), strict=True):
        evidence, human = row["evidence"], row["rationales"]
        pieces = [{"field": "evidence", "piece": i, "start": 0, "end": len(evidence[i]["text"])} for i in marks.pieces]
        by_word, by_piece = agreement(marks.spans, human, evidence), agreement(pieces, human, evidence)
        texts = [word.marked for word in words(evidence, marks.spans) if word.field == "evidence"]
        agreed = [(by_word if name.startswith("token") else by_piece)[name] for name in SCORES]
        values.append([*agreed, faithful["sufficiency"], faithful["comprehensiveness"], sum(texts) / max(1, len(texts))])
    return np.array(values, dtype=np.float64).reshape(len(rows), len(COLUMNS))


def _summary(values: np.ndarray, baseline: np.ndarray, resamples: int = 10_000) -> dict[str, Any]:
    means = {name: round(float(mean), 4) for name, mean in zip(COLUMNS, values.mean(axis=0), strict=True)}
    return {**means, "token_f1 − gradient": interval(values[:, 2] - baseline[:, 2], resamples)}


def interval(differences: np.ndarray, resamples: int = 10_000, seed: int = 0) -> list[float]:
    """Return a mean of paired differences and its 95% bootstrap interval, rows drawn again."""
    if not len(differences):
        return [math.nan] * 3
    drawn = np.random.default_rng(seed).integers(0, len(differences), size=(resamples, len(differences)))
    low, high = np.quantile(differences[drawn].mean(axis=1), [0.025, 0.975])
    return [round(float(value), 4) for value in (differences.mean(), low, high)]


def markdown(report: Mapping[str, Any]) -> str:
    """Return the table, one part for each corpus."""
    names = ("token P", "token R", "token F1", "sent. P", "sent. R", "sent. F1", "suff.", "compr.", "marked", "token F1 − gradient")
    text = []
    for part in report["corpora"]:
        lines = []
        for method, values in part["methods"].items():
            mean, low, high = values["token_f1 − gradient"]
            difference = "" if method == BASELINE else f"{mean:+.3f} ({low:+.3f} to {high:+.3f})"
            lines.append([method, *(f"{values[name]:.3f}" for name in COLUMNS), difference])
        text += [f"**{part['corpus']}**, {part['rows']} rows", "", table(["method", *names], lines)]
        lost = (
            f"{part['cut']} rows lost pieces past {report['max_length']} tokens, {part['cut gold']} of them a human rationale. "
            f"Left out for all methods: {part['without gold']} rows without a human rationale (left) or NOT ENOUGH INFO, and "
            f"{part['CURE marked nothing']} on which CURE marks nothing. The verifier is right on {part['verifier right']} rows "
            f"and says NOT ENOUGH INFO on {part['verifier says NOT ENOUGH INFO']}."
        )
        text += ["", lost, ""]
    text.append(
        "P, R and F1: agreement with human rationales, means over rows. suff.: p(prediction) lost on the marked words alone (low "
        "is better); compr.: lost without them (high is better). marked: share of the texts' words; the others mark as many words "
        "and pieces of a row as CURE does (lexical at most as many words). Titles are never marked, by any method. The last "
        f"column is a paired bootstrap over rows, 95%. random: mean of {len(report['seeds'])} seeds."
    )
    return "\n".join(text) + "\n"
