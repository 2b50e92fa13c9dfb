"""The HTTP of the local Hub: requests read and handed to it, answers written, or cut off."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hub_parts import Answer, Refusal, Request, refused
from huggingface_hub import constants
from huggingface_hub.utils import close_session
from local_hub import ROUTES, TOKEN, LocalHub


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body are sent apart, and the second one would wait 40 ms
    hub: LocalHub

    def log_message(self, *args: Any) -> None:
        """Say nothing."""

    def handle_one(self) -> None:
        address, hub = urlsplit(self.path), self.hub
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None
        with hub.lock:
            request = Request(len(hub.requests) + 1, self.command, unquote(address.path), parse_qs(address.query), token)
            hub.requests.append(request)
            answer = hub.fault(request) if hub.fault else None
            if answer is not None and answer.cut:
                self.rfile.read1(100)  # some of it has arrived
            else:
                body = self.read(self.headers)
            if answer is None:
                answer = self.route(request, body)
                answer = (hub.after(request) if hub.after else None) or answer
        self.send(answer)

    do_GET = do_HEAD = do_POST = do_PUT = handle_one

    def read(self, headers: Any) -> bytes:
        if headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def route(self, request: Request, body: bytes) -> Answer:
        for methods, pattern, answer in ROUTES:
            if request.method in methods.split() and (found := re.fullmatch(pattern, request.path)):
                try:
                    return answer(self.hub, request, body, *found.groups())
                except Refusal as refusal:
                    return refusal.answer
        return refused(404, f"no such page: {request.method} {request.path}", "EntryNotFound")

    def send(self, answer: Answer) -> None:
        if answer.cut:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        status, headers = answer.status, dict(answer.headers)
        if isinstance(answer.body, bytes) and (asked := re.match(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")):
            first, last = int(asked[1]), min(int(asked[2] or len(body)), len(body) - 1)
            headers["Content-Range"] = f"bytes {first}-{last}/{len(body)}"
            status, body = 206, body[first : last + 1]
        self.send_response(status)
        kind = "application/octet-stream" if isinstance(answer.body, bytes) else "application/json"
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextmanager
def serving() -> Iterator[LocalHub]:
    """A Hub that answers at `url` until the block ends."""
    hub = LocalHub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"hub": hub}))
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def connected(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[LocalHub]:
    """A Hub that this process talks to until the block ends, with a token, and a cache in the folder."""
    with serving() as server:
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", server.url + "/{repo_id}/resolve/{revision}/{filename}")
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder / "hub-cache"))
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(folder / "no-token"))
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        close_session()
        yield server
    close_session()
