"""A small chat-completions server of our own that misbehaves as it is told, and counts."""

from __future__ import annotations

import gzip
import json
import os
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import openai._base_client
import pytest

from hfcf.engines.base import usage
from hfcf.engines.remote import client

Reply = Callable[["Handler"], None]
Behave = Callable[[int, dict[str, Any]], Reply]
Start = Callable[..., "BadServer"]


def say(text: str | None, finish: str = "stop", prompt: int = 100, completion: int = 10) -> Reply:
    """A chat completion with this text."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return body({"object": "chat.completion", "model": "served-1", "choices": [choice], "usage": usage})


def claim(text: str) -> Reply:
    """A good answer to the claims prompt."""
    return say(json.dumps({"claim": text}))


def body(value: Any, status: int = 200, **headers: str) -> Reply:
    """Any status and body, as JSON unless it is text."""
    content = (value if isinstance(value, str) else json.dumps(value)).encode()

    def reply(handler: Handler) -> None:
        handler.send_response(status)
        for name, its in headers.items():
            handler.send_header(name.replace("_", "-"), its)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    return reply


def raw(answer: bytes) -> Reply:
    """An answer to the byte, its status line and headers included."""

    def reply(handler: Handler) -> None:
        handler.wfile.write(answer)
        handler.close_connection = True

    return reply


def slow(seconds: float, then: Reply) -> Reply:
    """Silence, then the reply."""

    def reply(handler: Handler) -> None:
        handler.server.gone.wait(seconds)
        then(handler)

    return reply


def trickle(handler: Handler) -> None:
    """A byte now and then, without an end."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    for _ in range(1000):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        if handler.server.gone.wait(0.05):
            return


def flood_headers(handler: Handler) -> None:
    """Headers without an end."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    _repeat(handler, b"X-Padding: " + b"x" * 1000 + b"\r\n")


def flood(handler: Handler) -> None:
    """A body without an end, in chunks."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    _repeat(handler, b"10000\r\n" + b" " * 0x10000 + b"\r\n")


def bomb(*packed: str) -> Reply:
    """A short body that unpacks to 96 MB, packed so many times over."""

    def reply(handler: Handler) -> None:
        pack = zlib.compressobj(1, wbits=31)  # piece by piece: the server is in the process whose memory is looked at
        content = b"".join([*(pack.compress(b" " * 2**20) for _ in range(96)), pack.flush()])
        for _ in packed[1:]:
            content = gzip.compress(content, 1)
        handler.send_response(200)
        handler.send_header("Content-Encoding", ", ".join(packed))
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    return reply


def _repeat(handler: Handler, part: bytes, pause: float = 0.0) -> None:
    while not handler.server.gone.wait(pause):
        handler.wfile.write(part)
        handler.wfile.flush()


def hang_up(handler: Handler) -> None:
    """Close the connection without a word."""
    handler.close_connection = True


def break_off(handler: Handler) -> None:
    """Close the connection in the middle of the body."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [{"mess')
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
        self.owner, self.gone = owner, threading.Event()


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
        self.times: list[float] = []
        self.at_once = self.most_at_once = 0

    def __enter__(self) -> Self:
        self._server = _Server(self)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.gone.set()
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
            self.times.append(time.monotonic())
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            self._behave(number, asked)(handler)
        finally:
            with self._lock:
                self.at_once -= 1
        return None


@contextmanager
def starter(monkeypatch: pytest.MonkeyPatch, **settings: str) -> Iterator[Start]:
    """`start(behave)` starts a server and names it in an environment with little patience and these other settings."""
    for name in [name for name in os.environ if name.startswith("HFCF_LLM_")]:
        monkeypatch.delenv(name)
    for name, value in {"TIMEOUT": "5", "RETRIES": "2", **settings}.items():
        monkeypatch.setenv(f"HFCF_LLM_{name}", value)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(openai._base_client, "INITIAL_RETRY_DELAY", 0.01)
    client._profile.cache_clear()
    usage().clear()
    with ExitStack() as stack:

        def start(behave: Behave, **how: Any) -> BadServer:
            server = stack.enter_context(BadServer(behave, **how))
            monkeypatch.setenv("HFCF_LLM_URL", server.url)
            return server

        yield start
