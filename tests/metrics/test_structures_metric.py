"""The folder `spaces/structures_metric` by `evaluate.load`: the README's worked example, and the scorer of the command."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import evaluate
import pytest
import yaml
from structure_rows import dataset, rows

from hfcf.metrics.scores.structures import PRESETS
from hfcf.pipeline.score_structures import score
from hfcf.training.structure_scorer import StructureScorer

FOLDER = Path(__file__).parents[2] / "spaces" / "structures_metric"
README = (FOLDER / "README.md").read_text(encoding="utf-8")
SUP, REF, NEI = rows()
# A part of the gold edges, so that no encoder is asked.
FEW = "s1 → s3 → s4 → Claim"


@pytest.fixture
def metric() -> Any:
    return evaluate.load(str(FOLDER))


def test_the_worked_example_of_the_readme(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER.parents[1])
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    result = names["result"]
    assert [result[name] for name in ("es_precision", "es_recall", "es")] == pytest.approx([1, 2 / 3, 0.8], abs=1e-4)
    assert [result[name] for name in ("leaves_f1", "steps_f1", "accuracy")] == pytest.approx([2 / 3, 0.5, 1], abs=1e-4)
    assert result["intervals"]["es"] == pytest.approx([0.8, 0.8], abs=1e-4)
    assert result["unreadable"] == {}
    assert set(result["groups"]) >= {"all", "SUPPORTS", "2 steps"}


def test_it_is_the_scorer_of_the_command(metric: Any) -> None:
    given = [FEW, "", ""]
    result = metric.compute(
        predictions=given, references=[SUP, REF, NEI], notation="arrows", labels=["SUPPORTS", "NEI", None], resamples=200
    )
    lines = {
        "sup": {"id": "sup", "arrows": FEW, "label": "SUPPORTS"},
        "ref": {"id": "ref", "arrows": "", "label": "NEI"},
        "nei": {"id": "nei", "arrows": ""},
    }
    expected = score(dataset(), lines, StructureScorer(PRESETS["offline"]), resamples=200)
    assert result["groups"] == expected["groups"]
    assert result["es"] == expected["groups"]["all"]["scores"]["es"][0]
    assert result["accuracy"] == pytest.approx(1 / 3, abs=1e-4)
    assert (result["encoder"], result["empty"]) == ("offline:minilm", 0.5)


def test_rows_are_added_one_by_one_in_batches_and_in_proofs(metric: Any) -> None:
    metric.add(prediction="s1 -> s3; s3 -> hypothesis;", reference=SUP)
    metric.add_batch(predictions=["s9 -> hypothesis;"], references=dataset([REF]).to_list())
    result = metric.compute(notation="proof", resamples=100)
    assert list(result["unreadable"]) == ["1"]
    assert "s9" in result["unreadable"]["1"]
    assert "accuracy" not in result  # no label was given


@pytest.mark.parametrize(
    ("predictions", "reference", "settings", "message"),
    [
        ([""], {"claim": "c"}, {}, "reference 0 has no label, evidence, evidence_info, structure: give a row"),
        ([""], {**SUP, "label": "yes"}, {}, "reference 0: the label must be one of SUPPORTS, REFUTES, NOT ENOUGH INFO, got 'yes'"),
        (["", ""], SUP, {}, "must be of one length, got 2 and 1"),
        ([""], SUP, {"notation": "graph"}, "notation must be program or arrows or proof, got 'graph'"),
        ([""], SUP, {"encoder": "bert"}, "encoder must be paper or offline, got 'bert'"),
        ([""], SUP, {"labels": []}, "labels must have one entry for each prediction: 1, got 0"),
    ],
)
def test_errors_name_the_place_and_the_cure(
    metric: Any, predictions: list[str], reference: dict[str, Any], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        metric.compute(predictions=predictions, references=[reference], **settings)


def test_the_space_has_a_header_by_which_the_hub_finds_metrics() -> None:
    header = yaml.safe_load(README.split("---")[1])
    assert {"evaluate", "metric"} <= set(header["tags"])
    assert (FOLDER / header["app_file"]).is_file()
    assert len(header["short_description"]) <= 60
