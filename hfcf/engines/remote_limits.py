"""How fast a process may ask an endpoint: requests and tokens a minute, and a pause for all when it says so."""

from __future__ import annotations

import threading
import time
from collections import deque


class Stopped(Exception):
    """The run ends because of another request: this one is not sent."""


class Limiter:
    """Requests and tokens in a sliding window, shared by the threads of a process.

    Args:
        requests: the most in a window; None: no limit.
        tokens: the most in a window, by estimate until the answer tells; None: no limit.
        window: seconds.

    >>> limiter = Limiter(requests=1, window=0.2)
    >>> start = time.monotonic()
    >>> for _ in range(2):
    ...     _ = limiter.enter(100, threading.Event())
    >>> time.monotonic() - start >= 0.2
    True
    """

    def __init__(self, requests: float | None = None, tokens: float | None = None, window: float = 60.0) -> None:
        self._requests, self._tokens, self._window = requests, tokens, window
        self._sent: deque[list[float]] = deque()  # [when, tokens]
        self._until = 0.0
        self._lock = threading.Lock()

    def enter(self, tokens: float, stop: threading.Event) -> list[float]:
        """Wait for this request's turn; what it returns is for `correct`.

        Raises:
            Stopped: `stop` is set.
        """
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
        wait = self._until - now
        if self._requests is not None and len(self._sent) >= self._requests:
            wait = max(wait, self._sent[0][0] + self._window - now)
        # A request larger than the whole limit goes when nothing else is in the window, or it would wait for ever.
        if self._tokens is not None and self._sent and sum(entry[1] for entry in self._sent) + tokens > self._tokens:
            wait = max(wait, self._sent[0][0] + self._window - now)
        return wait

    def correct(self, entry: list[float], tokens: float) -> None:
        """Put the tokens that a request took in the place of the estimate."""
        with self._lock:
            entry[1] = tokens

    def pause(self, seconds: float) -> None:
        """Let no request start before that time is over: the endpoint asked for it."""
        with self._lock:
            self._until = max(self._until, time.monotonic() + seconds)
