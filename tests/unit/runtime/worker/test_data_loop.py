"""The thread that serves a sub-unit: what it says when it cannot go on."""

from __future__ import annotations

import errno
import os
from types import SimpleNamespace

import pytest

from esault.errors import CheckpointError
from esault.runtime.worker import data_loop
from esault.runtime.worker.data_loop import DataLoop


def failed_by(error):
    class Failing(DataLoop):
        def serve(self):
            raise error

    spec, build = SimpleNamespace(clock_offset=0.0), SimpleNamespace(incarnation=7, unit="count")
    loop = Failing(spec, build, lambda: None)
    loop.run()
    (said,) = loop.outbox
    return said


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_a_process_that_is_short_of_something_may_be_restarted_and_names_the_remedy(number):
    said = failed_by(OSError(number, os.strerror(number)))
    assert said.transient and said.text.startswith(f"count: {os.strerror(number)}; ")


@pytest.mark.parametrize(
    ("number", "transient", "damaged"),
    [(errno.EMFILE, True, False), (errno.EIO, True, True), (errno.ENOTDIR, False, True)],
)
def test_a_piece_that_cannot_be_read_for_want_of_descriptors_is_not_damaged(number, transient, damaged):
    error = CheckpointError("7-base.state cannot be read")
    error.__cause__ = OSError(number, os.strerror(number))
    said = failed_by(error)
    assert (said.transient, said.damaged) == (transient, damaged)


def test_any_other_error_of_the_engine_is_told_with_its_traceback_and_ends_the_run():
    said = failed_by(OSError(errno.EBADF, os.strerror(errno.EBADF)))
    assert not said.transient and said.text.startswith("the engine itself failed in count:\nTraceback")


def test_a_folder_that_is_being_removed_is_waited_for(tmp_path, monkeypatch):
    folder, pauses = tmp_path / "run", []

    def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 3:
            folder.mkdir()

    spec = SimpleNamespace(clock_offset=0.0, host_context=None, run_dir=str(folder))
    loop = DataLoop(spec, SimpleNamespace(incarnation=7, unit="count"), lambda: None)
    monkeypatch.setattr(data_loop, "time", SimpleNamespace(sleep=pause, monotonic=lambda: sum(pauses)))
    inlets, wire = loop.sockets()
    assert len(pauses) == 3 and len(list(folder.iterdir())) == 2
    inlets.close()
    wire.close()
    spec.run_dir = str(tmp_path / "never")
    with pytest.raises(FileNotFoundError):
        loop.sockets()
    assert sum(pauses) >= data_loop.FOLDER_WITHIN
