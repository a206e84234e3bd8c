"""Values that can travel between processes: finds, inside a value, the first thing that cannot, and says why.

Slow beside the packer, which does not say where it stopped: this is asked once packing has failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from reprlib import Repr
from typing import Any

from esault.errors import PayloadError
from esault.payload.attributes import get_attributes
from esault.payload.class_names import is_own
from esault.payload.pickles import Writer
from esault.payload.remedy import known_remedy, remedy, type_name

__all__ = ["ARROW", "MAX_DEPTH", "MAX_SET_DEPTH", "NUMPY", "OWN_CODES", "PACKED_ROWS", "RECORDS", "brief", "explain"]

#: containers nest at most this deep in eSault's own messages: msgpack's unpacker has a stack of this size
MAX_DEPTH = 1024
#: sets nest in sets at most this deep there: each level packs and unpacks on its own, deeper into the C stack
MAX_SET_DEPTH = 8
#: the extension codes of the codec; those of arrays and rows stand for whole columns
OWN_CODES = range(80, 90)
NUMPY, ARROW, RECORDS, PACKED_ROWS = 86, 87, 88, 89

_KEY, _ELEMENT = " (key)", " (element)"
#: how deep a culprit is looked for
_DEEPEST = 50

_short = Repr()
_short.maxstring = _short.maxother = _short.maxlong = 40


def explain(value: Any, owner: Any = None) -> str | None:
    """For an error message: what cannot travel inside `value`, where, and what to use instead; None if all can.

    The place is written as in Python, `value[2].order`; the keys of a dict and the elements of a set, which have no place, are
    marked ` (key)` and ` (element)`.
    """
    error = _failure(value, owner)
    if error is None:
        return None
    place, thing = "", value
    seen = {id(value)}
    for _ in range(_DEEPEST):
        for where, part in _parts(thing):
            if id(part) in seen:
                continue
            seen.add(id(part))
            failed = _failure(part, owner)
            if failed is not None:
                place, thing, error = place + where, part, failed
                break
        else:
            break
    if len(place) > 100:
        place = f"{place[:60]}...{place[-30:]}"
    name = "it" if _KEY in place or _ELEMENT in place else f"value{place}"
    inside = f" at value{place}" if place else ""
    return f"{type_name(type(thing))}{inside}{_reason(thing, name, error)}"


def _failure(thing: Any, owner: Any) -> BaseException | None:
    try:
        Writer().write(thing, owner)
    except MemoryError:
        raise
    except Exception as error:
        return error
    return None


def _reason(thing: Any, name: str, error: BaseException) -> str:
    """Return what follows the name of the thing: some errors say themselves that it cannot travel."""
    if isinstance(error, RecursionError):
        return " is nested too deeply and cannot travel; flatten it"
    known = known_remedy(thing, name)
    if known is not None:
        return f" cannot travel; {known}"
    if isinstance(error, PayloadError):
        return f": {error}" if "travel" in str(error) else f" cannot travel: {error}"
    if type(error) is TypeError and "pickle" in str(error):
        return f" cannot travel; {remedy(thing, name)}"
    return f" cannot travel, since it fails when it is read: {_brief_error(error)}; {remedy(thing, name)}"


def _parts(thing: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a container or an object, each with its place."""
    try:
        if isinstance(thing, dict):
            yield from ((_KEY, key) for key in thing)
            yield from ((f"[{brief(key)}]", item) for key, item in thing.items())
        elif isinstance(thing, (list, tuple)):
            yield from ((f"[{i}]", part) for i, part in enumerate(thing))
        elif isinstance(thing, (set, frozenset)):
            yield from ((_ELEMENT, part) for part in thing)
        if isinstance(thing, type) or not is_own(type(thing).__module__):
            return
        if hasattr(thing, "__dict__"):
            yield from ((f".{name}", part) for name, part in get_attributes(thing).items())
        for base in type(thing).__mro__:
            slots = vars(base).get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if hasattr(thing, name):
                    yield f".{name}", getattr(thing, name)
    except Exception:
        return  # a container of the user's own that fails when it is read


def brief(thing: Any) -> str:
    """Its repr, cut short."""
    try:
        return _short.repr(thing)
    except ValueError:  # an int of more digits than Python writes down
        return f"<{type(thing).__name__}>"


def _brief_error(error: BaseException) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text[:200]}"
