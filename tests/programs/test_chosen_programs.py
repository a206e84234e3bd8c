"""The few programs that take a process each in every run of the tests use all of the engine that any of them does."""

from __future__ import annotations

from user_programs import FEW, NAMES, Program

#: parts of a unit that say what of the engine it uses, where they are set
OPTIONS = (
    "batch",
    "concurrency",
    "expire_after",
    "idle_after",
    "merger",
    "replicas",
    "tick_every",
    "timers",
    "spooled",
    "watermarks",
)


def classes(found):
    """The engine's classes that an object is of, as its code is what runs."""
    return {each.__name__ for each in type(found).__mro__ if each.__module__.startswith("esault.")}


def used(name):
    """What of the engine a program uses: operators, sources, sinks, groupings, kinds of windows, and options of units."""
    found = set()
    for unit in Program(name).plan(size=1).units.values():
        found |= {(option, bool(getattr(unit, option) not in (None, False, 1))) for option in OPTIONS}
        found |= {("objects", unit.objects), ("expire_by", unit.expire_after and unit.expire_by)}
        parts = [unit.spout, unit.window and unit.window.kind, unit.factory() if unit.factory else None]
        parts += [each.grouping for each in unit.inputs]
        for outlet in (below for stream in unit.streams.values() for below in stream.walk()):
            parts += [each.sink for each in outlet.sinks]
        found |= {name for part in parts for name in classes(part)}
    return found


def test_they_use_all_that_is_used():
    everything = set().union(*map(used, NAMES))
    assert set().union(*map(used, FEW)) == everything
    assert len(everything) > 40
