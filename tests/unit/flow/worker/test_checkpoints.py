"""A sub-unit's part in a checkpoint: told when all of it is durable, and not before."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from esault.errors import CheckpointError
from esault.flow.send.sink_writers import SinkWriters
from esault.flow.worker.checkpoints import Checkpoints
from esault.flow.worker.phase import Lifecycle
from esault.messages.checkpoint import Piece, Snapped

STATE, ROWS = Piece("state", True, 1, 10, 0), Piece("rows", False, 1, 10, 0)


class One:
    """Checkpoints of a sub-unit whose state is kept as the test says."""

    def __init__(self, snap):
        self.said, self.woken, self.cuts = [], [], []
        reader = SimpleNamespace(alignment=SimpleNamespace(number=1), release=lambda: None)
        outputs = SimpleNamespace(cut=lambda *cut: self.cuts.append(cut), sinks=SinkWriters(True))
        self.reader = reader
        self.checkpoints = Checkpoints(
            7,
            Lifecycle(),
            reader,
            outputs,
            lambda n, sure: snap(self, n),
            self.said.append,
            lambda: self.woken.append(0),
        )

    def cut(self, number):
        self.reader.alignment.number = number
        self.checkpoints.cut(0.0)

    def told(self):
        said, self.said[:] = list(self.said), []
        return [
            (each.number, each.piece, each.in_flight) if isinstance(each, Snapped) else (each.number, each.text)
            for each in said
        ]


def test_what_is_durable_at_once_is_told_at_once():
    one = One(lambda one, n: one.checkpoints.snapped(n, STATE))
    one.cut(1)
    assert one.told() == [(1, STATE, None)]
    assert not one.checkpoints.writing


@pytest.mark.parametrize("first", ["piece", "in_flight"])
def test_state_and_rows_in_flight_are_both_waited_for(first):
    pieces = {"piece": Future(), "in_flight": Future()}

    def snap(one, number):
        one.checkpoints.with_in_flight(pieces["in_flight"])
        one.checkpoints.snapped(number, pieces["piece"])

    one = One(snap)
    one.cut(3)
    made = {"piece": STATE, "in_flight": ROWS}
    pieces.pop(first).set_result(made[first])
    one.checkpoints.settle()
    assert (one.told(), len(one.woken)) == ([], 1)
    ((other, piece),) = pieces.items()
    piece.set_result(made[other])
    one.checkpoints.settle()
    assert (one.told(), len(one.woken)) == ([(3, STATE, ROWS)], 2)


def test_rows_in_flight_may_be_durable_before_state_is_written():
    rows = Future()
    one = One(lambda one, n: one.checkpoints.with_in_flight(rows))
    one.cut(1)
    rows.set_result(ROWS)
    one.checkpoints.settle()
    assert one.told() == []
    one.checkpoints.snapped(1, STATE)
    one.checkpoints.settle()
    assert one.told() == [(1, STATE, ROWS)]


@pytest.mark.parametrize("refused", ["piece", "in_flight"])
def test_what_cannot_be_made_durable_is_told_once(refused):
    pieces = {"piece": Future(), "in_flight": Future()}

    def snap(one, number):
        one.checkpoints.with_in_flight(pieces["in_flight"])
        one.checkpoints.snapped(number, pieces["piece"])

    one = One(snap)
    one.cut(1)
    pieces[refused].set_exception(CheckpointError("the disk is full"))
    one.checkpoints.settle()
    assert one.told() == [(1, "the disk is full")]
    for name, piece in pieces.items():
        if name != refused:
            piece.set_result(STATE)
    one.checkpoints.settle()
    assert one.told() == []


def test_an_error_before_the_piece_is_told_and_the_next_checkpoint_is_another_one():
    def snap(one, number):
        if number == 1:
            one.checkpoints.with_in_flight(Future())
            raise CheckpointError("no room")
        one.checkpoints.snapped(number, STATE)

    one = One(snap)
    one.cut(1)
    assert one.told() == [(1, "no room")]
    one.cut(2)
    assert one.told() == [(2, STATE, None)]
