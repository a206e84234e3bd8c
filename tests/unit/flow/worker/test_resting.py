"""A sub-unit whose receiver takes no more rests until there is room, whatever is due meanwhile: it spins no processor."""

from __future__ import annotations

import pytest

from esault import Bolt, Sink, Topology, by_key
from esault.messages.settings import Settings
from esault.sources import Items
from esault.testing import LocalRuntime


class Echo(Bolt):
    def process(self, key, value):
        self.emit(key, value)


class Ticks(Echo):
    def tick(self, now):
        pass


class Timed(Echo):
    def process(self, key, value):
        self.timer("later", self.context.now() + 0.5, by="processing")
        self.emit(key, value)

    def on_timer(self, name, at):
        pass


class Nothing(Sink):
    def write(self, rows):
        pass


def stream(rows, kind):
    if kind == "ticks":
        return rows.bolt("first", Ticks, by_key(), tick_every=0.5)
    if kind == "sweeps":
        return rows.bolt("first", Echo, by_key(), idle_after=0.5)
    return rows.bolt("first", Timed, by_key())


@pytest.mark.parametrize("kind", ["ticks", "sweeps", "timers"])
def test_a_sub_unit_that_is_blocked_rests_although_something_is_due(kind):
    t = Topology("blocked")
    rows = t.spout("rows", Items([(i % 7, i) for i in range(300)]))
    stream(rows, kind).bolt("second", Echo, by_key()).sink("out", Nothing())
    local = LocalRuntime(t, settings=Settings(max_pending=4096, pending_rows=10_000, root_rows=1, frame_rows=1))
    local.run_until(lambda: local.driver.phase == "running")
    local.freeze(local.sub_units("second")[0])
    core = local._processes[local.sub_units("first")[0]].core
    local.run_for(5.0)
    assert core.outputs.blocked
    assert core.next_at > local.clock()
    local.thaw(local.sub_units("second")[0])
    local.run_until_drained()
