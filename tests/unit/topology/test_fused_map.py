"""Stages in one loop bring forth what they do one behind the other, fail as they do, and show the user's lines."""

from __future__ import annotations

import json
import re
import sys
import traceback
from types import FunctionType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault import Bolt
from esault.topology.fused_map import FusedMap, fused_map
from esault.topology.process_loop import process_loop

LIMIT = 3
FUNCTIONS: dict[str, Any] = {}


def add_one(value):
    """Text stands before it."""
    return value + 1


def scaled(value):
    return add_one(value) * 2 if value else -value


def twice_scaled(value):
    return scaled(scaled(value))


def first_word(value):
    return f"{value}: {len(str(value).split()):>3}".partition(":")[0].strip().upper()[-3:]


def defaulted(value=1):
    return value == value or not value


def itself(value):
    return itself(value)


def several(value):
    return str(value).split()


def with_limit(value):
    return value + LIMIT


def opened(value):
    return json.dumps(value)


def of_two(value, other=1):
    return value


def stated(value):
    print(value)
    return value


def inverted(value):
    return ~value


def is_none(value):
    return value is None


def grown(value):
    return (
        grown_more(value)
        + grown_more(value)
        + grown_more(value)
        + grown_more(value)
        + grown_more(value)
        + grown_more(value)
    )


def grown_more(value):
    return twice_more(value) + twice_more(value) + twice_more(value)


def twice_more(value):
    return twice_again(value) + twice_again(value) + twice_again(value)


def twice_again(value):
    return add_one(value) + add_one(value) + add_one(value)


def made():
    within = 1
    return lambda value: value + within


FUNCTIONS["add"] = add_one
STEPS = (
    add_one,
    scaled,
    twice_scaled,
    first_word,
    defaulted,
    is_none,
    lambda value: value * 2,
    int,
    str,
    str.strip,
    len,
    abs,
)
TWO_IN_A_LINE = (lambda value: value + 1, lambda value: value - 1)


class Adds(Bolt):
    def process(self, key, value):
        self.emit(key, FUNCTIONS["add"](add_one(int(value))))


ADDS = 'self.emit(key, FUNCTIONS["add"](add_one(int(value))))'


class Divides(Bolt):
    def process(self, key, value):
        self.emit(
            key,
            6 // value,
        )


VALUES = st.integers(-9, 9) | st.text("ab 1", max_size=4) | st.floats(allow_nan=False) | st.booleans() | st.none()


def plainly(functions, value):
    for function in functions:
        value = function(value)
    return value


def fused(*stages) -> FusedMap:
    made = fused_map([(process_loop(each) or each) if each in (Adds, Divides) else each for each in stages])
    assert made is not None
    return made


def told(call):
    """What comes of a call: its value, or the error with its traceback below the caller."""
    try:
        return call()
    except Exception as error:
        tb = error.__traceback__
        while (
            tb is not None and (tb.tb_frame.f_code.co_name in ("told", "blamed", "plainly", "<lambda>")) and tb.tb_next
        ):
            if tb.tb_frame.f_code.co_name == "<lambda>" and tb.tb_frame.f_code.co_firstlineno < MARK:
                break
            tb = tb.tb_next
        return re.sub(r"0x\w+", "", "".join(traceback.format_exception(type(error), error, tb)))


MARK = sys._getframe().f_lineno


class TestFunctions:
    @given(st.lists(st.sampled_from(range(len(STEPS))), min_size=1, max_size=6), st.lists(VALUES, max_size=20))
    def test_any_row_of_them_does_in_one_loop_what_it_does_by_calls(self, chosen, values):
        functions = [STEPS[each] for each in chosen]
        loop = fused(*functions)
        for value in values:
            found = told(lambda value=value: blamed(loop, value, functions))
            wanted = told(lambda value=value: plainly(functions, value))
            assert found == wanted and type(found) is type(wanted)

    @pytest.mark.parametrize(
        "refused",
        [itself, several, with_limit, opened, of_two, stated, made(), inverted, json.loads, list, str.split],
    )
    def test_what_runs_other_code_or_is_no_one_expression_is_left(self, refused):
        assert fused_map([add_one, refused]) is None

    def test_one_that_would_become_too_long_is_left(self):
        assert fused_map([grown]) is None and fused_map([grown_more]) is not None

    def test_of_two_in_a_line_each_is_itself(self):
        assert [fused(each).run(iter([1])) for each in TWO_IN_A_LINE] == [[2], [0]]

    def test_it_no_longer_holds_where_a_name_stands_for_another(self, monkeypatch):
        loop, other = fused(scaled), fused(add_one)
        assert loop.holds() and other.holds()
        monkeypatch.setitem(globals(), "add_one", lambda value: value)
        assert not loop.holds() and other.holds()
        monkeypatch.delitem(globals(), "add_one")
        assert not loop.holds()

    def test_it_no_longer_holds_where_a_function_has_other_code(self):
        space: dict[str, Any] = dict(globals())
        helper = FunctionType(add_one.__code__, space)
        space["add_one"] = helper
        loop = fused_map([FunctionType(scaled.__code__, space)])
        assert loop is not None and loop.holds()
        helper.__code__ = defaulted.__code__
        assert not loop.holds()
        step = FunctionType(add_one.__code__, space)
        loop = fused_map([step])
        assert loop is not None and loop.holds()
        step.__code__ = defaulted.__code__
        assert not loop.holds()


def blamed(loop, value, functions):
    try:
        return loop.run(iter([value]))[0]
    except Exception as error:
        stage = loop.blame(error)
        if stage is not None:
            with pytest.raises(type(error)):
                functions[stage](plainly(functions[:stage], value))
            raise
    # A function of the interpreter's raised, which has no lines to be shown.
    return plainly(functions, value)


class TestBolts:
    def test_those_that_emit_what_follows_from_the_value(self):
        assert fused(Adds, Adds).run(iter(["1", 2])) == [5, 6]

    @pytest.mark.parametrize(("value", "stage", "lines"), [(-2, 1, {"6 // value,"}), ("x", 0, {ADDS})])
    def test_an_error_is_that_of_the_line_and_of_the_bolt(self, value, stage, lines):
        loop = fused(Adds, Divides)
        with pytest.raises((ZeroDivisionError, ValueError)) as raised:
            loop.run(iter([value]))
        assert loop.blame(raised.value) == stage
        last = traceback.extract_tb(raised.value.__traceback__)[-1]
        assert (last.name, last.filename) == ("process", __file__) and last.line in lines

    def test_what_its_rows_raise_is_of_no_bolt(self):
        def rows():
            yield 1
            raise LookupError

        loop = fused(Adds, Divides)
        with pytest.raises(LookupError) as raised:
            loop.run(rows())
        assert loop.blame(raised.value) is None

    def test_it_no_longer_holds_where_an_item_is_another(self, monkeypatch):
        loop = fused(Adds)
        monkeypatch.setitem(FUNCTIONS, "add", scaled)
        assert not loop.holds()
        monkeypatch.delitem(FUNCTIONS, "add")
        assert not loop.holds()
