"""What people write first, having used something else, is refused with what to write instead."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from esault import BatchBolt, Bolt, Topology, TopologyError, TopologyFailed, by_key, shuffle
from esault.errors import SourceError
from esault.sinks import Collect
from esault.sources import Directory, Items
from esault.testing import LocalRuntime
from esault.windows import SessionWindow, TumblingWindow

ROWS: list[tuple[str, dict[str, Any]]] = [("a", {"at": 1.0, "user": "ann"})]


class Same(Bolt):
    def process(self, key, value):
        self.emit(key, value)


class EmitsOne(BatchBolt):
    def process_batch(self, rows):
        for key, value in rows:
            self.emit(key, value)  # type: ignore[attr-defined]


class EmitsMany(Bolt):
    def process(self, key, value):
        self.emit_batch([(key, value)])  # type: ignore[attr-defined]


class EmitsElsewhere(BatchBolt):
    def __init__(self):
        self.emit = print

    def process_batch(self, rows):
        self.emit(rows)


class Later(Bolt):
    def process(self, key, value):
        self.timer("later", timedelta(seconds=5))

    def on_timer(self, name, at):
        pass


class LaterUnnamed(Later):
    def process(self, key, value):
        self.timer(5)  # type: ignore[call-arg, arg-type]


def rows():
    yield "a", 1


def stream():
    return Topology("t").spout("in", Items(ROWS))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda s: s.key_by("user"), "such as lambda value: value['user'] for a field of that name"),
        (lambda s: s.window("w", Same, TumblingWindow(5), time="at"), "such as lambda value: value['at']"),
        (lambda s: s.bolt("b", Same, by_key("user")), "before the bolt: .key_by(lambda value: value['user'])"),
        (
            lambda s: s.bolt("b", EmitsOne, by_key()),
            "EmitsOne.process_batch uses self.emit, which a BatchBolt has not; write self.emit_batch(",
        ),
        (
            lambda s: s.bolt("b", EmitsMany, by_key()),
            "EmitsMany.process uses self.emit_batch, which a Bolt has not; write self.emit(key",
        ),
        (
            lambda s: s.bolt("b", Same, by_key(), expire_after=timedelta(hours=1)),
            "expire_after is a number of seconds, not datetime.timedelta(seconds=3600) (timedelta); write 3600",
        ),
        (lambda s: s.timed(lambda v: v["at"], lateness=timedelta(minutes=1)), "; write 60"),
        (
            lambda s: TumblingWindow(timedelta(days=1)),
            "size is a number of seconds, not datetime.timedelta(days=1) (timedelta); write 86400",
        ),
        (lambda s: SessionWindow(timedelta(seconds=1.5)), "; write 1.5"),
        (lambda s: s.sink("out", print), ".map(print)"),
        (lambda s: Topology("u").spout("in", rows), "by esault.sources: Items(rows)"),
        (lambda s: Topology("u").spout("in", [("a", 1)]), "by esault.sources: Items([...])"),
    ],
)
def test_what_others_take_is_refused_with_what_to_write(make, said):
    with pytest.raises(TopologyError, match=re.escape(said)):
        make(stream())


def test_a_bolt_may_have_an_emit_of_its_own():
    stream().bolt("b", EmitsElsewhere, shuffle())


@pytest.mark.parametrize(
    ("time", "said"),
    [
        (lambda v: datetime.fromtimestamp(v["at"], timezone.utc), "; write .timestamp() behind it"),
        (lambda v: datetime(2026, 1, 1), ".timestamp() behind it (naive: of the machine's time zone)"),
        (lambda v: "2026-01-01", "datetime.fromisoformat(text).timestamp()"),
    ],
)
def test_a_time_that_is_none_is_refused_with_what_to_write(time: Any, said):
    t = Topology("t")
    t.spout("in", Items(ROWS)).window("w", Same, TumblingWindow(5), time=time).sink("out", Collect())
    with pytest.raises(TopologyFailed, match=re.escape(said)):
        LocalRuntime(t).run_until_drained()


@pytest.mark.parametrize(
    ("bolt", "said"),
    [
        (Later, "is a span of time; a timer is due at a time: self.context.now() + 5"),
        (LaterUnnamed, "TypeError: timer() missing 1 required positional argument: 'at'"),
    ],
)
def test_a_timer_that_is_set_wrongly_says_so_in_its_users_words(bolt, said):
    t = Topology("t")
    t.spout("in", Items(ROWS), time=lambda v: v["at"]).bolt("b", bolt, by_key())
    with pytest.raises(TopologyFailed, match=re.escape(said)):
        LocalRuntime(t).run_until_drained()


def test_a_folder_to_be_looked_at_must_be_there(tmp_path):
    with pytest.raises(SourceError, match="the folder .*inbox does not exist; create it"):
        Directory(tmp_path / "inbox").check()
    (tmp_path / "inbox").mkdir()
    Directory(tmp_path / "inbox").check()
