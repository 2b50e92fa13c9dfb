"""The remote engine against a server that misbehaves: nothing paid is lost or repeated, nothing wrong is taken for an answer."""

from __future__ import annotations

import asyncio
import json
import pickle
import re
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bad_server
import pytest
from bad_server import Behave, Reply, Start, body, claim, say, starter

from hfcf.engines.base import Usage, usage
from hfcf.engines.remote import client
from hfcf.engines.remote import engine as remote
from hfcf.engines.remote.endpoint import EndpointSettings, Limiter, RemoteError, Stopped
from hfcf.engines.remote.engine import Remote

SCHEMA = json.dumps({"type": "object", "properties": {"claim": {"type": "string"}}, "required": ["claim"]})
KEY = "sk-secret-0123456789"
MISTRAL = "too large for model with 32768 maximum context length"
TOO_LONG = (
    "'max_tokens' or 'max_completion_tokens' is too large: 512. This model's maximum context length is 2048 tokens, not 2412",
    "`inputs` must have less than 1024 tokens. Given: 2000",
    "Could not finish the message because max_tokens or model output limit was reached.",
)


@pytest.fixture(autouse=True)
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    with starter(monkeypatch) as begin:
        yield begin


def asks(*texts: str) -> list[list[dict[str, str]]]:
    return [[{"role": "user", "content": text}] for text in texts]


def echo(_: int, asked: dict[str, Any]) -> Reply:
    return claim(asked["messages"][-1]["content"].upper())


def engine(**settings: Any) -> Remote:
    return Remote(**{"model": "m", "schema": SCHEMA, **settings})


def used() -> Usage:
    return usage()["Remote"]


def in_order(*replies: Reply) -> Behave:
    return lambda number, _: replies[min(number, len(replies) - 1)]


# --- the plain case


def test_answers_come_in_the_order_of_the_requests_and_equal_ones_are_asked_once(start: Start) -> None:
    server = start(lambda n, asked: bad_server.slow(0.02 * (5 - n % 5), echo(n, asked)))
    found = engine().run(asks(*"abcdefgh", "a", "c"))
    assert [one["answer"]["claim"] for one in found] == [*"ABCDEFGH", "A", "C"]
    assert len(server.asked) == 8


def test_what_is_sent(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_LLM_KEY", KEY)
    server = start(echo)
    engine(model="big", max_tokens=7, temperature=0.5, seed=3).run(asks("a"))
    assert server.paths == ["/v1/chat/completions"]
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    schema = {"name": "answer", "schema": json.loads(SCHEMA), "strict": True}
    assert server.asked == [
        {
            "model": "big", "messages": asks("a")[0], "max_tokens": 7, "temperature": 0.5, "seed": 3,
            "response_format": {"type": "json_schema", "json_schema": schema},
        }
    ]  # fmt: skip


def test_without_a_key_none_is_sent_not_even_the_hubs(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {
        "HF_TOKEN": "hf_of_the_user", "OPENAI_API_KEY": "sk-of-the-user", "OPENAI_ADMIN_KEY": "sk-admin",
        "OPENAI_ORG_ID": "org-user", "OPENAI_PROJECT_ID": "proj-user",
        "OPENAI_CUSTOM_HEADERS": "Authorization: Bearer hf_of_the_user\nX-Mine: sk-mine",
    }  # fmt: skip
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    server = start(echo)
    engine(temperature=None).run(asks("a"))
    assert "Authorization" not in server.headers[0]
    assert "temperature" not in server.asked[0]
    monkeypatch.setenv("HFCF_LLM_KEY", KEY)
    engine().run(asks("b"))
    assert server.headers[1]["Authorization"] == f"Bearer {KEY}"
    for headers in server.headers:
        names = {name.lower() for name in headers} - {"authorization"}
        assert names == {"host", "content-type", "content-length", "accept", "accept-encoding", "connection", "user-agent"}
        assert not re.search("of.the.user|admin|org-user|proj-user|mine", str(headers))


@pytest.mark.parametrize(("given", "path"), [("", "/v1/chat/completions"), ("/openai/", "/openai/chat/completions")])
def test_the_address_may_end_as_providers_write_it(start: Start, monkeypatch: pytest.MonkeyPatch, given: str, path: str) -> None:
    server = start(echo)
    monkeypatch.setenv("HFCF_LLM_URL", server.url.removesuffix("/v1") + given)
    engine().run(asks("a"))
    assert server.paths == [path]


def test_it_works_where_an_event_loop_runs(start: Start) -> None:
    start(echo)

    async def notebook() -> list[dict[str, Any]]:
        return engine().run(asks("a"))

    assert asyncio.run(notebook()) == [{"answer": {"claim": "A"}}]


def test_requests_run_side_by_side_but_no_more_than_allowed(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_LLM_CONCURRENCY", "4")
    server = start(lambda n, asked: bad_server.slow(0.05, echo(n, asked)))
    began = time.monotonic()
    engine().run(asks(*(f"r{i}" for i in range(24))))
    assert server.most_at_once == 4
    assert time.monotonic() - began < 24 * 0.05


# --- answers of no use


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (say("I'd rather not."), "is no JSON object"),
        (say(None), "is empty"),
        (say('{"claim": "Rome is'), "breaks off"),
        (say('{"claim": "Rome', finish="length"), "is cut off at 512 tokens"),
        (say('{"claim": "whole"}', finish="length"), "is cut off at 512 tokens"),
        (say('{"claim": 3}'), "the answer.claim is no string"),
        (say('{"text": "b"}'), "the answer lacks 'claim'"),
        (say('{"claim": NaN}'), "broken"),
        (say("{" * 3000), "broken"),
    ],
)
def test_an_answer_of_no_use_is_asked_for_again_in_another_way(start: Start, bad: Reply, why: str) -> None:
    server = start(in_order(bad, claim("good")))
    assert engine().run(asks("a")) == [{"answer": {"claim": "good"}}]
    first, second = server.asked
    assert (first["seed"], second["seed"]) == (13, 14)
    assert second["messages"][-1]["content"].startswith("a\n\nAttempt 2: your last answer ")
    assert why in second["messages"][-1]["content"]
    assert (used().calls, used().attempts) == (1, 2)


def test_after_the_last_attempt_the_request_has_an_error_and_the_others_have_answers(start: Start) -> None:
    server = start(lambda n, asked: say("no") if asked["messages"][0]["content"].startswith("b") else echo(n, asked))
    first, second, third = engine(attempts=2).run(asks("a", "b", "c"))
    assert (first, third) == ({"answer": {"claim": "A"}}, {"answer": {"claim": "C"}})
    assert second == {"error": "2 attempts and no valid answer: the last one is no JSON object"}
    assert len(server.asked) == 4
    assert engine(attempts=2).run(asks("b")) == [second]
    assert len(server.asked) == 4
    engine(attempts=3).run(asks("b"))  # one more attempt, not three more
    assert len(server.asked) == 5


def test_fences_and_thoughts_around_the_json_do_no_harm(start: Start) -> None:
    start(in_order(say('<think>{"claim": "no"}</think>Here:\n```json\n{"claim": "yes"}\n```\nBye {')))
    assert engine().run(asks("a")) == [{"answer": {"claim": "yes"}}]


@pytest.mark.parametrize(
    "text", ['{"claim": "draft"} so </think> {"claim": "yes"}', '<think>a</think> {"claim": "no"} </think>{"claim": "yes"}']
)
def test_a_draft_in_a_thought_is_no_answer(start: Start, text: str) -> None:
    start(in_order(say(text)))
    assert engine().run(asks("a")) == [{"answer": {"claim": "yes"}}]


def test_a_thought_that_does_not_end_is_no_answer(start: Start) -> None:
    start(in_order(say('<think>{"claim": "draft"}')))
    assert "is a thought without an answer" in engine().run(asks("a"))[0]["error"]


def test_half_a_surrogate_pair_does_not_end_the_run(start: Start) -> None:
    start(in_order(say('{"claim": "\ud800"}')))
    assert engine().run(asks("a"))[0]["error"].endswith("holds half of a surrogate pair, which is no text")
    start(in_order(say("\ud800 {")))
    assert "error" in engine().run(asks("b"))[0]
    whole = {"model": "\ud800", "choices": [{"message": {"content": '{"claim": "C"}'}, "finish_reason": "\ud800"}]}
    start(in_order(body(whole)))
    assert engine().run(asks("c")) == [{"answer": {"claim": "C"}}]


# --- faults that pass


@pytest.mark.parametrize(
    "fault",
    [
        body({"error": "slow down"}, 429), body({"error": "slow down"}, 429, Retry_After="0"), body("oops", 500),
        body("<html>Bad gateway</html>", 502), body("busy", 503), body("<html>Hello</html>"), body({"error": {"code": 1}}),
        body({"choices": []}), bad_server.hang_up, bad_server.break_off, body("[" * 100_000),
        body('{"choices": [{"message": {"content": "{}"}}], "usage": {"prompt_tokens": Infinity}}'),
    ],
)  # fmt: skip
def test_a_fault_that_passes_is_waited_for(start: Start, fault: Reply) -> None:
    server = start(in_order(fault, fault, claim("good")))
    assert engine().run(asks("a")) == [{"answer": {"claim": "good"}}]
    assert [asked["seed"] for asked in server.asked] == [13, 13, 13]  # the same question
    assert (used().calls, used().attempts, used().tokens) == (1, 3, 110)


@pytest.mark.parametrize("silence", [bad_server.slow(3, claim("late")), bad_server.trickle])
def test_a_server_that_hangs_is_given_up_in_time(start: Start, monkeypatch: pytest.MonkeyPatch, silence: Reply) -> None:
    monkeypatch.setenv("HFCF_LLM_TIMEOUT", "0.2")
    start(in_order(silence, claim("good")))
    began = time.monotonic()
    assert engine().run(asks("a")) == [{"answer": {"claim": "good"}}]
    assert time.monotonic() - began < 2


def test_retry_after_is_obeyed_by_all_threads(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_LLM_CONCURRENCY", "2")
    server = start(lambda n, asked: body("wait", 429, Retry_After="1") if n == 0 else bad_server.slow(0.5, echo(n, asked)))
    engine().run(asks(*"abcdef"))
    # The other thread's first request may have been under way; after it nobody asks for a second.
    later = [when for when in server.times if when > server.times[0] + 0.2]
    assert len(later) >= 5
    assert min(later) - server.times[0] >= 0.95


def test_back_off_grows_and_differs(start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.1)
    caplog.set_level("INFO", "openai")
    for text in "ab":
        server = start(in_order(body("oops", 500), body("oops", 500), claim("good")))
        engine().run(asks(text))
        waited = [b - a for a, b in zip(server.times, server.times[1:], strict=False)]
        delays = back_offs(caplog)[-2:]
        assert 0.075 <= delays[0] <= 0.1 < 0.15 <= delays[1] <= 0.2
        # A busy machine waits longer, never less (but for the time that the last answer took).
        assert all(real > meant - 0.03 for real, meant in zip(waited, delays, strict=True)), (waited, delays)
    assert len(set(back_offs(caplog))) == 4


def back_offs(caplog: pytest.LogCaptureFixture) -> list[float]:
    """The seconds that the openai client says to wait."""
    return [float(re.findall(r"[\d.]+", record.getMessage())[0]) for record in caplog.records if record.name.startswith("openai")]


def test_a_server_that_restarts_has_a_minute(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_LLM_RETRIES", "6")
    monkeypatch.setattr(client, "LONGEST_BACK_OFF", 15.7)  # of 16 seconds before the fifth repetition
    server = start(in_order(*[body("starting", 503)] * 5, claim("up")))
    assert engine().run(asks("a")) == [{"answer": {"claim": "up"}}]
    assert server.times[5] - server.times[4] >= 0.3


def test_a_longer_pause_than_the_openai_client_allows_is_obeyed(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openai._base_client.MAX_RETRY_AFTER_DELAY", 0.1)
    server = start(in_order(body("wait", 429, Retry_After="1"), claim("good")))
    assert engine().run(asks("a")) == [{"answer": {"claim": "good"}}]
    assert server.times[1] - server.times[0] >= 0.95


def test_a_pause_ends_with_the_run(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_LLM_CONCURRENCY", "2")
    # Both are under way before the pause begins, also on a busy machine.
    replies = {"a": bad_server.slow(1, body("wait", 429, Retry_After="60")), "b": bad_server.slow(1.5, body("no", 401))}
    start(lambda n, asked: replies[asked["messages"][0]["content"]])
    began = time.monotonic()
    with pytest.raises(RemoteError, match="401"):
        engine().run(asks("a", "b"))
    assert time.monotonic() - began < 20


def test_a_quota_that_is_used_up_is_not_waited_for(start: Start) -> None:
    start(in_order(body("tomorrow", 429, Retry_After="86400")))
    with pytest.raises(RemoteError, match="86400 seconds"):
        engine().run(asks("a"))
    start(in_order(body({"error": {"code": "insufficient_quota"}}, 429)))
    with pytest.raises(RemoteError, match="quota is used up"):
        engine().run(asks("a"))


# --- faults that stay


@pytest.mark.parametrize(
    ("status", "cure"), [(401, "HFCF_LLM_KEY"), (403, "HFCF_LLM_KEY"), (404, "HFCF_LLM_URL"), (402, "quota"), (307, "moved")]
)
def test_a_refusal_is_told_at_once_with_the_cure_and_without_the_key(
    start: Start, monkeypatch: pytest.MonkeyPatch, status: int, cure: str
) -> None:
    monkeypatch.setenv("HFCF_LLM_KEY", KEY)
    server = start(in_order(body(f"the key {KEY} or the model is wrong", status)))
    with pytest.raises(RemoteError, match=cure) as caught:
        engine().run(asks("a"))
    assert f"{server.url}/chat/completions refuses the request ({status}): the key *** or the model is wrong" in str(caught.value)
    assert KEY not in str(caught.value)
    assert len(server.asked) == 1


def test_a_server_that_dies_halfway_raises_and_the_next_run_asks_only_for_the_rest(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"r{i}" for i in range(30)]
    dying = start(lambda n, asked: bad_server.slow(0.01, echo(n, asked)), dies_after=12)
    with pytest.raises(RemoteError, match=r"does not answer \(.*after 3 tries.*run again"):
        engine().run(asks(*texts))
    assert len(dying.asked) == 12
    healthy = start(echo)
    found = engine().run(asks(*texts))
    assert [one["answer"]["claim"] for one in found] == [text.upper() for text in texts]
    paid = [asked["messages"][0]["content"] for asked in dying.asked + healthy.asked]
    assert sorted(paid) == sorted(texts)
    # And a third run needs no server at all.
    monkeypatch.delenv("HFCF_LLM_URL")
    assert engine().run(asks(*texts)) == found


def test_answers_under_way_when_another_request_fails_are_kept(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_LLM_CONCURRENCY", "2")
    asked_for = {"a": body("no", 401), "b": bad_server.slow(0.4, claim("B"))}
    server = start(lambda n, asked: bad_server.slow(0.1, asked_for[asked["messages"][0]["content"]]))
    with pytest.raises(RemoteError, match="401"):
        engine().run(asks("a", "b"))
    assert engine().run(asks("b")) == [{"answer": {"claim": "B"}}]
    assert len(server.asked) == 2


def test_a_bad_first_attempt_is_not_paid_twice_when_the_server_dies_before_the_second(start: Start) -> None:
    start(in_order(say("garbage")), dies_after=1)
    with pytest.raises(RemoteError):
        engine().run(asks("a"))
    server = start(echo)
    engine().run(asks("a"))
    assert [asked["seed"] for asked in server.asked] == [14]


def test_after_a_fault_nothing_more_is_sent(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_LLM_CONCURRENCY", "3")
    server = start(lambda n, asked: bad_server.slow(0.1, body("no", 401)) if n == 0 else bad_server.slow(0.5, say("garbage")))
    with pytest.raises(RemoteError, match="401"):
        engine().run(asks(*(f"r{i}" for i in range(50))))
    assert len(server.asked) == 3  # those that were under way: neither other rows nor second attempts


def test_after_an_interrupt_nothing_more_is_sent(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_LLM_CONCURRENCY", "2")
    server = start(lambda n, asked: bad_server.slow(0.3, say("garbage")))

    def interrupted(_: Any) -> Any:
        while len(server.asked) < 2:
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(remote, "as_completed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine().run(asks(*"abcdef"))
    assert len(server.asked) == 2
    assert usage()["Remote"].attempts == 2


def test_an_interrupt_waits_a_second_for_answers_that_do_not_come(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    server = start(lambda n, asked: bad_server.slow(100, claim("late")))

    def interrupted(_: Any) -> Any:
        while not server.asked:
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(remote, "as_completed", interrupted)
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        engine().run(asks("a"))
    assert time.monotonic() - begin < 50  # one second on an idle machine
    server._server.gone.set()
    while [thread for thread in threading.enumerate() if thread.name.startswith("hfcf-llm")]:
        time.sleep(0.01)
    assert engine().run(asks("a")) == [{"answer": {"claim": "late"}}], "what comes late is stored"
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (400, {"error": {"code": "context_length_exceeded", "message": "too many"}}),
        (400, "the request exceeds the available context size"),
        (400, {"error": {"code": "content_filter"}}),
        (413, "Context window exceeded"),
        *((400, {"error": {"message": told, "code": 400}}) for told in TOO_LONG),
        (400, {"object": "error", "message": {"detail": "Prompt contains 40000 tokens and 0 draft tokens, " + MISTRAL}}),
        (422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000", "type": "x"}),
        (400, {"error": {"message": "Invalid prompt: try again", "type": "invalid_request_error", "code": "invalid_prompt"}}),
        (400, [{"error": {"message": "It was flagged as potentially violating our usage policy."}}]),
    ],
)
def test_a_request_that_the_server_refuses_alone_gets_an_error_alone(start: Start, status: int, told: Any) -> None:
    start(lambda n, asked: body(told, status) if asked["messages"][0]["content"] == "long" else echo(n, asked))
    long, short = engine().run(asks("long", "a"))
    assert f"the endpoint refuses it ({status})" in long["error"]
    assert short == {"answer": {"claim": "A"}}


def test_a_limit_that_no_request_keeps_is_told(start: Start) -> None:
    start(in_order(body({"error": {"message": TOO_LONG[0].replace("2048", "512")}}, 400)))
    with pytest.raises(RemoteError, match="512 tokens"):
        engine(max_tokens=512).run(asks("a"))


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("URL", "", "HFCF_LLM_URL is not set"),
        ("URL", "localhost:8000?api-key=sk-secret", "HFCF_LLM_URL must be an http or https"),
        ("URL", "me:sk-secret@localhost:8000", "HFCF_LLM_URL must be an http or https .*'…'"),
        ("URL", "http://me:sk?sk@localhost:8000", "HFCF_LLM_URL must be an http or https"),
        ("URL", "http://localhost:port?api-key=sk-secret", "HFCF_LLM_URL must be an http or https"),
        ("URL", "http://[::1?api-key=sk-secret", "HFCF_LLM_URL must be an http or https"),
        ("URL", "http://me:sk-secret@localhost:8000/v1?api-key=sk-secret", "HFCF_LLM_URL .* before its @"),
        ("KEY", "sk\u2026", "HFCF_LLM_KEY .* character"),
        ("RPM", "many", "HFCF_LLM_RPM must be .* at least 0, got 'many'"),
        ("CONCURRENCY", "0", "HFCF_LLM_CONCURRENCY must be .* at least 1, got '0'"),
        ("TIMEOUT", "nan", "HFCF_LLM_TIMEOUT"),
    ],
)
def test_a_wrong_variable_is_named(start: Start, monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str) -> None:
    start(echo)
    monkeypatch.setenv(f"HFCF_LLM_{name}", value)
    with pytest.raises(RemoteError, match=told) as caught:
        engine().run(asks("a"))
    assert "sk" not in str(caught.value).replace("https", "")


# --- what servers don't take


@pytest.mark.parametrize("status", [400, 422, 501])
def test_a_server_without_response_format_is_asked_without_from_then_on(start: Start, status: int) -> None:
    def behave(n: int, asked: dict[str, Any]) -> Reply:
        return body("unknown field", status) if "response_format" in asked else echo(n, asked)

    server = start(behave)
    engine().run(asks("a"))
    engine().run(asks("b", "c"))
    assert ["response_format" in asked for asked in server.asked] == [True, False, False, False]


def test_names_that_newer_and_older_models_want_are_learned(start: Start) -> None:
    def behave(n: int, asked: dict[str, Any]) -> Reply:
        if "max_tokens" in asked:
            return body("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", 400)
        return body("Unrecognized request argument: seed", 400) if "seed" in asked else echo(n, asked)

    server = start(behave)
    assert engine().run(asks("a")) == [{"answer": {"claim": "A"}}]
    assert server.asked[-1]["max_completion_tokens"] == 512
    assert "response_format" in server.asked[-1]


def test_a_refusal_that_has_other_grounds_teaches_nothing(start: Start) -> None:
    def behave(n: int, asked: dict[str, Any]) -> Reply:
        words = asked["messages"][0]["content"]
        return body("odd", 422) if words == "odd" and ("response_format" in asked or n < 9) else echo(n, asked)

    server = start(behave)
    with pytest.raises(RemoteError):
        engine().run(asks("odd"))
    engine().run(asks("a"))
    assert ["response_format" in asked for asked in server.asked] == [True, False, True]


def test_what_a_server_repeats_of_the_request_is_not_its_complaint(start: Start) -> None:
    def behave(n: int, asked: dict[str, Any]) -> Reply:
        if "response_format" not in asked:
            return echo(n, asked)
        fault = {"type": "extra_forbidden", "loc": ["body", "response_format"], "msg": "Extra inputs", "input": asked}
        return body({"detail": [fault]}, 422)

    server = start(behave)
    engine().run(asks("the seed of the context window", "b"))
    assert all("seed" in asked for asked in server.asked)
    assert "response_format" not in server.asked[-1]


def test_a_400_that_stays_is_told(start: Start) -> None:
    server = start(in_order(body("temperature must be 1", 400)))
    with pytest.raises(RemoteError, match=r"\(400\).*temperature must be 1\..*temperature: null"):
        engine().run(asks("a"))
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ('{"type": "object", "properties": {"a": {"patern": "x"}}}', r"schema\.properties\.a: .*'patern'"),
        ('{"type": "strin"}', r"schema\.type: 'strin'"),
        ('{"type": "array", "items": 3}', r"schema\.items: 3"),
    ],
)
def test_a_schema_that_would_not_be_checked_is_refused(schema: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        engine(schema=schema)


@pytest.mark.parametrize(
    ("schema", "answer", "told"),
    [
        ('{"type": "object", "properties": {"a": {"pattern": "^x"}}}', '{"a": "y"}', "the answer.a: 'y' does not match"),
        ('{"properties": {"a": {"type": ["string", "null"]}}}', '{"a": 3}', "the answer.a: 3 is not of type 'string', 'null'"),
        ('{"additionalProperties": {"type": "string"}}', '{"a": 3}', "the answer.a is no string"),
        ('{"properties": {"a": {"items": {"type": "integer"}}}}', '{"a": [1, 2.0]}', "the answer.a[1] is no integer"),
        ('{"properties": {"a": {"type": "string"}}, "required": ["b"]}', '{"a": 3}', "the answer lacks 'b'"),
        (
            '{"properties": {"a": {"enum": ["x"]}}, "additionalProperties": false}', '{"c": 1, "a": 2}',
            "the answer has 'c', which was not asked for",
        ),
        ('{"properties": {"a": {"minItems": 2}}}', '{"a": [1]}', "the answer.a has fewer than 2 items"),
    ],
)  # fmt: skip
def test_every_keyword_is_checked_and_the_first_fault_named(start: Start, schema: str, answer: str, told: str) -> None:
    start(in_order(say(answer)))
    error = engine(schema=schema, attempts=1).run(asks("a"))[0]["error"]
    assert error.startswith(f"1 attempts and no valid answer: the last one does not fit the schema: {told}")


@pytest.mark.parametrize("name", ["attempts", "max_tokens"])
def test_a_number_that_allows_no_answer_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=rf"{name} must be at least 1, got 0"):
        engine(**{name: 0})


@pytest.mark.parametrize("package", ["jsonschema", "openai"])
def test_a_missing_extra_is_named_with_its_cure(start: Start, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    start(echo)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "hfcf.engines.remote.client")
    with pytest.raises(ImportError, match=r'pip install "\.\[llm\]"'):
        engine(schema=f'{{"title": "{package}"}}').run(asks("a"))


# --- limits, counts, secrets


def test_the_rate_limit_holds_over_runs(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "WINDOW", 0.5)
    monkeypatch.setenv("HFCF_LLM_RPM", "5")
    server = start(echo)
    for part in (asks(*"abcd"), asks(*"efgh"), asks(*"ijkl")):
        engine().run(part)
    times = sorted(server.times)
    assert len(times) == 12
    gaps = [b - a for a, b in zip(times, times[5:], strict=False)]
    assert min(gaps) >= 0.3, gaps  # as the server sees them, which is later than they were sent


def test_the_token_limit_counts_what_answers_took() -> None:
    limiter, stop = Limiter(tokens=100, window=0.4), threading.Event()
    began = time.monotonic()
    entry = limiter.enter(1000, stop)  # alone, for the estimate is above the limit
    limiter.correct(entry, 30)
    limiter.enter(60, stop)
    assert time.monotonic() - began < 0.2
    limiter.enter(60, stop)
    assert time.monotonic() - began >= 0.4
    stop.set()
    with pytest.raises(Stopped):
        limiter.enter(1000, stop)


def test_a_refused_request_takes_no_tokens_of_the_limit(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_LLM_TPM", "600")
    monkeypatch.setenv("HFCF_LLM_CONCURRENCY", "1")

    def behave(n: int, asked: dict[str, Any]) -> Reply:
        if asked["messages"][0]["content"] == "long":
            return body("context_length_exceeded", 400)
        return body("what?", 400) if "response_format" in asked else echo(n, asked)

    start(behave)
    began = time.monotonic()
    found = engine().run(asks("long", "a"))  # an estimate that stayed would keep the next out for a minute
    assert time.monotonic() - began < 20
    assert [*found[0], *found[1]] == ["error", "answer"]


def test_requests_attempts_tokens_and_cost_are_counted(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_LLM_PRICE_IN", "2")
    monkeypatch.setenv("HFCF_LLM_PRICE_OUT", "10")
    start(in_order(say("garbage"), body("oops", 500), claim("b")))
    engine().run(asks("a"))
    engine().run(asks("a"))
    told = used()
    assert (told.calls, told.cached, told.attempts, told.tokens, told.written) == (1, 1, 3, 220, 20)
    assert told.cost == pytest.approx((200 * 2 + 20 * 10) / 1e6)
    assert told.seconds > 0


def test_raw_answers_are_kept_good_and_bad(start: Start, cache: Path) -> None:
    start(in_order(say("garbage"), say('{"claim": "b"}', completion=4)))
    engine().run(asks("a"))
    with sqlite3.connect(cache / "requests.sqlite") as file:
        kept = [json.loads(answer) for (answer,) in file.execute("SELECT answer FROM requests")]
    file.close()
    assert sorted(kept, key=lambda raw: raw["attempt"]) == [
        {
            "text": "garbage", "finish": "stop", "model": "served-1", "usage": {"prompt": 100, "completion": 10},
            "structured": True, "attempt": 1,
        },
        {
            "text": '{"claim": "b"}', "finish": "stop", "model": "served-1", "usage": {"prompt": 100, "completion": 4},
            "structured": True, "attempt": 2,
        },
    ]  # fmt: skip


@pytest.mark.parametrize("changed", [{"model": "n"}, {"temperature": 0.7}, {"max_tokens": 9}, {"seed": 1}, {"schema": "{}"}])
def test_what_changes_answers_is_asked_anew(start: Start, changed: dict[str, Any]) -> None:
    server = start(echo)
    engine().run(asks("a"))
    engine(**changed).run(asks("a"))
    assert len(server.asked) == 2


def test_the_key_stays_out_of_everything(
    start: Start, monkeypatch: pytest.MonkeyPatch, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HFCF_LLM_KEY", KEY)
    server = start(in_order(body(f"slow down, {KEY}", 429), claim("b")))
    with caplog.at_level("DEBUG"):
        asked = engine()
        asked.run(asks("a"))
    assert server.headers[0]["Authorization"].endswith(KEY)
    assert "slow down, ***" in caplog.text
    assert KEY not in caplog.text
    assert KEY.encode() not in pickle.dumps(asked)
    assert KEY not in asked._head()
    assert KEY not in repr(EndpointSettings.from_environment())
    for file in cache.rglob("requests.sqlite*"):
        assert KEY.encode() not in file.read_bytes()


def test_an_answer_that_echoes_the_key_is_told_without_it(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HFCF_LLM_KEY", KEY)
    # At its beginning, and where it is cut.
    start(lambda n, asked: body({"echo": "x" * (0, 150, 255)[n], "authorization": f"Bearer {KEY}"}))
    with pytest.raises(RemoteError, match="does not answer with a chat completion") as caught:
        engine().run(asks("a"))
    for told in (caplog.text, str(caught.value), str(caught.value.__context__)):
        assert "sk-secret" not in told
    assert caplog.text.count("does not answer with a chat completion") == 2


def test_secrets_of_the_address_stay_out_of_everything(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = start(in_order(body(f"slow down, {KEY}", 429), claim("b"), body(f"no {KEY}", 401)))
    monkeypatch.setenv("HFCF_LLM_URL", f"{server.url}?api-key={KEY}&v=1&sig=a%2Bb")
    with caplog.at_level("DEBUG"):
        engine().run(asks("a"))
        with pytest.raises(RemoteError) as caught:
            engine().run(asks("b"))
    assert server.paths == [f"/v1/chat/completions?api-key={KEY}&v=1&sig=a%2Bb"] * 3
    for told in (caplog.text, str(caught.value), repr(EndpointSettings.from_environment())):
        assert KEY not in told
        assert server.url in told


def test_without_the_request_cache_it_asks_every_time(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_REQUEST_CACHE", "off")
    server = start(echo)
    assert engine().run(asks("a")) == engine().run(asks("a"))
    assert len(server.asked) == 2
    monkeypatch.setenv("HFCF_REQUEST_CACHE", "paid")  # as a dry run sets it
    assert engine().run(asks("a")) == engine().run(asks("a"))
    assert len(server.asked) == 3
