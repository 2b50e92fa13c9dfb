"""An endpoint that wants to hold a run, fill its memory, or put the user's key into the rows."""

from __future__ import annotations

import gzip
import json
import logging
import resource
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bad_server
import pytest
from bad_server import Reply, Start, body, claim, say, starter

from hfcf.core.redact import hide, hide_secrets
from hfcf.engines.answers import InvalidAnswer, parse_answer, parse_completion
from hfcf.engines.remote.endpoint import RemoteError, is_refused, retry_after
from hfcf.engines.remote.engine import Remote

SCHEMA = json.dumps({"type": "object", "properties": {"claim": {"type": "string"}}, "required": ["claim"]})
ASK = [[{"role": "user", "content": "a"}]]
KEY = "sk-secret/0123456789"


@pytest.fixture(autouse=True)
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    with starter(monkeypatch, TIMEOUT="0.4", RETRIES="1") as begin:
        yield begin


def ask(**settings: Any) -> list[dict[str, Any]]:
    return Remote(model="m", schema=SCHEMA, **settings).run(ASK)


def in_turn(*replies: Reply) -> Any:
    return lambda n, asked: replies[min(n, len(replies) - 1)]


# --- time and size


@pytest.mark.parametrize("hold", [bad_server.trickle, bad_server.slow(5, claim("late"))])
def test_an_endpoint_that_holds_an_exchange_is_left_in_time(start: Start, hold: Reply) -> None:
    start(in_turn(hold, claim("good")))
    began = time.monotonic()
    assert ask() == [{"answer": {"claim": "good"}}]
    assert time.monotonic() - began < 3


def test_one_that_never_answers_ends_the_run_with_a_line(start: Start) -> None:
    start(lambda n, asked: bad_server.trickle)
    began = time.monotonic()
    with pytest.raises(RemoteError, match=r"timed out|in time"):
        ask()
    assert time.monotonic() - began < 4


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (bad_server.flood, "sent more than 4,399,104 bytes"),
        (bad_server.flood_headers, "RemoteProtocolError"),
        (bad_server.bomb("gzip"), "sent more than 4,399,104 bytes"),
        (bad_server.bomb("gzip", "gzip"), "packed its answer as 'gzip, gzip'"),
        (bad_server.bomb("br"), "packed its answer as 'br'"),
    ],
    ids=["body", "headers", "gzip", "gzip twice", "br"],
)
def test_an_answer_without_end_takes_no_memory(start: Start, monkeypatch: pytest.MonkeyPatch, reply: Reply, message: str) -> None:
    monkeypatch.setenv("HFCF_LLM_TIMEOUT", "20")
    server = start(lambda n, asked: reply)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    with pytest.raises(RemoteError, match=message):
        ask()
    assert time.monotonic() - began < 15
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000  # kB
    assert {headers["Accept-Encoding"] for headers in server.headers} == {"identity"}


def test_an_honest_answer_may_be_packed_and_long(start: Start) -> None:
    long = "x" * 3_000_000
    completion = json.dumps({"choices": [{"message": {"content": json.dumps({"claim": long})}, "finish_reason": "stop"}]})
    content = gzip.compress(completion.encode())

    def packed(handler: bad_server.Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Encoding", "gzip")
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    start(lambda n, asked: packed)
    assert ask() == [{"answer": {"claim": long}}]


# --- depth and numbers


@pytest.mark.parametrize("depth", [100, 900, 10_000])
def test_a_deep_answer_is_no_answer(start: Start, depth: int) -> None:
    deep = '{"claim": "c", "more": ' + "[" * depth + "]" * depth + "}"
    with pytest.raises(InvalidAnswer, match=r"deep|broken"):
        parse_answer(deep, SCHEMA)
    start(in_turn(say(deep), body('{"choices": ' + "[" * depth + "]" * depth + "}"), claim("good")))
    assert ask() == [{"answer": {"claim": "good"}}]


def test_numbers_that_no_server_means() -> None:
    for tokens in (10**9 + 1, -1, 10**4000):
        text = '{"choices": [{"message": {"content": "{}"}}], "usage": {"prompt_tokens": ' + str(tokens) + "}}"
        with pytest.raises(ValueError, match="no chat completion"):
            parse_completion(text)
    assert retry_after({"retry-after": "Mon, 01 Jan 99999999999999999999 00:00:00 GMT"}) is None
    assert is_refused(400, "maximum context length is " + "9" * 5000, 10)


# --- the key


def test_an_answer_that_echoes_the_key_is_stored_without_it(
    start: Start, monkeypatch: pytest.MonkeyPatch, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HFCF_LLM_KEY", KEY)
    completion = {
        "choices": [
            {
                "message": {"content": json.dumps({"claim": f"Your key is {KEY}."})}, "finish_reason": f"stop {KEY}",
            }
        ],
        "model": f"served by {KEY}",
    }  # fmt: skip
    start(lambda n, asked: body(completion))
    with caplog.at_level(logging.WARNING):
        assert ask() == [{"answer": {"claim": "Your key is ***."}}]
    assert "repeats one of your keys" in caplog.text
    with sqlite3.connect(cache / "requests.sqlite") as file:
        (stored,) = (answer for (answer,) in file.execute("SELECT answer FROM requests"))
    file.close()
    raw = json.loads(stored)
    assert (raw["finish"], raw["model"]) == ("stop ***", "served by ***")
    assert KEY not in stored
    assert parse_answer(raw["text"], SCHEMA) == {"claim": "Your key is ***."}


@pytest.mark.parametrize("key", ["none", "EMPTY", "password"])
def test_a_key_that_is_a_word_changes_no_answer(start: Start, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("HFCF_LLM_KEY", key)
    start(lambda n, asked: claim(f"There is {key}."))
    assert ask() == [{"answer": {"claim": f"There is {key}."}}]


def test_every_secret_of_the_environment_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_0123456789abcdef")
    monkeypatch.setenv("HFCF_LLM_KEY", "k/ey-0123456789")
    monkeypatch.setenv("HFCF_LLM_URL", "https://host/v1?api-key=q-12345678&v=2")
    text = "hf_0123456789abcdef k/ey-0123456789 k%2Fey-0123456789 q-12345678 http://a:b@c/d v=2"
    assert hide(text) == "*** *** *** *** http://***@c/d v=2"
    assert hide_secrets("http://a:b@c/d") == "http://a:b@c/d"
