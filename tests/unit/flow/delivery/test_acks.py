"""Acks: XORed together per root, sent to where the root's ledger sits, and kept while that is not known."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from esault.flow.channel.frame import ACK
from esault.flow.delivery.acks import MAX_WAITING, Acks, Post
from esault.payload.codec import Codec

codec = Codec()
ME = 5


class Link:
    def __init__(self):
        self.sent, self.takes, self.closed = [], True, None

    def send(self, frame):
        if self.takes:
            self.sent.append(codec.unpack(frame))
        return self.takes

    def close(self):
        self.closed = "dropped"

    def finish(self):
        self.closed = "delivered"


class Wire:
    def __init__(self):
        self.links = {}

    def link(self, endpoint):
        return self.links.setdefault(endpoint, Link())


def made():
    wire, own = Wire(), []
    return Acks(ME, 2, codec, wire, lambda *what: own.append(what)), wire, own


def bodies(link):
    return [(kind, [(tuple(root), p, d) for root, p, d in body]) for kind, _, _, _, body in link.sent]


roots = st.tuples(st.sampled_from([ME, 6, 7]), st.integers(0, 3), st.just(0))
ids = st.integers(0, 2**64 - 1)


@given(st.lists(st.tuples(roots, ids, ids, st.booleans()), max_size=30))
def test_the_sums_of_each_root_arrive_however_often_they_are_sent(added):
    acks, wire, own = made()
    acks.set_ackers({6: "six", 7: "seven"}, ())
    wanted: dict = {}
    for root, p, d, send in added:
        acks.add(root, p, d)
        was = wanted.get(root, (0, 0))
        wanted[root] = (was[0] ^ p, was[1] ^ d)
        if send:
            acks.send()
    acks.send()
    found: dict = {}
    sent = [each for link in wire.links.values() for _, body in bodies(link) for each in body]
    for root, p, d in [*own, *sent]:
        was = found.get(root, (0, 0))
        found[root] = (was[0] ^ p, was[1] ^ d)
    assert found == wanted and not acks
    for endpoint, owner in (("six", 6), ("seven", 7)):
        for _, body in bodies(wire.links.get(endpoint, Link())):
            assert {root[0] for root, _, _ in body} == {owner}


def test_nothing_is_sent_before_it_is_known_where_ledgers_are():
    acks, wire, own = made()
    acks.add((6, 1, 0), 1, 1)
    acks.send()
    assert acks and not wire.links
    acks.set_ackers({6: "six"}, ())
    acks.send()
    assert bodies(wire.links["six"]) == [(ACK, [((6, 1, 0), 1, 1)])] and not own


def test_with_ack_servers_the_number_of_the_root_decides():
    acks, wire, _ = made()
    acks.set_ackers({6: "six"}, ((8, "eight"), (9, "nine")))
    for number in range(4):
        acks.add((6, number, 0), 1, 1)
    acks.send()
    assert sorted(wire.links) == ["eight", "nine"]
    assert [root[1] for root, _, _ in bodies(wire.links["nine"])[0][1]] == [1, 3]
    assert acks.number(3) == 1 and acks.acker((6, 2, 0)) == 8


def test_what_is_for_a_server_that_is_being_made_waits_and_for_a_dead_owner_is_dropped():
    acks, wire, _ = made()
    acks.set_ackers({6: "six"}, ())
    acks.add((9, 1, 0), 1, 1)  # newer than any that was named
    acks.add((4, 1, 0), 1, 1)  # older, and not there
    acks.send()
    assert acks and not wire.links
    acks.set_ackers({9: "nine"}, ())
    acks.send()
    assert bodies(wire.links["nine"]) == [(ACK, [((9, 1, 0), 1, 1)])] and not acks and list(wire.links) == ["nine"]


def test_posts_to_processes_that_are_gone_are_closed():
    acks, wire, _ = made()
    acks.set_ackers({6: "six", 7: "seven"}, ())
    acks.post(6).put(ACK, [])
    acks.post(7).put(ACK, [])
    acks.set_ackers({7: "seven"}, ())
    assert (wire.links["six"].closed, wire.links["seven"].closed) == ("dropped", None)
    assert acks.post(6) is None
    acks.close(deliver=True)
    assert wire.links["seven"].closed == "delivered"


def test_what_the_link_refuses_waits_in_order_and_not_without_end():
    link = Link()
    post = Post(link, codec, 2, ME)
    link.takes = False
    for number in range(MAX_WAITING + 50):
        post.put(ACK, [number])
    assert len(post.queue) == MAX_WAITING and not post.retry()
    link.takes = True
    assert post.retry() and [frame[4][0] for frame in link.sent] == list(range(MAX_WAITING))
    assert [frame[:4] for frame in link.sent[:2]] == [(ACK, 2, ME, 1), (ACK, 2, ME, 2)]
