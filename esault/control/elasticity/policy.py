"""Policies by name, and what each must be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Protocol

from esault.control.elasticity.action import Action
from esault.control.elasticity.esault import ESault
from esault.control.elasticity.probe import Probe
from esault.control.elasticity.view import View
from esault.errors import UsageError

__all__ = ["DEFAULT", "POLICIES", "Policy", "make", "parameters"]

#: what scales a unit when nothing is said
DEFAULT = "probe"


class Policy(Protocol):
    """Judges one unit: an object of its own for each. It may remember views, and calls nothing."""

    #: seconds between two probes to each sub-unit, and between two views; None: as the run is set
    probe_period: float | None

    def decide(self, view: View) -> Sequence[Action]:
        """What should be changed now; mostly nothing."""
        ...


#: name -> what makes one, from its parameters by name
POLICIES: dict[str, Callable[..., Policy]] = {"probe": Probe, "esault": ESault}


def parameters(name: str) -> dict[str, Any]:
    """The parameters of a policy and their defaults. Raises UsageError for an unknown policy."""
    if name not in POLICIES:
        raise UsageError(f"there is no policy {name!r}; there are: {', '.join(POLICIES)}, and none")
    made: Any = POLICIES[name]
    if not is_dataclass(made):
        return {}
    return {f.name: f.default for f in fields(made) if f.init and f.default is not MISSING}


def make(spec: str) -> Policy | None:
    """From `NAME` or `NAME:PARAMETER=VALUE,...`; None for `none`. Raises UsageError, naming what is known."""
    name, _, rest = spec.partition(":")
    if name == "none" and not rest:
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
    return POLICIES[name](**given)


def _value(policy: str, parameter: str, text: str, default: Any) -> Any:
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
