from __future__ import annotations

import abc
import array
import collections
import dataclasses
import functools
import re
import types
from typing import ClassVar

import pytest

from esault.errors import TopologyError
from esault.topology.bolt import BatchBolt, Bolt
from esault.topology.examine import examine_bolt_class, is_asynchronous
from esault.topology.factory import examine_factory
from esault.topology.sink import Sink
from esault.topology.spout import Spout


def bolt(**attributes):
    """A bolt class with these attributes, and a process unless one is among them."""
    attributes.setdefault("process", lambda self, key, value: None)
    return type("Mine", (Bolt,), attributes)


def batch_bolt(**attributes):
    attributes.setdefault("process_batch", lambda self, rows: None)
    return type("Mine", (BatchBolt,), attributes)


def generator(self, *arguments):
    yield 1


async def coroutine(self, *arguments):
    return 1


@dataclasses.dataclass
class Data(Bolt):
    seen: list = dataclasses.field(default_factory=list)
    total: int = 0

    def process(self, key, value):
        self.total += value


class Constants(Bolt):
    WORDS = ("a", "b")
    STOP = frozenset({"the"})
    TABLE = types.MappingProxyType({"a": 1})
    limit = 3
    key: str

    def __init__(self):
        self.seen = {}

    def process(self, key, value):
        self.seen[value] = key


class OwnState(Bolt):
    __slots__ = ("total",)

    def process(self, key, value):
        self.total = value

    def __getstate__(self):
        return self.total

    def __setstate__(self, state):
        self.total = state


class EmptySlots:
    __slots__ = ()


class WithMixin(EmptySlots, Bolt):
    def process(self, key, value):
        self.total = value


class Several(Bolt):
    def process_stream(self, stream, key, value):
        self.emit(key, value)


class Static(Bolt):
    @staticmethod
    def process(key, value):
        return None

    @classmethod
    def tick(cls, now):
        return None


@pytest.mark.parametrize("cls", [Data, Constants, OwnState, WithMixin, Several, Static, bolt()])
def test_good_bolts_pass(cls):
    assert examine_bolt_class(cls, "x") is False


@pytest.mark.parametrize("cls", [batch_bolt(), batch_bolt(process_batch_stream=lambda self, stream, rows: None)])
def test_good_batch_bolts_pass(cls):
    assert examine_bolt_class(cls, "x") is True


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({}, "dict"),
        ([], "list"),
        (set(), "set"),
        (bytearray(), "bytearray"),
        (collections.deque(), "deque"),
        (collections.defaultdict(int), "defaultdict"),
        (collections.Counter(), "Counter"),
        (collections.UserList(), "UserList"),
        (array.array("d"), "array"),
    ],
)
@pytest.mark.parametrize("make", [bolt, batch_bolt])
def test_a_mutable_class_attribute_is_refused(make, value, kind):
    said = (
        f"unit 'x': Mine.seen is a {kind} on the class: shared by all keys of a process, and it does not move. "
        "Set it in __init__: self.seen = ..."
    )
    with pytest.raises(TopologyError, match=re.escape(said)):
        examine_bolt_class(make(seen=value), "x")


class Kept(Bolt):
    def __init__(self, seen=[], size=3):
        self.size = size
        self.seen: list[int] = seen

    def process(self, key, value):
        self.seen.append(value)


class KeptByName(Bolt):
    def __init__(self, *, counts=collections.Counter()):
        self.counts = counts

    def process(self, key, value):
        self.counts[value] += 1


class Derived(Kept):
    """Takes the default of its base."""


@pytest.mark.parametrize(
    ("cls", "said"),
    [
        (
            Kept,
            "Kept.__init__ keeps the default of 'seen', and Kept.process changes it: Python makes one list for all keys",
        ),
        (Derived, "Kept.__init__ keeps the default of 'seen', and Kept.process changes it"),
        (
            KeptByName,
            "KeptByName.__init__ keeps the default of 'counts', and KeptByName.process changes it: Python makes one Counter",
        ),
    ],
)
def test_a_mutable_default_that_is_kept_and_changed_is_refused(cls, said):
    with pytest.raises(TopologyError, match=re.escape(f"unit 'x': {said}")):
        examine_bolt_class(cls, "x")


class Begun(Bolt):
    def __init__(self, counts, prices=None):
        self.counts = counts
        self.prices = prices

    def process(self, key, value):
        self.counts[value] = self.counts.get(value, 0) + self.prices[value]


@pytest.mark.parametrize(
    "factory", [functools.partial(Begun, {}), functools.partial(functools.partial(Begun, counts={}), prices={})]
)
def test_what_a_partial_gives_to_all_keys_may_not_be_changed(factory):
    said = "unit 'x': the partial of Begun gives one dict as 'counts' to all keys of a process, and Begun.process changes it"
    with pytest.raises(TopologyError, match=re.escape(said)):
        examine_factory(factory, "x")


def test_what_a_partial_gives_may_be_read_and_copied():
    class Copies(Begun):
        def __init__(self, counts, prices):
            self.counts, self.prices = dict(counts), prices

    assert examine_factory(functools.partial(Copies, {}, prices={"tea": 3}), "x") is False


class Copied(Bolt):
    def __init__(self, seen=[], other=[], given=None):
        seen = list(seen)
        self.seen = seen
        self.other = [*other]
        self.given = given

    def process(self, key, value):
        self.seen.append(value)
        self.other.append(value)
        self.given.append(value)


class Constant(Bolt):
    def __init__(self, words=["the", "a"]):
        self.words = words

    def process(self, key, value):
        if value not in self.words:
            self.words = [*self.words, value]


@pytest.mark.parametrize("cls", [Copied, Constant])
def test_a_default_that_is_copied_or_only_read_is_none_of_it(cls):
    examine_bolt_class(cls, "x")


def test_a_mutable_attribute_of_a_base_class_is_refused_too():
    class Memory:
        seen: ClassVar = []

    class Child(Memory, Bolt):
        def process(self, key, value):
            self.seen.append(value)

    with pytest.raises(TopologyError, match=r"unit 'x': Memory\.seen is a list on the class"):
        examine_bolt_class(Child, "x")


@pytest.mark.parametrize("hook", ["process", "process_stream", "tick", "finish", "open", "close"])
def test_a_hook_that_yields_is_refused(hook):
    said = f"unit 'x': Mine.{hook} yields, so that calling it does nothing; use self.emit(key, value) instead"
    with pytest.raises(TopologyError, match=re.escape(said)):
        examine_bolt_class(bolt(**{hook: generator}), "x")


@pytest.mark.parametrize("hook", ["process_batch", "process_batch_stream"])
def test_a_batch_hook_that_yields_is_refused(hook):
    with pytest.raises(TopologyError, match=rf"Mine\.{hook} yields, .*; use self\.emit_batch\(rows\) instead"):
        examine_bolt_class(batch_bolt(**{hook: generator}), "x")


def test_who_returns_and_never_emits_is_told_to_emit():
    class Upper(Bolt):
        def process(self, key, value):
            return key, value.upper()

    class Total(Bolt):
        def process(self, key, value):
            self.total = value
            return key, self.total

    class Uppers(BatchBolt):
        def process_batch(self, rows):
            return [(key, value.upper()) for key, value in rows]

    with pytest.raises(
        TopologyError, match=r"Upper\.process returns \(key, value\.upper\(\)\), .* self\.emit\(key, value\)"
    ):
        examine_bolt_class(Upper, "x")
    with pytest.raises(TopologyError, match=r"Total\.process returns \(key, self\.total\)"):
        examine_bolt_class(Total, "x")
    with pytest.raises(TopologyError, match=r"Uppers\.process_batch returns .* self\.emit_batch\(rows\)"):
        examine_bolt_class(Uppers, "x")


def test_a_return_is_no_mistake_where_something_may_be_emitted():
    def send(bolt, value):
        bolt.emit(None, value)

    class Base(Bolt):
        def process(self, key, value):
            return self.emit(key, value)

    class Child(Base):
        def process(self, key, value):
            return super().process(key, value) or True

    class Hands(Bolt):
        def process(self, key, value):
            def inner():
                return 1

            if value:
                return None
            return send(self, value + inner())

    class Prints(Bolt):
        def process(self, key, value):
            return print(key, value)

    assert not any(examine_bolt_class(cls, "x") for cls in (Base, Child, Hands, Prints))


def test_hooks_of_a_bolt_may_be_async_where_process_is():
    assert examine_bolt_class(bolt(process=coroutine, open=coroutine, finish=coroutine), "x") is False
    assert is_asynchronous(bolt(process_stream=coroutine))
    assert not is_asynchronous(bolt())
    said = r"unit 'x': Mine\.tick is async, which only hooks of a bolt with `async def process` can be"
    with pytest.raises(TopologyError, match=said):
        examine_bolt_class(bolt(tick=coroutine), "x")


def test_no_hook_of_a_batch_bolt_may_be_async():
    said = r"unit 'x': Mine\.process_batch is async, which no hook of a BatchBolt can be; .* make it a Bolt"
    with pytest.raises(TopologyError, match=said):
        examine_bolt_class(batch_bolt(process_batch=coroutine), "x")


def test_an_async_generator_is_no_process_either():
    async def process(self, key, value):
        yield value

    with pytest.raises(TopologyError, match=r"Mine\.process yields, .*; use self\.emit\(key, value\) instead"):
        examine_bolt_class(bolt(process=process), "x")


@pytest.mark.parametrize(
    ("cls", "said"),
    [
        (bolt(process=lambda self, value: None), "unit 'x': Mine.process must take (self, key, value)"),
        (
            bolt(process_stream=lambda self, key, value: None),
            "Mine.process_stream must take (self, stream, key, value)",
        ),
        (bolt(tick=lambda self: None), "Mine.tick must take (self, now)"),
        (bolt(open=lambda self: None), "Mine.open must take (self, context)"),
        (bolt(finish=lambda self, key: None), "Mine.finish must take (self)"),
        (batch_bolt(process_batch=lambda self, key, value: None), "Mine.process_batch must take (self, rows)"),
        (bolt(process=staticmethod(lambda self, key, value: None)), "Mine.process must take (self, key, value)"),
        (bolt(tick=5), "unit 'x': Mine.tick is 5; it is a hook that the engine calls: define a method"),
    ],
)
def test_a_hook_that_cannot_be_called_is_refused(cls, said):
    with pytest.raises(TopologyError, match=re.escape(said)):
        examine_bolt_class(cls, "x")


@pytest.mark.parametrize(
    ("hook", "remedy"),
    [
        ("open_shared", "write open(self, context), and keep"),
        ("close_shared", "write close(self)"),
        ("process_broadcast", "is broadcast to a Bolt"),
        ("process_broadcast_stream", "is broadcast to a Bolt"),
    ],
)
def test_a_hook_of_a_bolt_that_no_batch_bolt_is_called_by_is_refused(hook, remedy):
    said = f"unit 'x': Mine defines {hook}, which a BatchBolt is not called by: .*{re.escape(remedy)}"
    with pytest.raises(TopologyError, match=said):
        examine_bolt_class(batch_bolt(**{hook: lambda self, *given: None}), "x")


class Nothing(Bolt):
    def finish(self):
        pass


class NothingInBatches(BatchBolt):
    pass


class WrongHook(Bolt):
    def process_batch(self, rows):
        pass


class WrongBatchHook(BatchBolt):
    def process(self, key, value):
        pass


class Both(Bolt, BatchBolt):
    def process(self, key, value):
        pass


class Abstract(Bolt, abc.ABC):
    def process(self, key, value):
        self.score(value)

    @abc.abstractmethod
    def score(self, value): ...


@pytest.mark.parametrize(
    ("cls", "said"),
    [
        (Nothing, "unit 'x': Nothing defines neither process(self, key, value) nor process_stream"),
        (NothingInBatches, "NothingInBatches defines neither process_batch(self, rows) nor process_batch_stream"),
        (WrongHook, "process_batch is a hook of BatchBolt: derive it from that"),
        (WrongBatchHook, "process is a hook of Bolt: derive it from that"),
        (Bolt, "Bolt defines neither process(self, key, value) nor process_stream"),
        (Both, "Both derives from Bolt and from BatchBolt; choose one"),
        (Abstract, "Abstract is abstract: score must be defined first"),
        (type("Mine", (Spout,), {}), "Mine is a spout; a bolt derives from Bolt or BatchBolt"),
        (type("Mine", (Sink,), {}), "Mine is a sink; a bolt derives from Bolt or BatchBolt"),
        (dict, "dict is no bolt; derive it from Bolt or BatchBolt"),
    ],
)
def test_a_class_that_cannot_be_a_bolt_is_refused(cls, said):
    with pytest.raises(TopologyError, match=re.escape(said)):
        examine_bolt_class(cls, "x")


@pytest.mark.parametrize(
    ("make", "name"),
    [(bolt, name) for name in ("emit", "key", "window", "context")]
    + [(batch_bolt, name) for name in ("emit_batch", "keyed", "context")],
)
def test_what_the_engine_gives_to_an_object_cannot_be_defined(make, name):
    said = f"unit 'x': Mine defines `{name}`, which the engine gives to each object; choose another name"
    with pytest.raises(TopologyError, match=re.escape(said)):
        examine_bolt_class(make(**{name: None}), "x")


def test_slots_that_would_stay_behind_are_refused():
    class Slotted(Bolt):
        __slots__ = ("total",)

        def process(self, key, value):
            self.total = value

    class Child(Slotted):
        pass

    for cls in (Slotted, Child):
        with pytest.raises(TopologyError, match="unit 'x': Slotted has __slots__, whose attributes would not move"):
            examine_bolt_class(cls, "x")
