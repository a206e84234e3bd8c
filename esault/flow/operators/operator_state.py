"""The state of an operator, as it is saved and moved: what stands under keys, with their timers, and what stands under none."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from esault.errors import FrameError, StateError
from esault.flow.handover.state_sender import Busy
from esault.flow.operators.broadcast_copies import BroadcastCopies
from esault.flow.watermark.key_timers import KeyTimers
from esault.flow.watermark.levels import Levels
from esault.payload.class_names import named
from esault.payload.codec import Codec
from esault.payload.schema import Evolution, Schema, describe, describe_all
from esault.payload.timed_state import Timer, with_timers, without_timers
from esault.routing.ring import Canonical, Name, canonical
from esault.topology.bolt import Bolt
from esault.topology.plan import UnitPlan

if TYPE_CHECKING:
    from esault.flow.operators.batch_operator import KeyedOfBatch
    from esault.flow.operators.elements import Elements
    from esault.flow.operators.object_operator import OneObject

__all__ = ["OperatorState"]


class OperatorState:
    """The side of an operator that a checkpoint, a change of keys and a question for state see."""

    #: the sub-unit has no ranges any more
    leaving = False
    #: a key holds what several objects had packed, in tuples
    nested = False
    #: whether a call of a key is open; None: none is ever
    busy: Callable[[Name], bool] | None = None
    #: keys that came with timers of the user's, of which the bolt has none any more
    left_timers = 0
    #: told of the name and the state of a key that came
    came: Callable[[Name, bytes], None] | None = None

    def __init__(
        self,
        plan: UnitPlan,
        codec: Codec,
        by_key: Elements | OneObject | KeyedOfBatch,
        silent: Callable[[Callable[[], Any], str], Any],
        *,
        timers: KeyTimers | None = None,
        levels: Levels | None = None,
        levels_move: bool = False,
        broadcast: BroadcastCopies | None = None,
    ) -> None:
        """`silent` calls what may not emit; `levels_move`: with ranges of keys."""
        self.codec = codec
        self._plan, self._silent = plan, silent
        self._sample: Any = None
        self._by_key = by_key
        self._timers, self._levels, self._broadcast = timers, levels, broadcast
        self._levels_move = levels_move
        #: something stands under no key, beside what keys hold
        self._beside = levels is not None or broadcast is not None
        #: a state is as it stands under its key
        self._plain = timers is None and not self._beside

    # moving: what `handover.Store` asks for ---------------------------------------------------------

    def names(self) -> list[Name]:
        """Names of all elements."""
        return self._by_key.names()

    def scan(self) -> Iterator[Name]:
        """Names of all elements that are here now, bit by bit while some of them leave."""
        return self._by_key.scan()

    @property
    def here(self) -> Container[Any]:
        """Keys of elements that are in memory as objects, but those that Python takes for others; none, where that is not known."""
        return self._by_key if isinstance(self._by_key, dict) else ()

    def note_made(self, names: list[Name] | None) -> bool:
        """Add the names of elements that are made or restored to these from now on, or to none; whether that can be."""
        return self._by_key.note_made(names)

    def key_of(self, name: Name) -> Any:
        """The key of an element as it travels."""
        return name.key if type(name) is Canonical else name  # `key_of`, without a call for each key of a checkpoint

    def name_of(self, key: Any) -> Name:
        """The name of the element of this key."""
        return canonical(key)

    def remove_state(self, name: Name) -> bytes | None:
        """Take an element out, closed; its packed state, or None if there is none. Raises Busy."""
        if self.busy is not None and self.busy(name):
            raise Busy
        state = self._by_key.take_state(name)
        if self._timers is None:
            return state
        timers = self._timers.pop(name)
        return None if state is None else with_timers(state, timers, self.codec)

    def install_state(self, key: Any, state: bytes) -> None:
        """Take a key over, with its state; under None stands what belongs to no key. Raises StateError."""
        if key is None and self._beside:
            self.install_watermark(state, None)
            return
        state, timers = self._apart(state)
        if self._timers is not None:
            self._timers.put(canonical(key), timers)
        elif any(name for name, _, _ in timers):
            self.left_timers += 1
        self._by_key.put_state(key, state)
        if self.came is not None:
            self.came(canonical(key), state)

    def install_watermark(self, state: bytes, ranges: Sequence[tuple[int, int]] | None) -> None:
        """Take in what a checkpoint has under no key: how far time had come for keys of these ranges, and broadcast state."""
        copy, levels = self._copy_and_levels(state)
        if copy is not None and self._broadcast is not None:
            self._broadcast.restore(copy)
        if levels is not None and self._levels is not None:
            self._levels.restore(self.codec.unpack(levels), ranges)

    def ring_state(self, ranges: Sequence[tuple[int, int]]) -> Any:
        """Pack what the new owner of these ranges must know besides the state of their keys; None: nothing."""
        return tuple(self._levels.cut(ranges)) if self._levels is not None and self._levels_move else None

    def install_ring_state(self, said: Any) -> None:
        """Take in what the old owner said so. Raises FrameError."""
        if self._levels is None:
            return
        if type(said) is not tuple or any(
            type(each) is not tuple or [type(x) for x in each] != [int, int, float] for each in said
        ):
            raise FrameError("what is said beside rows of keys is a sequence of ranges and times")
        self._levels.merge(said)

    def broadcast_copy(self) -> bytes | None:
        """Pack the broadcast state, for a new sub-unit; None: there is none."""
        return None if self._broadcast is None else self._broadcast.copy()

    def install_broadcast(self, state: bytes) -> None:
        """Take in the broadcast state of another sub-unit. Raises StateError."""
        if self._broadcast is not None:
            self._broadcast.put(state)

    def reload(self, keys: Sequence[Any]) -> None:
        """Put the state of these keys through bytes, as a move would: what breaks by it breaks at once. Raises StateError."""
        for name in self._by_key.reload(keys):
            if self._timers is not None:
                moved = with_timers(b"", self._timers.pop(name), self.codec)
                self._timers.put(name, without_timers(moved, self.codec)[1])
        if self._broadcast is not None:
            self._broadcast.put(self._broadcast.copy())

    # checkpoints ------------------------------------------------------------------------------------

    def saved_names(self) -> list[Name]:
        """Names of all whose state belongs into a checkpoint."""
        return [*self.saved_in_memory(), *self.saved_on_disk()]

    def saved_in_memory(self) -> list[Name]:
        """Those of them whose state is in memory at this moment."""
        names = self._by_key.in_memory()
        return [None, *names] if self._beside else names

    def saved_on_disk(self) -> Iterator[Name]:
        """The others, read when they are asked for, while states come and go: some may have left meanwhile."""
        return self._by_key.on_disk()

    @property
    def saved_count(self) -> int:
        """Return about how many they are."""
        return self._by_key.count

    def peek(self, name: Name) -> bytes | None:
        """The packed state of an element, which stays; None if there is none."""
        if self._plain:
            return self._by_key.peek_state(name)
        if name is None and self._beside:
            levels = None if self._levels is None else self.codec.pack(self._levels.saved())
            if self._broadcast is None:
                return levels
            # One that leaves was sent nothing since the table without it: that of the others is newer.
            return self.codec.pack((None if self.leaving else self._broadcast.copy(), levels))
        state = self._by_key.peek_state(name)
        if state is None or self._timers is None:
            return state
        return with_timers(state, self._timers.of(name), self.codec)

    # other versions of the code ---------------------------------------------------------------------

    def _fresh(self) -> Any:
        """A fresh object, whose attributes tell what its class has; None where there are no objects with attributes."""
        if self._sample is None and self._plan.factory is not None and not self._plan.batch:
            self._sample = self._silent(self._plan.factory, "__init__")
        return self._sample

    def own_class(self) -> type | None:
        """The class of its objects; None where it has none of its own."""
        fresh = self._fresh()
        return None if fresh is None else type(fresh)

    def schema(self) -> Schema:
        """Return the description of the classes in its state."""
        own = self.own_class()
        return {**describe_all(named()), **({"": describe(own)} if own is not None else {})}

    def evolved(self, state: bytes, evolution: Evolution) -> bytes:
        """State that was written by another version of the code, as this one has it. Raises StateError."""

        def today(part: Any) -> Any:
            if type(part) is bytes:
                return self._evolved(part, evolution)
            return tuple(map(today, part)) if type(part) is tuple else part

        if self.nested:
            try:
                opened = evolution.read(state)  # values that wait stand in it as they are
            except FrameError as error:
                raise self._lost(error) from None
            return self.codec.pack_value(today(opened))
        state, timers = self._apart(state)
        return with_timers(self._evolved(state, evolution), timers, self.codec)

    def _evolved(self, state: bytes, evolution: Evolution) -> bytes:
        fresh = self._fresh()
        try:
            found = evolution.read(state, fresh)
        except FrameError as error:
            raise self._lost(error) from None
        if fresh is not None and type(fresh).__setstate__ is Bolt.__setstate__:
            found = evolution.attributes(found, fresh)
        return self.codec.pack_value(found, fresh)

    def evolved_more(self, state: bytes, evolution: Evolution) -> bytes:
        """The same for what stands under no key. Raises StateError."""
        copy, levels = self._copy_and_levels(state)
        if copy is None or self._broadcast is None:
            return state
        return self.codec.pack((self._broadcast.evolved(copy, evolution), levels))

    def _copy_and_levels(self, state: bytes) -> tuple[bytes | None, bytes | None]:
        """The broadcast state, if it was kept, and what else stands under no key."""
        found = None if self._broadcast is None else self.codec.unpack(state)
        if type(found) is tuple and len(found) == 2 and (found[0] is None or type(found[0]) is bytes):
            return found[0], found[1]
        return None, state  # of code that had no broadcast state

    def _apart(self, state: bytes) -> tuple[bytes, tuple[Timer, ...]]:
        try:
            return without_timers(state, self.codec)
        except FrameError as error:
            raise self._lost(error) from None

    def _lost(self, error: FrameError) -> StateError:
        return StateError(f"unit {self._plan.name!r}: the state cannot be restored: {error}")
