"""What counterfactual claims are like, without training on them: the columns of RACE's Table 4 but its fluency."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset

from hfcf.core.store import save_artifact
from hfcf.engines.classifier import Classifier, choose
from hfcf.metrics.coherence import coherences
from hfcf.metrics.diversity import inverse_bleu
from hfcf.metrics.shared.info import mean
from hfcf.metrics.shared.moverscore import MoverScore, fit_idf
from hfcf.studies.compare.arms import Arm, candidates, claims
from hfcf.studies.compare.verifiers import READY, Comparison, counterfactuals, folder_of
from hfcf.training.loop import trained_model
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
    found = []
    for arm in comparison.arms:
        # "w/ (c, E′, REF)" and copies have no claims of their own, and what keeps the label makes no counterfactual.
        if arm.system is None or not arm.system.flips or arm.copies or arm.debias or arm.changes != ("claim",):
            continue
        flippers = [(one, seed) for one in comparison.arms if one.plain for seed in comparison.seeds]
        of_flip = [comparison.definition(one, seed) for one, seed in flippers]
        key = ["intrinsic", arm.name], {**comparison.definition(arm, 0), "encoder": comparison.encoder.key(), "flip": of_flip}
        cell = comparison.cells.get(*key)
        if cell is None:
            verifiers = [folder for one, seed in flippers if ((folder := folder_of(comparison, one, seed, work)) / READY).is_file()]
            rows = _rows(comparison, arm, work, verifiers if len(verifiers) == len(flippers) else [])
            if all(row["Flip"] is not None or not row["n"] for row in rows):
                comparison.cells.put(*key, {"rows": rows})
        else:
            rows = cell["rows"]
        found += [{**row, "Method": arm.name + row["Method"]} for row in rows]
    return found


def _rows(comparison: Comparison, arm: Arm, work: Path, verifiers: Sequence[Path]) -> list[dict[str, Any]]:
    rows = counterfactuals(comparison, arm, work)
    if rows is None:
        return []
    idf = save_artifact(fit_idf(comparison.rows["claim"], comparison.encoder))
    mover = MoverScore(model=comparison.encoder, idf=idf)
    made = {"": claims(rows), " −FILTER": candidates(rows)}
    if len(made[""]) == len(made[" −FILTER"]):  # nothing was filtered
        del made[" −FILTER"]
    return [{"Method": name, "Flip": _flip(comparison, its, verifiers), **intrinsic(its, mover)} for name, its in made.items()]


def _flip(comparison: Comparison, found: Sequence[Mapping[str, Any]], verifiers: Sequence[Path]) -> float | None:
    """The mean accuracy of the verifiers on the counterfactuals; None if they are not all there."""
    if not found or not verifiers:
        return None
    rows = Dataset.from_list([{key: row[key] for key in ("claim", "evidence", "label")} for row in found])
    rates = []
    for folder in verifiers:
        engine = Classifier(model=trained_model(comparison.hp, folder), max_length=comparison.hp.max_length)
        answers = zip(predict(rows, engine), rows["label"], strict=True)
        rates.append(statistics.fmean(choose(answer, comparison.labels) == label for answer, label in answers))
    return statistics.fmean(rates)


def intrinsic(found: Sequence[Mapping[str, Any]], mover: MoverScore) -> dict[str, Any]:
    """Similarity, diversity, multi-hop coherence and the number of counterfactual claims.

    Args:
        found: rows with `claim` (c′), `source_claim` (c) and `evidence` (E), as `hfcf.studies.compare.arms.claims` gives them.
        mover: MoverScore, with its encoder and IDF weights.

    Returns:
        `Sim`, the mean MoverScore of c′ and c; `Div`, 1 / BLEU of the c′ against the c (corpus BLEU, 0–1: the paper says "the
        inverse of the BLEU score" and not which); `M.h.`, the mean over rows of the mean MoverScore of c′ and each piece of E; `n`.
        None of nothing.

    Source: Zhu et al. 2023, RACE, Table 4. Deviation: the comparison leaves out Flu., the perplexity of GPT-2; `hfcf.measure(rows,
    {"fluency": {"model": "gpt2"}})` measures it of published counterfactuals.
    """
    if not found:
        return {"Sim": None, "Div": None, "M.h.": None, "n": 0}
    similar = mover.run([[row["source_claim"], row["claim"]] for row in found])
    evidence = [[piece["text"] for piece in row["evidence"]] for row in found]
    coherent = coherences(mover, [row["claim"] for row in found], evidence)
    diverse = inverse_bleu([row["claim"] for row in found], [row["source_claim"] for row in found])
    return {"Sim": statistics.fmean(similar), "Div": diverse, "M.h.": mean(coherent), "n": len(found)}
