"""Rows that the models of methods were trained on: left out, counted and named; and what methods add to the training rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from hfcf.core import recipe as recipes
from hfcf.core.contamination import save_seen
from hfcf.core.model import Model
from hfcf.core.pairs import pair
from hfcf.core.recipe import RecipeError
from hfcf.studies.compare import runner
from hfcf.studies.compare.comparison import Comparison, on_samples, open_comparison
from hfcf.studies.compare.contamination import (
    START,
    MethodModel,
    Overlap,
    list_models,
    mark_seen,
    models_of,
    overlap_table,
    unseen_rows,
)
from hfcf.studies.compare.methods import Method, build_methods
from hfcf.studies.compare.page import provenance
from hfcf.studies.compare.recipe import parse_comparison
from hfcf.studies.compare.training_sets import label_rows, training_rows
from hfcf.systems.baselines.eda import EDA
from hfcf.systems.ccg.system import CCG
from hfcf.systems.crossaug import CrossAug
from hfcf.systems.race.system import RACE
from hfcf.tasks.verification import LABELS, NOT_ENOUGH_INFO, REFUTES, SUPPORTS, TASK

VERDICT = "judge"


def row(i: int, label: str = "", kind: str = "Town") -> dict[str, Any]:
    evidence = [{"title": "", "text": f"{kind} {i} lies on river {i}."}]
    label = label or (SUPPORTS, REFUTES)[i % 2]
    return {"id": f"{kind}{i}", "claim": f"{kind} {i} is old.", "evidence": evidence, "label": label}


def rows(*made: dict[str, Any], corpus: str = "c") -> Dataset:
    full = [{**one, "group_id": one["id"], "corpus": corpus, "split": "train"} for one in made]
    return Dataset.from_list(full, features=TASK.features)


def stored(folder: Path, *trained_on: dict[str, Any]) -> str:
    """Weights that say what they were trained on; that no one reads."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"of": folder.name}), encoding="utf-8")
    if trained_on:
        save_seen(folder, rows(*trained_on, corpus="elsewhere"), Model("offline:minilm"))
    return str(folder)


def file_of(path: Path, made: Sequence[dict[str, Any]]) -> dict[str, Any]:
    path.write_text("".join(json.dumps(one) + "\n" for one in made), encoding="utf-8")
    return {"corpus": "jsonl", "data_files": str(path), "split": "train"}


@pytest.fixture
def content(tmp_path: Path) -> dict[str, Any]:
    """Twelve training rows; ten evaluation rows, of which the judge has seen three and the writer another one."""
    judge = stored(tmp_path / "judge", *(row(i, kind="City") for i in (0, 1, 2)), row(11))
    writer = stored(tmp_path / "writer", row(5, kind="City"))
    own = {"system": "crossaug", "settings": {"generator": writer, "verifier": judge}}
    cities = file_of(tmp_path / "c.jsonl", [row(i, kind="City") for i in range(10)])
    return {
        "compare": "verifiers",
        "name": "tiny",
        "preset": "paper",
        "train": file_of(tmp_path / "train.jsonl", [row(i) for i in range(12)]),
        "seeds": [1],
        "methods": {"none": None, "CrossAug": {**own, "changes": ["claim"]}},
        "verifier": {"model": stored(tmp_path / "start"), "epochs": 1},
        "evaluate": [{"name": "Cities", "setting": "challenge", **cities}],
    }


def opened(content: dict[str, Any], results: Path) -> Comparison:
    return open_comparison(parse_comparison(content), results)  # type: ignore[arg-type]


def test_the_models_of_a_system_are_those_that_it_reads() -> None:
    race = models_of(RACE.preset("offline"))
    assert Model("offline:minilm", adapter="hfcf:verifier") in race
    assert Model("offline:spacy") in race, "of an engine"
    assert not [one for one in race if "explainer" in one.name], "which the explainer of the preset does not read"
    assert Model("hfcf:explainer") in models_of(RACE.preset("offline", explainer="cure"))
    assert {"offline:minilm", "offline:t5"} <= {one.name for one in models_of(CCG.preset("offline"))}, "its trainings' starts"
    assert not models_of(EDA())


def test_rows_that_a_model_has_seen_are_not_evaluated_on(content: dict[str, Any], tmp_path: Path) -> None:
    comparison = opened({**content, "evaluate_take": 6}, tmp_path)
    (one,) = comparison.sets
    assert set(one.rows["id"]) == {f"City{i}" for i in (3, 4, 6, 7, 8, 9)}
    assert (one.about["available"], one.about["removed_as_overlap"]) == (10, 0)
    table = comparison.seen_table
    judge, writer, start = (str(tmp_path / name) for name in ("judge", "writer", "start"))
    assert f"| Rows | There | Left out as seen | Used | {writer} | {judge} |" in table
    assert "| training rows | 12 | 0 | 12 | 0 → 0 | 1 → 1 |" in table
    assert "| Cities | 10 | 4 | 6 | 1 → 0 | 3 → 0 |" in table
    assert f"Not known what {start} ({START}) was trained on: it is not counted, which is not the same as 0." in table
    assert f"- {judge}: CrossAug." in table


def test_all_methods_have_the_same_rows_and_a_switch_counts_alone(content: dict[str, Any], tmp_path: Path) -> None:
    alone = opened({**content, "methods": {"none": None}}, tmp_path)
    assert len(alone.sets[0].rows) == 10, "no method uses the judge"
    both = opened({**content, "unseen": []}, tmp_path)
    assert len(both.sets[0].rows) == 10
    assert "| Cities | 10 | 0 | 10 | 1 → 1 | 3 → 3 |" in both.seen_table
    method = {**content["methods"]["CrossAug"], "unseen": False}
    counted = opened({**content, "methods": {"none": None, "CrossAug": method}}, tmp_path)
    assert "| Cities | 10 | 0 | 10 | 1 → 1 | 3 → 3 |" in counted.seen_table
    assert "CrossAug; its rows are counted and not left out." in counted.seen_table
    others = {**method, "settings": {"generator": str(tmp_path / "writer")}}
    mixed = opened({**content, "methods": {**content["methods"], "none": None, "more": others}}, tmp_path)
    assert len(mixed.sets[0].rows) == 6, "another method does leave out what the writer has seen"


def test_training_rows_may_be_left_out_too(content: dict[str, Any], tmp_path: Path) -> None:
    comparison = opened({**content, "unseen": ["train", "evaluate"], "take": 11}, tmp_path)
    assert list(comparison.samples[0].train["id"]) == [f"Town{i}" for i in range(11)]
    assert "| training rows | 12 | 1 | 11 | 0 → 0 | 1 → 0 |" in comparison.seen_table
    content["train"] = file_of(tmp_path / "one.jsonl", [row(11)])
    with pytest.raises(RecipeError, match="train: every row was seen by a model of a method"):
        opened({**content, "unseen": ["train"]}, tmp_path)


def test_a_set_of_which_a_model_has_seen_all_is_named(
    content: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    known = {"name": "Known", "setting": "in-domain", **file_of(tmp_path / "k.jsonl", [row(i, kind="City") for i in (0, 1)])}
    comparison = opened({**content, "evaluate": [*content["evaluate"], known]}, tmp_path)
    assert [one.name for one in comparison.sets] == ["Cities"]
    assert "each of its 2 rows overlaps with a training row or was seen by a model" in caplog.text
    assert "| Known | 2 | 2 | 0 | 0 → 0 | 2 → 0 |" in comparison.seen_table


def test_what_changes_no_row_changes_no_key(content: dict[str, Any], tmp_path: Path) -> None:
    def keys() -> set[str]:
        comparison = opened(content, tmp_path)
        return {comparison.key(place) for place in comparison.places}

    content["evaluate"] = [{**content["evaluate"][0], **file_of(tmp_path / "d.jsonl", [row(i, kind="Lake") for i in range(6)])}]
    before = keys()
    for name in ("judge", "writer"):
        (tmp_path / name / "seen.npy").unlink()
    assert keys() == before


def test_of_a_pair_both_sides_count(tmp_path: Path) -> None:
    new = rows(*(row(i, kind="New") for i in range(4))).add_column("original", [f"Old{i}" for i in range(4)])
    paired = pair(new, rows(*(row(i, kind="Old") for i in range(4))), "original")
    folders = [stored(tmp_path / "a", row(0, kind="New")), stored(tmp_path / "b", row(1, kind="Old"))]
    models = list_models([], *map(Model, folders))
    marks = mark_seen(paired, models)
    assert marks == {folders[0]: [True, False, False, False], folders[1]: [False, True, False, False]}
    assert unseen_rows(marks, models, 4) == [2, 3]


def test_columns_with_the_same_rows_are_one_line() -> None:
    models = [MethodModel("m", ("A",), frozenset())]
    table = overlap_table([Overlap(name, 5, 0, 5, {"m": (2, 2)}) for name in ("1%", "3%")], models)
    assert "| 1%, 3% | 5 | 0 | 5 | 2 → 2 |" in table
    assert overlap_table([], []) == "No method uses a model."


# --- what methods add


def additions(labels: Sequence[str], sources: Sequence[str] = ()) -> Dataset:
    names = sources or [f"s{i}" for i in range(len(labels))]
    made = [
        {**row(i, label, kind="Made"), "change": "claim", "source_id": source, "group_id": source, "corpus": "c", "split": "train"}
        for i, (label, source) in enumerate(zip(labels, names, strict=True))
    ]
    return Dataset.from_list([{"id": "1", "counterfactuals": made}])


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What a judge is asked that says by a row's number: every fifth NOT ENOUGH INFO, every seventh nothing, the others in turn."""
    asked: list[dict[str, Any]] = []

    def judge(self: Any, rows: Sequence[dict[str, Any]], model: Model, max_length: int) -> list[Any]:
        asked.extend(rows)
        numbers = [int(one["id"].removeprefix("Pool")) for one in rows]
        verdicts = [NOT_ENOUGH_INFO if i % 5 == 0 else (SUPPORTS, REFUTES)[i % 2] for i in numbers]
        return [
            None if i % 7 == 0 else {label: 0.8 if label == verdict else 0.1 for label in LABELS}
            for i, verdict in zip(numbers, verdicts, strict=True)
        ]

    monkeypatch.setattr(type(TASK), "judge", judge)
    return asked


def pool(n: int) -> Dataset:
    return rows(*(row(i, REFUTES, kind="Pool") for i in range(1, n + 1)))


def test_a_judge_labels_as_many_rows_of_each_label_and_sees_none(judged: list[dict[str, Any]]) -> None:
    wanted = [SUPPORTS] * 6 + [REFUTES] * 2
    labelled = label_rows(pool(200), wanted, Model("any"), 64, LABELS[:2])
    assert sorted(labelled["label"]) == [REFUTES] * 2 + [SUPPORTS] * 6
    assert all("label" not in one for one in judged)
    assert len(judged) < 200, "no more are asked than are needed"
    for one in labelled:
        number = int(one["id"].removeprefix("Pool"))
        assert all((number % 5, number % 7))
        assert one["label"] == (SUPPORTS, REFUTES)[number % 2]
    assert labelled.features == pool(1).features
    turned = label_rows(pool(200).select(range(199, -1, -1)), wanted, Model("any"), 64, LABELS[:2])
    assert list(turned["id"]) == list(labelled["id"])


def test_where_a_label_is_short_others_make_up_the_number(judged: list[dict[str, Any]]) -> None:
    labelled = label_rows(pool(20), [SUPPORTS] * 12, Model("any"), 64, LABELS[:2])
    assert (labelled["label"].count(SUPPORTS), len(labelled)) == (7, 12)
    assert not len(label_rows(pool(20).select([]), [SUPPORTS], Model("any"), 64, LABELS[:2]))


def crossaug(**settings: Any) -> CrossAug:
    return CrossAug(generator=Model("g"), **settings)


def test_the_control_trains_on_judged_rows_in_the_place_of_counterfactuals(
    judged: list[dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    method = Method(VERDICT, crossaug(verifier=Model("v"), max_length=77), judged=True)
    assert method.judge == (Model("v"), 77)
    originals, made = rows(*map(row, range(4))), additions([SUPPORTS, REFUTES, REFUTES])
    scored = rows(row(2, kind="Pool"), row(3, kind="Pool"))  # no row of the pool that repeats these may be trained on
    kept, dropped = training_rows(method, originals, made, [scored], pool(30), LABELS[:2])
    assert (len(kept), dropped) == (7, 0)
    assert sorted(kept["label"][4:]) == [REFUTES, REFUTES, SUPPORTS]
    assert all(name.startswith("Pool") for name in kept["id"][4:])
    assert not {"Pool2", "Pool3"} & {one["id"] for one in judged}
    assert not caplog.text
    few, _ = training_rows(method, originals, made, [scored], pool(4), LABELS[:2])
    assert len(few) == 6
    assert "judge: the corpus has 2 further rows with a label of the verifier, not 3" in caplog.text


def test_a_judge_is_a_verifier_that_checks(content: dict[str, Any], tmp_path: Path) -> None:
    own = {"system": "crossaug", "settings": {"generator": str(tmp_path / "writer")}}
    for change, message in (
        ({**own, "judged": True}, "judged: no verifier checks what crossaug makes; give it one"),
        ({**content["methods"]["CrossAug"], "judged": True, "copies": True}, "copies and judged are two controls"),
        ({**own, "ratio": 0}, "ratio"),
    ):
        with pytest.raises(RecipeError, match=message):
            build_methods(parse_comparison({**content, "methods": {"none": None, "x": change}}))  # type: ignore[arg-type]


def test_the_pool_is_what_nothing_is_trained_on_and_no_model_has_seen(content: dict[str, Any], tmp_path: Path) -> None:
    control = {**content["methods"]["CrossAug"], "judged": True}
    content = {**content, "take": 8, "methods": {"none": None, "CrossAug": content["methods"]["CrossAug"], "judge": control}}
    comparison = opened(content, tmp_path)
    sample = comparison.samples[0]
    assert list(sample.pool["id"]) == ["Town8", "Town9", "Town10"], "the judge has seen Town11"
    definitions = [comparison.definition(method, sample, 1) for method in comparison.methods]
    assert [("pool" in one, "judged" in one) for one in definitions] == [(False, False), (False, False), (True, True)]
    small = parse_comparison({**content, "low_resource": {"sizes": [4], "samples": [1]}})
    (part,) = on_samples(comparison, small).samples  # type: ignore[arg-type]
    assert len(part.train) == 4
    assert set(part.pool["id"]) == {f"Town{i}" for i in range(8)} - set(part.train["id"])


def test_a_ratio_takes_the_first_of_each_source_and_then_the_second(caplog: pytest.LogCaptureFixture) -> None:
    originals = rows(*map(row, range(4)))
    made = additions([SUPPORTS] * 6, ["a", "a", "b", "c", "c", "c"])
    scored = rows(row(3, kind="Made"))  # which the first of c repeats: the next is its first
    kept, dropped = training_rows(Method("m", None, ratio=1.0), originals, made, [scored])
    assert dropped == 1
    assert set(kept["id"][4:]) >= {"Made0", "Made2", "Made4"}
    assert len(kept) == 8
    half, _ = training_rows(Method("m", None, ratio=0.5), originals, made, [scored])
    assert set(half["id"][4:]) < {"Made0", "Made2", "Made4"}
    assert len(half) == 6
    assert kept.column_names == originals.column_names
    assert not caplog.text
    training_rows(Method("m", None, ratio=2.0), originals, made, [scored])
    assert "m: there are 5 counterfactuals, and ratio asks for 8" in caplog.text
    assert Method("m", EDA(), ratio=1.0).definition != Method("m", EDA()).definition


def test_systems_see_the_training_rows_alone(content: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    comparison = opened({**content, "take": 5}, tmp_path)
    ran: list[list[str]] = []

    def watched(self: Any, ds: Dataset, **kwargs: Any) -> Dataset:
        ran.append(list(ds["id"]))
        assert not kwargs
        return ds

    monkeypatch.setattr(CrossAug, "__call__", watched)
    runner.counterfactuals(comparison, comparison.methods[1], comparison.samples[0], tmp_path / "work")
    assert ran == [[f"Town{i}" for i in range(5)]]
    text = provenance(parse_comparison(content), comparison, [], "hfcf")  # type: ignore[arg-type]
    assert "the same 5 rows of jsonl (of 12); its system sees no other row." in text


def test_cells_know_what_a_system_learned_from(content: dict[str, Any], tmp_path: Path) -> None:
    race = Method("RACE", RACE.preset("offline"))
    few, all_ = (opened({**content, "take": take}, tmp_path).samples[0] for take in (5, None))
    assert (race.learns, Method("CrossAug", crossaug()).learns, Method("none", None).learns) == (True, False, False)
    assert few.making(race)["fitted on"] == few.definition["rows"]
    # A system that learns nothing has the key that it had when systems were given all rows.
    assert few.making(Method("CrossAug", crossaug()))["fitted on"] == all_.definition["rows"]


# --- the recipes


def test_offline_recipes_train_and_score_on_halves_that_no_model_was_trained_on() -> None:
    race, crossaug, low = (
        recipes.read(recipes.find(f"compare_{name}"), ["preset=offline"]) for name in ("race", "crossaug", "crossaug_low")
    )
    halves = {one["name"]: one.get("half") for one in race["evaluate"]}
    assert (halves["FEVER"], halves["FEVEROUS"], halves["VitaminC"]) == (1, 1, 1)
    assert {"EDA", "CrossAug", "−EDIT&CONS", "judge's labels"} <= set(race["methods"])
    assert race["methods"]["judge's labels"] == {"judged": True}
    assert crossaug["methods"]["judge's labels"]["judged"]
    for one in (crossaug, low):
        assert (one["train"]["half"], one["evaluate"][0]["half"]) == ([1, 0], [1, 1])
        assert one["unseen"] == ["train", "evaluate"]
        assert [one["methods"][name]["ratio"] for name in ("EDA", "paraphrase")] == [1, 1]
        assert one["verifier"]["weight_decay"] == 0.01
    for name in ("compare_crossaug", "compare_crossaug_low"):
        assert recipes.read(recipes.find(name))["verifier"]["weight_decay"] == 0.0
