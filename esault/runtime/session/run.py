"""The way into a run on each engine, to its end and its report, for programs and the command."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

from esault.control.run.restart_strategy import strategy_of
from esault.errors import TopologyFailed, UsageError
from esault.messages.delivery import Delivery
from esault.messages.settings import Settings
from esault.report import Report
from esault.runtime.session.learned import check_folder, keep
from esault.runtime.session.request import SLOTS, Quiet, Request
from esault.runtime.session.session import Session, new_run
from esault.topology.located import Located

__all__ = ["execute", "with_checkpoints"]

ENGINES = ("actors", "local", "spark")


def with_checkpoints(
    settings: Settings, every: float | None, timeout: float | None = None, aligned_timeout: float | None = None
) -> Settings:
    """The settings of a run with checkpoints every so many seconds; None: without. Raises UsageError.

    `timeout` and `aligned_timeout` are seconds, as `checkpoint_timeout` and `aligned_checkpoint_timeout` of `Settings`.
    """
    if timeout is not None or aligned_timeout is not None:
        if every is None:
            raise UsageError("timeouts of checkpoints are about checkpoints: say how often with --checkpoint SECONDS")
        if timeout is not None:
            settings = replace(settings, checkpoint_timeout=timeout)
        if aligned_timeout is not None:
            settings = replace(settings, aligned_checkpoint_timeout=aligned_timeout)
    if not settings.checkpoint_timeout > 0 or not settings.aligned_checkpoint_timeout >= 0:
        raise UsageError(
            f"a checkpoint is given up after {settings.checkpoint_timeout:g} s, unaligned after "
            f"{settings.aligned_checkpoint_timeout:g} s: the first number must be above 0, the second at least 0"
        )
    if every is None:
        return settings
    if not every > 0:
        raise UsageError(f"a checkpoint every {every} seconds: the number must be above 0")
    if settings.delivery is Delivery.NONE:
        raise UsageError("with acks off there are no checkpoints: leave one of them out")
    return replace(settings, delivery=Delivery.EXACTLY_ONCE, checkpoint_every=every)


#: seconds; sub-units report four times in one
SHORTEST_HEARTBEAT = 1.0


def execute(request: Request) -> Report:
    """Run what was asked for; the report is also written when the run fails. Raises as `run` does."""
    if request.engine not in ENGINES:
        known = ", ".join(ENGINES[:-1]) + f" or {ENGINES[-1]}"
        raise UsageError(f"there is no engine {request.engine!r} in this version: it is {known}")
    if request.settings.heartbeat_timeout and not request.settings.heartbeat_timeout >= SHORTEST_HEARTBEAT:
        raise UsageError(
            f"a process is replaced after {request.settings.heartbeat_timeout:g} s without a word: at least "
            f"{SHORTEST_HEARTBEAT:g} s, and more than any tuple takes; 0 for never"
        )
    strategy_of(request.settings.restart_strategy, request.settings.delivery is Delivery.EXACTLY_ONCE)
    if request.seconds is not None and not request.seconds > 0:
        raise UsageError(f"seconds must be above 0, not {request.seconds}")
    if request.master is not None and request.engine != "spark":
        raise UsageError(f"--master {request.master} is for --engine spark")
    if request.conf and request.engine != "spark":
        raise UsageError(f"--conf {next(iter(request.conf))}=... is for --engine spark")
    if request.land_metrics is not None and request.engine == "spark":
        raise UsageError("--land-metrics is for the engines actors and local: Spark has metrics of its own")
    if request.learn is not None and request.engine != "actors":
        raise UsageError(f"--learn is for the engine actors: on {request.engine} nothing scales units")
    if request.engine != "actors" and (request.hosts is not None or request.key is not None):
        raise UsageError(f"the engine {request.engine!r} does not run on nodes: leave hosts and key out")
    for option, asked in (("--control", request.control), ("--audit", request.audit)):
        if asked is not None and request.engine != "actors":
            raise UsageError(f"{option} {asked} is for the engine actors: a run on {request.engine} takes no requests")
    if request.priority is not None and request.hosts is None:
        raise UsageError(
            f"--priority {request.priority} says who gets slots of nodes first: name them with --hosts hosts.toml, or leave it out"
        )
    if request.priority is not None and request.slots is not None:
        raise UsageError(
            f"--priority and --slots {request.slots}: what the run holds follows its load; say --budget {request.slots} for the most"
        )
    if request.scale_to_zero is not None:
        _check_scale_to_zero(request, request.scale_to_zero)
    if request.learn is not None:
        check_folder(request.learn)
    if request.report is not None:
        _check_writable(Path(request.report))
    try:
        report = {"local": _local, "actors": _actors, "spark": _spark}[request.engine](request)
    except TopologyFailed as error:
        if request.report is not None and isinstance(error.report, Report):
            try:
                error.report.write(request.report)
            except OSError as unwritten:
                raise TopologyFailed(f"{error}\n{_unwritten(request.report, unwritten)}", error.report) from error
        raise
    if request.learn is not None:
        keep(request.learn, report, (request.view or Quiet()).notice)
    if request.report is not None:
        try:
            report.write(request.report)
        except OSError as error:
            raise TopologyFailed(f"{_unwritten(request.report, error)}, and says:\n{report}", report) from error
    return report


def _check_scale_to_zero(request: Request, seconds: float) -> None:
    if request.engine != "actors":
        raise UsageError(f"--scale-to-zero is for the engine actors, not {request.engine}: leave it out")
    if not seconds > 0:
        raise UsageError(f"--scale-to-zero {seconds:g}: say after how many seconds without a tuple, above 0")
    if not request.settings.checkpoint_every > 0:
        raise UsageError(
            f"--scale-to-zero {seconds:g}: what is left while nothing runs is a checkpoint: say how often with --checkpoint SECONDS"
        )


def _unwritten(path: str | Path, error: OSError) -> str:
    return f"the report of the run, which is over, cannot be written to {path} ({error.strerror or error})"


def _actors(request: Request) -> Report:
    if request.scale_to_zero is not None:
        from esault.runtime.session.scale_to_zero import run_scaled_to_zero

        return run_scaled_to_zero(request)
    return Session(request).run()


def _local(request: Request) -> Report:
    from esault.runtime.session.local_run import run_local

    return run_local(request)


def _spark(request: Request) -> Report:
    if request.from_savepoint is not None:
        raise UsageError("--from-savepoint is for the engines actors and local: Spark keeps state in a form of its own")
    from esault.spark.session import require_pyspark

    require_pyspark()
    from esault.spark.engine.run import SparkRun

    assert isinstance(request.topology, Located)
    return SparkRun(
        located=request.topology,
        params=request.params,
        run_id=new_run(),
        settings=request.settings,
        parallelism=request.parallelism,
        policies=request.policies,
        slots=request.slots or SLOTS,
        seconds=request.seconds,
        view=request.view or Quiet(),
        state=request.state,
        resume=request.resume,
        restart=request.restart,
        master=request.master,
        conf=request.conf,
    ).run()


def _check_writable(path: Path) -> None:
    """A report that cannot be written is found before anything starts. Raises UsageError.

    A report replaces what is at its path: that may be a file, never a device, a pipe or a link, nor is any of them opened.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            kind = path.lstat().st_mode
        except FileNotFoundError:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            path.unlink()
            return
        if not stat.S_ISREG(kind):
            raise UsageError(f"the report cannot be written to {path}: that is no regular file; name another path")
        if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
            raise UsageError(f"the report cannot be written to {path}: it may not be written by this user")
    except OSError as error:
        raise UsageError(f"the report cannot be written to {path}: {error.strerror or error}") from None
