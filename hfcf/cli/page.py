"""`hfcf app`: a page to try systems on."""

from __future__ import annotations

from typing import Annotated

import typer

from hfcf.cli import console


def app(
    preset: Annotated[str, typer.Option(help="The preset that is chosen at first.")] = "offline",
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 lets other machines in.")] = "127.0.0.1",
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="By default the first free one from 7860.")] = None,
) -> None:
    """Serve a page on which you paste a row, run a system on it, and see what each stage did."""
    from hfcf.app import check_installed, serve

    check_installed()
    console.silence_libraries()
    serve(preset=preset, host=host, port=port)
