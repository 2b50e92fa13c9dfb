"""The log of the page: whole errors go there, and their sentence to the page."""

from __future__ import annotations

import logging
from logging.handlers import RotatingFileHandler
from pathlib import Path

from hfcf.core.faults import ERRORS, explain, find_fault, is_a_users
from hfcf.core.paths import cache_dir
from hfcf.core.redact import hide

log = logging.getLogger(__name__)
_SIZE = 1_000_000


class _Formatter(logging.Formatter):
    """Writes records without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        return hide(super().format(record))


def path() -> Path:
    """Return the log's file."""
    return cache_dir() / "app.log"


def to_file() -> None:
    """Write what the library logs to the file, once."""
    logger = logging.getLogger("hfcf")
    path().parent.mkdir(parents=True, exist_ok=True)
    if any(isinstance(handler, RotatingFileHandler) for handler in logger.handlers):
        return
    handler = RotatingFileHandler(path(), maxBytes=_SIZE, backupCount=1, encoding="utf-8", delay=True)
    handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger.addHandler(handler)


def say(error: BaseException) -> str:
    """Say in a sentence what went wrong; the traceback goes to the log."""
    from hfcf.engines.remote.endpoint import RemoteError

    fault = find_fault(error)
    if fault or (isinstance(error, (*ERRORS, RemoteError)) and is_a_users(error)):
        log.info("a run ended: %s", type(error).__name__, exc_info=error)
        return hide(fault or explain(error))
    log.error("a run ended with an error of the program", exc_info=error)
    return f"the program has an error ({type(error).__name__}) that it has no sentence for; the traceback is in {path()}"
