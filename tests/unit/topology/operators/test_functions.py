"""The functions behind `split`, `sample` and `lookup`."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.topology.operators.functions import LOOKED_AT_EVERY, Branch, Found, Lookup, Reread, Sample


@given(st.lists(st.sampled_from([1, 2, 3, 5]), max_size=4), st.integers(0, 30))
def test_each_value_takes_one_branch_the_first_that_holds(divisors, value):
    predicates = [lambda v, d=d: v % d == 0 and [d] for d in divisors]
    taken = [n for n in range(len(predicates) + 1) if Branch(predicates, n)(value)]
    assert taken == [next((n for n, d in enumerate(divisors) if value % d == 0), len(divisors))]


def test_predicates_behind_the_chosen_one_are_not_asked():
    def fails(value):
        raise AssertionError("asked")

    assert Branch([lambda v: False, lambda v: 1, fails], 1)("x") is True


@pytest.mark.parametrize(("fraction", "share"), [(0.0, 0.0), (1.0, 1.0), (0.25, 0.25)])
def test_a_sample_is_a_share_and_with_a_seed_the_same(fraction, share):
    one, two = Sample(fraction, 7), Sample(fraction, 7)
    found = [one(None) for _ in range(4000)]
    assert found == [two(None) for _ in range(4000)] and sum(found) / 4000 == pytest.approx(share, abs=0.03)
    assert Sample(fraction, None)(None) in (True, False)


def test_a_table_that_is_a_function_is_called_once():
    calls = []
    look = Lookup(lambda: calls.append(1) or {"a": 1}, str.lower)
    assert [look("A"), look("b"), look("a")] == [("A", 1), ("b", None), ("a", 1)] and calls == [1]
    assert Lookup({None: 2}, None)(None) == (None, 2)


def test_what_is_no_table_is_said():
    with pytest.raises(TypeError, match="returned list, and no mapping"):
        Lookup(lambda: [1], None)("a")


def test_what_is_not_found_is_left_out_where_that_is_asked_for():
    found = Found({"a": 0, "n": None}, None)
    assert [list(found(key)) for key in ("a", "n", "x")] == [[("a", 0)], [], []]


class Table:
    def __init__(self):
        self.now, self.reads, self.gives = 0.0, 0, {"v": 1}

    def read(self):
        self.reads += 1
        if isinstance(self.gives, Exception):
            raise self.gives
        return self.gives


def test_it_is_read_again_after_so_many_seconds_and_only_when_asked():
    table = Table()
    again = Reread(table.read, 10, lambda: table.now)
    for now, reads in ((0.0, 1), (9.9, 1), (10.0, 2), (19.0, 2), (500.0, 3), (505.0, 3)):
        table.now = now
        assert again() == {"v": 1} and table.reads == reads


def test_a_file_that_has_not_changed_is_not_read_again(tmp_path):
    path, table = tmp_path / "table", Table()
    path.write_text("one")
    again = Reread(table.read, path, lambda: table.now)
    again()
    for step, change in enumerate([None, "longer", None, "gone", None, "back"], 1):
        if change == "gone":
            path.unlink()
        elif change:
            path.write_text(change)
        before, table.now = table.reads, step * LOOKED_AT_EVERY
        again()
        assert table.reads - before == (change is not None)
    os.utime(path, ns=(1, 1))
    table.now += LOOKED_AT_EVERY / 2
    before = table.reads
    again()
    assert table.reads == before


def test_a_table_that_cannot_be_read_again_stays_and_is_said_once(tmp_path, capsys):
    table = Table()
    again = Reread(table.read, 1, lambda: table.now)
    assert again() == {"v": 1}
    for table.gives in (ValueError("broken"), [1], ValueError("broken")):
        table.now += 1
        assert again() == {"v": 1}
    assert capsys.readouterr().err.count("\n") == 1
    table.gives = {"v": 2}
    table.now += 1
    assert again() == {"v": 2}
    table.gives = ValueError("again")
    table.now += 1
    assert again() == {"v": 2} and "ValueError: again" in capsys.readouterr().err


def test_what_fails_at_first_is_an_error():
    table = Table()
    table.gives = ValueError("broken")
    with pytest.raises(ValueError, match="broken"):
        Reread(table.read, 1, lambda: table.now)()
