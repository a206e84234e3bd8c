"""The route where hot keys are split: who is hot by what this sender saw, where parts lie, and that a cooled key is whole again."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recording_channel import RecordingChannel

from esault import by_key
from esault.errors import PayloadError
from esault.flow.channel.array_batch import ArrayBatch
from esault.flow.channel.lineage import Lineage
from esault.flow.send.split_key_route import JUDGED, WHOLE, SplitKeyRoute
from esault.payload.column import plain
from esault.routing.ring import position
from esault.routing.table import OutputTable
from esault.topology.plan import Edge


class Bench:
    def __init__(self, width, **options):
        self.table = OutputTable.even(list(range(width)))
        self.channels = [RecordingChannel() for _ in range(width)]
        self.route = SplitKeyRoute("words", Edge("count", 0, by_key()), 64, **options)
        self.route.install(self.table, dict(enumerate(self.channels)))

    def push(self, *keys, arrays=False):
        values = tuple(range(len(keys)))
        lineage = Lineage((1, 1, 0), 0.0)
        if arrays:
            self.route.push_arrays(lineage, ArrayBatch(list(keys), list(values)), None, 0.0)
        else:
            self.route.push(lineage, keys, values, None, 0.0)

    def taken(self):
        """What came since the last call: a list of (key, part) for each channel; each is where its place says."""
        found = []
        for number, channel in enumerate(self.channels):
            rows, channel.rows = channel.rows, []
            found.append([name for name, _, _ in rows])
            assert all(self.table.owner(position(name)) == number for name in found[-1])
        return found


def hot(bench, key="hot", many=JUDGED):
    bench.push(*[key] * many)
    bench.taken()
    return bench


def test_a_key_is_whole_until_it_is_seen_to_be_hot_and_then_each_sub_unit_has_a_part():
    bench = Bench(4)
    bench.push(*["hot"] * (JUDGED - 1))
    assert sorted(map(len, bench.taken())) == [0, 0, 0, JUDGED - 1]
    assert bench.route.split_keys == {}
    bench.push(*["hot"] * 40)
    assert bench.route.split_keys == {"'hot'": 4}
    assert bench.route.split_tuples == 40
    taken = bench.taken()
    bench.push(*["hot"] * 400)
    total = Counter(len(each) + len(more) for each, more in zip(taken, bench.taken()))
    assert min(total) > 60  # in the end all share it
    bench.push("other")
    assert [each for each in bench.taken() if each] == [[("other", WHOLE)]]


def test_the_one_that_got_the_fewest_gets_the_next():
    bench = hot(Bench(4))
    bench.push(*["hot"] * 200)
    bench.taken()
    bench.push(*["hot"] * 8)
    assert [len(each) for each in bench.taken()] == [2, 2, 2, 2]


def test_keys_that_are_not_hot_keep_their_place_and_are_counted_where_they_go():
    bench = hot(Bench(2), many=JUDGED)
    bench.push(*["hot"] * 300)
    bench.taken()
    at = bench.table.owner(position(("cold", WHOLE)))
    bench.push(*["cold"] * 20, *["hot"] * 20)
    taken = bench.taken()
    assert taken[at].count(("cold", WHOLE)) == 20
    assert len(taken[at]) == len(taken[1 - at]) == 20  # the hot one makes up for it


def test_a_key_that_has_cooled_is_joined_again():
    bench = hot(Bench(4))
    assert bench.route.split_keys
    for _ in range(12):
        bench.push(*[f"cold {i}" for i in range(JUDGED)])
    assert bench.route.split_keys == {}
    bench.taken()
    bench.push(*["hot"] * 5)
    assert [each for each in bench.taken() if each] == [[("hot", WHOLE)] * 5]


def test_a_key_of_a_third_of_the_tuples_stays_split_and_is_not_split_anew():
    def third(bench):
        for _ in range(12):
            bench.push(*["hot"] * 16, *[f"cold {i}" for i in range(68)])

    bench = Bench(2)
    third(bench)
    assert bench.route.split_keys == {}
    hot(bench, many=4 * JUDGED)
    third(bench)
    assert bench.route.split_keys == {"'hot'": 2}


def test_few_tuples_of_a_key_do_not_make_it_hot_however_many_sub_units_there_are():
    bench = Bench(40)
    for _ in range(8):
        bench.push(*(f"k{i}" for i in range(60) for _ in range(4)))
    assert all(count < 100 for count in bench.route._counts.values())
    assert bench.route._judged < 40 * 32 * 2


def test_with_one_sub_unit_and_where_rows_must_go_the_same_way_again_nothing_is_split():
    for bench in (Bench(1), Bench(4, splits=False)):
        bench.push(*["hot"] * (3 * JUDGED))
        assert bench.route.split_keys == {}
        assert bench.route.split_tuples == 0
        assert [set(each) for each in bench.taken() if each] == [{("hot", WHOLE)}]


def test_another_table_gives_hot_keys_parts_at_its_sub_units_and_one_alone_has_them_whole():
    bench = hot(Bench(2))
    wide = Bench(5)
    bench.route.install(wide.table, dict(enumerate(wide.channels)))
    assert bench.route.split_keys == {"'hot'": 5}
    wide.route = bench.route
    wide.push(*["hot"] * 50)
    assert [len(each) for each in wide.taken()] == [10] * 5
    one = Bench(1)
    bench.route.install(one.table, dict(enumerate(one.channels)))
    assert bench.route.split_keys == {}
    one.route = bench.route
    one.push("hot")
    assert one.taken() == [[("hot", WHOLE)]]


def test_what_is_no_key_is_refused():
    bench = hot(Bench(2))
    for keys in (([1, 2],), ("hot", {"a": 1}), (1.5, object())):
        with pytest.raises(PayloadError, match="'words'"):
            bench.push(*keys)


def test_a_long_key_is_told_in_short():
    bench = hot(Bench(2), "x" * 500)
    (told,) = bench.route.split_keys
    assert len(told) == 60


@given(st.lists(st.sampled_from(["a", "a", "a", "b", 1, ("x", 2)]), min_size=1, max_size=80), st.booleans())
def test_no_row_is_lost_and_each_is_a_part_of_its_key_at_the_owner_of_that_part(keys, arrays):
    bench = hot(hot(Bench(3), "a"), 1, 3 * JUDGED)
    bench.push(*keys, arrays=arrays)
    found = [key for each in bench.taken() for key, _ in each]
    assert Counter(map(repr, found)) == Counter(map(repr, plain(keys)))
