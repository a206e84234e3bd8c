"""A source that gives nothing since what it gave is not durable yet is not silent: event time waits for it."""

import pytest
from small_bolts import CountAtTheEnd as Count

from esault import Spout, Topology
from esault.sinks import Collect
from esault.sources import Paced
from esault.testing import LocalRuntime, ManualClock
from esault.topology.spout import EndOfStream
from esault.windows import Idle, TumblingWindow


class Queue(Spout):
    """Gives two rows, and then nothing for a minute: it has more all the while."""

    def __init__(self, held):
        self.held, self.begun, self.given = held, None, 0

    def open(self, context):
        self.context, self.begun = context, context.now()

    def read(self, limit):
        waits = self.context.now() < self.begun + 60
        if self.given >= 2 and waits:
            return []
        if self.given == 4:
            raise EndOfStream
        self.given += 1
        return [("k", {"at": float(self.given)})]

    def held_back(self):
        return self.held and self.given == 2


@pytest.mark.parametrize("around", (False, True))
@pytest.mark.parametrize(("held", "late"), ((True, 0), (False, 2)))
def test_time_does_not_go_on_with_the_clock_while_a_source_is_held_back(held, late, around):
    t = Topology("held")
    spout = Paced(Queue(held), rate=1000) if around else Queue(held)
    read = t.spout("read", spout, time=lambda value: value["at"], idle=Idle(5, advance=True))
    read.window("count", Count, TumblingWindow(10)).sink("out", Collect())
    local = LocalRuntime(t, clock=ManualClock(0))
    local.run_for(65)
    local.run_until_drained()
    assert local.report().units["count"].late == late
    assert sum(row.value for row in local.landed("out")) == 4 - late
