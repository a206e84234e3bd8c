"""Requests that a run's control socket takes, and the answers to them."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path
from types import SimpleNamespace

import pytest

from esault import Bolt, Topology, UsageError, by_key
from esault.runtime.messages import DrainRun, StopRun
from esault.runtime.run_commands import (
    COMMANDS,
    Answered,
    ChangeUnit,
    Requested,
    Running,
    ScaleUnit,
    ShowStatus,
    StopTopology,
    TakeSavepoint,
    ThrottleUnit,
    parse,
)
from esault.runtime.session.control_server import ControlServer
from esault.runtime.session.control_socket import RUN_ENDED, _request
from esault.sources import Directory, Items, Paced
from esault.testing import LocalRuntime


class Same(Bolt):
    def process(self, key, value):
        self.emit(key, value)


@pytest.fixture
def local():
    t = Topology("t")
    rows = [(i % 20, i) for i in range(400)]
    t.spout("in", Paced(Items(rows), rate=200)).bolt("count", Same, grouping=by_key(), max_parallelism=4)
    made = LocalRuntime(t, policies={"": "none"})
    made.run_for(0.2)
    return made


class Caller:
    def __init__(self, **request):
        self.request = parse(request)
        self.answers = []

    def answer(self, last=True, **answer):
        self.answers.append((last, answer))


def server(told, *callers, state=None):
    control_socket = SimpleNamespace(callers=deque(callers), close=lambda unheard: None)
    made = ControlServer(control_socket, "words", "run", told.append, state)
    made.serve()
    return made


@pytest.mark.parametrize(
    ("request_", "command"),
    [
        ({"do": "status"}, ShowStatus()),
        ({"do": "scale", "unit": "u", "n": 2}, ScaleUnit("u", 2)),
        ({"do": "throttle", "unit": "u", "rate": 2, "seconds": 0.5}, ThrottleUnit("u", 2, 0.5)),
        ({"do": "change", "unit": "u", "kind": "split", "more": 1}, ChangeUnit("u", "split")),
        ({"do": "stop"}, StopTopology()),
        ({"do": "stop", "now": True}, StopTopology(now=True)),
        ({"do": "stop", "savepoint": "a"}, StopTopology(savepoint="a")),
        ({"do": "savepoint", "name": "a"}, TakeSavepoint("a")),
    ],
)
def test_a_request_is_a_command(request_, command):
    assert parse(request_) == command
    assert _request(json.dumps(request_).encode() + b"\n") == command


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ([], "a JSON object"),
        ({}, "do=None: it is "),
        ({"do": ["scale"]}, "do=['scale']: it is "),
        ({"do": "scale", "unit": "u"}, "scale takes n, a whole number"),
        ({"do": "scale", "unit": "u", "n": True}, "scale takes n, a whole number"),
        ({"do": "scale", "unit": 1, "n": 1}, "scale takes unit, a text"),
        ({"do": "throttle", "unit": "u", "rate": "1", "seconds": 1}, "throttle takes rate, a number"),
        ({"do": "stop", "now": 1}, "stop takes now, true or false"),
    ],
)
def test_what_is_no_request_is_refused_with_what_is_missing(request_, says):
    with pytest.raises(ValueError) as caught:
        parse(request_)
    assert says in str(caught.value)


def test_a_request_for_no_command_is_refused_with_all_that_there_are():
    with pytest.raises(ValueError) as caught:
        parse({})
    assert set(str(caught.value).replace(" or ", ", ").partition("it is ")[2].split(", ")) == set(COMMANDS)


def test_each_command_stands_in_the_table_by_its_word():
    assert all(command.do == do and command.__doc__ for do, command in COMMANDS.items())


@pytest.mark.parametrize(
    ("policies", "watched_by"),
    [({"": "auto"}, "auto"), ({"": "auto", "count": "none"}, "none"), ({"": "none", "count": "ds2"}, "ds2")],
)
def test_who_scales_a_unit_hears_how_it_went_and_which_policy_may_change_it_again(local, policies, watched_by):
    answer = ScaleUnit("count", 3).carry_out(Running(local.driver, policies), local.clock())
    assert answer.said == {"begun": True}
    assert answer.then() is None
    while answer.then() is None:
        local.step() or local.wait()
    said = answer.then()
    assert (said["done"], said["watched_by"], said["before"], said["after"]) == (True, watched_by, 1, 3)


def test_who_scales_a_unit_hears_now_and_then_how_far_it_is(local, monkeypatch):
    monkeypatch.setattr("esault.control.units.subscales.keys_given", lambda unit, moves: 10_000)
    monkeypatch.setattr("esault.runtime.run_commands.PROGRESS_EVERY", -1.0)
    local.run_for(0.5)
    answer = ScaleUnit("count", 3).carry_out(Running(local.driver, {}), local.clock())
    said = []
    while answer.then() is None:
        local.step() or local.wait()
        said += [line for line in [answer.meanwhile()] if line is not None]
    assert answer.meanwhile() is None
    assert said
    assert {line["of"] for line in said} == {said[0]["of"]}
    moved = [line["moved"] for line in said]
    assert moved == sorted(moved)
    assert 0 <= moved[0] <= moved[-1] < said[0]["of"]
    assert answer.then()["moved_keys"] >= said[-1]["moved_keys"]


def test_no_policy_changes_a_spout_that_was_scaled(tmp_path):
    (tmp_path / "a.txt").write_text("1\n2\n")
    t = Topology("t")
    t.spout("in", Directory(tmp_path), max_parallelism=4).bolt("count", Same, grouping=by_key())
    local = LocalRuntime(t)
    local.run_for(0.5)
    answer = ScaleUnit("in", 2).carry_out(Running(local.driver, {"": "auto"}), local.clock())
    while answer.then() is None:
        local.step() or local.wait()
    assert (answer.then()["watched_by"], answer.then()["after"]) == ("none", 2)


def test_who_has_been_answered_may_ask_for_the_next_change_at_once(local):
    run = Running(local.driver, {})
    for n in (3, 1, 4, 2, 3, 1):
        answer = ScaleUnit("count", n).carry_out(run, local.clock())
        while answer.then() is None:
            local.step() or local.wait()
        assert answer.then()["after"] == n


def test_what_is_so_already_is_said_at_once(local):
    answer = ScaleUnit("count", 1).carry_out(Running(local.driver, {}), local.clock())
    assert (answer.said, answer.then) == ({"done": True, "unchanged": True}, None)


@pytest.mark.parametrize(
    "command", [ScaleUnit("cuont", 2), ChangeUnit("count", "melt"), ThrottleUnit("cuont", 1.0, 1.0)]
)
def test_what_cannot_be_is_refused(local, command):
    with pytest.raises(UsageError, match="there is no"):
        command.carry_out(Running(local.driver, {}), local.clock())


def test_a_throttle_and_a_split_are_carried_out(local):
    run = Running(local.driver, {})
    assert ThrottleUnit("count", 50.0, 1.0).carry_out(run, local.clock()).said == {"done": True}
    assert ChangeUnit("count", "split").carry_out(run, local.clock()).said == {"begun": True}
    local.run_until_drained()
    assert len(local.report().changes) == 1


def test_a_request_that_waits_is_told_what_for_and_goes_on():
    caller, told = Caller(do="scale", unit="count", n=4), []
    control_server = server(told, caller)
    assert told == [Requested(ScaleUnit("count", 4), 1)]
    control_server.answered(Answered(1, {"waits": "for the checkpoint"}, last=False))
    control_server.answered(Answered(1, {"begun": True}, last=False))
    assert caller.answers == [(False, {"waits": "for the checkpoint"}), (False, {"begun": True})]
    control_server.ended("drained")
    assert caller.answers[-1] == (True, {"error": RUN_ENDED})


def test_the_last_answer_ends_the_request():
    caller = Caller(do="throttle", unit="count", rate=1, seconds=1)
    control_server = server([], caller)
    control_server.answered(Answered(1, {"done": True}))
    control_server.answered(Answered(1, {"done": True}))
    control_server.answered(Answered(7, {"done": True}))
    control_server.ended("drained")
    assert caller.answers == [(True, {"done": True})]


def test_status_and_stop_and_a_change_are_answered_by_the_command_itself():
    callers = [Caller(do="status"), Caller(do="stop"), Caller(do="stop", now=True)]
    callers.append(Caller(do="change", unit="count", kind="split"))
    told = []
    control_server = server(told, *callers)
    assert told == [DrainRun(), StopRun(), Requested(ChangeUnit("count", "split"))]
    control_server.ended("drained")
    assert callers[0].answers[0][1]["phase"] == "starting"
    assert callers[1].answers == [(False, {"begun": True}), (True, {"done": True, "ended": "drained"})]
    assert callers[3].answers == [(True, {"begun": True})]


class State:
    """Keeps one savepoint, `kept`."""

    def check_savepoint(self, name):
        if name == "taken":
            raise UsageError("there is a savepoint 'taken' already")

    def savepoint(self, name):
        if name == "full":
            raise UsageError("the disk is full")
        return Path("savepoints") / name


def test_a_stop_with_a_savepoint_says_where_it_is_once_the_run_is_over():
    callers = [Caller(do="stop", savepoint=name) for name in ("kept", "full")]
    told = []
    control_server = server(told, *callers, state=State())
    assert told == [DrainRun(), DrainRun()]
    control_server.ended("paused")
    assert callers[0].answers[-1] == (True, {"done": True, "ended": "paused", "path": "savepoints/kept"})
    assert callers[1].answers[-1][1]["error"].startswith("the run has ended (paused), and no savepoint was made")


def test_a_run_that_failed_leaves_no_savepoint():
    caller = Caller(do="stop", savepoint="kept")
    control_server = server([], caller, state=State())
    control_server.ended("failed")
    assert caller.answers[-1] == (True, {"error": "the run failed: there is no savepoint 'kept'"})


@pytest.mark.parametrize(
    ("request_", "state", "says"),
    [
        ({"savepoint": "a"}, None, "begun without --checkpoint"),
        ({"savepoint": "a", "now": True}, State(), "leave one of them out"),
        ({"savepoint": "taken"}, State(), "already"),
    ],
)
def test_a_stop_whose_savepoint_cannot_be_made_is_refused_and_the_run_goes_on(request_, state, says):
    caller, told = Caller(do="stop", **request_), []
    server(told, caller, state=state)
    assert told == []
    assert says in caller.answers[-1][1]["error"]
