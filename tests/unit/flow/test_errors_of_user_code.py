"""Errors of hooks beside `process`: each names what is at fault and the hook, with the user's own lines alone."""

from __future__ import annotations

import sqlite3
import threading

import pytest

from esault import Bolt, Grouping, Sink, Topology, by_key, fail, skip
from esault.errors import TopologyFailed
from esault.messages.settings import Settings
from esault.sources import Items
from esault.testing import LocalRuntime
from esault.windows import TumblingWindow


class Echo(Bolt):
    def process(self, key, value):
        self.emit(key, value)


class Wrong(Sink):
    def __init__(self, hook):
        self.hook = hook

    def _fail(self, hook):
        if self.hook == hook:
            raise sqlite3.OperationalError("database is locked")

    def open(self, context):
        self._fail("open")

    def write(self, rows):
        self._fail("write")

    def prepare(self, epoch):
        self._fail("prepare")
        return threading.Lock() if self.hook == "handle" else None

    def commit(self, epoch, handle):
        self._fail("commit")


def run(sink=None, delivery="alo", step=None, grouping=None, bolt=Echo, on_error=fail()):
    t = Topology("wrong")
    rows = t.spout("rows", Items([(i, 1) for i in range(20)]))
    if step is not None:
        rows = rows.flat_map(step)
    rows.bolt("echo", bolt, grouping=grouping or by_key(), on_error=on_error).sink("mine", sink or Wrong(""))
    local = LocalRuntime(
        t, real=True, settings=Settings(delivery=delivery, checkpoint_every=0.1 if delivery == "eo" else 0)
    )
    local.run_until_drained()
    local.stop_at_once()


def said(*arguments, **named):
    with pytest.raises(TopologyFailed) as failed:
        run(*arguments, **named)
    text = str(failed.value)
    assert "/esault/flow/" not in text
    assert "/esault/topology/" not in text
    return text


@pytest.mark.parametrize("delivery", ["alo", "eo"])
@pytest.mark.parametrize("hook", ["open", "write", "prepare"])
def test_a_sink_is_named_with_its_hook(hook, delivery):
    text = said(Wrong(hook), delivery)
    assert f"sink 'mine', {hook}: OperationalError: database is locked" in text
    assert f"in {hook}" in text


def test_a_commit_that_fails_is_named():
    assert "sink 'mine', commit: OperationalError: database is locked" in said(Wrong("commit"))


def test_a_handle_that_cannot_travel_is_told_when_it_is_prepared():
    assert "sink 'mine', prepare: the handle that it returned is refused" in said(Wrong("handle"), "eo")


def test_a_flat_map_of_one_value_is_told_what_to_return():
    assert "the function of flat_map must return several values, in a list say; got 1" in said(step=lambda value: value)


def test_a_grouping_is_named_with_the_key():
    class Mine(Grouping):
        def choose(self, key, value, sub_units):
            return {}[key]

    assert "Mine" in (text := said(grouping=Mine()))
    assert "choose on the way to 'echo', key 0: KeyError: 0" in text


def test_of_the_errors_of_close_the_first_is_logged(caplog):
    class Closes(Echo):
        def close(self):
            raise RuntimeError("too late")

    run(bolt=Closes)
    err = "".join(each.getMessage() for each in caplog.records if each.levelname == "ERROR")
    assert err.count("unit 'echo', close, key") == 1
    assert "further errors of close are not shown" in err


class Refused(Exception):
    def __init__(self, text, code):
        super().__init__(text)
        self.code = code


class RefusingSink(Wrong):
    def _fail(self, hook):
        if self.hook == hook:
            raise Refused("busy", 503)


class Unsendable(Exception):
    def __init__(self):
        super().__init__("it holds a lock")
        self.lock = threading.Lock()


class Raising(Bolt):
    kind = ValueError("boo")

    def process(self, key, value):
        raise self.kind


class RaisingOwn(Raising):
    kind = Refused("no such town", 404)


class RaisingUnsendable(Raising):
    kind = Unsendable()


def cause(**named):
    with pytest.raises(TopologyFailed) as failed:
        run(**named)
    return failed.value.__cause__


def test_a_failed_run_has_the_exception_of_the_user_s_code_as_its_cause():
    assert cause(bolt=Raising).args == ("boo",)
    found = cause(bolt=RaisingOwn)
    assert type(found) is Refused
    assert (str(found), found.code) == ("no such town", 404)
    assert cause(sink=RefusingSink("commit"), delivery="eo").code == 503


def test_an_exception_that_cannot_travel_is_told_in_words_alone():
    assert cause(bolt=RaisingUnsendable) is None


class EmitsLambda(Bolt):
    def process(self, key, value):
        self.emit(key, [lambda: 1])


def test_that_a_value_cannot_travel_is_said_once():
    line = said(bolt=EmitsLambda).splitlines()[0]
    assert line.count("cannot travel") == 1
    assert line.endswith(
        "whose value is refused: function at value[0]: a lambda cannot travel; write a function at the top of the file, by `def`, or functools.partial of one"
    )


def test_an_error_that_is_survived_is_a_record_of_the_users_logger(caplog):
    """A service that reads JSON is to see it: what is printed is no line of its log."""

    class Odd(Echo):
        def process(self, key, value):
            raise ValueError("odd")

    run(bolt=Odd, on_error=skip())
    (record,) = [each for each in caplog.records if each.levelname == "ERROR"]
    assert record.name == __name__ and "ValueError: odd" in record.getMessage()
    assert "(the tuple is skipped; further errors of this unit are only counted)" in record.getMessage()


def above(limit):
    """The first number of a list that is greater: `next` raises StopIteration where none is."""

    def found(numbers):
        return next(n for n in numbers if n > limit)

    return found


@pytest.mark.parametrize("step", ["map", "filter", "key_by"])
def test_a_step_that_raises_stop_iteration_fails_as_with_any_other_error(step):
    t = Topology("found")
    rows = t.spout("rows", Items([("k", [i]) for i in range(20)]))
    getattr(rows, step)(above(3)).bolt("echo", Echo, by_key())
    local = LocalRuntime(t)
    with pytest.raises(TopologyFailed, match=f"step 'rows.{step}' .*, key 'k': StopIteration"):
        local.run_until_drained()


@pytest.mark.parametrize("step", ["map", "filter"])
def test_rows_behind_one_that_raises_stop_iteration_go_on(step):
    t = Topology("found")
    rows = t.spout("rows", Items([("k", [i]) for i in (1, 5, 2, 9)]))
    getattr(rows, step)(above(3), on_error=skip()).bolt("echo", Echo, by_key())
    local = LocalRuntime(t)
    local.run_until_drained()
    assert [value for _, value in local.emitted("echo")] == ([5, 9] if step == "map" else [[5], [9]])
    assert local.report().units["rows"].errors == 2


def test_a_time_that_raises_stop_iteration_is_an_error_of_the_window():
    t = Topology("found")
    rows = t.spout("rows", Items([("k", [i]) for i in (5, 6, 1, 9)]))
    rows.window("times", Echo, TumblingWindow(10), time=above(3), on_error=skip())
    local = LocalRuntime(t)
    local.run_until_drained()
    assert [value for _, value in local.emitted("times")] == [[5], [6], [9]]
    assert local.report().units["times"].errors == 1


@pytest.mark.parametrize("hook", ["write", "commit"])
def test_a_sink_that_calls_exit_is_named_with_its_hook(hook):
    class Leaves(Wrong):
        def _fail(self, at):
            if at == hook:
                raise SystemExit(3)

    assert f"sink 'mine', {hook}: SystemExit: 3" in said(Leaves(hook))
