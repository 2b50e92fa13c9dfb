"""Rows with argument structures: what can be wrong with one, and that systems of verification work on them and lose nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import parrot
import pytest
from datasets import Dataset, load_from_disk
from offline_models import installed
from structure_rows import dataset, row, rows

import hfcf
from hfcf.core.candidates import accept
from hfcf.core.expand import augmented
from hfcf.core.model import Model
from hfcf.core.recipe import RecipeError
from hfcf.core.task import find_problem, get_task, nearest_task, task_of
from hfcf.engines.continuation import Continuation
from hfcf.engines.generator import Generator
from hfcf.pipeline import run
from hfcf.systems import system_class
from hfcf.systems._shared.judge import JudgeCandidates, counterfactuals
from hfcf.systems.crossaug import CrossAug
from hfcf.systems.race.system import RACE
from hfcf.tasks import verification
from hfcf.tasks.structures import TASK, stale_names
from hfcf.tasks.verification import candidate

SUP, REF, NEI = rows()
INFO = SUP["evidence_info"]
TWELVE = {"field": "evidence", "piece": 0, "start": 38, "end": 40, "before": "12", "after": "13"}


def step(*premises: str, to: str) -> dict[str, Any]:
    return {"premises": list(premises), "conclusion": to}


def test_it_is_told_apart_from_verification() -> None:
    assert task_of(dataset().features) is nearest_task(frozenset(dataset().features)) is TASK
    plain = dataset().remove_columns(["structure", "evidence_info", "cause", "effect"])
    assert task_of(plain.features) is nearest_task(frozenset(plain.features)) is verification.TASK
    assert nearest_task(frozenset({"claim", "evidence", "label"})) is verification.TASK


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"claim": ""}, "the claim is empty"),
        ({"label": "TRUE"}, "the label must be one of SUPPORTS, REFUTES, NOT ENOUGH INFO, got 'TRUE'"),
        ({"cause": " "}, "the cause is empty"),
        ({"evidence_info": INFO[:-1]}, "there are 7 pieces of evidence and 6 entries in evidence_info: they go together"),
        ({"evidence_info": [*INFO[:-1], None]}, "the id of evidence piece 6 is null"),
        ({"evidence_info": [*INFO[:-1], INFO[0]]}, "the id 's1' is that of evidence pieces 0 and 6"),
        (
            {"evidence_info": [*INFO[:-1], {"id": "claim", "useful": False, "leaf": False}]},
            "the id of evidence piece 6 is 'claim', which is the name of the root",
        ),
        ({"structure": [*SUP["structure"], step("s9", to="claim")]}, "the structure names s9, which is not an id in evidence_info"),
        (
            {"structure": [*SUP["structure"], step("d1", to="claim")]},
            "the structure names d1, and evidence_info says that it is not useful",
        ),
        ({"structure": [step(to="claim")]}, "the step to claim has no premise: give it one, or leave it out"),
        (
            {"structure": [{"premises": ["s1"], "conclusion": None}]},
            "step 0 of the structure has a null: give it premises and a conclusion",
        ),
        (
            {"structure": [step("s1", "s2", to="s3"), step("s3", to="s4"), step("s4", to="claim")]},
            "the structure is illegal: s5 is useful and not used",
        ),
        (
            {"structure": [*SUP["structure"], step("s4", to="s1")]},
            "the structure is illegal: the steps run in a circle: s1 → s3 → s4 → s1",
        ),
    ],
)  # fmt: skip
def test_it_says_what_is_wrong_with_a_row(change: dict[str, Any], reason: str) -> None:
    assert find_problem({**SUP, **change}) == reason


def test_sound_rows_have_no_problem_and_what_is_not_there_is_not_looked_at() -> None:
    assert [find_problem(row) for row in rows()] == [None] * 3
    assert find_problem({**SUP, "structure": None, "cause": None}) is None
    assert find_problem({"claim": SUP["claim"], "structure": SUP["structure"]}) is None


def test_a_pair_without_a_claim_says_so_and_repeats_no_other_pair() -> None:
    pairs = [{**TASK.empty_row, "claim": "", "cause": "It rained.", "effect": effect} for effect in ("It flooded.", "Seeds grew.")]
    assert find_problem(pairs[0]) == "there is no claim yet, only a cause and its effect"
    assert find_problem({"cause": "It rained.", "effect": "It flooded."}) is None, "stages that write claims work on it"
    assert [TASK.identity(pair) for pair in pairs] == [[("pair", "It rained. It flooded.")], [("pair", "It rained. Seeds grew.")]]
    made = {**SUP, **{name: pairs[0][name] for name in ("cause", "effect")}}
    assert set(TASK.identity(made)) > set(TASK.identity(pairs[0]))
    assert "pair" not in dict(TASK.identity(SUP)), "a cause alone is no pair"


def test_segments_also_of_rows_that_cannot_be_worked_on() -> None:
    segment = TASK.segments({**SUP, "stale": ["s3", "claim"]})[-1]
    assert (segment.field, segment.text) == ("structure", "(s1, s2) → s3 → s4 (s4, s5) → Claim")
    assert [(segment.text[mark.start : mark.end], mark.name) for mark in segment.marks] == [("s3", "stale"), ("Claim", "stale")]
    for change in (
        {"structure": [None]},
        {"evidence_info": []},
        {"structure": None},
        {"evidence": None},
        {"structure": [step(to="s1")]},
    ):
        assert all(segment.field != "structure" for segment in TASK.segments({**SUP, **change}))


def test_what_hangs_on_an_edited_piece_is_stale() -> None:
    assert stale_names(SUP, [TWELVE]) == ["s3", "s4", "claim"]
    assert stale_names(SUP, [{**TWELVE, "piece": 4}]) == ["claim"]
    assert stale_names(SUP, [{**TWELVE, "piece": 6}]) == stale_names(NEI, [TWELVE]) == []
    assert stale_names(SUP, [{**TWELVE, "field": "claim", "piece": -1}]) == []
    assert stale_names(REF, [{**TWELVE, "field": "evidence.title", "piece": 5}]) == ["claim"]


def decided(system_task: str) -> Dataset:
    """Rows as a system's last stage leaves them: an edit of the evidence and one of the claim of each row."""
    ds = hfcf.prepare(dataset(), JudgeCandidates(system="made", task=system_task))
    rewritten = "The lamp made the seeds rot in the greenhouse."
    claim = {"field": "claim", "piece": -1, "start": 0, "end": len(SUP["claim"]), "before": SUP["claim"], "after": rewritten}
    candidates = [candidate(SUP["claim"], "REFUTES", "evidence", [TWELVE]), candidate(rewritten, "REFUTES", "claim", [claim])]
    ds = ds.map(lambda row: {"candidates": candidates}, features=ds.features)
    return ds.map(JudgeCandidates(system="made", task=system_task), batched=True)


@pytest.mark.parametrize("system_task", ["verification", "structures"])
def test_counterfactuals_have_the_structure_and_what_is_stale(system_task: str) -> None:
    ds = decided(system_task)
    made = hfcf.expand(ds)
    assert made.features == TASK.counterfactual
    assert made["id"][:2] == ["sup:made:evidence", "sup:made:claim"]
    assert made["stale"][:] == [["s3", "s4", "claim"], [], ["s3", "s4", "s6", "claim"], [], [], []]
    assert made[0]["evidence"][0]["text"].endswith("13 hours.")
    for counterfactual in made:
        source = next(row for row in rows() if row["id"] == counterfactual["source_id"])
        assert TASK.revert_edits(counterfactual, counterfactual["edits"]) == {name: source[name] for name in TASK.columns}
        assert find_problem(counterfactual) is None
    both = augmented(ds)
    assert both.features == TASK.features
    assert len(both) == 9
    shown = TASK.pair(made[0])
    assert [text["where"] for text in shown["texts"]] == ["evidence 0"]
    assert shown["context"][-1]["after"] == "(s1, s2) → [s3]? → [s4]? ([s4]?, s5) → [Claim]?"


def test_a_task_s_new_code_is_used_on_rows_of_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decided("verification").save_to_disk(tmp_path)
    assert "changed" not in hfcf.expand(load_from_disk(tmp_path))["cause"]
    complete = type(TASK).complete
    monkeypatch.setattr(type(TASK), "complete", lambda self, *given: complete(self, *given) | {"cause": "changed"})
    assert set(hfcf.expand(load_from_disk(tmp_path))["cause"]) == {"changed"}


def test_without_a_counterfactual_the_columns_are_there() -> None:
    ds = decided("verification").map(lambda row: {"counterfactuals": []})
    assert (len(hfcf.expand(ds)), hfcf.expand(ds).features) == (0, TASK.counterfactual)
    assert hfcf.expand(ds.select([])).features == TASK.counterfactual


def test_crossaug_runs_on_them(tiny_model: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    answer = [{"text": "The lamp made the seeds grow for 99 days.", "score": -1.0, "finished": True}]
    monkeypatch.setattr(Continuation, "forward", lambda self, _, encoded: [answer] * len(encoded))
    source = row("sup", "(s1, s2) → s3 → s4 (s4, s5) → Claim", "SUPPORTS", "The lamp made the seeds grow for 12 hours.")
    ds = CrossAug(generator=Model(tiny_model("t5")))(dataset([source, NEI]))
    made = hfcf.expand(ds)
    changed = ["s3", "s4", "claim"]
    assert {row["change"]: row["stale"] for row in made} == {"claim": [], "evidence": changed, "both": changed}
    assert [row["structure"] for row in made] == [source["structure"]] * 3
    assert made.features == TASK.counterfactual
    [lost] = hfcf.rejected(ds, system="crossaug")
    assert set(lost["source"]) == set(TASK.features)


def test_race_runs_on_them(race: RACE, demo: Dataset, tiny_model: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Generator, "forward", parrot.forward)
    made_rows = []
    for source in demo.select(range(3)).remove_columns(["num_hops"]):
        ids = [f"Sentence{i}" for i in range(len(source["evidence"]))]
        info = [{"id": name, "useful": True, "leaf": True} for name in ids]
        made_rows.append({**source, "cause": None, "effect": None, "evidence_info": info, "structure": [step(*ids, to="claim")]})
    ds = race.replace(verifier=Model(tiny_model("verifier")))(dataset(made_rows))
    made = hfcf.expand(ds)
    assert len(made)
    for new in made:
        assert new["stale"] == (["claim"] if new["change"] == "evidence" else [])
        assert find_problem(new) is None
    assert {*made["source_id"], *hfcf.rejected(ds)["source_id"]} == set(ds["id"])


@pytest.mark.skipif(not installed("wordnet"), reason="the offline WordNet is not installed")
@pytest.mark.parametrize("baseline", ["eda", "synonym"])
def test_a_baseline_takes_them_as_verification_rows(baseline: str) -> None:
    made = hfcf.expand(system_class(baseline)()(dataset()))
    assert len(made)
    assert {row["change"] for row in made} == {"claim"}
    assert made.features == TASK.counterfactual


@pytest.mark.parametrize("system", ["synonym", "crossaug"])
def test_a_recipe_takes_them_as_verification_rows(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "load_rows", lambda recipe: dataset())
    recipe = run.read_recipe({"name": "made", "corpus": "jsonl", "data_files": "a.jsonl", "system": system})
    assert run.load_inputs(recipe)[1].task == "verification"
    recipe = run.read_recipe({"name": "made", "corpus": "jsonl", "data_files": "a.jsonl", "system": "ccg"})
    with pytest.raises(RecipeError, match="ccg works on relation rows; jsonl has structures rows"):
        run.load_inputs(recipe)


def test_metrics_measure_them() -> None:
    made = hfcf.expand(decided("verification"))
    measured = hfcf.measure(made, ["minimality", "diversity", "duplicates", "label_balance"])
    assert "minimality" in measured.features
    assert measured.features["stale"] == made.features["stale"]


def test_the_row_that_judges_writes_is_of_the_task() -> None:
    row = accept(candidate(SUP["claim"], "REFUTES", "evidence", [TWELVE]), "check")
    [made] = counterfactuals(SUP, [row], "made")
    assert made["stale"] == ["s3", "s4", "claim"]
    assert get_task("structures").outcome(made) == "REFUTES"
