"""Attributes that are forgotten some time after they were set."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault import TopologyError
from esault.topology.ttl import TimeToLive, has_event_ttl, ttl


class Clock:
    def __init__(self):
        self.at = {"processing": 100.0, "event": 100.0}

    def now(self):
        return self.at["processing"]

    def event_time(self):
        return self.at["event"]


class Both:
    by_clock = ttl(10)
    by_event = ttl(10, default=0, by="event")

    def __init__(self):
        self.context = Clock()


@pytest.mark.parametrize(("name", "by", "default"), [("by_clock", "processing", None), ("by_event", "event", 0)])
@given(acts=st.lists(st.one_of(st.just("set"), st.just("delete"), st.floats(-12, 12)), max_size=12))
def test_a_value_is_there_for_its_seconds_after_it_was_set_last(name, by, default, acts):
    """Beside one that keeps all values. By event time the past comes back, and with it what was there then."""
    bolt, value, until = Both(), default, -1.0
    forgotten = False
    for number, act in enumerate(acts, 1):
        if act == "set":
            setattr(bolt, name, number)
            value, until, forgotten = number, bolt.context.at[by] + 10, False
        elif act == "delete":
            delattr(bolt, name)
            value, forgotten = default, True
        else:
            bolt.context.at[by] += act
        there = value if bolt.context.at[by] < until and not forgotten else default
        assert getattr(bolt, name) == there
        forgotten = forgotten or (by == "processing" and bolt.context.at[by] >= until)


def test_what_is_over_by_the_clock_takes_no_room_in_a_checkpoint():
    bolt = Both()
    bolt.by_clock = bolt.by_event = "x"
    assert vars(bolt)["by_clock"] == ("x", 100.0)
    bolt.context.at = {"processing": 110.0, "event": 110.0}
    assert (bolt.by_clock, bolt.by_event) == (None, 0)
    assert "by_clock" not in vars(bolt)
    assert "by_event" in vars(bolt), "a tuple of an earlier time may still come"


def test_without_a_run_the_clock_of_the_system_counts(monkeypatch):
    class Bare:
        last = ttl(10)

    now = [5.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    bolt = Bare()
    bolt.last = 1
    now[0] = 14.9
    assert bolt.last == 1
    now[0] = 15.0
    assert bolt.last is None
    assert isinstance(Bare.last, TimeToLive)
    del bolt.last


def test_bolts_that_need_the_times_of_tuples():
    class Derived(Both):
        pass

    class Clocked:
        last = ttl(1)

    assert has_event_ttl(Derived)
    assert not has_event_ttl(Clocked)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"seconds": 0}, "seconds=0 must be a number of seconds above 0"),
        ({"seconds": float("nan")}, "above 0"),
        ({"seconds": "1"}, "seconds is a number of seconds"),
        ({"seconds": 1, "by": "clock"}, "by='clock'; an attribute lives by 'event' or by 'processing' time"),
        ({"seconds": 1, "default": []}, "default is a list, which all keys would share"),
        ({"seconds": 1, "default": {}}, "default is a dict"),
    ],
)
def test_what_is_no_time_to_live(arguments, said):
    with pytest.raises(TopologyError, match=said):
        ttl(**arguments)


@pytest.mark.parametrize("before", ["text", (3, 4), (1, 2, 3), [1, 2.0]])
def test_what_was_a_plain_attribute_lives_from_its_first_look(before):
    bolt = Both()
    vars(bolt)["by_clock"] = before
    assert bolt.by_clock == before
    bolt.context.at["processing"] += 9
    assert bolt.by_clock == before
    bolt.context.at["processing"] += 1
    assert bolt.by_clock is None
