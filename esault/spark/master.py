"""The URL of a cluster, looked at before a JVM starts: a JVM says late, and at length, what is wrong with it."""

from __future__ import annotations

import contextlib
import os
import re
import socket
from collections.abc import Mapping

from esault.errors import UsageError
from esault.spark.spark_defaults import spark_defaults

__all__ = ["check_master", "is_cluster", "master_of"]

#: seconds to wait for a cluster to take a connection
_PATIENCE = 3.0

_LOCAL = re.compile(r"local(\[(\d+|\*)( *, *\d+)?\])?|local-cluster\[ *\d+ *, *\d+ *, *\d+ *\]")
_STANDALONE = re.compile(r"spark://[^,/:\s]+:\d+(,[^,/:\s]+:\d+)*")
_OTHERS = re.compile(r"yarn|k8s://\S+")


def master_of(master: str | None, conf: Mapping[str, str]) -> str:
    """Return the URL that a session would have: what is asked for, what the settings say, or all cores of this machine."""
    return master or conf.get("spark.master") or spark_defaults(os.environ).get("spark.master") or "local[*]"


def is_cluster(url: str) -> bool:
    """Return whether tasks run elsewhere than in the driver's JVM."""
    return not url.startswith("local") or url.startswith("local-cluster")


def check_master(master: str) -> None:
    """Raise UsageError where `master` is no URL that Spark knows, or none of the hosts of spark://... takes a connection."""
    if _STANDALONE.fullmatch(master):
        _check_reachable(master)
    elif master.startswith("sc://"):
        raise UsageError(
            f"--master {master}: a server of Spark Connect takes queries, and not the files that workers run, nor the settings that this "
            "needs when Spark starts; name the cluster that is behind it: spark://HOST:PORT, yarn, k8s://HOST:PORT"
        )
    elif not (_LOCAL.fullmatch(master) or _OTHERS.fullmatch(master)):
        raise UsageError(
            f"--master {master}: Spark knows no such URL; write spark://HOST:PORT, yarn, k8s://HOST:PORT, or local[*] for all "
            "cores of this machine"
        )


def _check_reachable(master: str) -> None:
    said = []
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        try:
            with contextlib.closing(socket.create_connection((host, int(port)), _PATIENCE)):
                return
        except (OSError, OverflowError) as error:
            said.append(f"{place}: {getattr(error, 'strerror', None) or error}")
    raise UsageError(
        f"--master {master}: no master of Spark can be reached ({'; '.join(said)}); see that it runs and that the port is "
        "its own (7077 unless set otherwise), not that of its web page"
    )
