"""Check of what a bolt emits by: a `Bolt` tuple by tuple, a `BatchBolt` many at once. Either is used where the other is meant."""

from __future__ import annotations

from esault.errors import TopologyError
from esault.topology.bolt import BatchBolt, Bolt
from esault.topology.method_code import codes_of_methods, of_itself

__all__ = ["check_emits"]


def check_emits(cls: type, unit: str, base: type) -> None:
    """Refuse uses of what the other kind of bolt emits by. Raises TopologyError."""
    remedies = {"emit": "self.emit_batch([(key, value)]), best with all rows of a batch at once"}
    if base is Bolt:
        remedies = dict.fromkeys(("emit_batch", "emit_columns"), "self.emit(key, value) for each")
    found = [
        (name, what, where)
        for where, code in codes_of_methods(cls, (), (Bolt, BatchBolt, object))
        if not remedies.keys().isdisjoint(code.co_names)  # to go through its steps takes a hundred times as long
        for what, name in of_itself(code)
        if name in remedies and not hasattr(cls, name)
    ]
    made = {name for name, what, _ in found if what == "STORE_ATTR"}
    for name, _, where in found:
        if name not in made:
            raise TopologyError(
                f"unit {unit!r}: {where} uses self.{name}, which a {base.__name__} has not; write {remedies[name]}"
            )
