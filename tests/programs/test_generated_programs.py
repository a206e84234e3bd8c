"""Random programs do on LocalRuntime what a plain loop does, whatever befalls them; `generate` says how, and runs more of them."""

from __future__ import annotations

import collections
import copy
import os
import random

import depth
import numpy as np
import pytest

from esault.payload import codec
from esault.payload.pickles import read
from tests.programs.generate import HAPPENED, draw, many, run, said
from tests.programs.mutations import canon, make
from tests.unit.payload import kinds

#: programs that are run; `python -m tests.programs.generate` runs more
COUNT = int(os.environ.get("ESAULT_PROOF", "250" if depth.PROFILE == "deep" else "120"))


@pytest.mark.timeout(600)  # for machines that do much else
def test_random_programs_do_what_a_plain_loop_does_whatever_befalls_them():
    first = 0 if os.environ.get("CI") else random.randrange(10**9)
    counts, failures = many(range(first, first + COUNT))
    assert not failures, "\n".join(f"python -m tests.programs.generate --only {seed}: {why}" for seed, why in failures)
    assert counts["programs"] == COUNT
    if COUNT >= 120:
        assert all(counts[name] for name in HAPPENED), said(counts)


#: finish before rows that a merge carried; rows that shared the keys of their dicts; a newcomer that was not told whom to ack to while
#: one that left waited for a checkpoint, which waited for that ack; rows of a bolt that was given processes before its sender's last ones
@pytest.mark.parametrize(
    ("seed", "alike"), [(911000484, True), (912000095, True), (771000328, False), (773000877, False)]
)
def test_programs_that_failed_once_do_not_again(seed, alike):
    run(seed, alike=alike)


def test_a_seed_says_all_of_a_program():
    for seed in range(20):
        assert str(draw(seed)) == str(draw(seed))
        assert canon(list(draw(seed).spouts.values())) == canon(list(draw(seed).spouts.values()))


def apart(state):
    """Each attribute by itself: what stands in two of them is two objects."""
    return {name: copy.deepcopy(value) for name, value in state.items()} if type(state) is dict else state


def reordered(state):
    """Dicts in attributes the other way round."""
    if type(state) is dict:
        return {name: dict(reversed(v.items())) if type(v) is dict else v for name, v in state.items()}
    return state


@pytest.mark.parametrize("fault", [apart, reordered])
def test_an_engine_that_keeps_state_a_little_wrong_is_found(monkeypatch, fault):
    monkeypatch.setattr(codec, "read", lambda data, start, owner=None: fault(read(data, start, owner)))
    _, failures = many(range(200), most_failures=1)
    assert failures


same = [1]
DIFFERENT = [
    ([1], (1,)),
    (1, True),
    (0.0, -0.0),
    (1, 1.0),
    (np.int8(1), np.int16(1)),
    (np.array([1, 2], "i4"), np.array([1, 2], "i8")),
    (np.array([[1, 2]]), np.array([1, 2])),
    (collections.deque([1], 2), collections.deque([1])),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    (collections.OrderedDict(a=1), {"a": 1}),
    (collections.defaultdict(list), collections.defaultdict(int)),
    (collections.Counter("a"), {"a": 1}),
    ({1}, frozenset({1})),
    ([same, same], [[1], [1]]),
    ([[1], same, same], [same, [1], same]),
    (kinds.Plain([1]), kinds.Prop([1])),
    (kinds.MyList([1]), [1]),
    ("1", b"1"),
    (b"a", bytearray(b"a")),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_differs_in_type_order_or_identity_is_told_apart(one, other):
    assert canon(one) != canon(other)


def test_a_value_and_its_copy_are_the_same():
    for seed in range(300):
        value = make(random.Random(seed))
        assert canon(value) == canon(copy.deepcopy(value)) == canon(make(random.Random(seed)))
