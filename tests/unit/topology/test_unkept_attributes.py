"""Attributes of a BatchBolt beside `keyed` are kept by nothing: `check` says so, and a run that is to count exactly once."""

from __future__ import annotations

import re

import pytest

from esault import BatchBolt, Bolt, Topology, by_key, run, shuffle
from esault.cli.main import main
from esault.sources import Items
from esault.topology.unkept_attributes import unkept_attributes


class Counts(BatchBolt):
    def __init__(self):
        self.counts = {}

    def process_batch(self, rows):
        for key, _ in rows:
            self.counts[key] = self.counts.get(key, 0) + 1

    def finish(self):
        self.emit_batch(list(self.counts.items()))


class Buffers(BatchBolt):
    """Micro batches, as people write them."""

    def __init__(self, size=32):
        self.waiting, self.size = [], size

    def process_batch(self, rows):
        self.waiting += rows
        self.flush()

    def flush(self):
        while len(self.waiting) >= self.size:
            del self.waiting[: self.size]


class Appends(Buffers):
    def process_batch(self, rows):
        self.waiting.extend(rows)

    def flush(self):
        pass


class Totals(BatchBolt):
    total = 0

    def process_batch(self, rows):
        self.total += len(rows)


class ByColumns(BatchBolt):
    def __init__(self):
        self.n = 0

    def process_columns(self, keys, values):
        self.n += len(keys)


class Keeps(BatchBolt):
    """Only what is meant."""

    def __init__(self, start=1):
        self.start = start
        self.names = ("a", "b")

    def open(self, context):
        self.client = object()

    def process_batch(self, rows):
        for key, value in rows:
            self.keyed[key] = [self.start, value, self.names]
            self.keyed[self.start] = self.keyed.get(key, self.start)
        found = {}
        found[self.start] = self.names
        self.emit_batch([(key, found[self.start]) for key, _ in rows])


class Plain(Bolt):
    def __init__(self):
        self.n = 0

    def process(self, key, value):
        self.n += 1


def topology(bolt=Counts, grouping=by_key):
    t = Topology("t")
    t.spout("in", Items([("a", 1)])).bolt("b", bolt, grouping=grouping())
    return t


@pytest.mark.parametrize(
    ("bolt", "said"),
    [
        (Counts, r"Counts\.process_batch changes self\.counts"),
        (Buffers, r"Buffers\.process_batch changes self\.waiting"),
        (Appends, r"Appends\.process_batch changes self\.waiting"),
        (Totals, r"Totals\.process_batch changes self\.total"),
        (ByColumns, r"ByColumns\.process_columns changes self\.n\b"),
    ],
)
def test_what_a_batch_bolt_changes_and_nothing_keeps_is_said(bolt, said):
    (warning,) = unkept_attributes(topology(bolt).plan())
    assert re.search(said, warning)
    assert "self.keyed[key]" in warning


def test_of_one_that_is_not_by_key_it_says_another_remedy():
    (warning,) = unkept_attributes(topology(Buffers, shuffle).plan())
    assert "kept by a Bolt" in warning and "self.keyed" not in warning


@pytest.mark.parametrize("bolt", [Keeps, Plain, lambda: Counts()])
def test_what_is_kept_or_cannot_be_known_is_not_said(bolt):
    assert unkept_attributes(topology(bolt).plan()) == []


def test_check_warns(tmp_path, capsys):
    file = tmp_path / "counted.py"
    file.write_text(f"from {__name__} import topology\n")
    with pytest.raises(SystemExit) as ended:
        main(["check", str(file)])
    assert not ended.value.code
    out, err = capsys.readouterr()
    assert "warning: unit 'b': Counts.process_batch changes self.counts" in err and "1 warning" in out


def test_a_run_with_checkpoints_warns(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run(topology, engine="local", checkpoint=1)
    assert "Counts.process_batch changes self.counts" in capsys.readouterr().err
    run(topology, engine="local")
    assert "changes self.counts" not in capsys.readouterr().err
