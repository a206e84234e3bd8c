"""A standalone cluster of Spark on this machine: a master and workers, each in a namespace with a /tmp of its own where those can be made.

The classes are those of the pyspark that is installed. Processes are ended by their ids.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import psutil

from bench.kit.namespaces import Namespaces
from esault.spark.class_archive import archived
from esault.spark.java import find_java
from esault.spark.worker_python import worker_python

__all__ = ["SparkCluster"]

_PACKAGE = "org.apache.spark.deploy"
#: seconds until master and workers must be there
_PATIENCE = 300.0
#: of JVMs that live for minutes beside many others
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class SparkCluster:
    """A context manager. `folder`: of logs and work, seen by all; `pythons`: worker -> the folder of its `python3`, before all on its PATH;
    the others have this Python.

    `prefix` is what a command of the driver begins with, `master` the URL for it. Where namespaces cannot be made, all is on loopback,
    with one /tmp.
    """

    def __init__(
        self,
        folder: Path,
        workers: int = 2,
        cores: int = 1,
        memory: str = "2g",
        pythons: Mapping[int, str | Path] | None = None,
    ) -> None:
        self.folder = folder
        self._cores, self._memory = cores, memory
        self._pythons = dict(pythons or {})
        self.names = tuple(f"w{number}" for number in range(workers))
        self._spaces = Namespaces(("driver", "master", *self.names))
        self.namespaces = self._spaces.made
        self.prefix = self._spaces.prefix("driver")
        self._port = 7077 if self.namespaces else _free_port()
        self.master = f"spark://{self._spaces.address('master')}:{self._port}"
        found = importlib.util.find_spec("pyspark")
        assert found is not None and found.submodule_search_locations
        self._home = str(found.submodule_search_locations[0])
        self._java_home = find_java(os.environ).home
        self._java = f"{_JAVA} {archived({**os.environ, 'JAVA_HOME': self._java_home})}".strip()
        #: settings for the driver, which cost executors less
        self.conf = {"spark.executor.extraJavaOptions": f"{self._java} -Xss8m"}
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self._master: subprocess.Popen[bytes] | None = None

    def _start(self, host: str, cls: str, *arguments: str, python: str | Path | None = None) -> subprocess.Popen[bytes]:
        own = self.folder / host
        for part in ("tmp", "local", "work"):
            (own / part).mkdir(parents=True, exist_ok=True)
        environ = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SPARK_", "PYSPARK_", "PYTHON")) and name != "TMPDIR"
        }
        environ |= {
            "JAVA_HOME": self._java_home,
            "SPARK_HOME": self._home,
            "SPARK_DAEMON_MEMORY": "256m",
            # an application may lose as many executors as it will
            "SPARK_DAEMON_JAVA_OPTS": f"{self._java} -Dspark.deploy.maxExecutorRetries=-1",
            "SPARK_LOCAL_DIRS": str(own / "local"),
        }
        if python is not None:
            environ["PATH"] = f"{python}{os.pathsep}{environ['PATH']}"
        with (own / "log.txt").open("ab") as log:
            return subprocess.Popen(
                [
                    *self._spaces.prefix(host, own / "tmp"),
                    os.path.join(self._home, "bin", "spark-class"),
                    f"{_PACKAGE}.{cls}",
                    *("--host", self._spaces.address(host), "--webui-port", "0"),
                    *arguments,
                ],
                cwd=own,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def start_worker(self, name: str) -> None:
        """Start a worker, also one that was killed."""
        self.workers[name] = self._start(
            name,
            "worker.Worker",
            *("--cores", str(self._cores), "--memory", self._memory, "--work-dir", str(self.folder / name / "work")),
            self.master,
            python=self._pythons.get(self.names.index(name)) or self._own_python(),
        )

    def _own_python(self) -> Path:
        """Return a folder whose `python3` is this Python, made quick to start."""
        programs = self.folder / "programs"
        if not programs.exists():
            programs.mkdir(parents=True)
            (programs / "python3").symlink_to(worker_python(self.folder))
        return programs

    def __enter__(self) -> SparkCluster:
        try:
            self._master = self._start("master", "master.Master", "--port", str(self._port))
            self._until("master", "I have been elected leader", 1)
            for name in self.names:
                self.start_worker(name)
            for name in self.names:
                self._until(name, "Successfully registered with master", 1)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _until(self, host: str, said: str, times: int) -> None:
        log, end = self.folder / host / "log.txt", time.monotonic() + _PATIENCE
        while log.read_text(errors="replace").count(said) < times:
            if time.monotonic() > end:
                raise TimeoutError(f"{host} of Spark: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.1)

    def __exit__(self, *what: object) -> None:
        for process in filter(None, [*self.workers.values(), self._master]):
            _kill_tree(process)
        self._spaces.remove()

    # what faults are done to -----------------------------------------------------------------------

    def executors(self, worker: str) -> list[psutil.Process]:
        """The JVMs that a worker has started."""
        try:
            found = psutil.Process(self.workers[worker].pid).children()
        except psutil.Error:
            return []
        return [process for process in found if "CoarseGrainedExecutorBackend" in _command_of(process)]

    def kill_executor(self, worker: str) -> bool:
        """Kill -9 an executor and its Pythons; whether there was one."""
        running = self.executors(worker)
        for process in running:
            _kill(process)
        return bool(running)

    def kill_pythons(self, worker: str) -> bool:
        """Kill -9 the Pythons of an executor; whether there were any."""
        killed = False
        for process in self.executors(worker):
            for python in process.children(recursive=True):
                killed = True
                try:
                    python.kill()
                except psutil.Error:
                    pass
        return killed

    def kill_worker(self, worker: str) -> None:
        """Kill -9 a worker with all that it has started."""
        _kill_tree(self.workers[worker])


def _command_of(process: psutil.Process) -> str:
    """Return its command line; of one that is gone, or that its parent has not waited for, such as the shell that started Java, nothing."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _kill(process: psutil.Process) -> None:
    try:
        below = process.children(recursive=True)
    except psutil.Error:
        below = []
    for each in (process, *below):
        try:
            each.kill()
        except psutil.Error:
            pass


def _kill_tree(process: subprocess.Popen[bytes]) -> None:
    try:
        _kill(psutil.Process(process.pid))
    except psutil.Error:
        pass
    process.wait()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
