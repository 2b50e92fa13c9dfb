"""Every stage of every system on nasty rows: no crash, no lost or shifted row, a reason for every rejection."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import nasty
import near_misses
import pytest
import scripted_llm
import speakers
import tiny_systems
from bad_server import Reply, say, starter
from datasets import Dataset, Features, List
from hypothesis import given
from offline_models import installed
from stages import check_reason, map_stages

import hfcf
from hfcf.core.mapping import map_stage
from hfcf.core.model import Model
from hfcf.core.passage_store import Passages
from hfcf.core.schema import TEXT
from hfcf.core.stage import Stage
from hfcf.core.system import System
from hfcf.core.task import get_task
from hfcf.systems import system_class, systems
from hfcf.systems.checkwhy.chat import ChatStage
from hfcf.systems.checkwhy.system import CheckWhy

pytestmark = [
    pytest.mark.usefixtures("no_request_cache"),
    pytest.mark.skipif(not (installed("spacy") and installed("wordnet")), reason="the offline models are not installed"),
]
ROWS = 6
"""Rows of an example."""
CASES = [(name, task) for name in systems() for task in system_class(name).works_on() if name != "checkwhy"]
every_system = pytest.mark.parametrize(("name", "task"), CASES)
slow = pytest.mark.slow


def subclasses(cls: type[Stage]) -> set[type[Stage]]:
    """Every class below one, but for those of tests and examples."""
    below = set(cls.__subclasses__())
    return below.union(*map(subclasses, below))


def test_every_stage_of_the_package_is_fuzzed() -> None:
    for module in walk_packages(hfcf.__path__, "hfcf."):
        import_module(module.name)
    chains = {part.stage for cls in map(system_class, systems()) for part in cls.parts.values()}
    bases = {ChatStage}
    own = {cls for cls in subclasses(Stage) if cls.__module__.startswith("hfcf.")}
    # An example in a docstring that has run here, too, defines classes that its module does not have.
    assert {cls for cls in own if hasattr(import_module(cls.__module__), cls.__name__)} == chains | bases


def answer_rightly(asked: dict[str, Any]) -> dict[str, Any] | None:
    """An answer to go on with: a relation for another word of the sentence, a claim by the rules of `scripted_llm`."""
    question = asked["messages"][-1]["content"]
    if "\nOther labels: " in question:
        said = dict(line.split(": ", 1) for line in question.splitlines() if ": " in line)
        word = next((one for one in said["Text"].split() if one.isalpha()), "")
        return {"label": said["Other labels"].split(", ")[0], "edits": [{"old": word, "new": "Zembla"}]} if word else None
    if "\nFirst entity: " not in question:
        try:
            answer = scripted_llm.answer_to(asked)
            return {"opposite": f"Nobody says that {answer['opposite']}"} if "opposite" in answer else answer
        except (LookupError, StopIteration):  # another question, or nothing to make an answer of
            return None
    said = dict(line.split(": ", 1) for line in question.splitlines() if ": " in line)
    words, taken = said["Sentence"].split(), f"{said['First entity']} {said['Second entity']}".split()
    word = next((one for one in words if words.count(one) == 1 and one.isalpha() and one not in taken), "")
    return {"old": word, "relation": "cause-effect", "new": "Zembla"}


def answer_nastily(_: int, asked: dict[str, Any]) -> Reply:
    """An answer of the form that is asked for, which the prompt decides: with nasty texts in it, or right, to go on with."""
    prompt = json.dumps(asked["messages"])
    draws = iter(hashlib.sha256(prompt.encode()).digest() * 50)
    if next(draws) % 16 and (right := answer_rightly(asked)):
        return say(json.dumps(right))
    said = [word for word in asked["messages"][-1]["content"].split() if len(word) > 2] or ["Rome"]

    def fill(schema: Mapping[str, Any]) -> Any:
        kind, draw = schema.get("type"), next(draws)
        if "enum" in schema:
            return schema["enum"][draw % len(schema["enum"])]
        if kind == "object":
            return {name: fill(one) for name, one in schema["properties"].items()}
        if kind == "array":
            return [fill(schema["items"]) for _ in range(max(schema.get("minItems", 0), min(draw % 3, schema.get("maxItems", 2))))]
        if kind == "integer":
            return draw % 4
        return nasty.NASTY[draw * 7 % len(nasty.NASTY)] if draw % 3 else " ".join(said[-draw % len(said) :][:6])

    return say(json.dumps(fill(asked["response_format"]["json_schema"]["schema"])))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with starter(monkeypatch) as start:
        start(answer_nastily)
        yield


def with_judges(system: System, tiny_model: Callable[[str], str]) -> System:
    """The system with a tiny model in every place where one may judge or choose."""
    judges: dict[str, Any] = {"verifier": Model(tiny_model("rbert" if system.task == "relation" else "verifier"))}
    if system.task == "classification":
        own = {"SUPPORTS": "positive", "REFUTES": "negative", "NOT ENOUGH INFO": "neutral"}
        judges = {"verifier": Model(tiny_model("verifier"), labels=own)}
    if system.name == "ccg":
        judges |= {"editor": Model(tiny_model("t5")), "use_editor": True, "closed": True, "max_loss": 50.0}
        judges |= {"language_model": Model(tiny_model("gpt2")), "tagger": {"backend": "spacy", "model": "offline:spacy"}}
    return system.replace(**judges)


@pytest.fixture
def system(
    name: str, task: str, tiny_model: Callable[[str], str], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> System:
    speakers.plant(monkeypatch, tiny_model)
    if task == "qa":
        passages = Passages.of(near_misses.collection())
        of_name: dict[str, Any] = {"answerer": "answers", "answers": 5}
        if name == "rgf":
            of_name = {"reader": "reader", "n_best": 3, "k": 6, "passages": passages}
        elif name == "rand_agen_qgen":
            of_name |= {"passages": passages, "min_words": 8}
        of_name |= {"generator": "questions", "readers": ["deaf 1000", "deaf 2", "deaf 3"], "agree": 2}
        return system_class(name)(questions=5, num_beams=5, max_new_tokens=4, **of_name)
    if name == "race":
        made: System = request.getfixturevalue("race")
    elif name == "llm":
        request.getfixturevalue("server")
        made = system_class("llm")(model="m", task=task)
    else:
        made = tiny_systems.make(name, task, tiny_model)
    made = with_judges(made, tiny_model)
    return made.fit(tiny_systems.rows(task))


def check(system: System, rows: list[dict[str, Any]], done: list[dict[str, Any]], counted: Counter[str]) -> None:
    task = get_task(system.task)
    assert [row["id"] for row in done] == [row["id"] for row in rows]
    for row, result in zip(rows, done, strict=True):
        status = result["status"]
        assert {name: result[name] for name in row} == row
        assert status["accepted"] is bool(result["counterfactuals"]), row
        refused = [one["status"] for one in result.get("candidates") or () if not one["status"] or not one["status"]["accepted"]]
        for verdict in refused if status["accepted"] else [status, *(one for one in refused if one)]:
            check_reason(list(system.parts), verdict)
        for made in result["counterfactuals"] or ():
            counted["accepted"] += 1
            assert (made["source_id"], made["system"], made["group_id"]) == (row["id"], system.name, row["group_id"])
            if system.task != "structures":
                assert task.validate(made) is None, made
                reverted = task.revert_edits(made, made["edits"])
                assert reverted == {name: row[name] for name in reverted}
    counted["rows"] += len(rows)


def fuzz(system: System, strategy: Any, examples: int, counted: Counter[str]) -> None:
    @nasty.run_examples(examples)
    @given(nasty.rows(strategy, ROWS))
    def run(rows: list[dict[str, Any]]) -> None:
        check(system, rows, map_stages(system.stages, rows, counted), counted)

    run()


@every_system
def test_nasty_rows_go_through_every_stage(name: str, task: str, system: System, counted: Counter[str]) -> None:
    fuzz(system, nasty.OF_TASK[task], 3, counted)


@slow
@pytest.mark.timeout(3600)
@every_system
def test_many_nasty_rows_go_through_every_stage(name: str, task: str, system: System, counted: Counter[str]) -> None:
    fuzz(system, nasty.OF_TASK[task], 70, counted)
    # Nobody has revised a nasty text.
    reached = ["take_revisions"] if name == "revisions" else system.parts
    assert all(counted[stage] for stage in reached)


def spoiled(row: dict[str, Any], text: str) -> list[dict[str, Any]]:
    """Put a text into each place of a row."""
    if "claim" in row:
        evidence = [{"title": text, "text": f"{row['claim']} {text}"}]
        changes: list[dict[str, Any]] = [{"claim": text}, {"claim": f"{text} {row['claim']}"}, {"evidence": evidence}]
    elif "text" in row:
        changes = [{"text": text}, {"text": f"{row['text']} {text}"}]
    elif "tokens" in row:
        changes = [{"tokens": [*row["tokens"], text]}, {"tokens": [*row["tokens"], *text.split()]}]
    else:
        changes = [{"question": text}, {"context": f"{row['context']} {text}"}, {"answers": {"text": [text], "answer_start": []}}]
    return [{**row, **change, "name": ""} for change in changes]


@slow
@pytest.mark.timeout(3600)
@every_system
def test_each_nasty_text_goes_through_every_stage(name: str, task: str, system: System, counted: Counter[str]) -> None:
    """Each of the corpus in each place of a good row, mapped over a dataset."""
    good = nasty.GOOD_ROWS[task]
    stored = [text.encode("utf-8", "backslashreplace").decode() for text in nasty.NASTY]
    rows = nasty.numbered([row for text in stored for row in spoiled(good, text)])
    ds = Dataset.from_list(rows, features=get_task(task).features)
    done = hfcf.prepare(ds, system)
    for stage in system.stages:
        done = map_stage(done, stage, {})
    check(system, list(ds), list(done), counted)
    lost = {row["source_id"] for row in hfcf.rejected(done, system=name) if row["level"] == "row"}
    assert lost | set(hfcf.expand(done)["source_id"]) == set(ds["id"])


@slow
@pytest.mark.timeout(3600)
def test_nasty_pairs_go_through_the_stages_of_checkwhy(server: None, counted: Counter[str]) -> None:
    system = CheckWhy.preset("offline", distractors=(2, 3))
    pairs = Dataset.from_list(
        scripted_llm.rows(), features=Features({**get_task("structures").features, "explanation": List(TEXT)})
    )
    fuzz(system.fit(pairs), nasty.pairs, 30, counted)
    assert all(counted[stage] for stage in system.parts)
