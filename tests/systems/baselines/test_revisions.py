"""Human revisions as a system: what people wrote, known by its contents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

import hfcf
from hfcf.core.stage import StageError
from hfcf.systems.baselines.revisions import Revisions

CAD = Path(__file__).parents[2] / "fixtures" / "corpora" / "cad_imdb"
SOURCE = {"from": [{"corpus": "cad_imdb", "data_dir": str(CAD)}]}


def load(**options: Any) -> Dataset:
    return hfcf.load("cad_imdb", data_dir=CAD, split="train", **options)


def test_each_review_gets_its_revision() -> None:
    revised = load(kind="revised")
    cf = hfcf.expand(Revisions(revisions=SOURCE)(load(kind="original")))
    assert [(row["source_id"], row["text"], row["label"]) for row in cf] == [
        (row["original_id"], row["text"], row["label"]) for row in revised
    ]
    done = Revisions(revisions=SOURCE)(revised)
    assert set(hfcf.rejected(done, system="revisions")["reason"]) == {"nobody revised it"}


def test_its_setting_is_what_the_revisions_say_not_where_they_lie() -> None:
    inner = {"from": [{"corpus": "cad_imdb", "data_dir": str(CAD / "sentiment"), "kind": "revised"}]}
    assert Revisions(revisions=inner) == Revisions(revisions=SOURCE)


def test_without_revisions_it_says_what_to_give() -> None:
    with pytest.raises((ValueError, StageError), match=r'Give revisions=\{"from"'):
        Revisions()(load())
    vitaminc = {"corpus": "vitaminc", "data_dir": str(CAD.parent / "vitaminc"), "split": "validation"}
    for wrong, reason in (({"corpus": "cad_imdb"}, "got the keys 'corpus'"), ({"from": [vitaminc]}, "original_id")):
        with pytest.raises(ValueError, match=reason):
            Revisions(revisions=wrong)
