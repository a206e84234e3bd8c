"""The executors of a cluster: whether there are any, and how many cores they have."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from esault.errors import UsageError
from esault.spark.master import is_cluster

__all__ = ["cores", "on_cluster"]

#: seconds until the first executor must be there, and until all that are known to come are
_FIRST, _ALL = 120.0, 30.0
#: seconds without another executor, after which no more are waited for
_STILL = 2.0
#: application -> its cores when all its executors had come: a session has them for its next topology, too
_COME: dict[str, int] = {}


def on_cluster(spark: Any) -> bool:
    """Return whether tasks run elsewhere than in the driver's JVM."""
    return is_cluster(spark.sparkContext.master)


def cores(spark: Any, clock: Callable[[], float] = time.monotonic, wait: Callable[[float], object] = time.sleep) -> int:
    """Return how many tasks may run at once. On a cluster waits until its executors are there. Raises UsageError."""
    context = spark.sparkContext
    if not on_cluster(spark):
        return int(context.defaultParallelism)
    application = str(context.applicationId)
    found = _registered(context)
    if found < _COME.get(application, found + 1):
        found = _all(context, clock, wait)
    _COME[application] = found
    return found


def _all(context: Any, clock: Callable[[], float], wait: Callable[[float], object]) -> int:
    """Wait until all that are known to come have, or no more do."""
    expected = _expected(context.master, context.getConf())
    begun = since = clock()
    known = 0
    while True:
        now, found = clock(), _registered(context)
        if found != known:
            known, since = found, now
        if known and (known >= expected if expected else now - since >= _STILL):
            return known
        if known and now - begun > _ALL:
            return known
        if now - begun > _FIRST:
            raise UsageError(
                f"{context.master} has given no executor for {_FIRST:.0f} s: no worker has a core and the memory that is asked for "
                "(1 GiB unless set otherwise); see the master's web page, end what holds them, or ask for less with --conf "
                "spark.executor.memory=512m"
            )
        wait(0.1)


def _expected(master: str, conf: Any) -> int:
    """The cores that the settings ask for; 0: all that there are."""
    if master.startswith("local-cluster"):
        workers, each, _ = master.partition("[")[2].split(",")
        return int(workers) * int(each)
    most = conf.get("spark.cores.max", None)
    if most is not None:
        return int(most)
    return int(conf.get("spark.executor.instances", "0")) * int(conf.get("spark.executor.cores", "1"))


def _registered(context: Any) -> int:
    found = context._jsc.sc().statusStore().executorList(True)
    executors = [found.apply(i) for i in range(found.size())]
    return sum(e.totalCores() for e in executors if e.id() != "driver")
