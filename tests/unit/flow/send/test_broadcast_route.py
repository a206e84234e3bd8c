"""The route to all sub-units: each gets each row once, in order, whether it comes as rows or as arrays."""

from __future__ import annotations

import pyarrow as pa
import pytest

from esault import broadcast, single
from esault.flow.channel.array_batch import ArrayBatch
from esault.flow.send.route import BroadcastRoute
from esault.flow.send.route_factory import route
from esault.payload.codec import Codec
from esault.payload.column import plain
from esault.routing.table import OutputTable
from esault.topology.plan import Edge

codec = Codec()


class Channel:
    def __init__(self):
        self.rows, self.queue = [], ()

    def add(self, lineage, input, keys, values, ids, now):
        assert input == 5
        self.rows += zip(plain(keys), plain(values), ids or keys)

    def add_whole(self, lineage, input, rows, keys, values, ids, now):
        keys, values = codec.unpack(codec.pack((keys, values)))
        assert rows == len(keys)
        self.add(lineage, input, keys, values, ids, now)


@pytest.mark.parametrize(("grouping", "count"), [(broadcast(), 1), (broadcast(), 4), (single(), 1)])
def test_all_get_all(grouping, count):
    channels = [Channel() for _ in range(count)]
    each = route("rates", Edge("convert", 5, grouping), 16)
    assert type(each) is BroadcastRoute
    each.install(OutputTable.even(list(range(count))), dict(enumerate(channels)))
    each.push(None, ("a", None), (1, None), ("x", "y"), 0.0)
    each.push_arrays(None, ArrayBatch(pa.array(["b", "c"]), pa.array([2, 3])), ("z", "w"), 0.0)
    expected = [("a", 1, "x"), (None, None, "y"), ("b", 2, "z"), ("c", 3, "w")]
    assert [channel.rows for channel in channels] == [expected] * count


def test_nobody_to_send_to_is_no_error():
    each = BroadcastRoute("rates", Edge("convert", 5, broadcast()), 16)
    each.push(None, ("a",), (1,), None, 0.0)
    each.push_arrays(None, ArrayBatch(pa.array(["b"]), pa.array([2])), None, 0.0)
