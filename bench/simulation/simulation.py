"""One simulation: a scenario from its first row to the last one, over as many runs as it takes, and what befalls them."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.simulation import faults
from bench.simulation.check import check
from bench.simulation.disk import Disk
from bench.simulation.events import Events
from bench.simulation.history import History
from bench.simulation.life import Life
from bench.simulation.machine import Machine
from bench.simulation.network import Network
from bench.simulation.outside import Broken, Outside
from bench.simulation.scenario import Scenario
from bench.simulation.tally import NAME, Asked, Tally
from esault.errors import CheckpointError, UsageError
from esault.messages.delivery import Delivery
from esault.state.state_dir import StateDir
from esault.state.state_store import FileStateStore
from tests.programs.generate import CHANGES, may_change

__all__ = ["Simulation"]

#: seconds that the end takes at most once nothing befalls the run any more; and the times that another run goes on
END_WITHIN, MOST_RUNS = 600.0, 200
#: events after which a simulation makes no progress
MOST_EVENTS = 50_000_000


class Simulation:
    """See the module."""

    def __init__(self, scenario: Scenario, tell: Any = None) -> None:
        self.scenario, self.seed = scenario, scenario.seed
        self.events = Events()
        self.history = History(self.events, tell)
        self.tell = self.history.tell
        self.exactly = scenario.settings.delivery is Delivery.EXACTLY_ONCE
        self.network = Network(self.events, random.Random(f"{self.seed} network"))
        self.outside = Outside(self.events, self.history)
        self._order = random.Random(f"{self.seed} what befalls it")
        r = random.Random(f"{self.seed} clocks")
        #: machine -> how far its clock is ahead
        self.offsets = {f"h{i}": r.uniform(-0.005, 0.005) for i in range(scenario.hosts)}
        #: machine -> until when it has no power
        self.down_until: dict[str, float] = {}
        self.folder: Path | None = None
        self.disk: Disk | None = None
        #: the power went after the disk had lied
        self.lied_to = False
        self.asked = Asked(self)
        self.state_dir: StateDir | None = None
        self.state_store: FileStateStore | None = None
        self.life: Life
        self._runs = 0
        self._next = True
        self._quiet = False
        self._lost = False

    def run(self) -> Counter[str]:
        """All of it. Raises Broken."""
        in_memory = Path("/dev/shm")
        folder = tempfile.mkdtemp(prefix="esault-simulation-", dir=in_memory if in_memory.is_dir() else None)
        try:
            with ExitStack() as stack:
                if self.exactly:
                    self.folder = Path(folder)
                    self.disk = Disk(self.folder, self.events, self.seed)
                    stack.enter_context(self.disk.installed())
                    self.state_dir = StateDir(self.folder)
                    self.state_store = FileStateStore(self.folder, waits=True)
                Tally.heard = self.asked.heard
                self._run()
        finally:
            if self.state_dir is not None:
                self.state_dir.close()
            shutil.rmtree(folder, ignore_errors=True)
        return self.history.counts

    def _run(self) -> None:
        scenario, events = self.scenario, self.events
        self._begin()
        if scenario.fault_every:
            events.after(self._order.expovariate(1 / scenario.fault_every), "fault", self._befall)
        events.after(self._order.expovariate(1 / scenario.change_every), "change", self._change)
        events.after(self._order.expovariate(1 / scenario.ask_every), "question", self._ask)
        quiet_at = scenario.seconds + (30.0 if scenario.fault_every else 5.0)
        events.at(quiet_at, "quiet", self._be_quiet)
        while self.life.ended is None or self._next:
            if not events.step() or events.count > MOST_EVENTS:
                raise Broken("nothing goes on")
            if events.now > quiet_at + END_WITHIN:
                raise Broken(f"it has not ended {END_WITHIN:.0f} s after the last fault: {self._where()}")
        self.history.counts["simulated seconds"] += round(events.now)
        self.history.counts["events"] += events.count
        if not self._lost:
            if not self.lied_to:  # else an answer may tell of what was lost
                self.asked.judge()
            check(self)

    def _where(self) -> str:
        units = self.life.driver.units.values()
        told = [f"{u.name} {[f'{r.incarnation}{self._of(r)}' for r in u.subs.values()]}" for u in units]
        return f"phase {self.life.driver.phase}, {'; '.join(told)}"

    def _of(self, record: Any) -> str:
        words = ("joining", "started_at", "ended", "finished", "stopped", "leaving")
        return "".join(f" {word}" for word in words if getattr(record, word, None))

    # runs ----------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._next = False
        self._runs += 1
        if self._runs > MOST_RUNS:
            raise Broken(f"{MOST_RUNS} runs were not enough")
        kept, last, parallelism = None, 0, {}
        if self.state_dir is not None and self._runs > 1:
            try:
                kept, amiss = self.state_dir.newest()
            except CheckpointError as error:
                if not self.lied_to:
                    raise Broken(f"nothing to go on with: {error}") from error
                self.tell(f"it says that nothing is left to go on with: {error}")
                self.history.counts["runs that say that a disk has lied"] += 1
                self._lost = True
                return
            last = self.state_dir.last_number
            for text in amiss:
                self.tell(text)
            for name, unit in self.scenario.program.units.items():
                if unit.changes and unit.grouping != "single":
                    parallelism[name] = self._order.randint(1, 3)
        self.tell(f"run {self._runs} begins" + (f" from checkpoint {kept.number}" if kept is not None else ""))
        self.history.counts["runs"] += 1
        self.life = Life(self, self._runs, kept, last, parallelism, self._over)

    def _over(self, life: Life) -> None:
        """A run has ended; another one goes on unless all is done."""
        if life.driver.finished_in_order and not life.driver.failure:
            return
        if life.driver.failure and "Broken" in life.driver.failure:
            raise Broken(life.driver.failure)
        if not self.exactly:
            if not self.scenario.fault_every or "the last host of the run is lost" not in (life.ended or ""):
                raise Broken(f"the run ended: {life.ended}")
            # No host is left of a run that keeps no state: it says so, and there is nothing to compare.
            self.history.counts["runs without checkpoints that lost all hosts"] += 1
            self._lost = True
            return
        if life.driver.failure:
            self.history.counts["runs that failed"] += 1
            if self._quiet or not self._legitimate(life.driver.failure):
                raise Broken(f"the run failed: {life.driver.failure}")
        self._next = True
        self.events.after(self._order.uniform(1.5, 8.0), "resume", self._begin)

    def _legitimate(self, failure: str) -> bool:
        """Return whether so many faults may end a run."""
        return any(text in failure for text in ENDS)

    # what befalls it -----------------------------------------------------------------------------------

    def _befall(self) -> None:
        if self._quiet:
            return
        self.events.after(self._order.expovariate(1 / self.scenario.fault_every), "fault", self._befall)
        if self.life.ended is None:
            faults.befall(self, self._order)

    def _change(self) -> None:
        scenario, order = self.scenario, self._order
        if self.events.now > scenario.seconds + 60.0:
            return
        self.events.after(order.expovariate(1 / scenario.change_every), "change", self._change)
        names = [NAME, *(name for name, unit in scenario.program.units.items() if unit.changes)]
        life = self.life
        if life.ended is not None or life.frozen:
            return
        name, kind, n = order.choice(names), order.choice(CHANGES), order.randint(1, 4)
        if name not in life.driver.units or not may_change(life, name, kind, n):
            return
        unit = life.driver.units[name]
        owners = unit.table.owners() if unit.table is not None else list(unit.subs)
        owner = order.choice(owners)
        commands, now = life.driver.commands, life.now()
        self.tell(f"asked: {kind} {name} {n if kind == 'scale' else owner}")
        self.history.counts["changes asked for"] += 1
        try:
            if kind == "scale":
                commands.scale(name, n, now)
            else:
                getattr(commands, kind)(name, owner, now)
        except UsageError as error:
            raise Broken(f"refused: {error}") from error
        life._carry()

    def _ask(self) -> None:
        scenario, order, life = self.scenario, self._order, self.life
        if self.events.now > scenario.seconds + 60.0:
            return
        self.events.after(order.expovariate(1 / scenario.ask_every), "question", self._ask)
        rows = next(iter(scenario.program.spouts.values()))
        key = order.choice(rows)[0]
        if life.ended is None and not life.frozen and life.driver.phase == "running":
            self.asked.ask(key)
            life._carry()

    def _be_quiet(self) -> None:
        """Nothing more befalls it, and all that was amiss is mended."""
        self._quiet = True
        self.tell("nothing more befalls it")
        for source, target in list(self.network.cuts):
            self.heal(source, target)
        self.network.slowness = 1.0
        self.outside.away_until = 0.0
        if self.disk is not None:
            self.disk.full_until = self.disk.failing_until = self.disk.lying_until = 0.0
        for machine in self.life.machines.values():
            machine.full_until = 0.0

    def thaw_driver(self, life: Life) -> None:
        """It goes on, unless it is gone."""
        if life.ended is None:
            life.thaw()

    def thaw_host(self, machine: Machine, behind: float) -> None:
        """It goes on; its clock may be behind by what it stood still."""
        if behind:
            self.offsets[machine.name] = self.offsets.get(machine.name, 0.0) - behind
        machine.thaw()

    def heal(self, source: str, target: str) -> None:
        """The way is open again."""
        self.life.heal(source, target)

    def power_off(self, machine: Machine, seconds: float) -> None:
        """All there is gone at once, and no message says so."""
        self.down_until[machine.name] = self.events.now + seconds
        machine.over = True
        for process in list(machine.processes.values()):
            process.die()
        machine.processes.clear()
        machine.up.close()
        machine.frozen = True  # nothing comes from there any more
        self.life.watch(machine)


#: what a run may end with, where so much befalls it
ENDS = (
    "times in a row everything went back",
    "the last host of the run is lost",
    "could not be started in",
    "cannot be written",
    "there is no host",
    "no restart is left",
    "No space left on device",
    "the last checkpoint could not be taken",
    "times in a row, each time shortly after",
)
