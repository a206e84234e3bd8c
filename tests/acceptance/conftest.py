"""Runs of the command line in processes of their own, and what they leave behind."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

sys.path.insert(0, str(Path(__file__).parent))  # tests here share what they look at

FLOWS = str(Path(__file__).with_name("flows.py"))
ROOT = str(Path(__file__).parents[2])


class Command:
    """`esault run` of one of the flows, under a name that no other run has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = f"t{secrets.token_hex(4)}"
        self.process: subprocess.Popen[str] | None = None
        #: what the command begins with, such as to run it elsewhere
        self.prefix: tuple[str, ...] = ()

    def start(self, function: str, *arguments: str, stdin=subprocess.DEVNULL, **params: object) -> Command:
        place = function if ":" in function else f"{FLOWS}:{function}"
        sets = [f"--set={k}={v}" for k, v in {"name": self.name, **params}.items()]
        self.process = subprocess.Popen(
            [*self.prefix, sys.executable, "-m", "esault", "run", place, "--plain", *sets, *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": ROOT},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return self

    def run(self, function: str, *arguments: str, timeout: float = 60, **params: object) -> tuple[int, str, str]:
        return self.start(function, *arguments, **params).wait(timeout)

    def wait(self, timeout: float = 60) -> tuple[int, str, str]:
        assert self.process is not None
        out, err = self.process.communicate(timeout=timeout)
        return self.process.returncode, out, err

    def processes(self, unit: str = "") -> list[psutil.Process]:
        """Living processes of this run, by their titles."""
        found = []
        for process in psutil.process_iter():
            try:
                title = " ".join(process.cmdline())
                if title.startswith(f"esault {self.name} {unit}") and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def until(self, condition, seconds: float = 60.0):
        """Wait until the condition gives something, and give that."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = condition()
            if found:
                return found
            time.sleep(0.02)
        raise AssertionError(f"not within {seconds} s")

    def end(self) -> None:
        if self.process is not None and not self.process.stdout.closed:
            self.process.send_signal(signal.SIGKILL)
            (self.folder / "said.txt").write_text("".join(self.process.communicate()))  # of a test that failed
        for process in self.processes():
            process.kill()


@pytest.fixture
def command(tmp_path):
    made = Command(tmp_path)
    yield made
    made.end()


@pytest.fixture
def nodes(tmp_path):
    from nodes import Nodes

    made = Nodes(tmp_path)
    yield made
    made.end()


@pytest.fixture
def other_command(tmp_path):
    made = Command(tmp_path)
    yield made
    made.end()
