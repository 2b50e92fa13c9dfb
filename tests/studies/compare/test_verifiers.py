"""The comparison from a recipe to its table, on tiny random models and the demo's rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import parrot
import pytest
import yaml
from datasets import Dataset
from made_up import forget

from hfcf.core import recipe as recipes
from hfcf.core.artifacts import save_artifact
from hfcf.core.model import Model
from hfcf.engines.generator import Generator
from hfcf.engines.perplexity import Perplexity
from hfcf.metrics.shared.moverscore import MoverScore, fit_idf
from hfcf.studies.compare import runner
from hfcf.studies.compare.comparison import Comparison, open_comparison
from hfcf.studies.compare.intrinsic import candidates, claims, intrinsic
from hfcf.studies.compare.methods import Method, build_methods
from hfcf.studies.compare.recipe import Evaluation, parse_comparison
from hfcf.studies.compare.run import compare
from hfcf.studies.compare.sets import check_no_overlap, load_sets
from hfcf.studies.compare.training_sets import training_rows
from hfcf.systems.race.system import RACE
from hfcf.tasks.verification import LABELS, NOT_ENOUGH_INFO, REFUTES, SUPPORTS
from hfcf.training import steps, verifier

DEMO = recipes.folder() / "demo"


def row(i: int, label: str, claim: str = "", text: str = "") -> dict[str, Any]:
    evidence = [{"title": "", "text": text or f"Town {i} lies on river {i}."}]
    return {"id": f"t{i}", "claim": claim or f"Town {i} is old.", "evidence": evidence, "label": label}


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Evaluation rows: twelve, one of which is NEI, one has a claim of the demo, and one its evidence."""
    first = json.loads((DEMO / "hover_train_release_v1.1.json").read_text(encoding="utf-8"))[0]
    text = " ".join(sentence for _, sentence in first["evidence"])
    rows = [row(i, (SUPPORTS, REFUTES)[i % 2]) for i in range(9)]
    rows += [row(9, NOT_ENOUGH_INFO), row(10, SUPPORTS, claim=first["claim"].upper()), row(11, REFUTES, text=text)]
    path = tmp_path / "other.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def claims_get_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Generator, "forward", parrot.forward)


@pytest.fixture
def encoder(tiny_model: Callable[[str], str], tmp_path: Path) -> str:
    """An encoder without a head, as pretrained ones are."""
    from transformers import AutoModel, AutoTokenizer

    folder = tmp_path / "encoder"
    AutoModel.from_pretrained(tiny_model("classifier")).save_pretrained(folder)
    AutoTokenizer.from_pretrained(tiny_model("classifier")).save_pretrained(folder)
    return str(folder)


@pytest.fixture
def content(other: Path, encoder: str, tiny_model: Callable[[str], str], race: RACE) -> dict[str, Any]:
    return {
        "compare": "verifiers",
        "name": "tiny",
        "preset": "offline",
        "train": {"corpus": "hover", "data_dir": str(DEMO), "split": "train"},
        "take": 12,
        "system": "race",
        "settings": {
            "verifier": tiny_model("verifier"), "generator": tiny_model("t5"), "encoder": tiny_model("classifier"),
            "max_length": 96, "num_beams": 3, "num_candidates": 2, "max_new_tokens": 8, "no_repeat": None, "flip": "any",
            "fluency_model": None,
        },
        "seeds": [1, 2],
        "baseline": "none",
        "methods": {"none": None, "RACE": {}, "both": {"changes": ["claim", "evidence"]}},
        "verifier": {"model": encoder, "max_length": 64, "epochs": 1, "learning_rate": 0.001},
        "encoder": encoder,
        "language_model": tiny_model("gpt2"),
        "evaluate": [
            {
                "name": "Other", "setting": "challenge", "corpus": "jsonl", "data_files": str(other), "split": "train",
                "expected": {"SUPPORTS": 6, "REFUTES": 5},
            }
        ],
        "evaluate_take": 8,
        "notes": ["A note."],
    }  # fmt: skip


def opened(content: dict[str, Any], results: Path, *, full: bool = False) -> Comparison:
    return open_comparison(parse_comparison(content), results, full=full)  # type: ignore[arg-type]


def write(content: dict[str, Any], folder: Path) -> Path:
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(content, allow_unicode=True, sort_keys=False), encoding="utf-8")
    return path


def test_a_comparison_from_the_recipe_to_the_table(
    content: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = []
    real = verifier.train_verifier

    def train(rows: Dataset, hp: Any, *args: Any, **kwargs: Any) -> None:
        trained.append(hp.seed)
        real(rows, hp, *args, **kwargs)

    monkeypatch.setattr(verifier, "train_verifier", train)
    found = compare(write(content, tmp_path), tmp_path / "out", results=tmp_path / "results")
    assert found["missing"] == 0
    assert trained == [1, 1, 1, 2, 2, 2]
    cells = runner.read(opened(content, tmp_path / "results"))
    assert len(cells) == 6
    for cell in cells:
        assert cell["rows"] == 8 == len(cell["gold"]) == len(cell["predicted"])
        right = sum(gold == said for gold, said in zip(cell["gold"], cell["predicted"], strict=True))
        assert cell["accuracy"] == pytest.approx(right / 8, abs=1e-4)
        assert (cell["available_labels"], cell["removed_as_overlap"]) == ({"SUPPORTS": 6, "REFUTES": 5}, 2)
        assert cell["train_rows"] == 12 + cell["counterfactuals"]
    made = {cell["method"]: cell["counterfactuals"] for cell in cells}
    assert made["none"] == 0 < made["RACE"] < made["both"]
    table = (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
    for text in ("share no group, no claim and no evidence with a training row", "- A note.", "| RACE −FILTER | "):
        assert text in table
    sizes = next(line for line in table.splitlines() if line.startswith("| Other | challenge |"))
    assert sizes.endswith("| 2 | 6 SUPPORTS, 5 REFUTES | matches |")
    assert "| 8 |" in sizes
    assert all((tmp_path / "out" / name).stat().st_size for name in ("table.csv", "figure.svg", "figure.png"))

    again = compare(write(content, tmp_path), tmp_path / "out", results=tmp_path / "results")
    assert again == found
    assert len(trained) == 6, "finished cells are read, not trained again"
    assert (tmp_path / "out" / "table.md").read_text(encoding="utf-8") == table
    forget(tmp_path / "results" / "tiny.jsonl", method="RACE", seed=2)
    compare(write(content, tmp_path), tmp_path / "out", results=tmp_path / "results")
    assert trained[6:] == [2], "only what is missing is trained"
    assert (tmp_path / "out" / "table.csv").read_text().count(",accuracy,") == 6


def test_another_setting_is_another_cell(content: dict[str, Any], tmp_path: Path) -> None:
    def keys(**changes: Any) -> set[str]:
        comparison = opened({**content, **changes}, tmp_path)
        return {comparison.key((method.name, 1, comparison.sets[0].name)) for method in comparison.methods}

    base = keys()
    assert base == keys()
    assert not base & keys(verifier={**content["verifier"], "epochs": 2})
    assert not base & keys(take=11)
    assert not base & keys(evaluate_take=7)
    others = keys(settings={**content["settings"], "num_beams": 4})
    assert len(base & others) == 1, "what adds nothing does not depend on the system"


def test_what_a_cell_is_called_may_be_corrected(content: dict[str, Any], tmp_path: Path) -> None:
    content = {**content, "methods": {"none": None}, "seeds": [1]}
    compare(write(content, tmp_path), tmp_path / "out", results=tmp_path / "results")
    other = {**content["evaluate"][0], "setting": "in-domain", "expected": {"SUPPORTS": 1, "REFUTES": 1}}
    content = {**content, "methods": {"None": None}, "baseline": "None", "evaluate": [other]}
    assert compare(write(content, tmp_path), tmp_path / "out", results=tmp_path / "results")["missing"] == 0
    table = (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
    assert "| Other | in-domain |" in table
    assert "differs: 6 SUPPORTS instead of 1, 5 REFUTES instead of 1" in table


def test_another_evaluation_corpus_may_leave_other_counterfactuals_out(content: dict[str, Any], tmp_path: Path) -> None:
    more = [*content["evaluate"], {**content["evaluate"][0], "name": "More", "split": "train[:4]"}]
    one, two = (opened({**content, "evaluate": sets}, tmp_path) for sets in (more[:1], more))
    keys = [[one.definition(each, one.samples[0], 1) == two.definition(each, two.samples[0], 1)] for each in one.methods]
    assert keys == [[True], [False], [False]], "the baseline has none"


def test_a_corpus_that_is_all_training_rows_is_not_evaluated_on(
    content: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    same = {"name": "Same", "setting": "in-domain", **content["train"]}
    comparison = opened({**content, "evaluate": [*content["evaluate"], same]}, tmp_path, full=True)
    assert [one.name for one in comparison.sets] == ["Other"]
    assert "Same is not evaluated on: each of its 50 rows overlaps" in caplog.text


@pytest.mark.slow
def test_intrinsic_scores_are_kept_for_where_no_model_is(content: dict[str, Any], tmp_path: Path, monkeypatch: Any) -> None:
    compare(write(content, tmp_path), tmp_path / "out", results=tmp_path / "results")
    table = (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
    assert "| Method | Flip ↑ | Flu ↓ | Sim ↑ | Div ↑ | M.h. ↑ | Copied ↓ | Combined ↑ | n |" in table
    monkeypatch.setattr(runner, "make_rows", lambda *a: pytest.fail("finished cells are only read"))
    compare(write(content, tmp_path), tmp_path / "elsewhere", results=tmp_path / "results")
    assert (tmp_path / "elsewhere" / "table.md").read_text(encoding="utf-8") == table.replace("--out out", "--out elsewhere")


def test_what_another_process_has_is_left_to_it(content: dict[str, Any], tmp_path: Path) -> None:
    from filelock import FileLock

    content = {**content, "methods": {"none": None}, "seeds": [1, 2]}
    work = tmp_path / "out" / "work"
    work.mkdir(parents=True)
    comparison = opened(content, tmp_path / "results")
    with FileLock(f"{comparison.folder(comparison.methods[0], comparison.samples[0], 1, work)}.lock"):
        found = compare(write(content, tmp_path), tmp_path / "out", results=tmp_path / "results")
    assert found["missing"] == 1
    assert "**Partial:** 1 of 2" in (tmp_path / "out" / "table.md").read_text(encoding="utf-8")


def test_full_takes_all_rows(content: dict[str, Any], tmp_path: Path) -> None:
    comparison = opened(content, tmp_path, full=True)
    assert (len(comparison.samples[0].train), len(comparison.sets[0].rows)) == (50, 9)


def test_evaluation_rows_do_not_depend_on_their_order_in_the_file(content: dict[str, Any], other: Path, tmp_path: Path) -> None:
    training = Dataset.from_list([{**row(99, SUPPORTS), "group_id": "99", "corpus": "jsonl", "split": "train"}])
    first = load_sets([Evaluation(**content["evaluate"][0])], None, training, 5, LABELS[:2])[0]
    turned = tmp_path / "turned.jsonl"
    turned.write_text("".join(reversed(other.read_text(encoding="utf-8").splitlines(keepends=True))), encoding="utf-8")
    second = load_sets([Evaluation(**{**content["evaluate"][0], "data_files": str(turned)})], None, training, 5, LABELS[:2])[0]
    assert first.ids == second.ids
    assert list(first.rows["id"]) == list(second.rows["id"])


def test_overlap_with_training_is_an_error_where_it_should_be_gone(content: dict[str, Any]) -> None:
    training = Dataset.from_list([{**row(99, SUPPORTS), "group_id": "99", "corpus": "jsonl", "split": "train"}])
    sets = load_sets([Evaluation(**content["evaluate"][0])], None, training, None, LABELS[:2])
    again = Dataset.from_list([{**row(98, REFUTES, claim="Town 3 is OLD"), "group_id": "x", "corpus": "x"}])
    with pytest.raises(ValueError, match=r"1 evaluation rows of Other overlap"):
        check_no_overlap(sets, again)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"methods": {"RACE": {"setings": {}}}}, "unknown key 'setings'; did you mean 'settings'"),
        ({"methods": {"RACE": {"changes": ["claims"]}}}, "unknown key 'claims'; did you mean 'claim'"),
        ({"methods": {"RACE": {"settings": {"edits": False}}}}, "unknown key 'edits'; did you mean 'edit'"),
        ({"verifier": {"model": "m", "epoch": 1}}, "unknown key 'epoch'; did you mean 'epochs'"),
        ({"evaluate": [{"corpus": "jsonl", "setting": "hard"}]}, "setting must be 'in-domain', 'out-of-domain' or 'challenge'"),
        ({"baseline": "nothing"}, "baseline: nothing is not one of the methods none, RACE, both"),
        ({"verifier": {"epochs": 1}}, "verifier: the key 'model' is missing"),
        ({"settings": {"generator": "out/not-there", "verifier": "out/not-there"}}, "RACE: a model cannot be read; train it first"),
        ({"train": {"corpus": "hover", "data_dir": str(DEMO), "split": "train", "evdence": 1}}, "evdence"),
        ({"compare": "verifier"}, "compare must be 'verifiers', 'relations', 'models'.* did you mean 'verifiers'"),
        ({"take_all": 1}, "unknown key 'take_all'"),
    ],
)
def test_a_wrong_recipe_is_told(content: dict[str, Any], change: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(recipes.RecipeError, match=message):
        compare(write({**content, **change}, tmp_path), tmp_path / "out", results=tmp_path / "results")


@pytest.mark.parametrize("preset", ["paper", "offline"])
def test_the_methods_of_the_recipe_are_the_papers(preset: str) -> None:
    content = recipes.read(recipes.find("compare_race"), [f"preset={preset}"])
    found = {method.name: method for method in build_methods(parse_comparison(content))}  # type: ignore[arg-type]
    assert found["none"].system is None
    assert [(name, one.system.edit, one.system.constrain) for name, one in found.items() if isinstance(one.system, RACE)][:3] == [
        ("RACE", True, True), ("−CONS", True, False), ("−EDIT", False, True),
    ]  # fmt: skip
    assert found["w/ (c, E′, REF)"].changes == ("claim", "evidence")


def test_a_counterfactual_that_an_evaluation_row_repeats_is_left_out() -> None:
    features = ("id", "claim", "label", "group_id", "corpus", "split")
    common = {"evidence": [{"title": "", "text": "t"}], "change": "claim"}
    rows = [dict.fromkeys(features, "x") | common | {"claim": claim} for claim in ("Rome is old.", "Rome is new.")]
    made = Dataset.from_list([{"id": "1", "counterfactuals": rows}])
    originals = Dataset.from_list([{key: value for key, value in rows[0].items() if key != "change"}])
    evaluation = Dataset.from_list([{"claim": "rome is NEW", "evidence": [{"title": "", "text": "u"}]}])
    kept, dropped = training_rows(Method("RACE", None), originals, made, [evaluation])
    assert (list(kept["claim"]), dropped) == (["Rome is old.", "Rome is old."], 1)


def test_copies_have_the_labels_of_the_counterfactuals_and_no_new_text() -> None:
    def rows(labels: list[str], prefix: str) -> list[dict[str, Any]]:
        common = {"group_id": "g", "corpus": "c", "split": "s"}
        return [{**row(i, label, claim=f"{prefix} {i}."), **common} for i, label in enumerate(labels)]

    originals = Dataset.from_list(rows([SUPPORTS, REFUTES, SUPPORTS], "Old"))
    made = [{**one, "change": "claim"} for one in rows([REFUTES, SUPPORTS, REFUTES, SUPPORTS, SUPPORTS], "New")]
    evaluation = Dataset.from_list(rows([SUPPORTS], "Other")).map(lambda one: {"evidence": [{"title": "", "text": "u"}]})
    method = Method("labels alone", None, copies=True)
    kept, _ = training_rows(method, originals, Dataset.from_list([{"id": "1", "counterfactuals": made}]), [evaluation])
    assert list(kept["label"])[3:] == [REFUTES, SUPPORTS, REFUTES, SUPPORTS, SUPPORTS]
    assert set(kept["claim"]) == set(originals["claim"])
    counts = [list(kept["claim"]).count(claim) for claim in ("Old 0.", "Old 1.", "Old 2.")]
    assert counts[1] == 3
    assert sorted((counts[0], counts[2])) == [2, 3], "each in turn"


def test_a_claim_is_compared_with_the_evidence_that_it_was_written_from(tiny_model: Callable[[str], str]) -> None:
    """A run that an edit would break counts, and so do words that only the edited evidence has."""
    pieces = [
        [{"title": "Jaws", "text": f"Jaws was shot in {place}."}, {"title": place, "text": "It is old."}]
        for place in ("Rome", "Oslo")
    ]
    row = {"source_claim": "Jaws is a film.", "claim": "Jaws was shot in old Oslo.", "evidence": pieces[0], "label": REFUTES}
    mover = MoverScore(
        model=Model(tiny_model("classifier")), idf=save_artifact(fit_idf(["a", "b"], Model(tiny_model("classifier"))))
    )
    found = intrinsic([{**row, "edited_versions": [pieces[1]]}], mover, Model(tiny_model("gpt2")))
    assert (found["Copied"], found["Combined"], found["n"]) == (pytest.approx(4 / 6, abs=1e-4), True, 1)
    assert found["Flu"] == Perplexity(model=Model(tiny_model("gpt2"))).run([row["claim"]])[0]
    only_oslo = {**row, "claim": "Jaws was shot in Oslo.", "edited_versions": [pieces[1]]}
    assert intrinsic([only_oslo], mover) | {"Sim": 0, "Div": 0, "M.h.": 0} == {
        "Sim": 0, "Div": 0, "M.h.": 0, "Copied": 1.0, "Combined": False, "n": 1,
    }  # fmt: skip
    assert intrinsic([{**only_oslo, "edited_versions": []}], mover)["Copied"] == 0.8
    assert list(intrinsic([], mover, Model("m"))) == ["Flu", "Sim", "Div", "M.h.", "Copied", "Combined", "n"]


def test_candidates_are_all_that_was_generated_and_claims_what_was_accepted() -> None:
    def one(claim: str, stage: str | None, accepted: bool = False, change: str = "claim") -> dict[str, Any]:
        status = stage and {"accepted": accepted, "stage": stage, "reason": None}
        return {"claim": claim, "label": None, "change": change, "status": status, "edits": []}

    made = [one("cut", "generate_claim"), one("same", "check_claim"), one("far", "filter_claim"), one("best", "filter_claim", True)]
    edit = {"field": "evidence", "piece": 0, "start": 0, "end": 4, "before": "Town", "after": "City"}
    made.append({**one("c", "check_edit", True, "evidence"), "edits": [edit]})
    source = {**row(1, SUPPORTS, claim="c"), "group_id": "1", "corpus": "x", "split": "train"}
    final = {**source, "claim": "best", "label": REFUTES, "change": "claim", "source_id": "t1"}
    rows = Dataset.from_list([{**source, "candidates": made, "counterfactuals": [final, {**final, "change": "evidence"}]}])
    assert [(c["claim"], c["label"], c["source_claim"]) for c in candidates(rows)] == [
        ("same", REFUTES, "c"), ("far", REFUTES, "c"), ("best", REFUTES, "c"),
    ]  # fmt: skip
    [accepted] = claims(rows)
    assert (accepted["claim"], accepted["source_claim"]) == ("best", "c")
    for claim in (accepted, *candidates(rows)):
        assert claim["evidence"][0]["text"] == "Town 1 lies on river 1."
        assert claim["edited_versions"] == [[{"title": "", "text": "City 1 lies on river 1."}]]
    # What keeps its label, or a row that has no opposite, says so itself.
    kept = {**source, "label": NOT_ENOUGH_INFO, "candidates": [{**one("new", "filter_claim"), "label": NOT_ENOUGH_INFO}]}
    assert [c["label"] for c in candidates(Dataset.from_list([kept]))] == [NOT_ENOUGH_INFO]


def test_every_arm_is_trained_for_as_many_steps(content: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content |= {"seeds": [1], "methods": {"none": None, "EDA": {"system": "eda"}}, "settings": {}}
    del content["verifier"]["epochs"]
    content["verifier"] |= {"max_steps": 3, "micro_batch_size": 2}
    made: dict[int, int] = {}
    monkeypatch.setattr(steps, "write_steps", lambda out, hp, number, rows: made.update({rows: number}))
    compare(write(content, tmp_path), tmp_path / "out", results=tmp_path / "results")
    assert len(made) == 2, "the second arm has more rows"
    assert {*made.values()} == {3}
