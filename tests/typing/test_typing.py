from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import esault

PROGRAM = Path(__file__).with_name("fitting.py")


@pytest.mark.slow
def test_a_type_checker_finds_exactly_the_units_that_do_not_fit(tmp_path):
    # An empty configuration, so that the test says the same in every checkout.
    (tmp_path / "mypy.ini").write_text("[mypy]\n")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--show-error-codes"),
            *("--config-file", str(tmp_path / "mypy.ini"), "--cache-dir", str(tmp_path / "cache"), str(PROGRAM)),
        ],
        cwd=Path(esault.__file__).parent.parent,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    found = {int(line) for line in re.findall(r"fitting\.py:(\d+): error:", done.stdout)}
    lines = PROGRAM.read_text().splitlines()
    expected = {number for number, line in enumerate(lines, 1) if line.endswith("# misfit")}
    assert len(expected) == 17
    assert found == expected, done.stdout
