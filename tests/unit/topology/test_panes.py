"""Panes as the calls of a topology say them: which go together, and what to write instead."""

from __future__ import annotations

import pytest

from esault import TopologyError
from esault.topology.panes import Panes, checked_panes
from esault.topology.unit_options import WindowOptions
from esault.topology.window import CountWindow, SessionWindow, TumblingWindow


def panes(window=None, times=(None,), **options):
    window = window or TumblingWindow(10)
    return checked_panes("unit 'w'", WindowOptions(window, times, **options), window)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, None),
        ({"allowed_lateness": None}, None),
        ({"by": "processing"}, Panes()),
        ({"ordered": True}, Panes(ordered=True)),
        ({"updates": "discard", "early_count": 1}, Panes("discard", early_count=1)),
        ({"updates": "retract", "allowed_lateness": 5, "last_pane": True}, Panes("retract", 5.0, last_pane=True)),
        ({"updates": "accumulate", "early_seconds": 0.5, "by": "processing"}, Panes("accumulate", early_seconds=0.5)),
    ],
)
def test_what_a_window_says_of_its_panes(options, found):
    assert panes(**options) == found


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"by": "clock"}, "by='clock'; windows close by 'event' or by 'processing' time"),
        ({"updates": "all"}, "updates='all'; take 'accumulate'"),
        ({"last_pane": 1}, "last_pane=1 must be True or False"),
        ({"ordered": None}, "ordered=None must be True or False"),
        ({"updates": "discard", "early_count": 0}, "early_count=0 must be a whole number of tuples from 1 on"),
        ({"updates": "discard", "early_count": True}, "early_count=True must be"),
        ({"updates": "discard", "early_count": 1.0}, "early_count=1.0 must be"),
        ({"updates": "discard", "early_seconds": 0}, "early_seconds=0 must be a number of seconds above 0"),
        ({"allowed_lateness": -1}, "allowed_lateness=-1 must be"),
        (
            {"allowed_lateness": 5, "early_count": 2},
            "with allowed_lateness and early_count a window has several results; say what becomes of the one before",
        ),
        ({"updates": "retract"}, "is for windows with several results, and this one has one"),
        (
            {"by": "processing", "lateness": 1.0, "idle": 2.0, "times": (len,)},
            "leave lateness and idle and time out with by='processing'",
        ),
        ({"window": CountWindow(5), "ordered": True}, "ordered is for windows of time; a CountWindow closes with"),
        ({"window": CountWindow(5), "by": "processing"}, "by is for windows of time"),
        (
            {"window": SessionWindow(5), "updates": "discard", "early_count": 1},
            "Leave early_count out, and allow for late tuples with lateness=SECONDS",
        ),
    ],
)
def test_what_does_not_go_together_is_refused_with_what_to_write(options, said):
    with pytest.raises(TopologyError, match=f"^unit 'w': .*{said}"):
        panes(**options)
