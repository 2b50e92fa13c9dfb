"""RACE's writers that keep the source's claim, what their words prove, and the one value that `claimed` edits."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from bad_server import Reply, Start, say, starter
from tagged_rows import row

from hfcf.core.artifacts import save_artifact
from hfcf.core.model import Model
from hfcf.engines.classifier import Classifier
from hfcf.engines.corrector import Corrector
from hfcf.engines.generator import Generator
from hfcf.prompts.edits import SAMPLED
from hfcf.systems.race.check_label import CheckClaim, CheckEdit
from hfcf.systems.race.edit import EditEvidence
from hfcf.systems.race.follow import excludes, follow_edits
from hfcf.systems.race.generate_claim import GenerateClaim, _kept_clauses, choose_masks, unsupported
from hfcf.tasks.verification import NOT_ENOUGH_INFO, REFUTES, SUPPORTS


def edit(before: str, after: str, text: str) -> dict[str, Any]:
    start = text.index(before)
    return {"field": "evidence", "piece": 0, "start": start, "end": start + len(before), "before": before, "after": after}


def edited(claim: str, text: str, *changes: tuple[str, str]) -> dict[str, Any]:
    """A SUPPORTS row whose evidence was edited."""
    edits = [edit(before, after, text) for before, after in changes]
    new = text
    for before, after in changes:
        new = new.replace(before, after)
    return {
        "id": "r", "claim": claim, "label": SUPPORTS, "evidence": [{"title": "", "text": text}], "entities": [], "edits": edits,
        "edited_evidence": [{"title": "", "text": new}], "edited_entities": [], "sentence_rationales": [{"piece": 0, "score": 1.0}],
        "candidates": [],
    }  # fmt: skip


# --- follow


@pytest.mark.parametrize(
    ("claim", "changes", "expected"),
    [
        ("Ann was born in 1859.", [("1859", "1864")], "Ann was born in 1864."),
        ("Ann met Bob.", [("Ann", "Bob"), ("Bob", "Ann")], "Bob met Ann."),
        ("It is an 8 storey house.", [("8", "12")], "It is a 12 storey house."),
        ("A nine storey house in Oslo.", [("nine", "eight"), ("Oslo", "Rome")], "An eight storey house in Rome."),
        ("Ann was born in 1859.", [("2 May 1859", "3 June 1864")], "Ann was born in 1864."),
        ("It has 18,590 men.", [("590", "600")], None),  # a part of a number is none
        ("It has one man.", [("one", "two")], None),  # the noun would have to change
        ("It has 2 men.", [("2", "1")], None),
        ("It is old.", [("1859", "1864")], None),
    ],
)
def test_a_claim_follows_the_edits_of_its_evidence(claim: str, changes: Any, expected: str | None) -> None:
    text = " ".join(before for before, _ in changes)
    assert follow_edits(edited(claim, text, *changes)) == expected


@pytest.mark.parametrize(
    ("claim", "text", "changes", "expected"),
    [
        ("Ann was born in 1859.", "Ann (1859) sang.", [("1859", "1864")], True),
        ("It has 51 rooms.", "The inn has 51 rooms.", [("51", "13")], True),
        ("Ann was born in 1859.", "Ann was born on 2 May 1859.", [("2 May 1859", "3 June 1864")], True),
        ("Ann and Bob sang.", "Ann and Bob sang.", [("Ann", "Bob"), ("Bob", "Ann")], False),  # names that change places
        ("It opened in 1859.", "It opened in 1859, as the 1859 map shows.", [("1859,", "1864,")], False),  # E′ has it still
        ("It opened in 1859, not 1864.", "It opened in 1859.", [("1859", "1864")], False),  # the claim has it already
        ("Ann sang.", "Ann sang in 1859.", [("1859", "1864")], False),  # the claim does not name it
    ],
)
def test_words_exclude_a_claim_where_a_value_of_it_was_replaced(claim: str, text: str, changes: Any, expected: bool) -> None:
    assert excludes(edited(claim, text, *changes)) is expected


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Any:
    def fix(label: str) -> None:
        others = dict.fromkeys((SUPPORTS, REFUTES, NOT_ENOUGH_INFO), 0.1)
        monkeypatch.setattr(Classifier, "run", lambda self, asked: [{**others, label: 0.8} for _ in asked])

    return fix


def test_a_changed_value_that_the_verifier_misses_counts_on_request(says: Any) -> None:
    says(SUPPORTS)
    given = edited("It has 51 rooms.", "The inn has 51 rooms.", ("51", "13"))
    assert "under-edited" in CheckEdit(verifier=Model("v")).batch([given])[0].reason  # type: ignore[union-attr]
    made = CheckEdit(verifier=Model("v"), by_words=True).batch([given])[0]["candidates"]  # type: ignore[index]
    assert made[0]["status"]["accepted"]
    assert [score["name"] for score in made[0]["scores"]] == ["verifier: SUPPORTS", "words: REFUTES"]
    claim = {"claim": "It has 13 rooms.", "change": "claim", "scores": [{"name": "writer: follow", "value": 1.0}], "status": None}
    other = {**claim, "claim": "It has 14 rooms.", "scores": [{"name": "writer: generate", "value": 1.0}]}
    judged = CheckClaim(verifier=Model("v"), by_words=True).batch([{**given, "candidates": [claim, other]}])[0]["candidates"]  # type: ignore[index]
    assert [one["status"] is None for one in judged] == [True, False]
    assert judged[0]["label"] == REFUTES


def test_words_do_not_overrule_a_verifier_that_finds_nothing_decided(says: Any) -> None:
    says(NOT_ENOUGH_INFO)
    given = edited("It has 51 rooms.", "The inn has 51 rooms.", ("51", "13"))
    assert "over-edited" in CheckEdit(verifier=Model("v"), by_words=True).batch([given])[0].reason  # type: ignore[union-attr]


# --- correct


def words(claim: str, spans: Sequence[tuple[int, int]]) -> list[str]:
    return [claim[start:end] for start, end in spans]


def test_masks_are_the_words_that_the_evidence_lacks() -> None:
    claim = "Ann and her dogs arrived in Rome in late 1859."
    told = ["Ann's dog arrives in Oslo in 1859."]
    assert words(claim, unsupported(claim, told)) == ["Rome", "late"]
    names = [(claim.index(name), claim.index(name) + len(name)) for name in ("Ann", "Rome", "1859")]
    ways = [words(claim, way) for way in choose_masks(claim, told, names)]
    assert ways[:4] == [["Rome", "late"], ["in Rome in late 1859"], ["Rome"], ["late"]]
    assert ["Ann"] in ways
    assert len({tuple(way) for way in ways}) == len(ways) <= 8
    assert choose_masks("Ann sang.", ["Ann sang."], []) == []


def stub(monkeypatch: pytest.MonkeyPatch, filled: str) -> list[Any]:
    """Let the generator write nothing new and the corrector fill every mask alike; return what the corrector is asked."""
    asked: list[Any] = []

    def run(self: Corrector, requests: list[Any]) -> list[Any]:
        asked.extend(requests)
        return [
            [{"text": f"{claim[: spans[0][0]]}{filled}{claim[spans[-1][1] :]}", "score": -0.1, "finished": True}]
            for claim, spans, _ in requests
        ]

    monkeypatch.setattr(Corrector, "run", run)
    monkeypatch.setattr(
        Generator, "run", lambda self, requests: [[{"text": "It is.", "score": -1.0, "finished": True}] for _ in requests]
    )
    return asked


def test_each_candidate_names_its_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = stub(monkeypatch, "Oslo")
    refuted = {**edited("Ann died in Rome.", "Ann died in Oslo."), "label": REFUTES}
    followed = edited("Ann died in 1859.", "Ann died in 1859.", ("1859", "1864"))
    stage = GenerateClaim(generator=Model("g"), corrector=Model("c"), follow=True, constrain=False, max_unsupported=0)
    answers = stage.batch([refuted, followed])
    found = [[(c["claim"], c["scores"][0]["name"]) for c in answer["candidates"]] for answer in answers]  # type: ignore[index]
    assert ("Ann died in Oslo.", "writer: correct") in found[0]
    assert ("It is.", "writer: generate") in found[0]
    assert found[1] == [("Ann died in 1864.", "writer: follow")]  # no other writer is asked
    assert {claim for claim, _, _ in asked} == {"Ann died in Rome."}
    plain = GenerateClaim(generator=Model("g"), constrain=False).batch([followed])[0]["candidates"]  # type: ignore[index]
    assert [[score["name"] for score in c["scores"]] for c in plain] == [["log-probability"]]


def test_a_correction_that_says_more_than_the_evidence_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    stub(monkeypatch, "sunny Oslo")
    refuted = {**edited("Ann died in Rome.", "Ann died in Oslo."), "label": REFUTES}
    for most, accepted in ((0, False), (1, True)):
        stage = GenerateClaim(generator=Model("g"), corrector=Model("c"), constrain=False, max_unsupported=most)
        found = {c["claim"]: c["status"] for c in stage.batch([refuted])[0]["candidates"]}  # type: ignore[index]
        status = found["Ann died in sunny Oslo."]
        assert (status is None) == accepted
        assert accepted or status["reason"] == "says what the evidence does not mention: sunny"


# --- editing one value that the claim names

TABLE = {
    "GPE": {"": ["Oslo", "Rome"]},
    "DATE": {"Year": ["1994", "2006"]},
    "NUM": {"N": ["12", "40", "50", "60"], "Word": ["seven"]},
}


def test_one_value_of_the_claim_is_edited() -> None:
    given = row(
        [("", "It opened in 1975 with 30 rooms, 4 halls and 5 men.")], {"1975": "DATE", "30": "NUM", "4": "NUM", "5": "NUM"}
    )
    given["claim"] = "It opened in 1975 with 30 rooms."
    fitted = save_artifact({"entities": TABLE})
    alone = EditEvidence(claimed=True).with_fitted(fitted)(given)
    assert len(alone["edits"]) == 1
    assert alone["edits"][0]["before"] in {"1975", "30"}
    assert len(EditEvidence().with_fitted(fitted)(given)["edits"]) == 4


def test_a_value_is_edited_whose_change_must_flip_the_label() -> None:
    given = row([("", "It has 5 men, of 5 May, since 1975.")], {"5": "NUM", "5 May": "DATE", "1975": "DATE"})
    given["claim"] = "It has 5 men since 1975."
    fitted = save_artifact({"entities": TABLE})
    for seed in range(10):  # with other men E′ would still have a 5
        found = EditEvidence(claimed=True, seed=seed).with_fitted(fitted)(given)
        assert [edit["before"] for edit in found["edits"]] == ["1975"]


def test_where_the_claim_names_no_value_the_causal_ones_are_edited() -> None:
    given = row([("", "It opened in 1975 with 30 rooms.")], {"1975": "DATE", "30": "NUM"})
    found = EditEvidence(claimed=True).with_fitted(save_artifact({"entities": TABLE}))(given)
    assert {edit["before"] for edit in found["edits"]} == {"1975", "30"}


# --- a language model, which corrects the source's claim


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    with starter(monkeypatch, CONCURRENCY="1") as begin:
        yield begin


ANN = edited("Ann was born in 1859 in old Oslo.", "Ann was born in 1859, in an old house.", ("1859", "1864"))


def test_a_clause_counts_where_the_evidence_was_edited_or_the_claim_meets_it() -> None:
    assert _kept_clauses(ANN, [["Ann", "Bo"], ["1864"], ["Bergen"], ["1859"]]) == [["Ann", "Bo"], ["1864"], ["1859"]]
    assert _kept_clauses({**ANN, "edits": []}, [["Ann"], ["1864"]]) == [["Ann"]]


def reply(claim: str) -> Reply:
    return say(json.dumps({"claim": claim}))


def ask(**changes: Any) -> Any:
    entities = [{"piece": 0, "text": text, "field": "evidence", "start": 0, "end": 0, "type": "DATE"} for text in ("1864",)]
    stage = GenerateClaim(generator=Model("llm:m"), num_candidates=1)
    (result,) = stage.batch([{**ANN, "edited_entities": entities, **changes}])
    outputs = result if isinstance(result, dict) else result.outputs
    return [candidate for candidate in outputs["candidates"] if candidate["change"] == "claim"]


def test_the_source_s_claim_is_corrected_by_the_evidence(start: Start) -> None:
    server = start(lambda *_: reply("Ann was born in 1864."))
    (claim,) = ask()
    assert (claim["claim"], claim["status"]) == ("Ann was born in 1864.", None)
    task, *turns, question = server.asked[0]["messages"]
    assert "Correct it" in task["content"]
    assert len(turns) == 8
    assert question["content"].startswith("Evidence:\n- Ann was born in 1864")
    assert question["content"].endswith("\nWrong claim: Ann was born in 1859 in old Oslo.")


def test_all_pieces_of_the_evidence_are_read(start: Start) -> None:
    server = start(lambda *_: reply("Ann was born in 1864."))
    ask(edited_evidence=[*ANN["edited_evidence"], {"title": "Oslo", "text": "Oslo is old."}])
    assert "- Oslo: Oslo is old." in server.asked[0]["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        ("Ann was born in an old house.", "entity"),
        ("Ann was was born in 1864.", "was was"),
        ("The Danube, in 1864, rises in the Black Forest.", "example"),
    ],
)
def test_a_claim_of_no_use_is_rejected(start: Start, answer: str, word: str) -> None:
    start(lambda *_: reply(answer))
    (claim,) = ask()
    assert word in claim["status"]["reason"]


def test_further_answers_are_drawn_and_count_once(start: Start) -> None:
    texts = ["Ann was born in 1864.", "Ann was born in 1864.", "Ann was born in 1864 in Oslo."]
    server = start(lambda number, _: reply(texts[number]))
    stage = GenerateClaim(generator=Model("llm:m"), num_candidates=3, constrain=False)
    (result,) = stage.batch([{**ANN, "edited_entities": []}])
    assert [one["claim"] for one in result["candidates"]] == [texts[0], texts[2]]  # type: ignore[index]
    assert [asked.get("temperature") for asked in server.asked][1:] == [SAMPLED, SAMPLED]


def test_what_a_language_model_leaves_is_not_held_against_it(start: Start) -> None:
    start(lambda *_: reply("Ann was born in 1864 in old Oslo."))
    stage = GenerateClaim(generator=Model("llm:m"), num_candidates=1, max_unsupported=0, constrain=False)
    (result,) = stage.batch([{**ANN, "edited_entities": []}])
    assert result["candidates"][-1]["status"] is None  # type: ignore[index]
