"""`esault analyze --master` on a standalone cluster whose executors and workers are killed, too."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

from bench.kit.spark_cluster import SparkCluster
from bench.pipelines.trial import Trial

__all__ = ["YOUNG", "trial_on"]

#: a JVM that lives for seconds is not worth the best compiler
YOUNG = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
#: a task may fail as often as the docs say for clusters whose hosts come and go
CONF = {"spark.task.maxFailures": "20"}


def trial_on(cluster: SparkCluster, folder: Path, seed: int, rows: int) -> Trial:
    """Return a trial whose commands have this cluster. `folder` is seen by all hosts; `rows`: of a landing at most."""
    (folder / "tmp").mkdir()
    conf = [f"--conf={name}={value}" for name, value in {**cluster.conf, **CONF}.items()]
    environ = {"PYSPARK_PYTHON": "python3", "TMPDIR": str(folder / "tmp"), **YOUNG}
    options = ["--master", cluster.master, *conf]
    return Trial(folder, seed, rows, cluster.prefix, options, environ, _helpers(cluster))


def _helpers(cluster: SparkCluster) -> dict[str, Callable[[random.Random], bool]]:
    """By kind, what is killed -9 on a cluster beside the command."""

    def worker(order: random.Random) -> bool:
        name = order.choice(cluster.names)
        cluster.kill_worker(name)
        time.sleep(order.uniform(0, 3))
        cluster.start_worker(name)
        return True

    return {"an executor": lambda order: cluster.kill_executor(order.choice(cluster.names)), "a worker": worker}
