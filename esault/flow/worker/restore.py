"""The state that a bolt's sub-unit begins with: the keys of its ranges, by whichever sub-units they were written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from esault.flow.checkpoint.snapshot import StateStore
from esault.flow.operators.operator import Operator
from esault.messages.checkpoint import Restore, StateEvolved
from esault.payload.schema import Evolution
from esault.routing.ring import Name, canonical, position
from esault.topology.context import Context
from esault.topology.kept_windows import kept_windows, kind_of, said_of
from esault.topology.plan import UnitPlan
from esault.topology.window import TimeWindow, WindowKind

__all__ = ["StateRestore"]


class StateRestore:
    """A reader of checkpoint pieces into operators, in the form that this version of the code gives to state."""

    def __init__(self, plan: UnitPlan, context: Context, restore: Restore, state_store: StateStore) -> None:
        self._plan = plan
        self._part, self._parts = context.part, context.parts
        self._restore = restore
        self._state_store = state_store
        #: objects of a sub-unit go as a whole to one of its successors
        self._one_each = plan.objects == "sub-unit"
        self._evolutions: list[Evolution] = []
        #: how windows were cut and are now, where that is another way
        self._other_windows: tuple[WindowKind, TimeWindow] | None = None
        kind = None if plan.window is None else plan.window.kind
        before = kind_of(restore.windows)
        if isinstance(kind, TimeWindow) and before is not None and said_of(kind) != tuple(restore.windows):
            self._other_windows = before, kind

    def into(self, operator: Operator, new_operator: Callable[[], Operator]) -> list[Operator]:
        """Fill this operator, and return those that this unit has no sub-unit for any more."""
        surplus = []
        for number, chain in enumerate(self._restore.chains):
            if not self._one_each or number < self._parts:
                if not self._one_each or number == self._part:
                    self._read(operator, chain, number)
            elif number % self._parts == self._part and not self._restore.finished:
                # It is part of what has been processed: what it would have put out at its end goes out now.
                surplus.append(new_operator())
                self._read(surplus[-1], chain, number)
        return surplus

    def _read(self, operator: Operator, chain: Iterable[Any], number: int) -> None:
        states: dict[Name, tuple[Any, bytes | None, Evolution | None]] = {}
        for piece in chain:
            evolution = Evolution(self._state_store.schema(piece))
            needed = evolution if evolution.needed(operator.state.own_class()) else None
            states.update((canonical(key), (key, state, needed)) for key, state in self._state_store.read(piece))
            self._evolutions += [needed] if needed is not None else []
        written = self._restore.written
        for (
            key,
            written_state,
            needed,
        ) in states.values():  # the newest of each: what it replaced is neither read nor counted
            if written_state is None or not self._owns(key):
                continue
            more = key is None and self._plan.keeps_more
            evolved = operator.state.evolved_more if more else operator.state.evolved
            state = written_state if needed is None else evolved(written_state, needed)
            if key is not None and self._other_windows is not None:
                before, now = self._other_windows
                codec = operator.state.codec
                state = codec.pack_value(kept_windows(codec.unpack(state), before, now))
            if key is None and self._plan.keeps_watermark and written:
                operator.state.install_watermark(state, _common(written[number], self._restore.ranges))
            else:
                operator.state.install_state(key, state)

    def evolved(self, operator: Operator, incarnation: int) -> StateEvolved | None:
        """Return what was left out and what is new; None where nothing is, or the code is the same."""
        dropped: Counter[tuple[str, str]] = Counter()
        added: Counter[tuple[str, str]] = Counter()
        for each in self._evolutions:
            dropped.update(each.dropped)
            added.update(each.added)
        if not dropped and not added:
            return None
        own = operator.state.own_class()
        mine = own.__qualname__ if own is not None else "keyed"

        def told(counts: Counter[tuple[str, str]]) -> tuple[tuple[str, str, int, bool], ...]:
            return tuple((cls or mine, name, count, not cls) for (cls, name), count in sorted(counts.items()))

        return StateEvolved(incarnation, told(dropped), told(added))

    def _owns(self, key: Any) -> bool:
        if self._one_each or self._plan.objects == "unit":
            return True
        if key is None:  # without a name: up to when windows were closed, and broadcast state
            return self._plan.keeps_more
        place = position(key)
        return any(low <= place <= high for low, high in self._restore.ranges)


def _common(some: Iterable[tuple[int, int]], others: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The places that are in ranges of both."""
    found = [(max(low, a), min(high, b)) for low, high in some for a, b in others]
    return [(low, high) for low, high in found if low <= high]
