"""The bolt of tables as of a tuple's own time by itself: versions come and go, and each tuple finds that of its time."""

from __future__ import annotations

from esault.topology.as_of_join import AsOfJoin


class Joined(AsOfJoin):
    def __init__(self, expire_after=None):
        super().__init__("none", expire_after)
        self.key, self.out = "k", []

    def emit(self, key, value, stream=None):
        self.out.append(value)

    def table(self, value, at):
        assert self.take("right", value, at, 0.0)

    def tuple(self, value, at):
        assert self.take("left", value, at, 0.0)


def test_each_tuple_finds_the_version_of_its_time_also_behind_a_move():
    joined = Joined()
    for version, at in [("v1", 10), ("v2", 20), ("v3", 30)]:
        joined.table(version, at)
    for at in (5, 10, 19, 25, 40):
        joined.tuple(f"t{at}", at)
    moved = Joined()
    moved.restore(*joined.state())
    assert moved.state() == joined.state() and moved.due == joined.due
    moved.advance(26)
    assert moved.out == [("t5", None), ("t10", "v1"), ("t19", "v1"), ("t25", "v2")]
    # v1 is of no use any more; v2 is, of 26 to 30
    assert [version for _, _, version in moved.versions] == ["v2", "v3"]
    moved.advance(100)
    assert moved.out[4:] == [("t40", "v3")]


def test_a_key_that_nothing_comes_of_for_long_enough_is_forgotten():
    joined = Joined(expire_after=50)
    joined.table("v1", 10)
    assert 60 <= joined.due < 61
    joined.advance(59)
    assert joined.needed
    joined.advance(61)
    assert not joined.needed
