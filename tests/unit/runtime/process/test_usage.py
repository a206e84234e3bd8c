"""Resources that a process takes, as the system counts them."""

import errno
import os

import psutil

from esault.runtime.process import usage
from esault.runtime.process.usage import process_usage


def test_counts_only_grow():
    tell = process_usage(lambda: {"there": 5})
    before, sum_ = tell(), sum(i * i for i in range(200_000))
    after = tell()
    assert sum_ > 0
    assert after.cpu >= before.cpu > 0
    assert after.memory > 1_000_000
    assert after.sent == {"there": 5}
    assert (after.cpu_wait is None) == (before.cpu_wait is None)
    if after.cpu_wait is not None and before.cpu_wait is not None:
        assert after.cpu_wait >= before.cpu_wait >= 0


def test_waiting_for_a_processor_is_read_in_seconds(tmp_path, monkeypatch):
    told = tmp_path / "schedstat"
    monkeypatch.setattr(usage, "_SCHEDSTAT", told)
    assert process_usage()().cpu_wait is None  # not on this system
    told.write_text("836000000 2170000000 412\n")
    assert process_usage()().cpu_wait == 2.17
    told.write_text("0\n")
    assert process_usage()().cpu_wait is None


def test_a_process_that_may_open_no_more_files_tells_what_it_told_last(monkeypatch):
    def no_more(self):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    tell, never = process_usage(), process_usage()
    before = tell()
    monkeypatch.setattr(psutil.Process, "memory_info", no_more)
    assert tell() == before
    assert never().cpu == 0.0
