"""Readers that a run begins with by itself: who has the say, and where there is no place for them."""

from __future__ import annotations

import pytest

from esault import Bolt, Topology, by_key, shuffle
from esault.messages.settings import Settings
from esault.runtime.session.first_widths import with_readers
from esault.runtime.session.request import Request
from esault.sources import CsvFiles, Directory, JsonFiles, TextFiles
from esault.topology.chaining import chain
from esault.topology.sink import Sink


class Pass(Bolt):
    def process(self, key, value):
        self.emit(key, value)


class Own(Sink):
    def write(self, rows): ...


@pytest.fixture
def readers(tmp_path):
    """Writes four files, and returns how many readers the run of a source begins with."""
    for i in range(4):
        (tmp_path / f"{i}.txt").write_text(f"{'x' * 99}\n" * 30_000)

    def begin(make=TextFiles, cores=2, keyed=False, **request):
        t = Topology("t")
        lines = t.spout("lines", make(f"{tmp_path}/*.txt")).bolt("pass", Pass, by_key() if keyed else shuffle())
        lines.sink("out", Own())
        plan = chain(t.plan())
        plan.units["lines"].spout.check()
        return with_readers(Request(None, **request), plan, cores).get("lines", 1)

    return begin


@pytest.mark.parametrize(
    "make", [TextFiles, JsonFiles, CsvFiles, lambda path: Directory(path.removesuffix("/*.txt"), every=None)]
)
def test_each_source_of_files_begins_with_one_for_each_processor(readers, make):
    assert readers(make) == 2
    assert readers(make, cores=4) == 4
    assert readers(make, cores=1) == 1


@pytest.mark.parametrize("make", [lambda path: TextFiles(path, follow=True), lambda path: CsvFiles(path, every=1.0)])
def test_what_goes_on_growing_has_one(readers, make):
    assert readers(make) == 1


@pytest.mark.parametrize(
    "said",
    [
        {"parallelism": {"lines": 1}},
        {"policies": {"lines": "none"}},
        {"policies": {"": "none"}},
        {"policies": {"": "ds2"}},
        {"resume": True},
        {"from_savepoint": "before"},
        {"hosts": "hosts.toml"},
        {"settings": Settings(budget=1)},
        {"slots": 1},
    ],
)
def test_what_was_said_about_the_run_counts(readers, said):
    assert readers(**said) == 1


def test_slots_that_are_left_are_the_most(readers):
    assert readers(cores=4, slots=2) == 2


def test_a_bolt_with_processes_of_its_own_takes_processors(readers):
    assert readers(keyed=True, cores=8) == 1
