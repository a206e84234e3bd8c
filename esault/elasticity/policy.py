"""Policies by name, and what each must be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Protocol

from esault.elasticity.action import Action
from esault.elasticity.view import RunView, View
from esault.errors import UsageError
from esault.registry import Registry

__all__ = ["DEFAULT", "NONE", "POLICIES", "Policy", "TopologyPolicy", "UnitPolicy", "make", "parameters"]

#: what scales a unit when nothing is said
DEFAULT = "auto"
#: the word for no policy at all
NONE = "none"


class UnitPolicy(Protocol):
    """Judges one unit: an object of its own for each. It may remember views, and calls nothing."""

    #: seconds between two probes to each sub-unit, and between two views; None: as the run is set
    probe_period: float | None

    def decide(self, view: View) -> Sequence[Action]:
        """Return the changes to make now; mostly none."""
        ...


class TopologyPolicy(Protocol):
    """Judges all units that it was given together: one object for them. It may remember views, and calls nothing.

    It is asked at the end of each aligned window of `period` seconds; what it read in `view.units[...].window` is that window.
    Each of its actions names a unit. All that it returns at once is begun at once. One that has a method `decide_first(view, firsts)` is
    asked that in the first moments of a run, too, each time that sub-units report; `firsts`: unit -> `FirstWindow`. One with `moves_only = True` is given
    units whose number of sub-units is fixed as well.
    """

    #: seconds between two looks, and length of the windows
    period: float

    def decide(self, view: RunView) -> Sequence[Action]:
        """Return the changes to make now; mostly none."""
        ...


Policy = UnitPolicy | TopologyPolicy

_ROOM = "esault.elasticity.policies"
#: all policies by name; a program adds its own by `esault.policies.register`
POLICIES: Registry[Callable[..., Policy]] = Registry(
    "policy",
    "esault.policies",
    {
        "auto": f"{_ROOM}.auto:Auto",
        "probe": f"{_ROOM}.probe:Probe",
        "esault": f"{_ROOM}.esault:ESault",
        "ds2": f"{_ROOM}.ds2:DS2",
        "flink": f"{_ROOM}.flink:Flink",
        "dhalion": f"{_ROOM}.dhalion:Dhalion",
        "hpa": f"{_ROOM}.hpa:HPA",
        "autoscale": f"{_ROOM}.autoscale:Autoscale",
        "craa": f"{_ROOM}.craa:Craa",
        "threshold": f"{_ROOM}.threshold:Threshold",
        "kalman": f"{_ROOM}.kalman:Kalman",
        "migration": f"{_ROOM}.migration:Migration",
        "random": f"{_ROOM}.random_choice:RandomChoice",
        "orientstream": f"{_ROOM}.orientstream.policy:OrientStream",
    },
    reserved=(NONE,),
)


def parameters(name: str) -> dict[str, Any]:
    """The parameters of a policy and their defaults; a text may be one of its field's `metadata["choices"]`. Raises UsageError for an unknown policy."""
    made: Any = POLICIES.find(name)
    if not is_dataclass(made):
        return {}
    return {f.name: f.default for f in fields(made) if f.init and f.default is not MISSING}


def make(spec: str) -> Policy | None:
    """From `NAME` or `NAME:PARAMETER=VALUE,...`; None for `none`. Raises UsageError, naming what is known."""
    name, _, rest = spec.partition(":")
    if name == NONE and not rest:
        return None
    known = parameters(name)
    given: dict[str, Any] = {}
    for item in filter(None, rest.split(",")):
        parameter, equals, text = item.partition("=")
        if parameter not in known or not equals:
            raise UsageError(
                f"policy {name!r} has no parameter {item!r}; write NAME=VALUE with one of: {', '.join(known)}"
            )
        given[parameter] = _value(name, parameter, text, known[parameter])
    return POLICIES.find(name)(**given)


def _value(policy: str, parameter: str, text: str, default: Any) -> Any:
    if isinstance(default, str):
        choices = _choices(policy, parameter)
        if choices and text not in choices:
            raise UsageError(f"policy {policy!r}: {parameter}={text!r} must be one of: {', '.join(choices)}")
        return text
    kind = bool if isinstance(default, bool) else int if isinstance(default, int) else float
    try:
        if kind is bool:
            return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[text.lower()]
        value = kind(text)
    except (ValueError, KeyError):
        raise UsageError(f"policy {policy!r}: {parameter}={text!r} is no {kind.__name__}") from None
    if not 0 <= value < float("inf"):
        raise UsageError(f"policy {policy!r}: {parameter}={text} must be 0 or more")
    return value


def _choices(policy: str, parameter: str) -> tuple[str, ...]:
    made: Any = POLICIES.find(policy)
    return next(tuple(f.metadata.get("choices", ())) for f in fields(made) if f.name == parameter)
