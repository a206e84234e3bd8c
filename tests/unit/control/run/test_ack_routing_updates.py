"""News of where acks go: once for all of a change, and no unit's newcomers wait for another unit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from esault.control.run.ack_routing_updates import AckRoutingUpdates


class Counted(AckRoutingUpdates):
    """Counts what it sends."""

    sent = 0

    def send(self, units, newcomer=False):
        self._postponed.clear()
        self.sent += 1


def updates():
    nothing: Any = None
    units: Any = {name: SimpleNamespace(state=SimpleNamespace(coming_or_going=False)) for name in ("lines", "count")}
    return Counted(nothing, 1, nothing), units


def test_all_of_a_change_are_waited_for():
    told, units = updates()
    units["count"].state.coming_or_going = True
    told.postpone("count", units)
    told.postpone("count", units)
    assert told.sent == 0
    units["count"].state.coming_or_going = False
    told.postpone("count", units)
    assert told.sent == 1
    told.settle(units)
    assert told.sent == 1, "there is nothing new"


def test_one_that_dies_is_waited_for_no_longer():
    told, units = updates()
    units["count"].state.coming_or_going = True
    told.postpone("count", units)
    units["count"].state.coming_or_going = False
    told.settle(units)
    assert told.sent == 1


def test_newcomers_do_not_wait_for_a_unit_that_waits_for_what_they_have_to_ack():
    told, units = updates()
    units["lines"].state.coming_or_going = True  # one of two readers has left, the other has roots under way
    told.postpone("lines", units)
    assert told.sent == 0
    told.postpone("count", units)
    assert told.sent == 1
    units["lines"].state.coming_or_going = False
    told.postpone("lines", units)
    assert told.sent == 2, "all are told of the reader, too"


def test_what_was_sent_for_another_reason_need_not_be_sent_again():
    told, units = updates()
    units["count"].state.coming_or_going = True
    told.postpone("count", units)
    told.send(units)
    units["count"].state.coming_or_going = False
    told.settle(units)
    assert told.sent == 1
