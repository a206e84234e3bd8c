"""A later run goes on with code that keeps another kind of state: windows, timers, lives, attributes."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
from counting import Landed, Nothing

from esault import Bolt, Topology, UsageError, by_key, ttl
from esault.control.checkpoints.completed import check_plan
from esault.messages.settings import Settings
from esault.payload import class_names
from esault.payload.codec import Codec
from esault.sources import Items, Paced
from esault.testing import LocalRuntime
from esault.windows import CalendarWindow, CountWindow, SessionWindow, SlidingWindow, TumblingWindow

EXACTLY = Settings(delivery="eo", max_pending=4, root_rows=4)
ROWS = [("a", 1000.0 + i) for i in range(200)]
SEEN: list[float] = []
CODEC = Codec()


def some(topology, rows=ROWS, until=30):
    """A run that is left to itself after a checkpoint, when so many tuples have been seen."""
    SEEN.clear()
    local = LocalRuntime(topology, spouts=rows and {"rows": rows}, settings=EXACTLY)
    while len(SEEN) < until:
        if not local.step():
            local.wait()
    local.checkpoint()
    while not local.kept:
        if not local.step():
            local.wait()
    return local


def go_on(before, topology, rows=ROWS):
    """Another run in its place."""
    later = LocalRuntime(
        topology,
        spouts=rows and {"rows": rows},
        settings=EXACTLY,
        kept=before.driver.completed,
        last_number=before.driver.checkpoints.newest,
    )
    later.state_store = before.state_store
    later._prepared.update(before._prepared)
    later.run_until_drained()
    return later


def keyed(bolt, spout=None, **options):
    t = Topology("resumed")
    rows = t.spout("rows", spout or Nothing()).timed(lambda value: value)
    rows.bolt("count", bolt, grouping=by_key(), **options).sink("out", Landed())
    return t


def values(*runs):
    """All that landed, each once: what had been prepared is committed by both."""
    return list(dict.fromkeys(row.value for run in runs for row in run.landed("out")))


class Count(Bolt):
    """Counts, and says how its life ended."""

    def __init__(self):
        self.n = 0

    def process(self, key, value):
        SEEN.append(value)
        self.n += 1
        self.emit(key, self.n)


class Timed(Count):
    """The same with a timer that is set, and never due."""

    def process(self, key, value):
        super().process(key, value)
        self.timer("late", self.context.now() + 1e6, by="processing")

    def on_timer(self, name, at):
        raise AssertionError("not due")


def test_timers_of_a_bolt_that_has_none_any_more_are_left_out_and_said(caplog):
    before = some(keyed(Timed))
    after = go_on(before, keyed(Count))
    assert values(before, after) == list(range(1, 201))
    assert "unit 'count': 1 key had timers, which are left out: the bolt has no on_timer any more" in caplog.text


def test_keys_that_expired_by_event_time_may_live_for_ever(caplog):
    before = some(keyed(Count, expire_after=1000, expire_by="event"))
    after = go_on(before, keyed(Count))
    assert values(before, after) == list(range(1, 201))
    assert "left out" not in caplog.text


class Finished(Count):
    """Says how its life ended."""

    def finish(self):
        self.emit(self.key, (self.context.finishing, self.n))


def test_keys_that_lived_for_ever_expire_by_event_time():
    rows = Paced(Items([("old", 1000.0), *ROWS]), rate=10)
    before = some(keyed(Count, rows), None)
    after = go_on(before, keyed(Finished, rows, expire_after=50, expire_by="event"), None)
    ends = [(row.key, row.value) for row in after.landed("out") if type(row.value) is tuple]
    assert ends == [("old", ("expired", 1)), ("a", ("drained", 200))]


class Before(Bolt):
    """Tells of each value which one came before it."""

    def __init__(self):
        self.last = None

    def process(self, key, value):
        SEEN.append(value)
        self.emit(key, self.last)
        self.last = value


class BeforeForAWhile(Bolt):
    last = ttl(3600)

    def process(self, key, value):
        self.emit(key, self.last)
        self.last = value


def test_an_attribute_that_is_forgotten_after_a_while_from_now_on_is_still_there():
    before = some(keyed(Before))
    after = go_on(before, keyed(BeforeForAWhile))
    assert values(before, after) == [None, *(1000.0 + i for i in range(199))]


class ByName(Bolt):
    """Its attributes have names that no code says."""

    def process(self, key, value):
        SEEN.append(value)
        name = f"n_{int(value) % 2}"
        setattr(self, name, getattr(self, name, 0) + 1)
        self.emit(key, (name, getattr(self, name)))


class ByNameToo(ByName):
    """The same with one that is new."""

    def __init__(self):
        self.more = 0


def test_attributes_of_names_that_no_code_says_stay():
    before = some(keyed(ByName))
    after = go_on(before, keyed(ByNameToo))
    assert values(before, after)[-1] == ("n_1", 100)


class Covered(Bolt):
    """`n` is told by another attribute now."""

    def __init__(self):
        self._n = 0

    @property
    def n(self):
        return self._n

    def process(self, key, value):
        self._n += 1
        self.emit(key, -self.n)


def test_an_attribute_behind_a_property_is_said_to_be_left_out():
    before = some(keyed(Count))
    after = go_on(before, keyed(Covered))
    assert values(after)[-1] > -200
    assert any(
        "attribute 'n' of Covered is in the state of 1 key and no attribute" in each for each in after.driver.notices
    )


VISIT = """
from dataclasses import dataclass, field

@dataclass
class Visit:
    at: float
"""


@pytest.fixture
def visits():
    """The module of a user's class, of which there is another version from a certain moment on."""
    module = ModuleType("resumed_visits")
    sys.modules[module.__name__] = module

    def version(code):
        class_names.forget()
        exec(code, vars(module))
        return module.Visit

    yield version
    del sys.modules[module.__name__]
    class_names.forget()


class Pages(Bolt):
    """Counts the pages of a window's visits, of which none had any in the first version."""

    def __init__(self):
        self.pages = []

    def process(self, key, value):
        self.pages += value.pages

    def finish(self):
        self.emit(self.key, (self.window.start, len(self.pages)))


def seen(visit):
    SEEN.append(visit.at)
    return visit.at


@pytest.mark.parametrize(("kind", "more"), [(SessionWindow(10), {}), (TumblingWindow(1000), {"ordered": True})])
def test_values_that_wait_in_windows_get_the_fields_that_are_new(visits, kind, more):
    def topology():
        t = Topology("resumed")
        t.spout("rows", Nothing()).window("count", Pages, kind, time=seen, **more).sink("out", Landed())
        return t

    first = visits(VISIT)
    before = some(topology(), [("a", first(at)) for _, at in ROWS])
    second = visits(VISIT + "    pages: list = field(default_factory=lambda: [1])\n")
    after = go_on(before, topology(), [("a", second(at)) for _, at in ROWS])
    assert values(after) == [(1000.0, 200)]


class Held(Bolt):
    """The tuples of a window, with its bounds."""

    def __init__(self):
        self.rows = []

    def process(self, key, value):
        self.rows.append(value)

    def finish(self):
        self.emit(self.key, (self.window.start, self.window.end, tuple(self.rows)))


class Combined(Held):
    """The same, of which slices are put together."""

    def combine(self, other):
        self.rows = sorted(self.rows + other.rows)


def at(value):
    SEEN.append(value)
    return value


def windowed(kind, bolt=Held, **options):
    t = Topology("resumed")
    rows = t.spout("rows", Nothing())
    if kind is None:
        rows.bolt("count", bolt, grouping=by_key()).sink("out", Landed())
    else:
        time = None if isinstance(kind, CountWindow) else at
        rows.window("count", bolt, kind, time=time, **options).sink("out", Landed())
    return t


MINUTES, THIRDS = TumblingWindow(60), SlidingWindow(60, 20)
OTHERS = [
    (MINUTES, MINUTES),
    (MINUTES, TumblingWindow(30)),
    (TumblingWindow(30), THIRDS),
    (THIRDS, TumblingWindow(60, 7)),
    (CalendarWindow("day"), MINUTES),
    (THIRDS, SlidingWindow(80, 20)),
    (SlidingWindow(60, 30), THIRDS),
]


@pytest.mark.parametrize(
    "more", [{}, {"bolt": Combined}, {"ordered": True}, {"allowed_lateness": 5, "updates": "accumulate"}], ids=str
)
@pytest.mark.parametrize(("then", "now"), OTHERS, ids=str)
def test_windows_that_are_open_keep_their_bounds_where_others_are_cut_from_now_on(then, now, more):
    before = some(windowed(then, **more))
    _, read = CODEC.unpack(before.driver.completed.units["rows"].positions[0])
    assert 10 < read < 200
    after = go_on(before, windowed(now, **more))
    want = {}
    for kind, rows in ((then, ROWS[:read]), (now, ROWS[read:])):
        for _, time in rows:
            for index in kind.indices(time):
                want.setdefault(tuple(kind.window(index)), []).append(time)
    found = {(start, end): list(rows) for start, end, rows in values(after)}
    assert found == want


@pytest.mark.parametrize(
    ("then", "now", "text"),
    [
        (SessionWindow(5), TumblingWindow(60), "it had windows of sessions, and has windows of time now"),
        (TumblingWindow(60), CountWindow(3), "it had windows of time, and has windows of so many tuples now"),
        (None, TumblingWindow(60), "it had no windows, and has windows of time now"),
        (TumblingWindow(60), None, "it had windows of time, and has no windows now"),
    ],
)
def test_windows_of_another_form_are_refused(then, now, text):
    before = some(windowed(then, **({"bolt": Count} if then is None else {})))
    check_plan(before.driver.completed, windowed(then).plan(), {})
    with pytest.raises(UsageError, match=f"unit 'count' of checkpoint 1: {text}, so that its state has no place"):
        check_plan(before.driver.completed, windowed(now).plan(), {})
