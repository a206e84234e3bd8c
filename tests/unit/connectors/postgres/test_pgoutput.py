"""Messages of logical replication, as PostgreSQL's documentation lays them out."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.connectors.postgres.pgoutput import (
    UNCHANGED,
    Begin,
    Change,
    Commit,
    Decoder,
    Relation,
    Truncate,
    whole,
)

#: int4, text
TYPES = (23, 25)


def load(type, text):
    return int(text) if type == 23 else text.decode()


def relation(id=7, schema="public", name="t", identity="d", columns=("id", "what"), keys=(True, False)):
    data = b"R" + struct.pack(">I", id) + schema.encode() + b"\0" + name.encode() + b"\0" + identity.encode()
    data += struct.pack(">H", len(columns))
    for column, key, type in zip(columns, keys, TYPES):
        data += struct.pack(">B", key) + column.encode() + b"\0" + struct.pack(">Ii", type, -1)
    return data


def row(*cells):
    data = struct.pack(">H", len(cells))
    for cell in cells:
        if cell is None:
            data += b"n"
        elif cell is UNCHANGED:
            data += b"u"
        else:
            text = str(cell).encode()
            data += b"t" + struct.pack(">I", len(text)) + text
    return data


def change(kind, *parts, id=7):
    """`parts`: marks and rows."""
    return kind + struct.pack(">I", id) + b"".join(part if isinstance(part, bytes) else row(*part) for part in parts)


@pytest.fixture
def decoder():
    made = Decoder(load)
    assert made.decode(relation()) is None
    return made


CELLS = st.tuples(st.one_of(st.none(), st.integers()), st.one_of(st.none(), st.just(UNCHANGED), st.text(max_size=3)))


@given(new=CELLS, old=st.one_of(st.none(), CELLS), full=st.booleans())
def test_rows_come_as_they_were_sent(new, old, full):
    decoder = Decoder(load)
    decoder.decode(relation())
    t = Relation(7, "public", "t", "d", ("id", "what"), (True, False), TYPES)
    assert decoder.decode(change(b"I", b"N", new)) == Change("insert", t, None, new)
    before = () if old is None else (b"O" if full else b"K", old)
    assert decoder.decode(change(b"U", *before, b"N", new)) == Change("update", t, old, new)
    assert decoder.decode(change(b"D", b"K", new)) == Change("delete", t, new, None)


def test_transactions_have_places_and_times(decoder):
    assert decoder.decode(b"B" + struct.pack(">QQI", 900, 0, 1)) == Begin(900, 946_684_800.0)
    assert decoder.decode(b"B" + struct.pack(">QQI", 1, 1_500_000, 1)).time == 946_684_801.5
    assert decoder.decode(b"C\0" + struct.pack(">QQQ", 900, 950, 0)) == Commit(950)


def test_a_table_may_change_and_then_is_described_anew(decoder):
    decoder.decode(relation(schema="", identity="f", columns=("id",), keys=(False,)))
    found = decoder.decode(change(b"I", b"N", (5,)))
    assert found.relation == Relation(7, "pg_catalog", "t", "f", ("id",), (False,), (23,))
    assert found.new == (5,)


def test_tables_that_were_emptied_are_those_that_are_known(decoder):
    decoder.decode(relation(id=8, name="other"))
    emptied = decoder.decode(b"T" + struct.pack(">IBIII", 3, 0, 8, 9, 7))
    assert isinstance(emptied, Truncate)
    assert [each.name for each in emptied.relations] == ["other", "t"]


@pytest.mark.parametrize("kind", [b"O", b"Y", b"M"])
def test_what_says_nothing_about_rows_is_passed_over(decoder, kind):
    assert decoder.decode(kind + b"whatever") is None


def test_a_message_of_another_version_is_refused(decoder):
    with pytest.raises(ValueError, match="a message of kind b'S', which version 1"):
        decoder.decode(b"S" + bytes(5))


@pytest.mark.parametrize(
    ("identity", "old", "new", "found"),
    [
        ("f", (1, "old"), (1, "new"), (1, "new")),
        ("f", (1, "old"), (1, UNCHANGED), (1, "old")),
        ("f", None, (1, UNCHANGED), (1, UNCHANGED)),
        # of a key the other columns are not known, though they stand there as None
        ("d", (1, None), (1, UNCHANGED), (1, UNCHANGED)),
        ("f", (1,), (1, UNCHANGED), (1, UNCHANGED)),
        ("f", (1, "old"), None, None),
    ],
)
def test_what_was_not_sent_is_that_of_the_old_row_where_all_of_it_is_known(identity, old, new, found):
    t = Relation(7, "public", "t", identity, ("id", "what"), (True, False), TYPES)
    assert whole(Change("update", t, old, new)) == found
