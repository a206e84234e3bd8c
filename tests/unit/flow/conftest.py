"""A sub-unit by itself: its senders, receivers and unit are the test's; frames go by queues in memory, time by hand."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from esault.flow.channel.frame import CHECKPOINT, DATA, END, decode
from esault.flow.sub_unit_factory import sub_unit
from esault.flow.worker.environment import Environment
from esault.messages.control import AckRouting, Add, Build, Connect, Start, Table
from esault.messages.settings import Settings
from esault.payload.codec import Codec
from esault.routing.table import OutputTable
from esault.testing import ManualClock
from esault.testing.memory_state_store import MemoryStateStore
from esault.testing.memory_wire import MemoryWire

#: the sub-unit under test, the owner of the roots that come in, and the sub-unit behind
SELF, OWNER, BEHIND = 7, 3, 9


class Bench:
    """One sub-unit of a topology, with its surroundings."""

    def __init__(
        self,
        topology,
        unit="worker",
        *,
        event_loop=None,
        restore=None,
        store=None,
        position=None,
        joins=False,
        **settings,
    ):
        plan = topology.plan().units[unit]
        self.clock = ManualClock()
        self.wire = MemoryWire()
        self.codec = Codec()
        #: frames to the receiver behind, and acks to the owner of roots
        self.behind = self.wire.bind("memory://behind")
        self.owner = self.wire.bind("memory://owner/express")
        self.store = store or MemoryStateStore()
        self.letters = []
        keeps = SimpleNamespace(put=self.letters.append, sync=lambda: None)
        exactly = settings.get("delivery") == "eo"
        environment = Environment(
            wire=self.wire,
            clock=self.clock,
            dead_letters=lambda path: keeps,
            seed=1,
            run_dir=None,
            state_store=self.store if exactly else None,
            event_loop=event_loop,
        )
        build = Build(
            unit,
            SELF,
            1,
            "here",
            "run",
            Settings(**settings),
            restore=restore,
            position=position,
            joins=joins,
            probes="memory://probes",
        )
        self.core = sub_unit(build, plan, environment)
        self._numbers = {}
        self.core.handle(AckRouting(1, {OWNER: "memory://owner/express"}))
        pairs = OutputTable.single(BEHIND).snapshot()[1]
        tables = [Table(target, 1, pairs, {BEHIND: ("memory://behind", "memory://b", 1)}) for target in plan.targets]
        self.core.handle(Connect(tuple(tables)))
        self.said()

    # the unit ------------------------------------------------------------------------------------

    def start(self, *senders):
        """Make senders known, by channel number, and start."""
        if senders:
            self.core.handle(Add(tuple((100 + n, n) for n in senders)))
        self.core.handle(Start())
        self.said()
        return self

    def tell(self, *messages):
        """Pass messages on; what the sub-unit says to that."""
        for message in messages:
            self.core.handle(message)
        return self.said()

    def said(self):
        """Messages to the unit since the last call."""
        messages = list(self.core.outbox)
        self.core.outbox.clear()
        return messages

    def kinds(self):
        return [type(message).__name__ for message in self.said()]

    # senders and receivers -----------------------------------------------------------------------

    def frame(self, kind, channel, body, epoch=1):
        """Have the next frame of a channel read."""
        self._numbers[channel] = self._numbers.get(channel, 0) + 1
        self.core.read(self.codec.pack((kind, epoch, channel, self._numbers[channel], body)))

    def data(self, channel, *rows, root=1, id=5):
        keys, values = zip(*rows)
        now = self.clock()
        self.frame(DATA, channel, [now, ((OWNER, root, 0), id, 0, keys, values, now, None)])

    def mark(self, channel, number):
        self.frame(CHECKPOINT, channel, number)

    def end(self, *channels):
        for channel in channels:
            self.frame(END, channel, None)

    def frames(self, inlet):
        """Frames that have come at an inlet since the last call."""
        found = []
        for link in inlet.waiting():
            while link:
                found.append(decode(link.popleft(), self.codec))
        return found

    def rows(self):
        """Rows that went to the receiver behind, since the last call."""
        return [
            row
            for frame in self.frames(self.behind)
            if frame.kind == DATA
            for batch in frame.body[1]
            for row in zip(batch.keys, batch.values)
        ]

    # the loop ------------------------------------------------------------------------------------

    def turns(self, most=1000):
        """Turn until there is nothing to do at once."""
        while self.core.turn():
            most -= 1
            assert most, "it never rests"
        return self

    def phase(self):
        return self.core.lifecycle.phase


@pytest.fixture
def bench():
    return Bench
