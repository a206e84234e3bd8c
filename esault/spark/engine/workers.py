"""The Pythons of workers before a run: whether they can run the topology, and what is sent to them.

A cluster is shared: its Python may be another one than the driver's, without eSault and what that needs. What is small and missing
goes along. What cannot be helped is refused here, with the remedy, and not by a traceback out of the first batch.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from esault.errors import UsageError
from esault.spark.engine.shipping import LIBRARIES, Shipped, libraries, ship
from esault.spark.executors import on_cluster
from esault.spark.worker_python import is_own
from esault.topology.located import Located
from esault.topology.plan import Plan

__all__ = ["Workers", "shared_places"]

#: modules that Spark's own workers of Python need; too large to go along
_OF_SPARK = ("pyarrow", "pandas")
_STATE = "the state folder"


def shared_places(state: Path | None, plan: Plan) -> dict[str, Path]:
    """The folders that driver and workers must both see, by what they are for."""
    found = {} if state is None else {_STATE: state}
    for each in plan.sinks:
        for path in each.sink.written_paths() if each.sink.shares_paths else ():
            folder = Path(path).absolute().parent
            while not folder.is_dir():  # it is made when the run begins
                folder = folder.parent
            found[f"sink {each.name!r} writes {path}, and"] = folder
    return found


class Workers:
    """The workers of a run: what is sent to them, and how they are looked at."""

    def __init__(self, spark: Any, located: Located, say: Callable[[str], None]) -> None:
        """`say` is told what goes along. Raises UsageError."""
        self._context = spark.sparkContext
        self._cluster = on_cluster(spark)
        self._say = say
        self.located = located
        self._environment: dict[str, str] = {}
        if self._cluster:
            # A session keeps what it was given: where another run of it ships the same, it is there.
            self._folder = Path(self._context._temp_dir)
            shipped = ship(located, self._folder)
            self.located = shipped.located
            if located.path is not None:  # what comes back from workers is of the caller's own classes
                sys.modules[str(shipped.located.module)] = located.load_module()
            self._add(shipped)

    def _add(self, shipped: Shipped) -> None:
        before = list(sys.path)
        if shipped.path.name not in self._context._python_includes:
            self._context.addPyFile(str(shipped.path))
        sys.path[:] = before  # what is imported here lies in its folder
        # A Python that has imported other files of the same names is not asked to run these.
        self._environment["ESAULT_CODE"] = shipped.code

    @contextmanager
    def chosen(self) -> Iterator[None]:
        """Have what is made in the block run in Pythons for this run."""
        environment = self._context.environment
        before = dict(environment)
        environment.update(self._environment)
        try:
            yield
        finally:
            environment.clear()
            environment.update(before)

    def check(self, cores: int, params: Mapping[str, Any], shared: Mapping[str, Path]) -> None:
        """Look at the Pythons of all workers, send what they lack, and have them build the topology. Raises UsageError.

        `shared`: what must be seen there under the same path, and what it is for.
        """
        if not self._cluster and is_own(self._context.pythonExec):
            return
        marks = [_Mark(what, folder) for what, folder in shared.items()] if self._cluster else []
        try:
            seen = self._look(cores, [str(mark.path) for mark in marks])
        finally:
            for mark in marks:
                mark.remove()
        self._check_libraries(seen)
        for mark in marks:
            for worker in seen:
                if str(mark.path) in worker["unseen"]:
                    raise UsageError(
                        f"{mark.what} {mark.folder} of this host is not what a worker on {worker['host']} finds under that path: on a "
                        "cluster it must be on storage that all hosts and this command share; name a folder there"
                        + (" with --checkpoint SECONDS --state DIR, or as TMPDIR" if mark.what == _STATE else "")
                    )
        self._check_topology(cores, params)

    def _look(self, cores: int, paths: list[str]) -> list[dict[str, Any]]:
        context = self._context
        wanted = [*LIBRARIES, *_OF_SPARK]
        # A Python that is at another place there may be on the path by its usual name.
        names = [context.pythonExec]
        if context.pythonExec == sys.executable and self._cluster:
            names.append("python3")
        for name in names:
            context.pythonExec = name
            try:
                return _run(context, cores, _looking(wanted, paths))
            except Exception as error:
                said = _what_failed(name, error)
                if said is None:
                    raise
                failed = said
        context.pythonExec = names[0]
        raise UsageError(failed)

    def _check_libraries(self, seen: list[dict[str, Any]]) -> None:
        lacking: set[str] = set()
        alike = True
        for worker in seen:
            missing = set(worker["missing"])
            same = (worker["abi"], worker["machine"]) == (_abi(), os.uname().machine)
            alike = alike and same
            where = f"the Python of a worker on {worker['host']} ({worker['executable']}, {worker['version']})"
            large = sorted(missing & set(_OF_SPARK))
            # nothing is sent to a Python on this machine, nor what was made for another one
            if large or (missing and not (same and self._cluster)):
                names = [LIBRARIES.get(name, name) for name in sorted(missing)]
                raise UsageError(
                    f"{where} lacks {', '.join(names)}: install them there (pip install {' '.join(names)}), or name a Python that has "
                    "them, by its path on the workers or by a name on their PATH: PYSPARK_PYTHON=python3"
                )
            lacking |= missing
        if lacking:
            self._say(f"workers lack {', '.join(sorted(LIBRARIES[name] for name in lacking))}: sent along")
        if self._cluster and alike:  # also for executors that come later, on hosts that were not looked at
            archive = libraries(LIBRARIES, self._folder)
            self._context.addArchive(str(archive))  # the same one once more changes nothing
            self._environment["PYTHONPATH"] = archive.name  # below the folder in which workers run

    def _check_topology(self, cores: int, params: Mapping[str, Any]) -> None:
        """Have each worker import what the topology imports."""
        if not self._cluster:
            return
        with self.chosen():
            for worker in _run(self._context, cores, _building(self.located, dict(params))):
                if worker["failed"]:
                    raise UsageError(
                        f"a worker on {worker['host']} ({worker['executable']}) cannot build the topology: {worker['failed']}; what its "
                        "files import must be installed there, and what its function reads must be there under the same path"
                    )


class _Mark:
    """A file in a folder, by which others see that it is the same one."""

    def __init__(self, what: str, folder: Path) -> None:
        self.what, self.folder = what, folder
        self.path = folder.resolve() / f".esault-{secrets.token_hex(6)}"
        self.path.touch()

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def _abi() -> str:
    return str(sysconfig.get_config_var("SOABI"))


def _run(context: Any, cores: int, function: Callable[[Any], Iterable[Any]]) -> list[Any]:
    """The function's results in all workers: tasks of a job without others are spread over all cores."""
    from pyspark import cloudpickle

    # by value: workers cannot import eSault before they are known to
    this = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(this)
    try:
        return list(context.parallelize(range(cores), cores).mapPartitions(function).collect())
    finally:
        cloudpickle.unregister_pickle_by_value(this)


def _looking(modules: list[str], paths: list[str]) -> Callable[[Any], Iterable[Any]]:
    def look(rows: Any) -> Iterable[Any]:
        import importlib.util
        import os
        import platform
        import socket
        import sys
        import sysconfig

        def missing(name: str) -> bool:
            try:
                found = importlib.util.find_spec(name)
            except ImportError:
                return True
            return found is None or found.origin is None  # a folder of that name alone, without what it should hold

        yield {
            "host": socket.gethostname(),
            "executable": sys.executable,
            "version": platform.python_version(),
            "abi": str(sysconfig.get_config_var("SOABI")),
            "machine": os.uname().machine,
            "missing": [name for name in modules if missing(name)],
            "unseen": [path for path in paths if not os.path.exists(path)],
        }

    return look


def _building(located: Any, params: dict[str, Any]) -> Callable[[Any], Iterable[Any]]:
    function, folder, cwd, module = located.function, located.folder, located.cwd, located.module

    def build(rows: Any) -> Iterable[Any]:
        import socket
        import sys

        failed = ""
        try:
            from esault.spark.engine.job import built
            from esault.topology.located import Located

            built(Located(function, folder, cwd, module=module), params)
        except Exception as error:
            failed = f"{type(error).__name__}: {error}" if isinstance(error, ImportError) else str(error)
        yield {"host": socket.gethostname(), "executable": sys.executable, "failed": failed}

    return build


def _what_failed(name: str, error: Exception) -> str | None:
    """Return why no worker could run this Python, and what to do; None: it failed with something else."""
    text = str(error)
    if "Cannot run program" in text:
        return (
            f"workers have no Python {name}: name one that they have and that has the version of this one "
            f"({sys.version_info[0]}.{sys.version_info[1]}), by its path there or by a name on their PATH: PYSPARK_PYTHON=python3"
        )
    if "PYTHON_VERSION_MISMATCH" in text:
        version = re.search(r"different version: ([\d.]+)", text)
        theirs = f" ({version[1]})" if version else ""
        return (
            f"{name} is another version of Python on the workers{theirs} than here ({sys.version_info[0]}.{sys.version_info[1]}), and Spark "
            "runs the same one on both: name one of this version that workers have, PYSPARK_PYTHON=PATH, or start the command with theirs"
        )
    return None
