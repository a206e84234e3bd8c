"""Patterns: what is refused, what moves, and what becomes of errors in conditions."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from typing import Any

import pytest

from esault import Topology, TopologyError, dead_letter, skip
from esault.patterns import Pattern
from esault.sources import Items, Paced
from esault.testing import LocalRuntime
from esault.topology.examine import examine_bolt_class
from esault.topology.pattern_bolt import PatternBolt
from esault.topology.pattern_matcher import Matcher

TWO = Pattern().begin("a", lambda v: "a" in v[1]).followed_by("b", lambda v: "b" in v[1])


def at(value):
    return value[0]


def refused(said):
    return pytest.raises(TopologyError, match=re.escape(said))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Pattern().followed_by("a"), "followed_by(...) needs a stage before it; write Pattern().begin("),
        (lambda: Pattern().times(2), "times(...) needs a stage before it"),
        (lambda: TWO.begin("c"), "pattern: it begins with 'a' already; write followed_by(...)"),
        (lambda: TWO.next("a"), "it has a stage 'a' already; names of stages are unique"),
        (lambda: TWO.next(""), "pattern, stage: the name is empty"),
        (lambda: TWO.next("c", 5), "pattern, stage 'c': 5 (int) is not callable"),
        (
            lambda: TWO.next("c", lambda: True),
            "pattern, stage 'c': the lambda must take 2 arguments: the value, what has",
        ),
        (lambda: TWO.not_next("c", None), "pattern, stage 'c': it says what must not come; give it a condition"),
        (lambda: TWO.times(0), "times(0, 0) takes whole numbers from 1 on"),
        (lambda: TWO.times(3, 2), "times(3, 2) is from 3 to fewer; write times(2, 3)"),
        (
            lambda: TWO.not_followed_by("c", bool).times(2),
            "times(...) is about the last stage, and 'c' must not come at all",
        ),
        (lambda: TWO.within(0), "pattern: within=0 must be a number of seconds above 0"),
        (lambda: Pattern().checked("unit 'x'"), "unit 'x': the pattern has no stages"),
        (
            lambda: TWO.checked("unit 'x'"),
            "nothing says when a match that has begun is given up, so that what has begun would",
        ),
        (lambda: Pattern().begin("a").optional().within(5).checked("unit 'x'"), "all stages are optional"),
        (
            lambda: TWO.within(5).skip_to_last("c").checked("unit 'x'"),
            "the pattern has no stage 'c' that a match could skip to",
        ),
    ],
)
def test_a_pattern_that_makes_no_sense_is_refused(make, said):
    with refused(said):
        make()


def test_a_stream_says_what_is_wrong_with_a_pattern():
    rows = Topology("t").spout("rows", Items([]))
    with refused("unit 'x': 'a > b' (str) is no pattern; write Pattern().begin("):
        rows.pattern("x", "a > b")
    with refused("unit 'x': nothing says when a tuple of 'rows' happened"):
        rows.pattern("x", TWO.within(5))
    assert repr(TWO.not_next("c", bool)) == "<Pattern a > b > c>"


def test_a_longer_pattern_leaves_the_shorter_one_as_it_was():
    longer = TWO.one_or_more().not_followed_by("c", bool)
    assert len(TWO._stages) == 2 and not TWO._negatives and TWO._stages[1].most == 1
    assert longer._negatives[0].name == "c" and longer.where(str)._negatives[0].where == (bool, str)


def test_partial_matches_and_what_waits_are_what_moves():
    matcher = Matcher(TWO.within(50).checked("x"))
    old, new = PatternBolt(matcher), PatternBolt(matcher)
    old.key = new.key = "k"
    for time, word in [(1, "a"), (30, "b")]:
        old.take("", (time, word), time, 0)
    old.advance(20)
    new.__setstate__(old.__getstate__())
    assert new.__getstate__() == old.__getstate__() and len(new.partials) == 1 and new.due == pytest.approx(30)
    assert examine_bolt_class(PatternBolt, "x") is False


def run(rows, pattern, **options):
    t = Topology("t")
    t.spout("rows", Items([("k", row) for row in rows]), time=at, lateness=100).pattern("x", pattern, **options)
    local = LocalRuntime(t)
    local.run_until_drained()
    return local


BROKEN = [(1, "a"), (2, None), (3, "b")]


def test_a_tuple_at_which_a_condition_raises_is_in_no_match(tmp_path):
    found = [("k", {"a": [(1, "a")], "b": [(3, "b")]})]
    assert run(BROKEN, TWO.within(50), on_error=skip()).emitted("x") == found
    local = run(BROKEN, TWO.within(50), on_error=dead_letter(str(tmp_path / "dead"), retries=2))
    assert local.emitted("x") == found
    assert [(record["key"], record["value"]) for record in local.dead_letters] == [("k", (2, None))]
    with pytest.raises(Exception, match=r"unit 'x', process, key 'k': TypeError"):
        run(BROKEN, TWO.within(50))


def test_a_condition_may_ask_what_has_matched_so_far():
    grows = (
        Pattern()
        .begin("first")
        .followed_by("more", lambda v, so_far: v[1] > max(w[1] for values in so_far.values() for w in values))
        .times(2)
        .skip_past_last()
        .within(50)
    )
    rows = [(time, number) for time, number in enumerate([5, 3, 6, 2, 9, 1])]
    assert run(rows, grows).emitted("x") == [("k", {"first": [(0, 5)], "more": [(2, 6), (4, 9)]})]


def test_what_did_not_come_is_known_when_its_time_is_over_and_its_state_is_gone():
    pattern = Pattern().begin("a", lambda v: v[1] == "a").not_followed_by("b", lambda v: v[1] == "b").within(10)
    t = Topology("t")
    rows = [(f"k{n}", (n, "a")) for n in range(200)] + [("k199", (200, "b"))]
    t.spout("rows", Paced(Items(rows), 10.0), time=at).pattern("x", pattern)
    local = LocalRuntime(t)
    local.run_for(10.0)
    assert 50 < len(local.emitted("x")) < 100
    local.run_until_drained()
    assert [key for key, _ in local.emitted("x")] == [f"k{n}" for n in range(199)]


@dataclass
class Above:
    """A condition with a parameter; a dataclass has no hash."""

    least: int

    def __call__(self, value):
        return value[1] > self.least


def test_a_condition_may_be_an_object_without_a_hash():
    pattern = Pattern().begin("high", Above(5)).next("higher", Above(5)).where(Above(7)).within(100)
    local = run([(1, 6), (2, 8), (3, 6), (4, 7)], pattern)
    assert [value for _, value in local.emitted("x")] == [{"high": [(1, 6)], "higher": [(2, 8)]}]
    copied = copy.deepcopy(Matcher(pattern.checked("x")))
    assert copied.step([], 1, 1.0, (1, 6), {1: (1, 6)})[0][0].taken == ((0, 1),)


class Deletions(list):  # type: ignore[type-arg]
    """Counts how often something is taken out of it."""

    count = 0

    def __delitem__(self, place: Any) -> None:
        self.count += 1
        super().__delitem__(place)


def test_tuples_that_wait_go_by_many_at_once_and_none_that_is_gone_is_state():
    """To take the first one out of a list moves all others."""

    out = []

    class Matches(PatternBolt):
        __slots__ = ()

        def emit(self, key, value, stream=None):
            out.append((value, stream))

    matcher = Matcher(Pattern().begin("a", lambda v: v % 100 == 0).next("b").within(5).checked("x"))
    bolt, waiting = Matches(matcher), Deletions()
    bolt.key, bolt.waiting = "k", waiting
    for n in range(1000):
        assert bolt.take("", n, float(n), 0.0)
    for until in (300, 700, 1000):
        while bolt.due <= until:
            bolt.advance(until)
        assert [value for _, _, value in bolt.state()[2]] == list(range(until, 1000))
        if until == 700:
            assert bolt.current == 700 and bolt.skip() == 700
            assert bolt.take("", 700, 700.0, 700.0)
    assert [(value["a"], value["b"]) for value, _ in out] == [([n], [n + 1]) for n in range(0, 1000, 100)]
    assert waiting.count <= 12 and waiting == [] and not bolt.needed


def test_a_condition_that_raises_behind_tuples_that_begin_nothing_names_its_own_tuple(tmp_path):
    pattern = Pattern().begin("a", lambda v: 10 / v[1] > 4).followed_by("b", lambda v: v[1] == 9).within(100)
    rows = list(enumerate([5, 6, 0, 7, 0, 2, 8, 9]))
    local = run(rows, pattern, on_error=dead_letter(str(tmp_path / "dead"), retries=1))
    assert local.emitted("x") == [("k", {"a": [(5, 2)], "b": [(7, 9)]})]
    assert [record["value"] for record in local.dead_letters] == [(2, 0), (4, 0)]
