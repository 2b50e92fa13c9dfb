"""The cards of a run, and their HTML: what a person pasted is text in it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from hfcf.app import cards, choices
from hfcf.app.jobs import Job, Step
from hfcf.app.outcomes import Outcome, outcome, result
from hfcf.app.show import downloads, head, note, show
from hfcf.core.edits import find_edits
from hfcf.core.expand import expand
from hfcf.core.segments import Mark
from hfcf.core.stage import Stage
from hfcf.core.task import get_task
from hfcf.core.weights import Weights
from hfcf.systems.baselines.eda import EDA

EVIL = "<script>alert(1)</script> <img src=x onerror=alert(2)> ${alert(3)} {{ 7 * 7 }} \" ' & \x1b[31m </p></div>"


def row(claim: str, evidence: str = "Rome is the capital of Italy.") -> dict[str, Any]:
    pieces = [{"title": "Rome", "text": evidence}]
    common = {"id": "1", "group_id": "1", "corpus": "own", "split": "train"}
    return {**common, "claim": claim, "evidence": pieces, "label": "SUPPORTS", "status": None}


class Texts(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize(
    ("before", "after"), [("a red box", "a blue box"), ("", "new"), ("old", ""), ("a  b", "a c b"), (EVIL, "x")]
)
def test_runs_hold_both_texts(before: str, after: str) -> None:
    found = cards.runs(before, after)
    for text, hidden in ((before, "in"), (after, "out")):
        shown = "".join(run.text for run in found if run.kind != hidden)
        assert re.sub(r"\s+|�", "", shown) == re.sub(r"[\s\x1b]+", "", text)


def test_marks_are_cut_out_of_what_stays_and_goes() -> None:
    found = cards.runs("eggs in a box", "eggs of a box", [Mark(0, 4, "tail")], [Mark(0, 4, "tail"), Mark(10, 13, "head")])
    assert [(run.kind, run.text, run.mark) for run in found] == [
        ("same", "eggs", "tail"), ("same", " ", ""), ("out", "in", ""), ("same", " ", ""), ("in", "of", ""), ("same", " a ", ""),
        ("same", "box", "head"),
    ]  # fmt: skip


def test_a_text_of_which_little_is_left_is_shown_before_and_after() -> None:
    task = get_task("verification")
    made = cards.texts(task, row("Rome is in Italy."), row("A wholly different sentence stands here now"))
    assert [block.where for block in made] == ["claim, before", "claim, after", "evidence 1"]
    assert {run.kind for run in made[0].runs} <= {"same", "out"}
    assert "".join(run.text for run in made[2].title) == "Rome"


def test_a_stage_marks_the_words_that_it_names() -> None:
    task, source = get_task("verification"), row("Rome is in Italy.")
    names = ("field", "piece", "start", "end", "text", "type")
    spans = [
        ("claim", -1, 0, 4, "Rome", "GPE"),
        ("evidence", 0, 23, 28, "Italy", "GPE"),
        ("evidence.title", 0, 0, 4, "Rome", "GPE"),
    ]
    entities = [dict(zip(names, span, strict=True)) for span in spans]
    places = task.places(source, entities)
    assert places == [span[:4] for span in spans]
    blocks = cards.marked(task, source, places, "found", [one["type"] for one in entities])
    assert [run for run in blocks[1].runs if run.mark] == [("same", "Italy", "found", "GPE")]
    assert blocks[1].title == [("same", "Rome", "found", "GPE")]
    assert task.places(source, [{**entities[0], "text": "Oslo"}]) == [], "a span of an edited text"
    assert task.places(source, ["Rome"]) == []
    relation = {"tokens": ["eggs", "in", "a", "box"], "head": {"start": 0, "end": 1}, "tail": {"start": 3, "end": 4}}
    assert get_task("relation").places(relation, [1, 2]) == [("tokens", -1, 5, 7), ("tokens", -1, 8, 9)]
    assert get_task("relation").places(relation, [4]) == []


def finished(text: str) -> Job:
    """A job whose every text holds a text."""
    task = get_task("verification")
    source = row(text, text)
    edits = find_edits("claim", -1, text, f"{text} new")
    made = {**source, "claim": f"{text} new", "source_id": "1", "system": "x", "change": "claim", "edits": edits}
    card = cards.counterfactual(task, {**made, "scores": [{"name": text, "value": 0.5}]}, text)
    lost = cards.candidate(task, source, {"edits": edits, "change": "claim", "label": text}, stage=text, reason=text)
    stage = Outcome(said=text, marks=text, blocks=cards.texts(task, source, source), cards=[lost], more=2)
    job = Job(steps=[Step(text, "done", outcome=stage)], notes=[text], error=text, begun=True)
    job.result = type("Result", (), {"made": [card], "lost": [(text, [lost])], "reason": text})()  # type: ignore[assignment]
    job.done.set()
    return job


def test_what_was_pasted_is_text_and_nothing_else() -> None:
    clean, hostile = (Texts() for _ in range(2))
    clean.feed("".join(show(finished("Rome is old"))))
    hostile.feed("".join(show(finished(EVIL))))
    assert hostile.tags == clean.tags
    assert hostile.attributes == clean.attributes
    assert hostile.tags.isdisjoint({"script", "img"})
    assert "<script>alert(1)</script>" in hostile.text
    assert "<script>" not in note(EVIL)


def test_the_states_of_a_job_have_words() -> None:
    job = Job()
    assert "Waiting" in show(job)[0]
    job.begun = True
    assert "Loading" in show(job)[0]
    job.plan(["explain"])
    assert "Running 1 of 1" in show(job)[0]
    job.stop.set()
    assert "Stopped" in show(job)[0]
    broken = Job(error="the claim is empty", begun=True)
    broken.done.set()
    assert "the claim is empty" in show(broken)[0]


def test_the_models_to_download_are_listed_before_a_run() -> None:
    task = get_task("verification")
    assert downloads(choices.models("race", "offline", task)) == ""
    table = downloads(choices.models("race", "hub", task))
    assert "The first run downloads" in table
    assert re.search(r"\d (GB|MB)", table)
    assert downloads(choices.models("race", "paper", task)) == "", "it has no verifier yet"
    assert "&lt;b&gt;" in downloads([Weights("<b>", ("verifier",), missing=(("<b>", None),))])


def test_the_style_names_no_address() -> None:
    assert "http" not in head()
    assert "url(" not in head()


def test_outcomes_follow_the_stages_of_a_system() -> None:
    task = get_task("verification")
    system = EDA.preset("paper", task=task.name)
    seen: list[tuple[str, Outcome]] = []
    from datasets import Dataset

    plain = {name: value for name, value in row("Rome is an old city in Italy.").items() if name != "status"}
    ds = Dataset.from_list([plain], features=task.features)
    before = ds[0]

    def watch(stage: Any, step: Any) -> Any:
        nonlocal before
        made = step()
        if isinstance(stage, Stage):
            seen.append((stage.name, outcome(task, stage, before, made[0])))
            before = made[0]
        return made

    made = system(ds, watch=watch)
    assert [name for name, _ in seen] == list(system.parts)
    assert seen[0][1].cards, "the stage that writes shows what it wrote"
    assert not seen[1][1].cards, "a verdict alone is not shown again"
    told = result(task, made, system.name)
    assert len(told.made) == len(expand(made)) > 0
    assert told.made[0].before == told.made[0].after == "SUPPORTS"
