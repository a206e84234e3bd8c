"""Bolts with broadcast state in a topology's calls, checked: which may have it, and by which inputs it comes."""

from __future__ import annotations

from collections.abc import Sequence

from esault.errors import TopologyError
from esault.topology.bolt import Bolt
from esault.topology.grouping import Grouping
from esault.topology.inputs import common_objects
from esault.topology.plan import UnitPlan

__all__ = ["check_broadcast", "objects_of"]


def takes_broadcast(cls: type) -> bool:
    """Return whether the class says what becomes of tuples that come by broadcast()."""
    return issubclass(cls, Bolt) and (_defines(cls, "process_broadcast") or _defines(cls, "process_broadcast_stream"))


def _defines(cls: type, hook: str) -> bool:
    return getattr(cls, hook) is not getattr(Bolt, hook)


def objects_of(unit: str, cls: type, inputs: Sequence[tuple[str, Grouping]]) -> str:
    """Return what one object of `unit` stands for, on which its inputs, (stream, grouping), must agree.

    Those that bring broadcast state do not count. Raises TopologyError.
    """
    keyed = [(source, grouping) for source, grouping in inputs if not grouping.promises.to_all]
    if not takes_broadcast(cls):
        if 0 < len(keyed) < len(inputs) and any(grouping.objects == "key" for _, grouping in keyed):
            sent = next(source for source, grouping in inputs if grouping.promises.to_all)
            raise TopologyError(
                f"unit {unit!r}: {sent!r} comes by broadcast() to a bolt with one object per key, and {cls.__name__} does not say what "
                "becomes of such a tuple; define process_broadcast(self, key, value), which changes self.broadcast_state"
            )
        return common_objects(unit, inputs)
    hook = "process_broadcast" if _defines(cls, "process_broadcast") else "process_broadcast_stream"
    where = f"unit {unit!r}: {cls.__name__} defines {hook}"
    if len(keyed) == len(inputs):
        raise TopologyError(
            f"{where}, and no input comes by broadcast(): it would never be called. Give it one: "
            f"t.bolt({unit!r}, {cls.__name__}, {{tuples: by_key(), rules: broadcast()}})"
        )
    if not keyed:
        raise TopologyError(
            f"{where}, and all its inputs come by broadcast(): no tuple is left for process. Give it one by_key(): "
            f"t.bolt({unit!r}, {cls.__name__}, {{tuples: by_key(), rules: broadcast()}})"
        )
    for source, grouping in keyed:
        if grouping.objects != "key":
            raise TopologyError(
                f"{where}, and {source!r} comes by {grouping!r}: broadcast state is handed to new sub-units beside the keys that "
                "they take over, so that it goes with by_key() alone; write key_by(...) before the bolt if the stream has no key"
            )
    return "key"


def check_broadcast(unit: UnitPlan, replicas: int) -> None:
    """Raise TopologyError where a bolt with broadcast state has what does not go with it."""
    if not unit.broadcast_inputs:
        return
    for has, what, why in (
        (unit.window is not None, "a window", "its objects live as long as their window; make it a bolt"),
        (
            unit.concurrency is not None,
            "an async process",
            "a call may be open when the state changes; put the async bolt before or behind it",
        ),
        (
            unit.buffer is not None,
            "a buffer",
            "what it drops would be missing in one sub-unit and not in the others; leave buffer and overflow out",
        ),
        (replicas > 1, "replicas", "whose rows may come in another order to each of them; leave replicas out"),
    ):
        if has:
            raise TopologyError(f"unit {unit.name!r}: broadcast state does not go with {what}: {why}")
