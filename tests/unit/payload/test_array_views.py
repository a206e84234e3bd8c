"""NumPy arrays of a state that share their memory: they share it where the state is read, too."""

from __future__ import annotations

from typing import Any

import pytest

from esault import Bolt
from esault.errors import FrameError
from esault.flow.operators.element_state import pack_state, put_state
from esault.payload import rebuild
from esault.payload.codec import Codec

np = pytest.importorskip("numpy")

CODEC = Codec()


class Holds(Bolt):
    def process(self, key, value):
        pass


def moved(**attributes) -> Any:
    made: Any = Holds()
    other: Any = Holds()
    for name, value in attributes.items():
        setattr(made, name, value)
    put_state("u", other, pack_state("u", made, CODEC), CODEC)
    for name, value in attributes.items():
        got = getattr(other, name)
        assert got.dtype == value.dtype and got.shape == value.shape
        assert np.array_equal(got, value)
    return other


BUFFER = np.arange(24.0)
CUBE = np.arange(24).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("whole", "part"),
    [
        (BUFFER, BUFFER[:5]),
        (BUFFER, BUFFER[3:20:4]),
        (BUFFER, BUFFER[::-1]),
        (BUFFER, BUFFER.reshape(4, 6)),
        (BUFFER, BUFFER.reshape(4, 6).T[1:, ::2]),
        (BUFFER, BUFFER.view("i8")[2:]),
        (CUBE, CUBE[1]),
        (CUBE, CUBE[:, 1, :]),
        (CUBE.T, CUBE[0]),
    ],
)
def test_a_view_of_another_attribute_stays_one(whole, part):
    for other in (moved(whole=whole, part=part), moved(part=part, whole=whole)):
        assert np.shares_memory(other.whole, other.part)
        other.whole[...] = 7
        assert np.array_equal(other.part, np.full(part.shape, 7, whole.dtype).view(part.dtype))
        again: Any = Holds()
        put_state("u", again, pack_state("u", other, CODEC), CODEC)
        assert np.shares_memory(again.whole, again.part)


def test_arrays_of_their_own_memory_stay_apart():
    large = np.arange(10_000)
    other = moved(
        a=np.zeros(3), b=np.zeros(3), c=large[:2], d=large[1:3]
    )  # what lies behind two small ones is not carried along
    assert not np.shares_memory(other.c, other.d)
    assert len(pack_state("u", other, CODEC)) < 1000


def test_an_array_that_is_twice_in_a_state_is_one_behind_it():
    array = np.zeros(3)
    other = moved(a=array, b=array)
    assert other.a is other.b


@pytest.mark.parametrize(
    "said",
    [
        (b"12345678", "<f8", (1,), (8,), 0),
        (BUFFER, "<f8", (25,), (8,), 0),
        (BUFFER, "<f8", (2,), (8,), 184),
        (BUFFER, "<f8", (2,), (-8,), 0),
        (BUFFER, "<f8", (2,), (8,), -8),
        (BUFFER, "<f8", (2, 2), (8,), 0),
        (BUFFER, "<f8", ("a",), (8,), 0),
        (np.array([None]), "<i8", (1,), (8,), 0),
    ],
)
def test_bytes_of_any_origin_make_no_view_of_other_memory(said):
    with pytest.raises(FrameError):
        rebuild.array_view(*said)
