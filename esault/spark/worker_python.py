"""The Python of Spark's workers on this machine: ours, made quicker to start.

Spark puts a zip of pyspark before all else on the path of each Python process that it starts. What comes from a zip has no bytecode, so that
each of them compiles pyspark anew: four fifths of a second's work, before it does anything. A query of the Spark engine starts one for
its spouts, one for each level, and a few that stay. So a script puts the pyspark that is installed, the same files with their bytecode,
before the zip, and nothing else with it.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from pathlib import Path

__all__ = ["worker_python"]


def worker_python(folder: Path) -> str:
    """A program that is this Python with that path, made in `folder`; this Python itself where there can be none."""
    home, program = folder / "installed", folder / "python-of-workers"
    home.mkdir()
    for name in ("pyspark", "py4j"):
        found = importlib.util.find_spec(name)
        if found is None or not found.submodule_search_locations:
            return sys.executable
        (home / name).symlink_to(os.path.abspath(found.submodule_search_locations[0]), target_is_directory=True)
    path = shlex.quote(str(home)) + '"${PYTHONPATH:+:$PYTHONPATH}"'
    program.write_text(f'#!/bin/sh\nexport PYTHONPATH={path}\nexec {shlex.quote(sys.executable)} "$@"\n')
    program.chmod(0o700)
    return str(program) if os.access(program, os.X_OK) else sys.executable  # where nothing in there may be run
