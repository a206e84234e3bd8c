"""One run of `bench/rescale/topology.py` on actors, in a process of its own; prints one line of JSON.

python -m bench.rescale.run full|live|restart --folder DIR --keys N [--rate R] [--seconds S] [--set NAME=VALUE ...]

full: as fast as it goes, for S seconds. live: split, move, merge, S seconds apart. restart: one sub-unit stopped after S
seconds and two started.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.kit.esault_run import setting
from bench.kit.quiet_view import QuietView
from bench.rescale.topology import NOTE
from esault.control.report.summary import Snapshot
from esault.elasticity.scaling import EVERY_UNIT
from esault.messages.settings import Settings
from esault.report import Report
from esault.runtime.messages import DrainRun
from esault.runtime.run_commands import ChangeUnit, Requested
from esault.runtime.session.request import Request
from esault.runtime.session.session import Session
from esault.topology.locate import locate

__all__ = ["run"]

KINDS = ("split", "move", "merge")
#: sub-units after each of them
WIDTHS = (2, 2, 1)
#: seconds from the end of the last change to the end of the run
TAIL = 1.5
#: seconds for which a change may go on
LONGEST = 200.0


class _Driven(Session):
    """A session whose driver can be told more than signals say."""

    def _watch(self, handle: Any, driver: Any) -> Report:
        self.tell = lambda message: handle.tell(driver, message)
        return super()._watch(handle, driver)


class _Changes:
    """Requests for changes, each so many seconds after the end of the one before."""

    def __init__(
        self, folder: Path, apart: float, kinds: tuple[str, ...] = KINDS, longest: float = LONGEST, tail: float = TAIL
    ) -> None:
        self.folder, self.apart = folder, apart
        self.kinds, self.longest, self.tail = kinds, longest, tail
        self.session: _Driven | None = None
        self.asked: list[float] = []
        self.settled_at = 0.0
        self.told = False

    def step(self, snapshot: Snapshot) -> None:
        """Ask for what is due."""
        now = time.time()
        assert self.session is not None
        if not self.settled_at:
            self.settled_at = start(self.folder)
            return
        width = next(unit.sub_units for unit in snapshot.units if unit.name == "count")
        if len(self.asked) > snapshot.changes or (self.asked and width != WIDTHS[len(self.asked) - 1]):
            if now - self.asked[-1] > self.longest:
                raise RuntimeError(f"the {self.kinds[len(self.asked) - 1]} did not end within {self.longest:.0f} s")
            self.settled_at = now
        elif len(self.asked) < len(self.kinds):
            if now >= self.settled_at + self.apart:
                kind = self.kinds[len(self.asked)]
                self.settled_at = now  # it may be over before the next snapshot
                self.asked.append(time.time())
                self.session.tell(Requested(ChangeUnit("count", kind)))
        elif now >= self.settled_at + self.tail and not self.told:
            self.told = True
            self.session.tell(DrainRun())


def start(folder: Path) -> float:
    """Return when the measured part began, or will; 0.0 before that is known."""
    try:
        return float(json.loads((folder / "offered.json").read_text())["start"])
    except (OSError, ValueError):
        return 0.0


def _session(arguments: Any, view: QuietView, **params: Any) -> _Driven:
    place = locate(f"{Path(__file__).with_name('topology.py')}:topology")
    settings = Settings(**dict(setting(text) for text in arguments.set))
    params = {"folder": arguments.folder, "keys": arguments.keys, "rate": arguments.rate, **params}
    return _Driven(Request(place, params, settings=settings, view=view, policies={EVERY_UNIT: "none"}))


def _full(arguments: Any) -> dict[str, Any]:
    _session(arguments, QuietView(), seconds=arguments.seconds).run()
    return {}


def _live(arguments: Any) -> dict[str, Any]:
    kinds = tuple(arguments.kinds.split(","))
    changes = _Changes(Path(arguments.folder), arguments.seconds, kinds, arguments.longest, arguments.tail)
    view = QuietView(changes.step)
    changes.session = _session(arguments, view, in_memory=arguments.in_memory, note=arguments.note)
    report = changes.session.run()
    return {
        "asked": changes.asked,
        "changes": [asdict(change) for change in report.changes],
        "replayed": report.roots.replayed,
        "state_lost": report.units["count"].state_lost,
        "notices": view.notices,
    }


def _restart(arguments: Any) -> dict[str, Any]:
    folder = Path(arguments.folder)
    asked: list[float] = []

    def stop(snapshot: Snapshot) -> None:
        began = start(folder)
        if began and not asked and time.time() >= began + arguments.seconds:
            asked.append(time.time())
            first.tell(DrainRun())

    first = _session(arguments, QuietView(stop), restarted=True)
    first.run()
    stopped = time.time()
    second = _session(arguments, QuietView(), restarted=True, p=2, seconds=arguments.seconds + TAIL)
    second.run()
    return {"asked": asked, "stopped": stopped}


def run() -> None:
    """Run as the arguments say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["full", "live", "restart"])
    parser.add_argument("--folder", required=True)
    parser.add_argument("--keys", type=int, required=True)
    parser.add_argument("--rate", type=float, default=0.0)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--kinds", default=",".join(KINDS), help="the first of split,move,merge")
    parser.add_argument("--longest", type=float, default=LONGEST, help="seconds that a change may take")
    parser.add_argument("--tail", type=float, default=TAIL, help="seconds from the last change to the end")
    parser.add_argument("--in-memory", type=int, metavar="N", help="keys in memory; the others are on disk")
    parser.add_argument("--note", type=int, default=NOTE, help="bytes of state beside a count")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    arguments = parser.parse_args()
    print(json.dumps({"full": _full, "live": _live, "restart": _restart}[arguments.what](arguments)))


if __name__ == "__main__":
    run()
