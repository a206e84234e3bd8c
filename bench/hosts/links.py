"""The cost of a frame between two processes: a stream socket of Unix within a host, TLS between hosts.

    python -m bench.hosts.links KIND SIZE FRAMES FOLDER

A process sends FRAMES frames of SIZE bytes to another as fast as that reads; prints JSON: frames a second, and microseconds of
processor for each frame on either side.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from esault.cluster.key import ClusterKey
from esault.runtime.net.inlets import Inlet
from esault.runtime.net.links import UnixWire
from esault.runtime.net.secure_inlets import HostInlet
from esault.runtime.net.secure_links import HostWire


def receive(inlet: Inlet, frames: int, out: int) -> None:
    got = 0

    def take(frame: memoryview) -> None:
        nonlocal got
        got += 1

    began = 0.0
    while got < frames:
        inlet.wait(1.0)
        inlet.read(take)
        if got and not began:
            began = time.process_time()
    os.write(out, json.dumps([time.process_time() - began, time.monotonic()]).encode())
    os._exit(0)


def main(kind: str, size: int, frames: int, folder: Path) -> dict[str, Any]:
    path = str(folder / f"{os.getpid()}.data")
    key = ClusterKey(folder / "key")
    secure = kind == "tls"
    inlet = HostInlet(path, "b", "127.0.0.1", "run", key.server) if secure else Inlet(path)
    read_fd, write_fd = os.pipe()
    if os.fork() == 0:
        receive(inlet, frames, write_fd)
    wire = HostWire("a", key.client) if secure else UnixWire()
    link = wire.link(inlet.endpoint)
    frame = os.urandom(size)
    while not link.send(frame):
        wire.retry()
    began, cpu = time.monotonic(), time.process_time()
    sent = 1
    import select

    while sent < frames:
        if link.send(frame):
            sent += 1
        else:
            select.select([wire], [], [], 1.0)
            wire.retry()
    while not wire_is_empty(wire):
        select.select([wire], [], [], 1.0)
        wire.retry()
    cpu = time.process_time() - cpu
    theirs, ended = json.loads(os.read(read_fd, 4096))
    inlet.close()
    return {
        "frames_per_second": (frames - 1) / (ended - began),
        "sender_us": 1e6 * cpu / frames,
        "receiver_us": 1e6 * theirs / frames,
    }


def wire_is_empty(wire: UnixWire) -> bool:
    """Return whether nothing waits to be sent."""
    return not wire._waiting


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))))
