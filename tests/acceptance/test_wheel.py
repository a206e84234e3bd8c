"""The wheel, installed outside the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def call(*arguments, **options):
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=110, check=False, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_holds_all_that_a_run_needs(tmp_path):
    call("-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(ROOT))
    (wheel,) = tmp_path.glob("esault-*.whl")
    call("-m", "pip", "install", "-q", "--no-compile", "--no-deps", "--target", str(tmp_path / "site"), str(wheel))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    away = {"cwd": tmp_path, "env": environment}
    assert str(tmp_path) in call("-c", "import esault; print(esault.__file__)", **away)
    assert (tmp_path / "site" / "esault" / "py.typed").exists()
    call("-m", "esault", "new", "words.py", **away)
    assert "drained" in call("-m", "esault", "run", "words.py", **away)
    assert (tmp_path / "out" / "words.jsonl").read_text()
