"""A user's file of broken rows among good ones: the run goes on, every broken row is told why, no good row changes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import parrot
import pytest
from datasets import Dataset, load_dataset
from rich.console import Console
from rich.table import Table
from rich.text import Text

import hfcf
from hfcf.core.mapping import map_stage
from hfcf.core.model import Model
from hfcf.core.stage import StageError
from hfcf.corpora.base import CorpusError
from hfcf.engines.generator import Generator
from hfcf.systems.race.system import RACE

FIXTURES = Path(__file__).parents[1] / "fixtures"
GOOD = (FIXTURES / "good_rows.jsonl").read_bytes().splitlines()
LONG = "The Nile flows through Egypt. " * 7000
# Two hundred kilobytes need not lie in the repository.
MADE = [
    json.dumps({"id": "long claim", "claim": LONG, "evidence": ["The Nile."], "label": "SUPPORTS"}),
    json.dumps({"id": "long evidence", "claim": "The Nile flows.", "evidence": ["The Nile.", LONG], "label": "REFUTES"}),
    json.dumps({"id": "long word", "claim": "N" * 200_000, "evidence": ["The Nile."], "label": "SUPPORTS"}),
    "[" * 200_000,
]
BAD = (FIXTURES / "bad_rows.jsonl").read_bytes().splitlines() + [line.encode() for line in MADE]
REASONS = [
    "the claim is null",
    "the claim is empty",
    "the claim is empty",
    "the claim has no letters",
    "the claim is a list, not text",
    "the claim is null",
    "the claim holds half of a surrogate pair",
    "the claim holds the control character U+0000 at position 8",
    "the claim holds the control character U+0007 at position 8",
    "the claim holds the control character U+202E at position 9",
    "the claim is mostly in hebrew script",
    "the claim is mostly in arabic script",
    "the claim is mostly in cjk script",
    "the claim has no letters",
    "no ",  # causal entity: neither the one person nor anything else in the one piece can be edited
    "the claim has no letters",
    "there is no evidence",
    "there is no evidence",
    "there is no evidence",
    "evidence piece 0 is empty",
    "evidence piece 1 is empty",
    "the evidence is a number (5)",
    "the evidence is an object",
    "evidence piece 0 is null",
    "evidence piece 0 is a list",
    "evidence piece 0 is a number, not text",
    "the title of evidence piece 0 is an object",
    "the title of evidence piece 0 holds half of a surrogate pair",
    "evidence piece 0 holds the control character U+0085",
    "evidence piece 0 has no letters",
    "there is no label",
    "the label '1' is unknown",
    "the label 'partly' is unknown",
    "there is no label",
    "the id 'good-01' was used before, at row 1",
    "the id 'bad-01' was used before, at row 2",
    "is not JSON: Invalid control character at character 41",
    "is not UTF-8",
    "is a list, not an object",
    "no entity of the types",
    "the claim has 210,000 characters; the limit is 20,000",
    "evidence piece 1 has 210,000 characters; the limit is 20,000",
    "the claim has 200,000 characters; the limit is 20,000",
    "nested too deeply",
]


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A good row, two bad ones, a good one …"""
    bad = iter(BAD)
    lines = [line for good in GOOD for line in (good, next(bad), next(bad))] + list(bad)
    assert len(lines) == 64 == len(GOOD) + len(REASONS)
    (tmp_path / "mine.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    return tmp_path / "mine.jsonl"


@pytest.fixture
def system(race: RACE, tiny_model: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> RACE:
    """RACE whose tiny models decide and name what they must, fitted to the good rows."""
    monkeypatch.setattr(Generator, "forward", parrot.forward)
    system = race.replace(verifier=Model(tiny_model("verifier")))
    good = hfcf.prepare(read(FIXTURES / "good_rows.jsonl"), system)
    return system.fit(map_stage(good, system.tag_entities, {}))


def read(path: Path) -> Dataset:
    ds: Any = hfcf.load("jsonl", data_files=path, split="train", on_error="reject")
    return ds


def is_good(row: dict[str, Any]) -> bool:
    return re.fullmatch(r"good-\d\d", row["id"]) is not None


def test_good_rows_come_out_as_they_do_alone(system: RACE, mixed: Path) -> None:
    alone, among = system(read(FIXTURES / "good_rows.jsonl")), system(read(mixed))
    assert [row for row in among if is_good(row)] == list(alone)
    assert {row["status"]["accepted"] for row in alone} == {True, False}
    kept = list(hfcf.expand(among))
    assert len(kept) >= 5
    assert kept == list(hfcf.expand(alone))


def test_every_bad_row_is_rejected_with_a_reason_for_a_person(system: RACE, mixed: Path) -> None:
    rows = [row for row in system(read(mixed)) if not is_good(row)]
    table = Table("line", "stage", "reason", show_lines=True)
    for line, row in zip(BAD, rows, strict=True):
        table.add_row(ascii(line.decode(errors="replace"))[1:70], row["status"]["stage"], Text(row["status"]["reason"]))
    Console(width=170).print(table)
    for expected, row in zip(REASONS, rows, strict=True):
        status = row["status"]
        assert status["accepted"] is False
        assert expected in status["reason"]
        assert 8 < len(status["reason"]) < 250
        assert status["reason"].isprintable()
        assert not re.search(r"Traceback|Error|Exception|object at 0x|NoneType|<class|\bNone\b", status["reason"])
        assert not row["counterfactuals"]


def test_nothing_is_lost_shifted_or_named_twice(system: RACE, mixed: Path) -> None:
    ds = read(mixed)
    done = system(ds)
    assert len(ds) == 64 == len(set(ds["id"]))
    assert done["id"] == ds["id"]
    assert [i for i, row in enumerate(ds) if is_good(row)] == list(range(0, 60, 3))
    lost = hfcf.rejected(done)
    whole = [row["source_id"] for row in lost if row["level"] == "row"]
    assert sorted([*whole, *set(hfcf.expand(done)["source_id"])]) == sorted(ds["id"])
    assert {row["source"]["id"] for row in lost} == set(lost["source_id"])


def test_bad_rows_teach_nothing(system: RACE, mixed: Path) -> None:
    kept = [line for line in mixed.read_bytes().splitlines() if re.search(rb"good-|null|ud800|long", line[:300])]
    (mixed.parent / "fewer.jsonl").write_bytes(b"\n".join(kept))
    ds = read(mixed.parent / "fewer.jsonl")
    assert len(ds) > 25
    assert RACE(**system.values).fit(map_stage(hfcf.prepare(ds, system), system.tag_entities, {})).fitted == system.fitted


def test_strict_names_the_row(system: RACE, tmp_path: Path) -> None:
    line = {"id": "mine", "claim": "הנילוס זורם דרך מצרים", "evidence": ["The Nile."], "label": "SUPPORTS"}
    (tmp_path / "one.jsonl").write_text(json.dumps(line))
    with pytest.raises(StageError, match=r"tag_entities: row 'mine'.*claim.*hebrew"):
        system.replace(strict=True)(read(tmp_path / "one.jsonl"))


def test_the_default_is_to_raise_and_to_name_the_line(mixed: Path) -> None:
    with pytest.raises(CorpusError, match=r"mine\.jsonl, line 2 \(id 'bad-01'\).*claim.*null"):
        hfcf.load("jsonl", data_files=mixed, split="train")


def test_a_recipe_over_such_a_file_completes_and_publishes_the_reasons(system: RACE, mixed: Path, tmp_path: Path) -> None:
    settings = {
        "verifier": system.verifier.name, "generator": system.generator.name, "encoder": system.encoder.name, "num_beams": 3,
        "ner": {"backend": "spacy", "model": "offline:spacy"}, "num_candidates": 2, "max_new_tokens": 8, "max_length": 96,
        "explainer": "gradient_x_input",
    }  # fmt: skip
    recipe = {"corpus": "jsonl", "data_files": str(mixed), "on_error": "reject", "system": "race", "settings": settings}
    found = hfcf.run(recipe, tmp_path / "out")
    assert found["rows_in"] == 64
    assert found["sources_rejected"] >= 44
    assert found["funnel"][0]["stage"] == "load"
    assert found["funnel"][0]["rows_in"] == 64
    lost = load_dataset(str(tmp_path / "out"), "rejected", split="train")
    assert lost["level"].count("row") == found["sources_rejected"]
    assert all(row["reason"] for row in lost)
