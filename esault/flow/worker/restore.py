"""The state that a bolt's sub-unit begins with: the keys of its ranges, by whichever sub-units they were written."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from esault.flow.checkpoint.snapshot import StateStore
from esault.flow.operators.operator import Operator
from esault.messages.checkpoint import Restore
from esault.payload.schema import Evolution
from esault.routing.ring import Name, canonical, position
from esault.topology.context import Context
from esault.topology.plan import UnitPlan

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
        if self._evolutions:
            self._say_dropped(operator)
        return surplus

    def _read(self, operator: Operator, chain: Iterable[Any], number: int) -> None:
        states: dict[Name, tuple[Any, bytes | None]] = {}
        for piece in chain:
            read = self._state_store.read(piece)
            evolution = Evolution(self._state_store.schema(piece))
            if evolution.needed(operator.own_class()):
                self._evolutions.append(evolution)
                read = self._evolved(operator, evolution, read)
            states.update((canonical(key), (key, state)) for key, state in read)
        written = self._restore.written
        for key, state in states.values():
            if state is None or not self._owns(key):
                continue
            if key is None and self._plan.keeps_watermark and written:
                operator.install_watermark(state, _common(written[number], self._restore.ranges))
            else:
                operator.install_state(key, state)

    def _evolved(
        self, operator: Operator, evolution: Evolution, states: Iterable[tuple[Any, bytes | None]]
    ) -> Iterator[tuple[Any, bytes | None]]:
        """Yield states as this version of the code has them; those of others' keys are not looked at."""
        for key, state in states:
            if state is None or not self._owns(key):
                yield key, state
            elif key is None and self._plan.keeps_more:
                yield key, operator.evolved_more(state, evolution)
            else:
                yield key, operator.evolved(state, evolution)

    def _say_dropped(self, operator: Operator) -> None:
        whole = self._evolutions[0]
        for each in self._evolutions[1:]:
            whole.dropped.update(each.dropped)
        own = operator.own_class()
        for line in whole.told(self._plan.name, own.__qualname__ if own is not None else "keyed"):
            print(line, file=sys.stderr)

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
