"""The control path of large runs: the engine's own driver, whose sub-units answer at once what all sub-units answer.

Nothing runs beside it: no process, no socket, no tuple. What is measured is what the driver itself takes, in processor time: to place and
wire sub-units over a hundred hosts, to have one of them split, to hear their reports; and what goes over the wire for it, as it is packed
and signed. What the sub-units take for their part, the network and the hosts' agents are not in it.

python -m bench.scale.control --out DIR [--quick] [--runs N]
"""

from __future__ import annotations

import gc
import json
import time
import tracemalloc
from collections import Counter, deque
from pathlib import Path
from typing import Any

from bench.kit.arguments import parse
from bench.kit.machine import facts
from bench.kit.measure import spread, summary
from esault import Bolt, Spout, Topology, by_key, shuffle
from esault.control.placement.placement import Cluster
from esault.control.placement.resources import SlotRequest
from esault.control.run.driver import Driver
from esault.elasticity.scaling import EVERY_UNIT
from esault.messages.change import HandOverRanges, HoldRanges, RangesHandedOver, RangesHeld, StateInstalled
from esault.messages.control import Add, Added, Build, Built, Connect, Fork, Switched, Table
from esault.messages.probe import Usage
from esault.messages.settings import Settings
from esault.messages.status import Status, SubUnitCounts
from esault.runtime.actors.signature import Signer
from esault.runtime.messages import Messages

__all__ = ["SimulatedRun", "measured"]

#: (sub-units that send, sub-units that get by key): few senders, and as many as receivers (500 of each take minutes)
SIZES = ((2, 98), (2, 498), (2, 998), (100, 100), (250, 250))
QUICK = SIZES[:1]
HOSTS = 100
#: reports of each sub-unit a second
REPORTS = 4


class _Silent(Spout[Any, Any]):
    def read(self, limit: int) -> list[tuple[Any, Any]]:
        return []


class _Pass(Bolt):
    def process(self, key: Any, value: Any) -> None:
        self.emit(key, value)


class SimulatedRun:
    """A driver of spout -> split -> count over `HOSTS` hosts, and what its sub-units say."""

    def __init__(self, senders: int, receivers: int) -> None:
        t = Topology("large")
        split = t.spout("in", _Silent()).bolt("split", _Pass, shuffle(), parallelism=senders)
        split.bolt("count", _Pass, by_key(), parallelism=receivers)
        cluster = Cluster()
        for number in range(HOSTS):
            cluster.join(f"host-{number:03}", (senders + receivers) // HOSTS + 2)
        self.cluster = cluster
        self.now = 10.0
        self.driver = Driver(
            plan=t.plan(),
            run="run",
            host="here",
            settings=Settings(),
            resources=cluster,
            slots=cluster.total,
            policies={EVERY_UNIT: "auto"},
        )
        self.sent: Counter[str] = Counter()
        self.bytes = 0
        self._signer = Signer(b"k" * 32)

    def start(self) -> None:
        """Have all placed and wired. Raises RuntimeError where that does not come to its end."""
        self.driver.start(self.now)
        self._answer()
        self.driver.begun(self.now)
        self._answer()
        if self.driver.phase != "running":
            raise RuntimeError(f"the run is {self.driver.phase}, not running")

    def split(self) -> None:
        """Have one sub-unit give half of its keys to a new one. Raises RuntimeError where the change does not end."""
        unit = self.driver.units["count"]
        before = unit.width
        self.driver.commands.split("count", unit.table.owners()[0], self.now)  # type: ignore[union-attr]
        self._answer()
        if unit.changing or unit.width != before + 1:
            raise RuntimeError(f"the change has not ended: {unit.width} sub-units after {before}")

    def report(self) -> int:
        """Have each sub-unit tell once how it is; how many did."""
        living = [i for unit in self.driver.units.values() for i in unit.subs]
        self.now += 1 / REPORTS
        for i in living:
            counts = SubUnitCounts(tuples_in=1000, tuples_out=1000, busy_seconds=0.2)
            self.driver.handle(Status(i, self.now, counts, usage=Usage(1.0, 0.1, 64 << 20)), self.now)
        return len(living)

    def look(self) -> None:
        """Have the driver tick for a second, in which `auto` looks at all of them four times."""
        for tenth in range(10):
            self.now += 0.1
            self.driver.tick(self.now)
            if tenth % 3 == 2:
                self._answer()

    def packed(self) -> int:
        """Bytes of all messages since the last call."""
        found, self.bytes = self.bytes, 0
        return found

    def _answer(self) -> None:
        driver = self.driver
        waiting: deque[Any] = deque()
        while driver.outbox or waiting:
            while driver.outbox:
                to, message = driver.outbox.popleft()
                self.sent[type(message).__name__] += 1
                if self.weigh:
                    self.bytes += len(self._signer.dumps(Messages((message,))))
                waiting.extend(self._said(to, message))
            if waiting:
                driver.handle(waiting.popleft(), self.now)
        driver.deliver(self.now)

    #: whether messages are packed, to know how long they are
    weigh = False

    @staticmethod
    def _said(to: Any, message: Any) -> list[Any]:
        if isinstance(message, Fork):
            i = message.build.incarnation
            folder = "ipc:///tmp/esault-1000/20260101-000000-0123456789ab"
            return [Built(i, 1000 + i, f"{folder}/{i}.data", f"{folder}/{i}.express")]
        if isinstance(message, Build):
            return []
        if isinstance(message, Add):
            return [Added(to, tuple(sender for sender, _ in message.senders))]
        if isinstance(message, Connect):
            return [Switched(to, table.target, table.version) for table in message.tables]
        if isinstance(message, Table):
            return [Switched(to, message.target, message.version)]
        if isinstance(message, HoldRanges):
            return [RangesHeld(to, message.version)]
        if isinstance(message, HandOverRanges):
            new = [StateInstalled(i, message.version, 10, 1000, 0.01) for i in message.news]
            return [*new, RangesHandedOver(to, message.version, tuple(message.news))]
        return []


def measured(senders: int, receivers: int, runs: int) -> dict[str, Any]:
    """All figures of a run of this size: processor seconds, messages, bytes."""
    starts, changes, reports, places, looks = [], [], [], [], []
    messages: Counter[str] = Counter()
    for _ in range(runs):
        gc.collect()
        run = SimulatedRun(senders, receivers)
        starts.append(_seconds(run.start))
        run.sent.clear()
        changes.append(_seconds(run.split))
        messages = Counter(run.sent)
        reports.append(_seconds(run.report) / (senders + receivers))
        looks.append(_seconds(run.look))
        places.append(_seconds(lambda: _place(senders + receivers)))
    weighed = SimulatedRun(senders, receivers)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    weighed.start()
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    weighed.weigh = True
    weighed.split()
    return {
        "senders": senders,
        "receivers": receivers,
        "start_seconds": summary(starts),
        "place_seconds": summary(places),
        "change_seconds": summary(changes),
        "change_messages": sum(messages.values()),
        "change_bytes": weighed.packed(),
        "report_us": summary([1e6 * each for each in reports]),
        "reports_share": summary([each * REPORTS * (senders + receivers) for each in reports]),
        "looks_share": summary(looks),
        "driver_bytes": held,
    }


def _place(many: int) -> None:
    cluster = Cluster()
    for number in range(HOSTS):
        cluster.join(f"host-{number:03}", many // HOSTS + 2)
    for _ in range(many):
        cluster.allocate(SlotRequest("count", "count", frozenset({"split"})))


def _seconds(call: Any) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def _lines(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        f"the driver alone, {HOSTS} hosts, processor seconds: sub-units that send and that get by key; placed; placed and wired; one split, its "
        f"messages and bytes; a report, and all reports ({REPORTS} a second of each) as a share of a core; ticks with `auto`, "
        "the same; what the driver holds"
    ]
    return lines + [
        f"  {row['senders']:3} and {row['receivers']:3}: {spread(row['place_seconds'], '.3f')}   {spread(row['start_seconds'], '.2f')}   "
        f"{spread(row['change_seconds'], '.3f')}, {row['change_messages']:,}, {row['change_bytes'] / 1e6:.2f} MB   "
        f"{spread(row['report_us'], '.0f')} us, {spread(row['reports_share'], '.1%')}   {spread(row['looks_share'], '.1%')}   "
        f"{row['driver_bytes'] / 1e6:.1f} MB"
        for row in rows
    ]


def main() -> None:
    """Run as the arguments say."""
    arguments = parse(__doc__)
    folder = Path(arguments.out)
    folder.mkdir(parents=True, exist_ok=True)
    runs = arguments.runs or (1 if arguments.quick else 3)
    rows = []
    for senders, receivers in QUICK if arguments.quick else SIZES:
        rows.append(measured(senders, receivers, runs))
        print(_lines(rows)[-1], flush=True)
    lines = _lines(rows)
    (folder / "control.json").write_text(json.dumps({"machine": facts(), "runs": runs, "rows": rows}) + "\n")
    (folder / "control.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
