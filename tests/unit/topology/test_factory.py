from __future__ import annotations

import functools
import re
from typing import Any, ClassVar, TypeVar

import pytest

from esault.errors import TopologyError
from esault.topology.bolt import BatchBolt, Bolt
from esault.topology.factory import examine_factory

T = TypeVar("T")


class Split(Bolt):
    def process(self, key, value):
        self.emit(key, value)


class Top(Bolt):
    def __init__(self, n, least=0):
        self.n, self.least = n, least

    def process(self, key, value):
        self.emit(key, value)


#: for arguments that do not fit it
ANY_TOP: Any = Top


class Batches(BatchBolt):
    def __init__(self, size=1):
        self.size = size

    def process_batch(self, rows):
        self.emit_batch(rows)


class Shared(Bolt):
    seen: ClassVar = {}

    def process(self, key, value):
        self.emit(key, value)


class Typed(Bolt[str, T, str, T]):
    def process(self, key, value):
        self.emit(key, value)


class TypedTop(Bolt[str, T, str, T]):
    def __init__(self, n):
        self.n = n

    def process(self, key, value):
        self.emit(key, value)


class Maker:
    def __call__(self):
        return Batches()

    def split(self):
        return Split()


def make_split() -> Bolt:
    return Split()


async def make_later():
    return Split()


def make_several():
    yield Split()


def broken():
    raise OSError("no such file: model.bin")


@pytest.mark.parametrize(
    "factory",
    [
        Split,
        make_split,
        lambda: Top(3),
        functools.partial(Top, 3),
        functools.partial(functools.partial(Top, least=1), n=3),
        functools.partial(make_split),
        Maker().split,
        Typed[int],
        functools.partial(TypedTop[int], 3),
    ],
)
def test_whatever_makes_bolts_without_arguments_is_a_factory(factory):
    assert examine_factory(factory, "x") is False
    assert isinstance(factory(), Bolt)


@pytest.mark.parametrize("factory", [Batches, functools.partial(Batches, size=2), lambda: Batches(), Maker()])
def test_batch_bolts_are_told_apart(factory):
    assert examine_factory(factory, "x") is True


def test_a_class_is_examined_without_being_called():
    class Opens(Bolt):
        def __init__(self):
            raise AssertionError("called")

        def process(self, key, value):
            self.emit(key, value)

    assert examine_factory(Opens, "x") is False
    assert examine_factory(functools.partial(Opens), "x") is False


@pytest.mark.parametrize(
    ("factory", "said"),
    [
        (
            Split(),
            "unit 'x': a bolt is passed as a factory, since there is one object per key, not as an object; "
            "write Split, or functools.partial(Split, ...) if it takes arguments",
        ),
        (
            Batches(),
            "a bolt is passed as a factory, since there is one object per key, not as an object; write Batches",
        ),
        ("Split", "unit 'x': 'Split' (str) makes no bolts; pass a class derived from Bolt, a functools.partial of one"),
        (None, "None (NoneType) makes no bolts"),
        (dict, "unit 'x': dict is no bolt; derive it from Bolt or BatchBolt"),
        (
            Top,
            "unit 'x': Top takes arguments (n), and a factory is called without any: use functools.partial(Top, n=...)",
        ),
        (functools.partial(Top, least=1), "Top takes arguments (n), and a factory is called without any"),
        (functools.partial(ANY_TOP, 1, 2, 3), "Top takes (n, least=0), which the partial does not fit"),
        (functools.partial(ANY_TOP, 1, most=3), "Top takes (n, least=0), which the partial does not fit"),
        (TypedTop[int], "TypedTop takes arguments (n)"),
        (lambda key: Split(), "the lambda takes arguments (key), and a factory is called without any"),
        (lambda: Split, "the lambda returns the class Split, not an object; pass Split itself"),
        (lambda: None, "the lambda returned None (NoneType), not an object of a class derived from Bolt or BatchBolt"),
        (lambda: 5, "the lambda returned 5 (int), not an object of a class derived from Bolt or BatchBolt"),
        (make_later, "unit 'x': make_later must be a plain function that returns a bolt"),
        (make_several, "unit 'x': make_several must be a plain function that returns a bolt"),
        (broken, "unit 'x': broken, which makes its objects, raised OSError: no such file: model.bin"),
        (lambda: Shared(), "unit 'x': Shared.seen is a dict on the class"),
        (Shared, "unit 'x': Shared.seen is a dict on the class"),
        (functools.partial(Shared), "unit 'x': Shared.seen is a dict on the class"),
    ],
)
def test_what_makes_no_bolts_is_refused_with_what_to_write(factory, said):
    with pytest.raises(TopologyError, match=re.escape(said)):
        examine_factory(factory, "x")


def test_what_a_factory_raised_is_the_cause():
    with pytest.raises(TopologyError) as error:
        examine_factory(broken, "x")
    assert isinstance(error.value.__cause__, OSError)


def test_a_factory_that_returns_one_object_for_all_keys_is_refused():
    split = Split()
    with pytest.raises(
        TopologyError, match="the lambda returns the same object each time; there is one object per key"
    ):
        examine_factory(lambda: split, "x")
