"""What a page says of cells: marks, samples by size, pairs, strata; and what intrinsic scores are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kinds
import numpy as np
import pytest
from datasets import Dataset
from made_up import cell, full

from hfcf.core import recipe as recipes
from hfcf.core.artifacts import save_artifact
from hfcf.core.model import Model
from hfcf.engines.perplexity import Perplexity
from hfcf.metrics.scores.relation import micro_f1
from hfcf.metrics.shared.moverscore import MoverScore, fit_idf
from hfcf.studies.compare.grid import Grid, SampleTraining, make_grid
from hfcf.studies.compare.intrinsic import candidates, claims, intrinsic
from hfcf.studies.compare.methods import build_methods
from hfcf.studies.compare.page import _pairs, difference_text, write_page
from hfcf.studies.compare.recipe import parse_comparison
from hfcf.studies.compare.run import compare
from hfcf.studies.compare.stats import Difference, differences, kinds_of, paired_bootstrap
from hfcf.studies.compare.tables import table
from hfcf.tasks.verification import NOT_ENOUGH_INFO, REFUTES, SUPPORTS
from hfcf.training.scorers import ANSWERS, RELATIONS


def page(grid: Grid) -> str:
    content = {
        "compare": "models", "name": "made", "seeds": [1], "model": {"model": "m"}, "train": {"corpus": "fever"},
        "methods": dict.fromkeys(grid.methods), "evaluate": [], "paper": {"scores": {"accuracy": {"BERT": {"FM2": 58.8}}}},
    }  # fmt: skip
    return write_page(parse_comparison(content), grid, differences(grid, 200), "hfcf compare made")  # type: ignore[arg-type]


def line(text: str, heading: str, name: str) -> list[str]:
    part = text.split(f"{heading}\n")[1].split("\n#")[0]
    return next([each.strip() for each in row.split("|")[2:-1]] for row in part.splitlines() if row.startswith(f"| {name} |"))


def test_a_table_s_best_is_bold_unless_it_is_below_the_majority_label() -> None:
    cells = [
        cell(method, seed, corpus, "challenge", "SSSR", answers)
        for seed in (1, 2)
        for corpus, best in (("FM2", "SSSR"), ("Low", "RRSS"))
        for method, answers in (("None", "RRRS"), ("RACE", best))
    ]
    text = page(make_grid(cells, "None"))
    assert line(text, "## Accuracy (%)", "*majority label*") == ["75.0", "75.0"]
    assert line(text, "## Accuracy (%)", "None") == ["0.0 ± 0.0", "0.0 ± 0.0"]
    assert line(text, "## Accuracy (%)", "RACE") == ["**100.0 ± 0.0**\\*", "25.0 ± 0.0"]
    assert line(text, "## Accuracy (%)", "*BERT, the paper*") == ["58.8", "–"]


def test_a_page_counts_missing_cells_and_seeds() -> None:
    cells = [each for each in full(("None", "RACE")) if (each["method"], each["seed"], each["corpus"]) != ("RACE", 2, "FM2")]
    text = page(make_grid(cells, "None", missing=[("RACE", 2, "FM2")]))
    assert "**Partial:** 1 " in text
    assert "RACE × 2 × FM2" in text
    assert line(text, "## Accuracy (%)", "RACE")[-1].endswith("(2 of 3)")
    assert "RACE on FM2: 0, 1" in text


def test_differences_are_in_points_with_a_true_minus() -> None:
    found = Difference("RACE", "accuracy", None, None, (1,), -0.0123, -0.02, -0.00001, 0.01, 0.02, True)
    assert difference_text(found) == "−1.2 [−2.0, 0.0]\\*"
    assert table(["a|b", "c"], [["x\ny", "1"]]).splitlines() == [r"| a\|b | c |", "|---|---|", "| x y | 1 |"]


# --- small samples


def answers(more: dict[tuple[int, int], int], size: int = 60, rows: int = 40) -> list[dict[str, Any]]:
    """Cells of "none", right on half of the rows, and of "EDA", right on so many more of them: by sample and seed."""
    gold, made = "SR" * (rows // 2), []
    for (sample, seed), number in more.items():
        for method, right in (("none", rows // 2), ("EDA", rows // 2 + number)):
            predicted = gold[:right] + gold[right:].translate(str.maketrans("SR", "RS"))
            added = {"counterfactuals": size // 2, "ratio": 0.5} if method == "EDA" else {}
            made.append(
                {**cell(method, seed, "FM2", "challenge", gold, predicted), "seed": SampleTraining(size, sample, seed), **added}
            )
    return made


def accuracy(grid: Grid, resamples: int = 300) -> Difference:
    (found,) = (each for each in differences(grid, resamples) if each.metric == "accuracy")
    return found


def test_trainings_on_one_sample_are_not_independent() -> None:
    """Two samples that disagree, five seeds each: ten trainings, but two samples are what is known."""
    grid = make_grid(answers({(sample, seed): 4 if sample == 1 else 0 for sample in (1, 2) for seed in range(5)}), "none")
    found = accuracy(grid, 500)
    assert found.value == pytest.approx(0.05)
    assert found.low <= 0, "both draws may be of the second sample"
    assert found.p > 0.4
    assert paired_bootstrap(grid, "EDA", 500)[0].p < 0.1, "as if they were ten"


def test_what_a_seed_does_on_every_sample_is_noise_too() -> None:
    pairs = [(sample, seed) for sample in range(5) for seed in (1, 2)]
    differ = accuracy(make_grid(answers({pair: 18 if pair[1] == 1 else 2 for pair in pairs}), "none"))
    agree = accuracy(make_grid(answers(dict.fromkeys(pairs, 10)), "none"))
    assert differ.value == agree.value == pytest.approx(0.25)
    assert agree.p < 0.01
    assert differ.p > 0.3, "0.25 of an error of 0.2 at about one degree of freedom"


def test_the_p_value_holds_its_level_where_samples_share_their_seeds() -> None:
    """No true difference; deviations of 2 points between seeds, 1 between samples and 1 between trainings."""
    random, times, small = np.random.default_rng(5), 120, 0
    for _ in range(times):
        of_seed, of_sample, own = random.normal(0, 8, 2), random.normal(0, 4, 5), random.normal(0, 4, (5, 2))
        more = {(a, s): round(of_seed[s] + of_sample[a] + own[a, s]) for a in range(5) for s in range(2)}
        small += accuracy(make_grid(answers(more, rows=400), "none"), 100).p < 0.05
    assert small / times <= 0.09


def test_all_sizes_are_one_family_and_one_table() -> None:
    pairs = {(sample, seed): 12 + sample % 2 for sample in range(4) for seed in (1, 2)}
    first, both = (make_grid(cells, "none") for cells in (answers(pairs), [*answers(pairs), *answers(pairs, 120)]))
    adjusted = [found[0].adjusted for found in (differences(first, 300), differences(both, 300))]
    assert adjusted[1] == pytest.approx(2 * adjusted[0])
    text = page(both)
    assert line(text, "### FM2 (challenge)", "Method") == ["60 rows", "120 rows"]
    assert line(text, "### FM2 (challenge)", "none") == ["50.0 ± 0.0", "50.0 ± 0.0"]


# --- pairs and strata


def test_pairs_and_their_strata_are_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds.install_questions(monkeypatch)
    content = kinds.questions(tmp_path, str)
    compare(kinds.write(content, tmp_path), tmp_path / "out", results=tmp_path / "results")
    text = (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
    cells = {(each["method"], each["corpus"]): each for each in kinds.lines_of(tmp_path / "results", "questions")}
    none, again = cells["none", "Contrast"], cells["again", "Contrast"]
    first = np.array([answer.startswith("the ") for answer in none["originals"]["predicted"]])
    for each in (none, again):
        right = np.array([answer.startswith("the ") for answer in each["predicted"]])
        assert each["em"] == round(right.mean(), 4) < each["f1"] < 1
        assert each["consistency"] == round(right[first].mean(), 4)
    assert line(text, "### Pairwise consistency (%)", "none") == [f"{100 * none['consistency']:.1f} ± 0.0, n {first.sum()}"]
    assert line(text, "### Pairwise consistency by change (%)", "*rows*") == ["30", "30"]
    by_change = line(text, "### Pairwise consistency by change (%)", "none")
    assert {each.split(", ")[1] for each in by_change} == {f"n {first[::2].sum()}", f"n {first[1::2].sum()}"}
    assert "Contrast: 1–4 | Contrast: 5–10" in text


# --- scorers of bootstraps


def test_resampled_scores_are_those_of_the_drawn_rows() -> None:
    random = np.random.default_rng(3)
    alternatives = [["Ada Lovelace", "Ada"], ["Lord Byron"], [], {"regex": ["Lon.on"]}]
    texts = ["Ada", "Byron", "", "London", "Ada Byron"]
    gold = [alternatives[i] for i in random.integers(0, 4, 50)]
    models = [[texts[i] for i in random.integers(0, 5, 50)] for _ in range(3)]
    rows, counts = kinds_of([gold, *models])
    observed = ANSWERS.resample(counts[None].astype(float), rows[0], rows[1:])
    for i, metric in enumerate(ANSWERS.compared):
        assert observed[i, 0].round(4).tolist() == [ANSWERS.scores(gold, each)[metric] for each in models]
    letters = [["a", "b", "c", "-"][i] for i in random.integers(0, 4, 60)]
    predicted = [["a", "b", "c", "-"][i] for i in random.integers(0, 4, 60)]
    weights = random.integers(0, 4, 60)
    found = RELATIONS.resample(weights[None].astype(float), np.array(letters), np.array([predicted]))
    told = [
        [{"-": "Other"}.get(x, x) for x, n in zip(side, weights, strict=True) for _ in range(n)] for side in (letters, predicted)
    ]
    assert found[0, 0, 0] == pytest.approx(micro_f1(*told))


# --- intrinsic scores


def test_a_claim_is_compared_with_the_evidence_that_it_was_written_from(tiny_model: kinds.Tiny) -> None:
    """A run that an edit would break counts, and so do words that only the edited evidence has."""
    pieces = [
        [{"title": "Jaws", "text": f"Jaws was shot in {place}."}, {"title": place, "text": "It is old."}]
        for place in ("Rome", "Oslo")
    ]
    row = {"source_claim": "Jaws is a film.", "claim": "Jaws was shot in old Oslo.", "evidence": pieces[0], "label": REFUTES}
    encoder = Model(tiny_model("classifier"))
    mover = MoverScore(model=encoder, idf=save_artifact(fit_idf(["a", "b"], encoder)))
    found = intrinsic([{**row, "edited_versions": [pieces[1]]}], mover, Model(tiny_model("gpt2")))
    assert (found["Copied"], found["Combined"], found["n"]) == (pytest.approx(4 / 6, abs=1e-4), True, 1)
    assert found["Flu"] == Perplexity(model=Model(tiny_model("gpt2"))).run([row["claim"]])[0]
    only_oslo = {**row, "claim": "Jaws was shot in Oslo.", "edited_versions": [pieces[1]]}
    assert (intrinsic([only_oslo], mover)["Copied"], intrinsic([only_oslo], mover)["Combined"]) == (1.0, False)
    assert intrinsic([{**only_oslo, "edited_versions": []}], mover)["Copied"] == 0.8
    assert set(intrinsic([], mover, Model("m")).values()) == {None, 0}


def test_candidates_are_all_that_was_generated_and_claims_what_was_accepted() -> None:
    def made(claim: str, stage: str | None, accepted: bool = False, change: str = "claim") -> dict[str, Any]:
        status = stage and {"accepted": accepted, "stage": stage, "reason": None}
        return {"claim": claim, "label": None, "change": change, "status": status, "edits": []}

    edit = {"field": "evidence", "piece": 0, "start": 0, "end": 4, "before": "Town", "after": "City"}
    written = [
        made("cut", "generate_claim"), made("same", "check_claim"), made("far", "filter_claim"), made("best", "filter_claim", True),
        {**made("c", "check_edit", True, "evidence"), "edits": [edit]},
    ]  # fmt: skip
    source = {**kinds.claim(1, SUPPORTS), "claim": "c", "group_id": "1", "corpus": "x", "split": "train"}
    final = {**source, "claim": "best", "label": REFUTES, "change": "claim", "source_id": "Town1"}
    rows = Dataset.from_list([{**source, "candidates": written, "counterfactuals": [final, {**final, "change": "evidence"}]}])
    assert [(row["claim"], row["label"]) for row in candidates(rows)] == [(name, REFUTES) for name in ("same", "far", "best")]
    [accepted] = claims(rows)
    assert (accepted["claim"], accepted["source_claim"]) == ("best", "c")
    for row in (accepted, *candidates(rows)):
        assert row["edited_versions"] == [[{"title": "", "text": "City 1 lies on river 1."}]]
    # What keeps its label, or a row that has no opposite, says so itself.
    kept = {**source, "label": NOT_ENOUGH_INFO, "candidates": [{**made("new", "filter_claim"), "label": NOT_ENOUGH_INFO}]}
    assert [row["label"] for row in candidates(Dataset.from_list([kept]))] == [NOT_ENOUGH_INFO]


@pytest.mark.slow
def test_intrinsic_scores_are_on_the_page(
    tmp_path: Path, tiny_model: kinds.Tiny, race: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import parrot

    from hfcf.engines.generator import Generator

    monkeypatch.setattr(Generator, "forward", parrot.forward)
    settings = {
        "verifier": tiny_model("verifier"), "generator": tiny_model("t5"), "encoder": tiny_model("classifier"), "max_length": 96,
        "num_beams": 3, "num_candidates": 2, "max_new_tokens": 8, "flip": "any", "fluency_model": None,
    }  # fmt: skip
    content = kinds.claims(tmp_path, tiny_model) | {"methods": {"none": None, "RACE": {"system": "race", "settings": settings}}}
    content |= {"encoder": content["model"]["model"], "language_model": tiny_model("gpt2"), "seeds": [1]}
    compare(kinds.write(content, tmp_path), tmp_path / "out", results=tmp_path / "results")
    text = (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
    assert float(line(text, "## Intrinsic scores", "RACE −FILTER")[-1]) >= float(line(text, "## Intrinsic scores", "RACE")[-1]) > 0
    assert "–" not in line(text, "## Intrinsic scores", "RACE")


# --- the recipes that ship


def content_of(name: str, preset: str = "offline") -> dict[str, Any]:
    return recipes.read_recipe(recipes.find_recipe(name), [f"preset={preset}"])


@pytest.mark.parametrize("preset", ["paper", "offline"])
@pytest.mark.parametrize("name", ["compare_ccg_ablation", "compare_ccg_sweep"])
def test_recipes_that_share_cells_define_them_alike(name: str, preset: str) -> None:
    first, second = content_of("compare_ccg", preset), content_of(name, preset)
    assert (second["cells"], second["seed"]) == (first["name"], first["seed"])

    def meaning(content: dict[str, Any]) -> dict[str, Any]:
        return {
            column["name"]: [
                *({**content["defaults"].get(part, {}), **column.get(part, {})} for part in ("train", "dev", "test")),
                {**content["model"], **column.get("model", {})},
            ]
            for column in content["columns"]
        }

    shared = meaning(first).keys() & meaning(second).keys()
    assert shared
    assert all(meaning(first)[column] == meaning(second)[column] for column in shared)
    assert first["methods"]["CCG"] == second["methods"]["CCG"]


def test_no_arm_of_ccg_has_a_cure_that_the_others_lack() -> None:
    methods = {method.name: method.system for method in build_methods(parse_comparison(content_of("compare_ccg")))}  # type: ignore[arg-type]
    for other in (methods[name] for name in ("MICE", "AutoCAD", "CoCo")):
        for setting in ("folds", "classifier", "min_steps", "editor_training", "closed"):
            assert getattr(other, setting, None) in (None, getattr(methods["CCG"], setting)), setting


def test_offline_recipes_train_and_score_on_rows_that_no_model_has_seen() -> None:
    for name in ("compare_race", "compare_rgf", "compare_crossaug", "compare_crossaug_low"):
        content = content_of(name)
        assert content["unseen"] == ["train", "evaluate"]
        assert content["train"]["data_files"] not in [each.get("data_files") for each in content["evaluate"]]
        assert "settings" not in content, "presets as they are"
        methods = [part for part in content["methods"].values() if part]
        assert not any(part.get("settings", {}).get("judges") == [] for part in methods), "presets as they are"
        if name.startswith("compare_crossaug"):
            assert content["train"]["take"] == 9000, "the rest is kept for rating"


def test_pairs_of_each_size_have_their_own_table() -> None:
    def paired(method: str, size: int, right: int) -> dict[str, Any]:
        both = {"gold": [["a"]] * 10, "predicted": ["a"] * right + ["b"] * (10 - right)}
        made = {"recipe": "r", "method": method, "seed": SampleTraining(size, 1, 13), "corpus": "C", "setting": "challenge", **both}
        scores = {"ids": "i", "rows": 10, "em": right / 10, "f1": right / 10, "consistency": right / 10, "cleaned": None}
        originals = {**both, "predicted": ["a"] * 10, "ids": "o"}
        return {**made, **scores, "originals": originals, "sources": [*range(10)], "train_rows": size, "counterfactuals": 0}

    cells = [paired(*each) for each in (("None", 100, 5), ("None", 400, 5), ("RACE", 100, 9), ("RACE", 400, 3))]
    found = "\n".join(_pairs(make_grid(cells, "None", scorer=ANSWERS)))
    headings = [line for line in found.splitlines() if line.startswith("### ") and "rows" in line]
    assert len(headings) == len(set(headings))
    assert sum("100 rows" in heading for heading in headings) == sum("400 rows" in heading for heading in headings) > 0


def test_cells_with_other_letters_are_compared_by_label() -> None:
    first, second = cell("None", 1, "C", "challenge", "AB", "AA"), cell("RACE", 1, "C", "challenge", "BC", "BC")
    first["letters"], second["letters"] = {"cause": "A", "effect": "B"}, {"a": "A", "cause": "B", "effect": "C"}
    grid = make_grid([first, second], "None")
    assert {each["gold"] for each in grid.about("C")} == {"ce"} or len({each["gold"] for each in grid.about("C")}) == 1
    (difference,) = [each for each in differences(grid, 20) if each.metric == "accuracy" and each.corpus]
    assert difference.value == pytest.approx(0.5)
