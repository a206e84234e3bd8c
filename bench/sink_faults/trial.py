"""Faults done to a run into one sink while rows come; then what landed is compared with what was read."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.kit.victim import Lost, Victim, well
from bench.sink_faults.source import END, KEYS, READ
from bench.sink_faults.targets import Landed, Target
from bench.sink_faults.topology import ASKED, HOOKS
from esault.sinks.durable import replace_file

__all__ = ["KINDS", "Trial", "compare"]

TOPOLOGY = Path(__file__).with_name("topology.py")
CHECKPOINT = 0.4
#: seconds after which a run that does not recover counts as lost
PATIENCE = 120.0
#: seconds that a server is away at most
AWAY = 2.0
#: kinds of faults, and how often each comes
KINDS = {
    "within prepare": 30,
    "within commit": 30,
    "a writer at random": 20,
    "the whole run at random": 20,
}


class Trial:
    """One run under faults. `moves`: keys move as well, by scaling; `crashes`: the server is killed, too."""

    def __init__(
        self,
        sink: str,
        target: Target,
        folder: Path,
        seed: int,
        rate: float,
        moves: bool = False,
        crashes: bool = False,
    ) -> None:
        self.target, self.folder, self.rate = target, folder, rate
        params = {"folder": folder, "sink": sink, "where": json.dumps(target.where), "rate": rate}
        self.victim = Victim(folder, True, CHECKPOINT, TOPOLOGY, params, name="sink_faults")
        self.order = random.Random(f"{seed} {sink}")
        self.seconds: dict[str, list[float]] = defaultdict(list)
        #: the fault that was done last
        self.last = ""
        self.kinds: dict[str, Callable[[], None]] = {
            **{f"within {hook}": lambda hook=hook: self._die_in(hook) for hook in HOOKS},  # type: ignore[misc]
            "a writer at random": self._kill_writer,
            "the whole run at random": self.victim.start_again,
            "the server": self._crash_server,
            "keys move": self._scale,
        }
        self.weights = dict(KINDS)
        if crashes and target.crash is not None:
            self.weights["the server"] = 15
        if moves:
            self.weights["keys move"] = 40

    def run(self, faults: int, told: Callable[[int], object] = lambda done: None) -> dict[str, Any]:
        """All faults, then the end. Raises Lost."""
        begun = time.monotonic()
        self.victim.start()
        done, last = 0, 0
        while done < faults:
            last = self._wait(last)
            time.sleep(self.order.uniform(0, CHECKPOINT))
            kind = self.order.choices(list(self.weights), list(self.weights.values()))[0]
            self.last, at = kind, time.monotonic()
            try:
                self.kinds[kind]()
            except (Lost, LookupError, ProcessLookupError):
                if self.victim.ended() is not None:
                    raise
                continue  # what it was meant for is gone just now
            done += 1
            last = self._wait(self._wait(0))
            self.seconds[kind].append(time.monotonic() - at)
            told(done)
        # more than can have been read by now
        replace_file(f"{self.folder / END}", b"%d" % (int((time.monotonic() - begun) * self.rate) + KEYS))
        if (code := self.victim.wait(4 * PATIENCE)) != 0:
            raise Lost(f"the run ended with {code}: {self.victim.log()}")
        sent = json.loads((self.folder / READ).read_text())["next"]
        return {
            "faults": done,
            "kinds": {kind: len(seconds) for kind, seconds in self.seconds.items()},
            "seconds": time.monotonic() - begun,
            "recovery": max((max(seconds) for seconds in self.seconds.values()), default=0.0),
            "rows": sent,
            **compare(self.target.read(), sent, self.target),
        }

    def _wait(self, last: int) -> int:
        """Until a checkpoint behind `last` is complete, and return its number. A run that is gone is started again."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return int(self.victim.until(lambda status: well(status, last), until - time.monotonic())["checkpoint"])
            except Lost:
                # a sink that commits in one place does so in the driver's process, and the run ends with it
                if self.victim.ended() is None or self.last != "within commit" or time.monotonic() > until:
                    raise
                self.victim.start_again()

    def _die_in(self, hook: str) -> None:
        asked = self.folder / f"{ASKED}{hook}"
        asked.touch()
        until = time.monotonic() + PATIENCE
        while asked.exists():
            if time.monotonic() > until:
                raise Lost(f"{hook} was not called within {PATIENCE:.0f} s: {self.victim.log()}")
            time.sleep(0.005)
        time.sleep(0.05)

    def _kill_writer(self) -> None:
        os.kill(self.order.choice(self.victim.sub_units()["count"]), signal.SIGKILL)

    def _crash_server(self) -> None:
        assert self.target.crash is not None
        stop, start = self.target.crash
        stop()
        time.sleep(self.order.uniform(0, AWAY))
        start()

    def _scale(self) -> None:
        now = len(self.victim.sub_units()["count"])
        self.victim.ask(do="scale", unit="count", n=self.order.choice([n for n in (1, 2, 3) if n != now]))


def compare(landed: list[Landed], sent: int, target: Target) -> dict[str, int]:
    """Count what is lost, doubled, counted wrongly, or stands behind a later row of its key."""
    if target.newest:
        newest = {f"k{key}": max(range(key, sent, KEYS)) for key in range(min(KEYS, sent))}
        seen = {row.key: row for row in landed}
        return {
            "lost": sum(key not in seen or seen[key].value != value for key, value in newest.items()),
            "doubled": len(landed) - len(seen) + len(seen.keys() - newest.keys()),
            "counted_wrongly": _wrong(landed),
            "behind_a_later_row": 0,
            "repeats": 0,
        }
    repeats = 0
    if not target.once:  # readers drop repeats by their ids
        first: dict[str | None, Landed] = {}
        for row in landed:
            first.setdefault(row.id, row)
        repeats, landed = len(landed) - len(first), list(first.values())
    seen_values = Counter(row.value for row in landed)
    should = Counter(range(sent))
    last: dict[str, int] = {}
    behind = 0
    for row in landed if target.ordered else ():
        behind += row.value < last.get(row.key, -1)
        last[row.key] = max(row.value, last.get(row.key, -1))
    return {
        "lost": (should - seen_values).total(),
        "doubled": (seen_values - should).total(),
        "counted_wrongly": _wrong(landed),
        "behind_a_later_row": behind,
        "repeats": repeats,
    }


def _wrong(landed: list[Landed]) -> int:
    return sum(row.counted != row.value // KEYS + 1 or row.key != f"k{row.value % KEYS}" for row in landed)
