"""Evaluation sets: what overlaps with training or was seen by a model, pairs and who cleaned them, small samples."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import asked
import kinds
import pytest
from datasets import Dataset
from kinds import Tiny, claim, file_of

from hfcf.core.contamination import save_seen
from hfcf.core.expand import balanced_sample, expand
from hfcf.core.model import Model
from hfcf.core.pairs import pair
from hfcf.core.recipe import RecipeError
from hfcf.studies.compare.contamination import START, list_models, mark_seen, models_of, unseen_rows
from hfcf.studies.compare.recipe import EvaluationSource, parse_comparison
from hfcf.studies.compare.run import dry_run
from hfcf.studies.compare.sets import EvaluationSet, check_no_overlap, keep_correct, load_pairs, load_sets
from hfcf.studies.human.export import export
from hfcf.studies.human.ratings import RATED, read_ratings
from hfcf.systems.baselines.eda import EDA
from hfcf.systems.ccg.system import CCG
from hfcf.systems.race.system import RACE
from hfcf.tasks.verification import LABELS, REFUTES, SUPPORTS, TASK

Content = dict[str, Any]


def rows(*made: dict[str, Any], corpus: str = "c") -> Dataset:
    full = [{**row, "group_id": row["id"], "corpus": corpus, "split": "train"} for row in made]
    return Dataset.from_list(full, features=TASK.features)


def stored(folder: Path, *trained_on: dict[str, Any]) -> str:
    """Weights that say what they were trained on; that no one reads."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", "of": folder.name}), encoding="utf-8")
    if trained_on:
        save_seen(folder, rows(*trained_on, corpus="elsewhere"), Model("offline:minilm"))
    return str(folder)


@pytest.fixture
def content(tmp_path: Path) -> Content:
    """Twelve training rows; ten evaluation rows, of which the judge has seen three and the writer another one."""
    judge = stored(tmp_path / "judge", *(claim(i, kind="City") for i in (0, 1, 2)), claim(11))
    settings = {"generator": stored(tmp_path / "writer", claim(5, kind="City")), "verifier": judge}
    cities = file_of(tmp_path / "c.jsonl", [claim(i, kind="City") for i in range(10)])
    return {
        "compare": "models", "name": "tiny", "preset": "paper", "seeds": [1],
        "train": file_of(tmp_path / "train.jsonl", [claim(i) for i in range(12)]),
        "methods": {"none": None, "CrossAug": {"system": "crossaug", "settings": settings, "changes": ["claim"]}},
        "model": {"model": stored(tmp_path / "start"), "epochs": 1},
        "evaluate": [{"name": "Cities", "setting": "challenge", **cities}],
    }  # fmt: skip


def test_the_models_of_a_system_are_those_that_it_reads() -> None:
    race = models_of(RACE.preset("offline"))
    assert {Model("offline:minilm", adapter="hfcf:verifier"), Model("offline:spacy")} <= set(race)
    assert not [model for model in race if "explainer" in model.name], "which the explainer of the preset does not read"
    assert {"offline:minilm", "offline:t5"} <= {model.name for model in models_of(CCG.preset("offline"))}, "its trainings' starts"
    assert not models_of(EDA())


def test_rows_that_a_model_has_seen_are_not_evaluated_on(content: Content, tmp_path: Path) -> None:
    comparison = kinds.opened({**content, "evaluate_take": 6}, tmp_path)
    (test_set,) = comparison.sets
    assert set(test_set.rows["id"]) == {f"City{i}" for i in (3, 4, 6, 7, 8, 9)}
    assert (test_set.available, test_set.removed) == (10, 0)
    table = comparison.seen_table
    assert "| training rows | 12 | 0 | 12 | 0 → 0 | 1 → 1 |" in table
    assert "| Cities | 10 | 4 | 6 | 1 → 0 | 3 → 0 |" in table
    assert f"{tmp_path / 'start'} ({START})" in table, "it is not known what the start was trained on"


@pytest.mark.parametrize(
    ("change", "evaluated", "counts"),
    [
        ({"methods": {"none": None}}, 10, None),
        ({"unseen": []}, 10, "| Cities | 10 | 0 | 10 | 1 → 1 | 3 → 3 |"),
        ({"unseen": ["train", "evaluate"], "take": 11}, 6, "| training rows | 12 | 1 | 11 | 0 → 0 | 1 → 0 |"),
    ],
)
def test_a_recipe_says_which_seen_rows_are_left_out(
    change: Content, evaluated: int, counts: str | None, content: Content, tmp_path: Path
) -> None:
    comparison = kinds.opened({**content, **change}, tmp_path)
    assert len(comparison.sets[0].rows) == evaluated
    assert counts is None or counts in comparison.seen_table


def test_a_method_may_count_the_rows_of_its_models_alone(content: Content, tmp_path: Path) -> None:
    method = {**content["methods"]["CrossAug"], "unseen": False}
    assert len(kinds.opened({**content, "methods": {"none": None, "CrossAug": method}}, tmp_path).sets[0].rows) == 10
    more = {**method, "settings": {"generator": str(tmp_path / "writer")}}
    mixed = kinds.opened({**content, "methods": {**content["methods"], "more": more}}, tmp_path)
    assert len(mixed.sets[0].rows) == 6, "another method does leave out what the writer has seen"


def test_rows_in_columns_of_ones_own(content: Content, tmp_path: Path) -> None:
    own = {"columns": {"claim": "statement", "evidence": "passage", "label": "verdict"}, "labels": {"yes": SUPPORTS, "no": REFUTES}}
    for name, kind, numbers in (("mine", "Village", range(8)), ("theirs", "City", range(10, 15))):
        made = [claim(i, kind=kind) for i in numbers]
        lines = [
            {
                "statement": row["claim"],
                "passage": row["evidence"][0]["text"],
                "verdict": "yes" if row["label"] == SUPPORTS else "no",
            }
            for row in made
        ]
        Dataset.from_list(lines).to_csv(tmp_path / f"{name}.csv")
    files = {name: {"path": "csv", "data_files": str(tmp_path / f"{name}.csv")} for name in ("mine", "theirs")}
    evaluate = {"corpus": files["theirs"], "split": "train", "setting": "challenge", **own}
    changed = {**content, "train": {"corpus": files["mine"], **own}, "evaluate": [evaluate], "methods": {"none": None}}
    comparison = kinds.opened(changed, tmp_path)
    assert len(comparison.samples[0].train) == 8
    (test_set,) = comparison.sets
    assert (test_set.name, len(test_set.rows)) == ("csv", 5)
    assert set(test_set.rows["label"]) <= {SUPPORTS, REFUTES}
    recipe = tmp_path / "absent.yaml"
    evaluate["corpus"] = {"path": "csv", "data_files": str(tmp_path / "nowhere.csv")}
    recipe.write_text(json.dumps({**changed, "evaluate": [evaluate]}), encoding="utf-8")
    assert dry_run(recipe)["absent"] == [str(tmp_path / "nowhere.csv")]


def test_the_classes_of_the_start_are_checked_in_the_dry_run(content: Content, tiny_model: Tiny, tmp_path: Path) -> None:
    start = tiny_model("classifier")  # three classes, and the rows have two labels
    recipe, model = tmp_path / "start.yaml", {**content["model"], "model": start}
    recipe.write_text(json.dumps({**content, "methods": {"none": None}, "model": model}), encoding="utf-8")
    with pytest.raises(RecipeError) as error:
        dry_run(recipe, results=tmp_path)
    for fact in ("model", start, *LABELS, "ways: 3"):
        assert fact in str(error.value)
    assert dry_run(recipe, changes=["ways=3"], results=tmp_path)["trainings"] == 1


def test_without_a_row_nothing_is_compared(content: Content, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    known = {"name": "Known", "setting": "in-domain", **file_of(tmp_path / "k.jsonl", [claim(i, kind="City") for i in (0, 1)])}
    comparison = kinds.opened({**content, "evaluate": [*content["evaluate"], known]}, tmp_path)
    assert [test_set.name for test_set in comparison.sets] == ["Cities"]
    assert "Known" in caplog.text
    assert "| Known | 2 | 2 | 0 | 0 → 0 | 2 → 0 |" in comparison.seen_table
    seen = {**content, "unseen": ["train"], "train": file_of(tmp_path / "one.jsonl", [claim(11)])}
    with pytest.raises(RecipeError) as error:
        kinds.opened(seen, tmp_path)
    assert "train" in str(error.value)


def test_the_pool_is_what_nothing_is_trained_on_and_no_model_has_seen(
    content: Content, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    judge = {**content["methods"]["CrossAug"], "control": "judged"}
    kinds.opened({**content, "methods": {**content["methods"], "the control": judge}, "take": None}, tmp_path)
    assert "the control" in caplog.text, "nothing is left for it"
    caplog.clear()
    content = {**content, "take": 8, "methods": {**content["methods"], "judge": judge}}
    comparison = kinds.opened(content, tmp_path)
    (sample,) = comparison.samples
    assert set(sample.pool["id"]) == {f"Town{i}" for i in range(11)} - set(sample.train["id"]), "the judge has seen Town11"
    assert all(fact in caplog.text for fact in ("judge", "8 training rows", str(len(sample.pool))))
    caplog.clear()
    (part,) = kinds.opened({**content, "low_resource": {"sizes": [2], "samples": [1]}}, tmp_path).samples
    assert len(part.train) == 2
    assert not caplog.text
    assert set(part.pool["id"]) == {*sample.train["id"]} - {*part.train["id"], "Town11"}


def test_a_sorted_file_is_drawn_from_by_a_hash_of_ids(content: Content, tmp_path: Path) -> None:
    made = [claim(i, label) for i, label in enumerate([LABELS[0]] * 20 + [LABELS[1]] * 20)]
    files = [file_of(tmp_path / f"{name}.jsonl", each) for name, each in (("a", made), ("b", made[::-1]))]
    plain = {**content, "methods": {"none": None}, "take": 10}
    first, second = (kinds.opened({**plain, "train": train}, tmp_path).samples[0].train for train in files)
    assert set(first["label"]) == set(LABELS[:2])
    assert set(first["id"]) == set(second["id"]), "whatever the order of the file is"
    for change in ({"take": 1}, {"take": None, "train": {**files[0], "take": 20}}):
        with pytest.raises(RecipeError) as error:
            kinds.opened({**plain, "train": files[0], **change}, tmp_path)
        assert "train" in str(error.value)
        assert LABELS[0] in str(error.value) or LABELS[1] in str(error.value)


def test_the_labels_of_open_tasks_are_checked_too(content: Content, tmp_path: Path) -> None:
    texts = [{"id": str(i), "text": f"Text {i}.", "label": "good" if i < 10 else "bad"} for i in range(20)]
    file = tmp_path / "texts.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in texts), encoding="utf-8")
    train = {"corpus": "texts", "data_files": str(file), "split": "train"}
    one = {"name": "texts", "setting": "in-domain", **train, "skip": 15}
    plain = {**content, "methods": {"none": None}, "take": None, "evaluate": [one]}
    assert len(kinds.opened({**plain, "train": {**train, "take": 12}}, tmp_path).samples[0].train) == 12
    with pytest.raises(RecipeError, match="good"):
        kinds.opened({**plain, "train": {**train, "take": 10}}, tmp_path)


def test_of_a_pair_both_sides_count(tmp_path: Path) -> None:
    new = rows(*(claim(i, kind="New") for i in range(4))).add_column("original", [f"Old{i}" for i in range(4)])
    paired = pair(new, rows(*(claim(i, kind="Old") for i in range(4))), "original")
    models = list_models(
        [], *map(Model, [stored(tmp_path / "a", claim(0, kind="New")), stored(tmp_path / "b", claim(1, kind="Old"))])
    )
    assert unseen_rows(mark_seen(paired, models), models, 4) == [2, 3]


def test_evaluation_rows_do_not_depend_on_their_order_and_overlap_with_none_of_training(tmp_path: Path) -> None:
    training, made = rows(claim(99)), [claim(i, kind="City") for i in range(9)]
    sources = [file_of(tmp_path / f"{name}.jsonl", each) for name, each in (("a", made), ("b", made[::-1]))]
    first, second = (
        load_sets([EvaluationSource(**{**source, "setting": "challenge"})], None, training, 5, LABELS[:2])[0] for source in sources
    )
    assert first.ids == second.ids
    check_no_overlap([first], training)
    again = rows({**claim(3, REFUTES, kind="City"), "id": "again", "claim": first.rows["claim"][0].upper()})
    with pytest.raises(ValueError, match="1 evaluation rows"):
        check_no_overlap([first], again)


def test_samples_are_nested_and_share_their_sets(content: Content, tmp_path: Path) -> None:
    low = {"sizes": [8, 4], "samples": [1, 2]}
    comparison = kinds.opened({**content, "low_resource": low}, tmp_path)
    assert [sample.number for sample in comparison.samples] == [(4, 1), (4, 2), (8, 1), (8, 2)]
    small, _, large, _ = comparison.samples
    assert set(small.train["id"]) < set(large.train["id"])
    assert sorted(small.train["label"]) == [REFUTES] * 2 + [SUPPORTS] * 2
    assert all(sample.sets == small.sets for sample in comparison.samples)
    assert len({comparison.key(place) for place in comparison.places}) == 8
    ds = Dataset.from_dict({"id": [f"r{i}" for i in range(30)], "label": [("A", "B", "C")[i % 3] for i in range(30)]})
    turned = balanced_sample(ds.select(range(29, -1, -1)), 6, seed=4)
    assert set(turned["id"]) == set(balanced_sample(ds, 6, seed=4)["id"])
    shares = {"A": 2.7, "B": 1, "C": 1}
    drawn = [balanced_sample(ds, n, seed=4, shares=shares) for n in range(1, 15)]
    assert all(set(less["id"]) < set(more["id"]) for less, more in itertools.pairwise(drawn))
    assert [drawn[-1]["label"].count(label) for label in "ABC"] == [8, 3, 3]
    with pytest.raises(ValueError, match="D"):
        balanced_sample(ds, 6, seed=4, shares={"D": 1})


def test_a_method_may_have_some_of_the_sizes(content: Content, tmp_path: Path) -> None:
    name = next(name for name, part in content["methods"].items() if part)
    part = {**content["methods"][name], "sizes": [4]}
    changed = {**content, "methods": {**content["methods"], name: part}}
    comparison = kinds.opened({**changed, "low_resource": {"sizes": [8, 4], "samples": [1]}}, tmp_path)
    assert {place[1].size for place in comparison.places if place[0] == name} == {4}
    assert {place[1].size for place in comparison.places if place[0] != name} == {4, 8}
    with pytest.raises(RecipeError, match="4"):
        kinds.opened({**changed, "low_resource": {"sizes": [8], "samples": [1]}}, tmp_path)


# --- pairs


def test_aliases_of_originals_are_part_of_what_a_cell_is_scored_on() -> None:
    originals = asked.originals(4)
    known = originals.add_column("aliases", [["Ada King"]] * 4)
    first, second = (EvaluationSet("s", "challenge", pair(asked.perturbed(4), old, "original_id")) for old in (originals, known))
    assert first.ids != second.ids
    assert first.shared["sources"] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("pairs", "fact"),
    [
        ({}, "give one of"),
        ({"system": "again", "run": "out"}, "give one of"),
        ({"within": "case", "preset": "offline"}, "preset"),
        ({"originals": {"split": "original"}}, "by"),
        ({"within": "case", "ratings": "out"}, "ratings"),
    ],
)
def test_pairs_of_a_recipe_are_checked(pairs: Content, fact: str, tmp_path: Path) -> None:
    test_set = {"name": "Contrast", "setting": "challenge", "corpus": "asked", "pairs": pairs}
    with pytest.raises(RecipeError) as error:
        parse_comparison({**kinds.questions(tmp_path, str), "evaluate": [test_set]})
    assert fact in str(error.value)


def test_pairs_come_from_a_run_or_a_system_and_nobody_cleaned_them(tmp_path: Path) -> None:
    made = asked.perturbed(6).rename_column("original_id", "source_id")
    made.to_parquet(str(tmp_path / "rows.parquet"))
    for how in ({"run": str(tmp_path / "rows.parquet")}, {"system": "again"}):
        source = EvaluationSource.model_validate({"corpus": "asked", "setting": "in-domain", "pairs": how})
        pairs, cleaned = load_pairs(asked.originals(6), source, None, "evaluate: Ours")
        assert (len(pairs), cleaned) == (6, "not cleaned")


def test_pairs_that_people_found_wrong_or_that_read_otherwise_are_left_out(tmp_path: Path) -> None:
    made = expand(asked.Again()(asked.originals(4)))
    export({"ours": made}, "rgf", tmp_path / "rated", raters=1)
    sheet = tmp_path / "rated" / "raters" / "rater-1.csv"
    lines = sheet.read_text("utf-8-sig").splitlines()
    filled = [line.replace(',"","",""', ',"1","0",""' if "town1" in line else ',"1","1",""') for line in lines]
    sheet.write_text("\n".join(filled), "utf-8")
    read_ratings(tmp_path / "rated", by="one language model, no person")
    rated = tmp_path / "rated" / RATED
    source = EvaluationSource.model_validate(
        {"corpus": "asked", "setting": "in-domain", "pairs": {"system": "again", "ratings": str(rated)}}
    )
    pairs, cleaned = load_pairs(asked.originals(4), source, None, "evaluate: Ours")
    assert (len(pairs), cleaned) == (3, "cleaned by one language model, no person")
    changed = made.map(lambda row: {"question": row["question"].replace("town0 later", "town0 earlier")})
    assert keep_correct(changed, str(rated))[0]["source_id"][:] == ["town2", "town3"]
    with pytest.raises(FileNotFoundError):
        keep_correct(made, str(tmp_path / "elsewhere" / RATED))
