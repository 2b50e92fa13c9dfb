from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest
from datasets import Dataset
from structure_rows import dataset, row, rows

import hfcf
from hfcf.core.task import get_task
from hfcf.tasks.structures.model import Structure, problems
from hfcf.tasks.task_inputs import view
from hfcf.training.derived_labels import deny, derive_labels

MORE = [f"x{i}" for i in range(4)]


def tree(number: int) -> dict[str, Any]:
    """A tree with six distractors."""
    made = row(f"t{number}", "(s1, s2) → s3 → s4 (s4, s5) → Claim", "SUPPORTS", claim=f"Seed {number} is wet.")
    infos = [*made["evidence_info"], *({"id": name, "useful": False, "leaf": False} for name in MORE)]
    evidence = [*made["evidence"], *({"title": "", "text": f"{name} is in Nepal."} for name in MORE)]
    return {**made, "evidence_info": infos, "evidence": evidence}


TREES = [tree(i) for i in range(12)]


def check(trees: Dataset, made: Dataset) -> None:
    assert len(made) == 3 * len(trees)
    labels = Counter((one["claim"], one["label"]) for one in made)
    assert set(labels.values()) == {1} or max(labels.values()) <= max(Counter(trees["claim"]).values())
    for source, supported, refuted, open_ in zip(trees, *(made.select(range(i, len(made), 3)) for i in range(3)), strict=True):
        assert supported["claim"] == refuted["claim"] == open_["claim"]
        assert supported["claim"] in (source["claim"], deny(source["claim"]))
        assert {one["group_id"] for one in (supported, refuted, open_)} == {source["group_id"]}
        assert [one["label"] for one in (supported, refuted, open_)] == ["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"]
        for one in (supported, refuted):
            assert Structure.from_row(one) == Structure.from_row(source)
            assert not problems(Structure.from_row(one), [info["id"] for info in one["evidence_info"] if info["useful"]])
            assert get_task("structures").validate(one) is None
        assert not open_["structure"]
        own = {info["id"] for info in open_["evidence_info"] if info["useful"]}
        assert own
        assert own <= {*Structure.from_row(source).leaves(), *(f"{name}-denied" for name in Structure.from_row(source).leaves())}
        assert all(info["useful"] == info["leaf"] for info in open_["evidence_info"])  # its own pieces are leaves
        sides = [{info["id"]: piece["text"] for info, piece in zip(one["evidence_info"], one["evidence"], strict=True)}
                 for one in (supported, refuted)]  # fmt: skip
        used = Structure.from_row(source).nodes()
        differing = [name for name in used if name in sides[0] and sides[0][name] != sides[1][name]]
        assert any(name in Structure.from_row(source).leaves() for name in differing)


def test_a_tree_becomes_three_rows_with_one_claim() -> None:
    made = derive_labels(dataset(TREES), distractors=1)
    check(dataset(TREES), made)
    denied = [one["claim"] for one in made if one["label"] == "SUPPORTS" and "not" in one["claim"]]
    assert 0 < len(denied) < len(TREES)  # some claims are denied, some are not


def test_the_number_of_leaves_and_distractors_gives_nothing_away() -> None:
    for one in range(0, 36, 3):
        made = derive_labels(dataset(TREES), distractors=1).select(range(one, one + 3))
        assert len({len(view(row, 1).pieces) for row in made}) == 1


def test_the_same_rows_come_out_whatever_others_there_are() -> None:
    every, half = derive_labels(dataset(TREES)), derive_labels(dataset(TREES[6:]))
    assert every.select(range(18, 36)).to_list() == half.to_list()
    assert derive_labels(dataset(TREES), seed=14).to_list() != every.to_list()


def test_other_rows_are_left_out() -> None:
    none = derive_labels(dataset(rows()[1:]))
    assert (len(none), none.features) == (0, dataset().features)
    made = derive_labels(dataset(rows()))
    assert made["id"][:] == ["sup-sup", "sup-ref", "sup-nei"]


@pytest.mark.skipif("HFCF_DATA" not in os.environ, reason="needs EntailmentBank")
def test_every_tree_of_entailment_bank() -> None:
    folder = os.path.join(os.environ["HFCF_DATA"], "entailment_bank")
    trees = hfcf.load("entailment_bank", data_dir=folder, split="validation", task="2")
    made = derive_labels(trees, distractors=2)
    assert len(trees) == 187
    check(trees, made)
    sizes = [{len(view(row, 1).pieces) for row in made.select(range(i, i + 3))} for i in range(0, len(made), 3)]
    assert sum(len(one) > 1 for one in sizes) <= 5  # trees whose release has too few distractors


def test_only_distractors_depend_on_the_share_that_is_denied() -> None:
    trees = Dataset.from_list(TREES)
    half, none, every = (derive_labels(trees, denied=share) for share in (0.5, 0.0, 1.0))
    for one, plain, denied in zip(half, none, every, strict=True):
        assert one["id"] == plain["id"] == denied["id"]
        for column in ("claim", "structure", "evidence_info"):
            assert one[column] == plain[column] == denied[column]
        pieces = zip(*(each["evidence"] for each in (one, plain, denied)), strict=True)
        for info, (piece, same, other) in zip(one["evidence_info"], pieces, strict=True):
            if info["useful"]:
                assert piece == same == other
            else:
                assert piece in (same, other)
                assert other["text"] == deny(same["text"])
