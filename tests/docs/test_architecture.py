"""docs/explanation/architecture.md shows the code as it is."""

from __future__ import annotations

import cProfile
import re
import sys
from pathlib import Path

import pytest

from esault import Bolt, Topology, by_key
from esault.control.report.summary import snapshot
from esault.sinks import JsonLines
from esault.sources import Items
from esault.testing import LocalRuntime
from esault.ui.metric_families import families

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))
import drawings  # noqa: E402

TEXT = drawings.PAGE.read_text()
WALKS = re.findall(r"<!-- walk: (\w+) -->\n(.*?)<!-- end -->", TEXT, re.DOTALL)


def test_the_pictures_are_those_of_the_code():
    assert drawings.written(TEXT) == TEXT, "draw them anew: python docs/drawings.py"


def test_each_room_that_has_folders_to_show_is_shown():
    assert re.findall(r"<!-- drawn: (\w+) -->", TEXT) == ["rooms", *drawings.ROOMS]


def test_there_are_four_walks():
    assert [name for name, _ in WALKS] == ["tuple", "scale", "checkpoint", "number"]


@pytest.mark.parametrize(("name", "walk"), WALKS, ids=[name for name, _ in WALKS])
def test_a_walk_names_files_that_are_there(name, walk):
    links = re.findall(r"\[`([^`]+)`\]\(([^)]+)\)", walk)
    assert len(links) >= 10
    for said, place in links:
        path = (drawings.PAGE.parent / place).resolve()
        assert path.is_file(), f"{name}: {said} is elsewhere"
        assert path == drawings.CODE / said


class Same(Bolt):
    def process(self, key, value):
        self.emit(key, value)


def test_a_tuple_and_a_number_pass_the_files_of_their_walks():
    """All but the sockets and actors, which `LocalRuntime` has none of, and what only declares fields."""
    t = Topology("t")
    spout = t.spout("in", Items([(i % 7, i) for i in range(5000)])).map(abs)
    spout.bolt("same", Same, grouping=by_key()).sink("out", JsonLines("unused"))
    local = LocalRuntime(t)
    profile = cProfile.Profile()
    profile.runcall(local.run_until_drained)
    profile.runcall(lambda: (local.report(), list(families(snapshot(local.driver, 0.0)))))
    passed = {Path(code.co_filename) for entry in profile.getstats() if not isinstance(code := entry.code, str)}

    def left_out(walk):
        named = re.findall(r"`([^`]+\.py)`", dict(WALKS)[walk])
        return {place for place in named if drawings.CODE / place not in passed}

    assert left_out("tuple") == {"runtime/net/links.py", "runtime/net/inlets.py"}
    between = {"runtime/net/status_pipe.py", "runtime/driver/driver_actor.py"}
    assert left_out("number") == {*between, "ui/prometheus.py", "ui/otlp.py", "messages/status.py"}


def test_an_arrow_that_follows_from_others_is_left_out():
    arrows = {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert drawings.reduced(arrows) == {"a": {"b"}, "b": {"c"}, "c": set()}
    with pytest.raises(ValueError, match="imports itself"):
        drawings.reduced({"a": {"b"}, "b": {"a"}})
