"""Entries of a table's log: each comes back, and no damaged or foreign one is taken for whole."""

from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.errors import SinkError
from esault.sinks.landing.entry import Entry, Input, Part, Txn, decode, encode, plain_name, seal
from esault.sinks.landing.schema import Column

words = st.text(max_size=6)
names = st.sampled_from(["part-1.parquet", "day=1/part-2.parquet", "a=b=c/d=ü x/part-3.parquet", "day=/p"])
entries = st.builds(
    Entry,
    kind=st.sampled_from(["create", "begin", "replace", "rows", "compact", "end"]),
    time=words,
    run=st.none() | words,
    txn=st.none() | st.builds(Txn, words, st.integers(0, 2**60)),
    add=st.lists(st.builds(Part, names, st.integers(0), st.integers(0), st.booleans()), max_size=2).map(tuple),
    remove=st.lists(names, max_size=2).map(tuple),
    schema=st.none() | st.just((Column("a", "long", True), Column("ü", "string", False))),
    ok=st.none() | st.booleans(),
    distinct=st.none() | st.booleans(),
    inputs=st.none() | st.lists(st.builds(Input, words, st.integers(0), words), max_size=2).map(tuple),
    primary_key=st.lists(words, max_size=2).map(tuple),
    newest=st.none() | st.integers(),
)


@given(entries)
def test_an_entry_comes_back_and_is_one_line(entry):
    data = encode(entry)
    assert decode(data, "f") == entry and data.count(b"\n") == 1
    assert json.loads(data)["format"] == (2 if entry.primary_key else 1)


def test_no_byte_may_change_and_none_be_missing():
    data = encode(Entry("rows", run='r",crc32":"', add=(Part("part-ü.parquet", 1, 2),)))
    assert decode(data, "f").run == 'r",crc32":"'
    for at in range(len(data)):
        for other in (data[:at], data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]):
            with pytest.raises(SinkError, match="^f "):
                decode(other, "f")


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b"7", b"null", b"\xff", b'{"format": "1"}', b'{"commitInfo": {}}\n{}']
)
def test_a_foreign_file_is_told(data):
    with pytest.raises(SinkError, match="^f (was not written by eSault|is damaged)"):
        decode(data, "f")


def test_a_newer_one_says_what_to_do():
    with pytest.raises(SinkError, match="newer eSault"):
        decode(seal({"format": 3}), "f")


def changed(**more):
    value = json.loads(encode(Entry("rows")))
    del value["crc32"]
    return seal({**value, **more})


@pytest.mark.parametrize(
    "more",
    [
        {"kind": "other"},
        {"kind": None},
        {"txn": {"app": "a"}},
        {"txn": "a"},
        {"add": None},
        {"add": [1]},
        {"add": [{"path": "../x", "rows": 1, "bytes": 1}]},
        {"add": [{"path": "p", "rows": "x", "bytes": 1}]},
        {"remove": ["/etc/passwd"]},
        {"remove": [7]},
        {"inputs": [["a"]]},
        {"newest": "x"},
    ],
)
def test_members_of_another_form_are_damage(more):
    with pytest.raises(SinkError, match="a member is missing or wrong"):
        decode(changed(**more), "f")


@pytest.mark.parametrize("name", ["p", "a=1/p", "a=/p", "a=../p", "...", "a=1/b=2/ü"])
def test_names_within_the_folder_are_taken(name):
    assert plain_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "/p", "..", ".", "../p", "a/p", "a=1/..", "a=1/../p", "a=1/", "=1/p", "a\\p", "a=1//p", None, 7]
)
def test_names_that_would_lead_elsewhere_are_refused(name):
    with pytest.raises(ValueError, match="no name of a part"):
        plain_name(name)


def test_the_checksum_is_that_of_all_before_it():
    data = seal({"format": 1, "a": "ü"}).decode()
    body, _, crc = data.rpartition(',"crc32":"')
    assert int(crc[:8], 16) == zlib.crc32(body.encode())
