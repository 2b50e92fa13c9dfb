"""Paired sets: from data in the style of Quoref's contrast set, AdversarialQA and AmbigQA, and from a system's output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, Features, List, Value

import hfcf
from hfcf.core.pairs import pair, pair_within, sources
from hfcf.core.recipe import parse_recipe
from hfcf.core.task import get_task
from hfcf.pipeline.recipes import RowsRecipe
from hfcf.pipeline.run import load_rows
from hfcf.training.scorers import ANSWERS

TASK = get_task("qa")


def row(name: str, context: str = "Ada wrote it.", **more: Any) -> dict[str, Any]:
    answers = {"text": [context.split()[0]], "answer_start": [0]}
    own = {"id": name, "title": "", "context": context, "question": f"who {name}", "answers": answers, "group_id": name}
    return {**own, "corpus": "made", "split": "test", **more}


def rows(*made: dict[str, Any], **extra: str) -> Dataset:
    return Dataset.from_list(list(made), features=Features({**TASK.features, **{k: Value(v) for k, v in extra.items()}}))


def test_an_id_may_be_nought() -> None:
    new = Dataset.from_list([{**row("x"), "of": 0}], features=Features({**TASK.features, "of": Value("int64")}))
    assert sources(pair(new, rows(row("0"), row("1")), "of"))["id"][:] == ["0"]


def test_a_contrast_set_names_its_originals() -> None:
    old = rows(row("a"), row("b"), row("unused"))
    new = rows(*(row(name, original_id=of) for name, of in (("b1", "b"), ("a1", "a"), ("b2", "b"))), original_id="string")
    pairs = pair(new, old, "original_id")
    assert pairs["id"][:] == ["b1", "a1", "b2"]
    assert sources(pairs)["id"][:] == ["b", "a", "b"]
    assert sources(pairs).features == old.features
    assert pairs["original_id"][:] == ["b", "a", "b"]


def test_the_questions_of_a_passage() -> None:
    old = rows(row("a1"), row("a2"), row("b1", "Byron did."))
    new = rows(row("x", "ADA wrote it"), row("y"), row("z", "Nobody did."))
    drawn = pair(new, old, ("context", "context"), seed=1)
    assert drawn["id"][:] == ["x", "y"]
    assert {one["id"] for one in drawn["source"]} <= {"a1", "a2"}
    assert pair(new.select([1, 0]), old, ("context", "context"), seed=1)["source"][1]["id"] == drawn["source"][0]["id"]
    several = {pair(new, old, ("context", "context"), seed=seed)["source"][0]["id"] for seed in range(20)}
    assert several == {"a1", "a2"}


def test_two_disambiguated_questions_of_one() -> None:
    made = rows(*(row(f"{case}{i}", case=case) for case, n in (("a", 3), ("b", 1), ("c", 2)) for i in range(n)), case="string")
    pairs = pair_within(made, "case")
    assert [one["case"] for one in pairs] == ["a", "c"]
    assert all(one["id"] != one["source"]["id"] and one["source"]["id"].startswith(one["case"]) for one in pairs)
    assert pair_within(made.select(range(3, 4)), "case").num_rows == 0


def test_what_both_sides_have_is_kept_and_a_systems_work_is_not() -> None:
    old = rows(row("a", regex=True, candidates="[]"), regex="bool", candidates="string")
    new = rows(row("a1", source_id="a", regex=False), source_id="string", regex="bool")
    (one,) = pair(new, old)
    assert one["source"]["regex"] is True
    assert "candidates" not in one["source"]


def test_an_original_keeps_its_aliases() -> None:
    features = Features({**TASK.features, "aliases": List(Value("string"))})
    old = Dataset.from_list([row("a", aliases=["Ada", "Ada Lovelace"])], features=features)
    pairs = pair(rows(row("a1", source_id="a"), source_id="string"), old)
    assert ANSWERS.gold(sources(pairs)) == [["Ada", "Ada Lovelace"]]
    assert ANSWERS.gold(pairs) == [["Ada"]], "the counterfactual has another answer, and no aliases of it"


@pytest.mark.parametrize(
    ("on", "message"),
    [
        ("original_id", "row 'a1': its original_id is 'gone', which is not an id of the originals"),
        ("source_id", "the counterfactuals have no column 'source_id'"),
    ],
)
def test_what_does_not_fit_is_told(on: str, message: str) -> None:
    new = rows(row("a1", original_id="gone"), original_id="string")
    with pytest.raises(ValueError, match=message):
        pair(new, rows(row("a")), on)
    with pytest.raises(ValueError, match=r"\b1\b.*'a'"):
        pair(new, rows(row("a"), row("a")), "original_id")
    claims = Dataset.from_list([{"id": "a", "claim": "c", "evidence": [], "label": "REFUTES"}])
    with pytest.raises(ValueError, match=r"qa.*verification"):
        pair(new, claims, "original_id")


def test_an_original_that_was_read_with_another_id_is_named() -> None:
    """A run numbers its rows by `numbered`; `from_dataset` names the same rows by their content."""
    claims = [{"claim": f"Tower {i} is tall.", "evidence": f"Tower {i} is 300 metres tall.", "label": "SUPPORTS"} for i in range(3)]
    read = hfcf.from_dataset(Dataset.from_list(claims))
    edit = {"field": "claim", "piece": -1, "start": 11, "end": 15, "before": "tall", "after": "low"}
    task = get_task("verification")
    new = {**read[1], "id": "row-2:crossaug:claim", "claim": "Tower 1 is low.", "source_id": "row-2", "system": "crossaug"}
    new |= {"change": "claim", "edits": [edit], "scores": []}
    made = Dataset.from_list([{name: new[name] for name in task.counterfactual}], features=task.counterfactual)
    with pytest.raises(ValueError, match="'row-2'") as error:
        pair(made, read)
    assert repr(read["id"][1]) in str(error.value)
    with pytest.raises(ValueError, match="'row-2'") as error:
        pair(made, read.select([0]))
    assert repr(read["id"][0]) in str(error.value)


def test_python_and_the_command_line_give_rows_the_same_ids(tmp_path: Path) -> None:
    claims = [{"claim": f"Tower {i} is tall.", "evidence": f"Tower {i} is 300 metres tall.", "label": "SUPPORTS"} for i in range(3)]
    file = tmp_path / "mine.jsonl"
    file.write_text("\n".join(map(json.dumps, claims)))
    in_recipe = load_rows(parse_recipe(RowsRecipe, {"corpus": "jsonl", "data_files": str(file)}, "test"))
    read = hfcf.from_dataset(Dataset.from_list(claims))
    assert in_recipe["id"][:] == read["id"][:]
    assert len(set(read["id"])) == 3


def test_a_pair_that_cannot_be_read_says_so() -> None:
    own = {"question": "who wrote it?", "context": "Ada wrote it.", "answer": "Ada", "answer_start": 0}
    old = hfcf.from_dataset([{"id": "a", **own}, {"id": "b", **own, "question": ""}], on_error="reject")
    new = hfcf.from_dataset([{"id": "a1", **own}, {"id": "b1", **own}, {"id": "a2", **own, "answer_start": 3}], on_error="reject")
    made = new.add_column("source_id", ["a", "b", "a"])
    assert [bool(status) for status in pair(made, old)["status"]] == [False, True, True]
    assert [bool(status) for status in pair(made.remove_columns("status"), old)["status"]] == [False, True, False]
    assert pair(made, old, pair_format="preference").num_rows == 0
