"""The lease: a reader sees what the writer has heard, and a file without a word holds nothing."""

from __future__ import annotations

import struct
import time

from esault.runtime.process import lease
from esault.runtime.process.lease import LEASE, Lease, LeaseHolder


def written(path, age):
    clock = time.clock_gettime(lease._CLOCK)
    with open(path, "r+b") as file:
        file.write(struct.pack("d", clock - age))


def test_it_holds_while_the_driver_is_heard_and_no_longer(tmp_path):
    path = str(tmp_path / "lease")
    holder = LeaseHolder(path)
    reader = Lease(path)
    assert reader.holds() and holder.age() < LEASE
    written(path, LEASE + 1)
    assert not reader.holds() and holder.age() > LEASE
    holder.renew()
    assert reader.holds() and holder.age() < LEASE


def test_several_readers_see_one_writer(tmp_path):
    path = str(tmp_path / "lease")
    LeaseHolder(path)
    readers = [Lease(path), Lease(path)]
    written(path, 100.0)
    assert not any(each.holds() for each in readers)


def test_a_new_holder_begins_anew(tmp_path):
    path = str(tmp_path / "lease")
    LeaseHolder(path)
    written(path, 100.0)
    LeaseHolder(path)
    assert Lease(path).holds()
