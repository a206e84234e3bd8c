"""The smaller parts of a sub-unit by themselves: the end, checkpoints, upkeep, the rate limit and the spout's reader."""

from __future__ import annotations

import logging
import re
from types import SimpleNamespace

import pytest

from esault import Spout
from esault.errors import CheckpointError, EsaultError, SourceError
from esault.flow.operators.batch_emitter import BatchEmitter
from esault.flow.operators.user_error import UserError
from esault.flow.worker.checkpoints import Checkpoints
from esault.flow.worker.ending import Ending
from esault.flow.worker.phase import Event, Lifecycle, Phase
from esault.flow.worker.rate_cap import RateLimit
from esault.flow.worker.spout_reader import SpoutReader
from esault.flow.worker.upkeep import WATCH_EVERY, Upkeep
from esault.messages.checkpoint import NotSnapped, Snapped
from esault.messages.control import Ended, Finished, Stopped
from esault.payload.codec import Codec
from esault.topology.columns import Columns
from esault.topology.spout import EndOfStream

# the end -----------------------------------------------------------------------------------------


class End:
    """An Ending among fakes that note what is done to them, in order."""

    def __init__(self):
        self.done, self.said = [], []
        note = self.done.append
        self.life = Lifecycle()
        self.roots = SimpleNamespace(credit=True, open_count=0, replay_one=lambda now: False)
        self.acks = SimpleNamespace(send=lambda: note("acks"), retry=lambda: self.pushed)
        self.pushed = True
        self.sinks = SimpleNamespace(uncommitted=False, finish=lambda: note("commit"), close=lambda: self.wrong)
        self.outputs = SimpleNamespace(end=lambda now: note("END"), sinks=self.sinks)
        self.wrong = []
        self.reader = SimpleNamespace(handover=None, unfinished=0)
        watermarks = SimpleNamespace(over=lambda now: note("watermark"))
        self.ending = Ending(
            incarnation=7,
            unit="worker",
            lifecycle=self.life,
            reader=self.reader,
            roots=self.roots,
            acks=self.acks,
            outputs=self.outputs,
            watermarks=watermarks,
            take_steps=self.take,
            tracked=True,
            clock=lambda: 5.0,
            say=self.said.append,
        )

    def take(self, steps):
        taken = next(steps, None)
        self.done.append(taken)
        return taken is not None, taken is None

    def go(self, *events):
        for event in events:
            self.life.on(event)
        return self

    def finishing(self, *steps):
        self.go(Event.START, Event.FINISH)
        self.ending.begin(iter(steps))
        return self


def test_nothing_is_finished_while_it_runs():
    it = End().go(Event.START)
    assert not it.ending.advance()
    it.ending.input_ended()
    assert (it.life.phase, it.said, it.done) == (Phase.ENDED, [Ended(7)], [])
    with pytest.raises(EsaultError):
        it.ending.input_ended()


def test_steps_are_taken_while_the_window_has_room_and_no_change_is_on():
    it = End().finishing("one", "two")
    assert it.ending.advance()
    it.roots.credit = False
    assert not it.ending.advance()
    it.roots.credit = True
    it.reader.handover = SimpleNamespace(active=True)
    assert not it.ending.advance()
    it.reader.handover.active = False
    assert it.ending.advance()
    assert it.done == ["one", "two"]
    it.ending.open_calls = ["a call"]
    assert not it.ending.advance()
    it.ending.open_calls = []
    assert it.ending.advance()
    assert it.life.phase is Phase.COMMITTING


def test_END_comes_behind_roots_sinks_acks_and_the_last_watermark():
    it = End().finishing()
    it.ending.advance()
    it.done.clear()
    it.roots.open_count = 1
    assert not it.ending.advance()
    it.roots.open_count, it.sinks.uncommitted = 0, True
    assert not it.ending.advance()
    it.sinks.uncommitted, it.pushed = False, False
    assert not it.ending.advance()
    assert (it.done, it.said) == (["acks"], [])
    it.pushed = True
    assert it.ending.advance()
    assert it.done == ["acks", "acks", "watermark", "END"]
    assert (it.said, it.life.phase) == ([Finished(7)], Phase.FINISHED)
    assert not it.ending.advance()


def stop(it, at_once=False):
    failures = []

    def fail(text, error=None):
        it.life.on(Event.FAIL)
        failures.append(text)

    it.ending.stop(at_once, lambda: it.done.append("close"), fail, lambda: "status")
    return failures


@pytest.mark.parametrize(("at_once", "done"), [(False, ["commit", "acks", "close"]), (True, ["close"])])
def test_it_commits_before_it_stops_unless_it_stops_at_once(at_once, done):
    it = End().go(Event.START)
    assert stop(it, at_once) == []
    assert (it.done, it.said, it.life.phase) == (done, [Stopped(7, "status")], Phase.STOPPED)
    stop(it)
    assert it.said == [Stopped(7, "status")]


def test_the_first_thing_that_goes_wrong_as_it_stops_is_told():
    it = End()
    it.wrong = ["one", "two"]
    assert stop(it) == ["one"]
    it = End()

    def finish():
        raise ValueError("no")

    it.sinks.finish, it.wrong = finish, ["one"]
    (text,) = stop(it)
    assert "ValueError: no" in text
    assert it.life.phase is Phase.STOPPED
    it = End().go(Event.FAIL)
    stop(it)
    assert it.done == ["close"]


# checkpoints -------------------------------------------------------------------------------------


class Cut:
    def __init__(self, snap=None):
        self.done, self.said = [], []
        self.life = Lifecycle()
        self.reader = SimpleNamespace(
            alignment=SimpleNamespace(number=None), release=lambda: self.done.append("release")
        )
        self.handles = {"out": "h"}
        sinks = SimpleNamespace(
            prepare=lambda number, said: dict(self.handles), complete=self._complete, preparing=False
        )
        outputs = SimpleNamespace(cut=lambda *args: self.done.append(("cut", *args)), sinks=sinks)
        snap = snap or (lambda *args: self.done.append(("snap", *args)))
        self.checkpoints = Checkpoints(7, self.life, self.reader, outputs, snap, self.said.append)

    def _complete(self, number, handles):
        self.done.append(("complete", number, dict(handles)))
        handles.clear()

    def cut(self, number):
        self.done.clear()
        self.reader.alignment.number = number
        self.checkpoints.cut(5.0)
        return self.done


def test_a_cut_is_sent_on_before_state_is_kept_and_what_was_held_comes_after():
    assert Cut().cut(1) == [("cut", 1, 5.0, False), ("snap", 1, True), "release"]


def test_state_builds_on_a_checkpoint_only_if_that_is_known_to_be_complete():
    it = Cut()
    it.cut(1)
    assert it.cut(2)[1] == ("snap", 2, False)
    it.checkpoints.complete(2)
    assert it.cut(3)[1] == ("snap", 3, True)
    it.checkpoints.complete(2)
    assert it.checkpoints.completed == 2


def test_handles_are_told_until_they_are_committed():
    it = Cut()
    it.cut(1)
    it.checkpoints.snapped(1)
    it.cut(2)
    it.checkpoints.snapped(2, position=b"p")
    assert it.said == [
        Snapped(7, 1, handles={1: {"out": "h"}}),
        Snapped(7, 2, position=b"p", handles={1: {"out": "h"}, 2: {"out": "h"}}),
    ]
    it.done.clear()
    it.checkpoints.complete(2)
    it.checkpoints.complete(2)
    assert it.done == [("complete", 1, {"out": "h"}), ("complete", 2, {"out": "h"})]
    it.handles = {}
    it.cut(3)
    it.checkpoints.snapped(3)
    assert it.said[-1].handles == {}


def test_what_it_says_of_its_life():
    it = Cut()
    for event in (Event.START, Event.FINISH, Event.ELEMENTS_FINISHED):
        it.life.on(event)
    it.checkpoints.snapped(1)
    it.life.on(Event.END_SENT)
    it.checkpoints.snapped(2)
    assert [(said.finished, said.ended) for said in it.said] == [(True, False), (True, True)]
    assert it.cut(3)[0] == ("cut", 3, 5.0, True)


def test_state_that_cannot_be_kept_is_told_and_reading_goes_on():
    def snap(number, sure):
        raise CheckpointError("full")

    it = Cut(snap)
    assert it.cut(1)[-1] == "release"
    assert it.said == [NotSnapped(7, 1, "full")]


# upkeep ------------------------------------------------------------------------------------------


def test_upkeep_looks_for_overdue_roots_and_reports_each_in_its_time():
    done = []
    acks = type("Acks", (), {"send": lambda self: done.append("acks"), "__bool__": lambda self: False})()
    roots = SimpleNamespace(open_count=0, stalled=False, watch=lambda now: done.append("watch"))

    def report(now):
        done.append("report")
        return now + 1

    upkeep = Upkeep(acks, roots, True, 0.0, 1.0, report, lambda: done.append("stalled"))
    assert (upkeep.due_at, upkeep.wake_at) == (WATCH_EVERY, 1.0)
    roots.open_count = 1
    assert upkeep.wake_at == WATCH_EVERY
    roots.stalled = True
    upkeep.run(WATCH_EVERY)
    assert (done, roots.stalled, upkeep.due_at) == (["acks", "watch", "stalled"], False, 2 * WATCH_EVERY)
    done.clear()
    upkeep.run(1.0)
    assert (done, upkeep.due_at) == (["acks", "watch", "report"], 1.0 + WATCH_EVERY)


def test_where_nothing_is_acked_no_root_is_overdue():
    done = []
    acks = SimpleNamespace(send=lambda: done.append("acks"))
    Upkeep(acks, None, False, 0.0, 1.0, None, None).run(WATCH_EVERY)
    assert done == ["acks"]


# the rate limit ----------------------------------------------------------------------------------


def test_a_rate_limit_counts_from_when_it_is_set_and_ends_by_itself():
    limit = RateLimit(lambda: 40)
    assert (limit.allowed(0.0, 9), limit.wake_at(3.0)) == (9, 3.0)
    limit.change(10.0, 5.0, 0.0)
    assert limit.allowed(0.0, 9) == 0
    assert limit.allowed(0.2, 9) == 1
    assert limit.wake_at(7.0) == 7.0
    assert limit.allowed(5.0, 9) == 9
    assert limit.cap is None
    limit.change(10.0, 5.0, 6.0)
    limit.change(0.0, 0.0, 6.0)
    assert limit.cap is None


# the spout's reader ------------------------------------------------------------------------------


class Plain(Spout):
    def __init__(self, *reads):
        self.reads = list(reads)

    def open(self, context):
        self.opened = context

    def read(self, limit):
        read = self.reads.pop(0)
        if isinstance(read, BaseException):
            raise read
        return read

    def settle(self):
        raise AssertionError("nothing stands for this one")


class Sought(Plain):
    settled = 0

    def position(self):
        return len(self.reads)

    def seek(self, position):
        self.at = position

    def settle(self):
        self.settled += 1

    def close(self):
        raise ValueError("cannot")


def spout_reader(spout, trusted=True):
    def check(key, value):
        if key is None:
            raise TypeError("no key")

    context = SimpleNamespace(logger=logging.getLogger())
    plan = SimpleNamespace(name="rows", spout=spout)
    return SpoutReader(plan, context, SimpleNamespace(trusted=trusted, check=check))


def test_rows_become_columns():
    reader = spout_reader(Plain([("a", 1), ("b", 2)], [], EndOfStream()))
    assert reader.spout.opened is reader.spout.context
    assert reader.read(9) == (("a", "b"), (1, 2))
    assert reader.read(9) is None
    with pytest.raises(EndOfStream):
        reader.read(9)


class Columned(Plain):
    """As a source in the box."""

    __module__ = "esault.sources.columned"

    def read(self, limit):
        raise AssertionError("it has read_columns")

    def read_columns(self, limit):
        return Columns(["a", "b"][:limit], [1, 2][:limit])


class Marked(Columned):
    """Changes what it inherits, as a user's class may."""

    def read(self, limit):
        columns = self.read_columns(limit)
        return [(key, value * 10) for key, value in zip(columns.keys, columns.values)]


class Table(Plain):
    """A user's, whose method of that name is another thing."""

    def read(self, limit):
        return [("a", 1)][:limit]

    def read_columns(self, path, names):
        raise AssertionError("not asked for")


def test_columns_are_read_where_the_class_that_defines_read_has_them():
    def reader(spout):
        emitter = BatchEmitter("rows", (), 0, False, Codec())
        return SpoutReader(SimpleNamespace(name="rows", spout=spout), SimpleNamespace(logger=None), emitter)

    assert reader(Columned()).read(9) == (("a", "b"), (1, 2))
    assert reader(Columned()).read(0) is None
    assert reader(Marked()).read(9) == (("a", "b"), (10, 20))
    assert reader(Table()).read(9) == (("a",), (1,))


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (None, "unit 'rows': Plain.read returned None"),
        ([1], r"unit 'rows': Plain.read must return \(key, value\) pairs, got 1"),
        (ValueError("no"), "unit 'rows', read: ValueError: no"),
        (SystemExit(1), "unit 'rows', read: SystemExit: 1"),
        (StopIteration(), "unit 'rows': Plain.read raised StopIteration; at the end of the source raise EndOfStream"),
        (SourceError("it is away"), "^unit 'rows': it is away$"),
    ],
)
def test_what_goes_wrong_names_unit_and_hook(read, text):
    with pytest.raises(UserError, match=text):
        spout_reader(Plain(read)).read(9)


def test_an_interrupt_is_nobodys_error():
    with pytest.raises(KeyboardInterrupt):
        spout_reader(Plain(KeyboardInterrupt())).read(9)


def test_rows_of_a_spout_that_is_not_trusted_are_checked():
    with pytest.raises(TypeError, match="no key"):
        spout_reader(Plain([(None, 1)]), trusted=False).read(9)


@pytest.mark.parametrize("wrong", [("a", 1, 2), ("a",), 5, None, "ab", {"a": 1, "b": 2}])
def test_the_row_is_named_that_is_no_pair(wrong):
    """Of rows of two lengths the longer ones were cut, and a text of two letters was a key and a value."""
    for rows in ([("a", 1), wrong], [wrong, ("a", 1)], [wrong]):
        with pytest.raises(UserError, match=rf"pairs, got {re.escape(repr(wrong))}$"):
            spout_reader(Plain(rows), trusted=False).read(9)
    assert spout_reader(Plain([["a", 1], ("b", 2)])).read(9) == (("a", "b"), (1, 2))


def test_only_a_spout_that_can_seek_has_a_place():
    reader = spout_reader(Plain())
    reader.settle()
    assert reader.place() is None
    reader = spout_reader(Sought(1, 2))
    reader.seek(5, 40)
    reader.settle()
    assert (reader.place(), reader.spout.at, reader.spout.settled) == ((2, 40), 5, 1)


def test_what_it_said_last_stands_when_it_is_asked_no_more(capsys):
    spout = Sought()
    spout.progress, spout.lag = lambda: (1.0, 2.0), lambda: 3
    reader = spout_reader(spout)
    spout.counters = lambda: {"bad": 4, "long": 1}
    assert reader.ask() == ((1.0, 2.0), 3, 5)
    spout.lag = lambda: 0
    reader.close()
    assert "unit 'rows', close: ValueError: cannot" in capsys.readouterr().err
    assert reader.ask() == ((1.0, 2.0), 3, 5)
