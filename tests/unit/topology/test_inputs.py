from __future__ import annotations

import re

import pytest

from esault.errors import TopologyError
from esault.topology.grouping import BUILT_IN, ByKey, Grouping, Single, broadcast, by_key, partial_key, shuffle, single
from esault.topology.inputs import check_grouping, common_objects


class First(Grouping):
    def choose(self, key, value, sub_units):
        return 0


class NoChoice(Grouping):
    pass


class ClaimsKeys(First):
    objects = "key"


class MyByKey(ByKey):
    def choose(self, key, value, sub_units):
        return 0


@pytest.mark.parametrize(
    ("grouping", "objects", "text"),
    [
        (by_key(), "key", "by_key()"),
        (partial_key(), "partial_key", "partial_key()"),
        (single(), "unit", "single()"),
        (shuffle(), "sub-unit", "shuffle()"),
        (broadcast(), "sub-unit", "broadcast()"),
        (First(), "sub-unit", "First()"),
    ],
)
def test_a_grouping_says_what_one_object_stands_for(grouping, objects, text):
    assert check_grouping("x", "lines", grouping) is grouping
    assert grouping.objects == objects
    assert repr(grouping) == text


@pytest.mark.parametrize(
    ("grouping", "said"),
    [
        (None, "unit 'x', input 'lines': no grouping is given; write grouping=shuffle() or another: one of "),
        (shuffle, "unit 'x', input 'lines': the grouping lacks its brackets; write shuffle()"),
        (Single, "unit 'x', input 'lines': the grouping lacks its brackets; write single()"),
        (First, "the grouping is a class; write First(...), an object of it"),
        ("shuffle", "'shuffle' (str) is no grouping; it is one of "),
        (len, "(builtin_function_or_method) is no grouping"),
        (NoChoice(), "NoChoice does not define choose(self, key, value, sub_units)"),
        (ClaimsKeys(), "ClaimsKeys says objects='key'; a grouping of your own has one object per sub-unit"),
        (MyByKey(), "MyByKey derives from a built-in grouping; derive it from Grouping"),
    ],
)
def test_what_is_no_grouping_is_refused_with_what_to_write(grouping, said):
    with pytest.raises(TopologyError, match=re.escape(said)):
        check_grouping("x", "lines", grouping)


def test_a_refusal_names_all_groupings_and_what_each_takes():
    with pytest.raises(TopologyError) as error:
        check_grouping("x", "lines", None)
    for make in BUILT_IN.values():
        assert re.search(rf"\b{make.__name__}\([\w, ]*\)[,; ]", str(error.value)), make


@pytest.mark.parametrize(
    ("groupings", "objects"),
    [
        ((by_key(), by_key()), "key"),
        ((shuffle(), broadcast(), First()), "sub-unit"),
        ((single(), single()), "unit"),
        ((partial_key(),), "partial_key"),
    ],
)
def test_inputs_that_agree_go_together(groupings, objects):
    assert common_objects("x", [(f"s{i}", g) for i, g in enumerate(groupings)]) == objects


@pytest.mark.parametrize(
    "groupings",
    [(by_key(), shuffle()), (by_key(), partial_key()), (single(), broadcast()), (shuffle(), by_key(), shuffle())],
)
def test_inputs_that_disagree_are_refused(groupings):
    with pytest.raises(TopologyError, match="unit 'x': its inputs do not agree in what one object stands for"):
        common_objects("x", [(f"s{i}", g) for i, g in enumerate(groupings)])


def test_the_refusal_says_which_input_says_what():
    with pytest.raises(TopologyError) as error:
        common_objects("match", [("orders", by_key()), ("payments", shuffle())])
    assert "'orders' by by_key(): one object per key" in str(error.value)
    assert "'payments' by shuffle(): one object per sub-unit" in str(error.value)
    assert "Give them the same grouping" in str(error.value)
