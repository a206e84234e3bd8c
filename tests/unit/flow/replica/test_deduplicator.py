"""Each row passes once, whoever brings it first, and nothing is remembered for ever."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from esault.flow.replica.merger import Deduplicator


def test_the_first_copy_of_a_row_is_taken_and_the_others_are_not():
    first = Deduplicator()
    assert list(first.admit((1, 0, 0), ("a", "b"))) == [0, 1]
    assert list(first.admit((1, 0, 0), ("b", "c"))) == [1]
    assert list(first.admit((1, 0, 5), ("a", "b", "c"))) == []


def test_a_row_that_comes_twice_in_one_batch_is_taken_once():
    first = Deduplicator()
    assert list(first.admit((1, 0, 0), ("a", "a", "b"))) == [0, 2]
    assert list(first.admit((1, 0, 0), ("b", "c", "c"))) == [1]


def test_what_is_done_is_forgotten_and_takes_nothing_any_more():
    first = Deduplicator()
    first.admit((1, 0, 0), ("a",))
    first.admit((1, 7, 0), ("b",))
    first.admit((2, 0, 0), ("c",))
    first.done(1, 7)
    assert len(first) == 2
    assert list(first.admit((1, 0, 1), ("a", "late"))) == []
    assert list(first.admit((1, 7, 1), ("b", "d"))) == [1]
    first.done(1, 3)  # an old word
    assert list(first.admit((1, 6, 0), ("e",))) == []


def test_roots_of_the_dead_are_forgotten():
    first = Deduplicator()
    first.admit((1, 0, 0), ("a",))
    first.admit((2, 0, 0), ("b",))
    first.living({2})
    assert len(first) == 1


def test_what_copies_put_out_at_their_end_is_remembered_whoever_owns_it():
    first = Deduplicator()
    assert list(first.admit((5, 0, 0), ("count:f'a'.0",), own=True)) == [0]
    first.done(5, 1)
    first.living(())
    assert list(first.admit((6, 3, 0), ("count:f'a'.0", "count:f'b'.0"), own=True)) == [1]


class TwoCopies(RuleBasedStateMachine):
    """Roots with rows, two first that bring them in their own time, die, come back with all that is open, and replays.

    A root is done when one copy that was there throughout has brought all of it, as `ReplicaRoots` has it.
    """

    batches = Bundle("batches")

    def __init__(self):
        super().__init__()
        self.first = Deduplicator()
        self.number = 0
        self.rows: dict[int, list[str]] = {}
        self.passed: list[str] = []
        #: copy -> root -> rows that it has still to bring
        self.owed: list[dict[int, list[str]]] = [{}, {}]
        #: root -> first that were there throughout
        self.throughout: dict[int, set[int]] = {}
        self.done: set[int] = set()
        self.low = 0

    @rule(count=st.integers(1, 5))
    def open(self, count):
        rows = [f"1:{self.number}.{i}" for i in range(count)]
        self.rows[self.number] = rows
        self.throughout[self.number] = {0, 1}
        for owed in self.owed:
            owed[self.number] = list(rows)
        self.number += 1

    @rule(target=batches, copy=st.integers(0, 1), pick=st.randoms(use_true_random=False), count=st.integers(1, 4))
    def emit(self, copy, pick, count):
        """A batch on its way, which may arrive much later; a copy's rows of one root are in order."""
        roots = [number for number, rows in self.owed[copy].items() if rows]
        if not roots:
            return copy, 0, ()
        number = pick.choice(roots)
        rows = self.owed[copy][number]
        batch, self.owed[copy][number] = tuple(rows[:count]), rows[count:]
        return copy, number, batch

    @rule(batch=consumes(batches), attempt=st.integers(0, 3))
    def arrive(self, batch, attempt):
        copy, number, ids = batch
        if not ids:
            return
        self.passed += [ids[i] for i in self.first.admit((1, number, attempt), ids)]
        if (
            copy in self.throughout[number]
            and not self.owed[copy][number]
            and set(self.rows[number]) <= set(self.passed)
        ):
            self.done.add(number)

    @rule(copy=st.integers(0, 1))
    def die(self, copy):
        """What it has not sent is lost; its successor gets what is opened from now on."""
        for number in self.rows:
            if number not in self.done:
                self.throughout[number].discard(copy)
                if self.throughout[number]:
                    self.owed[copy][number] = []
                else:  # no copy was there throughout: replayed to both
                    self.throughout[number] = {0, 1}
                    for owed in self.owed:
                        owed[number] = list(self.rows[number])

    @rule()
    def tell(self):
        while self.low in self.done:
            self.low += 1
        self.first.done(1, self.low)

    @invariant()
    def nothing_passes_twice(self):
        assert len(self.passed) == len(set(self.passed))

    @invariant()
    def only_what_is_open_is_remembered(self):
        assert len(self.first) <= sum(
            len(rows) for number, rows in self.rows.items() if number >= self.first._low.get(1, 0)
        )

    def teardown(self):
        for copy in (0, 1):
            for number, rows in list(self.owed[copy].items()):
                if rows:
                    self.passed += [rows[i] for i in self.first.admit((1, number, 0), rows)]
        assert len(self.passed) == len(set(self.passed))
        lost = {id for number, rows in self.rows.items() if number in self.done for id in rows} - set(self.passed)
        assert not lost


TestTwoCopies = TwoCopies.TestCase
TestTwoCopies.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
