"""The wheel, installed outside the checkout."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import depth
import pytest

ROOT = Path(__file__).parents[2]


def call(*arguments, **options):
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=110, check=False, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def by_pip(folder):
    """Build a wheel and install it, as a user does."""
    call("-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT))
    (wheel,) = folder.glob("esault-*.whl")
    call("-m", "pip", "install", "-q", "--no-compile", "--no-deps", "--target", str(folder / "site"), str(wheel))


def by_setuptools(folder):
    """What a wheel is packed of, in the folder into which it would be unpacked: without three pips and an environment to build in."""
    to = ["--build-base", str(folder / "build"), "--build-lib", str(folder / "site")]
    call("-c", f"import setuptools, sys; sys.argv = ['setup.py', '-q', 'build', *{to!r}]; setuptools.setup()", cwd=ROOT)


#: a new environment has no setuptools from Python 3.12 on
USUAL = by_setuptools if importlib.util.find_spec("setuptools") else by_pip


@pytest.mark.slow
@pytest.mark.parametrize("installed", depth.chosen([by_pip, by_setuptools], [USUAL]))
def test_the_wheel_holds_all_that_a_run_needs(tmp_path, installed):
    installed(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    away = {"cwd": tmp_path, "env": environment}
    assert str(tmp_path) in call("-c", "import esault; print(esault.__file__)", **away)
    assert (tmp_path / "site" / "esault" / "py.typed").exists()
    call("-m", "esault", "new", "words.py", **away)
    assert "drained" in call("-m", "esault", "run", "words.py", **away)
    assert (tmp_path / "out" / "words.jsonl").read_text()
