"""From what a policy wants to the table that does it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.elasticity.action import Merge, NoChange, Rescale, Split
from esault.elasticity.edit import edited
from esault.errors import UsageError
from esault.routing.table import OutputTable


@given(st.integers(1, 6), st.data())
def test_splits_and_merges_leave_a_whole_table(count, data):
    table = OutputTable.even(list(range(1, count + 1)))
    before = table.copy()
    owners, actions, news = list(range(1, count + 1)), [], 0
    for _ in range(data.draw(st.integers(1, 5))):
        if len(owners) > 1 and data.draw(st.booleans()):
            leaves, into = data.draw(st.permutations(owners).map(lambda order: order[:2]))
            actions.append(Merge("m", leaves, into))
            owners.remove(leaves)
        else:
            actions.append(Split("s", data.draw(st.sampled_from(owners))))
            news += 1
            owners.append(-news)
    edit = edited(table, actions, ())
    edit.table.check()
    assert sorted(edit.table.owners()) == sorted(owners)
    assert edit.news == news and table == before and edit.table.version == table.version


@given(st.integers(1, 6), st.integers(1, 9))
def test_a_rescale_gives_so_many_even_without_samples(count, n):
    edit = edited(OutputTable.even(list(range(1, count + 1))), [Rescale("r", n)], ())
    edit.table.check()
    assert len(edit.table.owners()) == n and edit.news == max(0, n - count) and edit.kind == "rescale"


def test_a_merge_goes_to_the_neighbour_that_is_named():
    table = OutputTable.even([1, 2, 3])
    (low, high) = table.ranges(2)[0]
    for into in (1, 3):
        edit = edited(table, [Merge("m", 2, into)], ())
        assert edit.kind == "merge" and edit.table.owner(low) == edit.table.owner(high) == into


def test_a_split_is_cut_where_it_is_said():
    table = OutputTable.single(1)
    edit = edited(table, [Split("s", 1, 1000)], ())
    assert (edit.table.owner(999), edit.table.owner(1000), edit.kind) == (1, -1, "split")


@pytest.mark.parametrize(
    ("actions", "said"),
    [
        ([Split("s", 9)], "no sub-unit 9"),
        ([Merge("m", 1, 9)], "no sub-unit 9"),
        ([Merge("m", 9, 1)], "no sub-unit 9"),
        ([Merge("m", 1, 2), Split("s", 1)], "no sub-unit 1"),
        ([Merge("m", 1, 2), Merge("m", 2, 2)], "only one"),
        ([Rescale("r", 0)], "one sub-unit at least"),
        ([Rescale("r", 2), Split("s", 1)], "stands alone"),
        ([NoChange("n", "c")], "no change of a table"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_changed(actions, said):
    table = OutputTable.even([1, 2])
    before = table.copy()
    with pytest.raises(UsageError, match=said):
        edited(table, actions, ())
    assert table == before
