"""Limit an exchange with an endpoint: its whole time, and the bytes of its answer.

A timeout of an HTTP client is for one piece of an answer: a server that sends a byte a second, of headers or of a body, never
exceeds it.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpcore2
import httpx2

LARGEST = 4 * 2**20
"""Bytes of an answer, besides what its tokens and their alternatives may take."""
TOKEN = 400
"""Bytes that a token may take: its text, log-probability and bytes, in JSON."""
PLAIN = ("", "identity", "gzip", "deflate")
"""Encodings of an answer that are read; none is requested. One over another, or others, unpack a few bytes to gigabytes at once."""
_now = threading.local()


class TooLong(httpx2.RemoteProtocolError):
    """An answer that goes on and on, or is packed in a way that nobody requested."""


@contextmanager
def limit_time(seconds: float) -> Iterator[float]:
    """End everything that this thread reads or writes over `limit_transports` after so many seconds; yield the deadline."""
    _now.deadline = time.monotonic() + seconds
    try:
        yield _now.deadline
    finally:
        _now.deadline = None


def limit_transports(client: httpx2.Client) -> None:
    """Put `limit_time` into force on the connections of a client, those over proxies included."""
    for transport in {id(one): one for one in (client._transport, *client._mounts.values()) if one is not None}.values():
        pool: Any = transport._pool  # type: ignore[attr-defined]
        pool._network_backend = _Backend(pool._network_backend)


def read_body(response: httpx2.Response, deadline: float, largest: int) -> bytes:
    """Read an answer to its end."""
    packed = response.headers.get("content-encoding", "").strip().lower()
    if packed not in PLAIN:
        raise TooLong(f"packed its answer as {packed[:40]!r}, which was not requested", request=response.request)
    content = bytearray()
    for part in response.iter_bytes():
        content += part
        if len(content) > largest:
            raise TooLong(f"sent more than {largest:,} bytes, and goes on", request=response.request)
        if time.monotonic() > deadline:
            raise httpx2.ReadTimeout("not done in time", request=response.request)
    return bytes(content)


def _left(timeout: float | None) -> float | None:
    """Return the seconds that a step may take: its own timeout, or less where the exchange ends earlier."""
    if (deadline := getattr(_now, "deadline", None)) is None:
        return timeout
    left = deadline - time.monotonic()
    if left <= 0:
        raise httpcore2.ReadTimeout("not done in time")
    return float(left if timeout is None else min(timeout, left))


class _Stream(httpcore2.NetworkStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return bytes(self._stream.read(max_bytes, _left(timeout)))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        view = memoryview(buffer)
        for start in range(0, len(view), 65_536):  # each piece anew, for a server that reads a byte a second
            self._stream.write(bytes(view[start : start + 65_536]), _left(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None) -> _Stream:
        # A handshake is many reads in one call, so the connection is cut when its time is over.
        left, twin = _left(timeout), self._stream.get_extra_info("socket").dup()
        timer = threading.Timer(left or threading.TIMEOUT_MAX, _cut, (twin,))
        timer.daemon = True
        timer.start()
        try:
            return _Stream(self._stream.start_tls(ssl_context, server_hostname, left))
        finally:
            timer.cancel()
            twin.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _cut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:  # it has ended meanwhile
        return


class _Backend(httpcore2.NetworkBackend):
    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, local_address: str | None = None, socket_options: Any = None
    ) -> _Stream:
        stream = self._backend.connect_tcp(
            host, port, timeout=_left(timeout), local_address=local_address, socket_options=socket_options
        )
        return _Stream(stream)

    def connect_unix_socket(self, path: str, timeout: float | None = None, socket_options: Any = None) -> _Stream:
        return _Stream(self._backend.connect_unix_socket(path, timeout=_left(timeout), socket_options=socket_options))

    def sleep(self, seconds: float) -> None:
        self._backend.sleep(seconds)
