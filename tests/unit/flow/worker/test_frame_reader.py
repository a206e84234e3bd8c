"""What becomes of a frame: it is dropped, put aside, put into the inbox, or passed to what it is for."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from esault.errors import FrameError
from esault.flow.channel.frame import ACK, BARRIER, CHECKPOINT, DATA, END, FENCE, MARK, PROBE, STATE, Batch
from esault.flow.worker.frame_reader import FrameReader
from esault.messages.change import EndRead
from esault.messages.control import Broken, Build
from esault.messages.settings import Settings
from esault.payload.codec import Codec

ROOT = (3, 1, 0)


class Handover:
    """Notes what it is told."""

    def __init__(self):
        self.active, self.away, self.pending, self.told = False, 0, 0, []

    def offer(self, entry, inbox, sender):
        self.told.append(("offer", entry.batch.values))

    def barrier(self, sender, version):
        self.told.append(("barrier", sender, version))

    def ended(self, sender):
        self.told.append(("ended", sender))

    def gone(self, sender):
        self.told.append(("gone", sender))


class Line:
    def __init__(self, **settings):
        self.said, self.told = [], []
        roots = SimpleNamespace(
            grace=lambda now: self.told.append("grace"),
            ack=lambda *args: self.told.append(("ack", *args)),
            mark=lambda *args: self.told.append(("mark", *args)),
        )
        probes = SimpleNamespace(read=lambda frame, ticket: self.told.append(("probe", frame.body, ticket)))
        build = Build("worker", 7, 1, "here", "run", Settings(**settings))
        self.codec = Codec()
        self.reader = FrameReader(build, self.codec, roots, probes, None, lambda: 5.0, self.said.append)
        self.reader.add(101, 1)
        self.reader.add(102, 2)
        self._numbers = {}

    def put(self, kind, channel, body, *, skip=0, epoch=1):
        number = self._numbers[channel] = self._numbers.get(channel, 0) + 1 + skip
        self.reader.read(self.codec.pack((kind, epoch, channel, number, body)))

    def data(self, channel, *values, **options):
        body = [4.0, (ROOT, 9, 0, tuple("k" for _ in values), values, 3.0, None)]
        self.put(DATA, channel, body, **options)

    @property
    def inbox(self):
        return [entry.batch.values for entry in self.reader.inbox]


def test_data_waits_in_the_inbox_and_is_counted():
    it = Line()
    it.data(1, 1, 2)
    it.data(2, 3)
    assert it.inbox == [(1, 2), (3,)]
    assert it.reader.inbox[0].sent == 4.0
    assert it.reader.inbox[0].batch == Batch(ROOT, 9, 0, ("k", "k"), (1, 2), 3.0, None)
    reader = it.reader
    assert (reader.arrivals, reader.backlog, reader.waiting, reader.unprocessed()) == (3, 3, 3, 3)
    assert (reader.unfinished, reader.ticket) == (2, 2)


def test_what_is_processed_elsewhere_counts_as_unfinished():
    it = Line()
    it.data(1, 1)
    it.reader.taken, it.reader.open_batches = 4, [object(), object()]
    assert (it.reader.unfinished, it.reader.ticket) == (3, 7)


def test_no_more_is_read_when_the_inbox_is_full():
    it = Line(inbox_bytes=200)
    assert it.reader.may_read
    it.data(1, *range(5))
    assert not it.reader.may_read
    assert it.reader.occupancy == pytest.approx(5 * it.reader.row_bytes / 200)
    it.reader.handover = handover = Handover()
    assert not it.reader.may_read
    handover.away = 4
    assert it.reader.may_read  # they are not in the inbox
    handover.away, handover.active = 0, True
    assert it.reader.may_read  # a barrier may stand behind the data


def test_a_bounded_inbox_is_always_read_and_drops():
    it = Line(inbox_bytes=1)
    it.reader.handover = Handover()
    it.reader.bound = SimpleNamespace(most=4, dropped=2, fitting=lambda sent, batches: batches[:0])
    it.data(1, 1, 2)
    assert (it.inbox, it.reader.may_read, it.reader.dropped, it.reader.occupancy) == ([], True, 2, 0.0)


def test_a_missing_frame_breaks_the_channel_and_a_stranger_is_dropped():
    it = Line()
    it.data(1, 1)
    it.data(1, 2, skip=1)
    assert it.said == [Broken(7, 101, "frame 2 is missing, 3 came (DATA)")]
    it.data(8, 1)
    it.data(2, 1, epoch=2)
    it.reader.read(b"nonsense")
    assert (it.inbox, it.reader.senders.dropped) == ([(1,)], 4)


def test_acks_and_marks_go_to_the_roots_and_a_gap_among_them_is_a_grace():
    it = Line()
    marks = []
    it.reader.on_mark = lambda *args: marks.append(args)
    it.put(ACK, 50, ((ROOT, 1, 2),))
    it.put(MARK, 50, ((ROOT, 8),))
    assert it.told == [("ack", ROOT, 1, 2, 5.0), ("mark", ROOT, 8, 5.0)]
    assert marks == [(ROOT, 8)]
    it.told.clear()
    it.put(ACK, 50, (), skip=3)
    assert (it.told, it.said) == (["grace"], [])


def test_with_checkpoints_a_gap_among_acks_is_told():
    it = Line(delivery="eo")
    it.put(ACK, 50, ())
    it.put(ACK, 50, (), skip=1)
    assert it.said == [Broken(7, 50, "acks are missing")]


def test_a_probe_stands_behind_what_was_read_before_it():
    it = Line()
    it.reader.key_load = SimpleNamespace(refill=lambda: it.told.append("refill"))
    it.data(1, 1)
    it.put(PROBE, 0, 2.5)
    assert it.told == ["refill", ("probe", 2.5, 1)]


def test_the_end_of_a_sender_is_told_at_once():
    it = Line()
    it.reader.handover = Handover()
    it.put(END, 1, None)
    assert it.said == [EndRead(7, 101)]
    assert it.reader.handover.told == [("ended", 101)]
    assert not it.reader.senders.ended
    it.reader.gone(102, last=False)
    assert it.reader.senders.ended
    assert it.reader.handover.told[-1] == ("gone", 102)


def test_while_a_change_is_on_it_has_what_comes():
    it = Line()
    it.reader.handover = handover = Handover()
    handover.active, handover.pending = True, 6
    it.put(BARRIER, 1, 4)
    it.data(1, 1)
    assert (it.inbox, handover.told) == ([], [("barrier", 101, 4), ("offer", (1,))])
    assert it.reader.unprocessed() == 7


def test_frames_of_a_change_are_for_those_that_have_changes():
    it = Line()
    it.put(STATE, 60, ())
    assert it.reader.senders.dropped == 1
    found = []
    it.reader.read_change = lambda frame: found.append(frame.channel)
    it.put(STATE, 60, ())
    assert found == [60]

    def refuse(frame):
        raise FrameError("two fields")

    it.reader.read_change = refuse
    it.put(STATE, 60, ())
    assert it.reader.senders.dropped == 2


def test_what_comes_behind_a_mark_is_held_until_the_cut_is_made():
    it = Line()
    it.put(CHECKPOINT, 1, 1)
    it.data(1, 1)
    it.data(2, 2)
    assert (it.inbox, it.reader.cut_is_complete) == ([(2,)], False)
    it.put(CHECKPOINT, 2, 1)
    assert it.reader.cut_is_complete
    it.reader.release()
    assert it.inbox == [(2,), (1,)]
    assert it.reader.alignment.number is None


def test_a_mark_that_was_held_back_itself_begins_the_next_cut():
    it = Line()
    it.put(CHECKPOINT, 1, 1)
    it.data(1, 1)
    it.put(CHECKPOINT, 1, 2)
    it.data(1, 2)
    it.put(CHECKPOINT, 2, 1)
    it.reader.release()
    assert (it.inbox, it.reader.alignment.number) == ([(1,)], 2)
    it.reader.abandon(2)
    assert it.inbox == [(1,), (2,)]


def test_what_a_new_owner_sends_waits_for_what_its_old_owner_sent_before():
    it = Line()
    it.put(FENCE, 2, (4, 1, 101))
    it.data(2, "newer")
    it.put(END, 2, None)
    it.data(1, "older")
    it.put(FENCE, 1, (4, 0, 0))  # of a portion before that one
    assert (it.inbox, it.said) == ([("older",)], [])
    it.put(FENCE, 1, (4, 1, 0))
    it.data(1, "later")
    assert (it.inbox, it.said) == ([("older",), ("newer",), ("later",)], [EndRead(7, 102)])


def test_a_fence_that_has_passed_holds_nothing():
    it = Line()
    it.put(FENCE, 1, (4, 3, 0))
    it.put(FENCE, 2, (4, 2, 101))
    it.put(FENCE, 2, (4, 9, 77))  # nobody that is known: it has left
    it.data(2, 1)
    assert it.inbox == [(1,)]


@pytest.mark.parametrize("end", ["ends", "dies", "leaves", "breaks"])
def test_nobody_waits_for_a_fence_of_who_sends_no_more(end):
    it = Line()
    it.put(FENCE, 2, (4, 1, 101))
    it.data(2, 1)
    assert it.inbox == []
    if end == "ends":
        it.put(END, 1, None)
    elif end == "breaks":
        it.reader.add(101, 3)
        it.reader.read(it.codec.pack((FENCE, 1, 3, 1, (4, 1, 0))))  # a new channel begins with the newest fence
    else:
        it.reader.gone(101, last=end == "leaves")
    assert it.inbox == [(1,)]


def test_what_stands_behind_the_fence_of_who_dies_is_taken_in():
    it = Line()
    it.put(FENCE, 2, (4, 1, 101))
    it.data(2, 1)
    it.reader.gone(102, last=False)
    assert it.inbox == [(1,)]


def test_fences_do_not_wait_for_the_cut_of_a_checkpoint_and_what_they_hold_does():
    it = Line()
    it.put(FENCE, 2, (4, 1, 101))
    it.put(CHECKPOINT, 2, 6)
    it.data(2, "behind")
    it.put(CHECKPOINT, 1, 6)
    it.put(FENCE, 1, (4, 1, 0))
    assert it.reader.cut_is_complete and it.inbox == []
    it.reader.release()
    assert it.inbox == [("behind",)]


def test_a_fence_that_is_none_is_dropped():
    it = Line()
    it.put(FENCE, 1, (4, "1", 0))
    it.data(1, 1)
    assert (it.inbox, it.reader.senders.dropped) == ([(1,)], 1)
