"""A run that a test lets go on until something holds."""

from __future__ import annotations

import asyncio

import pytest

from esault import Bolt, Topology, TopologyFailed, by_key
from esault.sources import Items
from esault.testing import LocalRuntime


class Echo(Bolt):
    def process(self, key, value):
        self.emit(key, value)


class Asked(Bolt):
    async def process(self, key, value):
        await asyncio.sleep(0.001)
        self.emit(key, value)


def runtime(factory=Echo):
    t = Topology("echo")
    t.spout("rows", Items([("k", i) for i in range(500)])).bolt("echo", factory, grouping=by_key())
    return LocalRuntime(t)


@pytest.mark.parametrize("factory", [Echo, Asked])
def test_it_stops_where_the_predicate_holds_and_goes_on_from_there(factory):
    local = runtime(factory)
    local.run_until(lambda: local.emitted("echo"))
    assert 0 < len(local.emitted("echo")) < 500
    local.run_until_drained()
    assert len(local.emitted("echo")) == 500
    local.run_until(lambda: True)  # nothing to do


def test_what_never_holds_is_told_with_the_reason():
    local = runtime()
    with pytest.raises(TopologyFailed, match="echo: the run had ended before the predicate"):
        local.run_until(lambda: False)


def test_time_may_be_up():
    t = Topology("silent")
    t.spout("rows", Silent()).bolt("echo", Echo, grouping=by_key())
    with pytest.raises(TopologyFailed, match="silent: 5 s had passed before the predicate"):
        LocalRuntime(t).run_until(lambda: False, 5)


class Silent(Items):
    def __init__(self):
        super().__init__([])

    def read(self, limit):
        return []
