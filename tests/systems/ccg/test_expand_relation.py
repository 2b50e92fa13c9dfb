from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from datasets import Dataset
from offline_models import installed

from hfcf.core import offline
from hfcf.core.artifacts import save_artifact
from hfcf.core.prepare import prepare
from hfcf.core.stage import StageError
from hfcf.core.task import get_task
from hfcf.systems.ccg.expand_relation import ExpandRelation, fit_relation_net

pytestmark = pytest.mark.skipif(not installed("wordnet"), reason=f"WordNet is not installed: {offline.INSTALL}")

TRAIN = [
    ("1", "The [wolf] lies in a [bottle] .", "in"),
    ("2", "A black [house cat] is made of a [bottle] .", "made of"),
    ("3", "The [cats] are made of [glass bottles] .", "made of"),
    ("4", "The [cat] and the [bottle] .", "Other"),
    ("5", "Some [xyzzyx] breaks the [jar] .", "breaks"),
]
ASKED = [
    *TRAIN,
    ("6", "The [guide-dog] breaks the [bottles] .", "breaks"),
    ("7", "The [dog] is in the [qwrtpsdf] .", "in"),
    ("8", "The [co-] is in the [bottle] .", "in"),
]


def row(id_: str, text: str, label: str) -> dict[str, Any]:
    """A row of a sentence with its entities in brackets."""
    tokens: list[str] = []
    spans = []
    for token in text.split():
        if token.startswith("["):
            spans.append({"start": len(tokens), "end": 0, "type": None})
        tokens.append(token.strip("[]"))
        if token.endswith("]"):
            spans[-1]["end"] = len(tokens)
    head, tail = spans
    extra = {"group_id": id_, "corpus": "made up", "split": "train"}
    return {"id": id_, "tokens": tokens, "head": head, "tail": tail, "label": label, **extra}


@pytest.fixture
def fitted() -> str:
    return save_artifact({"relation_net": fit_relation_net([row(*entry) for entry in TRAIN]).content})


def answer(stage: ExpandRelation, id_: str) -> dict[str, Any]:
    given = next(row(*entry) for entry in ASKED if entry[0] == id_)
    return stage({**given, **dict.fromkeys(stage.columns())})


def test_relations_come_from_the_nearest_hypernyms_first(fitted: str) -> None:
    stage = ExpandRelation().with_fitted(fitted)
    assert answer(stage, "6") == {"new_relations": ["in", "made of"], "status": None}
    assert answer(ExpandRelation(order="pooled").with_fitted(fitted), "6")["new_relations"] == ["made of", "in"]
    assert answer(stage, "1")["new_relations"] == ["made of"]
    assert answer(ExpandRelation(ratio=0.05).with_fitted(fitted), "6")["new_relations"] == ["in", "made of"]


@pytest.mark.parametrize(
    ("id_", "settings", "reason"),
    [
        ("4", {}, "the relation is Other"),
        ("4", {"order": "random"}, "the relation is Other"),
        ("5", {}, "WordNet knows no noun 'xyzzyx', the head entity's head word"),
        ("7", {}, "WordNet knows no noun 'qwrtpsdf', the tail entity's head word"),
        ("8", {}, "WordNet knows no noun 'co-', the head entity's head word"),
        ("1", {"ratio": 0.0}, "no other relation of 'wolf' and 'bottle' is known within the threshold 0.0"),
    ],
)
def test_rejections_say_why(fitted: str, id_: str, settings: Mapping[str, Any], reason: str) -> None:
    found = answer(ExpandRelation(**settings).with_fitted(fitted), id_)
    assert found == {"new_relations": None, "status": {"accepted": False, "stage": "expand_relation", "reason": reason}}
    with pytest.raises(StageError, match=f"row '{id_}'"):
        answer(ExpandRelation(strict=True, **settings).with_fitted(fitted), id_)


def test_random_relations_are_all_the_others_and_need_no_wordnet(fitted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = ExpandRelation(order="random").with_fitted(fitted)
    answer(stage, "1")  # the net itself is made with WordNet
    monkeypatch.setattr("hfcf.systems.ccg.expand_relation.wordnet", lambda: pytest.fail("WordNet was asked"))
    monkeypatch.setattr("hfcf.systems.ccg.expand_relation.wordnet", lambda: pytest.fail("WordNet was asked"))
    for id_, label in (("1", "in"), ("5", "breaks"), ("7", "in")):
        assert sorted([*answer(stage, id_)["new_relations"], label]) == ["breaks", "in", "made of"]
    assert answer(stage, "1") == answer(stage, "1")
    draws = {
        tuple(answer(ExpandRelation(order="random", seed=seed).with_fitted(fitted), "1")["new_relations"]) for seed in range(20)
    }
    assert draws == {("breaks", "made of"), ("made of", "breaks")}


def test_a_single_relation_leaves_none_to_draw() -> None:
    net = save_artifact({"relation_net": fit_relation_net([row(*TRAIN[0])]).content})
    found = answer(ExpandRelation(order="random").with_fitted(net), "1")
    assert found["status"]["reason"] == "the training set has no other relation"


@pytest.mark.parametrize("order", ["lca", "pooled", "random"])
def test_it_maps_alike_however_it_is_mapped(fitted: str, order: Any) -> None:
    stage = ExpandRelation(order=order).with_fitted(fitted)
    ds = prepare(Dataset.from_list([row(*entry) for entry in ASKED], features=get_task("relation").features), stage)
    rows = ds.map(stage, batched=True).to_list()
    assert [row["id"] for row in rows] == [asked[0] for asked in ASKED]
    assert sum(bool(row["new_relations"]) for row in rows) == {"lca": 4, "pooled": 4, "random": 7}[order]
    assert ds.map(stage).to_list() == rows


def test_settings_that_cannot_work_are_refused(fitted: str) -> None:
    with pytest.raises(ValueError, match=r"order.*'best'"):
        ExpandRelation(order="best")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"ratio.*1\.5"):
        ExpandRelation(ratio=1.5)
    with pytest.raises(StageError, match=r"not fitted.*system = system\.fit\(ds\)"):
        answer(ExpandRelation(), "1")
    with pytest.raises(FileNotFoundError, match=r"run ccg = ccg\.fit\(ds\) again"):
        answer(ExpandRelation().with_fitted("0" * 64), "1")
