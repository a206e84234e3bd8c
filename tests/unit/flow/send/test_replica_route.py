"""The way to one replica: its batches are named in its own account, also those that go nowhere for now."""

from __future__ import annotations

import random

from esault.flow.channel.lineage import Lineage
from esault.flow.delivery.replica_acks import for_replica
from esault.flow.send.replica_route import MutedChannel, ReplicaRoute
from esault.messages.settings import Settings
from esault.payload.codec import Codec


class Inside:
    """Opens a batch with the id 6, and takes note of how it was called."""

    def __init__(self):
        self.calls = []

    def install(self, *args):
        self.calls.append(("install", *args))

    def push(self, lineage, *args):
        self.calls.append(("push", lineage.root, lineage.due, *args))
        lineage.p ^= 6
        lineage.d ^= 7

    push_arrays = push


class Acks:
    def __init__(self):
        self.forks = []

    def fork(self, *args):
        self.forks.append(args)


def test_rows_go_on_under_the_replicas_name_and_the_roots_own_account_knows_nothing_of_them():
    inside, acks = Inside(), Acks()
    route = ReplicaRoute(inside, 2, acks)
    root = (3, 4, 1)
    for push, args in ((route.push, (["k"], ["v"], ["id"], 5.0)), (route.push_arrays, ("batch", ["id"], 5.0))):
        lineage = Lineage(root, 9.0)
        push(lineage, *args)
        assert (lineage.p, lineage.d) == (0, 0)
        assert inside.calls.pop() == ("push", for_replica(root, 2), 9.0, *args)
        assert acks.forks.pop() == (for_replica(root, 2), 6, 7)
    assert for_replica(root, 2) != for_replica(root, 1) != root
    route.install("table", "channels")
    assert inside.calls == [("install", "table", "channels")]


def test_what_would_go_to_a_dead_sub_unit_is_named_and_dropped_so_that_it_is_never_acked():
    ids = random.Random(4).getrandbits
    channel = MutedChannel(7, 1, 1, Codec(), Settings(), lambda: ids(64), "count")
    one, other = Lineage((1, 1, 0), 0.0), Lineage((1, 2, 0), 0.0)
    channel.add(one, 0, ["k"], ["v"], None, 1.0)
    channel.add_whole(other, 0, 1, b"k", b"v", None, 1.0)
    assert one.p == one.d != 0
    assert other.p == other.d != 0
    assert one.p != other.p
    channel.add(one, 0, ["k"], ["v"], None, 1.0)
    assert one.p == one.d
    assert channel.put(3, "body") == 0
    channel.flush(2.0)
    assert not channel.queue
