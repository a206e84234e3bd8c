"""What is due at the sources of a unit."""

from __future__ import annotations

import pytest
from window_views import unit

from esault.elasticity.estimators.due import Due, due


def units(*made):
    return {each.name: each for each in made}


def source(name="src", read=100.0, before=0.0, lag=0.0):
    return unit(name, kind="spout", arrivals=read, lag_before=before, lag=lag)


def test_each_tuple_that_is_due_counts_as_many_as_one_that_was_read_brought():
    bolt = unit("b", arrivals=300.0, spouts=("src",))
    assert due(units(source(before=10.0, lag=40.0), bolt), bolt) == Due(90.0, 30.0, 120.0)
    assert due(units(source(before=40.0, lag=10.0), bolt), bolt).arrivals == -90.0


def test_sources_that_cannot_know_what_is_due_bring_tuples_all_the_same():
    bolt = unit("b", arrivals=100.0, spouts=("src", "other", "gone"))
    views = units(source(before=None, lag=None), source("other", before=None, lag=50.0), bolt)
    assert due(views, bolt) == Due(25.0, 0.0, 25.0)


@pytest.mark.parametrize("arrivals", [0.0, 7.0])
def test_where_nothing_could_be_read_one_counts_as_one(arrivals):
    bolt = unit("b", arrivals=arrivals, spouts=("src",))
    assert due(units(source(read=0.0, lag=20.0), bolt), bolt) == Due(20.0, 0.0, 20.0)


def test_before_the_first_window_nothing_is_due():
    from dataclasses import replace

    bolt = replace(unit("b", spouts=("src",)), window=None)
    assert due(units(source(lag=20.0), bolt), bolt) == Due()
