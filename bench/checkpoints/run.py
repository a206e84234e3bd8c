"""One run with checkpoints over many keys, in a process of its own; prints one line of JSON.

python -m bench.checkpoints.run KEYS [--seconds S]

Each key is offered once, then tuples of one key in a hundred at a fixed rate. What each checkpoint wrote, and how long it took, is
read from the state directory while the run goes on. Near the end the bolt's process is killed: how long it takes until tuples flow again.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.kit.quiet_view import QuietView
from esault import Bolt, Context, EndOfStream, Sink, Spout, Topology, by_key
from esault.control.report.summary import Snapshot
from esault.elasticity.scaling import EVERY_UNIT
from esault.errors import CheckpointError
from esault.messages.delivery import Delivery
from esault.messages.settings import Settings
from esault.runtime.session.request import Request
from esault.runtime.session.session import Session
from esault.state import manifest
from esault.topology.locate import locate

__all__ = ["run", "topology"]

#: bytes that stand for a user's state beside the count: with it a key's packed state is about 100 bytes
NOTE = 90
#: of the keys, those that change
CHANGED = 0.01
RATE = 50_000.0
#: seconds from the last new key to the death of the bolt's process
KILL_AFTER = 6.0


class Keys(Spout[str, int]):
    """Each key once as fast as it goes, then one in a hundred again and again at a rate."""

    def __init__(self, keys: int, seconds: float) -> None:
        self.keys, self.seconds = keys, seconds
        self.next = 0

    def open(self, context: Context) -> None:
        self.begun: float | None = None

    def read(self, limit: int) -> Sequence[tuple[str, int]]:
        if self.next < self.keys:
            end = min(self.keys, self.next + limit)
        else:
            now = time.monotonic()
            self.begun = self.begun or now
            if now - self.begun > self.seconds:
                raise EndOfStream
            end = min(self.next + limit, self.keys + int((now - self.begun) * RATE))
        some = max(1, int(self.keys * CHANGED))
        rows = [(str(i if i < self.keys else (i % some) * 97 % self.keys), 1) for i in range(self.next, end)]
        self.next = end
        return rows

    def position(self) -> int:
        return self.next

    def seek(self, position: int) -> None:
        self.next = position


class Noted(Bolt):
    """A count and 90 bytes."""

    def __init__(self) -> None:
        self.n = 0
        self.note = "x" * NOTE

    def process(self, key: str, value: int) -> None:
        self.n += value
        self.emit(key, self.n)


class Nowhere(Sink):
    """Takes rows and keeps none."""

    def write_columns(self, keys: Sequence[Any], values: Sequence[Any], time_: float, ids: Any) -> None:
        """Nothing."""


def topology(keys: int, seconds: float) -> Topology:
    """Spout, keyed bolt, sink."""
    t = Topology("bench-checkpoints")
    t.spout("keys", Keys(keys, seconds)).bolt("noted", Noted, grouping=by_key()).sink("nowhere", Nowhere())
    return t


class _Watch:
    """A look at what the state directory shows of each checkpoint, before it is removed again."""

    def __init__(self, folder: Path, keys: int) -> None:
        self.folder, self.keys = folder, keys
        self.seen: dict[int, dict[str, Any]] = {}
        self.loaded_at: float | None = None
        self.killed = False

    def step(self, snapshot: Snapshot) -> None:
        """Look."""
        read = next(unit.tuples_out for unit in snapshot.units if unit.name == "keys")
        if self.loaded_at is None and read >= self.keys:
            self.loaded_at = snapshot.now
        if self.loaded_at is not None and not self.killed and snapshot.now > self.loaded_at + KILL_AFTER:
            self.killed = True
            noted = next(unit.processes for unit in snapshot.units if unit.name == "noted")
            os.kill(next(iter(noted.values())), signal.SIGKILL)
        for path in self.folder.glob("checkpoint-*.json"):
            number = int(path.stem.rpartition("-")[2])
            if number in self.seen:
                continue
            try:
                kept = manifest.read(path)
            except CheckpointError:
                continue  # it has just been removed
            pieces = [chain[-1] for chain in kept.units["noted"].chains]
            self.seen[number] = {
                "number": number,
                "loaded": self.loaded_at is not None and kept.begun_at > self.loaded_at,
                "base": all(piece.base for piece in pieces),
                "keys": sum(piece.keys for piece in pieces),
                "bytes": kept.size,
                "seconds": kept.completed_at - kept.begun_at,
            }


def run() -> None:
    """Run as the arguments say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("keys", type=int)
    parser.add_argument("--seconds", type=float, default=8.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        watch = _Watch(state, arguments.keys)
        report = Session(
            Request(
                locate(f"{__file__}:topology"),
                {"keys": arguments.keys, "seconds": arguments.seconds},
                settings=Settings(delivery=Delivery.EXACTLY_ONCE, checkpoint_every=1.0),
                view=QuietView(watch.step),
                policies={EVERY_UNIT: "none"},
                state=state,
            )
        ).run()
    print(
        json.dumps(
            {
                "keys": arguments.keys,
                "checkpoints": [watch.seen[number] for number in sorted(watch.seen)],
                "latency_ms": asdict(report.end_to_end_ms),
                "restore_seconds": report.restores[0].seconds,
                "first": time.time(),
            }
        )
    )


if __name__ == "__main__":
    run()
