"""Runs a function of a test's file in a Python that holds little else.

A check of a sink forks a hundred times. A process that has collected all tests holds half a gigabyte: to fork it and to end
the fork takes 30 ms, and more for each page that the fork touches.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: what a test's file imports is found as in the tests
CODE = "import runpy, sys; runpy.run_path(sys.argv[1])[sys.argv[2]]()"


def run_small(function: Callable[[], None]) -> None:
    """Call a function that stands at the top of its file. Raises AssertionError where it raises, with its traceback."""
    path = os.pathsep.join([str(ROOT), str(Path(__file__).parent)])
    done = subprocess.run(
        [sys.executable, "-c", CODE, function.__code__.co_filename, function.__name__],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
