"""The difference of two checkpoints, unit by unit and key by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from esault.messages.checkpoint import CompletedUnit
from esault.payload.codec import Codec
from esault.payload.json_text import json_text, key_text
from esault.routing.ring import canonical
from esault.state.checkpoint_view import CheckpointView
from esault.value_class import value_class

__all__ = ["Difference", "UnitDifference", "differences", "is_same"]


@value_class(frozen=True)
class Difference:
    """One key. `before` and `after` are its state as JSON; None: it has none there."""

    key: str
    before: str | None
    after: str | None


@dataclass
class UnitDifference:
    """One unit: how many keys differ, and the first of them."""

    name: str
    #: "bolt" or "spout", whose keys are its splits or parts
    kind: str
    added: int = 0
    removed: int = 0
    changed: int = 0
    same: int = 0
    first: list[Difference] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Return how many keys differ."""
        return self.added + self.removed + self.changed

    def note(self, key: Any, before: str | None, after: str | None, limit: int) -> None:
        """Take one that differs."""
        self.added += before is None
        self.removed += after is None
        self.changed += before is not None and after is not None
        if len(self.first) < limit:
            self.first.append(Difference(key_text(key), before, after))


def differences(
    before: CheckpointView,
    after: CheckpointView,
    limit: int = 20,
    unit: str | None = None,
    renames: Mapping[str, str] | None = None,
) -> Iterator[UnitDifference]:
    """Yield what became of each unit, in the order of the later checkpoint. `limit`: keys of each that are kept.

    `unit`: this one only, as it is named in the later checkpoint; `renames`: name before -> name after. The states of one unit stand in memory.
    Raises UsageError, CheckpointError.
    """
    renames = renames or {}
    then = {renames.get(name, name): name for name in before.checkpoint.units}
    names = [*after.checkpoint.units, *(name for name in then if name not in after.checkpoint.units)]
    for name in names:
        if unit is None or name == unit:
            a, b = before.checkpoint.units.get(then.get(name, "")), after.checkpoint.units.get(name)
            kind = (b or a).kind  # type: ignore[union-attr]
            found = UnitDifference(name, kind)
            if "bolt" in {each.kind for each in (a, b) if each is not None}:
                _compare_states(
                    found,
                    before if a is not None and a.kind == "bolt" else None,
                    then.get(name, ""),
                    after if b is not None and b.kind == "bolt" else None,
                    limit,
                )
            else:
                _compare_positions(found, a, b, limit)
            yield found


def _compare_states(
    found: UnitDifference, before: CheckpointView | None, then: str, after: CheckpointView | None, limit: int
) -> None:
    old = {} if before is None else {canonical(key): (key, state) for key, state in before.packed(then)}
    for key, packed in () if after is None else after.packed(found.name):
        name = canonical(key)
        if name not in old:
            assert after is not None
            found.note(key, None, json_text(after.shown(found.name, key, packed)), limit)
            continue
        _, was = old.pop(name)
        if was == packed:
            found.same += 1
            continue
        assert before is not None and after is not None
        a, b = before.shown(then, key, was), after.shown(found.name, key, packed)
        if is_same(a, b):
            found.same += 1
        else:
            found.note(key, json_text(a), json_text(b), limit)
    for key, was in old.values():
        assert before is not None
        found.note(key, json_text(before.shown(then, key, was)), None, limit)


def is_same(a: Any, b: Any) -> bool:
    """Return whether two states are the same: as Python compares them, and as they are shown, since 1 and 1.0 are equal."""
    try:
        return json_text(a) == json_text(b) and bool(a == b)
    except Exception:  # such as arrays, which compare element by element
        return False


def _compare_positions(
    found: UnitDifference, before: CompletedUnit | None, after: CompletedUnit | None, limit: int
) -> None:
    old, new = _positions(before), _positions(after)
    for key in sorted({*old, *new}, key=str):
        a, b = old.get(key), new.get(key)
        if a == b:
            found.same += 1
        else:
            found.note(key, a, b, limit)


def _positions(unit: CompletedUnit | None) -> dict[Any, str]:
    """Return where each split or part of a spout goes on, as JSON."""
    if unit is None:
        return {}
    codec = Codec()
    found: dict[Any, str] = {part: json_text(codec.unpack(position)) for part, position in unit.positions.items()}
    for name, place in unit.splits.items():
        found[name] = "ended" if place.ended else json_text(codec.unpack(place.position))
    return found
