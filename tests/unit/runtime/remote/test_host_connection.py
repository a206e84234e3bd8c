"""The driver's end of the connection to a host, without one."""

from __future__ import annotations

import pytest

from esault.cluster.connection import Lost
from esault.cluster.messages import Heartbeat, Member, Nodes
from esault.runtime.remote.host_connection import HostConnection, News


class Wire:
    """A connection; what is done at each wait is given."""

    def __init__(self, *steps, news=()):
        self.steps, self.sent, self.news = list(steps), [], list(news)

    def fileno(self):
        return -1

    def send(self, word):
        self.sent.append(word)

    def receive(self):
        news, self.news = self.news, []
        return news

    def wait(self, seconds, *also):
        if not self.steps:
            raise Lost("the end")
        self.steps.pop(0)()
        return []


@pytest.fixture
def link():
    made = HostConnection("127.0.0.1:1", None, None, None, lambda: None, lambda: 0.0)
    yield made
    made._waker.close()


def test_words_that_were_meant_for_the_host_process_before_do_not_go_to_the_next(link):
    """The driver may say them before it has heard that the first one is lost: who is forked by them would be nobody's."""
    link.say("fork, to the first")
    host_process = Wire(lambda: link.say("also to the first"), link.begin, lambda: link.say("to the second"))
    with pytest.raises(Lost):
        link._serve(Wire(), host_process)
    assert [word for word in host_process.sent if word != Heartbeat()] == ["to the second"]


def test_what_a_node_says_while_a_host_process_is_being_made_is_heard(link):
    """That it drains, such as: it would wait for the end of the run."""
    link.up = "b"
    with pytest.raises(Lost):
        link._serve(Wire(news=[Nodes((Member("b", "x:1"),), True)]), Wire())
    assert list(link.events) == [News("b", (Member("b", "x:1"),), True)]
