"""Compare the counterfactuals of several runs: RGF's Figures 3 to 5 (Paranjape et al. 2022, appendix C.1)."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hfcf.core.edits import word_distance
from hfcf.core.task import task_of
from hfcf.corpora.custom.rows import read_rows
from hfcf.metrics.question_types import common_types
from hfcf.metrics.scores.consistency import ORDER, edit_bin
from hfcf.studies.compare.figure import COLOURS, store
from hfcf.studies.compare.tables import page, points, table
from hfcf.systems.rgf.answer_candidates import DISTANCE, RANK

LONGEST = 20
"""Words of the last bar of the histogram, which holds all longer distances."""


@dataclass(frozen=True)
class Texts:
    """What is analysed of a run.

    Args:
        pairs: the text before and after, of each accepted counterfactual.
        ranks: retrieval rank and word edit distance of each candidate that has both scores, rejected candidates included.
    """

    pairs: list[tuple[str, str]]
    ranks: list[tuple[int, float]]

    @property
    def distances(self) -> list[int]:
        """The word edit distance of each pair; case and punctuation do not count."""
        return [word_distance(*pair) for pair in self.pairs]


def read_run(folder: str | Path) -> Texts:
    """Read what is analysed of a run's folder.

    A rejected candidate has a rank and a distance if a later question was nearer. So the ranks are the ranks of all questions that
    passed the filters, and not of the nearest questions alone.
    """
    pairs, ranks = [], []
    for row in read_rows(folder):
        if row.get("edits") is None:
            raise ValueError(f"{folder}: row {row.get('id')!r} has no edits: give the folder of a run")
        pairs.append(task_of(row).changed(row))
        ranks += _ranks(row)
    rejected = Path(folder) / "data" / "rejected"
    for row in read_rows(rejected) if rejected.is_dir() else ():
        ranks += _ranks(row["candidate"]) if row["candidate"] else []
    return Texts(pairs, ranks)


def _ranks(row: Mapping[str, Any]) -> list[tuple[int, float]]:
    scores = {score["name"]: score["value"] for score in row.get("scores") or []}
    return [(int(scores[RANK]), scores[DISTANCE])] if RANK in scores and DISTANCE in scores else []


def distance_by_rank(ranks: Iterable[tuple[int, float]]) -> dict[int, tuple[float, int]]:
    """Average the edit distance by retrieval rank (Figure 4)."""
    groups: dict[int, list[float]] = {}
    for rank, distance in ranks:
        groups.setdefault(rank, []).append(distance)
    return {rank: (statistics.fmean(groups[rank]), len(groups[rank])) for rank in sorted(groups)}


def histogram(distances: Iterable[int]) -> dict[int, float]:
    """Return the share (0–1) of each distance from 0; the last share holds all longer distances (Figure 3)."""
    capped = [min(distance, LONGEST) for distance in distances]
    return {n: capped.count(n) / max(len(capped), 1) for n in range(LONGEST + 1)}


def analyse(runs: Mapping[str, str | Path], out: str | Path) -> dict[str, Any]:
    """Write what the counterfactuals of runs look like: `analyses.md`, and the figures as `figure.svg` and `figure.png`."""
    if not runs:
        raise ValueError("analyse: give one run or more, as NAME=FOLDER")
    texts, folder = {name: read_run(path) for name, path in runs.items()}, Path(out)
    means = {name: statistics.fmean(run.distances) if run.pairs else None for name, run in texts.items()}
    folder.mkdir(parents=True, exist_ok=True)
    store(lambda: _figure(texts), folder)
    path = folder / "analyses.md"
    path.write_text(_page(texts, means), encoding="utf-8")
    return {"page": str(path), "mean_distance": means}


def _page(texts: Mapping[str, Texts], means: Mapping[str, float | None]) -> str:
    rows = []
    for name, run in texts.items():
        of_bins = [edit_bin(distance) for distance in run.distances]
        shares = [points(of_bins.count(each) / len(of_bins)) if of_bins else "–" for each in ORDER]
        mean = means[name]
        rows.append([name, f"{len(run.pairs):,}", "–" if mean is None else f"{mean:.1f}", *shares])
    header = ["Run", "Counterfactuals", "Mean distance", *(f"{each} (%)" for each in ORDER)]
    sections = ["## Word edit distance from the source (Figure 3, and the bins of Table 9)", table(header, rows)]
    for name, run in texts.items():
        if by_rank := distance_by_rank(run.ranks):
            lines = [[f"{rank}", f"{mean:.2f}", f"{n:,}"] for rank, (mean, n) in by_rank.items()]
            sections += [f"## Mean distance by retrieval rank: {name} (Figure 4)", table(["Rank", "Mean", "Questions"], lines)]
    for name, run in texts.items():
        before, after = (common_types(pair[i] for pair in run.pairs) for i in (0, 1))
        lines = [[kind, points(before.get(kind)), points(after.get(kind))] for kind in dict.fromkeys([*before, *after])]
        sections += [f"## The 20 commonest types of questions: {name} (%, Figure 5)", table(["Type", "Before", "After"], lines)]
    legend = [
        "Words are compared without case and punctuation. –: not among the 20 commonest of that side.",
        "Ranks are of all questions that passed the filters before the nearest was chosen.",
        "Rand. Agen-Qgen pairs questions with sources at random.",
    ]
    return page("What the counterfactuals are like", "", legend, sections)


def _figure(texts: Mapping[str, Texts]) -> Any:
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(8, 3), layout="constrained")
    left, right = drawn.subplots(1, 2)
    for i, (name, run) in enumerate(texts.items()):
        colour = COLOURS[i % len(COLOURS)]
        shares = histogram(run.distances)
        left.plot(list(shares), [100 * share for share in shares.values()], color=colour, label=name, marker=".")
        if by_rank := distance_by_rank(run.ranks):
            right.plot(list(by_rank), [mean for mean, _ in by_rank.values()], color=colour, label=name, marker=".")
    left.set_xlabel(f"word edit distance ({LONGEST}: all longer ones)")
    left.set_ylabel("% of the counterfactuals")
    right.set_xlabel("retrieval rank")
    right.set_ylabel("mean word edit distance")
    left.legend(fontsize=8, frameon=False)
    return drawn
