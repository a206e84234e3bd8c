"""Keys and values on their way."""

from __future__ import annotations

import importlib.util
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path

import pytest

from esault import Bolt, PayloadError, TopologyFailed, by_key, partial_key, shuffle
from esault.messages.settings import Settings

_spec = importlib.util.spec_from_file_location("small", Path(__file__).with_name("small.py"))
small = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(small)


class Count(Bolt):
    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += 1
        self.emit(repr(key), self.total)


@pytest.mark.parametrize("parallelism", [1, 3])
def test_keys_that_look_alike_are_different_keys(parallelism):
    keys = [1, True, "1", b"1", 0, False, (1,), (True,), ((0, "a"),), ((False, "a"),)]
    local = small.run(small.through([(k, 0) for k in keys * 3], Count, parallelism=parallelism))
    assert sorted(local.emitted("worker")) == sorted((repr(k), i) for k in keys for i in (1, 2, 3))


@pytest.mark.parametrize("key", [1.5, None, ["a"], {"a": 1}, ("a", 2.0)])
def test_a_key_that_cannot_be_one_is_named_with_its_unit(key):
    class Emits(Bolt):
        def process(self, _, value):
            self.emit(key, value)

    t = small.Topology("keys")
    rows = t.spout("rows", small.Items([("a", 1)]))
    rows.bolt("first", Emits, grouping=shuffle()).bolt("second", small.Echo, grouping=by_key(), parallelism=2)
    with pytest.raises(TopologyFailed, match="unit 'first' emitted a tuple"):
        small.run(t)


@pytest.mark.parametrize(
    "value",
    [
        None, True, 1.5, "text", b"bytes", 1 << 100, -(1 << 70), Decimal("1.10"), date(2026, 1, 2),
        datetime(2026, 1, 2, 3, 4, 5, 6), datetime(2026, 1, 2, tzinfo=timezone.utc), {1, 2}, {"a": (1, {"b": {3}})}, (),
    ],
)  # fmt: skip
def test_values_arrive_as_they_were_emitted(value):
    local = small.run(small.through([("a", value)]))
    assert local.emitted("worker") == [("a", value)]


@pytest.mark.parametrize("value", [[1, [2, 3]], (1, [2, (3,)]), {"a": [1], "b": (2,)}, bytearray(b"a")])
def test_values_arrive_as_what_they_were(value):
    local = small.run(small.through([("a", value)] * 40))
    assert [repr(each) for each in local.emitted("worker")] == [repr(("a", value))] * 40


@pytest.mark.parametrize("checked", [1000, 0])
def test_a_value_that_cannot_travel_is_named_with_unit_key_and_type(checked):
    class Emits(Bolt):
        def process(self, key, value):
            self.emit(key, {"deep": [object()]})

    t = small.Topology("values")
    rows = t.spout("rows", small.Items([("a", 1)]))
    rows.bolt("first", Emits, grouping=shuffle()).bolt("second", small.Echo, grouping=by_key())
    with pytest.raises(
        TopologyFailed, match=r"unit 'first' emitted a tuple with key 'a' whose value is refused: object"
    ):
        small.run(t, settings=Settings(checked_emits=checked))


def test_a_value_that_is_changed_after_it_was_emitted_is_found():
    class Handover(Bolt):
        def __init__(self):
            self.seen = []

        def process(self, key, value):
            self.seen.append(value)
            self.emit(key, self.seen)
            self.seen.append("more")

    with pytest.raises(TopologyFailed, match="changed a value of type list after it had emitted it for key 'a'"):
        small.run(small.through([("a", 1)], Handover))


def test_a_million_rows_out_of_one_tuple_travel_in_bounded_batches():
    class Many(Bolt):
        def process(self, key, value):
            for i in range(100_000):
                self.emit(i, i)

    t = small.Topology("many")
    t.spout("rows", small.Items([("a", 1)])).bolt("many", Many, grouping=shuffle()).bolt(
        "echo", small.Echo, grouping=by_key(), parallelism=2
    )
    local = small.run(t, settings=Settings(watch_values=False))
    assert len(local.emitted("echo")) == 100_000


@pytest.mark.parametrize("parallelism", [1, 2])
def test_partial_keys_share_a_key_between_two_elements(parallelism):
    t = small.through([("hot", 1)] * 100, Count, grouping=partial_key(), parallelism=parallelism)
    local = small.run(t)
    assert len(local.emitted("worker")) == 100
    assert max(total for _, total in local.emitted("worker")) == 50
    assert {key for key, _ in local.emitted("worker")} == {"'hot'"}


def test_payload_errors_are_type_errors_too():
    assert issubclass(PayloadError, TypeError)
