from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.typing.records import fitting

PROGRAMS = {
    Path(__file__).with_name(f"{name}.py"): n for name, n in {"fitting": 18, "records": 17, "own_names": 1}.items()
}

#: libraries that the engine imports, or its libraries, of which nothing stands in what users write: half of the time
NOT_IN_OUR_TYPES = (
    *("IPython", "matplotlib", "rich", "aiohttp", "yarl", "multidict", "opentelemetry"),
    *("cryptography", "prometheus_client", "requests", "urllib3", "idna", "charset_normalizer", "markdown_it"),
)


@pytest.mark.slow
def test_a_type_checker_finds_exactly_the_units_that_do_not_fit(tmp_path):
    # No more of a configuration, so that the test says the same in every checkout.
    skipped = "".join(f"[mypy-{library}.*]\nfollow_imports = skip\n" for library in NOT_IN_OUR_TYPES)
    (tmp_path / "mypy.ini").write_text(f"[mypy]\n{skipped}")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--show-error-codes"),
            *("--config-file", str(tmp_path / "mypy.ini"), "--no-incremental"),
            *(shutil.copy(program, tmp_path) for program in PROGRAMS),
        ],
        # A user's folder: esault is found where it is installed, also as `pip install -e .` does it.
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    for program, misfits in PROGRAMS.items():
        found = {int(line) for line in re.findall(rf"{program.name}:(\d+): error:", done.stdout)}
        lines = program.read_text().splitlines()
        expected = {number for number, line in enumerate(lines, 1) if line.endswith("# misfit")}
        assert len(expected) == misfits
        assert found == expected, done.stdout


def test_typed_units_are_built_as_others_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert list(fitting().plan().units)[:4] == ["orders", "price", "pack", "tell"]
