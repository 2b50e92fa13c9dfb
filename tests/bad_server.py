"""A small chat-completions server of our own that answers, fails and dies as it is told, and counts."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import pytest

from hfcf.engines.base import usage

Reply = Callable[["Handler"], None]
Behave = Callable[[int, dict[str, Any]], Reply]
Start = Callable[..., "BadServer"]


def say(text: str | None, finish: str = "stop", prompt: int = 100, completion: int = 10) -> Reply:
    """A chat completion with this text."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return body({"object": "chat.completion", "model": "served-1", "choices": [choice], "usage": usage})


def claim(text: str) -> Reply:
    """An answer that is one claim."""
    return say(json.dumps({"claim": text}))


def edit(**words: str) -> Reply:
    """An answer that puts other words in the place of words of a text."""
    return say(json.dumps({"edits": [{"old": old, "new": new} for old, new in words.items()]}))


def body(value: Any, status: int = 200) -> Reply:
    """Any status and body, as JSON unless it is text; what may be sent again may be so at once."""
    content = (value if isinstance(value, str) else json.dumps(value)).encode()

    def reply(handler: Handler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Type", "text/plain" if isinstance(value, str) else "application/json")
        handler.send_header("Content-Length", str(len(content)))
        handler.send_header("retry-after-ms", "5")
        handler.end_headers()
        handler.wfile.write(content)

    return reply


def hang_up(handler: Handler) -> None:
    """Close the connection without a word."""
    handler.close_connection = True


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body are sent apart, and the second one would wait 40 ms
    server: _Server

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            self.server.owner.answer(self, asked)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, *_: Any) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, owner: BadServer) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.owner = owner


class BadServer:
    """A server in a thread.

    Args:
        behave: from the number of the request (0, 1, …) and its body to what it gets.
        dies_after: from this request on it hangs up on everybody and takes no more connections.
    """

    def __init__(self, behave: Behave, dies_after: int | None = None) -> None:
        self._behave, self._dies_after = behave, dies_after
        self._lock = threading.Lock()
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []

    def __enter__(self) -> Self:
        self._server = _Server(self)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, handler: Handler, asked: dict[str, Any]) -> None:
        with self._lock:
            number = len(self.asked)
            if self._dies_after is not None and number >= self._dies_after:
                self._server.socket.close()
                return hang_up(handler)
            self.asked.append(asked)
            self.headers.append(dict(handler.headers))
            self.paths.append(handler.path)
        return self._behave(number, asked)(handler)


@contextmanager
def starter(monkeypatch: pytest.MonkeyPatch, **settings: str) -> Iterator[Start]:
    """`start(behave)` starts a server and names it in an environment with little patience and these other settings."""
    for name in [name for name in os.environ if name.startswith("HFCF_LLM_")]:
        monkeypatch.delenv(name)
    for name, value in {"TIMEOUT": "5", "RETRIES": "1", **settings}.items():
        monkeypatch.setenv(f"HFCF_LLM_{name}", value)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    usage().clear()
    with ExitStack() as stack:

        def start(behave: Behave, **how: Any) -> BadServer:
            server = stack.enter_context(BadServer(behave, **how))
            monkeypatch.setenv("HFCF_LLM_URL", server.url)
            return server

        yield start
