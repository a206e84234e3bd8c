"""A source of splits: what its class must define, and that it is not read as a whole."""

from __future__ import annotations

import pytest

from esault.errors import TopologyError
from esault.topology.split_source import SplitReader, SplitSource


class Files(SplitSource):
    def splits(self):
        return ["a"]

    def open_split(self, id, position):
        return (id, position)


class NoSplits(SplitSource):
    def open_split(self, id, position):
        return None


class Reads(Files):
    def read(self, limit):
        return []


def with_numbers(**numbers):
    files = Files()
    for name, value in numbers.items():
        setattr(files, name, value)
    return files


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (NoSplits(), "NoSplits does not define splits"),
        (Reads(), "Reads is a SplitSource and defines read, which is for the readers"),
        (with_numbers(splits_at_once=0), "splits_at_once=0: write a number of splits of at least 1, or None"),
        (with_numbers(splits_at_once=True), "splits_at_once=True"),
        (with_numbers(splits_at_once="3"), "splits_at_once='3'"),
        (with_numbers(discovery_interval=-1), "discovery_interval=-1"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(source, said):
    with pytest.raises(TopologyError, match=f"unit 'in'.*{said}"):
        source.examine("unit 'in'")


def test_one_that_defines_its_hooks_passes():
    with_numbers(splits_at_once=3, discovery_interval=1.5).examine("unit 'in'")


def test_a_split_that_was_added_is_read_from_its_beginning():
    assert Files().open_added_split("a") == ("a", None)


@pytest.mark.parametrize("ask", [lambda s: s.read(1), lambda s: s.position(), lambda s: s.seek(1)])
def test_it_is_read_by_its_splits_alone(ask):
    with pytest.raises(TypeError, match=r"Files is read in splits: open_split\(id, position\)"):
        ask(Files())


def test_a_reader_must_say_what_it_reads_and_where_it_is_and_may_say_the_rest():
    reader = SplitReader()
    for ask in (lambda: reader.read(1), reader.position):
        with pytest.raises(NotImplementedError, match="SplitReader must define"):
            ask()
    reader.commit(1)
    assert (reader.due(), reader.row_ids(), reader.lag(), reader.counters()) == (None, None, None, {})
