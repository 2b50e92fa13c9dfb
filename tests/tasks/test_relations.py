"""Relation rows: what can be wrong with one, edits of its tokens, and the stage that decides its counterfactuals."""

from __future__ import annotations

from typing import Any

import pytest
from datasets import Dataset, Features, load_dataset

import hfcf
from hfcf.core import edits, schema
from hfcf.core.candidates import reject
from hfcf.core.task import apply_edits, find_problem, get_task, revert_edits
from hfcf.pipeline import publish
from hfcf.systems._shared.judge import JudgeCandidates
from hfcf.tasks import relation as relations
from hfcf.tasks.relation import token_edits


def words(text: str) -> list[str]:
    return text.split()


ROW: dict[str, Any] = {
    "id": "1",
    "tokens": words("Old eggs are slowly moved into the large buckets ."),
    "head": {"start": 1, "end": 2, "type": None},
    "tail": {"start": 7, "end": 9, "type": None},
    "label": "Entity-Destination(e1,e2)",
    "group_id": "1",
    "corpus": "made",
    "split": "train",
}


def edit(start: int, end: int, after: str, row: Any = ROW) -> edits.Edit:
    return {
        "field": "tokens",
        "piece": -1,
        "start": start,
        "end": end,
        "before": " ".join(row["tokens"][start:end]),
        "after": after,
    }


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"tokens": []}, "there are no tokens"),
        ({"tokens": [*ROW["tokens"][:-1], None]}, "token 9 is null"),
        ({"tokens": [*ROW["tokens"][:-1], ""]}, "token 9 is empty"),
        ({"tokens": [*ROW["tokens"][:-1], "two words"]}, "token 9, 'two words', holds white space"),
        ({"tokens": ["1"] * 10}, "the sentence has no letters"),
        ({"head": None}, "the head has no place"),
        ({"head": {"start": None, "end": 2}}, "the head has no place"),
        ({"head": {"start": 2, "end": 2}}, "the head is at 2–2, which is not a span"),
        ({"head": {"start": -1, "end": 2}}, "the head is at -1–2, which is not a span"),
        ({"tail": {"start": 9, "end": 11}}, "the tail is at 9–11, outside the 10 tokens"),
        ({"label": " "}, "there is no label"),
    ],
)
def test_what_is_wrong_with_a_row_is_told(change: dict[str, Any], told: str) -> None:
    assert find_problem({**ROW, **change}) == told
    assert find_problem(ROW) is None


def test_entities_move_along_with_edits_on_both_sides() -> None:
    made = [edit(0, 1, "Very old brown"), edit(3, 6, "from"), edit(9, 10, "")]
    new = apply_edits(ROW, made)
    assert new["tokens"] == words("Very old brown eggs are from the large buckets")
    assert [" ".join(new["tokens"][new[name]["start"] : new[name]["end"]]) for name in ("head", "tail")] == [
        "eggs",
        "large buckets",
    ]
    assert revert_edits(new, made) == {name: ROW[name] for name in ("tokens", "head", "tail")}


def test_insertions_at_an_entitys_edges_stay_outside_it() -> None:
    made = [edit(7, 7, "very"), edit(9, 9, "here")]
    new = apply_edits(ROW, made)
    assert new["tokens"][new["tail"]["start"] : new["tail"]["end"]] == ["large", "buckets"]
    assert revert_edits(new, made)["tokens"] == ROW["tokens"]


@pytest.mark.parametrize("wrong", [edit(8, 9, "boxes"), edit(6, 8, "a"), edit(8, 8, "and")])
def test_edits_never_touch_an_entity(wrong: edits.Edit) -> None:
    with pytest.raises(ValueError, match="touches the tail"):
        apply_edits(ROW, [wrong])


def test_edits_that_do_not_fit_are_errors() -> None:
    with pytest.raises(ValueError, match=r"2.*'are'.*'is'"):
        apply_edits(ROW, [{**edit(2, 3, "was"), "before": "is"}])
    with pytest.raises(ValueError, match="overlaps another"):
        apply_edits(ROW, [edit(2, 4, "a"), edit(3, 5, "b")])
    with pytest.raises(ValueError, match="places"):
        apply_edits(ROW, [{**edit(2, 3, "was"), "field": "claim"}])


def test_removed_tokens_are_replaced_at_the_first_ones_place() -> None:
    made = token_edits(ROW["tokens"], [5, 3, 4, 2, 9], "taken from")
    assert apply_edits(ROW, made)["tokens"] == words("Old eggs taken from the large buckets")


@pytest.mark.parametrize(
    ("head", "tail", "told"),
    [
        ((0, 2), (2, 3), "there is no word between the entities"),
        ((2, 3), (0, 2), "there is no word between the entities"),
        ((0, 3), (2, 4), "the entities overlap"),
        ((0, 4), (1, 2), "one entity lies inside the other"),
        ((1, 2), (1, 2), "one entity lies inside the other"),
        ((4, 5), (1, 2), None),
    ],
)
def test_entities_that_leave_nothing_to_edit(head: tuple[int, int], tail: tuple[int, int], told: str | None) -> None:
    row = {**ROW, "head": {"start": head[0], "end": head[1]}, "tail": {"start": tail[0], "end": tail[1]}}
    assert relations.trouble(row) == told


def rows() -> Dataset:
    """A row with two candidates, one of them rejected, and a row that an earlier stage rejected."""
    good = relations.candidate(ROW, "Entity-Origin(e1,e2)", [edit(3, 6, "from")])
    bad = reject(relations.candidate(ROW, "Content-Container(e1,e2)", [edit(3, 6, "in")]), "edit_relation", "no such term")
    status = {"accepted": False, "stage": "expand_relation", "reason": "WordNet knows no noun 'eggz'"}
    made = [{**ROW, "candidates": [good, bad], "status": None}, {**ROW, "id": "2", "candidates": None, "status": status}]
    features = Features({**get_task("relation").features, "candidates": relations.CANDIDATES, "status": schema.STATUS})
    return Dataset.from_list(made, features=features)


def test_accepted_candidates_become_counterfactuals_and_nothing_is_lost() -> None:
    check = JudgeCandidates(system="ccg", task="relation")
    ds = hfcf.prepare(rows(), check).map(check, batched=True)
    made = hfcf.expand(ds)
    assert len(made) == 1
    assert made[0]["tokens"] == words("Old eggs are from the large buckets .")
    assert (made[0]["tail"]["start"], made[0]["tail"]["end"]) == (5, 7)
    assert (made[0]["id"], made[0]["source_id"], made[0]["label"]) == ("1:ccg:relation", "1", "Entity-Origin(e1,e2)")
    assert revert_edits(made[0], made[0]["edits"]) == {name: ROW[name] for name in ("tokens", "head", "tail")}
    lost = hfcf.rejected(ds, system="ccg")
    assert [(row["source_id"], row["level"], row["reason"]) for row in lost] == [
        ("1", "candidate", "no such term"),
        ("2", "row", "WordNet knows no noun 'eggz'"),
    ]


def test_a_relation_set_is_published_with_its_corpus_labels(tmp_path: Any) -> None:
    check = JudgeCandidates(system="ccg", task="relation")
    ds = hfcf.prepare(rows(), check).map(check, batched=True)
    run = {
        "name": "made", "system": "ccg", "task": "relation", "citation": "", "corpus": "made", "split": "train", "role": None,
        "preset": "offline", "seed": 13, "settings": {}, "models": {}, "checked_by": None, "stages": [],
    }  # fmt: skip
    labels = ["Entity-Origin(e1,e2)", "Entity-Destination(e1,e2)", "Other"]
    corpus = {"title": "Made", "licence": "mit", "hub_id": None, "paper": "", "citation": "", "labels": labels}
    publish.publish(ds, tmp_path, run=run, recipe={}, corpus=corpus, command="hfcf run made", stages=["judge_candidates"])
    published = load_dataset(str(tmp_path), split="train", cache_dir=str(tmp_path / "cache"))
    assert published.features["label"].names == sorted(labels)
    assert published[0]["tokens"][3] == "from"
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    for part in ("relation-extraction", "token indices", "no person and no model checked them", "`tokens`, `head`, `tail`"):
        assert part in card
    assert r"Old \[eggs\]₁ are from the \[large buckets\]₂ ." in card


def test_what_rows_are_learned_from_and_how_relations_read() -> None:
    rejected = {**ROW, "status": {"accepted": False, "stage": schema.LOAD, "reason": "the label is unknown"}}
    assert relations.learnable([ROW, rejected, {**ROW, "tokens": []}]) == [ROW]
    named = [relations.roles(label) for label in ("Cause-Effect(e1,e2)", "Cause-Effect(e2,e1)", "PHYS")]
    assert named == ["cause-effect", "effect-cause", "phys"]
    assert relations.roles("Cause-Effect(e1,e2)", forward=False) == "effect-cause"
