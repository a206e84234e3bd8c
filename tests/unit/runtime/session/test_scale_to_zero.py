"""A run that goes on whenever input comes: what is begun, what is said, and how it ends; without processes."""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from esault.control.report.summary import SCALED_TO_ZERO, Snapshot, UnitSnapshot
from esault.errors import UsageError
from esault.messages.delivery import Delivery
from esault.messages.settings import Settings
from esault.runtime.process.run_dir import living_run_dirs
from esault.runtime.session import scale_to_zero
from esault.runtime.session.request import Request
from esault.runtime.session.scale_to_zero import WAITING_FOR_HOSTS, run_scaled_to_zero
from esault.topology.locate import locate

TOPOLOGY = """
from esault import Bolt, Topology, shuffle
from esault.sources import Items


class Keep(Bolt):
    def process(self, key, value):
        pass


def topology():
    t = Topology("kept")
    t.spout("lines", Items([(1, 1)])).bolt("keep", Keep, shuffle())
    return t
"""


class Times:
    """The times that a run is there, and what is found between them, one after the other; what raises, is raised."""

    def __init__(self, folder, monkeypatch, ends, found=(), begins=()):
        (folder / "kept.py").write_text(TOPOLOGY)
        self.folder, self.ends, self.found, self.begins = folder, iter(ends), iter(found), iter(begins)
        self.requests, self.notices, self.phases, self.closed, self.given_up = [], [], [], 0, 0
        for name in ("LOOK_EVERY", "AGAIN_EVERY", "SERVE_EVERY"):
            monkeypatch.setattr(scale_to_zero, name, 0.001)
        monkeypatch.setattr(scale_to_zero, "Session", self.session)
        monkeypatch.setattr(scale_to_zero, "InputWatch", self.watch)
        monkeypatch.setattr(scale_to_zero, "open_state", self.state)

    def session(self, request, idle):
        """The first one begins; those behind it as `begins` says."""
        if self.requests and (error := next(self.begins, None)) is not None:
            if callable(error):
                error()
            else:
                raise error
        self.requests.append(request)
        ended, idle_now = next(self.ends)
        unit = UnitSnapshot(name="keep", kind="bolt", sub_units=3)
        last = Snapshot(
            topology="kept", run="r", phase="ended", draining=False, now=0.0, seconds=1.0, units=(unit,), slots=4
        )
        plan = request.topology.build({}).plan()
        run = lambda: SimpleNamespace(ended=ended, number=len(self.requests))
        return SimpleNamespace(run=run, idle=idle_now, plan=plan, hosts=None, last_snapshot=last, close=self.give_up)

    def give_up(self):
        self.given_up += 1

    def watch(self, located, params, kept):
        def found():
            what = next(self.found)
            if isinstance(what, Exception):
                raise what
            return what() if callable(what) else what

        return SimpleNamespace(found=found, close=self.close)

    def close(self):
        self.closed += 1

    def state(self, request, plan, notice):
        return SimpleNamespace(kept=SimpleNamespace(number=7), close=lambda: None)

    # as a view
    def notice(self, text):
        self.notices.append(text)

    def update(self, snapshot):
        self.phases.append((snapshot.phase, snapshot.units[0].sub_units, snapshot.slots))

    def run(self, **options):
        settings = Settings(delivery=Delivery.EXACTLY_ONCE, checkpoint_every=1.0)
        located = locate(f"{self.folder}/kept.py")
        request = Request(located, {}, settings=settings, view=self, scale_to_zero=60.0, **options)
        return run_scaled_to_zero(request)


@pytest.fixture
def times(tmp_path, monkeypatch):
    return lambda *options, **more: Times(tmp_path, monkeypatch, *options, **more)


def test_it_goes_on_from_its_checkpoint_each_time_that_there_is_input_until_it_ends(times):
    made = times([("paused", True), ("paused", True), ("drained", False)], found=[None, None, "lines", "lines"])
    assert made.run(from_savepoint="s", restart=True).number == 3
    first, *others = made.requests
    assert (first.resume, first.from_savepoint, first.restart) == (False, "s", True)
    assert {(each.resume, each.from_savepoint, each.restart) for each in others} == {(True, None, False)}
    assert made.notices[:2] == [
        "nothing has come for 60 s: paused at checkpoint 7, and all slots are given back until input comes",
        "there is input for unit 'lines': going on from checkpoint 7",
    ]
    assert set(made.phases) == {(SCALED_TO_ZERO, 0, 0)}
    assert made.closed == 2


@pytest.mark.parametrize("end", [("paused", False), ("drained", True), ("stopped", True)])
def test_one_that_was_ended_or_had_its_end_stays_so(times, end):
    made = times([end])
    assert made.run().ended == end[0]
    assert made.notices == []


def test_a_source_that_cannot_be_looked_at_is_told_of_once_and_looked_at_again(times):
    away = OSError("the server is away")
    made = times([("paused", True), ("drained", False)], found=[away, away, "lines"])
    assert made.run().number == 2
    assert made.notices[1:-1] == ["the sources cannot be looked at: the server is away; it is tried again"]
    assert made.closed == 3


def test_a_run_without_its_hosts_waits_for_them_and_one_without_hosts_fails(times):
    gone = UsageError("host b cannot be reached")
    ends = [("paused", True), ("drained", False)]
    made = times(ends, found=["lines"], begins=[gone, gone, None])
    assert made.run(hosts="hosts.toml").number == 2
    assert made.notices[2:] == ["there is input, and the run cannot go on yet: host b cannot be reached"]
    assert made.phases[-1] == (WAITING_FOR_HOSTS, 0, 0)
    with pytest.raises(UsageError, match="host b"):
        times(ends, found=["lines"], begins=[gone]).run()


def test_a_signal_and_the_end_of_its_time_end_it_as_paused(times):
    before = signal.getsignal(signal.SIGTERM)
    ending = lambda: os.kill(os.getpid(), signal.SIGTERM)
    made = times([("paused", True)], found=[ending, None, None, None])
    assert made.run().ended == "paused"
    assert signal.getsignal(signal.SIGTERM) is before
    made = times([("paused", True)], found=itertools.repeat(None))
    assert made.run(seconds=0.05).ended == "paused"


def test_it_answers_those_who_ask_and_ends_when_it_is_asked_to(times):
    said = []

    def ask():
        [folder] = [path for path in living_run_dirs() if Path(path).name.startswith(f"esault-{os.getpid()}-")]

        def talk():
            for request in ({"do": "status"}, {"do": "scale", "unit": "keep", "n": 2}, {"do": "stop"}):
                with socket.socket(socket.AF_UNIX) as asking:
                    asking.connect(str(folder / "control"))
                    asking.sendall(json.dumps(request).encode() + b"\n")
                    said.append([json.loads(line) for line in asking.makefile()])

        asker = threading.Thread(target=talk)
        asker.start()
        threads.append(asker)

    threads = []
    made = times([("paused", True)], found=itertools.chain([ask], itertools.repeat(None)))
    assert made.run().ended == "paused"
    threads[0].join()
    (status,), (refused,), stopped = said
    assert (status["phase"], status["topology"]) == (SCALED_TO_ZERO, "kept")
    assert "the run is scaled to zero" in refused["error"]
    assert stopped[-1] == {"done": True, "ended": "paused"}
    assert not [path for path in living_run_dirs() if Path(path).name.startswith(f"esault-{os.getpid()}-")]


def test_what_comes_while_the_hosts_of_the_run_that_goes_on_are_reached_is_heeded(times):
    ends = [("paused", True), ("drained", False)]
    made = times(ends, found=["lines"], begins=[lambda: os.kill(os.getpid(), signal.SIGTERM)])
    assert made.run().ended == "paused"
    assert (len(made.requests), made.given_up) == (2, 1)


def test_a_signal_before_it_has_begun_is_not_swallowed(times, monkeypatch):
    heard = []
    monkeypatch.setattr(scale_to_zero, "check_watched", lambda plan: None)
    made = times([("drained", False)])
    begin = made.session

    def session(request, idle):
        heard.append(signal.getsignal(signal.SIGTERM))
        return begin(request, idle)

    monkeypatch.setattr(scale_to_zero, "Session", session)
    made.run()
    assert heard == [signal.getsignal(signal.SIGTERM)]


def test_time_in_which_it_waits_for_input_counts(times):
    made = times([("paused", True), ("drained", False)], found=[None] * 20 + ["lines"])
    made.run(seconds=100.0)
    assert made.requests[1].seconds < 100.0 - 20 * scale_to_zero.LOOK_EVERY
