"""Pieces of state: what is read of them, whichever form they have, and in which order they come."""

from __future__ import annotations

from typing import Any

from esault.payload.codec import Codec
from esault.routing.ring import canonical
from esault.spark.engine.pieces import Restored, pack_columns, rows_of

CODEC = Codec()


def one_by_one(states: dict[Any, Any], used: float = 0.0) -> bytes:
    packed = {key: None if state is None else CODEC.pack_value(state) for key, state in states.items()}
    return CODEC.pack([(key, state, used) for key, state in packed.items()])


def in_columns(states: dict[Any, Any], used: float | None = None) -> bytes:
    names = tuple(next(iter(states.values())))
    columns = list(zip(*(state.values() for state in states.values())))
    return pack_columns(CODEC, list(states), names, columns, None if used is None else [used] * len(states))


STATES = {key: {"one": (key, 1.5), "two": [key]} for key in ("a", 7, ("b", 2), None, b"c")}


def test_both_forms_say_the_same() -> None:
    for piece in (one_by_one(STATES, 3.0), in_columns(STATES, 3.0)):
        rows = list(rows_of(CODEC, piece))
        assert {key: CODEC.unpack(state) for key, state, _ in rows if state is not None} == STATES
        assert [type(key) for key, _, _ in rows] == list(map(type, STATES))
        assert {time for _, _, time in rows} == {3.0}
    assert {time for _, _, time in rows_of(CODEC, in_columns(STATES))} == {0.0}
    assert list(rows_of(CODEC, CODEC.pack(()))) == []


def test_the_last_piece_of_a_key_counts_and_a_key_that_is_gone_is_none() -> None:
    used: dict[Any, float] = {}
    restored = Restored(CODEC)
    rows = [
        restored.add(piece, used)
        for piece in (
            in_columns(STATES, 1.0),
            one_by_one({"a": {"one": 1}, 7: None}, 2.0),
            in_columns({("b", 2): {"three": 3}}, 4.0),
        )
    ]
    assert rows == [5, 2, 1] and len(restored) == 4 and used == {"a": 2.0, 7: 2.0, ("b", 2): 4.0, None: 1.0, b"c": 1.0}
    left = {name: CODEC.unpack(restored.get(name) or b"") for name in restored}
    assert left == {"a": {"one": 1}, ("b", 2): {"three": 3}, None: STATES[None], b"c": STATES[b"c"]}
    assert restored.pop("a", None) == CODEC.pack_value({"one": 1}) and "a" not in restored
    assert restored.pop("a", None) is None and restored.get("strange") is None
    assert CODEC.unpack(restored.take(b"c") or b"") == STATES[b"c"]
    restored["new"] = b"state"
    restored.discard(None)
    assert restored.in_memory() == [("b", 2), "new"] and list(restored.on_disk()) == []
    restored.clear()
    assert list(restored) == []


def test_keys_that_python_takes_for_one_stay_two() -> None:
    restored = Restored(CODEC)
    restored.add(in_columns({"a": {"n": 0}}), None)
    keys: list[Any] = [1, True, 0, False]
    restored.add(pack_columns(CODEC, keys, ("n",), [[1, 2, 3, 4]], None), None)
    assert [restored.get(canonical(key)) for key in keys] == [CODEC.pack_value({"n": n}) for n in (1, 2, 3, 4)]


def test_keys_of_a_piece_that_is_older_than_expire_after_were_used_at_no_known_time() -> None:
    for piece in (one_by_one(STATES), in_columns(STATES)):
        used: dict[Any, float] = {}
        Restored(CODEC).add(piece, used)
        assert used == dict.fromkeys(STATES, 0.0)
