"""The types of the options of `run` and `start`, looked at before anything starts.

Where they come from the environment or a form they are text, and what goes wrong with that deep in the engine names no option.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from esault.errors import UsageError

__all__ = ["check_option_types"]

_SECONDS, _WHOLE, _PATH = "a number of seconds, such as 5", "a whole number, such as 4", "a path, as text or a Path"
_YES = "True or False"
_BY_UNIT = "a dict of whole numbers by unit, such as {'count': 4}"
_TAKES: Mapping[str, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(
        (
            "seconds",
            "scale_to_zero",
            "heartbeat_timeout",
            "checkpoint",
            "checkpoint_timeout",
            "aligned_checkpoint_timeout",
        ),
        ((Real,), _SECONDS),
    ),
    **dict.fromkeys(("slots", "ackers", "priority"), ((Integral,), _WHOLE)),
    **dict.fromkeys(("report", "state", "hosts", "key", "audit", "land_metrics", "learn"), ((str, os.PathLike), _PATH)),
    **dict.fromkeys(("chaining", "resume", "restart", "allow_dropped_state", "ui_control"), ((bool,), _YES)),
    "params": ((Mapping,), "a dict of the topology function's arguments by name"),
    "parallelism": ((Mapping,), _BY_UNIT),
    "rename": ((Mapping,), "a dict of old names and new ones"),
    "conf": ((Mapping,), "a dict of Spark's settings, such as {'spark.cores.max': '8'}"),
}


def check_option_types(given: Mapping[str, Any]) -> None:
    """Raise UsageError for the first option of another type than it takes. None is what was not said."""
    for name, value in given.items():
        kinds, takes = _TAKES.get(name, ((object,), ""))
        if value is not None and not _is(value, kinds):
            raise UsageError(f"{name}={value!r} ({type(value).__name__}): it is {takes}")
    if given.get("slots") is not None and given["slots"] < 1:
        raise UsageError(f"slots={given['slots']}: a run needs 1 at least; leave it out for as many as there are")
    for name in ("parallelism", "fixed"):
        widths = given.get(name)
        for unit, width in widths.items() if isinstance(widths, Mapping) else ():
            if not _is(width, (Integral,)):
                raise UsageError(f"{name} says {width!r} ({type(width).__name__}) of {unit!r}: it is {_BY_UNIT}")


def _is(value: object, kinds: tuple[type, ...]) -> bool:
    # True is an int to Python, and no number of seconds or slots
    return isinstance(value, kinds) and (type(value) is not bool or bool in kinds or object in kinds)
