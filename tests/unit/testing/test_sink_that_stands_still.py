"""A sink that does not come to an end with its rows holds its own senders back, and nobody else."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from esault import Bolt, Sink, Topology, by_key
from esault.messages.settings import Settings
from esault.sources import Items
from esault.testing import LocalRuntime

ROWS = 3000


class Same(Bolt):
    def process(self, key, value):
        self.emit(key, value)


class Still(Sink):
    """Takes rows, and is done with them when the test says so."""

    taken = 0
    opened: Future | None = None
    still = True

    def write(self, rows):
        Still.taken += len(rows)
        if not Still.still:
            return None
        Still.opened = Future()
        return Still.opened


class Quick(Sink):
    rows: list = []

    def write(self, rows):
        Quick.rows += [row.value for row in rows]


@pytest.mark.parametrize("delivery", ["alo", "eo"])
def test_rows_of_other_units_come_while_it_stands_still_and_its_own_behind(delivery):
    Still.taken, Still.opened, Still.still, Quick.rows = 0, None, True, []
    t = Topology("still")
    one = t.spout("one", Items([(n % 7, n) for n in range(ROWS)])).bolt("first", Same, grouping=by_key())
    one.sink("still", Still())
    other = t.spout("other", Items([(n % 7, n) for n in range(ROWS)])).bolt("second", Same, grouping=by_key())
    other.sink("quick", Quick())
    local = LocalRuntime(t, real=True, settings=Settings(delivery=delivery, checkpoint_every=0.05 * (delivery == "eo")))
    local.run_until(lambda: Still.opened is not None, 60)
    taken = Still.taken
    local.run_until(lambda: len(Quick.rows) == ROWS, 60)
    assert Still.taken == taken and Still.opened is not None and not Still.opened.done()
    assert taken < ROWS
    Still.still = False
    Still.opened.set_result(None)
    local.run_until_drained(60)
    assert Still.taken == ROWS
    assert sorted(Quick.rows) == list(range(ROWS))
