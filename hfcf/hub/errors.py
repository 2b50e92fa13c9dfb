"""Retry transient Hub errors, and explain lasting errors in one line with the cure."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from huggingface_hub import constants, errors

from hfcf.core.hub_http import httpx
from hfcf.core.redact import mask

log = logging.getLogger(__name__)

ATTEMPTS = 5
FIRST_DELAY = 1.0  # seconds before the first repetition; each further repetition waits twice as long
FAILURES = (OSError, RuntimeError, ValueError, httpx.HTTPError)
"""What huggingface_hub raises: OSErrors for refusals, RuntimeErrors for refused uploads, ValueErrors for malformed answers.

hf_xet, which uploads large files, raises ConnectionErrors alone, with the status in their text."""
OFFLINE = "offline mode is on: unset HF_HUB_OFFLINE (and TRANSFORMERS_OFFLINE) and run this again"
BILLING = "https://huggingface.co/settings/billing"
LOGIN = "run `hf auth login`, or set HF_TOKEN to your token from https://huggingface.co/settings/tokens"

_TRANSIENT = (408, 429, 500, 502, 503, 504)
_CONFLICT = (409, 412)  # somebody else committed in between
_XET = re.compile(r"HTTP status \w+ error \((\d{3}) ")
_FULL = re.compile(r"quota|storage (limit|capacity)|out of (storage|space)|payment|billing|insufficient storage", re.IGNORECASE)

Answer = TypeVar("Answer")


class HubError(ValueError):
    """The Hub refused, or something must not be sent to it; the message has the cure."""


def retry(action: Callable[[], Answer], *, conflicts: bool = False) -> Answer:
    """Run an action, and retry it after a wait when it fails with a transient error or, with `conflicts`, with a conflict alone."""
    for attempt in range(1, ATTEMPTS):
        try:
            return action()
        except FAILURES as error:
            if not _is_transient(error, conflicts):
                raise
            wait = FIRST_DELAY * 2.0 ** (attempt - 1)
            log.warning("the Hub failed (%s); attempt %d of %d in %.0f s", _status(error), attempt + 1, ATTEMPTS, wait)
            time.sleep(wait)
    return action()


def explain(error: BaseException, repo: str, token: str | None) -> HubError:
    """Turn an error of huggingface_hub into one line about `repo`, the repository in words, with the cure.

    The line holds neither the token nor an address: addresses of uploads are signed.
    """
    answer, message = _http_error(error), _message(error, token)
    return HubError(f"{repo}: {_cure(error, answer, message, token)}")


def _cure(error: BaseException, answer: errors.HfHubHTTPError | None, message: str, token: str | None) -> str:
    status = _status(error)
    if isinstance(error, errors.OfflineModeIsEnabled):
        return OFFLINE
    if isinstance(error, errors.LocalEntryNotFoundError):
        away = "offline mode is on" if constants.HF_HUB_OFFLINE else "the Hub can't be reached"
        return f"{away}, and it is not in the cache: load it once while the Hub can be reached"
    if isinstance(answer, errors.GatedRepoError):
        return f"it is gated and you have no access: ask for it on its page, then {LOGIN}"
    if status == 401 and token is not None:
        return f"the Hub does not accept the token, which may be stale or revoked: {LOGIN}; then run this again"
    if isinstance(answer, errors.RevisionNotFoundError):
        return "there is no such revision: give a branch, a tag or a commit that exists"
    if isinstance(answer, errors.RemoteEntryNotFoundError):
        return f"a file is missing there: {message}"
    if isinstance(answer, errors.RepositoryNotFoundError) or status == 401:
        return f"it does not exist, or it is private and you have no access: check the name; {LOGIN}"
    # Before the check for a full storage: this message also mentions a quota.
    if status == 429:
        return f"the Hub allows fewer requests ({message}): run this again later; uploaded files are not sent again"
    # An upload without space is refused with a 403, a 402 or a 413, or in the answer to the list of files.
    if status in (402, 413, 507) or _FULL.search(message):
        return f"the storage quota is full ({message}): free space or extend it at {BILLING}, then run this again"
    if status == 403 and answer is None:  # hf_xet does not give the reason
        full = f"the storage quota is full, which {BILLING} shows"
        return f"the Hub refused the upload (403): {full}, or the token has no write access to this namespace; then run this again"
    if status == 403:
        return f"the token has no permission to do that ({message}): use a token with write access to this namespace; {LOGIN}"
    if status in _CONFLICT:
        return "somebody else commits there at the same time: run this again later"
    if status is not None and status >= 500:
        return f"the Hub fails ({status}): run this again later; uploaded files are not sent again"
    if any(isinstance(cause, (httpx.TransportError, ConnectionError)) for cause in _causes(error)):
        return f"the connection failed ({message}): run this again; uploaded files are not sent again"
    return message


def _status(error: BaseException) -> int | None:
    for cause in _causes(error):
        if isinstance(cause, errors.HfHubHTTPError):
            return int(cause.response.status_code)
        if isinstance(cause, ConnectionError) and (match := _XET.search(str(cause))):
            return int(match[1])
    return None


def _is_transient(error: BaseException, conflicts: bool) -> bool:
    """Return whether the same request may succeed later; huggingface_hub and hf_xet retry uploads themselves."""
    if conflicts or isinstance(error, (RuntimeError, ConnectionError)):
        return conflicts and _http_error(error) is not None and _status(error) in _CONFLICT
    broken = (httpx.TransportError, json.JSONDecodeError)  # the latter: an error page instead of an answer
    return _status(error) in _TRANSIENT or any(isinstance(cause, broken) for cause in _causes(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _http_error(error: BaseException) -> errors.HfHubHTTPError | None:
    return next((cause for cause in _causes(error) if isinstance(cause, errors.HfHubHTTPError)), None)


def _message(error: BaseException, token: str | None) -> str:
    """Return the server's message, else the error's own, in one line, without the token and addresses."""
    answer = _http_error(error)
    words = (answer.server_message if answer is not None else None) or str(list(_causes(error))[-1] if answer is None else answer)
    words = mask(re.sub(r"https?://\S+", "…", words), [token or ""])
    return " ".join(words.split())[:300] or type(error).__name__
