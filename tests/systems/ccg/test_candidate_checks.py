"""The last check of CCG's candidates: an indicator that had no part in them says the relation, and the sentence stays fluent."""

from __future__ import annotations

from typing import Any

import pytest
import tiny_relation
from datasets import Dataset

import hfcf
from hfcf.core.artifacts import read_artifact
from hfcf.core.model import Model
from hfcf.core.stage import StageError
from hfcf.core.task import get_task
from hfcf.engines.parser import Parser
from hfcf.engines.perplexity import Perplexity
from hfcf.engines.relation_classifier import RelationClassifier
from hfcf.systems.ccg import indicator as indicators
from hfcf.systems.ccg.candidate_checks import CheckGrammar, CheckRelation
from hfcf.systems.ccg.system import CCG
from hfcf.tasks.relation import candidate, token_edits
from hfcf.training.trainer import Hyperparameters

pytestmark = pytest.mark.usefixtures("no_request_cache")

EGGS = "the [eggs] were moved into {buckets} ."


def row(*terms: str, label: str = "to", new: str = "of") -> dict[str, Any]:
    """A row with a candidate for each term."""
    source = tiny_relation.row(EGGS, label, status=None)
    return {**source, "candidates": [candidate(source, new, token_edits(source["tokens"], [3, 4], term)) for term in terms]}


def say(monkeypatch: pytest.MonkeyPatch, answers: dict[str, dict[str, float] | None]) -> list[list[str]]:
    """The indicator answers a sentence by the word in it; returned are the words that it is asked for, batch by batch."""
    asked: list[list[str]] = []

    def run(self: RelationClassifier, requests: list[Any]) -> list[Any]:
        words = [next(word for word in tokens if word in answers) for tokens, *_ in requests]
        asked.append(words)
        return [answers[word] for word in words]

    monkeypatch.setattr(RelationClassifier, "run", run)
    return asked


def reasons(checked: dict[str, Any]) -> list[str | None]:
    return [(new["status"] or {}).get("reason") for new in checked["candidates"]]


def test_a_relation_that_is_not_said_is_a_verdict_on_the_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"sunk": {"of": 0.9, "to": 0.1}, "lost": {"of": 0.4, "to": 0.6}, "lay": {"of": 0.55, "to": 0.45}, "long": None}
    say(monkeypatch, {**answers, "on": {"to": 1.0}})
    check = CheckRelation(consistency=True, indicator=Model("i"), min_probability=0.6)
    checked = check(row("sunk", "lost", "lay", "long", "on"))
    assert reasons(checked) == [
        None,
        "the indicator says to",
        "the indicator's probability of the relation is below 0.6",
        "longer than the indicator reads",
        "the indicator does not know of",
    ]
    assert checked["status"] is None
    assert checked["candidates"][0]["scores"] == [{"name": "indicator: of", "value": 0.9}]
    assert all(new["status"]["stage"] == "check_relation" for new in checked["candidates"][1:])
    # Where none is left the row is rejected.
    alone = check(row("lost"))
    assert alone["status"]["reason"] == "no candidate is left of 1: the indicator says to (1)"


def test_candidates_that_are_decided_are_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = say(monkeypatch, {"sunk": {"of": 0.9}, "lost": {"of": 0.9}})
    source = row("sunk", "lost")
    verdict = {"accepted": False, "stage": "edit_relation", "reason": "why"}
    source["candidates"][0] = {**source["candidates"][0], "status": verdict}
    assert reasons(CheckRelation(consistency=True, indicator=Model("i"))(source)) == ["why", None]
    assert asked == [["lost"]]


def test_without_models_nothing_is_checked_but_where_one_is_required() -> None:
    source = row("sunk")
    assert CheckRelation()(source) == {"candidates": source["candidates"], "status": None}
    assert CheckRelation()(row()) == {"candidates": [], "status": None}
    with pytest.raises(StageError, match=r"check_relation .*not fitted.*system\.fit"):
        CheckRelation(consistency=True)(source)
    with pytest.raises(ValueError, match=r"min_probability.*1\.5"):
        CheckRelation(min_probability=1.5)


def test_a_sentence_that_lost_its_fluency_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def run(self: Perplexity, requests: list[str]) -> list[float | None]:
        asked.extend(requests)
        return [{"moved": 100.0, "sunk": 110.0, "lost": 200.0, "long": None}[text.split()[3]] for text in requests]

    monkeypatch.setattr(Perplexity, "run", run)
    checked = CheckRelation(language_model=Model("lm"), max_loss=2)(row("sunk in", "lost in", "long in"))
    assert reasons(checked) == [
        None,
        "less fluent than its source by more than max_loss, 2",
        "longer than the language model reads",
    ]
    assert checked["candidates"][0]["scores"] == [{"name": "loss of mean fluency", "value": 0.6672}]  # log 1.1, for each of 7 words
    assert "the eggs were sunk in buckets ." in asked
    assert "the eggs were moved into buckets ." in asked


def test_of_a_rejected_candidate_the_language_model_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, {"sunk": {"to": 0.9, "of": 0.1}})
    monkeypatch.setattr(Perplexity, "run", lambda self, requests: pytest.fail("asked") if requests else [])
    check = CheckRelation(consistency=True, indicator=Model("i"), language_model=Model("lm"), max_loss=2)
    assert reasons(check(row("sunk"))) == ["the indicator says to"]


def rows(number: int, copies: int = 1) -> Dataset:
    """Rows of different sentences, each so many times."""
    made = [
        {
            **tiny_relation.row(f"{EGGS} {i}", "to" if i % 2 else "of"),
            "corpus": "made",
            "split": "train",
            "id": name,
            "group_id": name,
        }
        for i in range(number)
        for name in (f"{i}" if copy == 0 else f"{i}:{copy}" for copy in range(copies))
    ]
    return Dataset.from_list(made, features=get_task("relation").features)


def test_the_judges_have_seen_neither_the_row_nor_had_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[tuple[list[str], int]] = []

    def train(part: Any, hp: Hyperparameters, labels: Any) -> str:
        trained.append(([row["id"] for row in part], hp.seed))
        return f"digest {len(trained)}"

    monkeypatch.setattr(indicators, "_train", train)
    monkeypatch.setattr(indicators, "stored_model", lambda digest: Model(f"llm:{digest}"))
    ccg = CCG(seed=7, folds=2, judge_folds=3)
    finders, judges = (
        read_artifact(stage.fit(rows(24)).fitted or "", "") for stage in (ccg.identify_causal_terms, ccg.check_relation)
    )
    assert [seed for _, seed in trained] == [7, 7, 8, 8, 8]
    assert set(finders["indicators"]).isdisjoint(judges["indicators"])
    parts = [set(ids) for ids, _ in trained[2:]]
    assert all(row_id not in parts[fold] for row_id, fold in judges["folds"].items())
    assert len(judges["folds"]) == 24
    assert any(
        (finders["folds"][judge] == finders["folds"]["0"]) != (judges["folds"][judge] == judges["folds"]["0"])
        for judge in judges["folds"]
    )
    # Copies of a sentence are in one fold.
    folds = read_artifact(ccg.check_relation.fit(rows(12, copies=2)).fitted or "", "")["folds"]
    assert len(folds) == 24
    assert all(fold == folds[row_id.partition(":")[0]] for row_id, fold in folds.items())
    # An indicator of one's own finds the terms; the judges are trained all the same.
    own = CCG(indicator=Model("mine"), judge_folds=2)
    assert own.identify_causal_terms.fit(rows(6)).fitted is own.check_relation.indicator is None
    assert own.check_relation.fit(rows(6)).fitted


def test_the_papers_preset_has_no_such_check() -> None:
    paper = CCG.preset("paper")
    assert (paper.judge_folds, paper.language_model, paper.check_relation.fit_inputs) == (0, None, ())
    with pytest.raises(ValueError, match=r"judge_folds.*1"):
        paper.replace(judge_folds=1)
    with pytest.raises(ValueError, match=r"max_loss.*language_model.*0"):
        paper.replace(language_model=Model("lm"))
    with pytest.raises(StageError, match=r"set judge_folds=0"):
        CCG(indicator=Model("mine"), judge_folds=2).fit(rows(1))
    with pytest.raises(StageError, match=r"check_relation .*not fitted"):
        hfcf.CCG(judge_folds=2).check_relation(row("sunk"))


def tag(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The tagger knows these words; returned are the sentences that it reads."""
    known = {"were": "VBD", "moved": "VBN", "lie": "VBP", "sunk": "VBN", "the": "DT", "a": "DT", "eggs": "NNS", "buckets": "NNS"}
    read: list[list[str]] = []

    def run(self: Parser, requests: list[list[str]]) -> list[dict[str, list[str]]]:
        read.extend(requests)
        return [{"tags": [known.get(token, "IN") for token in tokens]} for tokens in requests]

    monkeypatch.setattr(Parser, "run", run)
    return read


def test_a_term_that_does_not_fit_into_the_sentence_is_a_verdict_on_the_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    read = tag(monkeypatch)
    check = CheckGrammar(tagger=Parser(backend="spacy", model=Model("offline:spacy")))
    checked = check(row("sunk in", "lie in", "sunk in a the", "in the"))
    assert reasons(checked) == [
        None,
        "the sentence has another number of finite verbs than its source",
        "a determiner has no noun",
        None,
    ]
    assert checked["candidates"][1]["status"]["stage"] == "check_grammar"
    assert read[0] == ["the", "eggs", "were", "moved", "into", "buckets", "."]
    assert read[1] == ["the", "eggs", "were", "sunk", "in", "buckets", "."]
    alone = check(row("lie in"))
    assert alone["status"]["reason"].startswith("no candidate is left of 1: the sentence has another number of finite verbs")


def test_what_is_decided_is_not_tagged_and_without_a_tagger_nothing_is(monkeypatch: pytest.MonkeyPatch) -> None:
    read = tag(monkeypatch)
    source = row("lie in", "sunk in")
    source["candidates"][0] = {**source["candidates"][0], "status": {"accepted": False, "stage": "edit_relation", "reason": "why"}}
    assert reasons(CheckGrammar(tagger=Parser())(source)) == ["why", None]
    assert len(read) == 2
    assert CheckGrammar()(row("lie in"))["status"] is None
    assert CheckGrammar(tagger=Parser())(row()) == {"candidates": [], "status": None}
    assert CCG.preset("paper").check_grammar.tagger is None
    assert CCG(tagger={"backend": "spacy", "model": "offline:spacy"}).check_grammar.tagger == Parser(
        backend="spacy", model=Model("offline:spacy")
    )
