"""Whatever changes while state is written, each checkpoint's files hold the state of its cut."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from esault.errors import CheckpointError
from esault.flow.checkpoint.state_writer import StateWriter


class File:
    def __init__(self):
        self.states = {}

    def add(self, key, state):
        # What is on a disk may be written twice, as it was.
        assert self.states.get(key, state) == state, "another state was written before"
        self.states[key] = state

    def finish(self, schema):
        assert schema == {"": ("names",)}
        return dict(self.states)

    def drop(self):
        self.states = None


class Full(File):
    def add(self, key, state):
        raise CheckpointError("no space left")


class Disk:
    """The vault, the operator and the clock of a test."""

    def __init__(self, seen_changes=True, file=File):
        self.state, self.bases, self.pieces, self.failed = {}, [], [], []
        self.file, self.now, self.away = file, 0.0, set()
        self.writer = StateWriter(self, self.clock, seen_changes, self.finished, lambda n, _: self.failed.append(n))

    def clock(self):
        self.now += 0.0002
        return self.now

    def create(self, number, incarnation, base):
        self.bases.append(base)
        return self.file()

    def saved_in_memory(self):
        return [key for key in self.state if key not in self.away]

    def saved_on_disk(self):
        names = list(self.away)
        return (name for name in names if name in self.away)

    @property
    def saved_count(self):
        return len(self.state)

    def put_away(self):
        """Put what is in memory on a disk, which comes back when it is touched."""
        self.away.update(self.state)

    def schema(self):
        return {"": ("names",)}

    def key_of(self, name):
        return name

    def peek(self, name):
        return self.state.get(name)

    def finished(self, number, piece):
        self.pieces.append((number, piece))

    def process(self, key):
        if self.writer.snapshot is not None:
            self.writer.before((key,))
        self.away.discard(key)
        self.state[key] = self.state.get(key, 0) + 1
        if self.writer.dirty is not None:
            self.writer.touched((key,))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.one_of(st.integers(0, 40).map(str), st.sampled_from(["cut", "write", "tick", "put away", "expire"])),
        max_size=150,
    ),
    st.booleans(),
)
def test_base_and_pieces_together_are_the_state_of_the_cut(steps, seen_changes):
    disk, cuts, number = Disk(seen_changes), {}, 0
    for step in [*steps, "cut"]:
        if step == "cut":
            if disk.writer.snapshot is not None:
                disk.writer.all()
            number += 1
            cuts[number] = dict(disk.state)
            disk.writer.begin(number, 7, disk, sure=True)
        elif step == "write":
            if disk.writer.snapshot is not None:
                disk.writer.advance()
        elif step == "put away":
            disk.put_away()
        elif step == "expire":
            gone = list(disk.state)[::2]
            disk.writer.process(gone)
            for key in gone:
                del disk.state[key]
                disk.away.discard(key)
        elif step == "tick":
            disk.writer.all()
            for key in disk.state:
                disk.state[key] += 100
        else:
            disk.process(step)
    disk.writer.all()
    kept = {}
    assert [n for n, _ in disk.pieces] == list(cuts)
    for (n, piece), base in zip(disk.pieces, disk.bases):
        kept = {**({} if base else kept), **piece}
        kept = {key: state for key, state in kept.items() if state is not None}
        assert kept == cuts[n]


def test_what_was_given_up_is_written_again_with_the_next_one():
    disk = Disk()
    for key in "abcdef":
        disk.process(key)
    disk.writer.begin(1, 7, disk, sure=True)
    disk.writer.all()
    disk.writer.begin(2, 7, disk, sure=True)
    disk.writer.abandon(2)
    assert disk.writer.snapshot is None
    disk.writer.begin(3, 7, disk, sure=False)
    disk.writer.all()
    assert disk.bases[-1]
    assert disk.pieces[-1] == (3, dict.fromkeys("abcdef", 1))


def test_a_full_disk_is_told_once_and_everything_is_written_when_there_is_room():
    disk = Disk(file=Full)
    disk.process("a")
    disk.writer.begin(1, 7, disk, sure=True)
    disk.process("a")
    assert (disk.failed, disk.pieces, disk.writer.snapshot) == ([1], [], None)
    disk.file = File
    disk.writer.begin(2, 7, disk, sure=False)
    disk.writer.all()
    assert disk.pieces == [(2, {"a": 2})]


def test_names_on_a_disk_are_read_while_they_are_written():
    disk = Disk()
    for key in range(5000):
        disk.process(str(key))
    disk.put_away()
    read = []

    def on_disk():
        for name in list(disk.away):
            read.append(name)
            yield name

    disk.saved_on_disk = on_disk
    disk.writer.begin(1, 7, disk, sure=True)
    assert not read
    disk.writer.advance()
    assert 0 < len(read) < 200
    while disk.writer.snapshot is not None:
        disk.writer.advance()
    assert disk.pieces == [(1, dict.fromkeys(map(str, range(5000)), 1))]
