"""`esault run` of one of the programs, asked through its control socket and looked at through its report."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import running_commands
import waiting
from user_programs import Program

from esault.errors import UsageError

#: tuples a second of a spout that is held
HELD = 20.0
#: by which a run that was over too early is slower when it is started again
SLOWER = 12.0
ROOT = str(Path(__file__).parents[2])


class Run:
    """One command, and all processes that came of it."""

    def __init__(self, program: Program, folder: Path) -> None:
        self.program, self.folder = program, folder
        self.process: subprocess.Popen[str] | None = None
        self._seen: dict[int, psutil.Process] = {}

    def start(self, *arguments: str, **params: Any) -> Run:
        sets = [f"--set={name}={value}" for name, value in params.items()]
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "esault",
                "run",
                str(self.program.path),
                "--plain",
                "--report",
                "r.json",
                *sets,
                *arguments,
            ],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": ROOT},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return self

    def wait(self, timeout: float = 200) -> str:
        """What it said; it must have ended well."""
        out, err = self.process.communicate(timeout=timeout)
        assert self.process.returncode == 0, err + out
        return err + out

    def report(self) -> dict[str, Any]:
        return json.loads((self.folder / "r.json").read_text())

    def tell(self, **wish: Any) -> list[dict[str, Any]]:
        """What the driver answers."""
        return running_commands.tell(self.process.pid, **wish)

    def status(self) -> dict[str, Any]:
        return running_commands.status(self.process.pid)

    def until(self, condition: Any, seconds: float = 200.0) -> Any:
        """What the condition gives at last."""
        return waiting.until(condition, seconds, self._look)

    def _look(self) -> None:
        assert self.process.poll() is None, "it has ended: " + "".join(self.process.communicate())

    def start_held(self, *arguments: str, rate: float, **params: Any) -> None:
        """Start, and have the spouts read little until `go_on`: what is done meanwhile meets a run that has not ended.

        On a machine that does much else all may be read before the first question is answered: then once more, slower.
        """
        self.start(*arguments, rate=rate, **params)
        if not self._held():
            self.wait()
            shutil.rmtree(self.folder / "out", ignore_errors=True)
            self.start(*arguments, rate=rate / SLOWER, **params)
            assert self._held(), "it has ended before it was held"

    def _held(self) -> bool:
        """Whether it was asked in time."""
        try:
            self.until(lambda: self.status().get("phase") == "running")
            self._throttle(HELD, 300.0)
        except (AssertionError, UsageError):  # it has ended, or has read all and ends
            return False
        return True

    def go_on(self) -> None:
        """Have the spouts read as fast as they would, as soon as all have gone back; a run that is over needs it no more."""
        with contextlib.suppress(AssertionError, UsageError):
            self.until(lambda: self.status().get("phase") == "running")
            self._throttle(1e9, 0.01)

    def _throttle(self, rate: float, seconds: float) -> None:
        for unit in self.program.plan(size=1).units.values():
            if unit.kind == "spout":
                self.tell(do="throttle", unit=unit.name, rate=rate, seconds=seconds)

    def processes(self, unit: str = "") -> list[psutil.Process]:
        """Those of a unit that live."""
        named, begins = [], f"esault {self.program.plan(size=1).name} {unit}"
        for process in self._all():
            try:
                title = " ".join(process.cmdline())
                if title.startswith(begins) and process.status() != psutil.STATUS_ZOMBIE:
                    named.append(process)
            except psutil.Error:
                continue
        return named

    def _all(self) -> list[psutil.Process]:
        try:
            for each in psutil.Process(self.process.pid).children(recursive=True):
                self._seen[each.pid] = each
        except psutil.Error:
            pass
        return [each for each in self._seen.values() if each.is_running()]

    def kill_all(self) -> None:
        """The command and all that it has started, at once."""
        everybody = self._all()
        self.process.kill()
        for each in everybody:
            try:
                each.kill()
            except psutil.Error:
                continue
        self.process.communicate()
        psutil.wait_procs(everybody, 5)

    def left(self) -> list[psutil.Process]:
        """Who still lives when the command has ended."""
        _, alive = psutil.wait_procs([each for each in self._seen.values() if each.is_running()], 5)
        return [each for each in alive if each.status() != psutil.STATUS_ZOMBIE]

    def end(self) -> None:
        if self.process is not None and not self.process.stdout.closed:
            self._all()
            self.process.send_signal(signal.SIGKILL)
            (self.folder / "said.txt").write_text("".join(self.process.communicate()))  # of a test that failed
        for each in self.left():
            each.kill()
