"""`python -m hfcf`: the command line, which launchers start as a module."""

from __future__ import annotations

from hfcf.cli import main

if __name__ == "__main__":
    main()
