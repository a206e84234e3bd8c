"""The URL of a cluster, looked at before a JVM starts: a JVM says late, and at length, what is wrong with it."""

from __future__ import annotations

import contextlib
import re
import socket

from esault.errors import UsageError

__all__ = ["check_master"]

#: seconds to wait for a cluster to take a connection
_PATIENCE = 3.0

_LOCAL = re.compile(r"local(\[(\d+|\*)( *, *\d+)?\])?|local-cluster\[ *\d+ *, *\d+ *, *\d+ *\]")
_STANDALONE = re.compile(r"spark://[^,/:\s]+:\d+(,[^,/:\s]+:\d+)*")
_OTHERS = re.compile(r"yarn|k8s://\S+")


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
