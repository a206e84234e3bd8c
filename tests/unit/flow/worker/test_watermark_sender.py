"""Watermarks on their way out: what each receiver is told, when, and what it may not be told while keys move."""

from __future__ import annotations

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from esault.flow.channel.frame import WATERMARK
from esault.flow.watermark.clock import BEGINNING, END_OF_TIME
from esault.flow.worker.watermark_sender import TELL_EVERY, WatermarkSender


class Channel:
    def __init__(self):
        self.sent, self.queue, self.told, self.gave, self.flushed = [], deque(), None, 0, []

    def flush(self, now):
        self.flushed.append(now)

    def put(self, kind, body):
        assert kind == WATERMARK
        self.sent.append(body)

    def words(self):
        sent, self.sent = self.sent, []
        return [(body[0], body[1]) for body in sent]


class Clock:
    def __init__(self, value, idle=False, changes_at=END_OF_TIME):
        self.value, self.idle, self.changes_at = value, idle, changes_at

    def stand(self, now, quiet_since):
        return self.value, self.idle, self.changes_at


class Outputs:
    def __init__(self, **targets):
        self.channels_of = {target: [Channel() for _ in range(count)] for target, count in targets.items()}
        self.channels = [each for channels in self.channels_of.values() for each in channels]
        self.clocks = {target: [None] for target in targets}

    def of(self, target):
        return self.channels_of[target]


def bench(**targets):
    outputs = Outputs(**(targets or {"b": 1}))
    return WatermarkSender(outputs, list(outputs.channels_of)), outputs


def tell(sender, now, value, idle=False, **options):
    sender.tell(now, (value, idle), None, options.pop("ended", False), **options)


def test_all_are_told_once_of_each_watermark_and_no_more_often_than_is_of_use():
    sender, outputs = bench(b=2)
    tell(sender, 10.0, 5.0)
    assert [each.words() for each in outputs.channels] == [[(5.0, False)]] * 2
    assert outputs.channels[0].flushed == [10.0]  # behind the rows that it covers
    tell(sender, 10.1, 5.0)
    assert not outputs.channels[0].words()
    assert sender.wake_at == END_OF_TIME
    tell(sender, 10.2, 6.0)
    tell(sender, 10.2 + TELL_EVERY / 2, 7.0)
    assert outputs.channels[0].words() == [(6.0, False)]
    assert sender.wake_at == 10.2 + TELL_EVERY
    tell(sender, 10.2 + TELL_EVERY, 7.0)
    assert outputs.channels[1].words() == [(6.0, False), (7.0, False)]


def test_one_whose_way_is_full_is_told_when_it_is_free_and_the_others_at_once():
    sender, outputs = bench(b=2)
    full, free = outputs.channels
    full.queue.append("frame")
    tell(sender, 10.0, 5.0)
    assert (full.words(), free.words()) == ([], [(5.0, False)])
    assert sender.wake_at == 10.0 + TELL_EVERY
    tell(sender, 11.0, 5.0)
    assert full.words() == []
    full.queue.clear()
    tell(sender, 12.0, 5.0)
    assert (full.words(), free.words()) == ([(5.0, False)], [])
    assert sender.wake_at == END_OF_TIME


def test_a_new_channel_is_told_what_the_others_know():
    sender, outputs = bench()
    tell(sender, 10.0, 5.0)
    new = Channel()
    outputs.channels_of["b"].append(new)
    outputs.channels = [*outputs.channels, new]
    tell(sender, 11.0, 5.0)
    assert new.words() == [(5.0, False)]
    assert outputs.channels[0].words() == [(5.0, False)]


def test_while_keys_come_nothing_is_said_of_time_and_then_all_again():
    sender, outputs = bench()
    channel = outputs.channels[0]
    tell(sender, 10.0, 5.0)
    sender.hold(3, 11.0)
    tell(sender, 12.0, 6.0)
    assert [body[:3] for body in channel.sent] == [(5.0, False, 0), (BEGINNING, False, 3)]
    channel.sent.clear()
    sender.hold(2, 12.0)  # an older one
    assert channel.sent[-1][2] == 3
    sender.released()
    tell(sender, 13.0, 6.0)
    assert channel.sent[-1][:3] == (6.0, False, 3)


def test_where_keys_went_is_said_at_once_and_with_each_word_after():
    sender, outputs = bench()
    channel = outputs.channels[0]
    tell(sender, 10.0, 5.0)
    sender.gave(4, (20, 21), 10.001)
    sender.gave(5, (21,), 10.002)
    channel.gave = 9
    tell(sender, 10.01, 5.0)
    assert [(body[0], body[3], body[4]) for body in channel.sent] == [
        (5.0, (), 0),
        (BEGINNING, ((20, 4), (21, 4)), 0),
        (BEGINNING, ((20, 4), (21, 5)), 0),
        (5.0, ((20, 4), (21, 5)), 9),
    ]


def test_what_may_come_again_holds_the_watermark_back_by_receiver_but_not_at_the_end():
    sender, outputs = bench(b=1, c=1)
    b, c = outputs.channels
    tell(sender, 10.0, 5.0, held={"b": 3.0})
    assert (b.words(), c.words()) == ([(3.0, False)], [(BEGINNING, False)])
    assert sender.times() == {"b": 5.0, "c": 5.0}
    tell(sender, 11.0, 5.0, True, held={"b": 9.0, "c": 9.0})
    assert b.words() == [(5.0, False)]  # it is not idle either: rows may come
    tell(sender, 12.0, 5.0, ended=True, held={"b": 3.0})
    assert (b.words(), c.words()[-1]) == ([(5.0, False), (END_OF_TIME, False)], (END_OF_TIME, False))


def test_of_several_clocks_the_least_counts_of_those_that_are_not_idle():
    sender, outputs = bench()
    channel = outputs.channels[0]
    slow, fast = Clock(3.0), Clock(8.0, changes_at=20.0)
    outputs.clocks["b"] = [slow, fast, None]
    tell(sender, 10.0, 5.0)
    assert channel.words() == [(3.0, False)]
    assert sender.wake_at == 20.0
    slow.idle = True
    tell(sender, 11.0, 5.0)
    assert channel.words() == [(5.0, False)]
    fast.idle = True
    tell(sender, 12.0, 5.0, True)
    assert channel.words() == [(8.0, True)]  # nobody is waited for


def test_a_clock_that_was_idle_and_comes_back_late_is_left_out_until_it_has_caught_up():
    sender, outputs = bench()
    channel = outputs.channels[0]
    back, other = Clock(2.0, idle=True), Clock(7.0)
    outputs.clocks["b"] = [back, other]
    tell(sender, 10.0, 0.0)
    assert channel.words() == [(7.0, False)]
    back.idle, back.value, other.value = False, 4.0, 9.0
    tell(sender, 11.0, 0.0)
    assert channel.words() == [(9.0, False)]
    back.value = 10.0
    other.value = 12.0
    tell(sender, 12.0, 0.0)
    assert channel.words() == [(10.0, False)]
    back.idle = True
    tell(sender, 13.0, 0.0)
    channel.words()
    back.idle, back.value = False, 4.0
    sender.count_all()  # it comes with what others have waited for
    tell(sender, 14.0, 0.0)
    assert channel.words() == [(4.0, False)]


def test_before_time_is_over_it_is_said_once_where_it_came_to():
    sender, outputs = bench()
    channel = outputs.channels[0]
    sender.tell(10.0, (END_OF_TIME, False), None, False, None, 7.0)
    assert channel.words() == [(7.0, False), (END_OF_TIME, False)]
    sender.over(11.0)
    assert channel.words() == [(END_OF_TIME, False)]
    other, outputs = bench()
    tell(other, 10.0, 5.0)
    other.over(11.0)
    assert outputs.channels[0].words() == [(5.0, False), (5.0, False), (END_OF_TIME, False)]
    nothing, outputs = bench()
    nothing.over(11.0)
    assert outputs.channels[0].words() == [(END_OF_TIME, False)]


def test_the_last_word_is_that_nothing_comes_any_more():
    sender, outputs = bench(b=2)
    tell(sender, 10.0, 5.0)
    sender.gave(4, (20,), 11.0)
    sender.over(12.0)
    for channel in outputs.channels:
        assert channel.sent[-1] == (END_OF_TIME, False, 0, ((20, 4),), 0)


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.integers(0, 9), st.booleans()), min_size=1, max_size=20))
def test_what_is_known_of_a_target_never_goes_back_whichever_clocks_are_idle(steps):
    sender, outputs = bench()
    clocks = outputs.clocks["b"] = [Clock(0.0), Clock(0.0)]
    known = BEGINNING
    for now, (one, one_idle, other, other_idle) in enumerate(steps):
        clocks[0].value, clocks[0].idle = max(clocks[0].value, float(one)), one_idle
        clocks[1].value, clocks[1].idle = max(clocks[1].value, float(other)), other_idle
        tell(sender, float(now), 0.0)
        found = sender.times()["b"]
        assert found >= known
        busy = [each.value for each in clocks if not each.idle]
        assert found <= max([known, *(busy or [each.value for each in clocks])])
        known = found


def test_new_owners_that_are_gone_are_not_named_for_ever():
    sender, outputs = bench()
    for change in range(1, 1001):
        sender.gave(change, (change,), 10.0)
        sender.living({change, 5000})
    sender.gave(1001, (5000,), 10.0)
    tell(sender, 20.0, 5.0)
    assert outputs.channels[0].sent[-1][3] == ((1000, 1000), (5000, 1001))
