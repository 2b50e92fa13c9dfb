import os
import subprocess
import sys

import pytest

PROGRAM = """
import atexit, os, sys
atexit.register(lambda: print(os.environ.get("GOMP_SPINCOUNT"), "torch" in sys.modules))
from hfcf.cli import main
main()
"""


@pytest.mark.parametrize(
    ("typed", "found"), [({}, "10000"), ({"GOMP_SPINCOUNT": "5"}, "5"), ({"OMP_WAIT_POLICY": "active"}, "None")]
)
def test_threads_of_the_command_line_wait_in_a_short_loop(typed: dict[str, str], found: str) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    command = [sys.executable, "-c", PROGRAM, "--version"]
    done = subprocess.run(command, env={**env, **typed}, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.splitlines()[-1] == f"{found} False", "OpenMP reads it when torch is loaded"
