"""State of an older version of the code, read as what the code has today."""

from __future__ import annotations

import sys
import textwrap
import types
from typing import Any

import pytest

from esault.errors import FrameError
from esault.payload import class_names
from esault.payload.codec import Codec
from esault.payload.schema import Evolution, describe, describe_all, mentioned

HEAD = """
import dataclasses, typing
from collections import deque
import attrs, msgspec, pydantic
"""


@pytest.fixture
def version():
    """Makes the module of the user's anew, as another version of its file."""
    modules: list[types.ModuleType] = []

    def make(code: str) -> types.ModuleType:
        module = types.ModuleType("esault_schema_models")
        sys.modules[module.__name__] = module
        class_names.forget()
        exec(textwrap.dedent(HEAD + code), vars(module))
        modules.append(module)
        return module

    yield make
    sys.modules.pop("esault_schema_models", None)
    class_names.forget()


#: what the next one is to have added
ADDED: list[dict[tuple[str, str], int]] = []


def moved_to(version, before: str, after: str, make):
    """What `make(module)` gives with the one version, read with the other; what was left out."""
    old = version(before)
    state = Codec().pack_value({"it": make(old)})
    schema = describe_all(
        [each for each in vars(old).values() if isinstance(each, type) and each.__module__ == old.__name__]
    )
    version(after)
    evolution = Evolution(schema)
    changed = evolution.needed(None)
    found = evolution.read(state)["it"]
    added = {(cls.partition(":")[2], name): n for (cls, name), n in evolution.added.items()}
    assert added == ADDED.pop(0) if ADDED else True
    return found, {(cls.partition(":")[2], name): n for (cls, name), n in evolution.dropped.items()}, changed


KINDS = {
    "dataclass": ("@dataclasses.dataclass\nclass R:\n", "", " = dataclasses.field(default_factory=list)"),
    "frozen": ("@dataclasses.dataclass(frozen=True)\nclass R:\n", "", " = dataclasses.field(default_factory=list)"),
    "slots": ("@dataclasses.dataclass(slots=True)\nclass R:\n", "", " = dataclasses.field(default_factory=list)"),
    "frozen slots": (
        "@dataclasses.dataclass(slots=True, frozen=True)\nclass R:\n",
        "",
        " = dataclasses.field(default_factory=list)",
    ),
    "attrs": ("@attrs.define\nclass R:\n", "", " = attrs.Factory(list)"),
    "attrs with a dict": ("@attrs.define(slots=False)\nclass R:\n", "", " = attrs.Factory(list)"),
    "msgspec": ("class R(msgspec.Struct):\n", "", " = msgspec.field(default_factory=list)"),
    "pydantic": ("class R(pydantic.BaseModel):\n", "", " = pydantic.Field(default_factory=list)"),
    "named tuple": ("class R(typing.NamedTuple):\n", "", " = ()"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_added_field_takes_its_default_and_a_dropped_one_is_counted(version, kind):
    head, _, factory = KINDS[kind]
    before = head + "    a: int\n    gone: str\n    b: int\n"
    after = head + "    a: int\n    b: int\n    word: str = 'w'\n    items: list" + factory + "\n"
    ADDED.append({("R", "word"): 2, ("R", "items"): 2})
    found, dropped, changed = moved_to(
        version, before, after, lambda m: [m.R(a=1, gone="x", b=2), m.R(a=3, gone="y", b=4)]
    )
    assert changed
    assert [(r.a, r.b, r.word, list(r.items)) for r in found] == [(1, 2, "w", []), (3, 4, "w", [])]
    assert not hasattr(found[0], "gone")
    assert dropped == {("R", "gone"): 2}
    if kind != "named tuple":
        assert found[0].items is not found[1].items


@pytest.mark.parametrize("kind", KINDS)
def test_fields_in_another_order_keep_their_values(version, kind):
    head = KINDS[kind][0]
    found, dropped, _ = moved_to(
        version, head + "    a: int\n    b: int\n", head + "    b: int\n    a: int\n", lambda m: m.R(a=1, b=2)
    )
    assert (found.a, found.b) == (1, 2)
    assert not dropped


@pytest.mark.parametrize("kind", KINDS)
def test_an_added_field_without_a_default_is_refused_with_the_remedy(version, kind):
    head = KINDS[kind][0]
    with pytest.raises(FrameError, match="field 'b' of R is new, .* give the field a default"):
        moved_to(version, head + "    a: int\n", head + "    a: int\n    b: int\n", lambda m: m.R(a=1))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_the_same_needs_nothing(version, kind):
    code = KINDS[kind][0] + "    a: int\n"
    found, dropped, changed = moved_to(version, code, code, lambda m: m.R(a=1))
    assert (found.a, dropped, changed) == (1, {}, False)


def test_attributes_of_a_plain_class_are_what_its_init_sets(version):
    before = "class R:\n    def __init__(self):\n        self.total = 1\n        self.seen = [1]\n"
    after = "class R:\n    def __init__(self):\n        self.sum = 0\n        self.seen = []\n        self.most = {}\n"
    ADDED.append({("R", "sum"): 1, ("R", "most"): 1})
    found, dropped, _ = moved_to(version, before, after, lambda m: m.R())
    assert vars(found) == {"seen": [1], "sum": 0, "most": {}}
    assert dropped == {("R", "total"): 1}


def test_what_was_set_from_outside_and_is_known_to_the_class_stays(version):
    code = "class R:\n    extra = None\n    def show(self):\n        return self.name\n"

    def make(module):
        thing = module.R()
        thing.name, thing.extra, thing.odd = "n", 1, 2
        return thing

    after = code.replace("extra", "other") + "    def more(self):\n        return 1\n"
    found, dropped, _ = moved_to(version, code, after, make)
    assert vars(found) == {"name": "n", "odd": 2}  # a name that no code says, and none said then
    assert dropped == {("R", "extra"): 1}


TWO = "    a: int\n    b: int\n"
DATACLASS, NAMED = "@dataclasses.dataclass{}\nclass R:\n" + TWO, "class R(typing.NamedTuple):\n" + TWO
FORMS = {
    "plain": DATACLASS.format(""),
    "frozen": DATACLASS.format("(frozen=True)"),
    "slots": DATACLASS.format("(slots=True)"),
    "frozen slots": DATACLASS.format("(frozen=True, slots=True)"),
    "attrs with a dict": "@attrs.define(slots=False)\nclass R:\n" + TWO,
    "attrs": "@attrs.define\nclass R:\n" + TWO,
    "named tuple": NAMED,
    "a class": "class R:\n    def __init__(self, a, b):\n        self.a, self.b = a, b\n",
}


@pytest.mark.parametrize("before", FORMS)
@pytest.mark.parametrize("after", FORMS)
def test_the_same_fields_in_another_kind_of_class_keep_their_values(version, before, after):
    if after == "named tuple" != before:
        with pytest.raises(FrameError, match="written by another version of the code"):
            moved_to(version, FORMS[before], FORMS[after], lambda m: m.R(a=1, b=2))
        return
    found, dropped, changed = moved_to(version, FORMS[before], FORMS[after], lambda m: m.R(a=1, b=2))
    assert (found.a, found.b) == (1, 2)
    assert not dropped
    written_alike = ({"plain", "frozen", "attrs with a dict"}, {"slots"})
    assert changed == (before != after and not any({before, after} <= each for each in written_alike))


def test_a_setstate_that_is_new_in_a_dataclass_gets_a_dict(version):
    after = FORMS["plain"] + "    def __setstate__(self, state):\n        self.__dict__.update(state, c=3)\n"
    found, _, changed = moved_to(version, FORMS["plain"], after, lambda m: m.R(a=1, b=2))
    assert changed
    assert vars(found) == {"a": 1, "b": 2, "c": 3}


def test_what_a_version_said_that_described_no_kinds_of_classes_is_read(version):
    module = version(FORMS["frozen slots"])
    state = Codec().pack_value({"it": module.R(1, 2)})
    evolution = Evolution({"esault_schema_models:R": ("fields", "a", "b")})
    assert evolution.needed(None)
    assert evolution.read(state)["it"] == module.R(1, 2)
    assert not evolution.dropped and not evolution.added


def test_an_attribute_that_became_a_property_is_said_unless_the_property_keeps_it_there(version):
    before = "class R:\n    def __init__(self):\n        self.n = 1\n"
    head = "class R:\n    def __init__(self):\n        self.{} = 0\n"
    told = "    @property\n    def n(self):\n        return self.{}\n"
    found, dropped, _ = moved_to(version, before, head.format("m") + told.format("m"), lambda m: m.R())
    assert (vars(found), dropped) == ({"m": 0}, {("R", "n"): 1})
    keeps = head.format("n") + told.format("__dict__['n']")
    keeps += "    @n.setter\n    def n(self, n):\n        self.__dict__['n'] = n\n"
    found, dropped, _ = moved_to(version, before, keeps, lambda m: m.R())
    assert (vars(found), dropped) == ({"n": 1}, {})


def test_cycles_and_what_stands_twice_stay_so(version):
    code = "class R:\n    def __init__(self):\n        self.me = self\n        self.both = [1]\n        self.again = self.both\n"
    found, _, changed = moved_to(
        version, code, code + "    def other(self):\n        return self.new\n", lambda m: m.R()
    )
    assert changed
    assert found.me is found
    assert found.both is found.again


class Tally:
    def __init__(self):
        self.seen = []
        self.counts = __import__("collections").Counter()
        self.last = __import__("collections").deque(maxlen=2)
        self.pair = (1, 2)

    def process(self, key, value):
        self.later = value


def test_containers_of_a_version_that_lost_their_types_are_as_the_fresh_object_has_them():
    codec = Codec()
    old = codec.pack({"seen": [1, [2]], "counts": {"a": 2}, "last": [1, 2], "pair": (3, 4), "later": [5], "odd": 1})
    evolution = Evolution(None)
    assert evolution.needed(Tally)
    state = evolution.attributes(evolution.read(old), Tally())
    assert state["seen"] == [1, (2,)]
    assert state["counts"] == {"a": 2}
    assert state["counts"]["new"] == 0
    assert (list(state["last"]), state["last"].maxlen) == ([1, 2], 2)
    assert (state["pair"], state["later"]) == ((3, 4), (5,))
    assert "odd" not in state
    assert evolution.dropped == {("", "odd"): 1}
    assert not evolution.added  # it is not known what they had


def test_a_class_mentions_what_its_methods_properties_and_bases_name():
    class Base:
        def one(self: Any):
            return self.of_base

    class Kind(Base):
        note: int
        __slots__ = ("slot",)

        @property
        def shown(self: Any):
            return self.of_property

        def by_name(self):
            setattr(self, "set_by_name", 1)

    assert {"of_base", "note", "slot", "of_property", "set_by_name"} <= mentioned(Kind)


class SetByName:
    """Attributes of names that no code of the class says."""


def test_a_class_that_is_what_it_was_keeps_all_whatever_has_become_of_others():
    evolution = Evolution({"": describe(SetByName), "a_page_that_is_gone:Order": ("fields", "n")})
    assert evolution.needed(SetByName)
    assert evolution.attributes({"nobody_says_this": 1}, SetByName()) == {"nobody_says_this": 1}
    assert not evolution.dropped


class Before:
    def __init__(self):
        self.total = 1
        self.seen = []


class Now:
    def __init__(self):
        self.total = 1
        self.most = {}

    def process(self, key, value):
        self.newest = value


def test_attributes_that_init_sets_and_the_code_of_before_did_not_know_are_new():
    evolution = Evolution({"": describe(Before)})
    kept = evolution.attributes(vars(Before()), Now())
    assert kept == {"total": 1}  # what a fresh object has stays as it is
    assert evolution.dropped == {("", "seen"): 1}
    assert evolution.added == {("", "most"): 1}


def test_an_attribute_that_a_class_keeps_out_of_its_state_is_not_new():
    evolution = Evolution({"": ("names", *describe(Before)[1:], "most")})
    evolution.attributes({"total": 1}, Now())
    assert not evolution.added


def test_what_python_notes_in_a_class_when_it_is_first_pickled_makes_it_no_other_version(version):
    code = "class Words(dict):\n    pass\n"
    schema = describe_all([version(code).Words])
    used = version(code)  # the same code in another process
    it = used.Words()
    it.mark = [1]  # no code of the class knows that
    state = Codec().pack_value({"it": it})
    assert "__slotnames__" in vars(used.Words)
    describe.cache_clear()
    for said in (schema, describe_all([used.Words]), {name: (*each, "__slotnames__") for name, each in schema.items()}):
        evolution = Evolution(said)
        assert not evolution.needed(None)
        assert Evolution(said).read(state)["it"].mark == [1]


def test_a_setstate_that_is_new_gets_the_attributes_of_before_as_a_dict(version):
    before = "class R:\n    def __init__(self):\n        self.total = 3\n"
    after = """
    class R:
        def __init__(self):
            self.sum = 0
        def __setstate__(self, state):
            self.sum = state["total"]
    """
    found, dropped, _ = moved_to(version, before, textwrap.dedent(after), lambda module: module.R())
    assert vars(found) == {"sum": 3} and not dropped
