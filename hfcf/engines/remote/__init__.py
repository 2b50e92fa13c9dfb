"""Language models behind an OpenAI-compatible endpoint."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hfcf.engines.remote.engine import Remote

__all__ = ["Remote"]


def __getattr__(name: str) -> Any:
    # Resolved when first used: the command line reads `settings.RemoteError` at every start, and needs no engine for that.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("hfcf.engines.remote.engine"), name)
