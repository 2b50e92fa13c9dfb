"""Judges beside a verifier: they must agree with it and be certain, and are asked only about what it accepts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from datasets import Dataset

import hfcf
from hfcf.core import preflight
from hfcf.core.model import Model
from hfcf.core.stage import Reject
from hfcf.core.task import get_task
from hfcf.engines.classifier import Classifier
from hfcf.engines.continuation import Continuation
from hfcf.engines.ner import Ner
from hfcf.pipeline.run import read_models, select_metrics
from hfcf.systems._shared.judge import JudgeCandidates
from hfcf.systems.crossaug import CrossAug
from hfcf.systems.race.system import RACE
from hfcf.tasks.ensemble import vote
from hfcf.tasks.verification import LABELS, TASK

SUPPORTS, REFUTES, NEI = LABELS
GRADIENT = "gradient_x_input"
CUT = "; the evidence was cut: the input has {} tokens, and the model reads 64"
JUDGES = (Model("second"), Model("third"))
RULES = RACE(verifier="first", generator="g", explainer=GRADIENT, ner=Ner(backend="spacy"), judges=JUDGES)
Say = Callable[[Mapping[str, Mapping[str, tuple[str, float]]]], list[tuple[str, str]]]


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Say:
    """`says({model: {claim: (label, probability)}})` makes each judge answer so; returns who is asked about which claim."""

    def set_(verdicts: Mapping[str, Mapping[str, tuple[str, float]]]) -> list[tuple[str, str]]:
        asked: list[tuple[str, str]] = []

        def run(self: Classifier, requests: Sequence[list[str]]) -> list[dict[str, float]]:
            answers = []
            for claim, _ in requests:
                asked.append((self.model.name, claim))
                label, probability = verdicts[self.model.name][claim]
                answers.append({row: probability if row == label else (1 - probability) / 2 for row in LABELS})
            return answers

        monkeypatch.setattr(Classifier, "run", run)
        return asked

    return set_


def edited(claim: str) -> dict[str, Any]:
    change = {"field": "evidence", "piece": 0, "start": 0, "end": 1, "before": "s", "after": "t"}
    return {"claim": claim, "label": SUPPORTS, "edits": [change], "edited_evidence": [{"title": "T", "text": "t."}]}


def test_each_judge_is_asked_about_what_those_before_it_accept(says: Say) -> None:
    sure = (REFUTES, 0.9)
    asked = says(
        {
            "first": {"a": sure, "b": (SUPPORTS, 0.9), "c": sure},
            "second": {"a": sure, "c": (NEI, 0.6)},
            "third": {"a": sure},
        }
    )
    a, b, c = RULES.check_edit.batch([edited("a"), edited("b"), edited("c")])
    assert asked == [("first", "a"), ("first", "b"), ("first", "c"), ("second", "a"), ("second", "c"), ("third", "a")]
    kept = a["candidates"][0]  # type: ignore[index]
    assert kept["status"]["accepted"]
    assert kept["scores"] == [{"name": f"{who}: {REFUTES}", "value": 0.9} for who in ("verifier", "judge 1", "judge 2")]
    assert str(b).startswith("under-edited")
    assert str(c) == "judge 1 (second) says NOT ENOUGH INFO"
    assert c.outputs["candidates"][0]["scores"][1:] == [{"name": "judge 1: NOT ENOUGH INFO", "value": 0.6}]  # type: ignore[union-attr]


def test_whoever_is_uncertain_is_named_and_the_probability_is_a_score(says: Say) -> None:
    answers = {
        "first": {"a": (REFUTES, 0.7), "b": (REFUTES, 0.8)}, "second": {"b": (REFUTES, 0.79)}, "third": {}
    }  # fmt: skip
    says(answers)
    a, b = RULES.replace(certainty=0.8).check_edit.batch([edited("a"), edited("b")])  # 0.8 is enough
    assert (str(a), str(b)) == ("uncertain: verifier (first)", "uncertain: judge 1 (second)")
    assert b.outputs["candidates"][0]["scores"][1] == {"name": "judge 1: REFUTES", "value": 0.79}  # type: ignore[union-attr]
    # What the verifier says against the claim is the reason, however little it is certain of it.
    says({"first": {"a": (SUPPORTS, 0.4)}, "second": {}, "third": {}})
    assert str(RULES.replace(certainty=0.8).check_edit.batch([edited("a")])[0]).startswith("under-edited")


def test_a_claim_needs_the_same_verdict_of_all_and_not_only_one_that_flips(says: Say) -> None:
    claims = {"both": (REFUTES, REFUTES), "split": (REFUTES, NEI), "neither": (SUPPORTS, REFUTES)}
    asked = says(
        {name: {claim: (labels[i], 0.9) for claim, labels in claims.items()} for i, name in enumerate(("first", "second"))}
    )
    row = {
        "claim": "c", "evidence": [{"title": "", "text": "e"}], "label": SUPPORTS,
        "candidates": [
            {"claim": claim, "label": None, "change": "claim", "edits": [], "scores": [], "status": None} for claim in claims
        ],
    }  # fmt: skip
    (answer,) = RULES.replace(judges=JUDGES[:1], flip="any").check_claim.batch([row])
    reasons = {candidate["claim"]: candidate["status"] and candidate["status"]["reason"] for candidate in answer["candidates"]}  # type: ignore[index]
    assert reasons == {
        "both": None, "split": "judge 1 (second) says NOT ENOUGH INFO",
        "neither": "the label does not flip: the original evidence makes it SUPPORTS",
    }  # fmt: skip
    assert ("second", "neither") not in asked


def test_a_judge_without_an_answer_or_without_the_label_rejects(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: dict[str, Any] = {"v": {REFUTES: 0.4, SUPPORTS: 0.6}, "w": None, "two": {"yes": 1.0}}
    monkeypatch.setattr(Classifier, "run", lambda self, asked: [answers[self.model.name]] * len(asked))
    row = {"claim": "c", "evidence": [{"title": "", "text": "e"}]}
    (long,) = vote(TASK, [row], [(SUPPORTS,)], [Model("v"), Model("w")], 130)
    assert (long.label, long.reason) == (SUPPORTS, "longer than judge 1 (w) reads")
    (unknown,) = vote(TASK, [row], [(SUPPORTS,)], [Model("v"), Model("two")], 130)
    assert unknown.reason == "judge 1 (two) does not know SUPPORTS, but yes"


def source(text: str = "Ann was born in Rome.") -> Dataset:
    row = {
        "id": "1", "claim": text, "evidence": [{"title": "", "text": "Ann, born in Rome."}], "label": SUPPORTS, "group_id": "1",
        "corpus": "made", "split": "train",
    }  # fmt: skip
    return Dataset.from_list([row], features=get_task("verification").features)


def test_crossaug_chooses_the_claim_on_which_all_agree(
    says: Say, monkeypatch: pytest.MonkeyPatch, tiny_model: Callable[[str], str]
) -> None:
    written = [{"text": f"Ann was born in {town}.", "score": 0.0, "finished": True} for town in ("Oslo", "Bonn")]
    monkeypatch.setattr(Continuation, "forward", lambda self, _, encoded: [written] * len(encoded))
    oslo, bonn = (candidate["text"] for candidate in written)
    both = {oslo: (REFUTES, 0.9), bonn: (REFUTES, 0.9)}
    folders = [Model(tiny_model("t5"))]
    system = CrossAug(generator=folders[0], num_candidates=2, pairs=("claim",), verifier=Model("first"), judges=JUDGES[:1])
    monkeypatch.setattr(preflight, "check_system", lambda *_: None)
    monkeypatch.setattr("hfcf.core.system.check_system", lambda *_: None)
    says({"first": both, "second": {**both, oslo: (SUPPORTS, 0.9)}})
    ds = system(source())
    assert hfcf.expand(ds)["claim"][:] == [bonn]
    says({"first": both, "second": dict.fromkeys(both, (SUPPORTS, 0.9))})
    assert system(source())["status"][0]["reason"] == "judge 1 (second) says SUPPORTS"
    says({"first": both, "second": both})
    assert system.replace(certainty=0.95)(source())["status"][0]["reason"] == "uncertain: verifier (first)"


def test_the_last_stage_of_any_system_takes_judges(says: Say) -> None:
    says({"first": {"new": (REFUTES, 0.9)}, "second": {"new": (SUPPORTS, 0.9)}})
    edit = {"field": "claim", "piece": -1, "start": 0, "end": 3, "before": "old", "after": "new"}
    candidate = {"claim": "new", "label": REFUTES, "change": "claim", "edits": [edit], "scores": [], "status": None}
    row = {**source("old")[0], "candidates": [candidate]}
    judged = JudgeCandidates(system="s", verifier=Model("first"), judges=JUDGES[:1]).batch([row])[0]
    assert str(judged) == "no candidate is left of 1: judge 1 (second) says SUPPORTS (1)"


# --- settings, and what knows them


def test_the_paper_s_settings_have_neither() -> None:
    assert (RACE(verifier="v", generator="g", explainer=GRADIENT).judges, CrossAug.preset("paper").judges) == ((), ())
    assert RACE(verifier="v", generator="g", explainer=GRADIENT).certainty == CrossAug.preset("paper").certainty == 0.0


@pytest.mark.parametrize("given", ["me/x", {"name": "me/x"}, ["me/x"], [{"name": "me/x"}], Model("me/x")])
def test_a_recipe_gives_one_judge_or_several(given: Any) -> None:
    assert CrossAug.preset("offline", judges=given).judges == (Model("me/x"),)


def test_the_offline_preset_has_a_second_judge_unless_it_goes_without_a_verifier() -> None:
    assert [judge.adapter for judge in RACE.preset("offline").judges] == ["hfcf:verifier_2"]
    assert [judge.adapter for judge in CrossAug.preset("offline").judges] == ["hfcf:verifier_2"]
    assert CrossAug.preset("offline", verifier=None).judges == ()


@pytest.mark.parametrize("system", [RACE, CrossAug])
def test_a_verifier_of_ones_own_drops_the_second_judge_with_a_warning(system: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert system.preset("offline", verifier="me/nli").judges == ()
    assert "the preset's 'judges' is dropped, because it goes with the preset's own verifier" in caplog.text
    caplog.clear()
    assert system.preset("offline", verifier="me/nli", judges=["me/b"]).judges == (Model("me/b"),)
    assert system.preset("offline").judges
    assert system.preset("llm", verifier="llm:x").judges == ()
    assert "judges" not in caplog.text


def test_settings_that_mean_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match=r"certainty must be at most 1, got 1\.5"):
        RACE(verifier="v", generator="g", explainer=GRADIENT, certainty=1.5)
    with pytest.raises(ValueError, match="judges needs a verifier: give verifier="):
        CrossAug(judges=("w",))
    with pytest.raises(ValueError, match="certainty needs a verifier: give verifier="):
        CrossAug(certainty=0.9)
    with pytest.raises(ValueError, match=r"judges: offline:minilm \+ hfcf:verifier would agree with itself"):
        CrossAug.preset("offline", judges=(Model("offline:minilm", adapter="hfcf:verifier"),))


def test_a_judge_is_checked_before_the_first_stage() -> None:
    with pytest.raises(ValueError, match=r"(?s)race needs models that are trained first.*train_verifier --out out/no-judge "):
        preflight.check_models(RACE.preset("offline", judges=("out/no-judge",)))
    long = CrossAug.preset("offline", judges=(Model("offline:minilm", adapter="hfcf:nli"),), max_length=600)
    with pytest.raises(ValueError, match=r"max_length must be at most 512, the tokens that .* reads, got 600"):
        preflight.check_models(long.replace(verifier=Model("llm:m")))
    with pytest.raises(ValueError, match=r"not a sequence classifier|which text it reads|classes"):
        preflight.check_models(CrossAug.preset("offline", judges=("offline:minilm",)))


def test_cards_name_no_model_that_a_run_does_not_use() -> None:
    assert "explainer_model" not in read_models(RACE.preset("offline"), {})
    assert read_models(RACE.preset("offline", explainer="cure"), {})["explainer_model"] == "hfcf:explainer"


def test_cards_name_each_judge() -> None:
    system = CrossAug.preset("offline", judges=(Model("offline:minilm", adapter="hfcf:nli"),), certainty=0.9)
    assert read_models(system, {})["judges[0]"] == "offline:minilm + hfcf:nli"
    text, models = system.verifiers()
    assert [model.adapter for model in models] == ["hfcf:verifier", "hfcf:nli"]
    assert text == "the verifier and the judges named above, which had to agree, each with a probability of at least 0.9,"
    assert system.replace(judges=()).verifiers()[0] == "the verifier named above, with a probability of at least 0.9,"
    with pytest.raises(ValueError, match="would agree with itself"):
        select_metrics({"flip_rate": {"verifier": {"name": "offline:minilm", "adapter": "hfcf:nli"}}}, system)


def test_a_rejection_says_that_the_evidence_was_cut(tiny_model: Callable[[str], str]) -> None:
    """The deciding fact is at the end of 1,500 words, of which the verifier reads the beginning."""
    model = Model(tiny_model("classifier"))
    evidence = [{"title": "", "text": "It is of no use here. " * 250 + "The tower is 330 metres high."}]
    rows = [{"claim": "The tower is 320 metres high.", "evidence": one} for one in (evidence, [{"title": "", "text": "Short."}])]
    tokens = Classifier(model=model, max_length=64).count_tokens([[row["claim"], row["evidence"][0]["text"]] for row in rows])
    assert tokens[0] > 1500 > 64 > tokens[1]
    long, short = vote(TASK, rows, [()] * 2, [model], 64)
    assert long.reason == f"there is no label that the verifier could confirm{CUT.format(tokens[0])}"
    assert short.reason is not None
    assert "cut" not in short.reason
    verdicts = Classifier(model=model, max_length=64).run([[row["claim"], row["evidence"][0]["text"]] for row in rows])
    others = [next(label for label in LABELS if label != max(answer, key=answer.get)) for answer in verdicts]
    long, short = vote(TASK, rows, [(label,) for label in others], [model], 64)
    assert (long.reason, long.cut) == (None, CUT.format(tokens[0]))
    assert short.cut == ""
    row = {**TASK.empty_row, "id": "1", "group_id": "1", "corpus": "own", "split": "train", **rows[0], "label": others[0]}
    new = {"claim": "The tower is 300 metres high.", "label": others[0], "change": "claim", "scores": [], "status": None}
    new["edits"] = [{"field": "claim", "piece": -1, "start": 13, "end": 16, "before": "320", "after": "300"}]
    stage = JudgeCandidates(system="crossaug", verifier=model, max_length=64)
    judged = stage.batch([{**row, "candidates": [new]}])[0]
    assert isinstance(judged, Reject)
    assert judged.outputs["candidates"][0]["status"]["reason"].endswith(CUT.format(tokens[0] - 1))


@pytest.mark.parametrize(
    ("task", "row", "candidate"),
    [
        (
            "verification",
            {"claim": "It is 330 metres (1,083 ft) tall.", "evidence": [{"title": "", "text": "Old."}], "label": SUPPORTS},
            {"claim": "It is 290 metres (1,083 ft) tall.", "label": SUPPORTS, "change": "claim"},
        ),
        (
            "classification",
            {"text": "A 330 metres (1,083 ft) walk.", "label": "a"},
            {"text": "A 290 metres (1,083 ft) walk.", "label": "b"},
        ),
    ],
)
def test_one_side_of_a_quantity_in_two_units_is_no_counterfactual(
    task: str, row: dict[str, Any], candidate: dict[str, Any]
) -> None:
    field = "claim" if "claim" in row else "text"
    edit = {
        "field": field,
        "piece": -1,
        "start": row[field].index("330"),
        "end": row[field].index("330") + 3,
        "before": "330",
        "after": "290",
    }
    new = {"change": "text", **candidate, "edits": [edit], "scores": [], "status": None}
    given = {**row, "id": "1", "group_id": "1", "corpus": "own", "split": "train", "candidates": [new]}
    judged = JudgeCandidates(system="llm", task=task).batch([given])[0]
    assert isinstance(judged, Reject)
    assert "290 metres (1,083 ft)" in judged.outputs["candidates"][0]["status"]["reason"]
