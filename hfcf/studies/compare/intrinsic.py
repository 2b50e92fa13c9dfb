"""What counterfactual claims are like, without training on them: the columns of RACE's Table 4 but its fluency."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset

from hfcf.core.expand import expand
from hfcf.core.model import Model
from hfcf.core.store import save_artifact
from hfcf.core.task import task_of
from hfcf.metrics.coherence import coherences
from hfcf.metrics.diversity import inverse_bleu
from hfcf.metrics.shared.info import mean
from hfcf.metrics.shared.moverscore import MoverScore, fit_idf
from hfcf.studies.compare.cells import digest
from hfcf.studies.compare.runner import READY, Comparison, counterfactuals
from hfcf.tasks.verification import opposite
from hfcf.training.loop import trained_model

_WRITERS = re.compile("generate_claim$|rewrite_")  # the stages that write claims


def intrinsic_rows(comparison: Comparison, encoder: Model, work: Path) -> list[dict[str, Any]]:
    """Score each method whose counterfactuals are claims, and its candidates before post-check and filter (−FILTER).

    Args:
        comparison: from `open_comparison`.
        encoder: of MoverScore.
        work: where the verifiers without augmentation lie.

    Returns:
        `Method`, `Flip` and what `intrinsic` gives. `Flip`, as in the paper, is the accuracy on (c′, E, y′) of the verifiers that
        were trained without augmentation, which checked nothing; the mean over seeds.
    """
    sample, rows = comparison.samples[0], []
    flippers = [(one, seed) for one in comparison.methods if one.plain for seed in comparison.seeds]
    of_flip = [comparison.definition(one, sample, seed) for one, seed in flippers]
    for method in comparison.methods:
        # "w/ (c, E′, REF)", copies and judged rows have no claims of their own, and what keeps the label makes no counterfactual.
        flips = method.system is not None and method.system.flips and not method.copies and not method.judged and not method.debias
        if not flips or method.changes != ("claim",):
            continue
        key = digest(["intrinsic", comparison.definition(method, sample, 0), encoder.key(), of_flip])
        if (cell := comparison.cells.get(key)) is None:
            folders = [comparison.folder(one, sample, seed, work) for one, seed in flippers]
            ready = all((folder / READY).is_file() for folder in folders)
            cell = {"rows": _rows(comparison, method, encoder, work, folders if ready else [])}
            if all(row["Flip"] is not None or not row["n"] for row in cell["rows"]):
                comparison.cells.put(key, {"table": "intrinsic", "method": method.name, **cell})
        rows += [{**row, "Method": method.name + row["Method"]} for row in cell["rows"]]
    return rows


def _rows(comparison: Comparison, method: Any, encoder: Model, work: Path, verifiers: Sequence[Path]) -> list[dict[str, Any]]:
    sample = comparison.samples[0]
    rows, _ = counterfactuals(comparison, method, sample, work)
    if rows is None:
        return []
    mover = MoverScore(model=encoder, idf=save_artifact(fit_idf(sample.train["claim"], encoder)))
    parts = {"": claims(rows), " −FILTER": candidates(rows)}
    if len(parts[""]) == len(parts[" −FILTER"]):  # nothing was filtered
        del parts[" −FILTER"]
    return [{"Method": name, "Flip": _flip(comparison, part, verifiers), **intrinsic(part, mover)} for name, part in parts.items()]


def _flip(comparison: Comparison, claims: Sequence[Mapping[str, Any]], verifiers: Sequence[Path]) -> float | None:
    """Return the mean accuracy of the verifiers on the counterfactuals; None if they are not all there."""
    if not claims or not verifiers:
        return None
    sample = comparison.samples[0]
    rows = Dataset.from_list([{key: row[key] for key in ("claim", "evidence", "label")} for row in claims])
    rates = []
    for folder in verifiers:
        model = trained_model(sample.hp, folder)
        answers = comparison.trainer.predict(rows, model, max_length=sample.hp.max_length, labels=sample.labels)
        rates.append(statistics.fmean(one == label for one, label in zip(answers, rows["label"], strict=True)))
    return statistics.fmean(rates)


def claims(rows: Dataset) -> list[dict[str, Any]]:
    """Return the accepted counterfactuals (c′, E, y′), each with its source's claim as `source_claim`."""
    sources = dict(zip(rows["id"], rows["claim"], strict=True))
    columns = task_of(rows.features).features
    changed = [row for row in expand(rows) if row["change"] == "claim"]
    return [{**{column: row[column] for column in columns}, "source_claim": sources[row["source_id"]]} for row in changed]


def candidates(rows: Dataset) -> list[dict[str, Any]]:
    """Return all generated claims: what there is before the post-check and the filter (−FILTER of the paper's Table 4).

    What the generator's own stage rejected, a claim that was cut off or that names no causal entity, is not among them.
    """
    columns, generated = list(task_of(rows.features).features), []
    for row in rows.select_columns([*columns, "candidates"]):
        source = {column: row[column] for column in columns}
        claims = [one for one in row["candidates"] or [] if one["change"] == "claim"]
        written = [one for one in claims if not (one["status"] and _WRITERS.match(one["status"]["stage"]))]
        for i, one in enumerate(written):
            label = one["label"] or opposite(row["label"])
            generated.append(
                {**source, "id": f"{row['id']}:{i}", "claim": one["claim"], "label": label, "source_claim": row["claim"]}
            )
    return generated


def intrinsic(claims: Sequence[Mapping[str, Any]], mover: MoverScore) -> dict[str, Any]:
    """Return similarity, diversity, multi-hop coherence and the number of counterfactual claims.

    Args:
        claims: rows with `claim` (c′), `source_claim` (c) and `evidence` (E).
        mover: MoverScore, with its encoder and IDF weights.

    Returns:
        `Sim`, the mean MoverScore of c′ and c; `Div`, 1 / BLEU of the c′ against the c (corpus BLEU, 0–1: the paper says "the
        inverse of the BLEU score" and not which); `M.h.`, the mean over rows of the mean MoverScore of c′ and each piece of E; `n`.
        None of nothing.

    Source: Zhu et al. 2023, RACE, Table 4. Deviation: the comparison leaves out Flu., the perplexity of GPT-2; `hfcf.measure(rows,
    {"fluency": {"model": "gpt2"}})` measures it of published counterfactuals.
    """
    if not claims:
        return {"Sim": None, "Div": None, "M.h.": None, "n": 0}
    similar = mover.run([[row["source_claim"], row["claim"]] for row in claims])
    evidence = [[piece["text"] for piece in row["evidence"]] for row in claims]
    coherent = coherences(mover, [row["claim"] for row in claims], evidence)
    diverse = inverse_bleu([row["claim"] for row in claims], [row["source_claim"] for row in claims])
    return {"Sim": statistics.fmean(similar), "Div": diverse, "M.h.": mean(coherent), "n": len(claims)}
