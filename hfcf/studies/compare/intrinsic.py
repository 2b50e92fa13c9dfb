"""What counterfactual claims are like, without training on them: the columns of RACE's Table 4, and two of ours."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset

from hfcf.core.artifacts import save_artifact
from hfcf.core.expand import expand
from hfcf.core.model import Model
from hfcf.core.task import apply_edits, task_of
from hfcf.engines.perplexity import Perplexity
from hfcf.metrics.coherence import coherences
from hfcf.metrics.copy_rate import copy_rate
from hfcf.metrics.diversity import inverse_bleu
from hfcf.metrics.multi_hop import count_covered, multi_hop
from hfcf.metrics.shared.metric import mean
from hfcf.metrics.shared.moverscore import MoverScore, fit_idf
from hfcf.studies.compare.comparison import READY, Comparison, Job, asked_model, counterfactuals
from hfcf.studies.compare.methods import VERSION
from hfcf.studies.compare.results import digest
from hfcf.tasks.verification import opposite

_WRITERS = re.compile("generate_claim$|rewrite_")  # the stages that write claims


def intrinsic_rows(comparison: Comparison, encoder: Model, language_model: Model | None, work: Path) -> list[dict[str, Any]]:
    """Score each method whose counterfactuals are claims, and its candidates before post-check and filter (−FILTER)."""
    # Flip, as in the paper, is the accuracy on (c′, E, y′) of the verifiers without augmentation, which checked nothing.
    sample, rows, seeds = comparison.samples[0], list[dict[str, Any]](), comparison.recipe.seeds
    flippers = [Job(method, sample, seed) for method in comparison.methods if method.adds_nothing for seed in seeds]
    for method in comparison.methods:
        # "w/ (c, E′, REF)", copies and judged rows have no claims of their own, and what keeps the label makes no counterfactual.
        flips = method.system is not None and method.system.flips and not method.control and not method.debias
        if not flips or method.changes != ("claim",):
            continue
        job, models = Job(method, sample, 0), [encoder.key(), language_model and language_model.key()]
        key = digest(["intrinsic", VERSION, comparison.definition(job), models, [comparison.definition(each) for each in flippers]])
        if (cell := comparison.cells.get(key)) is None:
            folders = [comparison.folder(each, work) for each in flippers]
            ready = all((folder / READY).is_file() for folder in folders)
            cell = {"rows": _rows(comparison, job, (encoder, language_model), work, flippers if ready else [])}
            if all(row["Flip"] is not None or not row["n"] for row in cell["rows"]):
                comparison.cells.put(key, {"table": "intrinsic", "method": method.name, "versions": method.versions, **cell})
        rows += [{**row, "Method": method.name + row["Method"]} for row in cell["rows"]]
    return rows


def _rows(
    comparison: Comparison, job: Job, models: tuple[Model, Model | None], work: Path, verifiers: Sequence[Job]
) -> list[dict[str, Any]]:
    encoder, language_model = models
    rows, _ = counterfactuals(comparison, job, work)
    if rows is None:
        return []
    mover = MoverScore(model=encoder, idf=save_artifact(fit_idf(job.sample.train["claim"], encoder)))
    parts = {"": claims(rows), " −FILTER": candidates(rows)}
    if len(parts[""]) == len(parts[" −FILTER"]):  # nothing was filtered
        del parts[" −FILTER"]
    return [
        {"Method": name, "Flip": _flip(comparison, part, verifiers, work), **intrinsic(part, mover, language_model)}
        for name, part in parts.items()
    ]


def _flip(comparison: Comparison, claims: Sequence[Mapping[str, Any]], verifiers: Sequence[Job], work: Path) -> float | None:
    """Return the mean accuracy of the verifiers on the counterfactuals; None if they are not all there."""
    if not claims or not verifiers:
        return None
    rows = Dataset.from_list([{key: row[key] for key in ("claim", "evidence", "label")} for row in claims])
    rates = []
    for job in verifiers:
        model, trainer = asked_model(comparison, job, work), comparison.trainer(job)
        answers = trainer.predict(rows, model, max_length=job.hp.max_length, labels=job.sample.labels)
        rates.append(statistics.fmean(answer == label for answer, label in zip(answers, rows["label"], strict=True)))
    return statistics.fmean(rates)


def claims(rows: Dataset) -> list[dict[str, Any]]:
    """Return the accepted counterfactuals (c′, E, y′), each with its source's claim as `source_claim`.

    `edited_versions` are what the evidence of its source was edited to (E′), if it was.
    """
    sources = dict(zip(rows["id"], rows["claim"], strict=True))
    edited = {row["id"]: _edited_versions(row) for row in rows}
    columns = task_of(rows.features).features
    changed = [row for row in expand(rows) if row["change"] == "claim"]
    return [
        {
            **{column: row[column] for column in columns}, "source_claim": sources[row["source_id"]],
            "edited_versions": edited[row["source_id"]],
        }
        for row in changed
    ]  # fmt: skip


def _edited_versions(row: Mapping[str, Any]) -> list[Any]:
    edited = [
        candidate["edits"] for candidate in row["candidates"] or [] if candidate["change"] == "evidence" and candidate["edits"]
    ]
    return [apply_edits(row, edits)["evidence"] for edits in edited]


def candidates(rows: Dataset) -> list[dict[str, Any]]:
    """Return all generated claims: what there is before the post-check and the filter (−FILTER of the paper's Table 4).

    What the generator's own stage rejected, a claim that was cut off or that names no causal entity, is not among them.
    """
    columns, generated = list(task_of(rows.features).features), []
    for row in rows.select_columns([*columns, "candidates"]):
        source = {column: row[column] for column in columns}
        versions = _edited_versions(row)
        claims = [candidate for candidate in row["candidates"] or [] if candidate["change"] == "claim"]
        written = [claim for claim in claims if not (claim["status"] and _WRITERS.match(claim["status"]["stage"]))]
        for i, candidate in enumerate(written):
            label = candidate["label"] or opposite(row["label"])
            new = {"id": f"{row['id']}:{i}", "claim": candidate["claim"], "label": label}
            generated.append({**source, **new, "source_claim": row["claim"], "edited_versions": versions})
    return generated


def intrinsic(claims: Sequence[Mapping[str, Any]], mover: MoverScore, language_model: Model | None = None) -> dict[str, Any]:
    """Return fluency, similarity, diversity, multi-hop coherence, copy rate, multi-hop share and the number of new claims.

    Args:
        claims: rows with `claim` (c′), `source_claim` (c), `evidence` (E) and `edited_versions` (of E, see `claims`).
        mover: MoverScore, with its encoder and IDF weights.
        language_model: of the perplexity; the paper's is GPT-2. Perplexities of different models can't be compared.

    Returns:
        `Flu`, the mean perplexity of c′, without a model left out; `Sim`, the mean MoverScore of c′ and c. `Div` is 1 / BLEU of
        the c′ against the c: corpus BLEU, 0–1, because the paper says "the inverse of the BLEU score" and not which. `M.h.` is the
        mean over rows of the mean MoverScore of c′ and each piece of the evidence. `Copied` is the mean of
        `hfcf.metrics.copy_rate`, the longest run of c′ that is in a piece of E or of an edited version. `Combined` is the share of
        c′ for which `hfcf.metrics.multi_hop` holds on the text with more words of c′. This text is E or the edited version, E if
        equal. `n` is the number of rows. None if there is nothing.

    Source: Zhu et al. 2023, RACE, Table 4; `Copied` and `Combined` are ours.
    """
    if not claims:
        return {**({"Flu": None} if language_model else {}), **dict.fromkeys(("Sim", "Div", "M.h.", "Copied", "Combined")), "n": 0}
    fluent = {"Flu": mean(Perplexity(model=language_model).run([row["claim"] for row in claims]))} if language_model else {}
    similar = mover.run([[row["source_claim"], row["claim"]] for row in claims])
    evidence = [[piece["text"] for piece in row["evidence"]] for row in claims]
    coherent = coherences(mover, [row["claim"] for row in claims], evidence)
    diverse = inverse_bleu([row["claim"] for row in claims], [row["source_claim"] for row in claims])
    copied = [copy_rate(row["claim"], [text for texts in _versions(row) for piece in texts for text in piece]) for row in claims]
    combined = [multi_hop(row["claim"], _likeliest_origin(row)) for row in claims]
    return {
        **fluent, "Sim": statistics.fmean(similar), "Div": diverse, "M.h.": mean(coherent), "Copied": mean(copied),
        "Combined": mean(combined), "n": len(claims),
    }  # fmt: skip


def _versions(row: Mapping[str, Any]) -> list[list[tuple[str, str]]]:
    """List the titles and texts of the pieces of the evidence, then of its edited versions."""
    versions = [row["evidence"], *row["edited_versions"]]
    return [[(piece["title"] or "", piece["text"]) for piece in version] for version in versions]


def _likeliest_origin(row: Mapping[str, Any]) -> list[str]:
    """Return the pieces of the version of the evidence that has most words of the claim; of equals the first, the unedited."""
    joined = [[" ".join(piece) for piece in version] for version in _versions(row)]
    return max(joined, key=lambda pieces: count_covered(row["claim"], pieces)[0])
