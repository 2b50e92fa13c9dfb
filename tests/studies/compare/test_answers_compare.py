"""Comparisons of tasks without labels: open answers with alternatives, paired sets, small samples."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import asked
import numpy as np
import pytest
from datasets import Dataset, concatenate_datasets

from hfcf import systems
from hfcf.cli.tables import print_comparison
from hfcf.core.expand import expand
from hfcf.core.pairs import pair
from hfcf.core.pairs import sources as sources_of
from hfcf.core.recipe import RecipeError
from hfcf.hub.previous_run import ExistingResultError
from hfcf.studies.compare.dry_run import dry_run
from hfcf.studies.compare.frame import make_grid
from hfcf.studies.compare.methods import Method, build_methods
from hfcf.studies.compare.recipe import Evaluation, parse_comparison
from hfcf.studies.compare.run import compare
from hfcf.studies.compare.sets import EvaluationSet, keep_correct, load_pairs
from hfcf.studies.compare.stats import kinds_of, paired_bootstrap
from hfcf.studies.compare.training_sets import training_rows, with_more
from hfcf.studies.human.export import export
from hfcf.studies.human.ratings import RATED, read_ratings
from hfcf.training.consistency import consistency
from hfcf.training.data import drop_related
from hfcf.training.scorers import ANSWERS


@pytest.fixture(autouse=True)
def parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that knows the answers, a system of questions, and corpora of this file."""
    known = systems.systems()
    monkeypatch.setattr(systems, "systems", lambda: {**known, "again": "asked:Again"})
    monkeypatch.setitem(sys.modules, "hfcf.training.reader_trainer", asked)
    made = {
        "train": asked.originals(16, "old", "train"), "original": asked.originals(60), "perturbed": asked.perturbed(60),
    }  # fmt: skip
    monkeypatch.setattr("hfcf.corpora.load", lambda corpus, split="train", data_dir=None: made[split])


def recipe(tmp_path: Path, **more: Any) -> Path:
    (tmp_path / "weights").mkdir()
    pairs = {"originals": {"split": "original"}, "by": "original_id"}
    content = {
        "compare": "models", "name": "asked", "seeds": [1, 2], "methods": {"none": None, "again": {"system": "again"}},
        "model": {"model": str(tmp_path / "weights")}, "train": {"corpus": "asked", "split": "train"},
        "evaluate": [
            {"name": "Old", "setting": "in-domain", "corpus": "asked", "split": "original"},
            {"name": "Contrast", "setting": "challenge", "corpus": "asked", "split": "perturbed", "pairs": pairs},
        ],
        **more,
    }  # fmt: skip
    path = tmp_path / "asked.yaml"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def section(text: str, title: str) -> str:
    return text.split(f"{title}\n")[1].split("\n#")[0]


def test_open_answers_and_pairs_are_compared(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, out, results = recipe(tmp_path), tmp_path / "out", tmp_path / "results"
    before = dry_run(path, results=results)
    assert (before["trainings"], before["seconds"], before["absent"]) == (4, None, [])
    assert before["methods"]["again"] == {"finished": 0, "to_compute": 4}
    assert before["rows"] == {"train": [16], "sets": {"Old": 60, "Contrast": 60}}
    with caplog.at_level("INFO", logger="hfcf"):
        assert compare(path, out, results=results)["missing"] == 0
    shown = [record.getMessage() for record in caplog.records if record.getMessage().startswith("cell")]
    assert shown[0] == "cells 1 to 2 of 8: none, 16 rows, seed 1"
    assert shown[1:] == [
        f"cells {first} to {first + 1} of 8, less than 1 min left: {method}, 16 rows, seed {seed}"
        for first, method, seed in ((3, "again", 1), (5, "none", 2), (7, "again", 2))
    ]
    after = dry_run(path, results=results)
    assert (after["trainings"], after["seconds"]) == (0, 0)
    assert after["methods"]["none"] == {"finished": 4, "to_compute": 0}
    lines = [json.loads(line) for line in (results / "asked.jsonl").read_text(encoding="utf-8").splitlines()]
    cells = {(one["method"], one["corpus"]): one for one in lines if "cell" in one}
    assert cells["again", "Old"]["counterfactuals"] == 16
    none, again = cells["none", "Contrast"], cells["again", "Contrast"]
    old, new = (cells[method, "Old"]["predicted"] for method in ("none", "again"))
    assert old == new, "the reader's answers to the originals do not depend on what it was trained on"
    right_old = np.array([one.startswith("the ") for one in none["sources"]["predicted"]])
    for cell in (none, again):
        right = np.array([one.startswith("the ") for one in cell["predicted"]])
        assert cell["em"] == round(right.mean(), 4) < cell["f1"] < 1
        assert cell["consistency"] == round(right[right_old].mean(), 4)
        assert cell["source_right"] == round(right_old.mean(), 4)
    assert again["consistency"] > none["consistency"]
    gold = [one["gold"] for one in lines if "set" in one]
    assert len(gold) == 3, "the true answers to originals, counterfactuals, and the plain set stand once each"
    text = (out / "table.md").read_text(encoding="utf-8")
    assert "majority" not in text
    assert "| Contrast | challenge | 60 | 60 |" in section(text, "## Sizes")
    table = section(text, "## Pairwise consistency (%)")
    assert "| *pairs* | 60 |" in table
    assert f"| none | {100 * none['consistency']:.1f} ± 0.0, n {right_old.sum()} |" in table
    assert "| *sources* | 60 |" in table
    assert f"| again | **{100 * again['consistency']:.1f} ± 0.0**" in table
    by_change = section(text, "### By change (%)")
    assert "| *pairs* | 30 | 30 |" in by_change
    assert f"n {right_old[::2].sum()} |" in by_change
    assert "| Method | Contrast: 1–4 | Contrast: 5–10 |" in section(text, "### By edit distance (%)")
    assert f",consistency,{none['consistency']}\n" in (out / "table.csv").read_text(encoding="utf-8")
    assert compare(path, out, results=results)["missing"] == 0
    assert len((results / "asked.jsonl").read_text(encoding="utf-8").splitlines()) == len(lines)


def test_a_control_is_trained_on_further_labelled_rows(tmp_path: Path) -> None:
    more: dict[str, Any] = {"more": [{"corpus": "asked", "split": "train"}]}
    methods = {"none": None, "all": more}
    path, results = recipe(tmp_path, methods=methods, take=10, seeds=[1]), tmp_path / "results"
    assert compare(path, tmp_path / "out", results=results)["missing"] == 0
    lines = [json.loads(line) for line in (results / "asked.jsonl").read_text(encoding="utf-8").splitlines()]
    trained = {one["method"]: (one["train_rows"], one["counterfactuals"]) for one in lines if "cell" in one}
    assert trained == {"none": (10, 0), "all": (16, 0)}
    for settings in ({"system": "again"}, {"copies": True}):
        content = {**json.loads(path.read_text(encoding="utf-8")), "methods": {"none": None, "all": {**more, **settings}}}
        with pytest.raises(RecipeError, match="methods: all: "):
            build_methods(parse_comparison(content, "asked"))  # type: ignore[arg-type]


def test_a_counterfactual_whose_passage_is_scored_is_not_trained_on() -> None:
    def passage(i: int) -> str:
        return f"Ada of place{i} wrote: " + " ".join(f"w{i}x{j}" for j in range(120))

    def row(name: str, context: str) -> dict[str, Any]:
        return {**asked.question(name, about=name), "context": context, "answers": {"text": ["Ada"], "answer_start": [0]}}

    provenance = {"system": "rgf", "change": "reference", "edits": [], "scores": []}
    made = [{**row(f"new{i}", passage(i)), "source_id": f"old{i}", **provenance} for i in range(4)]
    of_system = Dataset.from_list([{"id": "old0", "counterfactuals": made}])
    window = " ".join(passage(1).split()[20:])  # a passage is also known where a row has a part of it
    paired = pair(
        asked.rows(row("perturbed", "Ada was here.")).add_column("of", ["source"]), asked.rows(row("source", passage(2))), "of"
    )
    rows, dropped = training_rows(
        Method("m", asked.Again()), asked.originals(3, "old"), of_system, [asked.rows(row("a", window)), paired, sources_of(paired)]
    )
    assert (rows["id"][3:], dropped) == (["new0", "new3"], 2)


def test_further_rows_are_new_and_share_nothing_with_scored_ones() -> None:
    further = concatenate_datasets([asked.originals(6, "old"), asked.originals(3)])
    kept, dropped = with_more(asked.originals(4, "old"), further, [asked.originals(1)])
    assert (kept["id"][:], dropped) == ([f"old{i}" for i in range(6)] + ["town1", "town2"], 1)


def test_a_folder_keeps_the_tables_of_another_comparison(tmp_path: Path) -> None:
    path, out, results = recipe(tmp_path), tmp_path / "out", tmp_path / "results"
    out.mkdir()
    (out / "table.md").write_text("mine")
    with pytest.raises(ExistingResultError, match=r"table\.md"):
        compare(path, out, results=results)
    assert compare(path, out, results=results, overwrite=True)["missing"] == 0
    with pytest.raises(ExistingResultError, match='name is "asked" there, and "other" here'):
        compare(path, out, results=results, changes=["name=other"])
    assert compare(path, out, results=results, changes=["seeds=[1]"])["missing"] == 0


def test_a_dry_run_names_every_folder_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evaluate = [{"setting": "in-domain", "corpus": "asked", "split": "original", "data_dir": "no-such"}]
    path = recipe(tmp_path, evaluate=evaluate, data_dir=str(tmp_path), model={"model": str(tmp_path / "absent")})
    plan = dry_run(path)
    assert plan["absent"] == [str(tmp_path / "no-such"), f"the model {tmp_path / 'absent'}"]
    print_comparison(plan)
    assert str(tmp_path / "no-such") in capsys.readouterr().out


def test_small_samples_need_no_labels(tmp_path: Path) -> None:
    path = recipe(tmp_path, low_resource={"sizes": [4, 8], "samples": [1]})
    assert compare(path, tmp_path / "out", results=tmp_path / "results")["missing"] == 0
    text = (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
    assert "- Random samples of the training rows: 1 of each size" in text
    assert "### Old (in-domain)\n" in text


def test_a_pair_is_related_to_training_if_one_side_is(tmp_path: Path) -> None:
    from hfcf.core.pairs import pair

    pairs = pair(asked.perturbed(4), asked.originals(4), "original_id")
    training = asked.rows({**asked.question("other", about="ships"), "question": "Who wrote of engines in town2?"})
    assert drop_related(pairs, training)["id"][:] == ["town0-cf", "town1-cf", "town3-cf"]
    assert len(drop_related(pairs.remove_columns("source"), training)) == 4


def test_aliases_of_originals_are_part_of_what_a_cell_is_scored_on() -> None:
    from hfcf.core.pairs import pair

    plain = asked.originals(4)
    known = plain.add_column("aliases", [["Ada King"]] * 4)
    one, other = (EvaluationSet("s", "challenge", pair(asked.perturbed(4), old, "original_id")) for old in (plain, known))
    assert one.ids != other.ids
    assert one.source_ids == other.source_ids == [("asked", f"town{i}") for i in range(4)]


def test_consistency_of_a_model(tmp_path: Path) -> None:
    from hfcf.core.pairs import pair

    (tmp_path / "rows").write_text("40", encoding="utf-8")
    numbers = consistency(pair(asked.perturbed(60), asked.originals(60), "original_id"), str(tmp_path))
    assert numbers["pairs"] == 60
    assert 0 < numbers["conditioned"] < 60
    assert numbers["consistency"] == pytest.approx(numbers["both"] * 60 / numbers["conditioned"], abs=2e-4)
    assert {name: one["pairs"] for name, one in numbers["change"].items()} == {"reference": 30, "predicate": 30}
    assert {name: one["pairs"] for name, one in numbers["edit distance"].items()} == {"1–4": 30, "5–10": 30}
    halves = numbers["change"].values()
    assert sum(one["conditioned"] for one in halves) == numbers["conditioned"]
    low, high = numbers["interval"]
    assert low < numbers["consistency"] < high
    # Three times the same pairs say no more than once, if they are of the same sources.
    thrice = consistency(pair(concatenate_datasets([asked.perturbed(60)] * 3), asked.originals(60), "original_id"), str(tmp_path))
    assert thrice["conditioned"] == 3 * numbers["conditioned"]
    assert thrice["interval"] == pytest.approx(numbers["interval"], abs=2e-4)
    with pytest.raises(ValueError, match=r"not paired.*'source'"):
        consistency(asked.originals(2), str(tmp_path))


def test_resampled_scores_are_those_of_the_drawn_rows() -> None:
    random = np.random.default_rng(3)
    alternatives = [["Ada Lovelace", "Ada"], ["Lord Byron"], [], {"regex": ["Lon.on"]}]
    said = ["Ada", "Byron", "", "London", "Ada Byron"]
    gold = [alternatives[i] for i in random.integers(0, 4, 50)]
    models = [[said[i] for i in random.integers(0, 5, 50)] for _ in range(3)]
    kinds, counts = kinds_of([gold, *models])
    assert counts.sum() == 50
    observed = ANSWERS.resample(counts[None].astype(float), kinds[0], kinds[1:])
    for i, metric in enumerate(ANSWERS.compared):
        assert observed[i, 0].round(4).tolist() == [ANSWERS.scores(gold, each)[metric] for each in models]


def test_intervals_of_fractional_scores() -> None:
    cell = {"setting": "in-domain", "corpus": "Old", "ids": "a", "gold": [["ada byron"]] * 40, "seed": 1}
    cells = [
        {**cell, "method": "none", "predicted": ["rome"] * 20 + ["ada byron"] * 20},
        {**cell, "method": "one", "predicted": ["ada"] * 40},
    ]
    em, f1 = paired_bootstrap(make_grid(cells, "none", scorer=ANSWERS), "one", 200)
    assert (em.metric, em.value) == ("em", -0.5)
    assert f1.value == pytest.approx(2 / 3 - 0.5)
    assert f1.low < f1.value < f1.high


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ({}, "give one of originals, run, system and within"),
        ({"system": "again", "run": "out"}, "give one of originals, run, system and within"),
        ({"within": "case", "preset": "offline"}, "preset and settings are of a system"),
        ({"originals": {"split": "original"}}, "originals needs the key by"),
        ({"within": "case", "ratings": "out"}, "ratings are of the rows of a run or of a system"),
    ],
)
def test_pairs_of_a_recipe_are_checked(pairs: dict[str, Any], message: str, tmp_path: Path) -> None:
    one = {"name": "Contrast", "setting": "challenge", "corpus": "asked", "pairs": pairs}
    content = json.loads(recipe(tmp_path).read_text(encoding="utf-8"))
    with pytest.raises(RecipeError, match=message):
        parse_comparison({**content, "evaluate": [one]}, "asked.yaml")


def test_a_run_is_paired_with_its_originals_and_labelled_as_not_cleaned(tmp_path: Path) -> None:
    made = asked.perturbed(60).rename_column("original_id", "source_id")
    made = made.add_column("scores", [[{"name": "references by noun phrases", "value": 1.0}]] * 60)
    (tmp_path / "run").mkdir()
    made.to_parquet(str(tmp_path / "run" / "rows.parquet"))
    one = {"name": "Ours", "setting": "in-domain", "corpus": "asked", "split": "original", "pairs": {"run": str(tmp_path / "run")}}
    path = recipe(tmp_path, evaluate=[one])
    compare(path, tmp_path / "out", results=tmp_path / "results")
    text = (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
    assert "| *pairs* | 60, not cleaned |" in text
    assert "- Not cleaned: a system made the pairs" in text
    assert "Changes of Ours: references by noun phrases." in section(text, "### By change (%)")


def test_a_system_makes_the_counterfactuals_of_a_set(tmp_path: Path) -> None:
    one = {"name": "Ours", "setting": "in-domain", "corpus": "asked", "split": "original", "pairs": {"system": "again"}}
    compare(recipe(tmp_path, evaluate=[one]), tmp_path / "out", results=tmp_path / "results")
    assert "| *pairs* | 60, not cleaned |" in (tmp_path / "out" / "table.md").read_text(encoding="utf-8")


def test_what_people_found_wrong_is_left_out(tmp_path: Path) -> None:
    made: Dataset = asked.perturbed(6).rename_column("original_id", "source_id")
    made.to_parquet(str(tmp_path / "rows.parquet"))
    export({"ours": tmp_path / "rows.parquet"}, "rgf", tmp_path / "rated", raters=1)
    sheet = tmp_path / "rated" / "raters" / "rater-1.csv"
    lines = sheet.read_text("utf-8-sig").splitlines()
    filled = [line.replace(',"","",""', ',"1","0",""' if "town3" in line else ',"1","1",""') for line in lines]
    sheet.write_text("\n".join(filled), "utf-8")
    read_ratings(tmp_path / "rated")
    pairs = {"run": str(tmp_path / "rows.parquet"), "ratings": str(tmp_path / "rated")}
    source = Evaluation.model_validate({"corpus": "asked", "setting": "in-domain", "pairs": pairs})
    rows, cleaned = load_pairs(asked.originals(6), source, None, "evaluate: Ours")
    assert cleaned == "cleaned by a person"
    assert rows["id"][:] == [f"town{i}-cf" for i in (0, 1, 2, 4, 5)]


def test_what_a_system_made_is_cleaned_only_while_it_reads_as_it_was_rated(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = expand(asked.Again()(asked.originals(4)))
    export({"ours": made}, "rgf", tmp_path / "rated", raters=1)
    sheet = tmp_path / "rated" / "raters" / "rater-1.csv"
    lines = sheet.read_text("utf-8-sig").splitlines()
    filled = [line.replace(',"","",""', ',"1","0",""' if "town1" in line else ',"1","1",""') for line in lines]
    sheet.write_text("\n".join(filled), "utf-8")
    read_ratings(tmp_path / "rated", by="one language model, no person")
    rated = tmp_path / "rated" / RATED
    pairs = {"system": "again", "ratings": str(rated)}
    one = {"name": "Ours", "setting": "in-domain", "corpus": "asked", "split": "original", "pairs": pairs}
    compare(recipe(tmp_path, evaluate=[one]), tmp_path / "out", results=tmp_path / "results")
    page = (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
    assert "| *pairs* | 3, cleaned by one language model, no person |" in page, "what nobody rated is left out, too"
    assert "Not cleaned" not in page
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []
    changed = made.map(lambda row: {"question": row["question"].replace("town0 later", "town0 earlier")})
    kept, _ = keep_correct(changed, str(rated))
    assert kept["source_id"][:] == ["town2", "town3"]
    assert "1 rows read otherwise than when they were rated, and are left out" in caplog.text
    with pytest.raises(FileNotFoundError, match="run hfcf rate import"):
        keep_correct(made, str(tmp_path / "elsewhere" / RATED))
