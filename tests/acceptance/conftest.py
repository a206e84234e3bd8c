"""Runs of the command line in processes of their own, and what they leave behind."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import esault_command
import in_process
import psutil
import pytest
import running_commands
import waiting

from esault.errors import UsageError

sys.path.insert(0, str(Path(__file__).parent))  # tests here share what they look at
from nodes import Nodes

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
        asked = ("run", place, "--plain", *sets, *arguments)
        pipes = {"stdin": stdin, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        if self.prefix:
            python = [*self.prefix, sys.executable, "-m", "esault", *asked]
            variables = {**os.environ, "PYTHONPATH": ROOT}
            self.process = subprocess.Popen(python, cwd=self.folder, env=variables, text=True, **pipes)
        else:
            self.process = esault_command.start(*asked, cwd=self.folder, **pipes)
        return self

    def run(
        self, function: str, *arguments: str, timeout: float = waiting.PATIENCE, **params: object
    ) -> tuple[int, str, str]:
        return self.start(function, *arguments, **params).wait(timeout)

    def refused(self, function: str, *arguments: str, **params: object) -> tuple[int, str, str]:
        """Run what begins nothing in this process: without the start of a Python."""
        sets = [f"--set={k}={v}" for k, v in {"name": self.name, **params}.items()]
        before = os.getcwd()
        os.chdir(self.folder)
        try:
            return in_process.esault("run", f"{FLOWS}:{function}", "--plain", *sets, *arguments)
        finally:
            os.chdir(before)

    def wait(self, timeout: float = waiting.PATIENCE) -> tuple[int, str, str]:
        assert self.process is not None
        out, err = self.process.communicate(timeout=timeout)
        return self.process.returncode, out, err

    def status(self) -> dict[str, Any]:
        """As `esault status --json` gives it; {} where there is none."""
        assert self.process is not None
        return running_commands.status(self.process.pid)

    def tell(self, **request: Any) -> list[dict[str, Any]]:
        """What the run answers."""
        assert self.process is not None
        return running_commands.tell(self.process.pid, **request)

    def scale(self, unit: str, n: int) -> None:
        """To so many sub-units, and wait until it is done."""
        assert self.tell(do="scale", unit=unit, n=n)[-1]["done"]

    def scaled(self, unit: str, n: int) -> bool:
        """Do the same; whether it could be done now."""
        try:
            self.scale(unit, n)
        except UsageError:
            return False
        return True

    def running(self) -> None:
        """Wait until it runs; one that ends before says why."""
        waiting.until(lambda: self.status().get("phase") == "running", look=self.goes_on)

    def goes_on(self) -> None:
        """Fail with what it said if it has ended."""
        assert self.process is not None
        assert self.process.poll() is None, "".join(self.process.communicate())

    def stop(self) -> tuple[int, str, str]:
        """Have it drain, and wait for its end."""
        self.tell(do="stop")
        return self.wait()

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

    def until(self, condition, seconds: float = waiting.PATIENCE):
        """Wait until the condition gives something, and give that."""
        return waiting.until(condition, seconds)

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
    made = Nodes(tmp_path)
    yield made
    made.end()


@pytest.fixture
def other_command(tmp_path):
    made = Command(tmp_path)
    yield made
    made.end()
