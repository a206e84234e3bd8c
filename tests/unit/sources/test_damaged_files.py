"""Files that are none of their kind, or go or are damaged while they are read."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from esault.errors import SourceError
from esault.sources import ArrowFiles, ParquetFiles
from esault.topology.context import Context

ROWS = pa.table({"n": list(range(1000)), "s": [f"text {i}" for i in range(1000)]})


def split(source):
    """The first split of a source that was opened."""
    source.open(Context("rows"))
    return source.splits()[0]


@pytest.mark.parametrize(
    ("source", "write"),
    [
        (ParquetFiles, lambda path: pq.write_table(ROWS, path, compression="none", use_dictionary=False)),
        (ArrowFiles, lambda path: feather.write_feather(ROWS, path, compression="lz4")),
    ],
)
def test_what_is_damaged_or_gone_is_said_with_its_name(source, write, tmp_path):
    path = tmp_path / "rows.file"
    write(path)
    made = source(path)
    name = split(made)
    good = path.read_bytes()
    path.unlink()
    with pytest.raises(SourceError, match=r"rows\.file: .*(gone|no such file|No such file)"):
        made.open_split(name, None)
    path.write_bytes(b"nothing of the kind" * 9)
    with pytest.raises(SourceError, match=r"rows\.file: is no readable"):
        made.open_split(name, None)
    path.write_bytes(good[:50] + b"\xff" * (len(good) * 3 // 4) + good[50 + len(good) * 3 // 4 :])
    with pytest.raises(SourceError, match=r"rows\.file: is no readable"):
        made.open_split(name, None).read(1000)
