"""The merger behind the copies of a bolt, and a copy that brings another one up to date."""

from __future__ import annotations

import pytest
from small_bolts import Total as Sum

from esault import Topology, by_key, shuffle
from esault.errors import TopologyError
from esault.flow.channel.frame import ACK, DATA, FETCH, GOT, MARK, ROWS, STATE, STATE_END
from esault.flow.delivery.replica_acks import LOW
from esault.flow.worker.phase import Phase
from esault.messages.control import AckRouting, Ended, Finish, Finished
from esault.messages.replicas import Copy, CopyOver, CopyReady
from esault.routing.ring import INT_MAX
from esault.sources import Items

#: the owner of the roots that come in
OWNER = 3


class Finishes(Sum):
    def finish(self):
        pass


def copies(bolt=Sum, grouping=None):
    t = Topology("copies")
    worker = t.spout("rows", Items([])).bolt("worker", bolt, grouping=grouping or by_key(), replicas=2)
    worker.bolt("behind", Sum, grouping=by_key())
    return t


# the merger --------------------------------------------------------------------------------------


def merger(bench):
    return bench(copies(), "worker~merger").start(1, 2)


def rows(it, channel, *ids, root=1, id=5, owner=OWNER):
    """A copy's rows with these ids; the value is the channel that they came by."""
    keys, values = tuple("k" for _ in ids), tuple(channel for _ in ids)
    now = it.clock()
    it.frame(DATA, channel, [now, ((owner, root, 0), id, 0, keys, values, now, ids)])
    it.turns()


def test_of_each_row_the_first_copy_goes_on(bench):
    it = merger(bench)
    rows(it, 1, "a", "b")
    rows(it, 2, "a", "b", "c")
    assert it.rows() == [("k", 1), ("k", 1), ("k", 2)]
    assert it.core.counts().tuples_in == 5


def test_a_copy_is_acked_as_durable_when_the_first_one_is(bench):
    it = merger(bench)
    rows(it, 1, "a", id=5)
    rows(it, 2, "a", id=6)
    acks = [ack for frame in it.frames(it.owner) if frame.kind == ACK for ack in frame.body]
    assert acks == [((OWNER, 1, 0), 5, 0), ((OWNER, 1, 0), 6, 0)]
    (batch,) = [b for frame in it.frames(it.behind) if frame.kind == DATA for b in frame.body[1]]
    it.frame(ACK, 9, ((batch.root, batch.id, batch.id),))
    it.turns()
    durable = 0
    for frame in it.frames(it.owner):
        for _, p, d in frame.body if frame.kind == ACK else ():
            assert p == 0
            durable ^= d
    assert durable == 5 ^ 6


def test_ids_are_forgotten_when_their_root_is_done(bench):
    it = merger(bench)
    rows(it, 1, "a", root=4)
    assert len(it.core.deduplicator) == 1
    it.frame(MARK, 30, (((OWNER, 5, 0), LOW),))
    assert len(it.core.deduplicator) == 0
    rows(it, 2, "a", root=4)
    assert it.rows() == [("k", 1)]  # too late to be the first


def test_ids_of_owners_that_died_are_kept_for_a_while(bench):
    it = merger(bench)
    rows(it, 1, "a")
    it.tell(AckRouting(2, {}))
    it.turns()
    assert len(it.core.deduplicator) == 1
    assert it.core.wake_at() <= it.clock() + 30
    it.clock.advance(30)
    it.turns()
    assert len(it.core.deduplicator) == 0


def test_what_copies_emit_at_their_end_has_no_root_that_is_ever_done(bench):
    it = merger(bench)
    rows(it, 1, "end", owner=101)
    rows(it, 2, "end", owner=102)
    assert it.rows() == [("k", 1)]


def test_a_merger_ends_when_all_copies_have(bench):
    it = merger(bench)
    it.end(1)
    it.turns()
    assert it.phase() is Phase.RUNNING
    it.end(2)
    it.turns()
    assert Ended(7) in it.said()
    it.tell(Finish())
    it.turns()
    assert it.said() == [Finished(7)]


# a copy ------------------------------------------------------------------------------------------


def copy(bench):
    it = bench(copies()).start(1, 2)
    it.newcomer = it.wire.bind("memory://new/express")
    it.data(1, ("a", 1), ("b", 2))
    it.turns()
    assert it.tell(Copy(4, ((0, INT_MAX, 50),), {50: "memory://new/express"})) == [CopyReady(7, 4)]
    return it


def test_state_goes_to_another_copy_as_it_was_where_the_marks_stood(bench):
    it = copy(bench)
    it.mark(1, 4)
    it.data(1, ("a", 10))  # behind the mark
    it.turns()
    assert it.frames(it.newcomer) == []
    it.mark(2, 4)
    it.turns()
    sent = {frame.kind: frame.body for frame in it.frames(it.newcomer)}
    assert set(sent) == {ROWS, STATE, STATE_END}
    states = {key: it.codec.unpack(packed) for key, packed in sent[STATE][2]}
    assert {key: dict(state)["total"] for key, state in states.items()} == {"a": 1, "b": 2}
    assert it.core.metrics.tuples_in == 3
    for number in (0, sent[STATE][1], sent[STATE_END][1] + 1):
        assert it.core.replica.copying is not None
        it.frame(GOT, 50, (4, number))
        it.turns()
    assert it.core.replica.copying is None
    assert it.said() == []  # its marks are not those of checkpoints


def test_a_copy_that_is_given_up_lets_rows_pass(bench):
    it = copy(bench)
    it.mark(1, 4)
    it.data(1, ("a", 10))
    it.turns()
    it.rows()
    it.tell(CopyOver(4))
    it.turns()
    assert it.core.metrics.tuples_in == 3
    it.mark(2, 4)
    it.turns()
    assert it.frames(it.newcomer) == []


def test_frames_of_another_copy_are_those_of_changes_or_dropped(bench):
    it = copy(bench)
    it.frame(FETCH, 50, (4, ("a",)))  # no copy is on: it is taken for one of a change, of which there is none
    it.mark(1, 4)
    it.mark(2, 4)
    it.core.turn()
    before = it.core.reader.senders.dropped
    it.frame(GOT, 50, (4,))
    assert it.core.reader.senders.dropped == before + 1


def test_replicas_of_one_object_with_finish_are_refused(bench):
    with pytest.raises(TopologyError, match="defines finish\\(\\) and comes by shuffle\\(\\)"):
        bench(copies(Finishes, shuffle()))
