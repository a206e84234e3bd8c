"""What a spout that cannot seek has read comes again, whoever died when."""

from __future__ import annotations

import errno
import os
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from esault import Bolt, Columns, Context, EndOfStream, Spout, Topology, by_key
from esault.errors import CheckpointError, PayloadError
from esault.messages.settings import Settings
from esault.payload.column import plain
from esault.sinks import Collect
from esault.sources import MicroBatches, Paced
from esault.state import spool
from esault.state.spool import Spooled
from esault.testing import LocalRuntime


class Wire(Spout):
    """A source that gives each row once, whoever asks."""

    def __init__(self, rows):
        self.rows = rows
        self.opened = 0

    def open(self, context):
        self.opened += 1

    def read(self, limit):
        if not self.rows:
            raise EndOfStream
        taken = self.rows[:limit]
        del self.rows[:limit]
        return taken


def rows(n, start=0):
    return [(f"k{i}", {"n": i, "pad": b"x" * 50}) for i in range(start, start + n)]


class Warns(Wire):
    """Says something of itself, as sources do whose server goes away."""

    def read(self, limit):
        self.context.logger.warning("the server is away")
        return super().read(limit)


def test_what_a_spout_logs_stands_under_its_own_name_whatever_stands_around_it(tmp_path, caplog):
    t = Topology("warns")
    around = Paced(MicroBatches(Warns(rows(3)), window=0.01, slice=0.01), rate=1e6)
    t.spout("lines", Warns(rows(3))).sink("out", Collect())
    t.spout("others", around).sink("more", Collect())
    LocalRuntime(t, settings=Settings(delivery="eo", checkpoint_every=0.01), state_dir=tmp_path).run_until_drained()
    said = [record for record in caplog.records if record.message == "the server is away"]
    assert {record.name for record in said} == {__name__}
    assert len(said) >= 4


@pytest.fixture
def opened(tmp_path):
    opened = []

    def make(spout):
        made = Spooled(spout, tmp_path / "lines-0")
        made.open(Context("lines"))
        opened.append(made)
        return made

    yield make
    for each in opened:
        each.close()


def drain(spout, limit=10):
    found = []
    while True:
        try:
            found.extend(spout.read(limit))
        except EndOfStream:
            return found


def test_all_that_came_after_a_position_comes_again_and_then_the_rest(opened):
    wire = Wire(rows(100))
    spout = opened(wire)
    first = [*spout.read(10), *spout.read(7)]
    position = spout.position()
    second = [*spout.read(10), *spout.read(3)]
    spout.open(spout.context)
    spout.seek(position)
    assert wire.opened == 1
    assert first + second == rows(30)
    assert drain(spout) == rows(83, 17)
    with pytest.raises(EndOfStream):
        spout.read(1)


def test_right_after_seek_the_position_is_what_was_sought(opened):
    spout = opened(Wire(rows(40)))
    positions = [spout.position()]
    while len(positions) < 4:
        spout.read(10)
        positions.append(spout.position())
    for position in positions:
        spout.open(spout.context)
        spout.seek(position)
        assert spout.position() == position


def test_without_a_position_it_begins_with_the_first_row_it_ever_read(opened):
    spout = opened(Wire(rows(40)))
    spout.read(25)
    spout.open(spout.context)
    assert drain(spout) == rows(40)


def test_another_process_goes_on_where_one_was_killed_also_in_the_middle_of_a_write(opened, tmp_path):
    wire = Wire(rows(100))
    spout = opened(wire)
    spout.read(10)
    position = spout.position()
    spout.read(20)
    with (tmp_path / "lines-0" / "00000000.rows").open("ab") as file:
        file.write(b"\x00\x00\x10\x00half of a block")
    other = opened(Wire(wire.rows))
    other.seek(position)
    assert other.read(5) == rows(20, 10)
    middle = other.position()
    assert other.read(5) == rows(5, 30)
    third = opened(Wire(wire.rows))
    third.seek(middle)
    assert drain(third, 65) == rows(70, 30)


def test_columns_come_again_as_what_they_were(opened):
    given = [
        Columns(np.arange(3), pa.array(["a", None, "c"])),
        Columns(None, np.array([1.5])),
        Columns(["k"], pa.record_batch({"a": [1]})),
        Columns(["k", "l"], [1, 2]),
    ]
    expected = [(None if c.keys is None else plain(c.keys), plain(c.values)) for c in given]
    wire = Wire([])
    wire.read = lambda limit: given.pop(0) if given else []
    spout = opened(wire)
    first = [spout.read(10) for _ in range(4)]
    again = opened(Wire([]))
    again.seek((0, 0))
    second = [again.read(10) for _ in range(4)]
    for once, twice, (keys, values) in zip(first, second, expected):
        assert type(once) is type(twice) is Columns
        assert type(twice.values) is type(once.values) or type(twice.values) is tuple
        assert list(plain(twice.values)) == list(values)
        assert twice.keys is None if once.keys is None else list(plain(twice.keys)) == list(keys)
    assert second[0].keys.dtype == np.int64
    assert second[2].values.schema.names == ["a"]


def test_a_column_that_cannot_be_kept_is_refused_before_it_goes_on(opened):
    wire = Wire([])
    wire.read = lambda limit: Columns(None, np.array([object()]))
    with pytest.raises(PayloadError, match="dtype object cannot travel"):
        opened(wire).read(10)


def test_what_no_checkpoint_needs_any_more_goes(opened, tmp_path, monkeypatch):
    monkeypatch.setattr(spool, "SEGMENT_BYTES", 2000)
    spout = opened(Wire(rows(1000)))
    positions = []
    for _ in range(20):
        spout.read(20)
        positions.append(spout.position())
    before = len(list((tmp_path / "lines-0").iterdir()))
    spout.commit(positions[9])
    assert len(list((tmp_path / "lines-0").iterdir())) == before
    spout.commit(positions[15])
    left = sorted(int(path.stem) for path in (tmp_path / "lines-0").iterdir())
    assert left[0] == positions[9][0]
    spout.open(spout.context)
    spout.seek(positions[9])
    assert drain(spout, 20) == rows(800, 200)


def test_damage_is_found_and_named(opened, tmp_path):
    spout = opened(Wire(rows(10)))
    spout.read(10)
    path = tmp_path / "lines-0" / "00000000.rows"
    data = bytearray(path.read_bytes())
    data[40] ^= 1
    path.write_bytes(data)
    spout.open(spout.context)
    with pytest.raises(CheckpointError, match=f"{path} is damaged"):
        spout.read(10)
    path.unlink()
    spout.seek((0, 0))
    with pytest.raises(CheckpointError, match="is missing: .*--restart"):
        spout.read(10)


class Ahead(Wire):
    """Takes ten rows at once, and makes one out of two halves."""

    takes_ahead = True

    def __init__(self, rows):
        super().__init__(rows)
        self.taken, self.halted, self.begun = [], False, None

    def read(self, limit):
        if not self.taken and not self.halted:
            self.taken = super().read(10)
        if not self.taken and self.halted:
            raise EndOfStream
        given, self.taken = self.taken[:limit], self.taken[limit:]
        return given

    def halt(self):
        self.halted = True
        return "half"

    def begin_with(self, rest):
        self.begun = rest


@pytest.mark.parametrize("read", [0, 3, 10])
def test_what_was_taken_and_not_given_at_an_orderly_stop_comes_first_when_the_run_goes_on(opened, read):
    source = rows(25)
    spout = opened(Ahead(source))
    spout.read(0)
    given = list(spout.read(read)) if read else []
    spout.put_aside()
    position = spout.position()
    for _ in range(2):
        spout.put_aside()  # a last checkpoint that failed is tried again
    later = opened(Ahead(source))
    later.seek(position)
    assert later.spout.begun == "half"
    assert given + drain(later, 4) == rows(25)
    third = opened(Ahead([]))
    assert third.spout.begun is None  # another has gone on with it


def test_where_all_go_back_behind_an_orderly_stop_that_failed_what_was_taken_comes_once(opened):
    spout = opened(Ahead(rows(25)))
    position = spout.position()
    given = list(spout.read(3))
    spout.put_aside()
    after = [row for _ in range(20) for row in spout.read(2)]
    assert given + after == rows(10)
    spout.open(spout.context)
    spout.seek(position)
    assert [row for _ in range(20) for row in spout.read(2)] == rows(10)


class Queue(Wire):
    """A source that is told what it may forget, and gives again what it was not told."""

    seekable = False

    def __init__(self, rows):
        super().__init__(rows)
        self.last, self.told = 0, []

    def read(self, limit):
        taken = super().read(limit)
        self.last += len(taken)
        return taken

    def position(self):
        return self.last

    def commit(self, position):
        self.told.append(position)


def test_a_source_is_told_what_is_durable_when_a_checkpoint_is_complete(opened):
    queue = Queue(rows(100))
    kept = opened(queue)
    kept.read(10)
    kept.settle()
    cut = kept.position()
    kept.read(10)
    kept.settle()
    kept.read(10)
    assert queue.told == []
    kept.commit(cut)
    assert queue.told == [10]
    kept.commit(kept.position())  # what was read since is not settled
    assert queue.told == [10, 20]


def test_its_successor_is_told_at_once_what_was_kept(opened, monkeypatch):
    opened(Queue(rows(100))).read(30)
    for _ in range(3):  # also where nothing was read since
        queue = Queue(rows(70, start=30))
        again = opened(queue)
        assert queue.told == [30]
    assert drain(again) == rows(100)
    assert again.position() > (0, 0)


def test_a_half_written_block_is_not_acknowledged(opened, tmp_path):
    kept = opened(Queue(rows(100)))
    kept.read(10)
    kept.read(10)
    (segment,) = (tmp_path / "lines-0").glob("*.rows")
    segment.write_bytes(segment.read_bytes()[:-1])
    queue = Queue(rows(90, start=10))
    again = opened(queue)
    assert queue.told == [10]
    assert drain(again) == rows(100)


@pytest.fixture
def full(monkeypatch):
    """Says whether the disk is full; all else of `os` stays."""
    disk = SimpleNamespace(full=False)

    def write(fd, data):
        if disk.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return os.write(fd, data)

    shim = SimpleNamespace(**{**vars(os), "write": write})
    monkeypatch.setattr(spool, "os", shim)
    return disk


def test_rows_that_a_full_disk_refused_come_when_all_have_gone_back(opened, full):
    queue = Queue(rows(20))
    kept = opened(queue)
    kept.read(5)
    kept.settle()
    begin = kept.position()
    full.full = True
    for _ in range(2):
        with pytest.raises(CheckpointError, match="No space left"):
            kept.read(5)
        kept.open(Context("lines"))  # all go back: its process goes on
        kept.seek(begin)
    full.full = False
    assert drain(kept) == rows(20, start=0)[5:]
    assert queue.told == []
    kept.settle()
    kept.commit(kept.position())
    assert queue.told == [20]


@pytest.mark.parametrize("seed", range(3))
def test_a_run_whose_disk_is_full_for_a_while_has_each_row_once(full, seed):
    class Count(Bolt):
        def process(self, key, value):
            self.emit(key, value)

    t = Topology("full")
    t.spout("lines", Wire([(i % 3, i) for i in range(60)])).bolt("count", Count, by_key()).sink("out", Collect())
    settings = Settings(delivery="eo", max_pending=2, root_rows=4, restart_strategy="fixed-delay:attempts=3,delay=1")
    local = LocalRuntime(t, seed=seed, settings=settings)
    local.run_until(lambda: local.emitted("count"))
    local.checkpoint()
    full.full = True
    local.run_until(lambda: local.driver.restores.all)
    full.full = False
    local.run_until_drained()
    assert sorted(row.value for row in local.landed("out")) == list(range(60))


class Tagged(Spout):
    """Gives each message until it is acknowledged; its positions count what this object gave, as AMQP's delivery tags do."""

    seekable = False

    def __init__(self, queue):
        self.queue, self.given, self.left = queue, [], list(queue)

    def read(self, limit):
        self.ids = self.left[:limit]
        del self.left[:limit]
        self.given += self.ids
        return [(name, name) for name in self.ids]

    def row_ids(self):
        return self.ids

    def position(self):
        return len(self.given)

    def commit(self, position):
        for name in self.given[:position]:
            if name in self.queue:
                self.queue.remove(name)


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("checkpoints", [0, 3])
def test_what_a_queue_gives_again_is_passed_over_by_its_name(opened, columns, checkpoints):
    queue = [f"m{i}" for i in range(10)]
    kept = opened(Tagged(queue))
    kept.read(4)
    kept.settle()
    cut = kept.position()
    kept.read(3)
    assert len(queue) == 10
    kept.commit(cut)
    assert queue == [f"m{i}" for i in range(4, 10)]
    # It is killed. All but what was acknowledged is given again, and three of it stand in the spool.
    source = Tagged(queue)
    if columns:
        read = source.read
        source.read = lambda limit: Columns(*zip(*read(limit))) if source.left else read(limit)
    again = opened(source)
    again.seek(cut)
    found = []
    while len(found) < 6:
        rows = again.read(2)
        found += zip(rows.keys, rows.values) if isinstance(rows, Columns) else rows
        for _ in range(checkpoints):  # its names stay known until it has been told
            again.settle()
            again.commit(again.position())
    assert [key for key, _ in found] == [f"m{i}" for i in range(4, 10)]
    again.settle()
    again.commit(again.position())
    assert queue == []


def test_a_queue_whose_rows_all_stand_here_is_told_so(opened):
    queue = [f"m{i}" for i in range(5)]
    opened(Tagged(queue)).read(5)
    again = opened(Tagged(queue))
    assert len(again.read(5)) == 5
    assert not again.read(5)
    again.settle()
    again.commit(again.position())
    assert queue == []
