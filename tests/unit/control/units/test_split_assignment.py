"""Splits and who reads them: no split is read by two, each is read in the end, and a checkpoint says where each goes on."""

from __future__ import annotations

from collections import Counter, deque

from hypothesis import given
from hypothesis import strategies as st
from one_unit import status, unit_plan

from esault.control.units.signals import Begun, Died, OwnersChanged
from esault.control.units.split_assignment import SplitAssignment
from esault.control.units.sub_unit_record import SubUnitRecord
from esault.control.units.unit_state import UnitState
from esault.messages.checkpoint import Snapped
from esault.messages.splits import (
    AssignedSplit,
    AssignSplits,
    DiscoverSplits,
    ExpectSplits,
    NoMoreSplits,
    RevokeSplits,
    SplitPlace,
    SplitsEnded,
    SplitsFound,
    SplitsRevoked,
)
from esault.topology.split_source import SplitSource


class Source(SplitSource):
    def splits(self):
        return []


class Readers:
    """Sub-units that do as they are told, when the test says so."""

    def __init__(self, n=2, at_once=None, places=None, exactly=False):
        self.state = UnitState(unit_plan(kind="spout"), n, None)
        source = Source()
        source.splits_at_once = at_once
        self.splits = SplitAssignment(self.state, source)
        self.splits.exactly = exactly
        self.splits.begin_from(places or {})
        self.numbers = iter(range(1, 1000))
        #: what each reads, and all that it was told
        self.reads, self.told = {}, {}
        #: orders that are not carried out yet
        self.orders = deque()
        #: what there is, and whether there will be more
        self.there, self.last, self.ended = [], False, []
        for _ in range(n):
            self.start()

    def say(self, message):
        self.splits.handle(message, 0.0)
        for to, order in list(self.state.outbox):
            self.told.setdefault(to, []).append(order)
            if isinstance(order, AssignSplits):
                for split in order.splits:
                    assert not any(split.id in reads for reads in self.reads.values()), f"two read {split.id}"
                    self.reads[to].add(split.id)
            elif isinstance(order, RevokeSplits):
                asked = {id for _, other in self.orders if isinstance(other, RevokeSplits) for id in other.ids}
                assert not asked & set(order.ids), "a split is asked for once"
                self.orders.append((to, order))
            elif isinstance(order, DiscoverSplits):
                self.orders.append((to, order))
        self.state.outbox.clear()

    def start(self, joining=False):
        i = next(self.numbers)
        record = self.state.subs[i] = SubUnitRecord(i, 0, joining=joining)
        self.reads[i] = set()
        record.started_at = 0.0
        self.say(Begun(record))
        return i

    def obey(self):
        to, order = self.orders.popleft()
        if isinstance(order, DiscoverSplits):
            self.say(SplitsFound(to, tuple(self.there), self.last))
        else:
            given = [id for id in order.ids if id in self.reads[to]]
            self.reads[to] -= set(given)
            self.say(SplitsRevoked(to, tuple(AssignedSplit(id, b"given") for id in given), order.handover))

    def settle(self):
        while self.orders:
            self.obey()
        return self

    def find(self, *ids, last=False):
        self.there, self.last = list(ids), last
        for i in self.state.subs:
            self.say(SplitsFound(i, ids, last))
        return self.settle()

    def end(self, i, *ids):
        self.reads[i] -= set(ids)
        self.ended += ids
        self.say(SplitsEnded(i, ids))

    def die(self, i):
        record = self.state.subs.pop(i)
        del self.reads[i]
        self.orders = deque((to, order) for to, order in self.orders if to != i)
        self.say(Died(record))

    def leave(self, i):
        self.state.subs[i].leaving = True
        self.say(OwnersChanged())

    def loads(self):
        return sorted(map(len, self.reads.values()))

    def orders_of(self, i, kind):
        return [order for order in self.told[i] if isinstance(order, kind)]


STEPS = st.lists(
    st.tuples(st.sampled_from(["obey", "find", "end", "die", "start", "leave"]), st.integers(0, 7)), max_size=25
)


@given(n=st.integers(1, 3), steps=STEPS, at_once=st.sampled_from([None, None, 1, 2]))
def test_whatever_befalls_the_readers_each_split_is_read_by_one_and_none_has_much_more_than_others(n, steps, at_once):
    it = Readers(n, at_once)
    for what, k in steps:
        living = list(it.state.subs)
        one = living[k % len(living)]
        if what == "obey" and it.orders:
            it.obey()
        elif what == "find":
            it.there.append(f"split {len(it.there)}")
            for i in living:
                it.say(SplitsFound(i, tuple(it.there), False))
        elif what == "end" and it.reads[one]:
            it.end(one, min(it.reads[one]))
        elif what == "die":
            it.die(one)
            it.start()
        elif what == "start":
            it.start()
            it.say(OwnersChanged())
        elif what == "leave" and len(it.splits._staying()) > 1 and not it.splits.moving:
            it.leave(one)
    for _ in range(99):  # with few at once the others wait for ends
        it.settle()
        for i, record in it.state.subs.items():
            assert not record.leaving or not it.reads[i], "who leaves keeps none"
        if not at_once:
            break
        if len(it.ended) == len(it.there):
            break
        reader = max(it.reads, key=lambda i: len(it.reads[i]))
        assert it.reads[reader], "a split that waits is assigned where there is room"
        it.end(reader, min(it.reads[reader]))
    read = Counter(id for reads in it.reads.values() for id in reads)
    assert sorted([*read.elements(), *it.ended]) == sorted(it.there)
    assert {id: owner for owner, ids in it.reads.items() for id in ids} == dict(it.splits.owners)
    staying = [len(it.reads[record.incarnation]) for record in it.splits._staying()]
    assert at_once or max(staying) - min(staying) <= 1
    assert not it.splits.moving


def test_who_gets_a_split_of_another_expects_it_first_and_reads_on_where_that_one_stood():
    it = Readers(1).find("a", "b")
    new = it.start()
    assert it.splits.moving
    assert it.orders_of(new, ExpectSplits) == [ExpectSplits(1)]
    it.settle()
    assert not it.splits.moving
    assert it.orders_of(new, AssignSplits)[-1] == AssignSplits((AssignedSplit("b", b"given"),), 1)


def test_none_gives_splits_while_a_change_is_on():
    it = Readers(1).find("a", "b")
    joining = it.start(joining=True)
    it.start()
    assert not it.splits.moving, "one that stays may be about to leave"
    it.state.subs[joining].joining = False
    it.say(OwnersChanged())
    assert it.splits.moving


def test_who_has_died_while_a_split_was_on_its_way_to_it_gets_none():
    it = Readers(1).find("a", "b")
    it.die(it.start())
    it.settle()
    assert it.reads == {1: {"a", "b"}}


def test_who_waits_for_splits_of_one_that_died_waits_no_more():
    it = Readers(1).find("a", "b")
    new = it.start()
    it.die(1)
    assert it.orders_of(new, AssignSplits)[-1] == AssignSplits((), 1)
    it.start()
    it.settle()
    assert it.loads() == [1, 1]


def test_what_one_that_died_had_read_goes_on_behind_the_last_place_that_it_told():
    it = Readers(1).find("a")
    it.say(status(1, splits=(AssignedSplit("a", b"7", until=7), AssignedSplit("not its own", b"1"))))
    it.die(1)
    assert it.orders_of(it.start(), AssignSplits) == [AssignSplits((AssignedSplit("a", b"7", until=7),))]


def test_a_run_that_drains_reads_again_what_was_not_durable_and_nothing_else():
    it = Readers(1).find("a", "b")
    it.say(status(1, splits=(AssignedSplit("a", b"7", until=7),)))
    it.state.draining = True
    it.die(1)
    assert it.orders_of(it.start(), AssignSplits) == [AssignSplits((AssignedSplit("a", b"7", until=7),))]
    assert it.splits.owners == {"a": 2}


def test_all_are_told_when_the_last_split_has_ended_and_who_comes_later_too():
    it = Readers(2).find("a", "b", last=True)
    for i in (1, 2):
        assert not it.orders_of(i, NoMoreSplits)
        it.end(i, *it.reads[i])
    assert all(it.orders_of(i, NoMoreSplits) == [NoMoreSplits()] for i in (1, 2))
    assert it.orders_of(it.start(), NoMoreSplits) == [NoMoreSplits()]


def test_the_word_of_one_that_does_not_own_the_split_any_more_changes_nothing():
    it = Readers(2).find("a")
    (owner,) = it.splits.owners.values()
    it.say(SplitsEnded(3 - owner, ("a",)))
    it.say(SplitsRevoked(3 - owner, (AssignedSplit("a", b"1"),), 9))
    assert it.splits.owners == {"a": owner}
    it.say(SplitsFound(owner if owner != it.splits._discoverer else 3 - owner, ("a", "b"), False))
    assert it.splits.owners == {"a": owner}, "one of them says which there are"


def test_a_run_that_goes_on_begins_with_the_places_of_its_checkpoint():
    ended = {"x": SplitPlace(b"", True, (5.0, 1.0)), "y": SplitPlace(b"", True, (3.0, 8.0))}
    it = Readers(1, places={**ended, "a": SplitPlace(b"4")}, exactly=True)
    it.find("a", "x", "y", "new")
    told = it.orders_of(1, AssignSplits)
    assert [split for order in told for split in order.splits] == [
        AssignedSplit("a", b"4"),
        AssignedSplit("new", added=True),
    ]
    assert [order.past for order in told if order.past] == [(5.0, 8.0)], "time has come that far, and is told once"


def test_a_checkpoint_says_where_each_split_goes_on():
    it = Readers(2, at_once=1, exactly=True, places={"w": SplitPlace(b"1"), "old": SplitPlace(b"", True)})
    it.find("a", "b", "w", "w2")
    # "w" and "a" are read, "b" and "w2" wait: one has no place, since none has read it
    assert sorted(it.splits.owners) == ["a", "w"]
    it.splits.checkpoint_begun()
    parts = [Snapped(1, 1, splits={"w": SplitPlace(b"5")}), Snapped(2, 1, splits={"a": SplitPlace(b"6")})]
    places = it.splits.checkpointed(parts)
    assert places == {"w": SplitPlace(b"5"), "a": SplitPlace(b"6")}, "what has ended and is there no more is forgotten"
    it.splits.checkpoint_kept(places)
    assert it.splits.durable == places


def test_a_split_that_is_given_before_the_cut_of_its_reader_goes_on_where_it_was_given():
    it = Readers(1, exactly=True).find("a", "b")
    it.splits.checkpoint_begun()
    it.start()
    it.settle()
    assert it.splits.checkpointed([]) == {"b": SplitPlace(b"given")}
    it.splits.checkpoint_begun()
    assert it.splits.checkpointed([]) == {}, "its new reader says it from the next one on"


def test_a_split_that_is_assigned_and_given_behind_the_cut_goes_on_where_it_waited():
    it = Readers(1, exactly=True, places={"a": SplitPlace(b"4"), "b": SplitPlace(b"4")})
    it.splits.checkpoint_begun()
    it.find("a", "b")
    new = it.start()
    it.settle()
    assert it.reads[new]
    assert it.splits.checkpointed([]) == {"a": SplitPlace(b"4"), "b": SplitPlace(b"4")}


def test_who_leaves_is_held_until_a_checkpoint_says_where_its_splits_ended():
    it = Readers(2, exactly=True).find("a", "b")
    owner = it.splits.owners["a"]
    it.end(owner, "a")
    assert it.splits.holds_end(owner)
    assert not it.splits.wants_checkpoint
    it.leave(owner)
    assert it.splits.wants_checkpoint
    it.splits.checkpoint_begun()
    it.splits.checkpoint_kept(it.splits.checkpointed([]))
    assert it.splits.wants_checkpoint, "a checkpoint that does not say so is none"
    it.splits.checkpoint_kept(it.splits.checkpointed([Snapped(owner, 2, splits={"a": SplitPlace(b"", True)})]))
    assert not it.splits.holds_end(owner)
    it.find("a", "b")
    assert it.splits.owners == {"b": 3 - owner}, "what has ended is not read again"
