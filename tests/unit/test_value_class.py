"""A value behaves as a frozen dataclass does."""

from __future__ import annotations

import copy
import pickle
import threading
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.value_class import prepare_now, value_class


@value_class(frozen=True)
class Point:
    """A place."""

    x: int
    y: int = 0
    tags: tuple[str, ...] = field(default_factory=tuple)

    @property
    def sum(self):
        return self.x + self.y


@value_class(frozen=True)
class Named(Point):
    """One with a name, and words of its own about itself."""

    name: str = ""

    def __repr__(self):
        return f"<{self.name}>"


@dataclass(frozen=True)
class Reference:
    """The same as Point, as Python makes it."""

    x: int
    y: int = 0
    tags: tuple[str, ...] = field(default_factory=tuple)


ARGUMENTS = st.tuples(st.integers(0, 2), st.integers(0, 2), st.lists(st.text(max_size=1), max_size=2).map(tuple))


@given(ARGUMENTS, ARGUMENTS)
def test_it_compares_prints_and_is_taken_apart_as_a_dataclass_is(one, other):
    mine, same = Point(*one), Reference(*one)
    assert repr(mine) == repr(same).replace("Reference", "Point")
    assert (mine == Point(*other)) == (same == Reference(*other))
    assert hash(mine) == hash(same)
    assert asdict(mine) == asdict(same)
    assert mine == pickle.loads(pickle.dumps(mine)) == copy.deepcopy(mine)
    assert replace(mine, x=7) == Point(7, *one[1:])
    assert mine != same and mine != one


def test_it_is_a_dataclass_with_defaults_and_subclasses():
    assert is_dataclass(Point) and [each.name for each in fields(Named)] == ["x", "y", "tags", "name"]
    assert Point(1) == Point(x=1, y=0, tags=()) and Point(1).sum == 1
    assert Point(1) != Named(1)
    assert repr(Named(1, name="n")) == "<n>"
    assert Point.__match_args__ == Reference.__match_args__
    with pytest.raises(TypeError):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        hash(Point(1, tags=[]))


def test_the_first_object_has_what_all_others_have():
    class Fresh:
        a: int
        b: list[int] = field(default_factory=list, kw_only=True)
        c: int = field(default=5, repr=False)
        kind: ClassVar[str] = "fresh"

        def __post_init__(self):
            self.b.append(self.a)

    made: Any = value_class(frozen=True)(Fresh)
    before = made.__init__
    first, second = made(1), made(2, 6, b=[9])
    assert made.__init__ is not before
    assert (first.a, first.b, first.c) == (1, [1], 5) and (second.a, second.b, second.c) == (2, [9, 2], 6)
    assert first.b is not made(1).b and made.kind == "fresh"
    assert [each.name for each in fields(made)] == ["a", "b", "c"]


def test_the_first_call_with_wrong_arguments_names_the_class():
    @value_class(frozen=True)
    class Fresh:
        a: int

    for _ in range(2):
        with pytest.raises(TypeError, match=r"Fresh\.__init__\(\) missing 1 required positional argument: 'a'"):
            Fresh()  # type: ignore[call-arg]
        with pytest.raises(TypeError, match=r"Fresh\.__init__\(\) got an unexpected keyword argument 'b'"):
            Fresh(1, b=2)  # type: ignore[call-arg]


def test_a_class_below_one_that_has_no_object_yet_has_its_fields():
    @value_class(frozen=True)
    class Above:
        a: int = 1

    @value_class(frozen=True, kw_only=True)
    class Below(Above):
        b: int

        def __post_init__(self):
            assert self.a

    assert Below(2, b=3) == Below(a=2, b=3)
    assert Above(4).a == 4 and type(Above()) is Above
    assert copy.copy(Below(b=1)).b == 1


def test_frozen_dataclasses_of_both_kinds_derive_from_each_other():
    @dataclass(frozen=True)
    class Plain(Named):
        more: int = 7

    @value_class(frozen=True)
    class Below(Plain):
        last: int = 8

    below = Below(1, name="n", last=9)
    assert [each.name for each in fields(Below)] == ["x", "y", "tags", "name", "more", "last"]
    assert (below.x, below.more, below.last) == (1, 7, 9) and below == Below(1, name="n", last=9)
    assert Plain(1) == Plain(1) != Plain(2) and Plain(1).sum == 1
    for thing in (Plain(1), below):
        with pytest.raises(FrozenInstanceError):
            thing.more = 2  # type: ignore[misc]
    with pytest.raises(TypeError, match="cannot inherit non-frozen dataclass from a frozen one"):

        @dataclass
        class Changed(Point):
            z: int = 0


@pytest.mark.parametrize("name", ["x", "other"])
def test_it_cannot_be_changed(name):
    point = Point(1)
    with pytest.raises(FrozenInstanceError):
        setattr(point, name, 2)
    with pytest.raises(FrozenInstanceError):
        del point.x
    assert point == Point(1)


def _fresh(number):
    """Return a class of each kind of field, and the same as Python makes it."""

    class Fresh:
        a: int
        b: int = 7
        c: list = field(default_factory=list)
        d: int = field(default=5, init=False)
        e: list = field(default_factory=list, init=False)
        f: int = field(kw_only=True)
        g: int = field(default=9, kw_only=True)

        def __post_init__(self):
            self.c.append(self.f)

    Fresh.__qualname__ = "Fresh"
    return (value_class if number else dataclass)(frozen=True)(Fresh)


@given(
    st.lists(st.lists(st.integers(), max_size=4), min_size=1, max_size=3),
    st.lists(st.dictionaries(st.sampled_from("abcdefgh"), st.integers(), max_size=5), min_size=1, max_size=3),
    st.booleans(),
)
def test_few_objects_and_many_are_made_as_those_of_a_dataclass(places, names, compiled):
    mine, same = _fresh(1), _fresh(0)
    for i in range(100 if compiled else 0):
        mine(i, f=i)

    def made(cls, args, named):
        args = [[each] if i == 2 else each for i, each in enumerate(args)]
        named = {name: [value] if name == "c" else value for name, value in named.items()}
        try:
            return vars(cls(*args, **named))
        except TypeError as error:
            return str(error)

    for args in places:
        for named in names:
            named = {"f": 1, **named}
            assert made(mine, args, named) == made(same, args, named)
            named.pop("f")
            assert made(mine, args, named) == made(same, args, named)


def test_an_init_is_compiled_when_there_are_many_objects():
    mine = _fresh(1)
    prepare_now(mine)
    few = mine.__init__
    assert [vars(mine(i, f=i)) for i in range(200)] == [
        {"a": i, "b": 7, "c": [i], "e": [], "f": i, "g": 9} for i in range(200)
    ]
    assert mine.__init__ is not few
    compiled = mine.__init__
    prepare_now(mine)
    assert mine.__init__ is compiled


def test_fields_in_an_order_that_python_refuses_are_refused():
    @value_class(frozen=True)
    class Wrong:
        a: int = 0
        b: int  # type: ignore[misc]

    for _ in range(2):
        with pytest.raises(TypeError, match="non-default argument 'b' follows default argument"):
            Wrong(1, 2)


def test_what_is_asked_of_a_class_without_objects_is_known():
    def fresh():
        @value_class(frozen=True)
        class Fresh:
            a: int
            b: list = field(default_factory=list, kw_only=True)

        return Fresh

    assert [each.name for each in fields(fresh())] == ["a", "b"]
    assert is_dataclass(fresh()) and fresh().__match_args__ == ("a",)
    assert fresh().__dataclass_params__.frozen
    cls = fresh()
    put = cls.__new__(cls)  # as unpickling does
    vars(put).update(a=1, b=[2])
    match put:
        case cls(a):
            assert a == 1
    assert put == cls(1, b=[2]) and repr(put).endswith("Fresh(a=1, b=[2])")
    below = type("Below", (fresh(),), {})
    assert below(3).a == 3 and [each.name for each in fields(below)] == ["a", "b"]


def test_threads_that_look_at_a_class_at_once_see_the_same():
    for _ in range(50):

        @value_class(frozen=True)
        class Fresh:
            a: int
            b: list = field(default_factory=list)

        ready = threading.Barrier(3)
        seen: list = []

        def look(cls=Fresh, ready=ready, seen=seen):
            ready.wait()
            seen.append(vars(cls(1)))

        threads = [threading.Thread(target=look) for _ in range(3)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert seen == [{"a": 1, "b": []}] * 3


def test_a_class_can_be_prepared_before_its_first_object():
    @value_class(frozen=True)
    class Fresh:
        a: int

    before = Fresh.__init__
    prepare_now(Fresh, Point)
    prepared = Fresh.__init__
    assert prepared is not before
    assert Fresh(1).a == 1 and Fresh.__init__ is prepared
