"""The data path is no slower than it was when its baseline was made: counts, and ratios within one process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


def test_the_data_path_is_as_quick_as_its_baseline(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "bench.smoke", "--quick", "--out", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    verdicts = {line["verdict"] for line in json.loads((tmp_path / "result.json").read_text())["lines"]}
    if "no baseline" in verdicts:
        pytest.skip(f"ratios alone were compared: {done.stdout.splitlines()[-2]}")
    assert verdicts <= {"same", "gain", "skipped"}
