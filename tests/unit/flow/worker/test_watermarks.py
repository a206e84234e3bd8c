"""The watermark of a sub-unit stands still while keys move, and goes on behind all that was here by then."""

from __future__ import annotations

from types import SimpleNamespace

from esault.flow.watermark.clock import BEGINNING, END_OF_TIME
from esault.flow.worker.watermarks import Watermarks, watermarks


class Telling:
    def __init__(self):
        self.calls, self.wake_at = [], 4.0

    def __getattr__(self, name):
        return lambda *args: self.calls.append((name, *args))

    def times(self):
        return {"b": 3.0}


def bench():
    plan = SimpleNamespace(watermark_targets=set(), targets=())
    made = Watermarks(plan, None)
    made._telling = Telling()
    made.merging.add(1, 1)
    return made, made._telling.calls


def heard(made, ticket, value):
    made.merging.read(ticket, 1, (value, False, 0, (), 0))


def test_a_word_counts_when_all_before_it_has_been_taken():
    made, _ = bench()
    heard(made, 3, 5.0)
    assert made.advance(2, 4, False)
    assert made.merging.current == BEGINNING
    assert made.advance(3, 3, False)
    assert made.merging.current == 5.0


def test_while_keys_move_nothing_passes_and_after_that_what_was_here_goes_first():
    made, calls = bench()
    made.hold(7, 1.0)
    assert calls == [("hold", 7, 1.0)]
    assert not made.advance(0, 2, True)
    heard(made, 1, 5.0)
    assert not made.advance(1, 3, True)
    assert not made.advance(1, 3, False)  # three wait: it goes on behind them
    assert not made.advance(3, 1, False)
    assert made.merging.current == BEGINNING
    assert calls == [("hold", 7, 1.0)]
    assert made.advance(4, 2, False)
    assert calls[-1] == ("released",)
    assert made.merging.current == 5.0
    calls.clear()
    assert made.advance(4, 2, False)
    assert calls == []


def test_where_nothing_waits_it_goes_on_at_once():
    made, calls = bench()
    made.gave(7, (20,), 1.0)
    assert calls == [("gave", 7, (20,), 1.0)]
    assert made.merging.given == 7
    made.gave(6, (21,), 1.0)
    assert made.merging.given == 7
    heard(made, 1, 5.0)
    assert made.advance(0, 0, False)
    assert made.merging.current == 5.0


def test_a_change_on_top_of_another_makes_it_wait_anew():
    made, _ = bench()
    made.hold(7, 1.0)
    assert not made.advance(0, 2, False)
    made.hold(8, 1.0)
    assert not made.advance(2, 3, False)
    assert not made.advance(4, 1, False)
    assert made.advance(5, 0, False)


def test_one_that_leaves_lets_nothing_pass_any_more():
    made, _ = bench()
    made.leave()
    heard(made, 0, 5.0)
    assert not made.advance(9, 0, False)
    assert made.merging.current == BEGINNING


def test_splits_that_move_are_told_of():
    made, calls = bench()
    made.expect_splits(3, 1.0)
    made.took_splits()
    made.gave_splits(4, 20, 2.0)
    assert calls == [("hold", 3, 1.0), ("released",), ("count_all",), ("gave", 4, (20,), 2.0)]


def test_receivers_are_told_since_when_there_is_nothing_to_do_and_whether_all_are_idle():
    made, calls = bench()
    made.tell(1.0, True, False)
    made.tell(2.0, True, False, {"b": 1.0})
    made.tell(3.0, False, False)
    made.tell(4.0, True, True)
    assert calls == [
        ("tell", 1.0, (BEGINNING, False), 1.0, False, None, BEGINNING),
        ("tell", 2.0, (BEGINNING, False), 1.0, False, {"b": 1.0}, BEGINNING),
        ("tell", 3.0, (BEGINNING, False), None, False, None, BEGINNING),
        ("tell", 4.0, (BEGINNING, False), 4.0, True, None, BEGINNING),
    ]
    calls.clear()
    made.merging.read(1, 1, (5.0, True, 0, (), 0))
    assert made.advance(1, 0, False)
    made.tell(5.0, True, False)
    assert calls[-1][2] == (BEGINNING, False)  # windows are still to be closed up to there
    made.passed = 5.0
    made.tell(5.0, True, False)
    assert calls[-1][-1] == 5.0  # the furthest that came
    assert calls[-1][2] == (5.0, True)


def test_what_is_known_is_no_end_of_time():
    made, calls = bench()
    assert made.known is None
    made.passed = 3.0
    assert made.known == 3.0
    made.passed = END_OF_TIME
    assert made.known is None
    assert (made.wake_at, made.times()) == (4.0, {"b": 3.0})
    made.over(9.0)
    assert calls == [("over", 9.0)]


def test_a_unit_without_receivers_that_ask_tells_nobody():
    plan = SimpleNamespace(watermark_targets={"c"}, targets=("b",), watermarks=True)
    made = watermarks(plan, None)
    for call in (
        lambda: made.hold(1, 0.0),
        lambda: made.gave(1, (2,), 0.0),
        lambda: made.expect_splits(1, 0.0),
        made.took_splits,
        lambda: made.gave_splits(1, 2, 0.0),
        lambda: made.tell(1.0, True, False),
        lambda: made.over(1.0),
    ):
        call()
    assert (made.wake_at, made.times()) == (END_OF_TIME, {})
    assert watermarks(SimpleNamespace(watermarks=False, watermark_targets=set()), None) is None
