"""The level at which a run of a program logs."""

from __future__ import annotations

import logging

import pytest

from esault import Bolt, Topology, by_key, run
from esault.api.run import at_level
from esault.errors import UsageError
from esault.sources import Items


@pytest.fixture(autouse=True)
def own():
    before = logging.root.level
    logging.root.setLevel(logging.ERROR)
    yield
    logging.root.setLevel(before)


def test_it_holds_while_the_run_lasts():
    with pytest.raises(ValueError, match="the run"), at_level("info"):
        assert logging.root.level == logging.INFO
        raise ValueError("the run")
    assert logging.root.level == logging.ERROR
    with at_level(None):
        assert logging.root.level == logging.ERROR


def test_of_several_runs_at_once_the_one_that_says_most_holds():
    first, second = at_level("warning"), at_level("debug")
    first.__enter__()
    second.__enter__()
    assert logging.root.level == logging.DEBUG
    first.__exit__(None, None, None)  # it began first and ends first
    assert logging.root.level == logging.DEBUG
    second.__exit__(None, None, None)
    assert logging.root.level == logging.ERROR


class Greet(Bolt):
    def process(self, key, value):
        logging.getLogger("greet").info("hello %s", key)


def greeting() -> Topology:
    t = Topology("greet")
    t.spout("names", Items([("ann", 1)])).bolt("greet", Greet, by_key())
    return t


@pytest.mark.parametrize("level, said", [(None, []), ("warning", []), ("info", ["hello ann"])])
def test_run_takes_it(caplog, level, said):
    run(greeting, engine="local", log_level=level)
    assert [each.getMessage() for each in caplog.records if each.name == "greet"] == said


def test_another_word_is_refused():
    with pytest.raises(UsageError, match="log_level='loud': it is one of debug, info, warning, error"):
        run(greeting, engine="local", log_level="loud")
