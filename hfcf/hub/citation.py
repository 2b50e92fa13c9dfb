"""Cite this library in the cards that it writes, beside the paper of the system or the model."""

from __future__ import annotations

from importlib.metadata import version

TITLE = "hfcf: counterfactual data for language tasks"
AUTHORS = "{The hfcf developers}"
YEAR = 2026


def citation() -> str:
    """Return the BibTeX entry of this library at its version. `CITATION.cff` says the same."""
    fields = {"title": TITLE, "author": AUTHORS, "year": YEAR, "version": version("hfcf"), "license": "Apache-2.0"}
    return "@software{hfcf,\n" + "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items()) + "}"
