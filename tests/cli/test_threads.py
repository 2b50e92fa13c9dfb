import os
import subprocess
import sys

import pytest

PROGRAM = """
import atexit, os, sys
atexit.register(lambda: print(os.environ["OMP_WAIT_POLICY"], "torch" in sys.modules))
from hfcf.cli import main
main()
"""


@pytest.mark.parametrize(("typed", "found"), [(None, "passive"), ("active", "active")])
def test_threads_of_the_command_line_sleep_while_they_wait(typed: str | None, found: str) -> None:
    env = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    env |= {"OMP_WAIT_POLICY": typed} if typed else {}
    command = [sys.executable, "-c", PROGRAM, "--version"]
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.splitlines()[-1] == f"{found} False", "OpenMP reads it when torch is loaded"
