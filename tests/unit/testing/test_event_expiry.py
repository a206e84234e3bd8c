"""Objects, and attributes, that end by event time: the same whenever the tuples come, wherever their keys go and whoever dies."""

from __future__ import annotations

import itertools
import random

import pytest
from counting import Landed, Nothing
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from slowly import Slowly
from test_bolt_timers import rows_of
from test_checkpoints import walk
from windowed import at

from esault import Bolt, Topology, TopologyError, by_key, shuffle, single, ttl
from esault.messages.settings import Settings
from esault.testing import LocalRuntime
from esault.windows import TumblingWindow

LASTS = 9


class Visits(Bolt):
    """Tells of each visit: a time of a key without so long a pause."""

    last = ttl(LASTS, by="event")

    def __init__(self):
        self.numbers = []

    def process(self, key, value):
        self.numbers.append((value["n"], self.last))
        self.last = value["n"]

    def finish(self):
        self.emit(self.key, self.numbers)


def seen_of(rows):
    """By a plain loop: key -> (number, the number before it if that was set less than so many seconds before)."""
    found, last = {}, {}
    for key, value in rows:
        kept = key in last and value["at"] < last[key][1] + LASTS
        found.setdefault(key, []).append((value["n"], last[key][0] if kept else None))
        last[key] = (value["n"], value["at"])
    return found


def visited(rows, **options):
    t = Topology("visits")
    rows = t.spout("rows", Slowly(rows), time=at, lateness=7)
    rows.bolt(
        "visits", Visits, grouping=by_key(), parallelism=2, expire_after=LASTS, expire_by="event", **options
    ).sink("table", Landed())
    return t


@pytest.mark.slow
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.integers(0, 3), st.booleans())
@example(seed=1, kills=2, idle=True)
def test_what_ends_by_event_time_ends_when_no_tuple_of_it_can_come_any_more(done, seed, kills, idle):
    rows = rows_of(seed, 150)
    options = Settings(delivery="eo", max_pending=4, root_rows=16, frame_rows=8, reload_state=True)
    topology = visited(rows, **({"idle_after": 0.01} if idle else {}))
    local = LocalRuntime(topology, seed=seed, settings=options)
    walk(local, random.Random(seed), "visits", kills=kills)
    done.of(local, "change", "checkpoint", "expiry")
    times = {value["n"]: value["at"] for _, value in rows}
    found: dict = {}
    for row in local.landed("table"):
        found.setdefault(row.key, []).append([tuple(each) for each in row.value])
    for key, seen in seen_of(rows).items():
        lives = sorted(found.pop(key))
        assert [each for life in lives for each in life] == seen
        for before, after in itertools.pairwise(lives):
            over = max(times[number] for number, _ in before) + LASTS
            # None that is on time comes after the end and belongs before it.
            assert all(times[number] >= over for number, _ in after)
        done.counts["expiry"] += len(lives) - 1
    assert found == {}


class Token(Bolt):
    token = ttl(5, default="none")

    def process(self, key, value):
        self.emit(key, self.token)
        if value:
            self.token = value

    def tick(self, now):
        self.emit(self.key, (round(now), self.token))


def test_an_attribute_has_its_default_again_some_seconds_after_it_was_set():
    t = Topology("tokens")
    t.spout("rows", Nothing()).bolt("token", Token, grouping=by_key(), tick_every=1)
    local = LocalRuntime(t, spouts={"rows": [("a", "x"), ("a", "")]})
    local.run_until_drained()
    assert local.emitted("token")[:2] == [("a", "none"), ("a", "x")]
    bolt = Token()
    assert bolt.token == "none"
    bolt.token = "y"
    assert bolt.token == "y"
    del bolt.token
    assert bolt.token == "none"


def test_it_lives_by_the_clock_of_the_run_and_moves():
    from test_bolt_timers import Feed

    class Kept(Bolt):
        seen = ttl(5)

        def process(self, key, value):
            self.emit(key, (value, self.seen))
            if self.seen is None:
                self.seen = value

    t = Topology("kept")
    t.spout("rows", Feed([(second, "a") for second in (0, 2, 4, 6, 8, 12)], 13)).bolt("kept", Kept, grouping=by_key())
    local = LocalRuntime(t)
    for each in range(13):
        local.run_for(1)
        if local.driver.phase == "running":
            local.scale("kept", 1 + each % 2)
    local.run_until_drained()
    assert [value for _, value in local.emitted("kept")] == [(0, None), (2, 0), (4, 0), (6, None), (8, 6), (12, None)]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ttl(0), "above 0"),
        (lambda: ttl(5, by="wall"), "'event' or by 'processing'"),
        (lambda: ttl(5, default=[]), "which all keys would share"),
    ],
)
def test_an_attribute_that_cannot_be_forgotten_so_is_refused(call, said):
    with pytest.raises(TopologyError, match=said):
        call()


@pytest.mark.parametrize(
    ("options", "timed", "said"),
    [
        ({"expire_by": "event", "grouping": by_key()}, True, "write expire_after=SECONDS"),
        ({"expire_by": "wall", "expire_after": 5, "grouping": by_key()}, True, "'processing' or by 'event'"),
        ({"expire_by": "event", "expire_after": 5, "grouping": single()}, True, "for objects per key"),
        ({"expire_by": "event", "expire_after": 5, "grouping": shuffle()}, True, "for objects per key"),
        ({"expire_by": "event", "expire_after": 5, "grouping": by_key()}, False, "nothing says when a tuple of 'rows'"),
        ({"grouping": shuffle()}, True, "has ttl"),
    ],
)
def test_what_cannot_end_by_event_time_says_so_when_it_is_built(options, timed, said):
    rows = Topology("t").spout("rows", Nothing())
    if timed:
        rows = rows.timed(at)
    with pytest.raises(TopologyError, match=said):
        rows.bolt("visits", Visits, **options)


def test_windows_refuse_it_too():
    with pytest.raises(TopologyError, match="lives until that closes"):
        Topology("t").spout("rows", Nothing()).window("bolt", Visits, TumblingWindow(5), time=at)
