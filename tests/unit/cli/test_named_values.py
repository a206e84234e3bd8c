"""Options of the form NAME=VALUE."""

from __future__ import annotations

import pytest

from esault.cli.named_values import counts, policies, renames, spark_conf
from esault.errors import UsageError


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ([], {}),
        (["probe"], {"": "probe"}),
        (["count=probe", "auto"], {"count": "probe", "": "auto"}),
        (["auto:target=0.5,most=3"], {"": "auto:target=0.5,most=3"}),
        (["a=b=probe:period=1"], {"a=b": "probe:period=1"}),  # units may be called so, policies not
        (["count=probe", "count=none"], {"count": "none"}),
    ],
)
def test_policies_of_units_and_of_all(texts, found):
    assert policies(texts) == found


@pytest.mark.parametrize("text", ["", "=probe", "count=", "count=:period=1", ":period=1"])
def test_a_policy_without_a_name_or_of_no_unit_is_refused(text):
    with pytest.raises(UsageError, match=r"--policy .*say NAME for all units, or UNIT=NAME"):
        policies([text])


def test_renames():
    assert renames(["a=b", "c=d=e"]) == {"a": "b", "c": "d=e"}
    for text in ("a", "a=", "=b", "="):
        with pytest.raises(UsageError, match=r"--move .*say OLD=NEW"):
            renames([text], "--move")


def test_settings_of_spark():
    assert spark_conf(["spark.x=1=2", "spark.y="]) == {"spark.x": "1=2", "spark.y": ""}
    for text in ("spark.x", "x=1", "=1"):
        with pytest.raises(UsageError, match="say KEY=VALUE with a setting of Spark"):
            spark_conf([text])


def test_counts():
    assert counts(["a=4", "b=0", "a=5"], "--parallelism") == {"a": 5, "b": 0}


@pytest.mark.parametrize("text", ["4", "a", "a=", "a=-1", "a=1.5", "a=four", "a=²", "=4", "a= 4"])
def test_what_is_no_number_of_sub_units_is_refused_with_the_option_that_said_it(text):
    with pytest.raises(UsageError, match=r"--fixed .*say UNIT=N, such as count=4"):
        counts([text], "--fixed")
