"""Which offline models are on this machine: tests that need one skip without it."""

from __future__ import annotations

from hfcf.core import offline


def installed(name: str) -> bool:
    """Whether the package with an offline model is there."""
    try:
        offline.folder(name)
    except FileNotFoundError:
        return False
    return True
