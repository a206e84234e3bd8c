"""The plain arguments of a topology's calls, checked: names, seconds, whole numbers, streams, error policies."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from esault.errors import TopologyError
from esault.topology.error_policy import Backoff, ErrorPolicy, dead_letter, fail, skip

__all__ = [
    "LATEST",
    "check_buffer",
    "check_moved",
    "check_name",
    "check_on_error",
    "check_seconds",
    "check_streams",
    "check_types",
    "described_span",
    "listed",
]

# Names become folders, files, labels of metrics and words of the command line.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_LONGEST_NAME = 100
_ALLOWED = "letters (a-z, A-Z), digits, - _ . are allowed, the first one no - or ."

#: seconds since the epoch that no datetime has: the year 10000
LATEST = 253_402_300_800
_KINDS = ("fail", "skip", "dead_letter")


def check_name(what: str, name: object) -> str:
    """`name`, if it is one; `what` says whose name it is, such as "unit" or "sink of unit 'count'"."""
    if not isinstance(name, str):
        raise TopologyError(f"{what}: the name comes first and is text, not {name!r} ({type(name).__name__})")
    if not name:
        raise TopologyError(f"{what}: the name is empty; {_ALLOWED}")
    if not _NAME.fullmatch(name):
        raise TopologyError(f"{what}: {name!r} cannot be a name; {_ALLOWED}")
    if len(name) > _LONGEST_NAME:
        raise TopologyError(f"{what}: {name[:20]!r}... has {len(name)} letters; a name has at most {_LONGEST_NAME}")
    return name


def listed(given: object) -> list[Any]:
    """Return the items of what stands for a list: a text alone is one item, and so is what is no list. Callers look at them."""
    return list(given) if isinstance(given, Iterable) and not isinstance(given, (str, bytes)) else [given]


def described_span(value: object) -> str:
    """Return what stands in place of a number of seconds, and the remedy where it is known."""
    said = f"{value!r} ({type(value).__name__})"
    return f"{said}; write {value.total_seconds():g}" if isinstance(value, timedelta) else said


def check_seconds(what: str, argument: str, value: object) -> float:
    """`value` as seconds: a finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TopologyError(f"{what}: {argument} is a number of seconds, not {described_span(value)}")
    if not math.isfinite(value) or value <= 0:
        raise TopologyError(f"{what}: {argument}={value!r} must be a number of seconds above 0")
    return float(value)


def check_buffer(where: str, buffer: object, overflow: object) -> int | None:
    """Tuples that an inbox holds at most; None for as many as come. What is lost must be asked for in so many words."""
    if buffer is None and overflow is None:
        return None
    if buffer is None:
        raise TopologyError(
            f"{where}: overflow={overflow!r} says what happens when an inbox is full, and nothing says when it is; write "
            "buffer=N with it, a number of tuples"
        )
    most = check_whole(where, "buffer", buffer, "tuples")
    if overflow is None:
        raise TopologyError(
            f"{where}: buffer={buffer!r} lacks overflow='drop': what comes when so many tuples wait is lost, and counted. "
            "Leave buffer out to lose nothing: senders then wait"
        )
    if overflow != "drop":
        raise TopologyError(
            f"{where}: overflow is 'drop', not {overflow!r}; leave it and buffer out to have senders wait"
        )
    return most


def check_whole(where: str, argument: str, value: object, unit: str) -> int | None:
    """The number, of so many of `unit` at most; None: any number."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise TopologyError(f"{where}: {argument}={value!r} must be a whole number of {unit} from 1 on")
    return value


def check_streams(unit: str, streams: object) -> tuple[str, ...]:
    """The names of the streams beside the main one."""
    if isinstance(streams, str):
        raise TopologyError(f"unit {unit!r}: streams={streams!r} is one text; write streams=({streams!r},)")
    if not isinstance(streams, Iterable):
        raise TopologyError(
            f"unit {unit!r}: streams takes the names of streams, such as streams=('late',), not {streams!r}"
        )
    names = tuple(check_name(f"unit {unit!r}, a name in streams", name) for name in streams)
    for name in names:
        if names.count(name) > 1:
            raise TopologyError(f"unit {unit!r}: the stream {name!r} is declared twice; name each stream once")
    return names


def check_on_error(where: str, policy: object) -> ErrorPolicy:
    """An error policy whose parts make sense; `where` names the unit or the step."""
    if policy is fail or policy is skip:
        raise TopologyError(
            f"{where}: on_error={policy.__name__} lacks its brackets; write on_error={policy.__name__}()"
        )
    if policy is dead_letter:
        raise TopologyError(f"{where}: on_error=dead_letter lacks its path; write on_error=dead_letter('dead.jsonl')")
    if not isinstance(policy, ErrorPolicy):
        raise TopologyError(
            f"{where}: on_error is fail(), skip() or dead_letter(path), not {policy!r} ({type(policy).__name__})"
        )
    if policy.kind not in _KINDS:
        raise TopologyError(f"{where}: on_error has the kind {policy.kind!r}; it is one of {', '.join(_KINDS)}")
    retries = policy.retries
    if isinstance(retries, bool) or not (isinstance(retries, Backoff) or (isinstance(retries, int) and retries >= 0)):
        raise TopologyError(f"{where}: on_error has retries={retries!r}; it is a whole number from 0 on, or backoff()")
    if policy.kind == "dead_letter" and not policy.path:
        raise TopologyError(f"{where}: on_error has no path; write dead_letter('dead.jsonl')")
    return policy


def check_types(what: str, types: object) -> tuple[type | str, ...]:
    """Classes, and names of packages, whose objects may be in values and state."""
    if isinstance(types, (str, type)) or not isinstance(types, (Sequence, set, frozenset)):
        raise TopologyError(
            f"{what}: types is a sequence of classes and names of packages, as in types=(Point, 'shapely')"
        )
    for each in types:
        if not isinstance(each, (type, str)) or (
            isinstance(each, str) and not all(map(str.isidentifier, each.split(".")))
        ):
            raise TopologyError(f"{what}: types holds {each!r}, which is no class and no name of a package")
    return tuple(types)


def check_moved(what: str, moved: object) -> dict[str, type | str]:
    """Return the checked `moved`: former names of topologies and units by name, of classes by module and name. Raises TopologyError."""
    remedy = "write moved={'old_unit': 'new_unit', 'old_module.OldClass': NewClass}"
    if not isinstance(moved, Mapping):
        raise TopologyError(f"{what}: moved is a dict of old names, not {moved!r}; {remedy}")
    for old, new in moved.items():
        if not isinstance(old, str) or not isinstance(new, (str, type)):
            raise TopologyError(f"{what}: moved says {old!r}: {new!r}; {remedy}")
        if isinstance(new, type) and "." not in old:
            raise TopologyError(
                f"{what}: moved says {old!r}: {new.__name__}, and a class is named with its module; {remedy}"
            )
    return dict(moved)
