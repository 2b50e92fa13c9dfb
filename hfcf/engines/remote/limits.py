"""Limit how fast a process sends requests to an endpoint: requests and tokens a minute, and a pause for all threads."""

from __future__ import annotations

import threading
import time
from collections import deque


class Stopped(Exception):
    """Another request ended the run: this one is not sent."""


class Limiter:
    """Limit requests and tokens in a sliding window of some seconds; the threads of a process share it."""

    def __init__(self, requests: float | None = None, tokens: float | None = None, window: float = 60.0) -> None:
        self._requests, self._tokens, self._window = requests, tokens, window
        self._sent: deque[list[float]] = deque()  # [when, tokens]
        self._until = 0.0
        self._lock = threading.Lock()

    def enter(self, tokens: float, stop: threading.Event) -> list[float]:
        """Wait for the turn of a request that takes about this many tokens; return its entry in the window, for `correct`."""
        while True:
            if stop.is_set():
                raise Stopped
            with self._lock:
                wait = self._wait(tokens)
                if wait <= 0:
                    entry = [time.monotonic(), tokens]
                    self._sent.append(entry)
                    return entry
            stop.wait(wait)

    def _wait(self, tokens: float) -> float:
        now = time.monotonic()
        while self._sent and self._sent[0][0] + self._window <= now:
            self._sent.popleft()
        full = self._requests is not None and len(self._sent) >= self._requests
        # A request above the limit is sent when the window is empty: it would wait for ever otherwise.
        if self._tokens is not None and self._sent:
            full = full or sum(entry[1] for entry in self._sent) + tokens > self._tokens
        return max(self._until, self._sent[0][0] + self._window if full else 0.0) - now

    def correct(self, entry: list[float], tokens: float) -> None:
        """Replace a request's estimate by the tokens that it took."""
        with self._lock:
            entry[1] = tokens

    def pause(self, seconds: float) -> None:
        """Start no request of any thread for this long, as the endpoint demands."""
        with self._lock:
            self._until = max(self._until, time.monotonic() + seconds)
