"""The thread that serves a sub-unit: what it says when it cannot go on."""

from __future__ import annotations

import errno
import os
from types import SimpleNamespace

import pytest

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


def test_any_other_error_of_the_engine_is_told_with_its_traceback_and_ends_the_run():
    said = failed_by(OSError(errno.EBADF, os.strerror(errno.EBADF)))
    assert not said.transient and said.text.startswith("the engine itself failed in count:\nTraceback")
