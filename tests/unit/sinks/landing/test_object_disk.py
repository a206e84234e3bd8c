"""A table in an object store: who waits for which objects."""

from __future__ import annotations

import threading

import pytest

pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'esault[s3]'")

from esault.object_store.store import ObjectStore
from esault.sinks.landing.object_disk import ObjectDisk


def test_a_commit_does_not_take_from_prepare_the_parts_that_it_waits_for(monkeypatch):
    slow, asked = threading.Event(), []

    def write(store, url, data):
        asked.append(url)
        assert slow.wait(30)

    monkeypatch.setattr(ObjectStore, "write", write)
    disk = ObjectDisk("memory://t", None)
    disk.write_new("memory://t/.1.tmp", b"rows")
    disk.rename("memory://t/.1.tmp", "memory://t/part-1.parquet")
    disk.sync_folder("memory://t/_esault_log")  # a commit of what was prepared before, beside
    prepared = threading.Thread(target=disk.sync_folder, args=("memory://t",))
    prepared.start()
    prepared.join(0.05)
    assert prepared.is_alive()
    slow.set()
    prepared.join(30)
    assert not prepared.is_alive() and asked == ["memory://t/part-1.parquet"]
