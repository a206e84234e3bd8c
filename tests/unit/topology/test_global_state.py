"""Globals that bolts and steps change: each process has its own, so `check` says it, and a run that is to count exactly once."""

from __future__ import annotations

import os
import re
from collections import Counter, deque
from dataclasses import dataclass

import pytest

from esault import Bolt, Topology, by_key, run
from esault.cli.main import main
from esault.sinks import Collect
from esault.sources import Items
from esault.topology.global_state import global_state

COUNTS: Counter[str] = Counter()
RECENT: deque[str] = deque()
PRICES = {"a": 1}
total = 0
client = None


class Stats:
    seen = 0


STATS = Stats()


class Counts(Bolt):
    def process(self, key, value):
        COUNTS[key] += value


class Appends(Bolt):
    def process(self, key, value):
        RECENT.append(key)


class Totals(Bolt):
    def process(self, key, value):
        global total
        total += value


class OnAnObject(Bolt):
    def process(self, key, value):
        STATS.seen += 1


class OnAClass(Bolt):
    def process(self, key, value):
        Stats.seen += 1


class InAHelper(Bolt):
    def process(self, key, value):
        for each in sorted(self.sizes(key)):
            self.emit(key, each)

    def sizes(self, key):
        def counted():
            COUNTS.update([key])
            return COUNTS[key]

        return [counted()]


class Reads(Bolt):
    """Only what is meant: constants, variables of its own, a client that each process makes once."""

    def open(self, context):
        RECENT.clear()

    def process(self, key, value):
        global client
        if client is None:
            client = Stats()
            client.seen = 0
        found = {}
        found[key] = PRICES[key] + len(COUNTS) + total + Stats.seen
        self.found = found
        os.environ["ESAULT_TEST"] = "1"

        def more():
            found[value] = PRICES.get(key)

        more()
        self.emit(key, found)


def topology(bolt=Counts):
    t = Topology("t")
    t.spout("in", Items([("a", 1)])).bolt("b", bolt, grouping=by_key())
    return t


@pytest.mark.parametrize(
    ("bolt", "said"),
    [
        (Counts, r"Counts\.process changes `COUNTS`"),
        (Appends, r"Appends\.process changes `RECENT`"),
        (Totals, r"Totals\.process changes `total`"),
        (OnAnObject, r"OnAnObject\.process changes an attribute of `STATS`"),
        (OnAClass, r"OnAClass\.process changes an attribute of `Stats`"),
        (InAHelper, r"InAHelper\.sizes changes `COUNTS`"),
    ],
)
def test_globals_that_a_bolt_changes_are_said(bolt, said):
    (warning,) = global_state(topology(bolt).plan())
    assert re.search(f"unit 'b': {said}, which stands outside", warning)


def test_what_is_read_or_is_its_own_is_not_said():
    assert global_state(topology(Reads).plan()) == []


def test_what_a_dataclass_has_around_its_methods_is_not_said():
    @dataclass
    class Sum(Bolt):
        total: int = 0

        def process(self, key, value):
            self.total += value
            self.emit(key, self.total)

    assert global_state(topology(Sum).plan()) == []


def test_variables_of_the_function_around_it_are_said():
    seen, calls = set(), 0

    class Distinct(Bolt):
        def process(self, key, value):
            nonlocal calls
            calls += 1
            if key not in seen:
                seen.add(key)
                self.emit(key, value)

    assert [re.findall("`.*?`", each) for each in global_state(topology(Distinct).plan())] == [["`calls`"], ["`seen`"]]


def test_steps_are_looked_at_as_well():
    def numbered(value):
        COUNTS["n"] += 1
        return COUNTS["n"], value

    t = Topology("t")
    t.spout("in", Items([("a", 1)])).map(numbered).filter(lambda value: RECENT.append(value) is None).sink(
        "out", Collect()
    )
    first, second = global_state(t.plan())
    assert first.startswith("unit 'in': in.map changes `COUNTS`")
    assert second.startswith("unit 'in': in.filter changes `RECENT`")


def test_check_warns(tmp_path, capsys):
    file = tmp_path / "counted.py"
    file.write_text(f"from {__name__} import topology\n")
    with pytest.raises(SystemExit) as ended:
        main(["check", str(file)])
    assert not ended.value.code
    out, err = capsys.readouterr()
    assert "warning: unit 'b': Counts.process changes `COUNTS`" in err and "1 warning" in out


def test_a_run_with_checkpoints_warns(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run(topology, engine="local", checkpoint=1)
    assert "Counts.process changes `COUNTS`" in capsys.readouterr().err
    run(topology, engine="local")
    assert "changes `COUNTS`" not in capsys.readouterr().err
