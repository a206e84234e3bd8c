"""Windows that the watermark closes: not while keys move, nor where nothing may be sent; and what they emit goes before it does."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from esault.flow.worker.sub_unit import OWN_ROOT_ROWS
from esault.flow.worker.window_closing import CLOSED_IN_A_TURN, WindowClosing


class Operator:
    """Has so many turns of closing to do."""

    def __init__(self, turns=0):
        self.turns, self.calls, self.levels, self.furthest = turns, [], SimpleNamespace(own=0.0), 0.0

    def advance(self, watermark):
        self.levels.own = watermark
        self.calls.append(("advance", watermark))

    def close_some(self, windows, rows, before):
        assert (windows, rows) == (CLOSED_IN_A_TURN, OWN_ROOT_ROWS)
        self.calls.append(("close", before))
        self.turns -= 1
        return self.turns > 0


class Bench:
    def __init__(self, turns=1, **fields):
        self.operator = Operator(turns)
        self.written, self.emitted, self.asked = [], [], []
        self.may = True
        marks = SimpleNamespace(
            merging=SimpleNamespace(current=5.0, furthest=8.0),
            passed=1.0,
            advance=lambda *args: self.asked.append(args) or self.may,
        )
        self.bolt = SimpleNamespace(
            operator=SimpleNamespace(timer_service=self.operator),
            watermarks=marks,
            reader=SimpleNamespace(taken=3, unfinished=4),
            changes=SimpleNamespace(moving=False),
            lifecycle=SimpleNamespace(over=False),
            writer=SimpleNamespace(snapshot=None, dirty=None, before=self.written.append, process="process"),
            tracked=True,
            roots=SimpleNamespace(credit=True),
            emit_own=lambda now: self.emitted.append((now, marks.passed)),
        )
        vars(self.bolt).update(fields)
        self.closing = WindowClosing(self.bolt)

    def advance(self, now=10.0):
        return self.closing.advance(now)


def test_what_windows_emit_goes_before_the_watermark_is_passed_on():
    bench = Bench(turns=2)
    assert bench.advance(10.0)
    assert bench.closing.at_work
    assert bench.bolt.watermarks.passed == 1.0
    assert not bench.advance(11.0)
    assert not bench.closing.at_work
    assert bench.bolt.watermarks.passed == 5.0
    assert bench.emitted == [(10.0, 1.0), (11.0, 1.0)]
    assert bench.operator.calls == [("advance", 5.0), ("close", None)] * 2
    assert bench.asked == [(3, 4, False)] * 2
    assert bench.operator.furthest == 8.0


@pytest.mark.parametrize("why", ["moving", "over"])
def test_nothing_closes_while_keys_move_or_once_it_is_over(why):
    bench = Bench(turns=2)
    bench.advance()
    if why == "moving":
        bench.may = False
    else:
        bench.bolt.lifecycle.over = True
    assert not bench.advance()
    assert not bench.closing.at_work
    assert len(bench.operator.calls) == 2
    assert bench.bolt.watermarks.passed == 1.0


def test_while_the_window_of_roots_is_closed_it_waits_and_knows_the_time():
    bench = Bench()
    bench.bolt.roots.credit = False
    assert not bench.advance()
    assert bench.operator.calls == [("advance", 5.0)]
    bench.bolt.tracked = False
    bench.advance()
    assert bench.operator.calls[-1] == ("close", None)


def test_a_checkpoint_that_is_on_gets_the_time_of_the_cut_and_each_key_before_it_changes():
    bench = Bench()
    bench.bolt.writer.snapshot = object()
    bench.advance()
    assert bench.written == [(None,)]
    assert bench.operator.calls[-1] == ("close", "process")
    bench.advance()
    assert bench.written == [(None,)]  # the time stood still
    other = Bench()
    other.bolt.writer.dirty = set()
    other.advance()
    assert (other.written, other.operator.calls[-1]) == ([], ("close", "process"))
