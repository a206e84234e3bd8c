"""A sub-unit through its life: what it processes, cuts, finishes and says, message by message and turn by turn."""

from __future__ import annotations

from concurrent.futures import Future
from itertools import pairwise
from typing import ClassVar

import pytest

from esault import Bolt, Sink, Spout, Topology, by_key
from esault.errors import CheckpointError, EsaultError
from esault.event_loop import SteppedLoop
from esault.flow.channel.frame import ACK, CHECKPOINT, DATA, END
from esault.flow.worker.phase import Phase
from esault.messages.change import Leave
from esault.messages.checkpoint import Abandon, Checkpoint, Completed, NotSnapped, Restore, Snapped
from esault.messages.control import (
    Add,
    Added,
    Drain,
    Ended,
    Failed,
    Finish,
    Finished,
    Gone,
    Start,
    Stop,
    Stopped,
    Table,
    Throttle,
)
from esault.messages.probe import Usage
from esault.messages.status import Status
from esault.routing.ring import INT_MAX
from esault.sources import Items
from esault.testing.memory_state_store import MemoryStateStore
from esault.topology.spout import EndOfStream

ALL = ((0, INT_MAX),)
calls: list[object] = []


@pytest.fixture(autouse=True)
def _no_calls():
    calls.clear()


class Sum(Bolt):
    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += value
        self.emit(key, self.total)

    def finish(self):
        calls.append("finish")
        self.emit(self.key, -self.total)

    def close(self):
        calls.append("close")


class Broken(Bolt):
    def process(self, key, value):
        raise ValueError("no")


class Silent(Bolt):
    def process(self, key, value):
        pass


def chain(bolt=Sum, spout=None, **options):
    t = Topology("chain")
    worker = t.spout("rows", spout or Items([])).bolt("worker", bolt, grouping=by_key(), **options)
    worker.bolt("behind", Sum, grouping=by_key())
    return t


# data --------------------------------------------------------------------------------------------


def test_nothing_is_processed_before_the_start(bench):
    it = bench(chain())
    it.tell(Add(((100, 1),)))
    it.data(1, ("a", 2))
    assert not it.core.turn()
    assert (it.rows(), it.core.reader.waiting, it.core.started) == ([], 1, False)
    it.tell(Start())
    assert it.core.started
    it.turns()
    assert (it.rows(), it.core.reader.waiting) == ([("a", 2)], 0)


def test_a_batch_is_processed_counted_sent_on_and_acked(bench):
    it = bench(chain()).start(1)
    it.data(1, ("a", 2), ("a", 3), root=4, id=77)
    it.clock.advance(0.25)
    it.turns()
    (frame,) = [f for f in it.frames(it.behind) if f.kind == DATA]
    (batch,) = frame.body[1]
    assert (batch.root, batch.keys, batch.values) == ((3, 4, 0), ("a", "a"), (2, 5))
    (ack,) = it.frames(it.owner)
    assert ack.kind == ACK
    assert ack.body == (((3, 4, 0), 77 ^ batch.id, 77 ^ batch.id),)
    counts = it.core.counts()
    assert (counts.tuples_in, counts.tuples_out, counts.arrivals, counts.backlog, counts.elements) == (2, 2, 2, 0, 1)
    assert it.core.metrics.durations.latency.count == 2
    assert it.core.metrics.durations.end_to_end.count == 0  # it goes on behind


def test_what_is_not_of_this_run_is_counted_and_dropped(bench):
    it = bench(chain()).start(1)
    it.core.read(b"\xc1")
    it.frame(DATA, 1, [1.0, ((3, 1, 0), 5, 0, ("a",), (1,), 1.0, None)], epoch=2)
    it.data(8, ("a", 1))  # nobody's channel
    it.turns()
    assert (it.rows(), it.core.counts().dropped_frames) == ([], 3)


def test_a_throttle_lets_through_so_many_a_second(bench):
    it = bench(chain()).start(1)
    it.tell(Throttle(10.0, 60.0))
    it.data(1, *[("a", 1)] * 5)
    it.turns()
    assert it.core.counts().tuples_in == 0
    it.clock.advance(0.1)
    it.turns()
    assert it.core.counts().tuples_in == 1
    assert it.core.wake_at() <= it.clock() + 0.11
    it.tell(Throttle(0.0, 0.0))
    it.turns()
    assert it.core.counts().tuples_in == 5


def test_a_message_that_no_sub_unit_knows_is_refused(bench):
    with pytest.raises(EsaultError, match="sub-unit 7 of 'worker' got an unknown message: 'hello'"):
        bench(chain()).tell("hello")


def test_a_report_comes_with_the_clock(bench):
    it = bench(chain(), status_every=1.0).start(1)
    it.turns()
    assert it.said() == []
    assert it.core.wake_at() == it.clock() + 1.0
    it.clock.advance(1.0)
    it.turns()
    (status,) = it.said()
    assert isinstance(status, Status)
    assert (status.incarnation, status.now) == (7, it.clock())


def test_the_first_report_tells_what_the_process_had_used_at_the_start(bench):
    it = bench(chain(), status_every=1.0)
    used = iter(range(10))
    it.core.metrics.usage = lambda: Usage(cpu=float(next(used)))
    it.start(1)
    began = it.clock()
    reports = []
    for _ in range(2):
        it.clock.advance(1.0)
        it.turns()
        reports += it.said()
    first, second = reports
    assert (first.usage_at_start, first.usage) == ((began, Usage(cpu=0.0)), Usage(cpu=1.0))
    assert (second.usage_at_start, second.usage) == (None, Usage(cpu=2.0))


def reports_of(it, seconds):
    """Moments of the reports of the next seconds, counted from now."""
    began, found = it.clock(), []
    for _ in range(round(seconds / 0.01)):
        it.clock.advance(0.01)
        it.turns()
        found += [round(each.now - began, 2) for each in it.said() if isinstance(each, Status)]
    return found


def test_in_the_first_moments_of_a_run_reports_come_more_often(bench):
    it = bench(chain(), status_every=0.3, first_status_every=0.1).start(1)
    found = reports_of(it, 1.5)
    early = [at for at in found if at <= 0.45]
    assert 3 <= len(early) <= 5
    assert [b - a for a, b in pairwise(early)] == pytest.approx([0.1] * (len(early) - 1), abs=0.011)
    later = found[len(early) :]
    assert [b - a for a, b in pairwise(later)] == pytest.approx([0.3] * (len(later) - 1), abs=0.011)


def test_a_newcomer_has_no_first_moments(bench):
    it = bench(chain(), status_every=0.3, first_status_every=0.1, joins=True).start(1)
    assert reports_of(it, 1.0) == pytest.approx([0.3, 0.6, 0.9], abs=0.04)


# the end -----------------------------------------------------------------------------------------


def test_the_input_has_ended_when_all_senders_have_and_all_is_processed_and_that_is_said_once(bench):
    it = bench(chain()).start(1, 2)
    it.data(2, ("a", 1))
    it.end(1)
    it.turns()
    it.said()
    assert not it.core.ended
    it.end(2)
    it.turns()
    it.core.turn()
    assert it.kinds() == ["EndRead", "Ended"]
    assert it.core.ended


def test_a_new_sender_takes_the_end_back(bench):
    it = bench(chain()).start(1)
    it.end(1)
    it.turns()
    assert Ended(7) in it.said()
    assert it.tell(Add(((101, 2),))) == [Added(7, (101,))]
    assert (it.phase(), it.core.ended) == (Phase.RUNNING, False)
    it.turns()
    assert it.said() == []
    it.end(2)
    it.turns()
    assert Ended(7) in it.said()


def test_without_a_sender_only_one_that_leaves_has_ended(bench):
    it = bench(chain()).start()
    it.turns()
    assert it.said() == []
    it.tell(Leave())
    it.turns()
    assert it.said() == [Ended(7)]


def test_a_sender_that_died_is_not_waited_for(bench):
    it = bench(chain()).start(1, 2)
    it.end(1)
    it.tell(Gone(102))
    it.turns()
    assert Ended(7) in it.said()


def ended(bench, topology=None, **options):
    it = bench(topology or chain(), **options).start(1)
    it.data(1, ("a", 2))
    it.end(1)
    it.turns()
    it.rows()
    it.said()
    it.frames(it.owner)
    return it


def test_what_finish_emits_is_a_root_of_its_own_and_END_goes_when_that_is_done(bench):
    it = ended(bench)
    it.tell(Finish())
    assert it.phase() is Phase.FINISHING
    it.core.turn()
    assert (it.phase(), calls) == (Phase.COMMITTING, ["finish"])
    it.turns()
    (frame,) = it.frames(it.behind)
    (batch,) = frame.body[1]
    assert (batch.root[0], batch.keys, batch.values) == (7, ("a",), (-2,))
    assert (it.phase(), it.said()) == (Phase.COMMITTING, [])
    it.frame(ACK, 9, ((batch.root, batch.id, batch.id),))
    it.turns()
    assert it.phase() is Phase.FINISHED
    assert it.said() == [Finished(7)]
    assert [frame.kind for frame in it.frames(it.behind)] == [END]


def test_finish_comes_behind_rows_that_were_carried_here_and_wait_for_a_rate(bench):
    it = bench(chain()).start(1)
    it.tell(Throttle(10.0, 60.0))
    it.data(1, ("a", 2))
    it.data(1, ("a", 3))
    it.tell(Finish())
    it.clock.advance(0.1)
    it.turns()
    assert (calls, it.core.reader.waiting, it.phase()) == ([], 1, Phase.FINISHING)
    it.clock.advance(0.1)
    it.turns()
    assert (calls, it.phase()) == (["finish"], Phase.COMMITTING)
    assert it.rows() == [("a", 2), ("a", 5), ("a", -5)]


def test_finish_is_done_once_however_often_it_is_told(bench):
    it = ended(bench)
    it.tell(Finish())
    it.turns()
    it.tell(Finish(), Add(((101, 2),)))
    it.turns()
    assert (calls, it.phase(), it.core.ended) == (["finish"], Phase.COMMITTING, True)


def test_who_leaves_does_not_finish_elements_that_have_moved(bench):
    it = bench(chain()).start(1)
    it.end(1)
    it.tell(Leave())
    it.turns()
    it.tell(Finish(leaving=True))
    it.turns()
    assert (calls, it.phase()) == ([], Phase.FINISHED)


def test_what_was_finished_before_the_checkpoint_is_not_finished_again(bench):
    it = ended(bench, restore=Restore(1, ranges=ALL, finished=True), delivery="eo")
    it.tell(Finish())
    it.turns()
    assert (calls, it.phase()) == ([], Phase.FINISHED)


def test_a_table_that_comes_after_the_end_ends_the_new_way_too(bench):
    it = ended(bench, chain(Silent))
    it.tell(Finish())
    it.turns()
    it.frames(it.behind)
    other = it.wire.bind("memory://other")
    it.tell(Table("behind", 2, ((0, 10),), {10: ("memory://other", "memory://o", 1)}))
    it.turns()
    assert it.frames(other)[-1].kind == END


def test_sinks_commit_at_once_when_elements_are_finished(bench):
    class Slow(Sink):
        rows = 0

        def write(self, rows):
            Slow.rows += len(rows)

        def prepare(self, epoch):
            return epoch

        def commit(self, epoch, handle):
            calls.append("commit")

    t = Topology("sinks")
    t.spout("rows", Items([])).bolt("worker", Sum, grouping=by_key()).sink("out", Slow())
    it = ended(bench, t, commit_every=60.0)
    assert (Slow.rows, calls) == (1, [])
    it.tell(Finish())
    it.core.turn()
    assert (it.phase(), calls) == (Phase.COMMITTING, ["finish", "commit"])


def test_a_sub_unit_that_stops_closes_its_objects_and_says_its_last_word_once(bench):
    it = bench(chain()).start(1)
    it.data(1, ("a", 2))
    it.turns()
    (stopped,) = it.tell(Stop())
    assert isinstance(stopped, Stopped)
    assert stopped.status.rows.tuples_in == 1
    assert (calls, it.core.stopped, it.core.started, it.core.turn()) == (["close"], True, False, False)
    assert it.tell(Stop(), Stop(True)) == []


def test_one_that_was_never_started_stops_as_well(bench):
    it = bench(chain())
    assert [type(m) for m in it.tell(Stop(True), Start(), Finish())] == [Stopped]
    assert it.core.stopped


def test_user_code_that_raises_fails_it_and_it_stops_without_a_commit(bench):
    it = bench(chain(Broken)).start(1)
    it.data(1, ("a", 2))
    assert not it.core.turn()
    (failed,) = it.said()
    assert isinstance(failed, Failed)
    assert "process, key 'a': ValueError: no" in failed.text
    assert (it.phase(), it.core.turn()) == (Phase.FAILED, False)
    assert it.tell(Finish(), Start()) == []
    assert [type(m) for m in it.tell(Stop())] == [Stopped]


# checkpoints -------------------------------------------------------------------------------------


def state(it, piece):
    return {key: it.codec.unpack(packed) for key, packed in it.store.read(piece)}


def test_a_checkpoint_is_cut_where_the_marks_stand_on_all_channels(bench):
    it = bench(chain(), delivery="eo").start(1, 2)
    it.data(1, ("a", 1))
    it.mark(1, 1)
    it.data(1, ("a", 10))  # behind the cut: held back
    it.data(2, ("a", 2))
    it.turns()
    assert it.rows() == [("a", 1), ("a", 3)]
    assert it.said() == []
    it.mark(2, 1)
    it.turns()
    (snapped,) = it.said()
    assert isinstance(snapped, Snapped)
    assert (snapped.number, snapped.finished, snapped.ended) == (1, False, False)
    assert [row["total"] for row in map(dict, state(it, snapped.piece).values())] == [3]
    frames = it.frames(it.behind)
    assert [frame.kind for frame in frames] == [CHECKPOINT, DATA]
    assert frames[1].body[1][0].values == (13,)


def test_a_sender_that_has_ended_counts_as_having_sent_its_mark(bench):
    it = bench(chain(), delivery="eo").start(1, 2)
    it.end(2)
    it.mark(1, 1)
    it.turns()
    assert [m.number for m in it.said() if isinstance(m, Snapped)] == [1]


def test_after_the_elements_are_finished_a_checkpoint_says_so(bench):
    it = ended(bench, delivery="eo")
    it.tell(Finish())
    it.turns()
    (snapped,) = _snapped(it, 1)
    assert (snapped.finished, snapped.ended) == (True, False)


def _snapped(it, number):
    it.tell(Checkpoint(number))
    it.turns()
    return [m for m in it.said() if isinstance(m, Snapped)]


def test_what_a_given_up_checkpoint_held_back_is_processed_and_nothing_is_written(bench):
    it = bench(chain(), delivery="eo").start(1, 2)
    it.mark(1, 1)
    it.data(1, ("a", 1))
    it.turns()
    assert it.rows() == []
    it.tell(Abandon(1))
    it.turns()
    assert (it.rows(), it.said(), it.store.pieces) == ([("a", 1)], [], {})
    it.mark(2, 1)  # comes too late
    assert it.core.reader.alignment.number is None


def test_a_snapshot_that_is_being_written_is_dropped_with_its_checkpoint(bench):
    it = bench(chain(), delivery="eo").start(1)
    it.data(1, *[(f"k{i}", 1) for i in range(500)])
    it.turns()
    it.core.writer.advance = lambda: None  # slow
    it.mark(1, 1)
    it.core.turn()
    assert it.core.writer.snapshot.number == 1
    it.tell(Abandon(1))
    assert it.core.writer.snapshot is None


def test_the_next_checkpoint_gives_up_the_one_before(bench):
    it = bench(chain(), delivery="eo").start(1, 2)
    it.mark(1, 1)
    it.data(1, ("a", 1))
    it.mark(2, 2)
    it.turns()
    assert it.rows() == [("a", 1)]
    it.mark(1, 2)
    it.turns()
    assert [m.number for m in it.said() if isinstance(m, Snapped)] == [2]


def test_where_state_cannot_be_written_the_run_goes_on(bench):
    class Full(MemoryStateStore):
        def create(self, number, incarnation, base):
            raise CheckpointError("the disk is full")

    it = bench(chain(), delivery="eo", store=Full()).start(1)
    it.mark(1, 1)
    it.data(1, ("a", 1))
    it.turns()
    assert it.said() == [NotSnapped(7, 1, "the disk is full")]
    assert it.rows() == [("a", 1)]


class Prepared(Sink):
    fails = False

    def write(self, rows):
        pass

    def prepare(self, epoch):
        return f"h{epoch}"

    def commit(self, epoch, handle):
        if Prepared.fails:
            raise OSError("gone")
        calls.append((epoch, handle))


def sinks():
    t = Topology("sinks")
    t.spout("rows", Items([])).bolt("worker", Sum, grouping=by_key()).sink("out", Prepared())
    return t


def test_sinks_commit_what_they_prepared_when_the_checkpoint_is_complete(bench):
    Prepared.fails = False
    it = bench(sinks(), delivery="eo").start(1)
    it.mark(1, 1)
    it.turns()
    it.mark(1, 2)
    it.turns()
    snapped = [m for m in it.said() if isinstance(m, Snapped)]
    assert [m.handles for m in snapped] == [{1: {"out": "h1"}}, {1: {"out": "h1"}, 2: {"out": "h2"}}]
    it.tell(Completed(2))
    assert calls == [(1, "h1"), (2, "h2")]
    assert it.core.checkpoints.completed == 2


def test_a_sink_that_cannot_commit_fails_the_run(bench):
    Prepared.fails = True
    it = bench(sinks(), delivery="eo").start(1)
    it.mark(1, 1)
    it.turns()
    it.said()
    (failed,) = it.tell(Completed(1))
    assert "sink 'out', commit: OSError: gone" in failed.text
    assert it.phase() is Phase.FAILED


class Slow(Sink):
    """Its hooks are done when the test says so."""

    futures: ClassVar[dict[str, Future]] = {}

    def write(self, rows):
        return self.asked("write", len(rows))

    def prepare(self, epoch):
        return self.asked("prepare", epoch)

    def commit(self, epoch, handle):
        return self.asked("commit", (epoch, handle))

    def asked(self, hook, what):
        calls.append((hook, what))
        Slow.futures[hook] = Future()
        return Slow.futures[hook]


@pytest.fixture
def slow(bench):
    Slow.futures = {}
    t = Topology("slow")
    worker = t.spout("rows", Items([])).bolt("worker", Sum, grouping=by_key())
    worker.sink("out", Slow())
    worker.bolt("behind", Sum, grouping=by_key())
    return lambda **settings: bench(t, **settings).start(1)


def done(it, hook, result=None):
    Slow.futures.pop(hook).set_result(result)
    it.turns()


def test_a_part_of_a_checkpoint_is_told_when_a_slow_sink_has_prepared_and_rows_go_on(slow):
    it = slow(delivery="eo")
    it.mark(1, 1)
    it.turns()
    it.data(1, ("a", 1))
    it.turns()
    assert it.rows() == [("a", 1)]
    assert not [m for m in it.said() if isinstance(m, Snapped)]
    assert calls == [("prepare", 1), ("write", 1)]
    done(it, "prepare", "h1")
    assert [m.handles for m in it.said() if isinstance(m, Snapped)] == [{1: {"out": "h1"}}]
    done(it, "write")
    it.tell(Completed(1))
    it.mark(1, 2)
    it.turns()
    done(it, "prepare", "h2")
    (snapped,) = [m for m in it.said() if isinstance(m, Snapped)]
    assert snapped.handles == {1: {"out": "h1"}, 2: {"out": "h2"}}, "the first is not committed yet"
    done(it, "commit")
    it.tell(Completed(2))
    assert calls[-1] == ("commit", (2, "h2"))
    done(it, "commit")
    it.mark(1, 3)
    it.turns()
    done(it, "prepare", "h3")
    (snapped,) = [m for m in it.said() if isinstance(m, Snapped)]
    assert snapped.handles == {3: {"out": "h3"}}


def test_a_handle_of_a_checkpoint_that_was_given_up_goes_with_the_next_one_also_where_it_comes_late(slow):
    it = slow(delivery="eo")
    it.mark(1, 1)
    it.turns()
    it.tell(Abandon(1))
    it.mark(1, 2)
    it.turns()
    assert calls == [("prepare", 1)]
    done(it, "prepare", "h1")
    done(it, "prepare", "h2")
    (snapped,) = [m for m in it.said() if isinstance(m, Snapped)]
    assert (snapped.number, snapped.handles) == (2, {1: {"out": "h1"}, 2: {"out": "h2"}})


def test_a_sink_that_takes_no_more_stops_the_unit_and_an_error_fails_it(slow):
    it = slow(delivery="eo")
    for id in range(4):
        it.data(1, *((f"k{i}", 1) for i in range(6000)), id=id)
        it.turns()
    assert calls == [("write", 4)], "nothing else is handed over before it is done"
    assert it.core.outputs.blocked and it.core.reader.backlog == 23_992, "as many as are written wait"
    done(it, "write")
    assert len(calls) == 2
    assert it.core.outputs.blocked, "it takes no time here, and so 10 000 wait"
    assert it.core.reader.backlog == 12_000
    done(it, "write")
    done(it, "write")
    done(it, "write")
    assert it.core.reader.backlog == 0
    Slow.futures["write"].set_exception(ValueError("no"))
    it.turns()
    (failed,) = [m for m in it.said() if isinstance(m, Failed)]
    assert "sink 'out', write: ValueError: no" in failed.text


def test_what_a_slow_sink_has_not_taken_is_half_a_second_of_its_work(slow):
    it = slow(delivery="eo")
    it.data(1, *((f"k{i}", 1) for i in range(4000)))
    it.turns()
    for _ in range(8):
        (_, rows) = calls[-1]
        it.clock.advance(0.01 * rows)
        done(it, "write")
    handed = sum(rows for _, rows in calls)
    assert max(rows for _, rows in calls) <= 50, "10 ms each"
    assert 300 < handed < 400 and 4000 - it.core.reader.backlog - handed <= 100


def test_without_checkpoints_roots_are_acked_when_a_slow_sink_has_committed(slow):
    it = slow()
    it.data(1, ("a", 1))
    it.turns()
    done(it, "write")
    it.clock.advance(1.0)
    it.turns()
    done(it, "prepare", "h")
    it.data(1, ("b", 1), root=2)
    it.turns()
    assert calls == [("write", 1), ("prepare", 0), ("commit", (0, "h")), ("write", 1)]
    assert it.core.outputs.sinks.uncommitted
    done(it, "commit")
    done(it, "write")
    it.clock.advance(10.0)
    it.turns()
    assert calls[-1] == ("prepare", 1)


# spouts ------------------------------------------------------------------------------------------


class Numbers(Spout):
    """So many numbers, one a read."""

    def __init__(self, most=10):
        self.next, self.most = 0, most

    def read(self, limit):
        if self.next >= self.most:
            raise EndOfStream
        self.next += 1
        return [("n", self.next)]

    def position(self):
        return self.next

    def seek(self, position):
        self.next = position

    def commit(self, position):
        calls.append(("commit", position))

    def close(self):
        calls.append("close")


def source(bench, most=10, **options):
    return bench(chain(spout=Numbers(most)), "rows", **options)


def acked(it):
    """Ack all that has been sent."""
    done = [
        (batch.root, batch.id, batch.id)
        for frame in it.frames(it.behind)
        if frame.kind == DATA
        for batch in frame.body[1]
    ]
    it.frame(ACK, 9, tuple(done))
    it.turns()


def test_a_spout_reads_while_its_window_has_room(bench):
    it = source(bench, max_pending=2)
    it.turns()
    assert it.rows() == []
    it.start().turns()
    assert it.core.roots.open_count == 2
    acked(it)
    assert it.core.counts().tuples_out == 4


def test_a_spout_has_ended_when_its_roots_are_done(bench):
    it = source(bench, most=1).start().turns()
    assert (it.core.exhausted, it.said()) == (True, [])
    acked(it)
    assert it.said() == [Ended(7)]
    it.tell(Finish())
    it.turns()
    assert it.said() == [Finished(7)]
    it.tell(Stop())
    assert "close" in calls


def test_a_drain_ends_the_reading_behind_what_a_predecessor_had_read(bench):
    it = source(bench, max_pending=1).start()
    it.tell(Drain(3))
    for _ in range(5):
        it.turns()
        acked(it)
    assert it.core.counts().tuples_out == 3
    assert it.said() == [Ended(7)]


def test_nothing_is_read_behind_the_last_checkpoint_and_its_end_is_not_said(bench):
    it = source(bench, max_pending=1, delivery="eo").start()
    it.turns()
    it.tell(Checkpoint(1, last=True))
    it.turns()
    (snapped,) = it.said()
    assert it.codec.unpack(snapped.position) == (1, 1)
    acked(it)
    it.turns()
    assert it.core.counts().tuples_out == 1
    assert it.said() == []
    it.tell(Completed(1))
    assert calls == [("commit", 1)]


def test_a_spout_goes_on_at_its_position(bench):
    it = source(bench, position=None)
    packed = it.codec.pack_value((4, 4))
    it = source(bench, max_pending=1, position=packed).start().turns()
    assert it.rows() == [("n", 5)]


# async bolts -------------------------------------------------------------------------------------


class Waits(Bolt):
    async def process(self, key, value):
        self.emit(key, value)

    async def close(self):
        import asyncio

        await asyncio.sleep(0.5)
        calls.append("closed")


def test_an_async_bolt_stops_when_its_objects_are_closed(bench):
    it = bench(chain(Waits), event_loop=SteppedLoop).start(1)
    it.data(1, ("a", 1))
    it.turns()
    assert it.rows() == [("a", 1)]
    it.said()
    it.tell(Stop())
    it.turns()
    assert (it.phase(), it.said()) == (Phase.STOPPING, [])
    it.tell(Stop())
    it.clock.advance(0.6)
    it.turns()
    assert (calls, it.phase()) == (["closed"], Phase.STOPPED)
    assert [type(m) for m in it.said()] == [Stopped]


def test_an_async_bolt_that_never_closes_is_not_waited_for_longer_than_a_moment(bench):
    class Never(Waits):
        async def close(self):
            import asyncio

            await asyncio.Event().wait()

    it = bench(chain(Never), event_loop=SteppedLoop).start(1)
    it.data(1, ("a", 1))
    it.turns()
    it.tell(Stop())
    it.turns()
    it.clock.advance(2.1)
    it.turns()
    assert it.core.stopped
    it.core.close()


def test_an_async_bolt_that_is_to_stop_at_once_waits_for_nothing(bench):
    it = bench(chain(Waits), event_loop=SteppedLoop).start(1)
    it.data(1, ("a", 1))
    it.turns()
    it.tell(Stop())
    it.said()
    assert [type(m) for m in it.tell(Stop(True))] == [Stopped]
    assert calls == []
