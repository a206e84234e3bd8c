"""The ledger in random runs of a small tree, with every fault there is."""

from __future__ import annotations

import random
from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from esault.flow.delivery.ledger import DONE, PROCESSED, Ledger

BOTH = PROCESSED | DONE


@dataclass(frozen=True)
class Data:
    """A batch on its way: to bolt D, which derives one for each of the sinks E and F."""

    root: tuple[int, int, int]
    stage: str
    id: int


@dataclass(frozen=True)
class Ack:
    root: tuple[int, int, int]
    p: int
    d: int
    #: owner -> ledger: opens the root; never lost, for that would be a broken channel
    registers: bool = False


class TreeUnderFaults(RuleBasedStateMachine):
    """S -> D -> (E, F). Ids are single bits, so that no two sums are equal by chance.

    Anything on its way may be doubled, lost or overtaken, stages crash with what they hold and have not committed, the
    owner replays whatever stalls. Whatever happens: a root that is told to be done was processed by every stage.
    """

    REPLAY_AFTER = 10.0

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger(bucket_seconds=30)
        self.now = 0.0
        self.bits = 0
        self.flying: list[Data | Ack] = []
        self.held: list[Data] = []
        self.written: list[Data] = []
        #: attempts: root -> stages that have processed it, the sinks with commit
        self.did: dict[tuple[int, int, int], set[str]] = {}
        #: ... stages that have taken it over: held, or written
        self.took: dict[tuple[int, int, int], set[str]] = {}
        self.current: dict[int, int] = {}
        self.told: dict[tuple[int, int, int], int] = {}
        self.done: set[int] = set()
        self.harmed: set[tuple[int, int, int]] = set()

    def new_id(self) -> int:
        self.bits += 1
        return 1 << self.bits

    # the owner

    @rule()
    def open_root(self) -> None:
        number = len(self.current)
        if number < 6:
            self.send(number, 0)

    def send(self, number: int, attempt: int) -> None:
        root = (7, number, attempt)
        self.current[number] = attempt
        self.did[root], self.took[root] = set(), set()
        id = self.new_id()
        self.flying += [Data(root, "D", id), Ack(root, id, id, registers=True)]

    def hear(self, root: tuple[int, int, int], flags: int) -> None:
        before = self.told.get(root, 0)
        assert not before & flags, "each flag is told once"
        self.told[root] = told = before | flags
        if flags & PROCESSED:
            assert "D held" in self.took[root] or {"E", "F"} <= self.took[root]
        if flags & DONE:
            assert told == BOTH
            assert self.did[root] == {"D", "E", "F"}
            assert root == (7, root[1], self.current[root[1]]), "only the newest attempt can end"
            self.done.add(root[1])

    def watch(self) -> None:
        for root in self.ledger.stalled(self.now, self.REPLAY_AFTER):
            self.ledger.forget(root)
            self.send(root[1], root[2] + 1)
        if self.ledger.expire(self.now):
            # Acks that waited for a registration for too long: as if they had been lost.
            self.harmed |= {thing.root for thing in self.flying if isinstance(thing, Ack) and thing.registers}

    # the stages

    def arrive(self, thing: Data | Ack) -> None:
        if isinstance(thing, Ack):
            update = self.ledger.register if thing.registers else self.ledger.ack
            flags = update(thing.root, thing.p, thing.d, self.now)
            if flags:
                self.hear(thing.root, flags)
        elif thing.stage == "D":
            self.process(thing, early=0)
        else:
            self.written.append(thing)
            self.took[thing.root].add(thing.stage)
            self.flying.append(Ack(thing.root, thing.id, 0))

    def process(self, data: Data, early: int) -> None:
        y, z = self.new_id(), self.new_id()
        self.did[data.root].add("D")
        self.flying += [Data(data.root, "E", y), Data(data.root, "F", z)]
        self.flying.append(Ack(data.root, data.id ^ early ^ y ^ z, data.id ^ y ^ z))

    def commit(self) -> None:
        written, self.written = self.written, []
        for data in written:
            self.did[data.root].add(data.stage)
            self.flying.append(Ack(data.root, 0, data.id))

    def release(self) -> None:
        held, self.held = self.held, []
        for data in held:
            self.process(data, early=data.id)

    # what can happen

    def draw_flying(self, data, kind=(Data, Ack)):
        candidates = [thing for thing in self.flying if isinstance(thing, kind)]
        return data.draw(st.sampled_from(candidates)) if candidates else None

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def something_arrives(self, data) -> None:
        thing = self.draw_flying(data)
        self.flying.remove(thing)
        self.arrive(thing)

    @precondition(lambda self: self.flying)
    @rule(seed=st.integers(0, 1000), count=st.integers(1, 20))
    def much_arrives(self, seed, count) -> None:
        draw = random.Random(seed)
        for _ in range(min(count, len(self.flying))):
            self.arrive(self.flying.pop(draw.randrange(len(self.flying))))

    @rule(data=st.data())
    def a_batch_is_held(self, data) -> None:
        thing = self.draw_flying(data, Data)
        if thing is not None and thing.stage == "D":
            self.flying.remove(thing)
            self.held.append(thing)
            self.took[thing.root].add("D held")
            self.flying.append(Ack(thing.root, thing.id, 0))

    @rule()
    def held_batches_are_released(self) -> None:
        self.release()

    @rule()
    def the_sinks_commit(self) -> None:
        self.commit()

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def a_frame_is_doubled(self, data) -> None:
        thing = self.draw_flying(data)
        if not (isinstance(thing, Ack) and thing.registers):
            self.flying.append(thing)
            self.harmed.add(thing.root)

    @rule(data=st.data())
    def a_frame_is_lost(self, data) -> None:
        thing = self.draw_flying(data)
        if thing is not None and not (isinstance(thing, Ack) and thing.registers):
            self.flying.remove(thing)
            self.harmed.add(thing.root)

    @rule(stage=st.sampled_from("DEF"))
    def a_stage_crashes(self, stage) -> None:
        def lost(thing) -> bool:
            return isinstance(thing, Data) and thing.stage == stage

        for things in (self.flying, self.held, self.written):
            self.harmed |= {thing.root for thing in things if lost(thing)}
            things[:] = [thing for thing in things if not lost(thing)]

    @rule(seconds=st.sampled_from([0.1, 1.0, 11.0, 31.0]))
    def time_passes(self, seconds) -> None:
        self.now += seconds
        self.watch()

    # what holds

    @invariant()
    def the_ledger_is_sound(self) -> None:
        self.ledger.check()
        assert {root[1] for root in self.ledger.open()}.isdisjoint(self.done)
        assert len(self.ledger) <= len(self.current) - len(self.done)

    def quiet(self) -> None:
        """No more faults: everything arrives, is released and committed."""
        while self.flying or self.held or self.written:
            while self.flying:
                self.arrive(self.flying.pop(0))
            self.release()
            self.commit()

    def teardown(self) -> None:
        self.quiet()
        unharmed = {number for number, attempt in self.current.items() if (7, number, attempt) not in self.harmed}
        assert unharmed <= self.done, "what nothing happened to ends without a replay"
        attempts = dict(self.current)
        self.now += self.REPLAY_AFTER + 30
        self.watch()
        self.quiet()
        assert self.done == set(self.current), "everything is done in the end"
        assert all(self.current[n] - attempts[n] <= 1 for n in attempts), "one replay is enough: no storm"
        for _ in range(2):
            self.now += 31
            self.watch()
        assert (len(self.ledger), self.ledger.unregistered) == (0, 0)


TestTreeUnderFaults = TreeUnderFaults.TestCase
TestTreeUnderFaults.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
