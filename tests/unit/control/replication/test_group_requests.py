"""A change of a unit with replicas is one change of all of them, or of none."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from esault.control.replication.group_requests import GroupRequests
from esault.errors import UsageError
from esault.routing.table import OutputTable


class Replica:
    """One replica with this table; what it is asked for is kept."""

    def __init__(self, asked, *pairs, most=9):
        self.table = OutputTable(list(pairs), 1) if pairs else None
        self.plan = SimpleNamespace(original="count")
        self.alone = self
        self._asked, self._most = asked, most

    @property
    def width(self):
        return len(self.table.owners())

    def new_id(self):
        return 77

    def check_owner(self, owner):
        raise UsageError(f"there is no sub-unit {owner}")

    def check_change(self, n):
        if not 1 <= n <= self._most:
            raise UsageError(f"it may not have {n} sub-units")

    def split(self, owner, *rest):
        self._asked.append(("split", owner, rest[-1]))

    def merge(self, owner, *rest):
        self._asked.append(("merge", owner, rest[-1]))

    def rescale(self, n, *rest):
        self._asked.append(("rescale", n, rest[-1]))
        return rest[-1] if self.width != n else None

    def adopt(self, table, news, *rest):
        self._asked.append(("adopt", table.snapshot(), rest[-1]))

    def move(self, owner, *rest):
        self._asked.append(("move", owner))
        return 5


HALF = 1 << 30


def group(**options):
    asked = []
    replicas = [Replica(asked, (0, 1), (HALF, 2)), Replica(asked, (0, 11), (HALF, 12), **options)]
    return GroupRequests(replicas[0], replicas), replicas, asked


@pytest.mark.parametrize("owner", [2, 12])
@pytest.mark.parametrize("kind", ["split", "merge"])
def test_the_sub_unit_in_the_same_place_of_each_is_changed_whichever_is_named(kind, owner):
    requests, _, asked = group()
    assert getattr(requests, kind)(owner, 1.0) == 77
    assert asked == [(kind, 2, 77), (kind, 12, 77)]


@pytest.mark.parametrize("ask", [lambda r: r.split(1, 1.0), lambda r: r.rescale(3, 1.0)])
def test_where_one_may_not_be_changed_none_is(ask):
    requests, _, asked = group(most=2)
    with pytest.raises(UsageError, match="it may not have 3 sub-units"):
        ask(requests)
    assert asked == []


def test_what_no_replica_has_is_refused():
    requests, replicas, asked = group()
    with pytest.raises(UsageError, match="there is no sub-unit 5"):
        requests.split(5, 1.0)
    replicas[0].table = None
    with pytest.raises(UsageError, match="there is no sub-unit 1"):
        requests.merge(1, 1.0)
    assert asked == []


def test_replicas_that_are_divided_in_different_ways_are_not_changed_one_by_one():
    requests, replicas, asked = group()
    replicas[1].table = OutputTable([(0, 11), (7, 12)], 1)
    with pytest.raises(UsageError, match="divided in different ways.* esault scale count N"):
        requests.split(1, 1.0)
    requests.rescale(3, 1.0)
    assert asked == [("rescale", 3, 77), ("rescale", 3, 77)]


def test_a_rescale_has_an_id_where_one_of_them_changes():
    requests, replicas, _ = group()
    assert requests.rescale(2, 1.0) is None
    replicas[1].table = OutputTable([(0, 11)], 1)
    assert requests.rescale(2, 1.0) == 77


def test_a_table_is_adopted_with_the_owners_of_each_in_it_and_new_ones_as_they_are():
    requests, _, asked = group()
    assert requests.adopt(OutputTable([(0, 2), (9, 1), (HALF, -1)], 4), 1, 1.0, "rescale", "", "auto") == 77
    assert asked == [
        ("adopt", OutputTable([(0, 2), (9, 1), (HALF, -1)], 4).snapshot(), 77),
        ("adopt", OutputTable([(0, 12), (9, 11), (HALF, -1)], 4).snapshot(), 77),
    ]


def test_a_move_is_of_the_replica_whose_sub_unit_it_is_alone():
    requests, _, asked = group()
    assert requests.move(12, 1.0) == 5
    assert asked == [("move", 12)]
