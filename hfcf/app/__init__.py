"""A page to try systems on: one row that a person pastes, what each stage did with it, and the counterfactuals.

`hfcf app` serves it; `spaces/app.py` is a Space of it. It needs the extra `app` (Gradio), and no network.
"""

from __future__ import annotations

import importlib.util
import os

INSTALL = 'in a checkout of hfcf: pip install ".[app]"'


def serve(*, preset: str = "offline", host: str = "127.0.0.1", port: int | None = None, quiet: bool = False) -> None:
    """Serve the page until the process ends.

    Args:
        preset: the preset that is chosen at first; a system that lacks it starts with another preset.
        host: the address to listen on; "0.0.0.0" lets other machines in.
        port: by default the first free one from 7860.
        quiet: print nothing.

    Raises:
        ModuleNotFoundError: Gradio is not installed; the message has the line to type.
        OSError: the port is taken.

    >>> serve(preset="offline", port=-1)  # doctest: +SKIP
    """
    check_installed()
    # Gradio reads these when it is imported: no reports to its makers, no look for a newer version.
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    from hfcf.app.page import launch

    launch(preset=preset, host=host, port=port, quiet=quiet)


def check_installed() -> None:
    """Raise `ModuleNotFoundError` with the line to type if Gradio is not installed."""
    if importlib.util.find_spec("gradio") is None:
        raise ModuleNotFoundError(f"the page needs Gradio, which is not installed; {INSTALL}", name="gradio")
