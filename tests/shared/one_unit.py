"""One unit by itself: what its sub-units, its senders and its targets say is said by the test, and so is the time."""

from __future__ import annotations

from itertools import count

from esault.control.units.rescale_table import RescaleState
from esault.control.units.subscales import SUBSCALE_KEYS
from esault.control.units.unit import Unit
from esault.messages.change import RangesHandedOver, RangesHeld, StateInstalled
from esault.messages.control import (
    Added,
    Build,
    Built,
    Register,
    Registered,
    SenderSwitched,
    Switched,
    Table,
    TableFor,
)
from esault.messages.settings import Settings
from esault.messages.status import Status, SubUnitCounts
from esault.topology.grouping import by_key, shuffle
from esault.topology.plan import Edge, Input, Outlet, Plan, UnitPlan

#: incarnation of the sender that registers
SENDER = 100


def unit_plan(name="count", targets=(), keyed=True, kind="bolt", **options):
    """A unit that the unit "up" sends to; a spout has no senders."""
    inputs = () if kind == "spout" else (Input("up", "up", by_key() if keyed else shuffle()),)
    edges = tuple(Edge(target, 0, by_key()) for target in targets)
    objects = "key" if keyed and kind == "bolt" else "sub-unit"
    streams = {"": Outlet(edges=edges)}
    return UnitPlan(name, kind, **{"objects": objects, "inputs": inputs, "streams": streams, **options})


def status(incarnation, now=0.0, **fields):
    return Status(incarnation, now, SubUnitCounts(), **fields)


class OneUnit:
    """A unit whose process the test is, and all others."""

    def __init__(self, plan=None, parallelism=2, numbers=None, new_id=None, **options):
        self.now = 10.0
        self.numbers = numbers or count(1)
        self.builds = {}
        plan = plan or unit_plan(**options)
        self.unit = Unit(Plan("t", {plan.name: plan}), plan, parallelism, self._build, new_id)

    def _build(self, unit, beside=0, on=None, **fields):
        build = Build(unit, next(self.numbers), 1, on or "here", "run", Settings(), **fields)
        self.builds[build.incarnation] = build
        return build

    def say(self, *messages):
        """The unit takes these."""
        for message in messages:
            assert self.unit.handle(message, self.now), message

    def sent(self, kind=None):
        """What it has said since the last call; `kind`: of these messages alone."""
        said = list(self.unit.outbox)
        self.unit.outbox.clear()
        return [(to, m) for to, m in said if kind is None or isinstance(m, kind)]

    def told(self):
        """What the driver was told since the last call."""
        said = [kind for kind, _ in self.unit.events]
        self.unit.events.clear()
        return said

    def built(self, *incarnations):
        """These processes stand."""
        self.say(*(Built(i, 1000 + i, f"data {i}", f"express {i}") for i in incarnations))

    def running(self, sender=True):
        """Start it, with one sender; itself."""
        self.unit.start(self.now)
        self.built(*self.unit.subs)
        self.unit.register()
        self.connect(*self.unit.subs)
        self.unit.go(self.now)
        if sender:
            self.say(Register("up", (SENDER,)))
            self.say(*(Added(i, (SENDER,)) for i in list(self.unit.subs)))
        self.sent()
        self.told()
        return self

    def connect(self, *incarnations):
        """The targets know these, which have their tables."""
        for target in self.unit.plan.targets:
            table = Table(target, 1, ((0, 900),), {900: ("d", "e", 1)})
            self.say(*(Registered(target, i, table) for i in incarnations))
        for target in self.unit.plan.targets:
            self.say(*(Switched(i, target, 1) for i in incarnations))

    def newcomer(self, incarnation):
        """A new process stands, and is known to all."""
        self.built(incarnation)
        self.say(Added(incarnation, (SENDER,)))
        self.connect(incarnation)

    def switched(self):
        """The sender has the newest table."""
        self.say(SenderSwitched(SENDER, self.unit.table.version))

    def has_keys(self, keys, **counts):
        """Each sub-unit reports so many keys."""
        self.say(*(Status(i, self.now, SubUnitCounts(elements=keys, **counts)) for i in list(self.unit.subs)))

    def reach(self, state):
        """Have a split of the first sub-unit come to this state; the change's new owner. Some states take three subscales."""
        if state in (RescaleState.BETWEEN, RescaleState.HOLDING_NEXT):
            self.has_keys(2 * 3 * SUBSCALE_KEYS)
        first = self.unit.table.owners()[0]
        self.unit.split(first, self.now)
        new = max(self.unit.subs)
        if state is not RescaleState.STARTING:
            self.newcomer(new)
        if state not in (RescaleState.STARTING, RescaleState.HOLDING):
            self.say(RangesHeld(new, self.unit.change.version))
        if state is RescaleState.BETWEEN:  # it waits there for one of the unit that died
            self.unit.died(second := self.unit.table.owners()[-1], "killed", self.now)
            assert second not in self.unit.subs
        if state in (RescaleState.BETWEEN, RescaleState.HOLDING_NEXT):
            self.move_on()
            self.unit.check(self.now)
        assert self.unit.rescaling.state is state
        return new

    def move_all(self):
        """All subscales that are left move, one after the other."""
        while self.unit.change is not None:
            if self.unit.rescaling.state is RescaleState.HOLDING_NEXT:
                self.say(*(RangesHeld(new, self.unit.change.version) for new in self.unit.change.new_owners))
            self.move_on()
            self.unit.check(self.now)

    def move_on(self):
        """All that a published change waits for comes about."""
        change = self.unit.change
        for old in list(change.giving):
            self.say(RangesHandedOver(old, change.version, tuple(change.new_owners), 3, 30))
        for new in list(change.waiting):
            self.say(StateInstalled(new, change.version, held=0.5))
        self.switched()

    def table_for_sender(self):
        """The newest table that the sender was sent."""
        return [m.table for _, m in self.sent((Registered, TableFor))][-1]

    def check_owners(self):
        """Every place on the ring has one owner, and each owner is a way to somebody who is there or being replaced."""
        table = self.unit.table
        table.check()
        replaced = {r.replaces for r in self.unit.subs.values()}
        assert all(owner in self.unit.subs or owner in replaced for owner in table.owners())
