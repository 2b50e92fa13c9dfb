"""A user's own claims with argument structures: the forms of evidence and structure, and bad ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hfcf
from hfcf.checkwhy import Structure, to_arrows, to_program
from hfcf.core import recipe
from hfcf.corpora.base import CorpusError

EVIDENCE = {"E1": "Salt lay on the ice.", "E2": "Salt lets ice melt.", "E3": "The ice melted.", "E4": "Ice is white."}
ROW: dict[str, Any] = {"claim": "Salt made the pond swell.", "label": "SUPPORTS", "evidence": EVIDENCE}
EDGES = [("E1", "E3"), ("E2", "E3"), ("E3", "claim")]
INFO = [
    {"id": "E1", "useful": True, "leaf": True}, {"id": "E2", "useful": True, "leaf": True},
    {"id": "E3", "useful": True, "leaf": False}, {"id": "E4", "useful": False, "leaf": False},
]  # fmt: skip
STRUCTURES: dict[str, Any] = {
    "arrows": "(E1, E2) → E3 → Claim",
    "program": 'multiple_to_one_linking([E1, E2], E3)\none_to_one_linking(E3, Claim)\nprint("SUPPORTS")',
    "proof": "E1 & E2 -> E3: The ice melted.; E3 -> hypothesis;",
    "steps": [{"premises": ["E1", "E2"], "conclusion": "E3"}, {"premises": ["E3"], "conclusion": "claim"}],
}


def load(tmp_path: Path, *rows: dict[str, Any], **options: Any) -> Any:
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return hfcf.load("structures", data_files=path, split="train", **options)


@pytest.mark.parametrize("form", STRUCTURES)
def test_a_structure_in_each_notation(form: str, tmp_path: Path) -> None:
    row = load(tmp_path, {**ROW, "structure": STRUCTURES[form]})[0]
    assert Structure.from_row(row).edges() == EDGES
    assert row["evidence_info"] == INFO
    assert [piece["text"] for piece in row["evidence"]] == [*EVIDENCE.values()]


@pytest.mark.parametrize(
    "evidence",
    [
        [{"id": name, "text": text} for name, text in EVIDENCE.items()],
        [{"id": name, "title": "Ice", "text": text} for name, text in EVIDENCE.items()],
    ],
)
def test_evidence_as_a_list_of_objects(evidence: Any, tmp_path: Path) -> None:
    row = load(tmp_path, {**ROW, "evidence": evidence, "structure": STRUCTURES["arrows"]})[0]
    assert row["evidence_info"] == INFO
    assert row["evidence"][0]["title"] == evidence[0].get("title", "")


def test_texts_alone_are_named_by_their_places(tmp_path: Path) -> None:
    arrows = "(Sentence1, Sentence2) → Sentence3 → Claim"
    row = load(tmp_path, {**ROW, "evidence": [*EVIDENCE.values()], "structure": arrows})[0]
    assert to_arrows(Structure.from_row(row)) == arrows


def test_sentences_that_the_structure_declares_are_evidence(tmp_path: Path) -> None:
    short = {name: text for name, text in EVIDENCE.items() if name != "E3"}
    row = load(tmp_path, {**ROW, "evidence": short, "structure": STRUCTURES["proof"]})[0]
    assert Structure.from_row(row).texts["E3"] == "The ice melted."
    assert {one["id"]: one["leaf"] for one in row["evidence_info"]} == {"E1": True, "E2": True, "E4": False, "E3": False}


def test_rows_without_a_structure_and_rows_of_one_claim(tmp_path: Path) -> None:
    flags = [{**one, "useful": False, "leaf": False} for one in INFO]
    rows = [
        {**ROW, "structure": STRUCTURES["arrows"]}, {**ROW, "label": "NOT ENOUGH INFO"},
        {**ROW, "label": "NOT ENOUGH INFO", "structure": [], "evidence_info": flags, "claim": "Another."},
    ]  # fmt: skip
    ds = load(tmp_path, *rows)
    assert ds[1]["evidence_info"][0] == {"id": "E1", "useful": None, "leaf": None}
    assert ds[2]["evidence_info"] == flags
    assert ds[0]["group_id"] == ds[1]["group_id"] != ds[2]["group_id"]


def test_parquet_of_loaded_rows_is_read_back(tmp_path: Path) -> None:
    ds = load(tmp_path, {**ROW, "structure": STRUCTURES["program"]}, {**ROW, "label": "NOT ENOUGH INFO"})
    ds.to_parquet(tmp_path / "train.parquet")
    assert hfcf.load("structures", data_files=tmp_path / "train.parquet", split="train").to_list() == ds.to_list()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"structure": "(E1, E9) → E3 → Claim"}, "E9, which is not an id"),
        ({"structure": "(E1, E2) → E3"}, "illegal: .*[Cc]laim"),
        ({"structure": "(E1, E2 → Claim"}, "can't be read, with evidence named E1, E2, E3, E4: line 1, column"),
        ({"structure": "__import__('os').remove('x') or one_to_one_linking(E1, Claim)"}, "can't be read.*line 1"),
        ({"structure": 'one_to_one_linking(E1, Claim)\nprint("REFUTES")'}, "prints REFUTES, and the label is SUPPORTS"),
        ({"structure": 7}, "structure"),
        ({"structure": [{"premises": "E1"}]}, "the structure can't be read.*a step is"),
        ({"evidence": "one text"}, "the evidence is one text; the known forms"),
        ({"evidence": [{"id": "E1", "text": 3}]}, "the text of evidence piece 0 is a number"),
        ({"evidence": [{"id": "E1", "text": "a."}, {"id": "E1", "text": "b."}]}, "two pieces of evidence are named E1"),
        ({"evidence_info": INFO[:2]}, "evidence_info is not a list of 4 objects"),
        ({"evidence_info": [{**one, "useful": True} for one in INFO]}, "useful=True of E4, which the structure does not use"),
        ({"evidence_info": [{**one, "id": "x"} for one in INFO]}, "piece 0 is named 'E1', and in evidence_info 'x'"),
        ({"label": "perhaps"}, "'perhaps'"),
    ],
)  # fmt: skip
def test_a_bad_row_is_an_error_or_a_rejected_row(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    good = {**ROW, "structure": STRUCTURES["arrows"]}
    with pytest.raises(CorpusError, match=message):
        load(tmp_path, {**good, **change}, good)
    ds = load(tmp_path, {**good, **change}, good, on_error="reject")
    assert len(ds) == 2
    assert ds[0]["status"]["reason"]
    assert ds[1]["status"] is None


def test_the_demo_has_twenty_claims_each_supported_and_refuted() -> None:
    ds = hfcf.load("structures", data_dir=recipe.folder() / "demo_structures", split="train")
    labels: dict[str, set[str]] = {}
    for row in ds:
        labels.setdefault(row["claim"], set()).add(row["label"])
        assert Structure.from_row(row).depth() >= 2
        assert sum(not info["useful"] for info in row["evidence_info"]) == 2
        assert to_program(Structure.from_row(row))
    assert len(labels) == 20
    assert set(map(frozenset, labels.values())) == {frozenset({"SUPPORTS", "REFUTES"})}
