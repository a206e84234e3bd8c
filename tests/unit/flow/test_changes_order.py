"""Who gets keys and gives others away in one change: rows that were released for it keep their place."""

from __future__ import annotations

from collections import deque

from esault.flow.channel.frame import ROWS, STATE, STATE_END, Batch, Frame
from esault.flow.delivery.acks import Acks
from esault.flow.handover import handover as changes_module
from esault.flow.handover.divide import Entry
from esault.flow.handover.handover import Handover
from esault.messages.change import HandOverRanges, HoldRanges
from esault.payload.codec import Codec
from esault.routing.ring import position
from esault.testing.manual_clock import ManualClock
from esault.testing.memory_wire import MemoryWire

VERSION, OLD, NEW, SENDER = 5, 7, 8, 1
COMES, GOES, STAYS = "comes", "goes", "stays"


class Store(dict):
    here = ()

    def scan(self):
        return iter(list(self))

    def note_made(self, names):
        return True

    def key_of(self, name):
        return name

    def name_of(self, key):
        return key

    def remove_state(self, name):
        return self.pop(name, None)

    def install_state(self, key, state):
        self[key] = state


def batch(*rows):
    keys, values = zip(*rows)
    return Batch((1, 1, 0), 0, 0, keys, values, 0.0, None)


class SubUnit:
    def __init__(self, clock):
        self.said, self.inbox = [], deque()
        wire = MemoryWire()
        for other in (OLD, NEW):
            wire.bind(f"memory://{other}")
        acks = Acks(2, 1, Codec(), wire, lambda *_: None)
        self.changes = Handover(
            incarnation=2,
            inputs=frozenset({0}),
            to_all=frozenset(),
            store=Store({GOES: b"1"}),
            acks=acks,
            tracked=False,
            random64=lambda: 0,
            hold_rows=1000,
            clock=clock,
            say=self.said.append,
            fence=lambda *_: None,
        )

    def move(self, key):
        return (position(key), position(key))

    def get(self):
        self.changes.hold_ranges(HoldRanges(VERSION, ((*self.move(COMES), OLD),), {OLD: f"memory://{OLD}"}))

    def give(self):
        self.changes.hand_over(
            HandOverRanges(VERSION, ((*self.move(GOES), NEW),), {NEW: f"memory://{NEW}"}, (SENDER,)), self.inbox
        )

    def offer(self, *rows):
        self.changes.offer(Entry(0.0, batch(*rows)), self.inbox)

    def frame(self, kind, *body):
        self.changes.read(Frame(kind, 1, OLD, 1, (VERSION, *body)))

    def processed(self):
        """(key, value) of all that may be processed, in order."""
        rows = [(k, v) for entry in self.inbox for k, v in zip(entry.batch.keys, entry.batch.values)]
        self.inbox.clear()
        return rows


def carried(*batches):
    return tuple((0.0, tuple(each), False) for each in batches)


def test_a_released_row_is_not_held_again_behind_later_ones_of_its_key():
    unit = SubUnit(ManualClock())
    unit.get()
    # 1 may go when the state of its key is here; 2 waits with a row of another key, and 3 for 2.
    unit.frame(ROWS, carried(batch((COMES, 1))))
    unit.frame(STATE, 1, ((COMES, b"s"),))
    unit.changes.advance(unit.inbox)
    assert [v for e in unit.inbox for v in e.batch.values] == [1]
    receipt = unit.changes._incoming._receipts[OLD]
    receipt.queued[COMES] += 1  # as if a later row of it waited for another key's state
    unit.give()
    unit.changes.advance(unit.inbox)
    assert unit.processed() == [(COMES, 1)]


def test_released_rows_wait_for_earlier_ones_that_are_being_divided(monkeypatch):
    clock = ManualClock()
    monkeypatch.setattr(changes_module, "TURN", 0.0)  # so that a turn divides one slice
    monkeypatch.setattr(changes_module, "SLICE", 1)
    unit = SubUnit(clock)
    unit.get()
    unit.frame(ROWS, carried(batch((COMES, 1))))
    unit.frame(STATE, 1, ((COMES, b"s"),))
    unit.changes.advance(unit.inbox)
    unit.inbox.appendleft(Entry(0.0, batch((STAYS, 0), (GOES, 0))))
    unit.offer((COMES, 2))  # released, and not in the inbox yet
    unit.give()
    order = []
    for _ in range(5):
        unit.changes.advance(unit.inbox)
        order += unit.processed()
    assert order == [(STAYS, 0), (COMES, 1), (COMES, 2)]
    unit.frame(STATE_END, 1, 1)
    unit.changes.advance(unit.inbox)
    assert any(type(message).__name__ == "StateInstalled" for message in unit.said)
