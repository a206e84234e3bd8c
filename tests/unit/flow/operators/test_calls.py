"""Which call may begin."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from esault.flow.operators.calls import FREE, Call, Calls


def call(name, value=None, hook="process", alone=False):
    return Call(owner=None, name=name, key=name, value=value, hook=hook, run=None, alone=alone)


def test_one_of_a_key_at_a_time_and_so_many_in_all():
    calls = Calls(2)
    rows = [call(k) for k in "aab"] + [call("c")]
    for row in rows:
        calls.add(row)
    assert [calls.next(), calls.next(), calls.next()] == [rows[0], rows[2], None]
    assert calls.busy("a")
    assert not calls.busy("c")
    calls.over(rows[2])
    assert calls.next() is rows[3]  # it stands before the second "a", which has only now become ready
    calls.over(rows[0])
    assert calls.next() is rows[1]


def test_one_that_has_ended_is_followed_by_the_next_of_its_key_where_no_other_waits_for_room():
    calls = Calls(1)
    rows = [call(k) for k in "aaab"]
    for row in rows[:2]:
        calls.add(row)
    assert calls.next() is rows[0]
    assert calls.follow(rows[0]) is rows[1]
    assert (calls.open, calls.waiting) == (1, 0)
    calls.over(rows[0])  # its results are taken
    assert calls.open == 1
    assert calls.busy("a")
    for row in rows[2:]:
        calls.add(row)
    assert calls.follow(rows[1]) is None
    calls.over(rows[1])
    assert calls.next() is rows[3]


def test_what_has_no_key_stands_in_nobodys_way():
    calls = Calls(3)
    for _ in range(4):
        calls.add(call(FREE))
    assert sum(calls.next() is not None for _ in range(5)) == 3


def test_nothing_begins_beside_one_that_must_be_alone():
    calls = Calls(8)
    calls.add(call(FREE, hook="open", alone=True))
    calls.add(call("a"))
    opening = calls.next()
    assert opening.hook == "open"
    assert calls.next() is None
    calls.over(opening)
    assert calls.next().name == "a"


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.sampled_from("abc")),
            st.tuples(st.just("hook"), st.sampled_from("abc")),
            st.tuples(st.just("begin"), st.none()),
            st.tuples(st.just("over"), st.integers(0, 9)),
            st.tuples(st.just("follow"), st.integers(0, 9)),
            st.tuples(st.just("taken"), st.none()),
            st.tuples(st.just("recall"), st.none()),
        ),
        max_size=80,
    ),
    st.integers(1, 4),
)
def test_calls_of_a_key_are_made_in_order_and_counts_are_right(steps, most):
    calls, opened, done, waiting, number = Calls(most), [], [], [], 0
    followed: list = []  # ended, and not taken

    def begin():
        found = calls.next()
        if found is not None:
            first = next(each for each in waiting if each.name == found.name)
            assert found is first
            waiting.remove(found)
            opened.append(found)
        return found

    for what, argument in steps:
        if what in ("add", "hook"):
            number += 1
            waiting.append(call(argument, number, "process" if what == "add" else "tick"))
            calls.add(waiting[-1])
        elif what == "begin":
            begin()
        elif what == "over" and opened:
            ended = opened.pop(argument % len(opened))
            calls.over(ended)
            done.append(ended)
        elif what == "follow" and opened:
            at = argument % len(opened)
            behind = [each for each in waiting if each.name == opened[at].name]
            others = any(each.name not in {other.name for other in opened} for each in waiting)
            found = calls.follow(opened[at])
            assert found is (behind[0] if behind and not others else None)
            if found is not None:
                waiting.remove(found)
                followed.append(opened[at])
                opened[at] = found
        elif what == "taken" and followed:
            calls.over(followed.pop(0))
        elif what == "recall":
            back = calls.recall()
            assert back == [each for each in waiting if each.hook == "process"]
            waiting[:] = [each for each in waiting if each.hook != "process"]
        names = [each.name for each in opened]
        assert len(names) == len(set(names)) <= most
        assert (calls.open, calls.waiting) == (len(opened), len(waiting))
        assert calls.rows == sum(each.hook == "process" for each in waiting)
        assert calls.hooks == sum(each.hook != "process" for each in (*opened, *waiting, *followed))
        assert {each.name for each in (*opened, *waiting)} == set(calls.names)
    for each in followed:
        calls.over(each)
    while calls:
        if begin() is None:
            calls.over(opened.pop())
    assert not waiting
