"""Runs beside each other: distances, ranks, types of questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from typer.testing import CliRunner

from hfcf.cli import app
from hfcf.core.task import get_task
from hfcf.studies.analyses import analyse, distance_by_rank, histogram, read_run
from hfcf.systems.rgf.answer_candidates import DISTANCE, RANK
from hfcf.tasks.qa import rewrite_all

TASK = get_task("qa")


def made(i: int, question: str, rank: int) -> dict[str, Any]:
    old = {
        "title": "",
        "context": "Ada built it.",
        "question": f"who built town {i}",
        "answers": {"text": ["Ada"], "answer_start": [0]},
    }
    new = {"context": "Byron left it.", "question": question, "answers": {"text": ["Byron"], "answer_start": [0]}}
    scores = [{"name": RANK, "value": float(rank)}, {"name": DISTANCE, "value": 2.0}]
    return {
        **old, **new, "id": f"{i}:rgf", "group_id": str(i), "corpus": "made", "split": "train", "source_id": str(i),
        "system": "rgf", "change": "predicate", "edits": rewrite_all(old, **new), "scores": scores,
    }  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Path:
    rows = [made(1, "Who built town 1?", 1), made(2, "when was it that town 2 was left by him", 2)]
    folder = tmp_path / "run"
    for name in ("default", "rejected"):
        (folder / "data" / name).mkdir(parents=True)
    Dataset.from_list(rows, features=TASK.counterfactual).to_parquet(str(folder / "data" / "default" / "train-0.parquet"))
    lost = {"scores": [{"name": RANK, "value": 2.0}, {"name": DISTANCE, "value": 5.0}]}
    rejected = Dataset.from_list([{"candidate": lost}, {"candidate": None}])
    rejected.to_parquet(str(folder / "data" / "rejected" / "train-0.parquet"))
    return folder


def test_runs_stand_beside_each_other(run: Path, tmp_path: Path) -> None:
    texts = read_run(run)
    assert texts.distances == [0, 8]
    assert sorted(texts.ranks) == [(1, 2.0), (2, 2.0), (2, 5.0)]
    report = analyse({"RGF": run, "Gold": run}, tmp_path / "out")
    assert report["mean_distance"] == {"RGF": 4.0, "Gold": 4.0}
    page = Path(report["page"]).read_text(encoding="utf-8")
    assert "| RGF | 2 | 4.0 | 50.0 | 0.0 | 50.0 | 0.0 |" in page
    assert "| 2 | 3.50 | 2 |" in page
    assert "| who built | 100.0 | 50.0 |\n| when was | – | 50.0 |" in page
    assert (tmp_path / "out" / "figure.png").stat().st_size


def test_its_command(run: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["analyse", f"RGF={run}", "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert "analyses.md" in result.output
    with pytest.raises(ValueError, match="write NAME=FOLDER"):
        CliRunner().invoke(app, ["analyse", "here", "--out", str(tmp_path)], catch_exceptions=False)


def test_rows_without_edits_are_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"id": "1", "question": "who", "edits": null}\n', encoding="utf-8")
    with pytest.raises(ValueError, match="row '1' has no edits"):
        read_run(tmp_path)


def test_distances_by_rank_and_their_histogram() -> None:
    assert distance_by_rank([(2, 5.0), (1, 3.0), (2, 6.0)]) == {1: (3.0, 1), 2: (5.5, 2)}
    assert {distance: share for distance, share in histogram([1, 1, 3, 99]).items() if share} == {1: 0.5, 3: 0.25, 20: 0.25}
