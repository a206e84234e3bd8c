"""Whether input has come, for a run of which nothing is there: sources are read behind what a checkpoint has, and nothing is kept."""

from __future__ import annotations

import json

import pytest

from esault.errors import UsageError
from esault.messages.checkpoint import CompletedCheckpoint, CompletedUnit
from esault.messages.splits import SplitPlace
from esault.payload.codec import Codec
from esault.runtime.session.input_watch import InputWatch, check_watched
from esault.topology.locate import locate

TOPOLOGY = """
import json
from pathlib import Path

from esault import Bolt, Spout, SplitReader, SplitSource, Topology, shuffle
from esault.sources import Items, TextFiles


class Keep(Bolt):
    def process(self, key, value):
        pass


class Log:
    def __init__(self, folder):
        self.folder = Path(folder)

    def say(self, what):
        with open(self.folder / "said", "a") as file:
            file.write(what + "\\n")


class Reader(SplitReader):
    def __init__(self, log, rows, at):
        self.log, self.rows, self.at = log, rows, at

    def read(self, limit):
        found = self.rows[self.at : self.at + limit]
        self.at += len(found)
        return [(row, row) for row in found]

    def position(self):
        return self.at

    def commit(self, position):
        self.log.say("committed")

    def close(self):
        self.log.say("closed a split")


class Splits(SplitSource):
    discovery_interval = 0.001

    def __init__(self, folder):
        self.log = Log(folder)

    def splits(self):
        return sorted(json.loads((self.log.folder / "splits").read_text()))

    def open_split(self, id, position):
        rows = json.loads((self.log.folder / "splits").read_text())[id]
        return Reader(self.log, rows, position or 0)

    def close(self):
        self.log.say("closed")


class Pushed(Spout):
    def read(self, limit):
        return []


def lines(folder: str, parts: int = 1):
    t = Topology("lines")
    t.spout("lines", TextFiles(folder + "/*.txt", follow=True), parallelism=parts).bolt("keep", Keep, shuffle())
    return t


def splits(folder: str):
    t = Topology("splits")
    t.spout("splits", Splits(folder)).bolt("keep", Keep, shuffle())
    return t


def items(folder: str):
    t = Topology("items")
    t.spout("items", Items([(1, 1), (2, 2)])).bolt("keep", Keep, shuffle())
    return t


def pushed(folder: str):
    t = Topology("pushed")
    t.spout("in", Pushed()).bolt("keep", Keep, shuffle())
    return t
"""


@pytest.fixture
def watch(tmp_path):
    path = tmp_path / "sources.py"
    path.write_text(TOPOLOGY)
    opened = []

    def make(function, name="", **unit):
        located = locate(f"{path}:{function}")
        units = {name: CompletedUnit("spout", "sub-unit", **{"parallelism": 1, **unit})} if name else {}
        made = InputWatch(located, {"folder": str(tmp_path)}, CompletedCheckpoint(1, "r", units))
        opened.append(made)
        return made

    yield make
    for each in opened:
        each.close()


def packed(position, rows=0):
    return Codec().pack_value((position, rows))


def positions(tmp_path, watch):
    """Where the spout stands behind all that there is, as a checkpoint has it."""
    reading = watch("lines")
    (_, spout), *_ = reading._spouts
    while spout.read(100):
        pass
    return {0: packed(spout.position())}


def test_a_file_that_grows_and_a_new_one_are_input_and_what_was_read_is_none(tmp_path, watch):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    known = positions(tmp_path, watch)
    looking = watch("lines", "lines", positions=known)
    assert looking.found() is None
    with (tmp_path / "a.txt").open("a") as file:
        file.write("three\n")
    assert watch("lines", "lines", positions=known).found() == "lines"
    (tmp_path / "b.txt").write_text("four\n")
    assert watch("lines", "lines", positions=known).found() == "lines"


def test_without_a_position_all_is_input(tmp_path, watch):
    (tmp_path / "a.txt").write_text("one\n")
    assert watch("lines").found() == "lines"


def test_an_end_is_input_since_the_run_has_to_end_and_a_spout_that_had_ended_is_not_looked_at(watch):
    assert watch("items", "items", positions={0: packed(2)}).found() == "items"
    assert watch("items", "items", positions={0: packed(2)}, finished=True).found() is None


def test_rows_of_a_split_and_new_splits_are_input_and_nothing_is_committed(tmp_path, watch):
    say = lambda **splits: (tmp_path / "splits").write_text(json.dumps(splits))
    say(a=[1, 2], b=[1])
    known = {"a": SplitPlace(packed(2, 2)), "b": SplitPlace(b"", ended=True)}
    looking = watch("splits", "splits", splits=known)
    assert looking.found() is None
    say(a=[1, 2, 3], b=[1])
    assert watch("splits", "splits", splits=known).found() == "splits"
    say(a=[1, 2], b=[1], c=[])
    assert watch("splits", "splits", splits=known).found() == "splits"
    looking.close()
    assert sorted((tmp_path / "said").read_text().split("\n")) == ["", "closed", "closed a split"]


def test_what_a_source_raises_is_raised_and_what_was_opened_is_closed(tmp_path, watch):
    (tmp_path / "splits").write_text("{}")
    with pytest.raises(KeyError):
        watch("splits", "splits", splits={"gone": SplitPlace(packed(0))})
    assert (tmp_path / "said").read_text() == "closed\n"


def test_what_cannot_go_back_is_refused_by_name(tmp_path):
    (tmp_path / "sources.py").write_text(TOPOLOGY)
    plan = locate(f"{tmp_path}/sources.py:pushed").build({"folder": ""}).plan()
    with pytest.raises(
        UsageError, match=r"--scale-to-zero: unit 'in' reads Pushed, which cannot be looked at .* Kafka"
    ):
        check_watched(plan)
    for function in ("lines", "splits", "items"):
        check_watched(locate(f"{tmp_path}/sources.py:{function}").build({"folder": str(tmp_path)}).plan())
