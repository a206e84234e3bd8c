"""The state of an element as bytes and back, and what is refused with which name."""

from __future__ import annotations

import pytest

from esault import Bolt, Context
from esault.errors import EsaultError, StateError
from esault.flow.operators.element_state import check_own_names, keeps_state, pack_state, put_state
from esault.flow.operators.user_error import hook_of
from esault.payload.codec import Codec

CODEC = Codec()


class Count(Bolt):
    context = Context("count")  # of the class, as the engine puts it there

    def __init__(self):
        self.n = 0

    def process(self, key, value):
        self.n += 1


class Opened(Bolt):
    context = Context("count")

    def open(self, context):
        self.model = lambda: None

    def process(self, key, value):
        pass


class Own(Bolt):
    """Says its state by itself."""

    context = Context("count")
    said = 3

    def process(self, key, value):
        pass

    def __getstate__(self):
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


class Puts(Own):
    def __setstate__(self, state):
        self.back = state


def element(cls=Count, **attributes):
    made = cls()
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def test_attributes_come_back_into_a_fresh_one():
    state = pack_state("count", element(n=5, seen={"a", "b"}), CODEC)
    fresh = element()
    put_state("count", fresh, state, CODEC)
    assert (fresh.n, fresh.seen) == (5, {"a", "b"})


def test_what_cannot_travel_is_refused_by_its_name_with_the_remedy():
    with pytest.raises(
        StateError, match=r"unit 'count': attribute 'work' of Count cannot be saved or moved: .*open_shared"
    ) as refused:
        pack_state("count", element(n=1, work=lambda: None), CODEC)
    assert "'n'" not in str(refused.value)
    opened = element(Opened)
    opened.open(None)
    with pytest.raises(StateError, match=r"Opened.open sets it, and process may change it.*in place of self.model"):
        pack_state("count", opened, CODEC)
    with pytest.raises(StateError, match=r"the state of Own \(its __getstate__\(\)\) cannot be saved or moved"):
        pack_state("count", element(Own, said=(lambda: None,)), CODEC)


def test_what_getstate_raises_is_known_to_be_its_doing():
    with pytest.raises(ZeroDivisionError) as raised:
        pack_state("count", element(Own, said=ZeroDivisionError()), CODEC)
    assert hook_of(raised.value, "process") == "__getstate__"


def test_a_state_of_ones_own_is_put_back_by_ones_own():
    made = element(Puts)
    put_state("count", made, pack_state("count", element(Own), CODEC), CODEC)
    assert made.back == 3
    with pytest.raises(StateError, match=r"Own.__getstate__ returns a int, and nothing puts that back"):
        put_state("count", element(Own), pack_state("count", element(Own), CODEC), CODEC)
    put_state("count", element(Own), CODEC.pack_value(None), CODEC)  # it keeps nothing
    with pytest.raises(StateError, match="the state of Count cannot be restored"):
        put_state("count", element(), b"\xc1", CODEC)


def test_names_of_the_engine_are_refused():
    check_own_names("count", element(key="a"), "a")
    with pytest.raises(EsaultError, match="Count sets self.key, which is the engine's"):
        check_own_names("count", element(key="b"), "a")


@pytest.mark.parametrize(
    ("said", "keeps"), [({}, False), (None, False), ({"n": 0}, True), (3, True), (ValueError(), True)]
)
def test_there_is_state_where_there_is_any_and_where_it_cannot_be_said(said, keeps):
    assert keeps_state(element(Own, said=said)) is keeps
