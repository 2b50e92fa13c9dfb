"""The real release files: how many rows, labels and groups they have, and that every row is sound."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import sound_rows

import hfcf
from hfcf.corpora.base import CorpusError
from hfcf.tasks.verification import LABELS

SUPPORTS, REFUTES, NEI = LABELS
POLITIHOP = {"train": {REFUTES: 144, SUPPORTS: 43}, "validation": {REFUTES: 98, SUPPORTS: 21}}  # table 8 of RACE has the second
CHAINS = {"train": 84, "validation": 50}
GRAPHS, RULING = "politihop/Transformer-XH/data", {"evidence": "ruling"}
REAL: list[tuple[str, str, dict[str, Any], dict[str, int | dict[str, int]], dict[str, int]]] = [
    ("hover", "hover_evidence", {}, {"train": 22, "validation": 35}, {}),
    ("feverous", "feverous_programfc", {}, {"validation": 2000}, {}),
    ("vitaminc", "vitaminc/vitaminc_real", {}, {"test": 6002}, {}),
    ("fever", "fever_rte", {}, {"validation": 4000}, {}),
    ("fm2", "fool_me_twice", {"split": "validation"}, {"validation": {SUPPORTS: 596, REFUTES: 573}}, {"validation": 209}),
    (
        "fever_symmetric", "fever_symmetric", {},
        {"validation": {SUPPORTS: 354, REFUTES: 354}, "generated": {SUPPORTS: 179, REFUTES: 169}},
        {"validation": 163, "generated": 114},
    ),
    ("fever_adversarial", "fever_adversarial", {}, {"test": {SUPPORTS: 197, REFUTES: 203}}, {"test": 278}),
    ("ex_fever", "ex_fever", {"split": "test"}, {"test": {SUPPORTS: 973, REFUTES: 1018, NEI: 1009}}, {"test": 2835}),
    ("covidfact", "covidfact", {}, {"full": {SUPPORTS: 694, REFUTES: 1507}}, {"full": 690}),
    # 3,700 lines; in four of them the refuted claim is the claim itself.
    ("wikifactcheck", "wikifactcheck", {}, {"validation": {SUPPORTS: 3700, REFUTES: 3696}}, {"validation": 3700}),
    (
        "cad_nli", "cad_nli", {},
        {"train": {SUPPORTS: 2770, REFUTES: 2782, NEI: 2778}, "validation": {SUPPORTS: 326, REFUTES: 349, NEI: 325}},
        {"train": 1666, "validation": 200},
    ),
    *(("politihop", folder, options, POLITIHOP, CHAINS) for folder in ("politihop", GRAPHS) for options in ({}, RULING)),
    ("scifact", "citation_integrity", {"split": "validation"}, {"validation": {SUPPORTS: 191, REFUTES: 101, NEI: 24}}, {}),
    ("scifact", "scifact_rte", {"split": "train"}, {"train": {SUPPORTS: 370, REFUTES: 194}}, {}),
    # 533 and 391 are in RACE's table 8.
    ("healthver", "healthver", {}, {"validation": {NEI: 993, SUPPORTS: 533, REFUTES: 391}}, {"validation": 52}),
    ("eraser_multirc", "eraser_multirc", {}, {"validation": {REFUTES: 427, SUPPORTS: 373}}, {"validation": 16}),
    ("xquad", "xquad_en", {}, {"validation": 826}, {}),
    ("quoref_contrast", "quoref_contrast", {}, {"test": 247 + 402}, {}),
    ("qed", "qed", {}, {"validation": 1000}, {}),
    ("nq_open", "nq_open", {}, {"validation": 3327, "efficientqa": 1800}, {}),
    ("boolq_contrast", "boolq_contrast", {}, {"validation": 69 + 335}, {}),
    ("semeval", "semeval2010_task8", {}, {"train": 8000, "test": 700}, {}),
    ("ccg_semeval", "ccg_semeval", {}, {"train": 7200, "validation": 800, "test": 700}, {}),
    ("scierc", "scierc_dygie", {}, {"train": 3219, "validation": 455}, {"train": 346, "validation": 49}),
]  # fmt: skip
UNWORKABLE = {"wikifactcheck": (2, "U+0092"), "qed": (2, "U+202C")}
"""Rows with an apostrophe that the release lost, and with a bidirectional override."""


@pytest.mark.parametrize(("name", "folder", "options", "counts", "groups"), REAL, ids=[f"{name}-{at}" for name, at, *_ in REAL])
def test_real_files(
    name: str, folder: str, options: dict[str, Any], counts: dict[str, Any], groups: dict[str, int], data: Path
) -> None:
    ds = hfcf.load(name, data_dir=data / folder, **options)
    splits = dict(ds) if isinstance(ds, dict) else {options["split"]: ds}
    assert set(counts) <= set(splits)
    unworkable, character = UNWORKABLE.get(name, (0, ""))
    for split, expected in counts.items():
        rows = splits[split].to_list()
        sound_rows.check_places(rows)
        assert (len(rows) if isinstance(expected, int) else Counter(row["label"] for row in rows)) == expected
        assert not groups or len({row["group_id"] for row in rows}) == groups[split]
        reasons = sound_rows.reasons(rows)
        assert (len(reasons), all(character in why for why in reasons)) == (unworkable, True)
        texts = [piece["text"] for row in rows for piece in row.get("evidence", ())]
        assert not [text for text in texts if "[[" in text or "-LRB-" in text]
        if "kind" in splits[split].column_names and name != "cad_nli":
            originals = {row["id"]: row["group_id"] for row in rows if row["kind"] == "original"}
            assert len(originals) == {"quoref_contrast": 247, "boolq_contrast": 69}[name]
            assert all(originals[row["original_id"]] == row["group_id"] for row in rows)


def test_real_hover_evidence_takes_its_titles_from_the_release(data: Path) -> None:
    ds = hfcf.load("hover", data_dir=data / "hover_evidence", split="validation")
    assert all(piece["title"] for row in ds for piece in row["evidence"])
    assert set(ds["num_hops"]) == {2, 3}


def test_real_politihop_graphs_hold_the_same_chains(data: Path) -> None:
    release = hfcf.load("politihop", data_dir=data / "politihop", split="validation")
    graphs = hfcf.load("politihop", data_dir=data / GRAPHS, split="validation")
    assert [len(evidence) for evidence in release["evidence"]] == [len(evidence) for evidence in graphs["evidence"]]
    for column in ("id", "claim", "label", "author", "group_id"):
        assert release[column] == graphs[column]
    adversarial = hfcf.load("politihop", data_files=data / GRAPHS / "politihop_valid_xh_adv.json", split="validation")
    assert adversarial["evidence"] == graphs["evidence"]  # Only the other nodes were exchanged.


def test_real_eraser_fever(data: Path) -> None:
    ds = hfcf.load("eraser_fever", data_dir=data / "eraser_fever", split="validation", on_error="reject")
    assert len(ds) == 3000
    assert len({row["status"]["reason"] for row in ds if row["status"]}) == 10  # The pages that the README says are not there.
    good = [row for row in ds.to_list() if row["status"] is None]
    assert Counter(row["label"] for row in good) == {REFUTES: 1562, SUPPORTS: 1380}
    sound_rows.check_places(good)
    with pytest.raises(CorpusError, match=r"line 20 \(id '100505'\).*'West_Ham_United_F\.C\.'.*docs"):
        hfcf.load("eraser_fever", data_dir=data / "eraser_fever")


def test_real_wikiwhy(data: Path) -> None:
    ds = hfcf.load("wikiwhy", data_dir=data / "wikiwhy", split="full")
    assert len(ds) == len(set(ds["id"])) == 6500
    assert len(set(ds["group_id"])) > 6400
    assert all(ds["cause"])
    assert all(ds["effect"])
    assert {len(explanation) for explanation in ds["explanation"]} == {1}
