"""What a run's door says of a change that was asked for."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace

import pytest

from esault.messages.change_record import ChangeRecord
from esault.runtime.messages import Scaled, ScaleUnit
from esault.runtime.session.control_server import ControlServer

RECORD = ChangeRecord(0.0, "count", "rescale", 1, 4, "", "by hand", 3, 30, 0.001, 0.1)


@pytest.mark.parametrize(
    ("policies", "watched_by"),
    [({"": "auto"}, "auto"), ({"": "auto", "count": "none"}, "none"), ({"": "none", "count": "ds2"}, "ds2")],
)
def test_who_scales_a_unit_hears_which_policy_may_change_it_again(policies, watched_by):
    answers, told = [], []
    caller = SimpleNamespace(
        request={"do": "scale", "unit": "count", "n": 4}, answer=lambda **said: answers.append(said)
    )
    control_server = ControlServer(SimpleNamespace(callers=deque([caller])), "t", "r", told.append, policies)
    control_server.serve()
    assert told == [ScaleUnit("count", 4, 1)]
    control_server.scaled(Scaled(1, record=RECORD))
    assert answers[-1]["done"] and answers[-1]["watched_by"] == watched_by


class Caller:
    def __init__(self, **request):
        self.request = request
        self.answers = []

    def answer(self, last=True, **answer):
        self.answers.append((last, answer))


def test_a_wish_that_waits_is_told_what_for_and_goes_on():
    caller, told = Caller(do="scale", unit="count", n=4), []
    control_server = ControlServer(
        SimpleNamespace(callers=deque([caller]), close=lambda: None), "words", "run", told.append, {}
    )
    control_server.serve()
    assert told == [ScaleUnit("count", 4, 1)]
    control_server.scaled(Scaled(1, waits="for the checkpoint"))
    control_server.scaled(Scaled(1))
    assert caller.answers == [(False, {"waits": "for the checkpoint"}), (False, {"begun": True})]
    control_server.ended("drained")
    assert caller.answers[-1] == (True, {"error": "the run ended before the change did"})
