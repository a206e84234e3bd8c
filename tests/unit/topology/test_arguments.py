from __future__ import annotations

import math
import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.errors import TopologyError
from esault.topology.arguments import check_name, check_on_error, check_seconds, check_streams
from esault.topology.error_policy import ErrorPolicy, dead_letter, fail, skip


@pytest.mark.parametrize("name", ["count", "word-count", "a_b.c-1", "_private", "9", "a" * 100])
def test_letters_digits_and_a_few_signs_make_a_name(name):
    assert check_name("unit", name) == name


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "unit: the name is empty; letters (a-z, A-Z), digits, - _ . are allowed"),
        ("two words", "unit: 'two words' cannot be a name; letters (a-z, A-Z), digits, - _ . are allowed"),
        ("a/b", "cannot be a name"),
        ("count\n", "cannot be a name"),
        ("..", "cannot be a name; letters (a-z, A-Z), digits, - _ . are allowed, the first one no - or ."),
        ("-x", "the first one no - or ."),
        ("größe", "letters (a-z, A-Z)"),
        ("a" * 101, "has 101 letters; a name has at most 100"),
        (5, "unit: the name comes first and is text, not 5 (int)"),
        (None, "the name comes first and is text, not None"),
    ],
)
def test_an_odd_name_is_refused_and_told_what_is_allowed(name, said):
    with pytest.raises(TopologyError, match=re.escape(said)):
        check_name("unit", name)


@given(st.text(max_size=8))
def test_a_name_is_accepted_exactly_when_it_is_safe_in_a_path(name):
    allowed = set(string.ascii_letters + string.digits + "-_.")
    safe = bool(name) and set(name) <= allowed and name[0] not in "-."
    if safe:
        assert check_name("unit", name) == name
    else:
        with pytest.raises(TopologyError, match=r"^unit: "):
            check_name("unit", name)


@pytest.mark.parametrize("value", [1, 0.001, 3600])
def test_seconds_are_numbers_above_zero(value):
    assert check_seconds("unit 'x'", "tick_every", value) == float(value)


@pytest.mark.parametrize("value", [0, -1, -0.5, math.inf, math.nan])
def test_seconds_that_are_not_above_zero_and_finite_are_refused(value):
    with pytest.raises(TopologyError, match=r"unit 'x': tick_every=.* must be a number of seconds above 0"):
        check_seconds("unit 'x'", "tick_every", value)


@pytest.mark.parametrize("value", ["5", True, None, [1]])
def test_seconds_that_are_no_number_are_refused(value):
    with pytest.raises(TopologyError, match="unit 'x': idle_after is a number of seconds, not"):
        check_seconds("unit 'x'", "idle_after", value)


def test_streams_are_kept_in_their_order():
    assert check_streams("x", ["late", "unknown"]) == ("late", "unknown")


@pytest.mark.parametrize(
    ("streams", "said"),
    [
        ("late", "unit 'x': streams='late' is one text; write streams=('late',)"),
        (5, "unit 'x': streams takes the names of streams, such as streams=('late',), not 5"),
        (("late", "late"), "unit 'x': the stream 'late' is declared twice; name each stream once"),
        (("",), "unit 'x', a name in streams: the name is empty"),
        (("a b",), "unit 'x', a name in streams: 'a b' cannot be a name"),
        ((1,), "unit 'x', a name in streams: the name comes first and is text, not 1 (int)"),
    ],
)
def test_bad_streams_are_refused(streams, said):
    with pytest.raises(TopologyError, match=re.escape(said)):
        check_streams("x", streams)


@pytest.mark.parametrize("policy", [fail(), skip(3), dead_letter("dead.jsonl", retries=1)])
def test_error_policies_are_accepted(policy):
    assert check_on_error("unit 'x'", policy) is policy


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (skip, "unit 'x': on_error=skip lacks its brackets; write on_error=skip()"),
        (fail, "unit 'x': on_error=fail lacks its brackets; write on_error=fail()"),
        (dead_letter, "unit 'x': on_error=dead_letter lacks its path; write on_error=dead_letter('dead.jsonl')"),
        ("skip", "unit 'x': on_error is fail(), skip() or dead_letter(path), not 'skip' (str)"),
        (None, "on_error is fail(), skip() or dead_letter(path), not None"),
        (ErrorPolicy("ignore"), "on_error has the kind 'ignore'; it is one of fail, skip, dead_letter"),
        (skip(-1), "on_error has retries=-1; it is a whole number from 0 on"),
        (skip(1.5), "on_error has retries=1.5; it is a whole number from 0 on"),
        (skip(True), "on_error has retries=True"),
        (dead_letter(""), "on_error has no path; write dead_letter('dead.jsonl')"),
    ],
)
def test_other_error_policies_are_refused(policy, said):
    with pytest.raises(TopologyError, match=re.escape(said)):
        check_on_error("unit 'x'", policy)
