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
        assert key not in self.states, "written twice"
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
        self.file, self.now = file, 0.0
        self.writer = StateWriter(self, self.clock, seen_changes, self.finished, lambda n, _: self.failed.append(n))

    def clock(self):
        self.now += 0.0002
        return self.now

    def create(self, number, incarnation, base):
        self.bases.append(base)
        return self.file()

    def saved_names(self):
        return list(self.state)

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
        self.state[key] = self.state.get(key, 0) + 1
        if self.writer.dirty is not None:
            self.writer.touched((key,))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.one_of(st.integers(0, 40).map(str), st.sampled_from(["cut", "write", "tick"])), max_size=150),
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
