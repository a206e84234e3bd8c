"""A Spark session of our own: quiet, small, and gone for sure when it is over.

It is one module of over 300 lines: settings, environment and the watch over Java begin and end together.
"""

from __future__ import annotations

import collections
import contextlib
import importlib.util
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from esault.errors import EsaultError, TopologyFailed, UsageError
from esault.spark.class_archive import class_archive
from esault.spark.failure import JavaDied, failures, java_death, quiet_at_its_end, said, told_once, without_told
from esault.spark.folder import temporary_folder
from esault.spark.java import use_java
from esault.spark.master import check_master, master_of
from esault.spark.spark_defaults import spark_defaults
from esault.spark.worker_python import start_path, worker_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["require_pyspark", "session"]

#: the oldest Spark on which all of this runs
OLDEST = (4, 1)
#: seconds that the JVM has to go by itself, and then once more after it was asked to
_PATIENCE = 10.0

#: Spark's own log goes into a file, of which the end is shown when it does not start; stderr is for user code
_LOG4J = """rootLogger.level = error
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {path}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{HH:mm:ss}} %p %c{{1}}: %m%n%ex
"""

#: what the JVM and Spark say at every start
_NOISE = (
    *("WARNING: Using incubator modules", "WARNING: A terminally deprecated method", "WARNING: sun.misc.Unsafe"),
    *("WARNING: Please consider reporting this", "WARNING: A restricted method", "WARNING: Restricted methods"),
    *("WARNING: java.lang.", "WARNING: Use --enable-native-access", "Picked up ", "NOTE: Picked up "),
    *("Starting Streaming TransformWithState", "Streaming TransformWithState"),
    *("Setting default log level to ", "To adjust logging level use ", "Using Spark's default log4j profile"),
    "SLF4J: ",
)


def require_pyspark() -> None:
    """UsageError, with the remedy, when pyspark is not installed, or too old."""
    if importlib.util.find_spec("pyspark") is None:
        raise UsageError("this needs pyspark: pip install 'esault[spark]'")
    from importlib import metadata  # brings much, and workers import this module without asking

    with contextlib.suppress(metadata.PackageNotFoundError):  # one that came with a cluster may have none
        version = metadata.version("pyspark")
        number = re.match(r"(\d+)\.(\d+)", version)
        if number is not None and tuple(map(int, number.groups())) < OLDEST:
            raise UsageError(
                f"this needs pyspark {'.'.join(map(str, OLDEST))} or newer, and {version} is installed: pip install 'esault[spark]'"
            )


@contextlib.contextmanager
def session(
    master: str | None = None,
    *,
    name: str = "esault",
    say: Callable[[str], None] = lambda text: None,
    paths: Iterable[str] = (),
    conf: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """A session for the time of the block: `with session() as spark: ...`.

    `master` is a URL, by default that of spark-defaults.conf, or all cores of this machine; `paths` are folders from which the workers may import, such
    as the topology's; `conf` goes over spark-defaults.conf, and that over what is set here; `say` is told what takes time. A session that the process has
    already, as in a notebook, is used and left running. UsageError when pyspark or a Java is missing, or Spark does
    not start; EsaultError in place of what Spark raises in the block, JavaDied where its process has ended.
    """
    require_pyspark()
    running = _running()
    if running is not None:
        if not hasattr(running, "_jvm"):
            raise UsageError(
                "this process has a session of Spark Connect, which takes queries alone: start one on the cluster itself, by "
                "esault.spark.session(MASTER) in a process of its own"
            )
        yield running
        return
    if master is not None:
        check_master(master)
    named = os.environ.get("PYSPARK_PYTHON")
    with temporary_folder() as folder, _environment(paths, say), told_once():
        settings = _conf(master, name, str(folder), conf or {})
        if settings["spark.master"].startswith("local"):
            if named is None:
                os.environ["PYSPARK_PYTHON"] = worker_python(folder)
        else:
            _lead_path(folder, named)
        with class_archive(os.environ, say) as classes:
            options = f"{settings['spark.driver.extraJavaOptions']} {classes.options}"
            settings["spark.driver.extraJavaOptions"] = options.strip()
            jvm = _Jvm(str(folder), settings, classes.patience)
            try:
                if (page := jvm.page) is not None:
                    say(f"Spark's web page: {page}")
                yield jvm.session()
            except TopologyFailed:  # it says why, and has a report
                raise
            except Exception as error:
                if (died := jvm.death()) is not None:
                    raise JavaDied(died) from None
                if not isinstance(error, failures()):
                    raise
                # it can tell what it is only as long as the JVM lives
                raise EsaultError(f"Spark: {said(error)}").with_traceback(error.__traceback__) from None
            finally:
                classes.announce()
                jvm.stop()
                classes.written()


def _running() -> SparkSession | None:
    """Return the session that there is, also where another thread has made it, in which alone it is active; None: there is none."""
    from pyspark.sql import SparkSession

    made = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    # one whose context was stopped, and not it, is still named
    return None if made is None or (hasattr(made, "_sc") and made._sc._jsc is None) else made


@contextlib.contextmanager
def _environment(paths: Iterable[str], say: Callable[[str], None]) -> Iterator[None]:
    """The environment that the JVM, and the workers it starts, get: a Java, this Python, and where to import from:
    eSault itself and `paths`. As before afterwards."""
    before = dict(os.environ)
    own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    folders = [*map(os.path.abspath, paths), own, *filter(None, [before.get("PYTHONPATH")])]
    try:
        java = use_java(os.environ, say)
        say(f"starting Spark (Java {java.version}, {java.source}) ...")
        os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(folders))
        yield
    finally:
        for name in {*os.environ, *before}:
            # those that are set here, and those that pyspark sets
            if name in ("JAVA_HOME", "PATH", "PYTHONPATH") or name.startswith(("SPARK_", "PYSPARK_")):
                os.environ.pop(name, None)
                if name in before:
                    os.environ[name] = before[name]


def _lead_path(folder: Path, named: str | None) -> None:
    """Have a bare name, such as `python3`, be this Python on this host. Spark runs what workers run here, too: to plan data sources.

    It gives such a Python ten seconds to start.
    """
    name = "python3" if named is None or os.sep in named else named
    programs = folder / "programs"
    programs.mkdir()
    (programs / name).symlink_to(worker_python(folder))
    os.environ["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
    first = start_path(folder)
    if first is not None:
        os.environ["PYTHONPATH"] = f"{first}{os.pathsep}{os.environ['PYTHONPATH']}"


def _conf(master: str | None, name: str, folder: str, conf: Mapping[str, str]) -> dict[str, str]:
    """The settings of a small session; those that start with the JVM are among them."""
    log4j = os.path.join(folder, "log4j2.properties")
    with open(log4j, "w", encoding="utf-8") as file:
        file.write(_LOG4J.format(path=os.path.join(folder, "spark.log")))
    theirs = spark_defaults(os.environ)
    url = master_of(master, conf)
    settings = {
        "spark.app.name": name,
        # people of a cluster look there
        "spark.ui.enabled": "false" if url.startswith("local") else "true",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": os.path.join(folder, "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        # tables here are megabytes: as many pieces as cores, not the 200 of a cluster
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # what a log names is read without asking the file system in a job of its own
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
        # parts hold instants by the calendar of today, also before 1900
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    }
    if url.startswith("local"):
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = "127.0.0.1"
    settings |= {**theirs, **conf, "spark.master": url}
    if settings.get("spark.sql.catalogImplementation") == "hive" and "spark.sql.warehouse.dir" not in {
        **theirs,
        **conf,
    }:
        # a metastore remembers where its databases are: not in a folder that goes with this session
        del settings["spark.sql.warehouse.dir"]
    options = f"-Dlog4j2.configurationFile=file:{log4j} -Djava.io.tmpdir={folder}"
    settings["spark.driver.extraJavaOptions"] = f"{options} {settings.get('spark.driver.extraJavaOptions', '')}".strip()
    return settings


class _Jvm:
    """The process in which Spark runs, and the way to it."""

    def __init__(self, folder: str, settings: Mapping[str, str], patience: float = 0.0) -> None:
        from pyspark import SparkConf, SparkContext
        from pyspark.java_gateway import launch_gateway

        self._log = os.path.join(folder, "spark.log")
        self._master = settings["spark.master"]
        self._patience = _PATIENCE + patience
        self._tail: collections.deque[str] = collections.deque(maxlen=20)
        conf = SparkConf(loadDefaults=False)
        for key, value in settings.items():
            conf.set(key, value)
        pipe_out, pipe_in = os.pipe()
        self._reader = threading.Thread(
            target=self._forward, args=(os.fdopen(pipe_out, errors="replace"),), daemon=True
        )
        self._reader.start()
        try:
            self._gateway: Any = launch_gateway(conf, {"stdout": pipe_in, "stderr": pipe_in})
        except Exception as error:
            raise self._failed(error) from None
        finally:
            os.close(pipe_in)
        self._process: subprocess.Popen[bytes] = self._gateway.proc
        try:
            SparkContext._ensure_initialized(gateway=self._gateway, conf=conf)
            self._context = SparkContext(conf=conf, gateway=self._gateway)
            quiet_at_its_end(self._context._accumulatorServer)
        except BaseException as error:
            self.stop()
            if isinstance(error, Exception):
                raise self._failed(error) from None
            raise

    def death(self) -> str | None:
        """Return how it ended, for people; None while it answers."""
        return java_death(self._gateway)

    @property
    def page(self) -> str | None:
        """Return the address of Spark's own web page; None where it has none."""
        page = self._context.uiWebUrl
        return None if page is None else str(page)

    def session(self) -> SparkSession:
        from pyspark.sql import SparkSession

        return SparkSession(self._context)

    def _forward(self, stream: IO[str]) -> None:
        """Pass on what the JVM and the Python workers print, without what the JVM says at each start."""
        empty = noise = False
        with stream:
            for line in without_told(self._kept(stream)):
                if line.startswith(_NOISE):
                    empty, noise = False, True
                elif line == "\n" and not empty:  # some of the noise stands between empty lines
                    empty = not noise
                    noise = False
                else:
                    print(("\n" if empty else "") + line, end="", file=sys.stderr, flush=True)
                    empty = noise = False

    def _kept(self, stream: IO[str]) -> Iterator[str]:
        """The lines, with the last ones kept for `_failed`."""
        for line in stream:
            self._tail.append(line.rstrip())
            yield line

    def _failed(self, error: Exception) -> UsageError:
        with contextlib.suppress(OSError), open(self._log, errors="replace") as file:
            self._tail.extend(line.rstrip() for line in collections.deque(file, maxlen=10))
        tail = "\n".join(self._tail)
        return UsageError(f"Spark did not start on {self._master}: {said(error)}\n{tail}".rstrip())

    def stop(self) -> None:
        """Stop Spark, and wait until its process is gone: asked first, killed if it must be."""
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        with contextlib.suppress(Exception):  # whatever is broken by now, the process goes below
            running = SparkSession.getActiveSession()
            if running is not None:
                running.stop()
        for _ in range(2):  # where Java is gone the first time ends with asking it, the second one does not ask
            with contextlib.suppress(Exception):
                self._context.stop()
        SparkContext._active_spark_context = SparkSession._instantiatedSession = None  # for later sessions
        with contextlib.suppress(Exception):
            self._gateway.shutdown()
        # a later session in this process starts a JVM of its own
        SparkContext._gateway = SparkContext._jvm = None
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()  # the JVM ends when it reads the end of this
        for insist in (self._process.terminate, self._process.kill, self._process.wait):
            try:
                self._process.wait(self._patience)
                break
            except subprocess.TimeoutExpired:
                insist()
        self._reader.join(_PATIENCE)
