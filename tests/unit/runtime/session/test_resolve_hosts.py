"""A run that goes on waits until processes of the run before it have left the hosts."""

from __future__ import annotations

import threading
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from esault.cluster.messages import Welcome
from esault.cluster.slot_messages import SlotShare
from esault.cluster.survey import Found
from esault.errors import UsageError
from esault.runtime.session import resolve_hosts


class Hosts:
    """Answers each survey with the next runs that hold slots; sleeping lets time pass."""

    def __init__(self, patched: Any, *answers: list[str]) -> None:
        self.answers, self.now, self.asked = answers, 0.0, 0
        patched.setattr(resolve_hosts, "survey", self.survey)
        patched.setattr("time.monotonic", lambda: self.now)
        patched.setattr("time.sleep", self.sleep)

    def survey(self, hosts: Any, key: Any) -> Any:
        runs = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        shares = tuple(SlotShare(run, "counted", None, 1, 1) for run in runs)
        return [
            Found(
                "a:1",
                Welcome(
                    name="a",
                    slots=4,
                    free=4 - len(shares),
                    offers=(),
                    draining=False,
                    members=(),
                    esault="",
                    python="",
                    wall=0.0,
                    shares=shares,
                ),
            )
        ], {}

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def asked(hosts: Hosts, before: str) -> tuple[int, list[str]]:
    said: list[str] = []
    found, _ = resolve_hosts._survey(["a:1"], None, before, said.append)  # type: ignore[arg-type]
    return found[0].welcome.free, said


def test_slots_of_the_dead_run_are_waited_for(monkeypatch):
    hosts = Hosts(monkeypatch, ["dead", "other"], ["dead", "other"], ["other"])
    assert asked(hosts, "dead") == (3, ["waiting for processes of run dead to end on a"])
    assert hosts.asked == 3


def test_other_runs_are_not_waited_for(monkeypatch):
    hosts = Hosts(monkeypatch, ["other"])
    assert asked(hosts, "dead") == (3, [])
    assert asked(hosts, "") == (3, [])
    assert hosts.asked == 2


def test_a_host_that_does_not_notice_is_gone_on_without(monkeypatch):
    hosts = Hosts(monkeypatch, ["dead"])
    free, _ = asked(hosts, "dead")
    assert free == 3
    assert resolve_hosts.LEAVES_WITHIN <= hosts.now < resolve_hosts.LEAVES_WITHIN + 1


def lower(slots: int, least: int, starting: bool, priority: int = 1) -> tuple[list[Found], dict[str, Any]]:
    share = SlotShare("low", "reports", priority, slots, least, starting)
    welcome = Welcome(
        name="a",
        slots=4,
        free=4 - slots,
        offers=(),
        draining=False,
        members=(),
        esault="",
        python="",
        wall=0.0,
        shares=(share,),
    )
    return [Found("a:1", welcome)], {}


def settled(patched: Any, *answers: tuple[list[Found], dict[str, Any]]) -> tuple[int, list[str]]:
    """How often it was asked again, of a run of priority 5 that takes two slots, and what was said."""
    hosts, said = Hosts(patched), list[str]()
    first, *others = answers
    left = iter(others)
    patched.setattr(resolve_hosts, "survey", lambda names, key: next(left, answers[-1]))
    found = resolve_hosts._settled(["a:1"], None, 2, 5, first, said.append)  # type: ignore[arg-type]
    assert found == answers[-1]
    return round(10 * hosts.now), said


def test_a_run_of_lower_priority_that_starts_is_waited_for_as_it_may_give_slots(monkeypatch):
    starts = lower(4, 4, starting=True)
    assert settled(monkeypatch, starts, starts, lower(4, 2, starting=False)) == (
        2,
        ["waiting for reports to start, of lower priority: it may be able to give slots"],
    )


@pytest.mark.parametrize(
    "answer",
    [
        lower(2, 2, starting=True),  # there are free ones
        lower(4, 4, starting=False),  # it can give none
        lower(4, 4, starting=True, priority=5),  # nothing is taken of it
    ],
)
def test_no_other_run_is_waited_for(monkeypatch, answer):
    assert settled(monkeypatch, answer) == (0, [])


def test_one_that_does_not_start_is_not_waited_for_without_end(monkeypatch):
    asked, said = settled(monkeypatch, lower(4, 4, starting=True))
    assert resolve_hosts.STARTS_WITHIN <= asked / 10 < resolve_hosts.STARTS_WITHIN + 1
    assert len(said) == 1


class Own:
    """A class that nodes do not have."""


@pytest.mark.parametrize("value", [Own(), [1, {"a": (Own(),)}], Own, lower, {Own(): 1}])
def test_a_parameter_of_the_users_own_code_is_refused_by_name(value):
    with pytest.raises(UsageError, match="parameter 'x' holds .*test_resolve_hosts.*(Own|lower), of your own code"):
        resolve_hosts.check_params({"n": 1, "x": value})


def test_a_parameter_that_no_bytes_say_is_refused_and_plain_ones_go():
    with pytest.raises(UsageError, match="parameter 'x' cannot be sent to other hosts"):
        resolve_hosts.check_params({"x": threading.Lock()})
    day = datetime(2026, 11, 30, tzinfo=timezone.utc)
    resolve_hosts.check_params({"n": 1, "names": ["a", None], "out": Path("out"), "by": {"x": 1.5, "day": day}})
