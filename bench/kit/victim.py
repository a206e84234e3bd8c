"""The run that faults are done to: `esault run` as a user starts it, looked at through its control socket, started again when it is gone."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil

from bench.kit.cluster import Cluster
from esault.errors import UsageError
from esault.runtime.process.run_dir import living_run_dirs
from esault.runtime.session.control_client import ask
from esault.runtime.session.control_socket import NAME

__all__ = ["Lost", "Victim", "well"]

ROOT = Path(__file__).parents[2]


class Lost(Exception):
    """The run is gone or does not answer."""


class Victim:
    """One run of a topology, over as many commands as it takes; `params` are those of its function."""

    def __init__(
        self,
        folder: Path,
        exactly: bool,
        checkpoint: float,
        place: Path,
        params: dict[str, Any],
        slots: int = 24,
        *,
        name: str = "faults",
        bolts: Sequence[str] = (),
        cluster: Cluster | None = None,
    ) -> None:
        """`name` is the topology's; `bolts` may split, merge and move; `cluster`: the hosts that it runs on."""
        self.folder, self.exactly = folder, exactly
        self.name, self.bolts, self.cluster = name, tuple(bolts), cluster
        self._arguments = [
            *(cluster.prefix if cluster is not None else ()),
            *(sys.executable, "-m", "esault", "run", f"{place}:topology", "--plain", "--policy", "none"),
            *(part for name, value in params.items() for part in ("--set", f"{name}={value}")),
            *("--ackers", "1"),
            *(("--slots", str(slots)) if cluster is None else ("--hosts", str(cluster.folder / "hosts.toml"))),
        ]
        if exactly:
            self._arguments += ["--checkpoint", str(checkpoint), "--state", str(folder / "state")]
        self.process: subprocess.Popen[bytes] | None = None
        #: commands that were started
        self.commands = 0
        self._control_socket: Path | None = None
        #: when the last fault befell it, where that waited for something
        self.befallen = 0.0
        self.reports: list[dict[str, Any]] = []

    # the command -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Start it, or have another command go on."""
        self.commands += 1
        report = self.folder / f"report-{self.commands}.json"
        more = ["--resume"] if self.commands > 1 and self.exactly else []
        with (self.folder / "log.txt").open("ab") as log:
            self.process = subprocess.Popen(
                [*self._arguments, *more, "--report", str(report)],
                cwd=ROOT,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._control_socket = None

    def start_again(self) -> None:
        """End it with all its processes, and have another command go on."""
        self.end()
        while self.processes():
            time.sleep(0.01)
        self.start()

    def ended(self) -> int | None:
        """The exit code; None: it runs."""
        assert self.process is not None
        return self.process.poll()

    def wait(self, seconds: float) -> int:
        """Until it has ended. Raises Lost when it does not."""
        assert self.process is not None
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Lost(f"it did not end within {seconds:.0f} s: {self.log()}") from None

    def log(self) -> str:
        """The end of what it printed."""
        return (self.folder / "log.txt").read_text(errors="replace")[-3000:]

    def end(self) -> None:
        """Nothing of it stays."""
        if self.process is None:
            return
        for process in self.processes():
            try:
                process.kill()
            except psutil.Error:
                pass
        self.process.kill()
        self.process.wait()

    def restores(self) -> list[dict[str, Any]]:
        """Return what the reports of all commands that could write one say of going back."""
        found = []
        for path in sorted(self.folder.glob("report-*.json")):
            found += json.loads(path.read_text())["restores"]
        return found

    # looking at it ---------------------------------------------------------------------------------

    def run_dir(self) -> Path:
        """Its own folder. Raises Lost."""
        assert self.process is not None
        for path in living_run_dirs():
            if path.name.startswith(f"esault-{self.process.pid}-"):
                return path
        raise Lost("it has no folder")

    def ask(self, **request: Any) -> dict[str, Any]:
        """Ask it by its control socket. Raises Lost."""
        try:
            if self._control_socket is None:
                self._control_socket = self.run_dir() / NAME
            return next(ask(self._control_socket, request))
        except (UsageError, StopIteration) as error:
            raise Lost(str(error)) from None

    def status(self) -> dict[str, Any]:
        """Return how it is. Raises Lost."""
        return self.ask(do="status")

    def until(self, condition: Callable[[dict[str, Any]], bool], seconds: float) -> dict[str, Any]:
        """Wait until the condition holds, by its status. Raises Lost when it does not, or the command has ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                status = self.status()
                if condition(status):
                    return status
            except Lost:
                if self.ended() is not None:
                    raise
            time.sleep(0.01)
        raise Lost(f"not within {seconds:.0f} s: {self.log()}")

    def sub_units(self) -> dict[str, list[int]]:
        """Process ids by unit. Raises Lost."""
        return {unit["name"]: list(unit["processes"].values()) for unit in self.status()["units"]}

    def processes(self) -> list[psutil.Process]:
        """All of them but the command, wherever they are."""
        assert self.process is not None
        found = _below(self.process.pid)
        if self.cluster is not None:
            for node in self.cluster.nodes.values():
                found += [process for process in _below(node.pid) if _title(process).startswith(f"esault {self.name} ")]
        return found

    def titled(self, title: str) -> list[int]:
        """Process ids by what follows the topology's name in their titles."""
        begins = f"esault {self.name} {title}"
        return [process.pid for process in self.processes() if _title(process).startswith(begins)]


def well(status: dict[str, Any], last: int) -> bool:
    """Return whether all of its units run, and a checkpoint behind `last` is complete."""
    whole = status.get("phase") == "running" and all(unit["processes"] for unit in status["units"])
    return bool(whole and status["checkpoint"] > last)


def _below(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def _title(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
