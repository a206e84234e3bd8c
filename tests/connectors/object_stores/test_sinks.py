"""JsonLines below a prefix of a real S3: the laws of the contract, what is there already, and what a crash leaves."""

from __future__ import annotations

import io
import json

import pyarrow.parquet as pq
import pytest

from esault import SinkError, Topology
from esault.background import in_background
from esault.object_store.store import ObjectStore
from esault.sinks import Collect, JsonLines, Parquet, SparkTable, row_objects
from esault.sinks.landing import parts
from esault.sources import Items, JsonFiles
from esault.testing import LocalRuntime
from esault.topology.context import Context
from esault.topology.sink import Row, RunInfo


def there(server, bucket, prefix):
    """Pairs that a reader sees, who leaves out what begins with a dot."""
    keys = [key for key in server.keys(bucket, f"{prefix}/") if "/." not in key]
    rows = [json.loads(line) for key in keys for line in server.body(bucket, key).splitlines()]
    return [(row["key"], row["value"]) for row in rows]


def test_what_is_written_is_read_back(server, bucket, monkeypatch):
    monkeypatch.setattr(row_objects, "_SPILL", 1000)
    url = f"s3://{bucket}/rows"
    t = Topology("there")
    rows = t.spout("rows", Items([(i % 7, i) for i in range(500)]))
    rows.sink("out", JsonLines(url))
    LocalRuntime(t, real=True).run_until_drained()
    assert not any(server.body(bucket, key) for key in server.keys(bucket) if "/.staged" in key)
    back = Topology("back")
    back.spout("rows", JsonFiles(url, key="key")).sink("out", Collect())
    local = LocalRuntime(back)
    local.run_until_drained()
    assert sorted(row["value"] for _, row in local.emitted("rows")) == list(range(500))
    with pytest.raises(SinkError, match=r'rows: there are objects already, such as s3://.*say mode="append"'):
        JsonLines(url).begin(RunInfo("r", "t", "u"))
    JsonLines(url, "append").begin(RunInfo("r", "t", "u"))
    assert len(there(server, bucket, "rows")) == 500
    JsonLines(url, "replace").begin(RunInfo("r", "t", "u"))
    assert not server.keys(bucket)


def test_a_commit_that_comes_again_does_not_bring_back_what_was_taken_away(server, bucket):
    sink = JsonLines(f"s3://{bucket}/rows")
    sink.open(Context("out", lineage="l"))

    def prepared(epoch):
        sink.write([Row("a", epoch, 0.0)])
        return sink.prepare(epoch).result()

    first = prepared(0)
    sink.commit(0, first).result()
    (shown,) = [key for key in server.keys(bucket) if "/." not in key]
    server.client.delete_object(Bucket=bucket, Key=shown)
    sink.commit(0, first).result()
    assert not there(server, bucket, "rows")
    sink.commit(1, prepared(1)).result()
    assert there(server, bucket, "rows") == [("a", 1)]
    assert len(server.keys(bucket)) == 2  # what says that the last one is done stays until the next


def test_what_is_wrong_is_said_with_the_remedy(server, bucket):
    with pytest.raises(SinkError, match=r"s3://no-such-place/rows.*make the bucket, or correct its name"):
        JsonLines("s3://no-such-place/rows").check()
    sink = JsonLines(f"s3://{bucket}/rows")
    sink.open(Context("out", lineage="l"))
    with pytest.raises(SinkError, match=r"\.staged/l/gone: the rows to commit are gone; put the object back"):
        sink.commit(1, ("l/gone",)).result()


def test_a_table_is_written_and_read_by_its_log(server, bucket):
    url = f"s3://{bucket}/table"
    for mode in ("error", "append"):
        t = Topology("there")
        rows = t.spout("rows", Items([(f"k{i % 7}", i) for i in range(500)]))
        rows.sink("out", Parquet(url, {"word": str, "n": int}, mode))
        LocalRuntime(t, real=True, run=mode).run_until_drained()
    names = parts(url)
    assert all(name.startswith(f"{url}/part-") for name in names)
    tables = [pq.read_table(io.BytesIO(server.body(bucket, name.partition(f"{bucket}/")[2]))) for name in names]
    assert sorted(n for table in tables for n in table["n"].to_pylist()) == sorted([*range(500), *range(500)])
    with pytest.raises(SinkError, match="exists and has rows"):
        Parquet(url, {"word": str, "n": int}).begin(RunInfo("r", "t", "u"))
    with pytest.raises(SinkError, match=r"has other columns|word"):
        Parquet(url, {"word": int, "n": int}, "append").begin(RunInfo("r", "t", "u"))
    with pytest.raises(SinkError, match=r"a table with primary_key .* land it on a disk, or take DeltaSink"):
        SparkTable(url, {"word": str, "n": int}, primary_key="word")
    server.put(bucket, "other/file", "x")
    with pytest.raises(SinkError, match="holds other files"):
        Parquet(f"s3://{bucket}/other", {"word": str, "n": int}).check()


def test_of_two_runs_that_write_a_table_the_first_is_refused(server, bucket):
    def opened(run):
        sink = Parquet(f"s3://{bucket}/table", {"word": str, "n": int}, "append")
        sink.begin(RunInfo(run, "t", "u", lineage=run))
        sink.open(Context("u", run=run, in_thread=in_background))
        sink.write([Row("k", 1, 0.0)])
        return sink, sink.prepare(1).result()

    first, handle = opened("first")
    second, later = opened("second")
    with pytest.raises(SinkError, match=r"is now written by run second; what is left of run first may not add to it"):
        first.commit(1, handle).result()
    second.commit(1, later).result()
    second.commit(1, later).result()
    assert len(parts(f"s3://{bucket}/table")) == 1


def test_of_those_who_put_an_object_at_once_one_succeeds(server, bucket):
    store = ObjectStore.of(SinkError, "s3://", None)
    for number in range(5):
        url = f"s3://{bucket}/entry-{number}"
        tries = [in_background(lambda url=url, n=n: store.write_absent(url, b"%d" % n)) for n in range(8)]
        assert sum(each.result() for each in tries) == 1


def test_a_place_that_is_corrected_in_the_environment_counts_in_the_same_process(server, bucket, monkeypatch):
    sink = JsonLines(f"s3://{bucket}/rows")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    before = ObjectStore.of(SinkError, f"s3://{bucket}", None)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "land")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    after = ObjectStore.of(SinkError, f"s3://{bucket}", None)
    assert before is not after is ObjectStore.of(SinkError, f"s3://{bucket}", None)
    sink.check()
