"""The driver's link to a host: what a node tells while it is asked something else."""

from __future__ import annotations

from esault.cluster.words import Lodged, Member, Nodes
from esault.runtime.host_link import HostLink, News


class Node:
    """Says what it was given, a list at a time."""

    def __init__(self, *said):
        self.said = list(said)

    def send(self, word):
        pass

    def wait(self, seconds):
        pass

    def receive(self):
        return self.said.pop(0)


def test_news_that_come_while_a_lodge_gets_ready_are_told_afterwards():
    link = HostLink("a:1", None, lambda *said: None, lambda: None, lambda: 0.0)
    news = Nodes((Member("a", "a:1"), Member("new", "n:1")), draining=True)
    assert link._await(Node([], [news], [Lodged("r", 5)]), None, 10.0) == Lodged("r", 5)
    link._tell_aside("a")
    assert list(link.events) == [News("a", news.members, True)]
