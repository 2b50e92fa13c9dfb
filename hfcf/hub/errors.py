"""Explain errors of the Hub in one line with the cure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from huggingface_hub import constants, errors

from hfcf.core.hub_http import httpx
from hfcf.core.redact import mask

FAILURES = (OSError, RuntimeError, ValueError, httpx.HTTPError)
"""What huggingface_hub raises: OSErrors for refusals, RuntimeErrors for refused uploads, ValueErrors for malformed answers."""
OFFLINE = "offline mode is on: unset HF_HUB_OFFLINE (and TRANSFORMERS_OFFLINE) and run this again"
LOGIN = "run `hf auth login`, or set HF_TOKEN to your token from https://huggingface.co/settings/tokens"

_TRANSIENT = (408, 429, 500, 502, 503, 504)
_CURES = {
    **dict.fromkeys((402, 413, 507), "the storage is full: free space or extend it at https://huggingface.co/settings/billing"),
    403: f"the token has no permission to do that: use a token with write access to this namespace, or free space there; {LOGIN}",
    **dict.fromkeys((409, 412), "somebody else commits there at the same time: run this again later"),
}
"""The cure by the status of a refusal."""


class HubError(ValueError):
    """The Hub refused, or something must not be sent to it; the message has the cure."""


def explain(error: BaseException, repo: str, token: str | None) -> HubError:
    """Turn an error of huggingface_hub into one line about `repo`, the repository in words, with the cure.

    The line holds neither the token nor an address: addresses of uploads are signed.
    """
    return HubError(f"{repo}: {_cure(error, _message(error, token), token)}")


def _cure(error: BaseException, message: str, token: str | None) -> str:
    status, refusal = _status(error), _http_error(error)
    if isinstance(error, errors.OfflineModeIsEnabled):
        return OFFLINE
    if isinstance(error, errors.LocalEntryNotFoundError):
        away = "offline mode is on" if constants.HF_HUB_OFFLINE else "the Hub can't be reached"
        return f"{away}, and it is not in the cache: load it once while the Hub can be reached"
    if status == 401 and token is not None:
        return f"the Hub does not accept the token, which may be stale or revoked: {LOGIN}; then run this again"
    if isinstance(refusal, errors.RevisionNotFoundError | errors.RemoteEntryNotFoundError):
        return f"it has no such revision or file ({message}): give a branch, a tag or a commit that exists"
    if isinstance(refusal, errors.RepositoryNotFoundError) or status == 401:  # a gated repository, too
        return f"it does not exist, or you have no access: check the name, ask for access on its page if it is gated; {LOGIN}"
    if status in _CURES:
        return f"{_CURES[status]} ({message})"
    if status in _TRANSIENT or any(isinstance(cause, (httpx.TransportError, ConnectionError)) for cause in _causes(error)):
        return f"the Hub fails, or the connection to it ({status or message}): run this again; uploaded files are not sent again"
    return message


def _status(error: BaseException) -> int | None:
    refusal = _http_error(error)
    return None if refusal is None else int(refusal.response.status_code)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _http_error(error: BaseException) -> errors.HfHubHTTPError | None:
    return next((cause for cause in _causes(error) if isinstance(cause, errors.HfHubHTTPError)), None)


def _message(error: BaseException, token: str | None) -> str:
    """Return the server's message, else the error's own, in one line, without the token and addresses."""
    refusal = _http_error(error)
    words = (refusal.server_message if refusal is not None else None) or str(refusal or list(_causes(error))[-1])
    words = mask(re.sub(r"https?://\S+", "…", words), [token or ""])
    return " ".join(words.split())[:300] or type(error).__name__
