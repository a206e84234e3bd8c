"""A file with the state of some keys: all of it comes back, and a damaged one is never taken for whole."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esault.errors import CheckpointError
from esault.payload.codec import Codec
from esault.state import piece_file
from esault.state.piece_file import PieceWriter, check_piece, read_piece, read_schema

keys = st.recursive(
    st.text(max_size=4) | st.integers() | st.binary(max_size=4),
    lambda k: st.lists(k, max_size=2).map(tuple),
    max_leaves=3,
)
items = st.lists(st.tuples(keys, st.none() | st.binary(max_size=50)), max_size=12)


def written(path, items, schema=None):
    writer = PieceWriter(path, True, Codec())
    for key, state in items:
        writer.add(key, state)
    return writer.finish(schema or {})


@settings(deadline=None)
@given(items, st.sampled_from([1, 60, 256 << 10]))
def test_all_comes_back_in_order(tmp_path_factory, items, block):
    folder = tmp_path_factory.mktemp("piece")
    before, piece_file.BLOCK_BYTES = piece_file.BLOCK_BYTES, block
    try:
        piece = written(folder / "p", items)
    finally:
        piece_file.BLOCK_BYTES = before
    check_piece(folder / "p", piece)
    assert list(read_piece(folder / "p")) == items
    assert (piece.keys, piece.size, piece.base) == (len(items), os.path.getsize(folder / "p"), True)
    assert read_schema(folder / "p") == {} and os.listdir(folder) == ["p"]


def test_no_byte_may_change_and_none_be_missing(tmp_path):
    path = tmp_path / "p"
    piece = written(path, [("a", b"state"), ("b", None), (("c", 1), b"")])
    data = path.read_bytes()
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        with pytest.raises(CheckpointError):
            check_piece(path, piece)
        with pytest.raises(CheckpointError):
            list(read_piece(path))
        path.write_bytes(data[:at])
        with pytest.raises(CheckpointError):
            check_piece(path, piece)
        with pytest.raises(CheckpointError):
            list(read_piece(path))
        with pytest.raises(CheckpointError):
            read_schema(path)
    path.write_bytes(data + b"x")
    with pytest.raises(CheckpointError, match="bytes"):
        check_piece(path, piece)


def test_files_of_others_and_of_newer_versions_are_told_apart(tmp_path):
    path = tmp_path / "p"
    for data in (b"", b"PAR1", b"eSaultS", b"x" * 100):
        path.write_bytes(data)
        with pytest.raises(CheckpointError, match="no state file of eSault"):
            list(read_piece(path))
    path.write_bytes(b"eSaultST\0\x63")
    with pytest.raises(CheckpointError, match="newer eSault"):
        read_schema(path)
    with pytest.raises(CheckpointError, match="is missing"):
        list(read_piece(tmp_path / "none"))
    with pytest.raises(CheckpointError, match="cannot be read"):
        list(read_piece(tmp_path))


def test_a_file_of_the_first_format_is_read(tmp_path):
    path = tmp_path / "p"
    written(path, [("a", b"1"), ("b", b"2")])
    data = path.read_bytes()
    end = data.index(b"\0\0\0\0\0\0\0\x02") + 8
    path.write_bytes(data[:8] + b"\0\x01" + data[10:end])
    assert list(read_piece(path)) == [("a", b"1"), ("b", b"2")] and read_schema(path) is None


def test_one_that_is_given_up_leaves_nothing(tmp_path):
    writer = PieceWriter(tmp_path / "p", False, Codec())
    writer.add("a", b"x")
    writer.drop()
    writer.drop()
    assert os.listdir(tmp_path) == []


def test_where_nothing_can_be_written_the_folder_is_named(tmp_path):
    with pytest.raises(CheckpointError, match="cannot be written to .*none"):
        PieceWriter(tmp_path / "none" / "p", True, Codec())
