"""Runs in their own thread: one after the other, stopped when a person says so, and their errors as sentences."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest

from hfcf.app import log as app_log
from hfcf.app.forms import example
from hfcf.app.jobs import Desk, Job, run_step
from hfcf.app.run import Request, run
from hfcf.core.task import get_task
from hfcf.engines.base import counted

WAIT = 60


def finish(desk: Desk, work: object, visitor: str = "me") -> Job:
    desk.open(visitor)
    job = desk.start(visitor, work)  # type: ignore[arg-type]
    assert job.done.wait(WAIT)
    return job


def test_a_run_goes_from_the_form_to_counterfactuals() -> None:
    task = get_task("classification")
    request = Request(
        task=task.name, texts=example(task, 0), system="eda", preset="paper", settings={"num_augmentations": 2, "alpha": 0.3}
    )
    job = finish(Desk(), lambda job: run(request, job))
    assert (job.state, job.error) == ("done", "")
    assert [step.state for step in job.steps] == ["done", "done"]
    assert job.result is not None
    assert job.result.made


def test_a_mistake_is_the_librarys_sentence_and_the_traceback_goes_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    task = get_task("classification")
    request = Request(task=task.name, texts={**example(task, 0), "text": ""}, system="eda", preset="paper")
    with caplog.at_level(logging.INFO, "hfcf"):
        job = finish(Desk(), lambda job: run(request, job))
    assert (job.state, job.error) == ("failed", "the text is empty: write it, or choose an example")
    assert any(record.exc_info for record in caplog.records)


def test_a_fault_of_the_program_is_not_shown_but_logged(cache: Path) -> None:
    app_log.to_file()

    def work(job: Job) -> None:
        raise ZeroDivisionError("sk-secret")

    job = finish(Desk(), work)
    assert "ZeroDivisionError" in job.error
    assert str(app_log.path()) in job.error
    assert "sk-secret" not in job.error


def test_a_stopped_run_ends_at_the_next_batch_of_a_model() -> None:
    inside, desk = threading.Event(), Desk()
    reached: list[str] = []

    def batches() -> None:
        inside.set()
        for _ in range(10_000):
            counted()  # as engines do after each batch, and trainings after each step
            threading.Event().wait(0.005)
        reached.append("the end")

    def work(job: Job) -> None:
        run_step(job, "explain", batches)
        reached.append("the next stage")

    desk.open("me")
    job = desk.start("me", work)
    assert inside.wait(WAIT)
    desk.stop("me")
    assert job.state == "stopped", "the page is free at once"
    assert job.done.wait(WAIT)
    assert (job.state, job.steps[0].state, reached) == ("stopped", "left", [])


def test_a_run_that_waits_can_be_stopped_and_the_others_stay() -> None:
    desk, gate, ran = Desk(), threading.Event(), []
    desk.open("first")
    first = desk.start("first", lambda job: gate.wait(WAIT) and None)
    desk.open("second")
    second = desk.start("second", lambda job: ran.append("second"))
    third = desk.open("third")
    desk.start("third", lambda job: ran.append("third"))
    assert second.state == "waiting"
    desk.leave("second")
    gate.set()
    assert third.done.wait(WAIT)
    assert (first.state, second.state, third.state, ran) == ("done", "stopped", "done", ["third"])


def test_the_warnings_of_a_run_are_shown_with_it() -> None:
    def work(job: Job) -> None:
        logging.getLogger("hfcf.core").warning("rows are not in English")

    assert finish(Desk(), work).notes == ["rows are not in English"]
