"""Control messages between hosts: they arrive as what they were, and what is none does nothing."""

from __future__ import annotations

import dataclasses
import pickle
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.cluster.codec import MAX_DEPTH, _known, pack, unpack
from esault.cluster.messages import FromSubUnits, Hello, ShippedFile, StartHost, ToKeeper, ToSubUnit
from esault.errors import FrameError
from esault.messages.checkpoint import Piece, Restore, Snapped
from esault.messages.control import AckRouting, Build, Fork, Table
from esault.messages.delivery import Delivery
from esault.messages.probe import Counters, KeyLoad, ProbeReading, Usage
from esault.messages.settings import Settings
from esault.messages.status import Status, SubUnitCounts

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**100), max_value=2**100)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.decimals(allow_nan=False),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def test_messages_arrive_as_what_they_were():
    restore = Restore(3, ((Piece("a", True, 1, 2, 3),),), ((0, 2**64 - 1),), True)
    build = Build("count", 7, 2, "here", "run", Settings(), restore=restore)
    status = Status(
        7,
        1.5,
        SubUnitCounts(1, 2),
        durations={"latency": (0.1, ((3, 4),))},
        usage=Usage(1.0, 0.5, 2),
        key_load=KeyLoad((1, 2), (("k", 3, 0.5),)),
        sent={1: 2},
    )
    for message in (
        ToKeeper(Fork(build, 3)),
        ToSubUnit(7, (Table("count", 1, ((0, 7),), {7: ("e", "x", 1)}), AckRouting(1, {7: "x"}))),
        FromSubUnits((status, Snapped(7, 3, handles={3: {"s": ("folder", ("a", "b"))}}))),
        ProbeReading(7, 1, 0.5, counters=Counters(backlog=3)),
        StartHost(
            "r",
            "n",
            2,
            "f",
            "a.py",
            None,
            (ShippedFile("a.py", "h", b"x"),),
            "/",
            {"p": Path("/a"), "q": [1, (2,)]},
            Settings(),
            {},
            None,
            0.1,
            0.0,
            "the run's key",
        ),
    ):
        back = unpack(pack(message))
        assert back == message
        assert type(back) is type(message)
    assert type(unpack(pack(ToSubUnit(1, ((1, [2]),)))).messages[0]) is tuple


@pytest.mark.parametrize("delivery", Delivery)
def test_the_promise_of_a_run_travels_as_its_word(delivery):
    data = pack(ToSubUnit(1, (Settings(delivery=delivery), delivery)))
    assert data.count(delivery.value.encode()) == 2
    settings, word = unpack(data).messages
    assert settings.delivery is delivery
    assert type(word) is str and word == delivery == str(delivery)


def test_a_word_that_promises_nothing_is_refused():
    with pytest.raises(ValueError, match="delivery='exactly' is unknown; write one of 'alo', 'eo', 'none'"):
        Settings(delivery="exactly")


def test_all_messages_are_known():
    names = {cls.__name__ for cls in _known().values()}
    assert {
        "Build",
        "Table",
        "Status",
        "HoldRanges",
        "HandOverRanges",
        "Restore",
        "Copy",
        "Settings",
        "StartHost",
    } <= names
    assert all(dataclasses.is_dataclass(cls) or issubclass(cls, tuple) for cls in _known().values())


@given(VALUES)
def test_plain_values_keep_their_types(value):
    back = unpack(pack(ToSubUnit(1, (value,)))).messages[0]
    assert repr(back) == repr(value)


def test_what_sinks_prepare_may_hold_moments():
    handle = {"at": datetime(2026, 1, 1, tzinfo=timezone.utc), "d": Decimal("1.5"), "s": {1, 2}, "f": frozenset({3})}
    assert unpack(pack(Snapped(1, 2, handles={2: {"s": handle}}))).handles[2]["s"] == handle


class Evil:
    def __reduce__(self):
        return (open, ("/tmp/esault-letter-was-executed", "w"))


def test_neither_pickles_nor_strange_classes_travel():
    with pytest.raises(FrameError, match="^a control message cannot travel: Evil: code does not travel: io.open"):
        pack(ToSubUnit(1, (Evil(),)))
    with pytest.raises(FrameError):
        unpack(pickle.dumps(Evil()))
    assert not Path("/tmp/esault-letter-was-executed").exists()


@given(st.binary(max_size=200))
def test_any_other_bytes_are_refused_or_harmless(data):
    try:
        value = unpack(data)
    except FrameError:
        return
    assert not callable(value)


def test_a_message_with_other_fields_or_another_name_is_refused():
    import msgpack

    for fields in (["Fork"], ["Fork", 1, 2, 3, 4], ["Popen", "ls"], ["Path", "x"]):
        with pytest.raises(FrameError):
            unpack(msgpack.packb(msgpack.ExtType(1, msgpack.packb(fields))))


def test_what_a_later_version_says_of_itself_is_read_as_far_as_it_is_known():
    later = ["Hello", 2, "0.2.0", "3.14", "b", "10.0.0.2:7420", {"more": 1}, "and more"]
    assert unpack(msgpack.packb(msgpack.ExtType(1, msgpack.packb(later)))) == Hello(
        2, "0.2.0", "3.14", "b", "10.0.0.2:7420"
    )


@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 312, 50_000])
@pytest.mark.parametrize("code", [1, 2, 3, 4])
def test_what_is_nested_too_deeply_is_refused_and_does_not_end_the_process(code, levels):
    # 936 bytes of 312 levels took the whole stack.
    data = b"\xc0"
    for _ in range(levels):
        data = msgpack.packb(msgpack.ExtType(code, b"\x91" + data))
        if len(data) > 100_000:
            break
    with pytest.raises(FrameError):
        unpack(data)


def test_what_could_not_be_read_is_not_written():
    value = ()
    for _ in range(MAX_DEPTH - 1):
        value = (value,)
    assert unpack(pack(value)) == value
    with pytest.raises(FrameError, match="within one another"):
        pack((value,))
