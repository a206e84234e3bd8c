"""The public contract of sinks finds what breaks a law, by name of the law."""

from __future__ import annotations

import json
import os
import shutil
import uuid

import depth
import pytest
from small_process import run_small

from esault import Sink
from esault.sinks import JsonLines
from esault.testing.contract import check_sink


class Folder(Sink):
    """A file of its own for each epoch, under a name that begins with the lineage and gets its last part by the commit."""

    def __init__(self, path):
        self.path = str(path)

    def begin(self, run):
        self.lineage = run.lineage

    def open(self, context):
        os.makedirs(self.path, exist_ok=True)
        self.rows = []

    def write(self, rows):
        self.rows += [(row.key, row.value) for row in rows]

    def prepare(self, epoch):
        handle = f"{self.context.lineage}-{uuid.uuid4()}"
        with open(os.path.join(self.path, f"{handle}.staged"), "w") as out:
            json.dump(self.rows, out)
        self.rows = []
        return handle

    def commit(self, epoch, handle):
        if os.path.exists(os.path.join(self.path, f"{handle}.staged")):
            at = sum(name.endswith(".shown") for name in os.listdir(self.path))
            os.replace(os.path.join(self.path, f"{handle}.staged"), os.path.join(self.path, f"{at:04d}-{handle}.shown"))

    def forget_staged(self, kept):
        for name in os.listdir(self.path):
            if name.startswith(self.lineage) and name.endswith(".staged"):
                os.unlink(os.path.join(self.path, name))


class OnlyNewest(Folder):
    """Takes an epoch that was not committed for one that never will be."""

    def prepare(self, epoch):
        if getattr(self, "last", None) is not None:
            staged = os.path.join(self.path, f"{self.last}.staged")
            if os.path.exists(staged):
                os.unlink(staged)
        self.last = super().prepare(epoch)
        return self.last


def shown(path):
    found = []
    for name in sorted(os.listdir(path)) if path.exists() else ():
        if name.endswith(".shown"):
            found += map(tuple, json.loads((path / name).read_text()))
    return found


class InMemory(Folder):
    """What was prepared is gone with its process."""

    def prepare(self, epoch):
        handle, self.kept = super().prepare(epoch), None
        with open(os.path.join(self.path, f"{handle}.staged")) as file:
            self.kept = file.read()
        os.unlink(os.path.join(self.path, f"{handle}.staged"))
        return handle

    def commit(self, epoch, handle):
        if getattr(self, "kept", None) is not None:
            with open(os.path.join(self.path, f"{handle}.staged"), "w") as out:
                out.write(self.kept)
            self.kept = None
            super().commit(epoch, handle)


class Early(Folder):
    """Rows are seen when they are prepared."""

    def prepare(self, epoch):
        handle = super().prepare(epoch)
        super().commit(epoch, handle)
        return handle


class Twice(Folder):
    """A commit that comes again adds the rows again."""

    def commit(self, epoch, handle):
        for name in os.listdir(self.path):
            if name.endswith(f"{handle}.shown"):
                shutil.copy(os.path.join(self.path, name), os.path.join(self.path, f"9{name}"))
        super().commit(epoch, handle)


class Kept(Folder):
    """What is left of a run is committed by the next."""

    def forget_staged(self, kept):
        for name in os.listdir(self.path):
            if name.endswith(".staged"):
                self.commit(0, name.removesuffix(".staged"))


class Shared(Folder):
    """All sub-units stage under one name."""

    def prepare(self, epoch):
        handle, common = super().prepare(epoch), f"{self.context.lineage}-{epoch}"
        os.replace(os.path.join(self.path, f"{handle}.staged"), os.path.join(self.path, f"{common}.staged"))
        return common


class Raises(Folder):
    def forget_staged(self, kept):
        os.unlink(os.path.join(self.path, "nothing.staged"))


class Lines(Sink):
    """Durable when it has written, where nothing is prepared."""

    def __init__(self, path, flush=True):
        self.path, self.flush = str(path), flush

    def open(self, context):
        self.out = open(self.path, "a")  # noqa: SIM115

    def write(self, rows):
        self.out.writelines(json.dumps([row.key, row.value]) + "\n" for row in rows)
        if self.flush:
            self.out.flush()


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def json_rows(path):
    return [(row["key"], row["value"]) for row in lines(path)]


#: and the law that is named
BROKEN = [
    (InMemory, "what was prepared by a process that died is committed by others"),
    (Early, "what is prepared is not seen before its commit"),
    (Twice, "a repeat changes nothing"),
    (Kept, "all are killed behind prepare, and a run with the same lineage goes on"),
    (Shared, "3 sub-units that write at once do not disturb each other"),
    (OnlyNewest, "checkpoint that was given up is committed with the next one"),
    (Raises, "(?s)forget_staged raised, where it is legal to call it:.*nothing.staged"),
]


def one_that_keeps_them():
    assert check_sink(Folder, shown, rows=[("k", i) for i in range(9)], parts=2) == 11


@pytest.mark.slow
def test_a_sink_that_keeps_the_laws_is_put_through_crashes():
    run_small(one_that_keeps_them)


@pytest.mark.slow
@depth.deep("and one that writes to a store: tests/unit/sinks/test_row_objects.py")
def test_one_of_the_box_keeps_them():
    check_sink(JsonLines, json_rows)


def test_one_that_does_not_commit_keeps_those_that_are_left():
    assert check_sink(Lines, lines) == 1
    with pytest.raises(AssertionError, match="what was written is durable"):
        check_sink(lambda path: Lines(path, flush=False), lines)


def broken_ones_are_found():
    for broken, law in BROKEN:
        with pytest.raises(AssertionError, match=law):
            check_sink(broken, shown, rows=[(f"k{n % 3}", n) for n in range(9)])


@pytest.mark.slow
def test_one_that_breaks_a_law_is_found():
    run_small(broken_ones_are_found)
