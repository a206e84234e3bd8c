"""All splits that a sub-unit reads, as one spout: in turns, each from its place, and nothing of a split stays when it goes."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault import Context, EndOfStream, SplitReader, SplitSource
from esault.flow.watermark.split_clock import OpenSplits
from esault.flow.worker.split_readers import SplitReaders
from esault.messages.splits import AssignedSplit


class Reader(SplitReader):
    def __init__(self, rows, at):
        self.rows, self.at, self.told, self.closed = rows, at, [], False
        self.ids = self.lags = None

    def read(self, limit):
        if self.rows is None:
            return None
        if self.at >= len(self.rows) and self.rows[-1:] != ["more"]:
            raise EndOfStream
        found = [(row, row) for row in self.rows[self.at : self.at + limit] if row != "more"]
        self.at += len(found)
        return found

    def position(self):
        return self.at

    def commit(self, position):
        self.told.append(position)

    def row_ids(self):
        return self.ids

    def lag(self):
        return self.lags

    def counters(self):
        return {"skipped": 1}

    def due(self):
        return 100.0 + self.at

    def close(self):
        self.closed = True


class Source(SplitSource):
    """`splits`: id -> its rows; "more" at the end: others will come."""

    def __init__(self, **splits):
        self.of, self.made, self.added, self.closed = splits, {}, [], False

    def splits(self):
        return list(self.of)

    def open_split(self, id, position):
        self.made[id] = Reader(self.of[id], position or 0)
        return self.made[id]

    def open_added_split(self, id):
        self.added.append(id)
        return self.open_split(id, None)

    def counters(self):
        return {"skipped": 10}

    def close(self):
        self.closed = True


def readers(**splits):
    made = SplitReaders(Source(**splits), OpenSplits())
    made.open(Context("u", now=lambda: 5.0))
    return made


def begun(positions=None, **splits):
    made = readers(**splits)
    for id in splits:
        position, rows = (positions or {}).get(id, (None, 0))
        made.add(AssignedSplit(id, None if position is None else b"packed"), position, rows)
    return made


def read(made, limit=2):
    return [key for key, _ in made.read(limit)]


def test_splits_take_turns_and_the_position_is_the_place_in_each():
    made = begun(a="abc", b="xy")
    assert [read(made) for _ in range(3)] == [["a", "b"], ["x", "y"], ["c"]]
    assert made.asked == "a"
    assert made.position() == {"a": (3, 3, False), "b": (2, 2, False)}
    assert made.row_ids() == ["a:2"]
    assert made.due() == 103.0
    kept = made.position()
    assert read(made) == []
    assert made.position() == {"a": (3, 3, True), "b": (2, 2, True)}
    assert kept == {"a": (3, 3, False), "b": (2, 2, False)}  # roots keep it
    assert made.ended == ["a", "b"]
    assert read(made) == []  # others may come
    made.over = True
    with pytest.raises(EndOfStream):
        made.read(1)


def test_one_that_goes_on_counts_from_the_rows_before():
    made = begun({"a": (2, 7)}, a="abcd")
    assert read(made) == ["c", "d"]
    assert made.position()["a"] == (4, 9, False)
    assert made.row_ids() == ["a:7", "a:8"]
    made.source.made["a"].ids = ["first", "second"]
    assert made.row_ids() == ["a:first", "a:second"]


def test_one_that_is_quiet_does_not_keep_others_waiting_and_it_is_known_since_when():
    made = begun(a=["more"], b="xyz")
    assert read(made) == ["x", "y"]
    assert made._clocks.quiet == {"a": 5.0, "b": None}
    made.source.context = Context("u", now=lambda: 9.0)
    made.source.of["a"].insert(0, "new")
    assert read(made) == ["new"]
    assert made._clocks.quiet["a"] is None


def test_a_split_is_opened_once_and_one_that_was_added_as_such():
    made = readers(a="ab", b="xy")
    made.add(AssignedSplit("a"), None, 0)
    read(made, 1)
    made.add(AssignedSplit("a"), None, 0)
    assert read(made, 1) == ["b"]
    made.add(AssignedSplit("b", added=True), None, 0)
    assert made.source.added == ["b"]
    made.forget("b")
    made.add(AssignedSplit("b", b"packed", added=True), 1, 1)  # it was read before
    assert made.source.added == ["b"]
    assert "b" in made
    assert "c" not in made


def test_one_that_goes_leaves_nothing_behind_but_its_counts():
    made = begun(a="abc", b="xy")
    read(made)
    reader = made.source.made["a"]
    made.commit(made.position())
    assert made.counters() == Counter(skipped=12)
    made.forget("a")
    assert reader.closed
    assert list(made.position()) == ["b"]
    assert made.counters() == Counter(skipped=12)
    assert read(made) == ["x", "y"]
    made.forget("b")
    left = {name: kept for name, kept in vars(made).items() if isinstance(kept, (dict, list)) and name != "_counted"}
    assert not any(left.values()), left  # a folder that is followed brings splits for years


def test_only_what_one_that_died_had_read_is_read_again_when_the_run_is_drained():
    made = readers(a="abcd", b="xy")
    made.add(AssignedSplit("a", None, until=3), None, 0)
    made.add(AssignedSplit("b"), None, 0)
    made.drain()
    assert not made.drained
    assert [read(made) for _ in range(2)] == [["a", "b"], ["c", "d"]]
    assert made.drained
    assert read(made) == []


def test_readers_are_told_what_is_durable_once_and_never_of_less():
    made = begun(a="abcd")
    read(made)
    place = made.position()
    read(made)
    made.commit(made.position())
    made.commit(made.position())
    made.commit(place)
    made.commit(None)
    made.commit({"gone": (1, 1, False)})
    assert made.source.made["a"].told == [4]


def test_what_is_done_is_behind_what_is_committed():
    made = begun({"a": (1, 5)}, a="abcd")
    assert made.is_done("a", {})
    read(made)
    assert not made.is_done("a", {})
    assert made.safe("a", {}) == (1, 5, False)
    assert made.safe("a", {"a": (2, 6, False)}) == (2, 6, False)
    assert made.safe("a", {"a": (0, 2, False)}) == (1, 5, False)  # of the time before it came here
    assert not made.is_done("a", {"a": (2, 6, False)})
    assert made.is_done("a", {"a": (3, 7, False)})


def test_one_that_is_to_rest_is_not_read_and_stays():
    made = begun(a="abc", b="xy")
    made.rest("a")
    made.rest("a")
    assert read(made) == ["x", "y"]
    assert read(made) == []
    assert made.position()["a"] == (0, 0, False)


@pytest.mark.parametrize(("lags", "lag"), [((3, 4), 7), ((3, None), None), ((None, None), None), ((0, 0), 0)])
def test_what_is_due_is_known_where_all_say_it(lags, lag):
    made = begun(a="a", b="b")
    for id, each in zip("ab", lags):
        made.source.made[id].lags = each
    assert made.lag() == lag
    assert readers().lag() is None


def test_what_a_source_or_reader_must_not_return_is_refused():
    made = begun(a=None)
    with pytest.raises(TypeError, match=r"Reader.read returned None; return a list"):
        made.read(1)
    made.source.open_split = lambda id, position: "no reader"
    made.source.open_added_split = lambda id: None
    with pytest.raises(TypeError, match=r"Source.open_split\('b'\) returned 'no reader'"):
        made.add(AssignedSplit("b"), None, 0)
    with pytest.raises(TypeError, match=r"Source.open_added_split\('b'\) returned None"):
        made.add(AssignedSplit("b", added=True), None, 0)


def test_all_is_closed_at_the_end():
    made = begun(a="a", b="b")
    made.close()
    made.close()
    assert all(reader.closed for reader in made.source.made.values())
    assert made.source.closed
    assert made.due() is None


@given(st.lists(st.integers(0, 5), min_size=1, max_size=4), st.integers(1, 3), st.data())
def test_wherever_splits_move_each_row_is_read_once_and_in_order(sizes, limit, data):
    rows = {f"s{i}": [f"s{i}.{n}" for n in range(size)] for i, size in enumerate(sizes)}
    seats = [readers(**rows), readers(**rows)]
    for id in rows:
        seats[0].add(AssignedSplit(id), None, 0)
    found = []
    for _ in range(60):
        seat = data.draw(st.sampled_from(seats))
        other = seats[seat is seats[0]]
        if seat.position() and data.draw(st.booleans()):
            id = data.draw(st.sampled_from(sorted(seat.position())))
            position, count, ended = seat.position()[id]
            if not ended:
                seat.forget(id)
                other.add(AssignedSplit(id, b"packed"), position, count)
        else:
            found += [key for key, _ in seat.read(limit)]
    for seat in seats:
        for _ in range(40):
            found += [key for key, _ in seat.read(limit)]
    assert len(found) == len(set(found))
    for id, all_of_it in rows.items():
        assert [key for key in found if key.split(".")[0] == id] == all_of_it
