"""What holds for every metric: its declaration, its docstring, what it refuses, its `evaluate.Metric`; and metrics of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from datasets import ClassLabel, Dataset, concatenate_datasets
from made_rows import claim_row, evidence_row, relation, relation_row, verification

import hfcf
from hfcf.cli import listing
from hfcf.core import plugins, recipe, schema
from hfcf.core.recipe import RecipeError
from hfcf.core.settings import MISSING
from hfcf.core.stage import StageError
from hfcf.core.task import tasks
from hfcf.metrics import function, is_published, load, names
from hfcf.metrics.shared.measure import measure
from hfcf.metrics.shared.metric import Metric, about, metric, settings_of_metric
from hfcf.metrics.shared.parsing import parse_metrics
from hfcf.metrics.shared.summary import summaries
from hfcf.metrics.shared.texts import NotMeasured
from hfcf.report.measures import low_is_better
from hfcf.tasks.verification import LABELS

MODELS = {"fluency": "gpt2", "similarity": "classifier", "coherence": "classifier", "grammar": "classifier"}
every_metric = pytest.mark.parametrize("name", names())


@pytest.fixture
def made() -> Dataset:
    return verification(
        claim_row(0, "Rome is a very old city.", "Oslo is a very old city.", "REFUTES"),
        claim_row(1, "Dogs bark at night.", "Dogs never bark at night or by day.", "REFUTES"),
        claim_row(2, "Dogs bark at night!", "Dogs bark at Night.", "SUPPORTS"),
        evidence_row(3),
    )


@pytest.fixture
def settings(name: str, tiny_model: Callable[[str], str], spacy_ner: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"model": tiny_model(MODELS[name])} if name in MODELS else {}
    made |= {"verifier": tiny_model("verifier")} if name == "flip_rate" else {}
    made |= {"ner": {"backend": "spacy", "model": "offline:spacy"}} if name == "entity_overlap" else {}
    return {**made, "acceptable": "SUPPORTS"} if name == "grammar" else made


def same(value: Any, feature: Any) -> bool:
    """Whether a score fits its column."""
    if isinstance(feature, Mapping):
        return value is None or (value.keys() == feature.keys() and all(same(value[key], feature[key]) for key in feature))
    return value is None or isinstance(value, {"bool": bool, "int64": int, "float64": float, "string": str}[feature.dtype])


@every_metric
def test_a_docstring_says_the_column_and_each_setting(name: str) -> None:
    measured, declared = function(name), about(function(name))
    text = " ".join((measured.__doc__ or "").split())
    assert f"Output column: `{name}`" in text
    if isinstance(declared.outputs, Mapping):
        assert f"{{{', '.join(declared.outputs)}}}" in text
    assert all(f"{setting}: " in text for setting in settings_of_metric(measured))
    assert load(name).description == measured.__doc__
    assert load(name).citation == declared.citation
    assert listing._describe_metric(name).summary


@every_metric
def test_a_column_has_its_type_with_and_without_rows(name: str, settings: dict[str, Any], made: Dataset) -> None:
    if name == "question_types":
        pytest.skip("it measures questions alone")
    found, declared = measure(made, {name: settings}), about(function(name))
    assert found.features[name] == measure(made.select([]), {name: settings}).features[name] == declared.outputs
    assert all(same(score, declared.outputs) for score in found[name])
    assert any(score is not None for score in found[name])
    published = made.cast_column("label", ClassLabel(names=list(LABELS)))
    assert measure(published, {name: settings})[name][:] == found[name][:]
    assert name in summaries(found)
    metric = parse_metrics({name: settings}, "verification")[name]
    alone = metric(made, metric.learn(made))
    assert alone == found[name][:]


@every_metric
def test_rows_of_tasks_without_its_columns_are_refused(name: str) -> None:
    for task_name, task in tasks().items():
        try:
            assert about(function(name)).columns(task)
        except NotMeasured:
            with pytest.raises(StageError) as error:
                Metric(function(name), task_name, dict.fromkeys(required(name), "a-model"))
            assert name in str(error.value)
            assert task_name in str(error.value)


def required(name: str) -> list[str]:
    return [setting for setting, declared in settings_of_metric(function(name)).items() if declared.default is MISSING]


@every_metric
def test_evaluate_loads_it_by_its_path(name: str) -> None:
    import evaluate

    path = str(Path(hfcf.__file__).parent / "metrics" / "shared" / "evaluate_metric.py")
    assert evaluate.load(path, name).description == load(name).description


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        ({"fluensy": None}, ["'fluensy'", "'fluency'"]),
        ({"claim_only": {"fold": 3}}, ["'fold'", "'folds'"]),
        ({"flip_rate": None}, ["'verifier'", 'measure(cf, {"flip_rate": {"verifier": …}})']),
        ({"grammar": None}, ["'model'", "trained on acceptability"]),
        ({"fluency": "gpt2"}, ["fluency", "'gpt2'"]),
        ("minimality", ["'minimality'"]),
        (3, ["number"]),
        (["minimality", "fluensy"], ["'fluensy'"]),
        ({"claim_only": {"folds": 0}}, ["folds", "2", "0"]),
        ({"similarity": {"n_gram": 0}}, ["n_gram", "1", "0"]),
        ({"fluency": {"model": "./not/there"}}, ["./not/there", "fluency"]),
        ({"fluency": {"model": 5}}, ["fluency", "5"]),
        ({"fluency": {"model": "offline:gpt5"}}, ["'gpt5'"]),
        ({"flip_rate": {"verifier": {"name": "me/a", "adapter": "/not/there"}}}, ["/not/there"]),
        ({"duplicates": {"against": ["dev"]}}, ["against"]),
        ({"duplicates": {"against": {"dev": "hover"}}}, ["against", "corpus"]),
        ({"duplicates": {"against": {"dev": {"corpus": "hovr"}}}}, ["'hovr'"]),
        ({"duplicates": {"against": {"dev": {"corpus": "hover", "data_dr": "x"}}}}, ["'data_dr'", "'data_dir'"]),
    ],
)
def test_a_wrong_metric_or_setting_is_an_error_before_anything_is_measured(made: Dataset, metrics: Any, said: list[str]) -> None:
    with pytest.raises(RecipeError) as error:
        measure(made, metrics)
    assert all(word in str(error.value) for word in said)


@pytest.mark.parametrize(("name", "column"), [("claim_only", "group_id"), ("duplicates", "change")])
def test_what_learns_from_the_set_names_a_missing_column_and_a_repeated_id(name: str, column: str, made: Dataset) -> None:
    with pytest.raises(StageError, match=f"'{column}'"):
        measure(made.remove_columns(column), [name])
    with pytest.raises(StageError, match=r"4 ids.*'0:test:claim'"):
        measure(concatenate_datasets([made, made]), [name])


def test_a_name_that_is_no_metric_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"'fluencey'.*minimality"):
        load("fluencey")


# --- a metric of one's own


def longer(text: str, source: str) -> bool:
    """Say whether the text is longer."""
    return len(text) > len(source)


def words_less(text, source):  # type: ignore[no-untyped-def]
    return None if not source else len(source.split()) - len(text.split())


def letters(rows: Dataset) -> list[int]:
    """Count the letters of the claim."""
    return [len(row["claim"]) for row in rows]


@metric(schema.INT, better="less")
def measure_marks(rows: Dataset, *, mark: str = "!") -> list[int]:
    """Count a mark in the claim.

    Args:
        rows: of an expanded set.
        mark: what to count.
    """
    return [row["claim"].count(mark) for row in rows]


def test_functions_of_ones_own_are_measured(made: Dataset) -> None:
    unchanged = Dataset.from_list([*made, {**made[0], "edits": []}], features=made.features)
    found = measure(unchanged, ["minimality", longer, words_less, letters, Metric(measure_marks, "verification", {"mark": "."})])
    assert found["longer"][:] == [False, True, False, True, None]
    assert found["words_less"][:] == [0.0, -4.0, 0.0, -2.0, None]
    assert found["letters"][:] == list(map(len, unchanged["claim"]))
    assert found["marks"][:] == [1, 1, 1, 1, 1]
    assert measure(made, {"longer": longer})["longer"][:] == found["longer"][:4]
    with pytest.raises(RecipeError, match="'longer'"):
        measure(made, {"size": longer})


def test_a_function_that_makes_no_column_is_refused(made: Dataset) -> None:
    def of_nothing() -> int:
        return 1

    def listed(text: str, source: str) -> list[str]:
        return [text]

    def untyped(text, source):  # type: ignore[no-untyped-def]
        return text

    for wrong in (lambda text, source: 1, of_nothing, listed, untyped):
        with pytest.raises(ValueError, match=r"lambda|of_nothing|listed|untyped"):
            measure(made, [wrong])


def test_a_metric_of_another_package_is_known_to_recipes_and_reports(made: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    points = (("longer", f"{__name__}:longer"), ("marks", f"{__name__}:measure_marks"))
    monkeypatch.setattr(plugins, "_entry_points", lambda group, path: points if group == "hfcf.metrics" else ())
    parsed = parse_metrics({"marks": {"mark": "?"}, "longer": None, "minimality": None}, "verification")
    assert parse_metrics(parsed, "verification") == parsed
    found = measure(made, parsed)
    assert found["marks"][:] == [0, 0, 0, 0]
    assert summaries(found, metrics=parsed)["longer"]["after"] == {"n": 4, "yes": 2, "share": 0.5}
    assert load("longer").compute(predictions=["ab"], references=["a"])["longer"] == 1
    assert (low_is_better("marks"), low_is_better("longer"), is_published("longer")) == (True, False, True)
    assert [listing._describe_metric(name).summary for name in ("longer", "marks")] == [
        "Say whether the text is longer",
        "Count a mark in the claim",
    ]
    with pytest.raises(RecipeError, match=r"'marc'.*'mark'"):
        parse_metrics({"marks": {"marc": "?"}}, "verification")


def test_a_run_measures_a_plain_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = (("longer", f"{__name__}:longer"), ("letters", f"{__name__}:letters"))
    monkeypatch.setattr(plugins, "_entry_points", lambda group, path: points if group == "hfcf.metrics" else ())
    content = {"corpus": "hover", "data_dir": str(recipe.folder() / "demo"), "system": "eda", "preset": "offline"}
    found = hfcf.run({**content, "split": "train[:3]", "metrics": {"longer": None, "letters": None}}, tmp_path / "out")
    assert found["metrics"]["longer"]["after"]["n"] == found["counterfactuals"] > 0
    assert "letters" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_relations_are_refused_by_metrics_of_claims() -> None:
    with pytest.raises(StageError, match="'claim'"):
        measure(relation(relation_row(0)), {"coherence": None})
