"""Sources of files read objects of a real S3: the laws of the contract, what is found, and an object that is replaced."""

from __future__ import annotations

import gzip
import io
import json
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import depth
import psutil
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
import s3_server
from tcp_proxy import Proxy
from waiting import until

from esault import SinkError, SourceError, Topology, TopologyError, TopologyFailed
from esault.answer_watch import AnswerWatch
from esault.object_store import object_file, store
from esault.sinks import Collect
from esault.sources import (
    ArrowFiles,
    CsvFiles,
    Directory,
    JsonFiles,
    ParquetFiles,
    TextFiles,
    batch_reader,
    line_file,
    object_list,
)
from esault.testing import LocalRuntime
from esault.testing.contract import check_spout
from esault.topology.context import Context
from esault.topology.spout import EndOfStream

ROWS = pa.table({"id": range(40), "name": [f"n{i}" for i in range(40)]})


def written(write, *arguments, **options):
    out = io.BytesIO()
    write(*arguments, out, **options)
    return out.getvalue()


def lines(server, bucket, prefix="in/"):
    for number in range(3):
        server.put(bucket, f"{prefix}{number}.txt", "".join(f"{number}-{i}\n" for i in range(9)))
    server.put(bucket, f"{prefix}sub/a#b%20.gz", gzip.compress(b"one\ntwo\nthree"))
    server.put(bucket, f"{prefix}empty.txt", b"")
    server.put(bucket, f"{prefix}.hidden", b"not this\n")
    server.put(bucket, prefix, b"")  # as the console of Amazon makes a folder


def rows_of(spout, parallelism=1):
    t = Topology("read")
    t.spout("rows", spout, parallelism=parallelism).sink("out", Collect())
    local = LocalRuntime(t)
    local.run_until_drained()
    return local.emitted("rows")


@pytest.fixture
def waiting(monkeypatch):
    """Reads wait for the store: that nothing comes for a while must not be taken for the end."""
    monkeypatch.setattr(object_file, "_MOMENT", 60.0)
    monkeypatch.setattr(batch_reader, "_MOMENT", 60.0)
    monkeypatch.setattr(object_list, "_LONG", 60.0)


def test_the_laws_of_a_source_hold_for_lines(server, bucket, monkeypatch, waiting):
    monkeypatch.setattr(object_file, "BLOCK", 7)
    monkeypatch.setattr(line_file, "CHUNK", 5)
    server.put(bucket, "in/a.txt", "0\n12345678\n2\n")
    server.put(bucket, "in/b.gz", gzip.compress(b"one\ntwo\nthree"))
    url = f"s3://{bucket}/in"
    assert check_spout(lambda: TextFiles(url), parts=2, positions=3) == 6
    grow = lambda: server.put(bucket, "in/z.txt", "new\nlines\n")
    assert check_spout(lambda: Directory(url, every=0.05), parts=2, positions=2, idle=5, grow=grow) == 6


def test_the_laws_of_a_source_hold_for_records(server, bucket, waiting):
    server.put(bucket, "j/a.jsonl", "".join(json.dumps({"id": i}) + "\n" for i in range(9)))
    server.put(bucket, "c/a.csv", "id,name\n" + "".join(f'{i},"n\n{i}"\n' for i in range(9)))
    server.put(bucket, "p/a.parquet", written(pq.write_table, ROWS, row_group_size=15))
    server.put(bucket, "a/a.arrow", written(feather.write_feather, ROWS, chunksize=15))
    root, few = f"s3://{bucket}", {"parts": 2, "positions": 2}
    assert check_spout(lambda: JsonFiles(f"{root}/j/a.jsonl", key="id"), **few) == 9
    assert check_spout(lambda: ParquetFiles(f"{root}/p", key="id", split_size=800), **few) == 40
    if depth.PROFILE == "deep":  # those of files on disk are in tests/contract/test_sources.py
        assert check_spout(lambda: CsvFiles(f"{root}/c", key="id"), **few) == 9
        assert check_spout(lambda: ArrowFiles(f"{root}/a/*.arrow", key="id"), **few) == 40


def test_what_is_read_is_named_by_its_address(server, bucket):
    lines(server, bucket)
    root = f"s3://{bucket}"
    found = rows_of(Directory(f"{root}/in", every=None), 2)
    assert {key for key, _ in found} == {f"{root}/in/{name}" for name in ("0.txt", "1.txt", "2.txt", "sub/a#b%20.gz")}
    assert [value for key, value in found if key.endswith("gz")] == ["one", "two", "three"]
    assert {key for key, _ in rows_of(TextFiles([f"{root}/in/[01].txt", f"{root}/in/**/*.gz"]))} == {
        f"{root}/in/{name}" for name in ("0.txt", "1.txt", "sub/a#b%20.gz")
    }
    server.put(bucket, "p/a.parquet", written(pq.write_table, ROWS))
    assert rows_of(ParquetFiles(f"{root}/p", columns=["name"]))[0] == (f"{root}/p/a.parquet", {"name": "n0"})


def test_a_bad_line_is_named_with_its_object(server, bucket):
    server.put(bucket, "j/a.jsonl", '{"id": 1}\n{"id": 2}\nno\n')
    with pytest.raises(TopologyFailed, match=rf"s3://{bucket}/j/a.jsonl, line 3: no JSON"):
        rows_of(JsonFiles(f"s3://{bucket}/j", key="id"))
    server.put(bucket, "c/a.csv", "id,name\n1,a\n2\n")
    with pytest.raises(TopologyFailed, match=rf"s3://{bucket}/c/a.csv, line 3: has 1 fields"):
        rows_of(CsvFiles(f"s3://{bucket}/c"))
    for source in (ParquetFiles(f"s3://{bucket}/c", pattern="*"), ArrowFiles(f"s3://{bucket}/c")):
        with pytest.raises(SourceError, match=rf"s3://{bucket}/c/a.csv: is no readable"):
            source.check()


def names(source):
    while (found := source.splits()) is None:
        pass
    return found


def read_some(reader):
    while not (rows := reader.read(10)):
        pass
    return rows


def test_an_object_that_is_replaced_while_it_is_read_is_refused(server, bucket, monkeypatch):
    monkeypatch.setattr(object_file, "BLOCK", 100)
    monkeypatch.setattr(line_file, "CHUNK", 100)
    old, new = ("id\n" + f"{word}\n" * 300 for word in ("old", "new"))
    url, files = f"s3://{bucket}/in", {"a": old, "b": old, "c": old}
    for name, text in files.items():
        server.put(bucket, f"in/{name}", text)
    whole = TextFiles(f"{url}/a")
    whole.open(Context("rows"))
    splits: list[Any] = [Directory(f"{url}/b", every=None), CsvFiles(f"{url}/c")]
    readers = [whole, *(source.open_split(names(source)[0], None) for source in splits)]
    for reader in readers:
        read_some(reader)
    positions = [reader.position() for reader in readers]
    for name in files:
        server.put(bucket, f"in/{name}", new)
    for reader in readers:
        rows = []
        with pytest.raises(SourceError, match=r"in/[abc]: was replaced while.*never mixed: put the old content back"):
            while True:
                rows.append(getattr(found := reader.read(10), "values", found))
        assert "old" in str(rows) and "new" not in str(rows)
    # and by a run that goes on
    whole.open(Context("rows"))
    with pytest.raises(
        SourceError, match=r"in/a: an earlier run stopped in this object, and it is gone or was replaced"
    ):
        whole.seek(positions[0])


def test_an_object_that_is_replaced_is_a_split_of_its_own(server, bucket):
    server.put(bucket, "in/a", "old\n")
    source = Directory(f"s3://{bucket}/in", every=0.05)
    before = names(source)
    server.put(bucket, "in/a", "new\n")
    (after,) = names(source)
    assert before != [after]
    assert read_some(source.open_split(after, None)) == [(f"s3://{bucket}/in/a", "new")]


def test_what_is_wrong_is_said_with_the_remedy(server, bucket, monkeypatch):
    def refusal(source):
        with pytest.raises(SourceError) as caught:
            source.check()
        return str(caught.value)

    assert "there is no such object, and none below it that fits" in refusal(TextFiles(f"s3://{bucket}/none"))
    assert "no object fits this glob" in refusal(TextFiles(f"s3://{bucket}/*.txt"))
    assert "make the bucket, or correct its name" in refusal(Directory("s3://no-such-place/in"))
    assert "there is no object store x3://" in refusal(TextFiles("x3://b/in"))
    assert "correct storage_options" in refusal(TextFiles(f"s3://{bucket}/in", storage_options={"kye": "x"}))
    away = {"endpoint_url": "http://127.0.0.1:9", "key": "x", "secret": "y"}
    assert "mend the network, or AWS_ENDPOINT_URL" in refusal(Directory("s3://b/in", storage_options=away))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/none")
    assert "set AWS_ACCESS_KEY_ID" in refusal(TextFiles(f"s3://{bucket}/in", storage_options={"use_ssl": False}))
    with pytest.raises(TopologyError, match=r"objects of a store do not grow; take Directory"):
        TextFiles(f"s3://{bucket}/in", follow=True)


def test_what_is_not_allowed_is_said(server, bucket, monkeypatch):
    import boto3

    server.put(bucket, "in/a", "one\n")
    iam = boto3.client(
        "iam",
        endpoint_url=server.url,
        **{name.lower(): value for name, value in list(s3_server.KEYS.items())[:2]},
        region_name="us-east-1",
    )
    iam.create_user(UserName="reader")
    allowed = {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    iam.put_user_policy(UserName="reader", PolicyName="p", PolicyDocument=policy)
    key = iam.create_access_key(UserName="reader")["AccessKey"]
    server.ask_for_rights(True)
    try:
        with pytest.raises(SourceError, match=r"in: .*the store does not know these credentials"):
            TextFiles(f"s3://{bucket}/in").check()
        options = {"key": key["AccessKeyId"], "secret": key["SecretAccessKey"]}
        with pytest.raises(
            SourceError, match=r"in/a: Access Denied; allow these credentials s3:ListBucket, s3:GetObject"
        ):
            TextFiles(f"s3://{bucket}/in", storage_options=options).check()
    finally:
        server.ask_for_rights(False)


def test_a_store_that_is_away_is_waited_for_and_that_is_said_once(server, bucket, monkeypatch):
    told = []
    # no logger: what other tests make of those stays
    monkeypatch.setattr(store, "_logger", SimpleNamespace(warning=lambda text, *of: told.append(text % of)))
    monkeypatch.setattr(object_file, "BLOCK", 100)
    monkeypatch.setattr(line_file, "CHUNK", 100)
    monkeypatch.setattr(store, "AGAIN_AT_MOST", 0.05)
    server.put(bucket, "in/a", "1\n" * 500)
    server.put(bucket, "in/a.parquet", written(pq.write_table, ROWS))
    door = Proxy(server.port)
    door.open()
    try:
        options = {"endpoint_url": f"http://127.0.0.1:{door.port}"}
        source = Directory(f"s3://{bucket}/in/a", every=0.05, storage_options=options)
        reader = source.open_split(names(source)[0], None)
        rows = read_some(reader)
        table = ParquetFiles(f"s3://{bucket}/in", storage_options=options)
        batches = table.open_split(names(table)[0], None)
        door.shut()
        still = 0
        while still < 20:  # what its threads had asked for comes yet
            more = reader.read(1000)
            rows += more
            still = 0 if more else still + 1
            time.sleep(0.01)
        assert not [row for _ in range(20) for row in (*reader.read(1000), *batches.read(1000))]
        assert len(names(source)) == 1  # as it knew last
        began = time.monotonic()
        while not told and time.monotonic() < began + 60:  # its threads ask beside
            assert not (*reader.read(1000), *batches.read(1000))
            time.sleep(0.01)
        door.open()
        with pytest.raises(EndOfStream):
            while True:
                rows += reader.read(1000)
        assert len(rows) == 500
        assert len(read_some(batches)) == 10
        said = [text.partition(": ")[2].partition(":")[0] for text in told]
        assert said == ["waits for the object store", "goes on"]
    finally:
        door.shut()


def test_a_store_that_stands_still_is_said_and_gone_on_with(server, bucket, monkeypatch):
    told = []
    monkeypatch.setattr(store, "_logger", SimpleNamespace(warning=lambda text, *of: told.append(text % of)))
    monkeypatch.setattr(store, "_watch", AnswerWatch(0.1))
    monkeypatch.setattr(store, "_SLOWEST", 1 << 40)
    address = f"s3://{bucket}/out/a"
    asked = store.ObjectStore(SinkError, "s3", {"endpoint_url": server.url})
    asked.write(address, b"1")
    process = psutil.Process(server._process.pid)
    with ThreadPoolExecutor(1) as other:
        process.suspend()
        try:
            written = other.submit(asked.write, address, b"2")
            until(lambda: [line for line in told if line.startswith(address)])
            assert not written.done()
        finally:
            process.resume()
        written.result(60)
    # a thread of a test before may still ask a server of its own
    assert [line for line in told if line.startswith(address)] == [
        f"{address}: waits for the object store: its answer takes longer than 0 s",
        f"{address}: goes on: the object store answers",
    ]
    assert server.body(bucket, "out/a") == b"2"


def test_other_stores_are_read_by_the_same_code(tmp_path):
    import fsspec

    fsspec.filesystem("memory").pipe({"/box/a.txt": b"one\ntwo\n", "/box/sub/b.gz": gzip.compress(b"three\n")})
    assert [value for _, value in rows_of(TextFiles("memory://box"))] == ["one", "two", "three"]
    (tmp_path / "a b.txt").write_text("here\n")
    assert rows_of(TextFiles(f"file://{tmp_path}/a%20b.txt")) == [(f"{tmp_path}/a b.txt", "here")]
