"""The Python of Spark's workers on this machine: ours, made quicker to start.

Spark puts a zip of pyspark before all else on the path of each Python process that it starts. What comes from a zip has no bytecode, so that
each of them compiles pyspark anew: four fifths of a second's work, before it does anything. A query of the Spark engine starts one for
its spouts, one for each level, and a few that stay. So the pyspark that is installed, the same files with their bytecode, and nothing else
with it, is put before the zip: by a script, where we say which program workers run, and else by a module that Python imports when it starts.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from pathlib import Path

__all__ = ["is_own", "start_path", "worker_python"]

_PROGRAM = "python-of-workers"

_LEAD = """# Written by eSault: the pyspark that is installed has bytecode, the zip that Spark puts before it has none.
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
"""


def worker_python(folder: Path) -> str:
    """A program that is this Python with that path, made in `folder`; this Python itself where there can be none."""
    home, program = _installed(folder), folder / _PROGRAM
    if home is None:
        return sys.executable
    path = shlex.quote(str(home)) + '"${PYTHONPATH:+:$PYTHONPATH}"'
    program.write_text(f'#!/bin/sh\nexport PYTHONPATH={path}\nexec {shlex.quote(sys.executable)} "$@"\n')
    program.chmod(0o700)
    return str(program) if os.access(program, os.X_OK) else sys.executable  # where nothing in there may be run


def is_own(program: str) -> bool:
    """Return whether this is the Python that runs here, as it is or made quicker to start."""
    return program == sys.executable or os.path.basename(program) == _PROGRAM


def start_path(folder: Path) -> Path | None:
    """A folder, made in `folder`, that has the same effect anywhere on the path of a Python that starts; None where there can be none."""
    home = _installed(folder)
    if home is not None:
        (home / "sitecustomize.py").write_text(_LEAD)
    return home


def _installed(folder: Path) -> Path | None:
    home = folder / "installed"
    home.mkdir(exist_ok=True)
    for name in ("pyspark", "py4j"):
        found = importlib.util.find_spec(name)
        if found is None or not found.submodule_search_locations:
            return None
        if not (home / name).exists():
            (home / name).symlink_to(os.path.abspath(found.submodule_search_locations[0]), target_is_directory=True)
    return home
