"""Faults done to a run from topic to topic in transactions, while messages come; then the topic is compared with what was sent.

The broker is killed, frozen and started again, the run loses sub-units and all of itself, and units are scaled.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.kit.victim import Lost, Victim, well
from bench.workloads.loads import SEED

__all__ = ["faults"]

TOPOLOGY = Path(__file__).with_name("topology.py")
KEYS, RATE, CHECKPOINT = 200, 1000, 0.3
#: seconds that a frozen broker stands still
HOLD = 2.0
#: seconds after which a run that does not recover counts as lost
PATIENCE = 120.0


class Sender:
    """Sends numbers, each once and in order per key, as long as it lives; a broker that is away is waited for."""

    def __init__(self, servers: str, topic: str) -> None:
        from confluent_kafka import Producer

        settings = {"bootstrap.servers": servers, "enable.idempotence": True, "message.timeout.ms": 600_000}
        self._producer = Producer({**settings, "log_level": 0})
        self._topic, self._ended = topic, threading.Event()
        self.sent = 0
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def _send(self) -> None:
        while not self._ended.wait(0.02):
            for _ in range(RATE // 50):
                self._producer.produce(self._topic, str(self.sent).encode(), key=f"k{self.sent % KEYS}".encode())
                self.sent += 1
            self._producer.poll(0)

    def end(self) -> int:
        """Wait until the broker has all, and return how many."""
        self._ended.set()
        self._thread.join()
        if self._producer.flush(PATIENCE):
            raise Lost("the broker does not take what was sent")
        return self.sent


class Trial:
    """One run under faults."""

    def __init__(self, broker: Any, faults: int, folder: Path) -> None:
        self.broker, self.faults = broker, faults
        self.here, self.there = broker.topic(4), broker.topic(4)
        params = {"servers": broker.servers, "here": self.here, "there": self.there}
        self.victim = Victim(folder, True, CHECKPOINT, TOPOLOGY, params)
        self.order = random.Random(SEED)
        self.seconds: dict[str, list[float]] = defaultdict(list)
        #: the fault that was done last
        self.last = ""
        self.kinds: dict[str, tuple[int, Callable[[], None]]] = {
            "kill a sub-unit of the source": (20, lambda: self._kill("messages")),
            "kill a sub-unit that writes": (25, lambda: self._kill("count")),
            "kill the whole run": (15, self.victim.start_again),
            "kill the broker": (12, self._kill_broker),
            f"freeze the broker for {HOLD:g} s": (8, self._freeze_broker),
            "scale the source": (10, lambda: self._scale("messages")),
            "scale what writes": (10, lambda: self._scale("count")),
        }

    def run(self) -> dict[str, Any]:
        """All faults, then the end. Raises Lost."""
        sender = Sender(self.broker.servers, self.here)
        begun, told = time.monotonic(), 0.0
        self.victim.start()
        last, done = 0, 0
        while done < self.faults:
            last = self.victim.until(partial(well, last=last), PATIENCE)["checkpoint"]
            time.sleep(self.order.uniform(0, 2 * CHECKPOINT))
            name = self.order.choices(list(self.kinds), [weight for weight, _ in self.kinds.values()])[0]
            self.last, at = name, time.monotonic()
            try:
                self.kinds[name][1]()
            except (Lost, LookupError, OSError):
                if self.victim.ended() is not None:
                    raise
                continue  # what it was meant for is gone just now
            done += 1
            back = self.victim.until(partial(well, last=0), PATIENCE)["checkpoint"]
            self.victim.until(partial(well, last=back), PATIENCE)
            self.seconds[name].append(time.monotonic() - at)
            if time.monotonic() - told > 20:
                told = time.monotonic()
                print(
                    f"  {done:,} of {self.faults:,} faults, {told - begun:.0f} s, {sender.sent:,} messages", flush=True
                )
        sent = sender.end()
        patience = time.monotonic() + PATIENCE
        while len(self.broker.messages(self.there)) < sent and time.monotonic() < patience:
            time.sleep(1.0)
        self.victim.ask(do="stop")
        if (code := self.victim.wait(PATIENCE)) != 0:
            raise Lost(f"the run ended with {code}: {self.victim.log()}")
        return {"faults": done, "seconds": time.monotonic() - begun, "messages": sent, **self._compare(sent)}

    def _compare(self, sent: int) -> dict[str, Any]:
        rows = [json.loads(message.value()) for message in self.broker.messages(self.there)]
        seen = Counter(row["value"] for row in rows)
        should = Counter(range(sent))
        counts = {row["value"]: row["count"] for row in rows}
        wrong = sum(count != value // KEYS + 1 for value, count in counts.items())
        return {
            "lost": (should - seen).total(),
            "doubled": (seen - should).total(),
            "counted_wrongly": wrong,
            "out_of_order": sum(not row["in_order"] for row in rows),
            "transactions_left_open": len(self.broker.open_transactions()),
            "by_kind": dict(self.seconds),
        }

    def _kill(self, unit: str) -> None:
        os.kill(self.order.choice(self.victim.sub_units()[unit]), signal.SIGKILL)

    def _kill_broker(self) -> None:
        self.broker.stop()
        time.sleep(self.order.uniform(0, HOLD))
        self.broker.start()

    def _freeze_broker(self) -> None:
        self.broker.freeze(HOLD)

    def _scale(self, unit: str) -> None:
        now = len(self.victim.sub_units()[unit])
        self.victim.ask(do="scale", unit=unit, n=self.order.choice([n for n in (1, 2, 3) if n != now]))


def faults(broker: Any, count: int) -> dict[str, Any]:
    """Do so many faults to a run. Raises Lost."""
    folder = Path(tempfile.mkdtemp(prefix="esault-kafka-"))
    trial = Trial(broker, count, folder)
    try:
        result = trial.run()
    except Lost as error:
        raise SystemExit(
            f"lost after {sum(map(len, trial.seconds.values()))} faults, the last {trial.last!r}: {error}\n"
            f"{trial.victim.log()}\nwhat the run left is in {folder}"
        ) from None
    finally:
        trial.victim.end()
    shutil.rmtree(folder)
    return result
