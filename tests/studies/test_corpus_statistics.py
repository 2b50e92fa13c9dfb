"""`hfcf describe`: what a corpus has, and the forms of its argument structures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from structure_rows import dataset, row, rows
from typer.testing import CliRunner

from hfcf.cli import app
from hfcf.studies.corpus_statistics import describe, form_of, kinds_of, read_corpus, to_page
from hfcf.tasks.structures.arrows import parse_arrows

FIXTURES = Path(__file__).parents[1] / "fixtures" / "corpora"


@pytest.mark.parametrize(
    ("arrows", "kinds"),
    [
        ("E1 → E2 → Claim", {"serial": 2}),
        ("(E1, E2) → E3 → Claim", {"linked": 1, "serial": 1}),
        ("E1 → E3 E2 → E3 → Claim", {"convergent": 1, "serial": 1}),
        ("E1 → (E2, E3) → Claim", {"divergent": 1, "linked": 1}),
        ("E1 → (E2, E3) E2 → Claim E3 → Claim", {"divergent": 1, "convergent": 1}),
    ],
)
def test_links_by_hand(arrows: str, kinds: dict[str, int]) -> None:
    assert dict(kinds_of(parse_arrows(arrows))) == kinds


def test_a_form_has_no_names_and_no_order() -> None:
    one = form_of(parse_arrows("(a, b) → c → Claim d → Claim"))
    assert one == form_of(parse_arrows("x → Claim (y, z) → w → Claim")) == form_of(parse_arrows("(z, y) → w (w, x) → Claim"))
    assert one != form_of(parse_arrows("(a, b) → c (c, d) → e → Claim"))
    shared, apart = parse_arrows("a → (b, c) → Claim"), parse_arrows("a → b d → c (b, c) → Claim")
    assert form_of(shared) != form_of(apart)  # one premise of two conclusions is not two premises


def test_what_structures_have() -> None:
    made = [*rows(), row("again", "(s2, s1) → s3 → s4 (s5, s4) → Claim", "SUPPORTS")]
    described = describe(dataset(made))
    assert described["labels"] == {"SUPPORTS": 2, "REFUTES": 1, "NOT ENOUGH INFO": 1}
    assert (described["rows"], described["groups"], described["rejected"]) == (4, 1, {})
    assert described["pieces"]["evidence"] == {"mean": 7.0, "median": 7.0, "most": 7, "counts": {"7": 4}}
    assert set(described["words"]) == {"claim", "evidence"}  # no piece has a title
    assert described["words"]["claim"]["mean"] == 9.0
    found = described["structures"]
    assert (found["rows"], found["circles"]) == (3, 0)
    assert found["counts"]["steps"]["counts"] == {"3": 2, "4": 1}
    assert found["counts"]["useful"]["counts"] == {"5": 3}
    assert found["types"] == {"serial + linked": 2, "linked + divergent": 1}
    assert found["forms"][0] == {"arrows": "(E1, E2) → E3 → E4 (E4, E5) → Claim", "rows": 2}
    assert found["by_label"]["SUPPORTS"]["steps"] == 3.0
    assert "steps" not in found["by_label"]["NOT ENOUGH INFO"]
    assert "| 3 | 2 | 66.7 % |" in to_page(described)


def test_a_circle_is_counted_by_itself() -> None:
    described = describe(dataset([row("round", "s1 → s2 → s1 s2 → Claim", "SUPPORTS"), row("sup", "s1 → Claim", "SUPPORTS")]))
    assert (described["structures"]["rows"], described["structures"]["circles"]) == (2, 1)
    assert described["structures"]["types"] == {"serial": 1}
    assert "1 of the structures run in a circle" in to_page(described)


def test_rows_that_can_not_be_read_are_counted(tmp_path: Path) -> None:
    records = json.loads((FIXTURES / "checkwhy" / "train.json").read_text(encoding="utf-8"))
    (tmp_path / "train.json").write_text(json.dumps([*records, {**records[0], "evidences": 3}]), encoding="utf-8")
    described = describe(read_corpus(f"checkwhy={tmp_path}"))
    assert described["rows"] == len(records)
    [(why, number)] = described["rejected"].items()
    assert number == 1
    assert "'evidences'" in why
    assert why in to_page(described)


def test_the_command_describes_any_corpus(tmp_path: Path) -> None:
    source, out = f"entailment_bank={FIXTURES / 'entailment_bank'}", tmp_path / "numbers.json"
    answer = CliRunner().invoke(app, ["describe", source, "--derive", "1", "--set", "task=2", "--json", str(out)])
    assert answer.exit_code == 0, answer.exception
    described = json.loads(out.read_text(encoding="utf-8"))
    assert described["labels"] == {"SUPPORTS": 1, "REFUTES": 1, "NOT ENOUGH INFO": 1}
    assert described["structures"]["rows"] == 2
    assert "SUPPORTS" in answer.output
    of_questions = describe(read_corpus(f"qed={FIXTURES / 'qed'}"))
    assert of_questions["splits"].keys() == {"train", "validation"}
    assert "structures" not in of_questions
    assert describe(read_corpus(f"qed={FIXTURES / 'qed'}:validation"))["rows"] == of_questions["splits"]["validation"]
