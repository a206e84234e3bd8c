"""Policies by name, and what each must be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from typing import Any, Protocol

from esault.elasticity.action import Action
from esault.elasticity.view import RunView, View
from esault.errors import UsageError

__all__ = ["DEFAULT", "POLICIES", "Policy", "TopologyPolicy", "UnitPolicy", "make", "parameters", "policy_class"]

#: what scales a unit when nothing is said
DEFAULT = "auto"


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
    Each of its actions names a unit. All that it returns at once is begun at once. One with `moves_only = True` is given
    units whose number of sub-units is fixed as well.
    """

    #: seconds between two looks, and length of the windows
    period: float

    def decide(self, view: RunView) -> Sequence[Action]:
        """Return the changes to make now; mostly none."""
        ...


Policy = UnitPolicy | TopologyPolicy

#: name -> module and class, so that a run loads only what it uses; or what makes one
POLICIES: dict[str, str | Callable[..., Policy]] = {
    "auto": "auto.Auto",
    "probe": "probe.Probe",
    "esault": "esault.ESault",
    "ds2": "ds2.DS2",
    "flink": "flink.Flink",
    "dhalion": "dhalion.Dhalion",
    "hpa": "hpa.HPA",
    "autoscale": "autoscale.Autoscale",
    "craa": "craa.Craa",
    "threshold": "threshold.Threshold",
    "kalman": "kalman.Kalman",
    "migration": "migration.Migration",
    "random": "random_choice.RandomChoice",
    "orientstream": "orientstream.policy.OrientStream",
}


def policy_class(name: str) -> Any:
    """Return the callable that makes a policy from its parameters by name. Raises UsageError for an unknown one."""
    if name not in POLICIES:
        raise UsageError(f"there is no policy {name!r}; there are: {', '.join(POLICIES)}, and none")
    made = POLICIES[name]
    if not isinstance(made, str):
        return made
    module, _, name_there = made.rpartition(".")
    return getattr(import_module(f"esault.elasticity.policies.{module}"), name_there)


def parameters(name: str) -> dict[str, Any]:
    """The parameters of a policy and their defaults; a text may be one of its field's `metadata["choices"]`. Raises UsageError for an unknown policy."""
    made = policy_class(name)
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
    policy: Policy = policy_class(name)(**given)
    return policy


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
    found: Any = fields(policy_class(policy))
    return next(tuple(f.metadata.get("choices", ())) for f in found if f.name == parameter)
