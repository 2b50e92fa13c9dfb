"""The LLM baseline: what it asks, what it takes, and what it makes of answers of no use."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bad_server import Reply, Start, body, edit, say, starter
from datasets import Dataset
from jsonschema import validate

import hfcf
from hfcf import cli, prompts
from hfcf.cli.tables import print_estimate, print_plan
from hfcf.core.model import Model
from hfcf.core.task import get_task
from hfcf.engines.llm.endpoint import RemoteError
from hfcf.pipeline import run as runner
from hfcf.pipeline.dry_run import _estimate, dry_run, estimate_requests
from hfcf.prompts.counterfactuals import TEXT_PLACES, RelationPrompt, TextPrompt
from hfcf.systems.baselines.llm import LLM, RewriteLlm

EVIDENCE = [{"title": "Rome", "text": "Rome was founded in 753 BC."}]


@pytest.fixture(autouse=True)
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    with starter(monkeypatch) as begin:
        yield begin


def rows(*labels: str, texts: tuple[str, ...] = ()) -> Dataset:
    return Dataset.from_list(
        [
            {
                "id": str(i), "claim": texts[i] if texts else f"Rome is {i} years old.", "evidence": EVIDENCE, "label": label,
                "group_id": str(i), "corpus": "c", "split": "train",
            }
            for i, label in enumerate(labels)
        ]
    )  # fmt: skip


def told(asked: dict[str, Any]) -> str:
    """The claim that a prompt asks about."""
    return asked["messages"][-1]["content"].rpartition("Claim: ")[2].split("\n")[0]


def negate(_: int, asked: dict[str, Any]) -> Reply:
    verb = next(word for word in ("is", "was", "are", "in", "the", told(asked).split()[0]) if word in told(asked).split())
    return edit(**{verb: "never"})


def test_claims_with_the_opposite_label_and_the_sources_evidence(start: Start) -> None:
    server = start(negate)
    done = LLM(model="m")(rows("SUPPORTS", "REFUTES", "NOT ENOUGH INFO"))
    made = hfcf.expand(done)
    assert made["label"] == ["REFUTES", "SUPPORTS"]
    assert made["claim"] == ["Rome never 0 years old.", "Rome never 1 years old."]
    assert made["evidence"][:] == [EVIDENCE, EVIDENCE]
    assert made["id"] == ["0:llm:claim", "1:llm:claim"]
    assert set(made["system"]) == {"llm"}
    assert [row["reason"] for row in hfcf.rejected(done) if row["level"] == "row"] == ["the label NOT ENOUGH INFO has no opposite"]
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (edit(old=""), "'' should be non-empty"),
        (edit(old=" \n "), "nothing in the place of 'old'"),
        (edit(old="OLD"), "changes nothing"),
        (edit(Oslo="Bonn"), "'Oslo' is not one of"),
        (edit(old="aged", years="months", Rome="Bonn", **{"is": "was"}), "3"),
        (edit(**dict.fromkeys(("old", "years", "Rome"), "one or " * 10 + "none")), "the new claim has 65 words; the limit is 60"),
        (edit(old="old old"), "twice in a row: old old"),
        (edit(Rome="Bonn\x07"), "control character"),
        (say('{"edits": [{"old": "Rome", "new": "\ud800"}]}'), "surrogate"),
        (edit(**{"Rome is 0 years old": "1234"}), "no letters"),
        (say("No."), "the language model: 3 attempts and no valid answer: the last one is no JSON object"),
        (body("context_length_exceeded", 400), "the language model: the endpoint refuses it (400): context_length_exceeded"),
    ],
)
def test_answers_of_no_use_reject_their_row_alone(start: Start, answer: Reply, reason: str) -> None:
    start(lambda n, asked: answer if told(asked) == "Rome is 0 years old." else negate(n, asked))
    done = LLM(model="m", max_words=60)(rows("SUPPORTS", "SUPPORTS"))
    assert done["status"][0]["accepted"] is False
    assert reason in done["status"][0]["reason"]
    assert done["status"][0]["stage"] == "rewrite_llm"
    assert done["status"][1]["accepted"] is True


NEGATED = {
    "Paris is not in Germany.": "Paris is not in Canada.",
    "Anna has never won a medal in Rome.": "Anna has never won a medal in Oslo.",
    "Neither Bob nor Carl lives in Oslo.": "Neither Bob nor Carl lives in Rome.",
    "The song was released without Sony.": "The song was released without Decca.",
    "The tower is 330 metres (1,083 ft) tall.": "The tower is 290 metres (1,083 ft) tall.",
}
TURNED = {
    "Paris is not in Germany.": "Paris is in Germany.",
    "Anna has never won a medal in Rome.": "Anna has won a medal in Rome.",
    "Neither Bob nor Carl lives in Oslo.": "Both Bob and Carl live in Oslo.",
    "The song was released without Sony.": "The song was released by Sony.",
    "The tower is 330 metres (1,083 ft) tall.": "The tower is 290 metres (951 ft) tall.",
}


def turn(source: str, target: str) -> Reply:
    """One edit that makes a claim another one: the words between what both begin and end with."""
    old, new = source.rstrip(".").split(), target.rstrip(".").split()
    start = next(i for i, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1])
    end = next(i for i in range(len(old)) if i >= min(len(old), len(new)) - start or old[-1 - i] != new[-1 - i])
    end -= len(new) - end == start  # nothing would be put in
    return edit(**{" ".join(old[start : len(old) - end]): " ".join(new[start : len(new) - end])})


@pytest.mark.parametrize(("answers", "accepted"), [(NEGATED, False), (TURNED, True)])
def test_what_turns_no_label_is_refused_whoever_writes_it(start: Start, answers: dict[str, str], accepted: bool) -> None:
    start(lambda _, asked: turn(told(asked), answers[told(asked)]))
    ds = rows(*["SUPPORTS"] * len(answers), texts=tuple(answers))
    done = LLM(model="m")(ds)
    assert [status["accepted"] for status in done["status"]] == [accepted] * len(answers)
    assert {status["stage"] for status in done["status"]} == {"judge_candidates"}
    assert hfcf.expand(done)["claim"][:] == (list(answers.values()) if accepted else [])


def test_another_value_under_a_negation_may_make_a_false_claim_true(start: Start) -> None:
    start(lambda _, asked: turn(told(asked), "Paris is not in Canada."))
    done = LLM(model="m")(rows("REFUTES", texts=("Paris is not in France.",)))
    assert hfcf.expand(done)["label"][:] == ["SUPPORTS"]


def test_a_dead_server_rejects_no_row_and_a_second_run_finishes(start: Start) -> None:
    ds = rows(*["SUPPORTS", "REFUTES"] * 10)
    dying = start(negate, dies_after=7)
    with pytest.raises(RemoteError, match="Run again"):
        LLM(model="m")(ds)
    healthy = start(negate)
    assert all(status["accepted"] for status in LLM(model="m")(ds)["status"])
    assert len(dying.asked) + len(healthy.asked) == 20


@pytest.mark.usefixtures("no_request_cache")
def test_every_way_of_mapping_gives_the_same_rows(start: Start) -> None:
    server = start(negate)
    system = LLM(model="m")
    ds = hfcf.prepare(rows(*["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"] * 3), system)
    stage, features = system.rewrite_llm, hfcf.prepare(ds, system).features
    batched = ds.map(stage, batched=True, batch_size=4, features=features)
    assert list(ds.map(stage, features=features)) == list(batched)
    assert list(ds.to_iterable_dataset().map(stage, batched=True, batch_size=4, features=features)) == list(batched)
    assert list(ds.map(stage, batched=True, num_proc=2, features=features)) == list(batched)
    assert len(server.asked) == 4 * 6  # workers ask for themselves


def test_a_verifier_checks_when_one_is_given(start: Start, tiny_model: Callable[[str], str]) -> None:
    start(negate)
    done = LLM(model="m", verifier=tiny_model("verifier"))(rows(*["SUPPORTS", "REFUTES"] * 4))
    judged = [new for row in done for new in row["candidates"]]
    assert all(candidate["scores"][0]["name"].startswith("verifier: ") for candidate in judged)
    assert {row["status"]["stage"] for row in done} == {"judge_candidates"}


def test_shots_are_shown_and_the_papers_is_the_first(start: Start) -> None:
    server = start(negate)
    for shots in (0, 1, 4):
        LLM(model="m", shots=shots)(rows("SUPPORTS"), load_from_cache_file=False)
    assert [len(asked["messages"]) for asked in server.asked] == [2, 4, 10]
    assert ["Bettany Hughes" in asked["messages"][1]["content"] for asked in server.asked] == [False, True, True]
    for asked in server.asked:
        assert asked["messages"][-1]["content"].endswith("Label: SUPPORTS\nLabel of the new claim: REFUTES")
    for shots, reason in ((-1, "shots must be at least 0, got -1"), (5, "between 0 and 4")):
        with pytest.raises(ValueError, match=reason):
            LLM(model="m", shots=shots)


def test_the_prompt_is_part_of_the_stages_state(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = RewriteLlm(model="m")
    before = pickle.dumps(stage)
    assert pickle.loads(before) == stage
    monkeypatch.setattr(prompts, "_FORMAT", "other words")
    assert pickle.dumps(stage) != before


def test_settings_are_those_of_the_paper_unless_told() -> None:
    settings = LLM.preset("paper").settings
    assert settings.pop("model")["name"] == "llm:gpt-3.5-turbo-0301"
    assert LLM(model="llm:gpt-4o-mini") == LLM(model="gpt-4o-mini")
    assert settings == {
        "seed": 13, "strict": False, "unique": False, "task": "verification",
        "relations": None, "temperature": 0.0, "max_tokens": 256, "max_words": 100,
        "shots": 1, "attempts": 3, "prompts": None, "verifier": None, "judges": [], "certainty": 0.0, "max_length": 130,
        "min_kept": None,
    }  # fmt: skip
    with pytest.raises(ValueError, match=r"llm.*preset 'offline'"):
        LLM.preset("offline")
    assert LLM.preset("paper", verifier="roberta-base").verifier == Model("roberta-base")


@pytest.mark.parametrize("name", ["attempts", "max_tokens", "max_words"])
def test_a_number_that_allows_no_answer_is_refused(name: str) -> None:
    for cls in (LLM, RewriteLlm):
        with pytest.raises(ValueError, match=f"{name}.*0"):
            cls(**{"model": "m", name: 0})  # type: ignore[arg-type]


RECIPE = {
    "corpus": "hover", "data_dir": "recipes:demo", "split": "train", "system": "llm", "preset": "paper", "limit": 6,
    "settings": {"model": "m"},
}  # fmt: skip


def test_what_a_dry_run_paid_for_is_told_and_not_paid_again(
    start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HFCF_LLM_PRICE_IN", "100")
    monkeypatch.setenv("HFCF_LLM_CONCURRENCY", "3")  # as many rows are tried
    server = start(lambda n, asked: say("garbage") if n == 0 else negate(n, asked))
    first = dry_run(RECIPE)["stages"][0]
    assert {name: first[name] for name in ("calls", "tokens", "attempts", "cost")} == {
        "calls": 6, "tokens": 880, "attempts": 8, "cost": pytest.approx(0.08),
    }  # fmt: skip
    print_plan(dry_run(RECIPE))
    assert len(server.asked) == 4
    assert "6 │ –" in " ".join(capsys.readouterr().out.split())  # calls are known, tokens are not
    runner.run(RECIPE, tmp_path / "out")
    assert len(server.asked) == 4 + 3


def test_a_run_says_before_it_starts_how_often_it_will_ask(
    start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HFCF_LLM_CONCURRENCY", "4")
    server = start(negate)
    plans: list[Any] = []

    class Stopped(Exception):
        pass

    def stop(*inputs: Any) -> None:
        plans.append(estimate_requests(*inputs))
        raise Stopped

    for limit in (None, 4):
        with pytest.raises(Stopped):
            runner.run(RECIPE, tmp_path / "out", limit=limit, before=stop)
    plan, short = plans
    assert plan["stages"][0]["requests"] == 6
    assert plan["stages"][0]["request_seconds"] >= 0
    assert len(server.asked) == 4
    assert short is None, "the run is no longer than the estimate"
    stages = [{"stage": "a", "tokens": 9, "requests": 6000, "request_seconds": 1.5}, {"stage": "b", "tokens": None, "requests": 9}]
    print_estimate({**plan, "stages": stages, "seconds": 9000.0})
    said = " ".join(capsys.readouterr().out.split())
    assert "6,000 times, 1.5 s each: about 2 h 30 min" in said
    assert "besides b," in said, "its answers to the first rows are in the cache"
    asked = runner.run(RECIPE, tmp_path / "out", before=lambda *_: plan["asked"])["stages"][0]
    assert len(server.asked) == 6, "the answers of the estimate are not asked for again"
    assert (asked["calls"], asked["cached"], asked["attempts"]) == (6, 4, 6), "they are paid for"


def test_the_plan_shows_attempts_and_cost(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    start(negate)
    print_plan({**dry_run(RECIPE), "examples": []})
    assert "attempts" in capsys.readouterr().out


def test_minutes_and_cost_are_added_up_and_texts_of_different_engines_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    cost = {"cached": 0, "seconds": 90.0, "loading": 30.0, "model_seconds": 60.0}
    asks = {"stage": "rewrite_llm", **_estimate({**cost, "calls": 6, "tokens": 900, "attempts": 7, "cost": 0.5}, 10)}
    tags = {"stage": "tag_entities", **_estimate({**cost, "calls": 30, "cached": 10, "tokens": 3000}, 1)}
    assert (asks["calls"], asks["tokens"], asks["minutes"], asks["attempts"], asks["cost"]) == (60, 9000, 10.0, 70, 5.0)
    assert (tags["calls"], tags["tokens"], tags["seconds"], "cost" in tags) == (40, 4000, pytest.approx(80.0), False)
    print_plan({"rows": 60, "corpus": "mine", "tried": 6, "stages": [tags, asks], "rejected": 0, "examples": []})
    lines = [" ".join(line.replace("│", " ").split()) for line in capsys.readouterr().out.splitlines()]
    assert "rewrite_llm 60 9,000 10.0 70 5.0" in lines
    assert "all 11.3 70 5.0" in lines


def test_a_dead_server_is_one_line_for_the_user(start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HFCF_LLM_URL", raising=False)
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(RECIPE), encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["hfcf", "run", str(file), "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 2
    assert cli.app.pretty_exceptions_show_locals is False


def test_run_json_tells_attempts_tokens_and_cost(start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HFCF_LLM_PRICE_IN", "1")
    monkeypatch.setenv("HFCF_LLM_KEY", "sk-secret-0123456789")
    server = start(lambda n, asked: say("garbage") if n == 0 else negate(n, asked))
    recipe = {
        "corpus": "hover", "data_dir": "recipes:demo", "split": "train", "system": "llm", "preset": "paper", "limit": 4,
        "settings": {"model": "m"},
    }  # fmt: skip
    runner.run(recipe, tmp_path / "out")
    entry = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))["stages"][0]
    assert (entry["stage"], entry["calls"], entry["attempts"], entry["tokens"], entry["written"]) == ("rewrite_llm", 4, 5, 550, 50)
    assert entry["cost"] == pytest.approx(500e-6)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    cells = "<td>rewrite_llm</td>" + "".join(rf'<td class="n">{n}</td>' for n in ("[^<]*", "[^<]*", 4, 0, 550, 5, "0.0005"))
    assert re.search(cells, page)
    assert '<th scope="col" class="n">cost</th>' in page
    assert len(server.asked) == 5
    for file in (tmp_path / "out").rglob("*"):
        assert file.is_dir() or b"sk-secret" not in file.read_bytes(), file


def test_answers_before_an_error_are_not_paid_again(start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HFCF_LLM_PRICE_IN", "1")
    monkeypatch.setenv("HFCF_LLM_CONCURRENCY", "1")
    monkeypatch.setenv("HFCF_LLM_RETRIES", "0")
    start(lambda n, asked: negate(n, asked) if n < 2 else body({}, 401))
    with pytest.raises(RemoteError):
        runner.run(RECIPE, tmp_path / "out")
    start(negate)
    report = runner.run(RECIPE, tmp_path / "out")
    (entry,) = (entry for entry in report["stages"] if entry["stage"] == "rewrite_llm")
    answered = {name: entry[name] for name in ("calls", "cached", "tokens", "written", "attempts")}
    assert answered == {"calls": 4, "cached": 2, "tokens": 440, "written": 40, "attempts": 4}
    assert entry["engines"]["LanguageModel"]["cost"] == entry["cost"] == pytest.approx(400e-6)


# --- relations: which edits become rows


def relation_row(sentence: str, head: str, tail: str, label: str) -> dict[str, Any]:
    tokens = sentence.split()
    spans = {}
    for name, entity in (("head", head.split()), ("tail", tail.split())):
        start = next(i for i in range(len(tokens)) if tokens[i : i + len(entity)] == entity)
        spans[name] = {"start": start, "end": start + len(entity), "type": None}
    return {"tokens": tokens, **spans, "label": label}


SEMEVAL = RelationPrompt(relations=RelationPrompt.default_labels)
ROW = relation_row(
    "The U.S. plant -LRB- a big one -RRB- sent new cars into the port .", "U.S. plant", "port", "Entity-Destination(e1,e2)"
)


def made(row: dict[str, Any], old: str, new: str, relation: str = "entity-origin") -> dict[str, Any]:
    return dict(SEMEVAL.candidate(row, {"old": old, "relation": relation, "new": new}, "rewrite_llm"))


def test_every_worked_example_of_relations_becomes_a_row() -> None:
    for example in prompts.read_prompt("relations")["examples"]:
        order = "(e1,e2)" if example["relation"] in ("entity-destination", "content-container") else "(e2,e1)"
        names = {
            "entity-destination": "Entity-Destination",
            "content-container": "Content-Container",
            "container-content": "Content-Container",
        }
        row = relation_row(example["sentence"], example["head"], example["tail"], names[example["relation"]] + order)
        assert SEMEVAL.values(row)["relation"] == example["relation"]
        (answer,) = example["answers"]
        validate(answer, json.loads(prompts.schema("relations", {**SEMEVAL.limits, **SEMEVAL.row_limits(row)})))
        candidate = dict(SEMEVAL.candidate(row, answer, "rewrite_llm"))
        assert candidate["status"] is None
        assert candidate["text"] == example["sentence"].replace(answer["old"], answer["new"])


def test_an_answer_may_name_words_outside_the_entities_and_another_relation() -> None:
    limits = SEMEVAL.row_limits(ROW)
    assert {"into", "sent new cars", "a big one", "The"} <= set(limits["old"]["enum"])
    assert not {word for span in limits["old"]["enum"] for word in span.split()} & {"U.S.", "plant", "port", "-LRB-"}
    assert "entity-destination" not in limits["relation"]["enum"]
    assert len(limits["relation"]["enum"]) == len(RelationPrompt.default_labels) - 1
    assert SEMEVAL.values(ROW)["sentence"] == "The U.S. plant ( a big one ) sent new cars into the port ."


def test_an_answer_becomes_a_relation_row() -> None:
    candidate = made(ROW, "sent new cars into", "got its (new) cars from")
    assert candidate["status"] is None
    assert candidate["label"] == "Entity-Origin(e1,e2)"
    assert candidate["text"] == "The U.S. plant -LRB- a big one -RRB- got its -LRB- new -RRB- cars from the port ."
    new = get_task("relation").apply_edits(ROW, candidate["edits"])
    assert new["tokens"][new["tail"]["start"] : new["tail"]["end"]] == ["port"]
    assert new["tokens"][new["head"]["start"] : new["head"]["end"]] == ["U.S.", "plant"]


@pytest.mark.parametrize(
    ("old", "new", "fact"),
    [
        ("into", "into", "changes nothing"),
        ("port", "town", "edits words that are not there: 'port'"),
        ("into the", "into the U.S. plant of the", "2 times"),
        ("into", "into into", "twice in a row"),
        ("sent new cars into", "was did at", "two verbs"),
        ("into", "\x07", "control character"),
    ],
)
def test_an_answer_that_is_no_counterfactual_says_why(old: str, new: str, fact: str) -> None:
    candidate = made(ROW, old, new)
    assert candidate["status"]["accepted"] is False
    assert candidate["status"]["stage"] == "rewrite_llm"
    assert fact in candidate["status"]["reason"]


def test_entities_that_overlap_are_not_asked_about() -> None:
    row = relation_row("steel of the ship near steel ship", "steel ship", "ship near", "a-b")
    row["tail"] = {"start": 6, "end": 7, "type": None}
    assert "inside the other" in str(SEMEVAL.find_problem({**row, "label": ROW["label"]}))


# --- texts: which labels and words


def test_a_text_may_get_no_label_that_it_has() -> None:
    prompt = TextPrompt(relations=("bad", "good", "mixed"), max_words=10)
    row = {"text": "It is good.\nI like it.", "label": "good"}
    limits = prompt.row_limits(row)
    assert limits["label"] == {"enum": ["bad", "mixed"]}
    assert limits["edits"]["maxItems"] == TEXT_PLACES
    assert not any("\n" in span for span in limits["edits"]["items"]["properties"]["old"]["enum"])
    answer = {"label": "bad", "edits": [{"old": "good", "new": "poor"}, {"old": "like", "new": "hate"}]}
    candidate = prompt.candidate(row, answer, "s")
    assert (candidate["status"], candidate["label"], candidate["text"]) == (None, "bad", "It is poor.\nI hate it.")
    long = {**answer, "edits": [{"old": "good", "new": "so very " * 9 + "bad"}]}
    assert "the limit is 12" in (prompt.candidate(row, long, "s")["status"] or {})["reason"]
