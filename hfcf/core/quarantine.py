"""Set a damaged file aside: it is told once, kept for who wants to look, and what it held is computed again."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path

log = logging.getLogger(__name__)

SUFFIX = ".damaged"


def quarantine(path: Path, why: object, *beside: Path) -> Path:
    """Rename a damaged file or folder to NAME.damaged, which replaces an older one, and warn."""
    target = path
    for one in (path, *beside):
        other = one.with_name(one.name + SUFFIX)
        number = 1
        while other.is_dir() or (one.is_dir() and other.exists()):  # a folder can't be replaced
            number += 1
            other = one.with_name(f"{one.name}{SUFFIX}{number}")
        with suppress(FileNotFoundError):  # another process was faster
            one.replace(other)
        target = other if one is path else target
    log.warning("%s is damaged (%s): it is now %s, and what it held is computed again", path, why, target.name)
    return target
