"""The shortcut audit finds shortcuts that were planted, and only these."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from structure_rows import dataset, row
from typer.testing import CliRunner

from hfcf.cli import app
from hfcf.metrics.scores.shortcuts import guess_by, last_step_parity, leaf_parity, nearest_parity, parity, pieces_shown, shortcuts
from hfcf.metrics.shared.bootstrap import mean_interval
from hfcf.studies.shortcuts import audit
from hfcf.tasks.verification import LABELS

FIXTURES = Path(__file__).parents[1] / "fixtures" / "corpora"


def planted(number: int) -> list[dict[str, Any]]:
    """A set whose REFUTES row denies its first leaf, and whose NOT ENOUGH INFO row has fewer pieces; claims tell nothing."""
    claim = f"Plant {number} grew."
    made = [row(f"{number}-{label[:3]}", "(s1, s2) → s3 → Claim" if label != LABELS[2] else "", label, claim) for label in LABELS]
    for one in made:
        one["group_id"] = str(number)
        one["evidence"] = [{"title": "", "text": f"{piece['text']} {number}"} for piece in one["evidence"]]
    made[1]["evidence"][0]["text"] += " It is not on."
    made[2]["evidence"], made[2]["evidence_info"] = made[2]["evidence"][-3:], made[2]["evidence_info"][-3:]
    if number % 2:  # what only looks like the bit: a distractor is denied in all rows
        for one in made:
            one["evidence"][-1]["text"] += " It is not high."
    return made


ROWS = [one for number in range(12) for one in planted(number)]


def found(labels: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    return {line["shortcut"]: line for line in shortcuts(dataset(ROWS), labels)}


def test_what_was_planted_is_found_and_nothing_else() -> None:
    two = found(LABELS[:2])
    assert {line["rows"] for line in two.values()} == {24}
    assert two["the commonest label"]["accuracy"] == two["words of the claim"]["accuracy"] == 0.5
    assert two["number of pieces"]["accuracy"] == 0.5
    assert two["parity of denials: claim, all evidence"]["accuracy"] <= 0.5  # the distractor hides the bit
    assert two["parity of denials: claim, useful leaves"]["accuracy"] == 1.0
    assert two["parity of denials: claim, last step's premises"]["accuracy"] == 0.5  # s3 is never denied
    assert all(line["low"] <= line["accuracy"] <= line["high"] for line in two.values())


def test_counting_pieces_finds_not_enough_info() -> None:
    three = found(LABELS)
    assert three["number of pieces"]["rows"] == 36
    assert three["number of pieces"]["accuracy"] == pytest.approx(2 / 3, abs=1e-4)  # all of these, and half of the others
    assert three["the commonest label"]["accuracy"] == pytest.approx(1 / 3, abs=1e-4)
    assert three["parity of denials: claim, useful leaves"]["rows"] == 24  # those with a structure


def test_features_by_hand() -> None:
    supports, refutes, nei = planted(0)
    assert [pieces_shown(one) for one in (supports, refutes, nei)] == [6, 6, 3]  # s3 is an inference
    assert [leaf_parity(one) for one in (supports, refutes, nei)] == [0, 1, None]
    assert [last_step_parity(one) for one in (supports, refutes, nei)] == [0, 0, None]
    near = {**supports, "claim": "A lamp does not give off heat."}
    assert nearest_parity(near) == 1  # s2, which is not denied
    assert parity(["I can't, I cannot, and I do not; no one does."]) == 1


def test_a_guess_is_learned_from_other_folds() -> None:
    assert guess_by(["x", "x", "x"], ["a", "b", "b"], [0, 1, 1]) == ["b", "a", "a"]
    assert guess_by(["x", None, "y"], ["a", "b", "c"], [0, 1, 2]) == ["c", None, "a"]  # unseen: the commonest elsewhere
    assert guess_by(["x"], ["a"], [0]) == [None]


def test_intervals_are_over_groups() -> None:
    values, alone = [1.0, 1.0, 0.0, 0.0] * 10, list(range(40))
    mean, low, high = mean_interval(values, alone)
    assert (mean, low < 0.4, high > 0.6) == (0.5, True, True)
    _, paired_low, paired_high = mean_interval(values, [i // 2 for i in alone])
    assert paired_high - paired_low > 1.2 * (high - low)  # twenty groups that are all right or all wrong
    assert mean_interval([0.25, 0.75], ["a", "a"]) == (0.5, 0.5, 0.5)
    weighted = mean_interval([1.0, 1.0, 1.0, 0.0], ["a", "a", "a", "b"])
    assert weighted == (0.75, 0.0, 1.0)


def test_the_command_reads_a_corpus(tmp_path: Path) -> None:
    source, out = f"entailment_bank={FIXTURES / 'entailment_bank'}", tmp_path / "audit.json"
    answer = CliRunner().invoke(app, ["score", "shortcuts", source, "--set", "task=2", "--derive", "1", "--out", str(out)])
    assert answer.exit_code == 0, answer.exception
    tables = json.loads(out.read_text(encoding="utf-8"))
    assert list(tables) == ["SUPPORTS, REFUTES", "SUPPORTS, REFUTES, NOT ENOUGH INFO"]
    assert "parity of denials" in answer.output
    with pytest.raises(ValueError, match=r"all rows are SUPPORTS.*--derive 2"):
        audit(source)
    with pytest.raises(ValueError, match="no argument structures"):
        audit(f"vitaminc={FIXTURES / 'vitaminc'}:validation")
    with pytest.raises(ValueError, match="exists already"):
        CliRunner().invoke(app, ["score", "shortcuts", source, "--derive", "1", "--out", str(out)], catch_exceptions=False)


def test_checkwhy_is_read_with_three_labels() -> None:
    tables = audit(f"checkwhy={FIXTURES / 'checkwhy'}:train")
    assert [lines[0]["rows"] for lines in tables.values()] == [2, 3]


@pytest.mark.skipif("HFCF_DATA" not in os.environ, reason="HFCF_DATA names no folder of releases")
def test_derived_labels_can_be_read_off_the_last_step() -> None:
    """Why no gain on these rows says that a structure helps to reason."""
    tables = audit(f"entailment_bank={os.environ['HFCF_DATA']}/entailment_bank", changes=["task=2"], derive=2)
    two = {line["shortcut"]: line["accuracy"] for line in tables["SUPPORTS, REFUTES"]}
    assert two["parity of denials: claim, last step's premises"] > 0.97
    assert two["parity of denials: claim, useful leaves"] > 0.93
    assert max(two["words of the claim"], two["number of pieces"]) <= 0.5
