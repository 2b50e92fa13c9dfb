"""What methods add to the training rows, their controls, and what their keys know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asked
import pytest
from datasets import Dataset, Features, List, Value, concatenate_datasets
from kinds import claim
from swap_system import SwapRelation

from hfcf.core.model import Model
from hfcf.core.pairs import pair
from hfcf.core.pairs import sources as sources_of
from hfcf.core.recipe import RecipeError
from hfcf.core.system import System
from hfcf.core.task import get_task
from hfcf.studies.compare.methods import Method, label_rows, training_rows
from hfcf.systems.baselines.eda import EDA
from hfcf.systems.crossaug import CrossAug
from hfcf.tasks.verification import LABELS, NOT_ENOUGH_INFO, REFUTES, SUPPORTS, TASK


def rows(*made: dict[str, Any], corpus: str = "c") -> Dataset:
    full = [{**row, "group_id": row["id"], "corpus": corpus, "split": "train"} for row in made]
    return Dataset.from_list(full, features=TASK.features)


def additions(labels: Sequence[str], sources: Sequence[str] = ()) -> Dataset:
    names = sources or [f"s{i}" for i in range(len(labels))]
    made = [
        {
            **claim(i, label, kind="Made"),
            "change": "claim",
            "source_id": source,
            "group_id": source,
            "corpus": "c",
            "split": "train",
        }
        for i, (label, source) in enumerate(zip(labels, names, strict=True))
    ]
    return Dataset.from_list([{"id": "1", "counterfactuals": made}])


def pool(n: int) -> Dataset:
    return rows(*(claim(i, REFUTES, kind="Pool") for i in range(1, n + 1)))


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What a judge is asked that says by a row's number: every fifth NOT ENOUGH INFO, every seventh nothing, the others in turn."""
    questions: list[dict[str, Any]] = []

    def judge(self: Any, rows: Sequence[dict[str, Any]], model: Model, max_length: int) -> list[Any]:
        questions.extend(rows)
        numbers = [int(row["id"].removeprefix("Pool")) for row in rows]
        verdicts = [NOT_ENOUGH_INFO if i % 5 == 0 else (SUPPORTS, REFUTES)[i % 2] for i in numbers]
        return [
            None if i % 7 == 0 else {label: 0.8 if label == verdict else 0.1 for label in LABELS}
            for i, verdict in zip(numbers, verdicts, strict=True)
        ]

    monkeypatch.setattr(type(TASK), "judge", judge)
    return questions


def test_a_judge_labels_as_many_rows_of_each_label_and_sees_none(judged: list[dict[str, Any]]) -> None:
    wanted = [SUPPORTS] * 6 + [REFUTES] * 2
    labelled = label_rows(pool(200), wanted, Model("any"), 64, LABELS[:2])
    assert sorted(labelled["label"]) == [REFUTES] * 2 + [SUPPORTS] * 6
    assert all("label" not in row for row in judged)
    assert len(judged) < 200, "no more are asked than are needed"
    for row in labelled:
        number = int(row["id"].removeprefix("Pool"))
        assert all((number % 5, number % 7))
        assert row["label"] == (SUPPORTS, REFUTES)[number % 2]
    turned = label_rows(pool(200).select(range(199, -1, -1)), wanted, Model("any"), 64, LABELS[:2])
    assert list(turned["id"]) == list(labelled["id"])
    short = label_rows(pool(20), [SUPPORTS] * 12, Model("any"), 64, LABELS[:2])
    assert (short["label"].count(SUPPORTS), len(short)) == (7, 12), "where a label is short others make up the number"


def test_the_control_trains_on_judged_rows_in_the_place_of_counterfactuals(judged: list[dict[str, Any]]) -> None:
    method = Method("judge", CrossAug(generator=Model("g"), verifier=Model("v"), max_length=77), control="judged")
    assert method.judge == (Model("v"), 77)
    originals, made = rows(*map(claim, range(4))), additions([SUPPORTS, REFUTES, REFUTES])
    scored = rows(claim(2, kind="Pool"), claim(3, kind="Pool"))  # no row of the pool that repeats these may be trained on
    kept, dropped = training_rows(method, originals, made, [scored], pool(30), LABELS[:2])
    assert (len(kept), dropped) == (7, 0)
    assert sorted(kept["label"][4:]) == [REFUTES, REFUTES, SUPPORTS]
    assert all(name.startswith("Pool") for name in kept["id"][4:])
    assert not {"Pool2", "Pool3"} & {row["id"] for row in judged}
    assert len(training_rows(method, originals, made, [scored], pool(4), LABELS[:2])[0]) == 6


def test_copies_have_the_labels_of_the_counterfactuals_and_no_new_text() -> None:
    originals = rows(*(claim(i, label, kind="Old") for i, label in enumerate([SUPPORTS, REFUTES, SUPPORTS])))
    made = additions([REFUTES, SUPPORTS, REFUTES, SUPPORTS, SUPPORTS])
    kept, _ = training_rows(Method("copies", None, control="copies"), originals, made, [rows(claim(9, kind="Other"))])
    assert list(kept["label"])[3:] == [REFUTES, SUPPORTS, REFUTES, SUPPORTS, SUPPORTS]
    counts = [list(kept["id"]).count(f"Old{i}") for i in range(3)]
    assert counts[1] == 3
    assert sorted((counts[0], counts[2])) == [2, 3], "each in turn"
    with pytest.raises(RecipeError, match="REFUTES"):
        training_rows(Method("copies", None, control="copies"), originals.select([0]), made, [rows(claim(9, kind="Other"))])


def test_the_control_of_phrases_keeps_the_words_between_the_entities() -> None:
    row = {
        "id": "r1", "group_id": "1", "corpus": "c", "split": "train", "label": "Cause-Effect(e2,e1)",
        "tokens": ["We", "saw", "fire", "after", "smoke", "."], "head": {"start": 4, "end": 5, "type": ""},
        "tail": {"start": 2, "end": 3, "type": "t"},
    }  # fmt: skip
    features = get_task("relation").features
    originals = Dataset.from_list([{**row, "id": "r0", "group_id": "0"}], features=features)
    made = Dataset.from_list([{"id": "1", "counterfactuals": [{**row, "change": "relation", "source_id": "r0"}]}])
    scored = Dataset.from_list(
        [{**row, "id": "r9", "group_id": "9", "tokens": ["It", "is", "x", "by", "y", "!"]}], features=features
    )
    kept, dropped = training_rows(Method("phrases", SwapRelation(), control="phrases"), originals, made, [scored])
    assert (len(kept), dropped, kept[0]["tokens"]) == (2, 0, row["tokens"])
    new = kept[1]
    assert new["tokens"] == ["fire", "after", "smoke"]
    assert new["head"] == {"start": 2, "end": 3, "type": ""}
    assert new["tail"] == {"start": 0, "end": 1, "type": "t"}


def test_the_control_of_real_rows_adds_as_many_labelled_rows_at_the_shares_of_the_training_rows() -> None:
    originals = rows(*(claim(i, label, kind="Old") for i, label in enumerate([SUPPORTS, SUPPORTS, SUPPORTS, REFUTES])))
    further = rows(*(claim(i, (SUPPORTS, REFUTES)[i % 2], kind="Pool") for i in range(40)))
    scored = rows(claim(2, kind="Pool"), claim(3, kind="Pool"))
    method = Method("real", None, control="real")
    kept, _ = training_rows(method, originals, additions([REFUTES] * 8), [scored], further)
    assert Counter(kept["label"][4:]) == {SUPPORTS: 6, REFUTES: 2}, "whatever the labels of the counterfactuals are"
    own = dict(zip(further["id"], further["label"], strict=True))
    assert all(own[name] == label for name, label in zip(kept["id"][4:], kept["label"][4:], strict=True))
    assert not {"Pool2", "Pool3"} & set(kept["id"])
    assert len(set(kept["id"])) == 12


def test_a_ratio_takes_the_first_of_each_source_and_then_the_second() -> None:
    originals = rows(*map(claim, range(4)))
    made = additions([SUPPORTS] * 6, ["a", "a", "b", "c", "c", "c"])
    scored = rows(claim(3, kind="Made"))  # which the first of c repeats: the next is its first
    kept, dropped = training_rows(Method("m", None, ratio=1.0), originals, made, [scored])
    assert (len(kept), dropped) == (8, 1)
    assert set(kept["id"][4:]) >= {"Made0", "Made2", "Made4"}
    assert kept.column_names == originals.column_names
    half, _ = training_rows(Method("m", None, ratio=0.5), originals, made, [scored])
    assert len(half) == 6
    assert set(half["id"][4:]) < {"Made0", "Made2", "Made4"}


def test_a_counterfactual_whose_passage_is_scored_is_not_trained_on() -> None:
    def passage(i: int) -> str:
        return f"Ada of place{i} wrote: " + " ".join(f"w{i}x{j}" for j in range(120))

    def row(name: str, context: str) -> dict[str, Any]:
        return {**asked.question(name, about=name), "context": context, "answers": {"text": ["Ada"], "answer_start": [0]}}

    provenance = {"system": "rgf", "change": "reference", "edits": [], "scores": []}
    made = [{**row(f"new{i}", passage(i)), "source_id": f"old{i}", **provenance} for i in range(4)]
    window = " ".join(passage(1).split()[20:])  # a passage is also known where a row has a part of it
    paired = pair(
        asked.rows(row("perturbed", "Ada was here.")).add_column("of", ["source"]), asked.rows(row("source", passage(2))), "of"
    )
    kept, dropped = training_rows(
        Method("m", asked.Again()), asked.originals(3, "old"), Dataset.from_list([{"id": "old0", "counterfactuals": made}]),
        [asked.rows(row("a", window)), paired, sources_of(paired)],
    )  # fmt: skip
    assert (kept["id"][3:], dropped) == (["new0", "new3"], 2)


def more(monkeypatch: pytest.MonkeyPatch, further: Dataset, **fields: Any) -> Method:
    """A method that adds these rows."""
    monkeypatch.setattr("hfcf.studies.compare.methods.load_rows", lambda sources, training: further)
    return Method("more", None, more=({"corpus": "made up"},), **fields)


def test_further_rows_are_new_and_share_nothing_with_scored_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    further = concatenate_datasets([asked.originals(6, "old"), asked.originals(3)])
    method = more(monkeypatch, further)
    kept, dropped = training_rows(method, asked.originals(4, "old"), None, [asked.originals(1)])
    assert (kept["id"][:], dropped) == ([f"old{i}" for i in range(6)] + ["town1", "town2"], 1)


def test_further_questions_need_no_aliases(monkeypatch: pytest.MonkeyPatch) -> None:
    task = get_task("qa")

    def question(n: int, **more: Any) -> dict[str, Any]:
        answers = {"text": ["Ada"], "answer_start": [0]}
        texts = {"title": "", "context": f"Ada wrote book {n}.", "question": f"Who wrote book {n}?", "answers": answers}
        return {"id": f"q{n}", **texts, "group_id": f"q{n}", "corpus": "c", "split": "train", **more}

    plain = [Dataset.from_list([question(n)], features=task.features) for n in (1, 2)]
    features = Features({**task.features, "aliases": List(Value("string"))})
    own = Dataset.from_list([question(n, aliases=["Ada"]) for n in (3, 4)], features=features)
    kept, dropped = training_rows(more(monkeypatch, plain[0]), own, None, [own.select([1]), plain[1]])
    assert (list(kept["id"]), kept["aliases"][:], dropped) == (["q3", "q4", "q1"], [["Ada"], ["Ada"], None], 0)


def test_the_controls_of_further_rows_add_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    originals = rows(*(claim(i, (SUPPORTS, REFUTES)[i % 2], kind="Old") for i in range(4)))
    further = rows(*(claim(i, REFUTES, kind="Made") for i in range(6)))
    pool = rows(*(claim(i, (SUPPORTS, REFUTES)[i % 2]) for i in range(20)))
    real, _ = training_rows(more(monkeypatch, further, control="real"), originals, None, [rows(claim(50))], pool)
    assert Counter(real["label"][4:]) == {SUPPORTS: 3, REFUTES: 3}
    assert set(real["id"][4:]) <= set(pool["id"])
    copied, _ = training_rows(more(monkeypatch, further, control="copies"), originals, None, [rows(claim(50))])
    assert Counter(copied["label"][4:]) == {REFUTES: 6}, "as many of each label as the further rows have"
    assert set(copied["id"]) == set(originals["id"])


@dataclass(frozen=True, kw_only=True)
class Draw(SwapRelation):
    share: float = 0.5
    model: Model = Model("m")


def system_of(version: str = "1", **fields: Any) -> System:
    class Made(System):
        VERSION = version
        task = "relation"
        chain = (Draw,)

    return Made(**fields)


def test_settings_versions_and_weights_are_in_a_method_s_definition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def definition(version: str = "1", **fields: Any) -> Any:
        return Method("any", system_of(version, **fields)).definition

    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.json").write_text("{}", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    before = definition()
    assert Method("another", system_of()).definition == before
    assert Method("any", system_of(), control="copies").definition != before
    assert definition(share=0.25) != before
    assert definition("2") != before
    (tmp_path / "m" / "config.json").write_text('{"layers": 3}', encoding="utf-8")
    assert definition() != before
    (tmp_path / "m" / "config.json").write_text("{}", encoding="utf-8")
    assert definition() == before
    monkeypatch.setattr(Draw, "VERSION", "2")
    assert definition() != before
    assert Method("none", None).versions.keys() == {"comparison"}
    assert Method("EDA", EDA(), ratio=1.0).definition != Method("EDA", EDA()).definition
