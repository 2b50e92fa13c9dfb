"""What goes wrong with the Hub, told in one line with its cure; and what passes by itself, tried again."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from huggingface_hub import constants
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import parse_ratelimit_headers

try:
    from huggingface_hub.utils import httpx
except ImportError:  # before its second version
    import httpx  # type: ignore[no-redef]

log = logging.getLogger(__name__)

ATTEMPTS = 5
FIRST_DELAY = 1.0  # seconds before the first repetition; each next one waits twice as long
LONGEST_WAIT = 300.0  # seconds: who is asked to wait longer had better come back
FAILURES = (OSError, RuntimeError, ValueError, httpx.HTTPError)
"""What huggingface_hub raises: refusals are OSErrors, those of an upload RuntimeErrors, malformed answers ValueErrors. Large files
go through hf_xet, whose every failure is a ConnectionError, with the status in its text alone."""
OFFLINE = "offline mode is on: unset HF_HUB_OFFLINE (and TRANSFORMERS_OFFLINE) and run this again"
BILLING = "https://huggingface.co/settings/billing"
LOGIN = "run `hf auth login`, or set HF_TOKEN to a token of yours from https://huggingface.co/settings/tokens"

_PASSING = (408, 429, 500, 502, 503, 504)
_CONFLICT = (409, 412)  # another commit came between
_XET = re.compile(r"HTTP status \w+ error \((\d{3}) ")
_FULL = re.compile(r"quota|storage (limit|capacity)|out of (storage|space)|payment|billing|insufficient storage", re.IGNORECASE)

Answer = TypeVar("Answer")


class HubError(ValueError):
    """What the Hub refused, or what must not be sent there; the message has the cure."""


def patiently(action: Callable[[], Answer], *, conflicts: bool = False) -> Answer:
    """Do something with the Hub, again after a wait when it fails for a reason that passes by itself.

    Args:
        action: a request, or with `conflicts` one that begins from what the Hub has at that moment.
        conflicts: repeat it when another commit came between, and not when the Hub or the connection failed.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return action()
        except FAILURES as error:
            wait = _conflict(error, attempt) if conflicts else _wait(error, attempt)
            if wait is None or wait > LONGEST_WAIT or attempt == ATTEMPTS:
                raise
            log.warning("the Hub failed (%s); attempt %d of %d in %.0f s", _brief(error), attempt + 1, ATTEMPTS, wait)
            time.sleep(wait)
    raise AssertionError("unreachable")


def told(error: BaseException, repo: str, token: str | None) -> HubError:
    """An error of huggingface_hub in one line, with the cure.

    Neither the token nor an address is in it: addresses of uploads are signed.

    Args:
        error: what was raised.
        repo: what was read or written, in words.
        token: taken out of what the server says.

    >>> str(told(OfflineModeIsEnabled("…"), "the dataset me/x", None))[:32]
    'the dataset me/x: offline mode i'
    """
    answer = next((one for one in _causes(error) if isinstance(one, HfHubHTTPError)), None)
    said = _said(error, token)
    return HubError(f"{repo}: {_cure(error, answer, said, token)}")


def _cure(error: BaseException, answer: HfHubHTTPError | None, said: str, token: str | None) -> str:
    status = _status(error)
    if isinstance(error, OfflineModeIsEnabled):
        return OFFLINE
    if isinstance(error, LocalEntryNotFoundError):
        away = "offline mode is on" if constants.HF_HUB_OFFLINE else "the Hub can't be reached"
        return f"{away} and the cache does not hold it: load it once with the Hub in reach"
    if isinstance(answer, GatedRepoError):
        return f"it is gated and you have no access: ask for it on its page, then {LOGIN}"
    if status == 401 and token is not None:
        return f"the Hub does not accept the token, which may be stale or revoked: {LOGIN}; then run this again"
    if isinstance(answer, RevisionNotFoundError):
        return "there is no such revision; give a branch, a tag or a commit that is there"
    if isinstance(answer, RemoteEntryNotFoundError):
        return f"a file is missing there: {said}"
    if isinstance(answer, RepositoryNotFoundError) or status == 401:
        return f"it is not there, or it is private and you have no access: check the name; {LOGIN}"
    # Before what tells of a full storage: its words speak of a quota, too.
    if status == 429:
        return f"the Hub asks for fewer requests ({said}): run this again later, and what is uploaded already is not sent again"
    # An upload that is refused for want of space is a 403, a 402 or a 413, or stands in the answer to the list of files.
    if status in (402, 413, 507) or _FULL.search(said):
        return f"the storage quota is full ({said}): free space or extend it at {BILLING}, then run this again"
    if status == 403 and answer is None:  # hf_xet does not tell why
        full = f"the storage quota is full, which {BILLING} shows"
        return f"the Hub refused the upload (403): {full}, or the token has no write access to this namespace; then run this again"
    if status == 403:
        return f"the token has no permission to do that ({said}): use one with write access to this namespace; {LOGIN}"
    if status in _CONFLICT:
        return "others commit there at the same time: run this again when they are done"
    if status is not None and status >= 500:
        return f"the Hub fails ({status}): run this again later, and what is uploaded already is not sent again"
    if any(isinstance(one, (httpx.TransportError, ConnectionError)) for one in _causes(error)):
        return f"the connection failed ({said}): run this again, and what is uploaded already is not sent again"
    return said


def _status(error: BaseException) -> int | None:
    """The HTTP status that the Hub refused with."""
    for one in _causes(error):
        if isinstance(one, HfHubHTTPError):
            return int(one.response.status_code)
        if isinstance(one, ConnectionError) and (found := _XET.search(str(one))):
            return int(found[1])
    return None


def _conflict(error: BaseException, attempt: int) -> float | None:
    statuses = [one.response.status_code for one in _causes(error) if isinstance(one, HfHubHTTPError)]
    return FIRST_DELAY * 2 ** (attempt - 1) if statuses and statuses[0] in _CONFLICT else None


def _wait(error: BaseException, attempt: int) -> float | None:
    """Seconds after which the same may succeed, or None."""
    if isinstance(error, (RuntimeError, ConnectionError)):  # an upload, which huggingface_hub or hf_xet has tried six times
        return None
    for one in _causes(error):
        if isinstance(one, HfHubHTTPError):
            if one.response.status_code not in _PASSING:
                return None
            asked = _asked(one)
            return FIRST_DELAY * 2 ** (attempt - 1) if asked is None else asked
        if isinstance(one, (httpx.TransportError, json.JSONDecodeError)):  # the latter: an error page in the place of an answer
            return FIRST_DELAY * 2 ** (attempt - 1)
    return None


def _asked(refusal: HfHubHTTPError) -> float | None:
    """Seconds that the Hub wants one to wait: it tells of its limits in a header of their own, others in the usual one."""
    limit = parse_ratelimit_headers(refusal.response.headers)
    if limit is not None and limit.remaining == 0:
        return limit.reset_in_seconds + 1.0
    asked = str(refusal.response.headers.get("retry-after", "")).strip()
    return float(asked) if asked.isdigit() else None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _brief(error: BaseException) -> str:
    answer = next((one for one in _causes(error) if isinstance(one, HfHubHTTPError)), None)
    return type(error).__name__ if answer is None else str(answer.response.status_code)


def _said(error: BaseException, token: str | None) -> str:
    """What the server said, else the error's own words, in one line, without the token and addresses."""
    answer = next((one for one in _causes(error) if isinstance(one, HfHubHTTPError)), None)
    words = (answer.server_message if answer is not None else None) or str(list(_causes(error))[-1] if answer is None else answer)
    words = re.sub(r"https?://\S+", "…", words)
    if token:
        words = words.replace(token, "…")
    return " ".join(words.split())[:300] or type(error).__name__
