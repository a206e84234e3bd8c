"""When a root is done whose rows went to replicas: accounts, deaths, and what is told to mergers."""

from __future__ import annotations

import random

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from esault.flow.channel.frame import ACK, MARK, decode
from esault.flow.channel.lineage import Lineage
from esault.flow.delivery.replica_acks import LOW, ReplicaAcks, ReplicaRoots, for_replica
from esault.messages.settings import Settings
from esault.payload.codec import Codec
from esault.testing.memory_wire import MemoryWire
from esault.topology.plan import MOST_REPLICAS

OWNER, GATE = 1, 9
#: ids of two units with two replicas each
A, B = 1, 2
C, D = 1 + MOST_REPLICAS, 2 + MOST_REPLICAS


def roots_and_wire(emit, incarnation=OWNER, **options):
    wire = MemoryWire()
    inlet = wire.bind("memory://9/express")
    codec = Codec()
    acks = ReplicaAcks(incarnation, 1, codec, wire, lambda root, p, d: None)
    acks.set_ackers({OWNER: "memory://1/express", GATE: "memory://9/express"}, ())
    roots = ReplicaRoots(incarnation, Settings(**options), acks, lambda lineage, payload: emit(acks, lineage, payload))
    return roots, acks, inlet, codec


def fork(*ids):
    """Emits that divide a root among replicas, each with its id."""

    def emit(acks, lineage: Lineage, payload):
        for replica, id in ids:
            if replica:
                acks.fork(for_replica(lineage.root, replica), id, id)
            else:
                lineage.p ^= id
                lineage.d ^= id

    return emit


def opened(*ids, **options):
    roots, *rest = roots_and_wire(fork(*ids), **options)
    roots.set_replicas((), (), 0.0)
    roots.open([("", ["k"], [1], None)], 0.0, "after", 0.0)
    return roots, *rest


def test_a_root_waits_for_all_lanes_and_its_window_for_one():
    roots, *_ = opened((A, 5), (B, 6), max_pending=1)
    assert not roots.credit
    roots.ack(for_replica((OWNER, 0, 0), B), 6, 6, 0.0)
    assert roots.credit
    assert roots.open_count == 1
    roots.ack(for_replica((OWNER, 0, 0), A), 5, 5, 0.0)
    assert roots.open_count == 0
    assert roots.committed == "after"


def test_its_own_account_counts_as_well():
    roots, *_ = opened((0, 3), (A, 5), (B, 6))
    for replica, id in ((A, 5), (B, 6)):
        roots.ack(for_replica((OWNER, 0, 0), replica), id, id, 0.0)
    assert roots.open_count == 1
    roots.ack((OWNER, 0, 0), 3, 3, 0.0)
    assert roots.open_count == 0


def test_a_replica_that_is_down_is_not_waited_for_and_the_other_is():
    roots, *_ = opened((A, 5), (B, 6))
    roots.set_replicas((A,), (), 0.0)
    assert roots.open_count == 1
    roots.ack(for_replica((OWNER, 0, 0), B), 6, 6, 0.0)
    assert roots.open_count == 0


def test_a_replica_that_came_back_is_waited_for_by_later_roots_only():
    roots, *_ = opened((A, 5), (B, 6))
    roots.set_replicas((A,), (), 0.0)
    roots.set_replicas((), (), 0.0)
    roots.open([("", ["k"], [2], None)], 0.0, "later", 0.0)
    for number in (0, 1):
        roots.ack(for_replica((OWNER, number, 0), B), 6, 6, 0.0)
    assert [root.number for root in roots] == [1]
    roots.ack(for_replica((OWNER, 1, 0), A), 5, 5, 0.0)
    assert roots.open_count == 0


def test_a_root_for_which_no_replica_was_there_throughout_is_replayed_when_one_is_there():
    roots, *_ = opened((A, 5), (B, 6))
    roots.set_replicas((A, B), (), 0.0)
    roots.ack(for_replica((OWNER, 0, 0), A), 5, 5, 0.0)
    roots.ack(for_replica((OWNER, 0, 0), B), 6, 6, 0.0)
    roots.watch(0.1)
    assert roots.open_count == 1 and not roots.overdue
    roots.set_replicas((B,), (), 0.2)
    roots.watch(0.2)
    assert roots.overdue and roots.replay_one(0.2)
    roots.ack(for_replica((OWNER, 0, 0), A), 5, 5, 0.3)  # of the attempt that was given up
    assert roots.open_count == 1
    roots.ack(for_replica((OWNER, 0, 1), A), 5, 5, 0.3)
    assert roots.open_count == 0


def test_one_replica_after_the_other_is_not_enough():
    roots, *_ = opened((A, 5), (B, 6))
    roots.set_replicas((A,), (), 0.0)
    roots.set_replicas((), (), 0.1)
    roots.set_replicas((B,), (), 0.2)
    roots.ack(for_replica((OWNER, 0, 0), A), 5, 5, 0.2)
    roots.watch(0.3)
    assert roots.overdue


def test_each_unit_with_replicas_must_have_one():
    roots, *_ = opened((A, 5), (B, 6), (C, 7), (D, 8))
    roots.set_replicas((A,), (), 0.0)
    roots.ack(for_replica((OWNER, 0, 0), B), 6, 6, 0.0)
    roots.ack(for_replica((OWNER, 0, 0), C), 7, 7, 0.0)
    assert roots.open_count == 1
    roots.ack(for_replica((OWNER, 0, 0), D), 8, 8, 0.0)
    assert roots.open_count == 0


def test_without_any_ack_it_is_replayed_in_the_end_although_its_own_account_is_settled():
    roots, *_ = opened((A, 5), (B, 6), replay_after=10.0)
    roots.watch(1.0)
    assert not roots.overdue
    roots.watch(11.5)
    assert roots.overdue


def test_lanes_are_told_before_what_they_came_from_is_acked():
    _, acks, inlet, codec = roots_and_wire(fork(), incarnation=2)
    root = (GATE, 4, 0)
    acks.add(root, 1, 1)
    acks.fork(for_replica(root, A), 5, 5)
    acks.add(root, 2, 2)
    acks.send()
    (link,) = inlet.waiting()
    frame = decode(link.popleft(), codec)
    assert frame.kind == ACK
    assert [(name, p) for name, p, _ in frame.body] == [(for_replica(root, A), 5), (root, 3)]
    assert not acks


def test_mergers_are_told_what_is_done():
    roots, _, inlet, codec = opened((A, 5), (B, 6))
    roots.set_replicas((), (GATE,), 0.0)
    roots.open([("", ["k"], [2], None)], 0.0, "later", 0.0)
    for replica, id in ((A, 5), (B, 6)):
        roots.ack(for_replica((OWNER, 0, 0), replica), id, id, 0.0)
    roots.watch(0.1)
    roots.watch(0.2)
    (link,) = inlet.waiting()
    frames = [decode(data, codec) for data in link]
    assert [(frame.kind, frame.body) for frame in frames] == [(MARK, (((OWNER, 1, 0), LOW),))]


class Lanes(RuleBasedStateMachine):
    """A root's rows go through processes that divide them among replicas, to replicas, to the merger; acks come in any order of senders.

    What must hold: a root is done only if some replica that was there throughout had all its rows taken by the merger.
    """

    def __init__(self):
        super().__init__()
        self.order = random.Random(1)
        self.roots, *_ = roots_and_wire(self.emit)
        self.roots.set_replicas((), (), 0.0)
        #: batches at the process before the replicas: (root, id)
        self.before: list[tuple[tuple[int, int, int], int]] = []
        #: batches at the replicas and at the merger: (root, replica, id)
        self.at_replicas: list[tuple[tuple[int, int, int], int, int]] = []
        self.at_merger: list[tuple[tuple[int, int, int], int, int]] = []
        #: acks on their way, by who sent them: what one sends stays in order
        self.acks: dict[str, list[list[tuple[tuple[int, int, int], int]]]] = {
            "before": [],
            "replicas": [],
            "merger": [],
        }
        self.down: set[int] = set()
        #: attempt -> replicas that were there throughout, and what each has still to bring to the merger
        self.whole: dict[tuple[int, int, int], set[int]] = {}
        self.left: dict[tuple[int, int, int], dict[int, int]] = {}
        self.sent = 0

    def id(self):
        return self.order.getrandbits(64)

    def emit(self, acks, lineage, payload):
        for _ in range(2):
            id = self.id()
            lineage.p ^= id
            lineage.d ^= id
            self.before.append((lineage.root, id))
        self.whole[lineage.root] = {A, B} - self.down
        self.left[lineage.root] = {A: 2, B: 2}

    @rule()
    def open(self):
        self.roots.open([("", ["k"], [1], None)], 0.0, self.sent, 0.0)
        self.sent += 1

    @precondition(lambda self: self.before)
    @rule(place=st.integers(0, 50))
    def divide(self, place):
        root, id = self.before.pop(place % len(self.before))
        frame = []
        for replica in (A, B):
            own = self.id()
            frame.append((for_replica(root, replica), own))
            if replica not in self.down:  # else nobody gets it
                self.at_replicas.append((root, replica, own))
        self.acks["before"].append([*frame, (root, id)])

    @precondition(lambda self: self.at_replicas)
    @rule(place=st.integers(0, 50))
    def process(self, place):
        root, replica, id = self.at_replicas.pop(place % len(self.at_replicas))
        own = self.id()
        self.at_merger.append((root, replica, own))
        self.acks["replicas"].append([(for_replica(root, replica), id ^ own)])

    @precondition(lambda self: self.at_merger)
    @rule(place=st.integers(0, 50))
    def take(self, place):
        root, replica, id = self.at_merger.pop(place % len(self.at_merger))
        self.left[root][replica] -= 1
        self.acks["merger"].append([(for_replica(root, replica), id)])

    @rule(who=st.sampled_from(["before", "replicas", "merger"]))
    def deliver(self, who):
        if self.acks[who]:
            for name, id in self.acks[who].pop(0):
                self.roots.ack(name, id, id, 0.0)

    @rule(replica=st.sampled_from([A, B]), told=st.booleans())
    def die(self, replica, told):
        self.down.add(replica)
        self.at_replicas = [each for each in self.at_replicas if each[1] != replica]
        self.at_merger = [each for each in self.at_merger if each[1] != replica]
        for replicas in self.whole.values():
            replicas.discard(replica)
        if told:
            self.roots.set_replicas(self.down, (), 0.0)

    @rule()
    def come_back(self):
        self.roots.set_replicas(self.down, (), 0.0)  # its death is known before its successor is
        self.down.clear()
        self.roots.set_replicas((), (), 0.0)

    @rule()
    def watch(self):
        self.roots.watch(0.0)
        self.roots.replay_one(0.0)

    @invariant()
    def what_is_done_is_safe(self):
        open_now = {root.number for root in self.roots}
        for number in range(self.sent):
            if number not in open_now:
                attempts = [root for root in self.left if root[1] == number]
                assert any(self.left[root][replica] == 0 for root in attempts for replica in (A, B)), number
        self.roots.check()

    def teardown(self):
        """With nobody dying any more all is done."""
        self.come_back()
        for _ in range(400):
            if not self.roots.open_count:
                break
            self.watch()
            while self.before:
                self.divide(0)
            while self.at_replicas:
                self.process(0)
            while self.at_merger:
                self.take(0)
            for who in self.acks:
                while self.acks[who]:
                    self.deliver(who)
        assert not self.roots.open_count


TestLanes = Lanes.TestCase
TestLanes.settings = hypothesis_settings(max_examples=80, stateful_step_count=50, deadline=None)
