"""Frames that were lost at the end of a channel are told from frames that are still to be read."""

from __future__ import annotations

from types import SimpleNamespace

from esault.control.run.lost_frames import LostFrames

SENDER, RECEIVER, CHANNEL = 1, 2, 7


class Link:
    """A sender and a receiver that say in their statuses what they have sent and seen."""

    def __init__(self, hosts=("a", "a")):
        self.hosts = dict(zip((SENDER, RECEIVER), hosts))
        self.said = {}
        last = SimpleNamespace(last=self.said.get)
        source = SimpleNamespace(subs={}, senders=SimpleNamespace(known={}), measurements=last)
        self.unit = SimpleNamespace(
            subs={RECEIVER: None}, senders=SimpleNamespace(known={SENDER: ("source", CHANNEL)}), measurements=last
        )
        self.units = {"source": source, "sink": self.unit}
        self.tails = LostFrames()

    def look(self, now, sent, seen, backlog=0, received_at=None):
        rows = SimpleNamespace(backlog=backlog)
        self.said[SENDER] = SimpleNamespace(now=now, sent={RECEIVER: sent})
        self.said[RECEIVER] = SimpleNamespace(
            now=now if received_at is None else received_at, seen={SENDER: seen}, rows=rows
        )
        return list(self.tails.find(self.units, self.hosts, now))


def test_what_was_sent_and_is_never_seen_is_missing():
    link = Link()
    assert not link.look(10.0, sent=5, seen=3)
    assert not link.look(11.1, sent=5, seen=3)
    assert link.look(12.2, sent=5, seen=3) == [(link.unit, RECEIVER, SENDER, "2 frames at the end are missing")]


def test_a_receiver_that_wakes_after_a_freeze_is_given_the_time_to_read():
    link = Link()
    assert not link.look(10.0, sent=60, seen=3)
    assert not link.look(11.1, sent=60, seen=3, received_at=10.0)  # frozen
    assert not link.look(12.2, sent=60, seen=3)  # its first word, before it has read
    assert not link.look(13.3, sent=60, seen=40)
    assert not link.look(14.4, sent=60, seen=60)
    assert not link.look(15.5, sent=60, seen=60)


def test_a_receiver_that_says_nothing_new_is_not_found_twice():
    link = Link()
    assert not link.look(10.0, sent=5, seen=3)
    assert not link.look(11.1, sent=5, seen=3, received_at=11.0)
    assert not link.look(12.2, sent=5, seen=3, received_at=11.0)
    assert link.look(13.3, sent=5, seen=3)


def test_what_waits_in_the_inbox_is_not_missing():
    link = Link()
    for second in range(10):
        assert not link.look(10.0 + 1.1 * second, sent=5, seen=3, backlog=100)


def test_between_hosts_a_link_that_was_cut_is_given_the_time_that_tcp_needs():
    link = Link(("a", "b"))
    silence = 2.5  # of a host that is not given up
    for second in range(int(4 * silence)):
        assert not link.look(10.0 + second, sent=5, seen=3)
    assert not link.look(20.5, sent=5, seen=5)
    link = Link(("a", "b"))
    found = [link.look(10.0 + second, sent=5, seen=3) for second in range(13)]
    assert found[-2:] == [[(link.unit, RECEIVER, SENDER, "2 frames at the end are missing")], []]
