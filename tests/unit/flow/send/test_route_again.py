"""Routes by turns that may have to send the same rows the same way again."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from esault.flow.channel.lineage import Lineage
from esault.flow.send.route_factory import route
from esault.routing.table import OutputTable
from esault.topology.grouping import partial_key, shuffle

LINEAGE = Lineage((0, 0, 0), 0.0)


class Taken:
    """A channel that keeps its rows."""

    def __init__(self):
        self.queue = []
        self.rows = []

    def add(self, lineage, input, keys, values, ids, now):
        self.rows += zip(keys, values)


def spread(grouping, rows, sizes, turn, before=()):
    """Where each channel's rows go: sent in pieces of these sizes, by a route that has sent others before."""
    made = route("u", SimpleNamespace(grouping=grouping, input=0, target="t"), 1000, by_rows=True)
    channels = {number: Taken() for number in range(3)}
    made.install(OutputTable.even(list(channels)), channels)
    if before:
        made.push(LINEAGE, [key for key, _ in before], [value for _, value in before], None, 0.0)
    for channel in channels.values():
        channel.rows.clear()
    made.restart(turn)
    at = 0
    for size in [*sizes, len(rows)]:
        piece = rows[at : at + size]
        if piece:
            made.push(LINEAGE, [key for key, _ in piece], [value for _, value in piece], None, 0.0)
        at += size
    return [channel.rows for channel in channels.values()]


@given(
    st.sampled_from([shuffle(), partial_key()]),
    st.integers(0, 2000),
    st.lists(st.integers(1, 700), max_size=5),
    st.lists(st.integers(1, 700), max_size=5),
    st.integers(0, 2**32 - 1),
    st.integers(0, 300),
)
def test_the_way_of_a_row_follows_from_the_rows_before_it_in_the_batch_alone(grouping, rows, one, two, turn, before):
    sent = [(f"k{i % 17}", i) for i in range(rows)]
    earlier = [(f"k{i % 5}", i) for i in range(before)]
    found = spread(grouping, sent, one, turn)
    assert found == spread(grouping, sent, two, turn, earlier)
    assert sorted(value for each in found for _, value in each) == list(range(rows))


def test_batches_begin_in_different_places_so_that_small_ones_do_not_all_go_to_one():
    places = {next(i for i, rows in enumerate(spread(shuffle(), [("k", 1)], [], turn)) if rows) for turn in range(30)}
    assert places == {0, 1, 2}
