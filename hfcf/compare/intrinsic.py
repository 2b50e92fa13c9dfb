"""What counterfactual claims are like, without training on them: the columns of RACE's Table 4 that need no language model."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset

from hfcf.compare.arms import Arm, candidates, claims
from hfcf.compare.cells import digest
from hfcf.compare.verifiers import TWO, Comparison, counterfactuals, folder_of
from hfcf.engines.classifier import Classifier, choose
from hfcf.entities import save_fitted
from hfcf.metrics.moverscore import MoverScore, fit_idf
from hfcf.training.loop import trained
from hfcf.training.verifier import predict


def intrinsic_rows(comparison: Comparison, work: Path) -> list[dict[str, Any]]:
    """The table's rows: each method whose counterfactuals are claims, and its candidates before post-check and filter (−FILTER).

    Args:
        comparison: from `open_comparison`.
        work: where the verifiers without augmentation lie.

    Returns:
        `Method`, `Flip` and what `intrinsic` gives. `Flip`, as in the paper, is the accuracy on (c′, E, y′) of the verifiers that
        were trained without augmentation, which checked nothing; the mean over seeds.
    """
    idf = save_fitted(fit_idf(comparison.rows["claim"], comparison.encoder))
    mover = MoverScore(model=comparison.encoder, idf=idf)
    found = []
    for arm in comparison.arms:
        # "w/ (c, E′, REF)" has the claims of another method.
        if arm.changes != ("claim",) or (rows := counterfactuals(comparison, arm, work)) is None:
            continue
        for name, its in ((arm.name, claims(rows)), (f"{arm.name} −FILTER", candidates(rows))):
            found.append({"Method": name, "Flip": _flip(comparison, its, work), **intrinsic(its, mover)})
    return found


def _flip(comparison: Comparison, found: Sequence[Mapping[str, Any]], work: Path) -> float | None:
    rates = [_flip_of(comparison, arm, seed, found, work) for arm in comparison.arms if not arm.system for seed in comparison.seeds]
    known = [rate for rate in rates if rate is not None]
    return statistics.fmean(known) if known else None


def _flip_of(comparison: Comparison, arm: Arm, seed: int, found: Sequence[Mapping[str, Any]], work: Path) -> float | None:
    """One verifier's accuracy, a cell of its own; None if it is not stored and the cell is not there."""
    key = ["flip", arm.name, seed], {**comparison.definition(arm, seed), "rows": digest(list(found))}
    folder = folder_of(comparison, arm, seed, work)
    cell = comparison.cells.get(*key)
    if cell is None and found and (folder / "config.json").is_file():
        engine = Classifier(model=trained(comparison.hp, folder), max_length=comparison.hp.max_length)
        rows = Dataset.from_list([{key: row[key] for key in ("claim", "evidence", "label")} for row in found])
        right = [choose(answer, TWO) == row["label"] for answer, row in zip(predict(rows, engine), found, strict=True)]
        cell = {"flip": statistics.fmean(right), "rows": len(right)}
        comparison.cells.put(*key, cell)
    return None if cell is None else cell["flip"]


def intrinsic(found: Sequence[Mapping[str, Any]], mover: MoverScore) -> dict[str, Any]:
    """Similarity, diversity, multi-hop coherence and the number of counterfactual claims.

    Args:
        found: rows with `claim` (c′), `source_claim` (c) and `evidence` (E), as `hfcf.compare.arms.claims` gives them.
        mover: MoverScore, with its encoder and IDF weights.

    Returns:
        `Sim`, the mean MoverScore of c′ and c; `Div`, 1 / BLEU of the c′ against the c (corpus BLEU, 0–1: the paper says "the
        inverse of the BLEU score" and not which); `M.h.`, the mean over rows of the mean MoverScore of c′ and each piece of E; `n`.
        None of nothing.

    Source: Zhu et al. 2023, RACE, Table 4. Flu., the perplexity of GPT-2, is not here yet.
    """
    if not found:
        return {"Sim": None, "Div": None, "M.h.": None, "n": 0}
    from sacrebleu.metrics import BLEU

    similar = mover.run([[row["source_claim"], row["claim"]] for row in found])
    texts = [[piece["text"] for piece in row["evidence"]] for row in found]
    each = iter(mover.run([[text, row["claim"]] for row, its in zip(found, texts, strict=True) for text in its]))
    coherent = [statistics.fmean(next(each) for _ in its) for its in texts if its]
    bleu = BLEU().corpus_score([row["claim"] for row in found], [[row["source_claim"] for row in found]]).score / 100
    return {
        "Sim": statistics.fmean(similar), "Div": 1 / bleu if bleu else None, "M.h.": statistics.fmean(coherent), "n": len(found),
    }  # fmt: skip
