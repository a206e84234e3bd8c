"""Sources of files, reading objects of a store in memory."""

from __future__ import annotations

import gzip
import io
from itertools import count

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from esault.errors import SourceError
from esault.object_store.store import ObjectStore
from esault.sources import ArrowFiles, CsvFiles, Directory, JsonFiles, ParquetFiles, TextFiles
from esault.testing.contract import check_spout

pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'esault[s3]'")

numbers = count()
ROWS = pa.table({"id": [0, 1, 2, 3, 4], "name": list("abcde")})
LINES = b"".join(b'{"id": %d}\n' % i for i in range(5))


def written(write, **options):
    """The bytes of a file that `write` writes."""
    file = io.BytesIO()
    write(ROWS, file, **options)
    return file.getvalue()


def bucket(**files):
    url = f"memory://objects{next(numbers)}/in"
    store = ObjectStore.of(SourceError, url, None)
    for name, data in files.items():
        store.write(f"{url}/{name}", data)
    return url


@pytest.mark.parametrize(
    ("source", "data"),
    [
        (TextFiles, LINES),
        (TextFiles, gzip.compress(LINES)),
        (Directory, LINES),
        (Directory, gzip.compress(LINES)),
        (JsonFiles, LINES),
        (CsvFiles, b"id,name\n0,a\n1,b\n2,c\n3,d\n4,e\n"),
        (ParquetFiles, written(pq.write_table, row_group_size=2)),
        (ArrowFiles, written(feather.write_feather, chunksize=2, compression="uncompressed")),
    ],
    ids=lambda each: each.__name__ if isinstance(each, type) else each[:2].hex(),
)
def test_the_laws_of_a_source_hold(source, data):
    ending = ".gz" if data[:2] == b"\x1f\x8b" else ""
    url = bucket(**{f"a{ending}": data, f"b{ending}": data})
    assert check_spout(lambda: source(url, pattern="*"), positions=2) == 10


def test_an_object_that_is_shorter_than_what_was_read_of_it_is_another_one():
    url = bucket(**{"a.gz": gzip.compress(LINES)})
    spout = Directory(url)
    (name,) = spout.splits()
    reader = spout.open_split(name, 10_000)
    with pytest.raises(SourceError, match="is shorter than what an earlier run has read of it"):
        for _ in range(99):
            reader.read(9)
    with pytest.raises(SourceError, match=r"up to byte 10000"):
        spout.open_split(Directory(bucket(a=LINES)).splits()[0], 10_000)
