"""One run under faults: what is done to it, what must follow, and what came of it."""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import psutil

from bench.faults.kind import DEATH, EITHER, END, Kind
from bench.kit.cluster import Cluster
from bench.kit.victim import Lost, Victim

__all__ = ["CHECKPOINT", "PATIENCE", "Subject", "Trial", "percentile"]

CHECKPOINT = 0.25
#: seconds after which a run that does not recover counts as lost
PATIENCE = 60.0


def percentile(values: list[float], share: float) -> float:
    """The value that this share of them does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def _summed_up(seconds: list[float]) -> dict[str, float]:
    return {"p50": percentile(seconds, 0.5), "p99": percentile(seconds, 0.99), "max": max(seconds, default=0.0)}


class Subject(Protocol):
    """A run that faults are done to: a topology that can be told to end, and counted then."""

    def victim(self, folder: Path, cluster: Cluster | None) -> Victim:
        """Make the run of it, which is not started yet."""

    def kinds(self, hosts: bool) -> tuple[Kind, ...]:
        """Return what can befall it."""

    def end(self, folder: Path, seconds: float) -> None:
        """Have it end: it has run for so many seconds."""

    def check(self, folder: Path) -> dict[str, int]:
        """Count what was lost and doubled, and `numbers`: what it has read."""


class Trial:
    """One run under faults, with checkpoints (`exactly`) or without."""

    def __init__(
        self, subject: Subject, folder: Path, cluster: Cluster | None, faults: int, hold: float, order: random.Random
    ) -> None:
        self.subject, self.victim = subject, subject.victim(folder, cluster)
        self.exactly, self.faults, self.hold, self.order = self.victim.exactly, faults, hold, order
        self.kinds = [kind for kind in subject.kinds(cluster is not None) if self.exactly or kind.always]
        #: by kind: what followed, and seconds until tuples flowed again where they had stopped
        self.happened: dict[str, list[dict[str, Any]]] = defaultdict(list)

    def run(self) -> dict[str, Any]:
        """All faults, then the end. Raises Lost."""
        begun = time.time()
        self.victim.start()
        last, done, told = 0, 0, 0.0
        while done < self.faults:
            status = self.victim.until(partial(self._well, last), PATIENCE)
            last = status["checkpoint"]
            time.sleep(self.order.uniform(0, 1.5 * CHECKPOINT))
            kind = self.order.choices(self.kinds, [kind.weight for kind in self.kinds])[0]
            done += self._do(kind, status)
            if time.monotonic() - told > 20:
                told = time.monotonic()
                print(f"  {done:,} of {self.faults:,} faults, {time.time() - begun:.0f} s", flush=True)
        self.victim.until(partial(self._well, last), PATIENCE)
        self.subject.end(self.victim.folder, time.time() - begun)
        code = self.victim.wait(600)
        if code != 0:
            raise Lost(f"the run ended with {code}: {self.victim.log()}")
        return {
            "faults": done,
            "commands": self.victim.commands,
            "seconds": time.time() - begun,
            **self.subject.check(self.victim.folder),
            "by_kind": self._by_kind(),
            "restores": [r["seconds"] for r in self.victim.restores() if r["seconds"] is not None],
        }

    def _well(self, last: int, status: dict[str, Any]) -> bool:
        if status.get("phase") != "running" or any(
            not unit["processes"] and not unit.get("chained_to") for unit in status["units"]
        ):
            return False
        return status["checkpoint"] > last if self.exactly else True

    def _do(self, kind: Kind, status: dict[str, Any]) -> int:
        """Have it happen and wait until all is well again; how many faults it was."""
        at = time.monotonic()
        try:
            follows = kind.happen(self.victim, self.order, self.hold)
        except (Lost, LookupError, ValueError, OSError, psutil.Error) as error:
            # whom it was meant for is gone just now
            if self.victim.ended() is None:
                return 0
            raise Lost(f"{kind.name}: {error}: {self.victim.log()}") from None
        if follows == EITHER:
            follows = self._seen(status)
        if follows == END:
            code = self.victim.wait(PATIENCE)
            while self.victim.processes():
                time.sleep(0.01)
            self.victim.start()
            self.victim.until(lambda s: s.get("phase") == "running", PATIENCE)
            self.happened[kind.name].append(
                {"followed": "resumed", "seconds": time.monotonic() - max(at, self.victim.befallen), "exit": code}
            )
        elif follows == DEATH:
            what = "restores" if self.exactly else "deaths"
            went_on = self._until_back(what, status[what])
            if went_on:  # who was killed had just left in order
                self.happened[kind.name].append({"followed": "nothing"})
            else:
                self.happened[kind.name].append(
                    {"followed": "restored", "seconds": time.monotonic() - max(at, self.victim.befallen)}
                )
        else:
            self.happened[kind.name].append({"followed": "nothing"})
        return 1

    def _until_back(self, what: str, before: int) -> bool:
        """Wait until tuples flow again; True if they never stopped, by three checkpoints that came since, or three seconds."""
        at, since = time.monotonic(), self.victim.until(lambda now: "checkpoint" in now, PATIENCE)["checkpoint"]

        def back(now: dict[str, Any]) -> bool:
            if now.get("phase") != "running":
                return False
            later = now["checkpoint"] > since + 2 if self.exactly else time.monotonic() - at > 3
            return bool(now[what] > before or later)

        return bool(self.victim.until(back, PATIENCE)[what] == before)

    def _seen(self, status: dict[str, Any]) -> str:
        """Return what became of the run after a fault that may have ended it."""
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            if self.victim.ended() is not None:
                return END
            try:
                if self.victim.status()["phase"] in ("stopping", "ended"):
                    return END
            except Lost:
                return END  # its control socket is closed: it is on its way out
            time.sleep(0.05)
        return "nothing"

    def _by_kind(self) -> dict[str, Any]:
        found = {}
        for kind in self.kinds:
            happened = self.happened[kind.name]
            seconds = [each["seconds"] for each in happened if each["followed"] == "restored"]
            again = [each["seconds"] for each in happened if each["followed"] == "resumed"]
            found[kind.name] = {
                "injected": len(happened),
                "followed": dict(Counter(each["followed"] for each in happened)),
                "recovery_seconds": _summed_up(seconds),
                "another_command_seconds": _summed_up(again),
                "seconds": seconds,
                "seconds_of_another_command": again,
            }
        return found
