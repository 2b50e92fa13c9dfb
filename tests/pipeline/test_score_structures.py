"""`hfcf score structures`: anyone's predictions against a corpus, by examples that were worked out by hand."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from offline_models import installed
from structure_rows import SENTENCES, dataset, row, rows
from typer.testing import CliRunner

import hfcf
from hfcf.cli import app
from hfcf.core.model import Model
from hfcf.metrics.scores.structures import SCORES, SentenceEncoder
from hfcf.pipeline.score_structures import read_predictions, score_predictions
from hfcf.tasks.structures.arrows import parse_arrows
from hfcf.tasks.structures.model import Structure
from hfcf.tasks.structures.program import to_program
from hfcf.training.structure_scorer import StructureScorer

FIXTURES = Path(__file__).parents[1] / "fixtures" / "corpora"
SUP, REF, NEI = rows()
Line = dict[str, Any]


@dataclass(frozen=True)
class Same(SentenceEncoder):
    """Finds a sentence similar to itself alone, so that structure similarity is exact match similarity."""

    model: Model = Model("same")
    same: float = 0.5

    def match(self, requests: Sequence[Any]) -> list[float]:
        return [float(len({*one} & {*other})) for one, other in requests]


SCORER = StructureScorer(Same())


def scored(predictions: Sequence[Line], made: Sequence[Line] = (SUP, REF, NEI), **settings: Any) -> dict[str, Any]:
    return score_predictions(dataset(list(made)), {line["id"]: line for line in predictions}, SCORER, resamples=500, **settings)


def values(result: dict[str, Any]) -> dict[str, float]:
    return {name: numbers[0] for name, numbers in result["scores"].items()}


def gold_line(one: Line) -> Line:
    structure = Structure.from_row(one)
    return {"id": one["id"], "prediction": to_program(structure, declare=False) if structure.steps else one["label"]}


def links(text: str) -> str:
    """A structure in arrows as a program without a label."""
    return to_program(parse_arrows(text), declare=False)


def test_gold_against_itself_has_all_points() -> None:
    result = scored([gold_line(one) for one in (SUP, REF, NEI)])
    assert values(result) == {"accuracy": 1.0, "macro_f1": 1.0, **dict.fromkeys(SCORES, 1.0), "empty": 0.0}
    assert all(low == high == value for value, low, high in result["scores"].values())
    assert (result["missing"], result["unreadable"]) == ([], {})
    numbers = {name: (part["rows"], part["with_structure"]) for name, part in result["groups"].items()}
    assert numbers == {
        "all": (3, 2), "3 steps": (1, 1), "4 steps": (1, 1), "1–6 distractors": (2, 2),
    }  # fmt: skip
    assert {name: part["ss"] for name, part in result["groups"].items()} == dict.fromkeys(numbers, 1.0)
    assert {name for name, part in result["groups"].items() if "macro_f1" in part} == {"all", "1–6 distractors"}


def test_by_hand() -> None:
    """SUP is (s1, s2) → s3 → s4 (s4, s5) → Claim: three steps, five edges. One premise is missing, and one step."""
    few = {"id": "sup", "label": "SUPPORTS", "prediction": links("s1 → s3 (s3, s5) → Claim")}
    result = values(scored([few], [SUP]))
    assert result["accuracy"] == 1.0
    # Edges: s1→s3 and s5→claim are right; s3→claim is not there. P 2/3, R 2/5.
    assert [result[name] for name in ("es_precision", "es_recall", "es")] == pytest.approx([2 / 3, 2 / 5, 1 / 2], abs=1e-4)
    assert result["ss"] == result["es"]
    # Leaves: s1, s5 of s1, s2, s5. Steps: neither conclusion has its premises. Intermediates: s3 of s3, s4.
    assert [result[name] for name in ("leaves_f1", "steps_f1", "intermediates_f1")] == pytest.approx([4 / 5, 0, 2 / 3], abs=1e-4)
    linked_apart = {"id": "sup", "label": "REFUTES", "prediction": links("s1 → s3; s2 → s3; s3 → s4; s4 → Claim; s5 → Claim")}
    apart = values(scored([linked_apart], [SUP]))
    assert [apart[name] for name in (*SCORES, "accuracy")] == [*[1.0] * len(SCORES), 0.0]


def test_steps_dropped_and_permuted() -> None:
    steps = Structure.from_row(SUP).steps
    permuted = Structure(tuple(reversed([step._replace(premises=step.premises[::-1]) for step in steps])))
    assert values(scored([{"id": "sup", "prediction": to_program(permuted, declare=False)}], [SUP]))["steps_all"] == 1.0
    fewer = [to_program(Structure(steps[n:]), declare=False) for n in range(len(steps))]
    recall = [values(scored([{"id": "sup", "prediction": program}], [SUP]))["es_recall"] for program in fewer]
    assert recall == pytest.approx([5 / 5, 3 / 5, 2 / 5], abs=1e-4)


def test_what_can_not_be_read_is_named_and_counts_as_empty() -> None:
    lines = [
        {"id": "sup", "prediction": 'one_to_one_linking(s9, Claim); print("SUPPORTS")'},
        {"id": "ref", "prediction": links("E1 → Claim"), "label": "refuted"},
        {"id": "nei", "prediction": "NEI"},
    ]
    result = scored(lines)
    assert list(result["unreadable"]) == ["sup", "ref"]
    assert "s9 is not declared" in result["unreadable"]["sup"]
    assert "E1 is not declared" in result["unreadable"]["ref"]
    assert (values(result)["accuracy"], values(result)["empty"], values(result)["es"]) == (1.0, 1.0, 0.0)


def test_conclusions_of_task_4_are_declared_by_the_prediction() -> None:
    gold = row("deep", "(s1, s2) → s3 (s3, s5) → s4 → Claim", "SUPPORTS")
    program = "\n".join(
        [f's3 = FACT("{SENTENCES["s3"]}")', "multiple_to_one_linking([s1, s2], s3)", 's4 = FACT("The ice is gone.")',
         "multiple_to_one_linking([s3, s5], s4)", "one_to_one_linking(s4, Claim)", 'print("SUPPORTS")']
    )  # fmt: skip
    line = {"id": "deep", "prediction": program}
    assert "another sentence" in scored([line], [gold])["unreadable"]["deep"]
    result = scored([line], [gold], task=4)
    assert not result["unreadable"]
    # The new s4 has the leaves of the gold one, so its steps are right; its sentence is not, nor are three of five edges.
    found = values(result)
    assert [found[name] for name in ("steps_all", "intermediates_f1", "es")] == [1.0, 0.5, 0.4]


def test_unknown_and_missing_ids_are_named() -> None:
    line = gold_line(SUP)
    with pytest.raises(ValueError, match=r'\b1 predictions.*"x"'):
        scored([line, {"id": "x", "prediction": "REFUTES"}])
    with pytest.raises(ValueError, match=r'2 of 3 rows.*"ref", "nei".*--partial'):
        scored([line])
    result = scored([line], partial=True)
    assert result["missing"] == ["ref", "nei"]
    assert (values(result)["accuracy"], values(result)["es"], values(result)["empty"]) == (pytest.approx(1 / 3, abs=1e-4), 0.5, 0.5)


def test_labels_alone_and_structures_alone() -> None:
    labels = [{"id": one["id"], "prediction": one["label"]} for one in (SUP, REF, NEI)]
    result = scored(labels)
    assert list(values(result)) == ["accuracy", "macro_f1"]
    assert "ss" not in result["groups"]["all"]
    result = scored([{"id": "sup", "prediction": links("s1 → Claim")}], [SUP])
    assert not {"accuracy", "macro_f1"} & {*result["scores"], *result["groups"]["all"]}


def test_intervals_are_over_groups_and_hold_the_value() -> None:
    made = []
    for i in range(20):
        one = row(f"r{i}", "(s1, s2) → s3 → Claim", ("SUPPORTS", "REFUTES")[i % 2], f"Claim {i}.")
        texts = [{"title": "", "text": f"{piece['text']} {i}"} for piece in one["evidence"]]
        made.append({**one, "evidence": texts, "group_id": str(i), "cause": None})
    lines = [{"id": one["id"], "label": "SUPPORTS", "prediction": links("(s1, s2) → s3 → Claim")} for one in made]
    result = score_predictions(dataset(made), {line["id"]: line for line in lines}, SCORER, resamples=2000)
    value, low, high = result["scores"]["accuracy"]
    assert (value, 0.2 < low < 0.35, 0.65 < high < 0.8) == (0.5, True, True)  # 0.5 ± 1.96 · 0.5 / √20
    value, low, high = result["scores"]["macro_f1"]
    assert value == pytest.approx(1 / 3, abs=1e-4)
    assert low < value < high
    assert result["scores"]["es"] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", "line 1"),
        ('{"id": "a"}', "line 1.*prediction"),
        ('{"id": "a", "prediction": ["x"]}', "prediction.*list"),
        ('{"id": "a", "prediction": "x", "label": "maybe"}', "'maybe'"),
        ('{"id": "a", "prediction": "x", "names": ["s1"]}', "names"),
        ('{"id": 1, "prediction": "REFUTES"}\n{"id": "1", "prediction": "REFUTES"}', "line 2.*'1'"),
        ('{"id": 1, "prediction": "REFUTES", "set": "a"}\n{"id": "2", "prediction": "REFUTES", "set": "b"}', "line 2.*a and b"),
    ],
)
def test_predictions_that_can_not_be_read(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "said.jsonl"
    path.write_text(line + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_predictions(path)


def test_labels_may_have_the_names_of_other_corpora() -> None:
    named = ("entailment", "False", "nei")
    scores = values(scored([{"id": one["id"], "prediction": name} for one, name in zip((SUP, REF, NEI), named, strict=True)]))
    assert scores["accuracy"] == 1


@pytest.mark.skipif(not installed("minilm"), reason="the offline models are not installed")
def test_the_command(tmp_path: Path) -> None:
    path, out = tmp_path / "said.jsonl", tmp_path / "scores.json"
    gold = hfcf.load("entailment_bank", data_dir=FIXTURES / "entailment_bank", split="validation")
    lines = [gold_line(one) for one in gold]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines[1:]), encoding="utf-8")
    command = [
        "score",
        "structures",
        str(path),
        "--gold",
        f"entailment_bank={FIXTURES / 'entailment_bank'}",
        "--encoder",
        "offline",
    ]
    with pytest.raises(ValueError, match="1 of 2 rows"):
        CliRunner().invoke(app, command, catch_exceptions=False)
    answer = CliRunner().invoke(app, [*command, "--partial", "--out", str(out)], catch_exceptions=False)
    result = json.loads(out.read_text(encoding="utf-8"))
    assert result["missing"] == [gold[0]["id"]]
    value = result["scores"]["es"][0]
    assert value == pytest.approx(1 - 1 / len(gold), abs=1e-4)
    assert "rows have no prediction" in answer.output
    assert "offline:minilm" in answer.output


@pytest.mark.skipif("HFCF_DATA" not in os.environ, reason="HFCF_DATA names no folder of releases")
def test_real_trees_against_themselves_and_with_steps_dropped() -> None:
    gold = hfcf.load("entailment_bank", data_dir=f"{os.environ['HFCF_DATA']}/entailment_bank", split="validation", task="2")
    whole = {one["id"]: gold_line(one) for one in gold}
    found = values(score_predictions(gold, whole, SCORER, resamples=200))
    assert found == {"accuracy": 1.0, **dict.fromkeys(SCORES, 1.0), "empty": 0.0}
    fewer = {}
    for one in gold:
        steps = Structure.from_row(one).steps
        fewer[one["id"]] = {"id": one["id"], "prediction": to_program(Structure(steps[1:] or steps), declare=False)}
    found = values(score_predictions(gold, fewer, SCORER, resamples=200))
    assert found["es_precision"] == 1.0
    assert found["es_recall"] < 0.9


def test_null_is_as_good_as_no_key(tmp_path: Path) -> None:
    lines = [gold_line(SUP), {"id": REF["id"], "prediction": "SUPPORTS"}, gold_line(NEI)]
    nulls = [{**line, "left_out": None, "names": None, "label": None} for line in lines]
    assert scored(nulls) == scored(lines)
    labels = [{"id": one["id"], "prediction": one["label"]} for one in (SUP, REF, NEI)]
    assert scored([{**line, "names": None} for line in labels]) == scored(labels)
    path = tmp_path / "predictions.jsonl"
    path.write_text(json.dumps({"id": "a", "left_out": None}) + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match="prediction"):
        read_predictions(path)
