"""Stages over datasets with a format, what they read and return, and columns read from Arrow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value
from datasets.formatting.formatting import LazyBatch

import hfcf
from hfcf.core import schema
from hfcf.core.columns import Columns
from hfcf.core.expand import augmented
from hfcf.core.funnel import funnel
from hfcf.core.stage import Reject, Stage, StageError
from hfcf.core.system import System
from hfcf.core.task import get_task
from hfcf.text.check import text_problem

TASK = get_task("verification")


@dataclass(frozen=True, kw_only=True)
class Mark(Stage):
    """Write an edit with numbers and a number that may be null."""

    inputs: ClassVar = {"claim": schema.TEXT, "evidence": schema.EVIDENCE}
    outputs: ClassVar = {"edits": schema.EDITS, "size": schema.INT}

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        if row["claim"].startswith("Bad"):
            raise Reject("it is bad", size=1)
        end = len(row["claim"])
        edit = {"field": "claim", "piece": -1, "start": 0, "end": end, "before": row["claim"], "after": "x"}
        return {"edits": [edit] * len(row["evidence"]), "size": None if end % 2 else end}


@dataclass(frozen=True, kw_only=True)
class Make(Stage):
    """Make a counterfactual of what `Mark` wrote."""

    inputs: ClassVar = {"claim": schema.TEXT, "evidence": schema.EVIDENCE, "label": schema.TEXT, "edits": schema.EDITS}
    optional: ClassVar = {"group_id": schema.TEXT, "corpus": schema.TEXT, "split": schema.TEXT}
    outputs: ClassVar = {"counterfactuals": List(dict(TASK.counterfactual))}

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        own = {name: row[name] for name in TASK.features}
        made = {
            **own,
            "claim": "x",
            "source_id": row["id"],
            "system": "marks",
            "change": "claim",
            "edits": row["edits"],
            "scores": [],
        }
        return {"counterfactuals": [made], "status": {"accepted": True, "stage": self.name, "reason": None}}


class Marks(System):
    task = "verification"
    chain = (Mark, Make)


def made() -> Dataset:
    claims = ["Rome is old.", "Bad row.", "Oslo is new", "Bad again."]
    evidence = [[{"title": "T", "text": f"Text {i}."}] * (i % 3 + 1) for i in range(len(claims))]
    common = {"label": ["SUPPORTS"] * 4, "corpus": ["c"] * 4, "split": ["train"] * 4}
    columns = {"id": list("abcd"), "group_id": list("abcd"), "claim": claims, "evidence": evidence, **common}
    return Dataset.from_dict(columns, features=TASK.features)


@pytest.mark.parametrize("kind", ["pandas", "numpy", "torch", "arrow"])
def test_a_system_works_on_the_plain_rows_of_a_formatted_dataset(kind: str) -> None:
    expected, found = Marks()(made()), Marks()(made().with_format(kind))
    assert list(found) == list(expected)
    assert hfcf.expand(found.with_format(kind))[:] == hfcf.expand(expected)[:]
    assert hfcf.expand(DatasetDict({"train": found.with_format(kind)}))["train"][:] == hfcf.expand(expected)[:]
    assert hfcf.rejected(found.with_format(kind))[:] == hfcf.rejected(expected)[:]
    assert augmented(found.with_format(kind))[:] == augmented(expected)[:]
    assert funnel(found.with_format(kind), list(Marks.parts)) == funnel(expected, list(Marks.parts))
    assert hfcf.prepare(made().with_format(kind), Marks())[0] == hfcf.prepare(made(), Marks())[0]


def test_a_stream_with_a_format_gives_the_same_rows() -> None:
    expected, stream = list(Marks()(made())), made().to_iterable_dataset().with_format("numpy")
    assert list(Marks()(stream)) == expected


def test_a_format_of_some_columns_hides_none_from_a_system() -> None:
    assert list(Marks()(made().with_format(None, columns=["id"]))) == list(Marks()(made()))


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("kind", ["numpy", "arrow", "pandas", "torch"])
def test_a_bare_map_over_a_format_gives_equal_rows_or_says_what_to_do(kind: str, batched: bool) -> None:
    prepared = hfcf.prepare(made(), Marks())
    marked = prepared.map(Mark(), batched=batched)
    for before, stage in ((prepared, Mark()), (marked, Make())):
        if kind == "pandas" or (kind == "torch" and isinstance(stage, Make)):  # torch leaves texts as they are
            with pytest.raises(StageError, match=r"ds\.with_format\(None\)"):
                before.with_format(kind).map(stage, batched=batched)
        else:
            found = before.with_format(kind).map(stage, batched=batched)
            assert list(found.with_format(None)) == list(before.map(stage, batched=batched))
            assert found.features == before.features


def test_a_stage_leaves_in_arrow_what_it_does_not_change(monkeypatch: pytest.MonkeyPatch) -> None:
    returned = []

    class Seen(Mark):
        def __call__(self, rows: Any, *args: Any, **kwargs: Any) -> Any:
            answer = super().__call__(rows, *args, **kwargs)
            assert isinstance(rows, LazyBatch)
            returned.append((sorted(answer), set(rows) - rows.keys_to_format))
            return answer

    Seen.name = "mark"
    prepared = hfcf.prepare(made(), Mark())
    rows = list(prepared.map(Seen(), batched=True, batch_size=1))
    # Batches without a rejected row don't touch the status; `map` has decoded no column at all.
    assert returned == [(["edits", "size"], set()), (["size", "status"], set())] * 2
    assert rows == list(prepared.map(Mark(), batched=True, batch_size=3)) == list(prepared.map(Mark()))


def test_classes_are_read_as_the_numbers_that_map_hands_over() -> None:
    ds = Dataset.from_dict(
        {"id": ["1"], "label": [1]}, features=Features({"id": schema.TEXT, "label": ClassLabel(names=["a", "b"])})
    )
    seen = []
    ds.map(lambda batch: seen.append(Columns(batch)["label"]), batched=True)
    assert seen == [[1]]


@pytest.mark.parametrize("text", ["a\u00a0b", "a\nb", "\u00a0", "12", "１２", "a\\b", "a b", "é", " ", "a" * 20_000])
@pytest.mark.parametrize("letters", [True, False])
def test_sound_texts_stay_sound(text: str, letters: bool) -> None:
    sound = bool(text.strip()) and (not letters or any(map(str.isalpha, text)))
    assert (text_problem(text, "t", letters=letters) is None) == sound


def test_numbers_are_cast_as_declared() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Numbers(Stage):
        inputs: ClassVar = {"claim": schema.TEXT}
        outputs: ClassVar = {"value": Value("float64")}

        def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
            return [{"value": value} for value in (1, 2.5, None, 3.0)]

    assert hfcf.prepare(made(), Numbers()).map(Numbers(), batched=True)["value"][:] == [1.0, 2.5, None, 3.0]
