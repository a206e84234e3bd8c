"""A table in an object store: who waits for which objects."""

from __future__ import annotations

import threading

import pytest

pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'esault[s3]'")

from esault.errors import SinkError
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


def test_what_is_written_appears_whole_under_its_own_name_and_once():
    url = "memory://disk/t"
    disk = ObjectDisk(url, None)
    disk.make_folder(url)
    disk.write_new(f"{url}/log/.1.tmp", memoryview(b"one"))
    disk.write_new(f"{url}/log/.2.tmp", b"two")
    assert disk.names(url) == []
    assert disk.link(f"{url}/log/.1.tmp", f"{url}/log/1")
    assert not disk.link(f"{url}/log/.2.tmp", f"{url}/log/1"), "of several who try one succeeds"
    assert disk.read(f"{url}/log/1") == b"one"
    disk.rename(f"{url}/log/.2.tmp", f"{url}/part")
    disk.sync_folder(url)
    assert sorted(disk.names(url)) == ["log", "part"]
    assert disk.modified(f"{url}/part") > 0
    disk.remove(f"{url}/log/.1.tmp")  # scratch, of which the store knows nothing
    disk.remove(f"{url}/part")
    assert disk.names(url) == ["log"]
    for ask in (disk.read, disk.modified):
        with pytest.raises(FileNotFoundError):
            ask(f"{url}/part")
    assert disk._scratch == {}, "what was written or removed is not kept in memory"
    with pytest.raises(SinkError, match="is not compacted"):
        disk.touch(f"{url}/log/1")
